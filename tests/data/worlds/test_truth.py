"""Boxes enclose exactly what is seen; labels, instances and depth tell the same story."""

from __future__ import annotations

import numpy as np
import pytest

from adverse.data.worlds import classes
from adverse.data.worlds.rendering import Scene, render
from adverse.data.worlds.solids import Solids
from adverse.data.worlds.writing import World
from adverse.seeds import generator
from data.worlds.views import pair

VIEWS: tuple[tuple[World, str, float], ...] = (
    ("orchard", "test/a", 0.3),
    ("orchard", "test/b", 0.9),
    ("street", "test/a", 0.1),
    ("street", "test/b", 0.9),
)


@pytest.mark.parametrize(("world", "name", "part"), VIEWS)
def test_boxes_enclose_exactly_the_visible_pixels(world: World, name: str, part: float) -> None:
    seen = pair(world, name, part).left
    values = set(np.unique(seen.instances).tolist()) - {0}
    assert values == {classes.instance_value(thing.label, thing.id) for thing in seen.things}
    for thing in seen.things:
        rows, columns = np.nonzero(seen.instances == classes.instance_value(thing.label, thing.id))
        assert thing.visible == (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
        assert thing.pixels == len(rows)
        assert (np.array(thing.full[:2]) <= thing.visible[:2]).all()
        assert (np.array(thing.full[2:]) >= thing.visible[2:]).all()
        assert thing.pixels <= thing.full_pixels


@pytest.mark.parametrize(("world", "name", "part"), VIEWS)
def test_the_full_extent_is_what_a_thing_alone_in_the_world_shows(
    world: World, name: str, part: float
) -> None:
    made = pair(world, name, part)
    for thing in made.left.things[:3]:

        def alone(time_s: float, number: int = thing.id) -> Solids:
            solids = made.script.scene().solids(time_s)
            return Solids._make(column[solids.instance == number] for column in solids)

        scene = Scene(alone, made.script.sun, made.script.light, 1.0)
        only = render(scene, made.camera, made.pose, made.time_s, generator(0, "x")).things[0]
        assert (only.visible, only.pixels) == (thing.full, thing.full_pixels)


@pytest.mark.parametrize(("world", "name", "part"), VIEWS)
def test_labels_instances_and_depth_agree(world: World, name: str, part: float) -> None:
    seen = pair(world, name, part).left
    with_identity = seen.instances > 0
    assert (seen.labels[with_identity] == seen.instances[with_identity] // 1000).all()
    assert np.isin(seen.labels[with_identity], list(classes.WITH_INSTANCES)).all()
    assert not np.isin(seen.labels[~with_identity], list(classes.WITH_INSTANCES)).any()
    assert ((seen.labels == classes.SKY) == np.isinf(seen.depth_m)).all()
    assert (seen.depth_m > 0).all()


def test_the_street_has_what_a_street_has() -> None:
    labels = np.concatenate([pair("street", name, 0.1).left.labels.ravel() for name in ("test/a", "test/b")])
    wanted = {classes.ROAD, classes.SIDEWALK, classes.BUILDING, classes.SKY, classes.VEGETATION, classes.CAR}
    assert wanted <= set(np.unique(labels).tolist())


def test_sun_and_shade_fall_on_the_ground() -> None:
    """Where the day is clear, dirt in the sun is much brighter than dirt in the shade."""
    light = pair("orchard", "test/a", 0.3).left
    dirt = light.image[light.labels == classes.GROUND].mean(axis=1)
    assert np.percentile(dirt, 90) > 1.3 * np.percentile(dirt, 10)

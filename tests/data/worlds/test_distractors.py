"""What is there to fool a detector: things beside the path and on it, hours of the day, people at work."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from adverse.data.worlds import classes, orchard, textures
from adverse.data.worlds.distractors import FLAT_M, STANDING, flat
from adverse.data.worlds.exposure import GREY, MIDDLE, drawn_day, drawn_hour
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.people import at_work, drawn_person
from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import Script, Walker, stereo_camera
from adverse.seeds import generator
from data.worlds.views import SEED, Floats

FLAT_TOP_M = 0.1


@pytest.fixture(scope="module")
def negative() -> list[Script]:
    return [orchard_log(SEED, f"test/negative{number}", "negative") for number in range(25)]


def asides_m(script: Script, labels: tuple[int, ...], *, lying: bool) -> Floats:
    """Return how far from the path the middles of solids are that stand on the ground, or that lie on it."""
    solids = script.still
    top = solids.centre_m[:, 2] + np.minimum(solids.reach_m, np.abs(solids.inverse[:, 2, 2]) ** -1.0)
    chosen = np.isin(solids.label, labels) & ((top < FLAT_TOP_M) == lying)
    path = np.array([script.drive.aside_m(x) for x in solids.centre_m[chosen, 0]])
    aside: Floats = np.abs(solids.centre_m[chosen, 1] - path)
    return aside


def test_what_stands_leaves_the_tractor_room_and_some_of_it_is_within_the_control_radius(
    negative: list[Script],
) -> None:
    standing = np.concatenate(
        [asides_m(log, (classes.STATIC, classes.POLE), lying=False) for log in negative]
    )
    assert standing.min() > orchard.CLEAR_M
    assert 0.2 < (standing < orchard.ROBOT["control_radius_m"]).mean() < 0.6
    assert standing.max() < orchard.FARTHEST_M + max(thing.aside_m for thing in STANDING.values())


def test_what_lies_on_the_path_is_flat_and_in_nearly_every_log_without_people(negative: list[Script]) -> None:
    lying = [asides_m(log, (classes.STATIC, classes.GROUND), lying=True) for log in negative]
    assert np.mean([len(one) > 0 and one.min() < orchard.ON_PATH_M for one in lying]) > 0.9


@pytest.mark.parametrize("name", STANDING)
def test_a_thing_reaches_no_farther_to_the_side_than_it_says(name: str) -> None:
    for seed in range(30):
        solids = STANDING[name].built(np.random.default_rng(seed), 3.0, 0.0)
        axes = np.linalg.inv(solids.inverse)  # columns: half axes in the world
        half = np.sqrt((axes[:, 1, :] ** 2).sum(axis=1))
        assert (np.abs(solids.centre_m[:, 1]) + np.minimum(half, solids.reach_m)).max() < (
            STANDING[name].aside_m + 0.3
        )
        assert (solids.instance == 0).all()
        assert classes.PERSON not in solids.label


def test_shadows_lie_away_from_the_sun_and_only_where_it_shines() -> None:
    sun = np.array([0.6, 0.0, 0.8])
    assert "shadow" not in flat(sun, 0.2)
    made = flat(sun, 2.0)["shadow"].built(np.random.default_rng(1), 5.0, 0.0)
    assert made.centre_m[:, 0].min() < 4.2  # the sun is ahead, the head of the shadow nearer to the camera
    assert made.centre_m[:, 2].max() + made.size_m[:, 2].max() <= 2 * FLAT_M


def test_hours_are_bright_low_grey_and_dark() -> None:
    hours = [drawn_hour(np.random.default_rng(seed), textures.ORCHARD_GROUND) for seed in range(300)]
    height = np.array([math.degrees(math.asin(day.sun[2])) for day in hours])
    strength = np.array([day.light.sun[0] for day in hours])
    grey = np.array([day.light.sky[1] for day in hours])
    shown = GREY * np.array([day.exposure for day in hours]) * (strength * np.sin(np.radians(height)) + grey)
    low, dark = (height < 20) & (strength > 1), shown < 0.6 * MIDDLE
    assert 0.1 < low.mean() < 0.3
    assert 0.08 < dark.mean() < 0.22
    assert 0.1 < ((strength < 0.2) & ~dark).mean() < 0.3
    days = [drawn_day(np.random.default_rng(seed), textures.ORCHARD_GROUND) for seed in range(100)]
    assert min(day.sun[2] for day in days) > math.sin(math.radians(20))


def test_people_at_work_are_often_dull_and_some_carry_ladders() -> None:
    rng = np.random.default_rng(2)
    working = [at_work(rng, drawn_person(rng)) for _ in range(300)]
    assert 0.1 < np.mean([person.ladder is not None for person in working]) < 0.3
    logs = [orchard_log(SEED, f"test/positive{number}", "positive") for number in range(60)]
    people = [actor for log in logs for actor in log.actors if isinstance(actor, Walker)]
    assert any(person.person.ladder for person in people)
    assert all(
        person.posture in ("standing", "walking") for person in people if person.person.ladder is not None
    )


def test_a_ladder_belongs_to_the_scene_and_not_to_the_person() -> None:
    log = orchard_log(SEED, "test/positive0", "positive")
    walker = log.actors[0]
    assert isinstance(walker, Walker)
    plain = replace(walker, posture="standing", person=replace(walker.person, ladder=None))
    bearer = replace(plain, person=replace(plain.person, ladder=(176, 178, 180)))
    camera, pose = stereo_camera(80, 60), log.drive.pose(0.5)
    views = [
        render(replace(log, actors=(actor,)).scene(), camera, pose, 0.5, generator(SEED, "ladder"))
        for actor in (plain, bearer)
    ]
    (alone,), (laden,) = (view.things for view in views)
    assert alone.full == laden.full
    assert alone.full_pixels == laden.full_pixels
    assert laden.pixels <= alone.pixels
    assert (views[1].labels == classes.STATIC).sum() > (views[0].labels == classes.STATIC).sum()


def test_grass_is_left_standing_before_some_people() -> None:
    hidden = 0
    for number in range(40):
        log = orchard_log(SEED, f"test/positive{number}", "positive")
        x, y = log.actors[0].centre_m(log.drive.duration_s)[:2]
        solids = log.still
        away = solids.centre_m[:, :2] - (x, y)
        before = (away[:, 0] < -0.4) & (away[:, 0] > -1.0) & (np.abs(away[:, 1]) < 0.5)
        tall = (solids.label == classes.VEGETATION) & (solids.centre_m[:, 2] < 0.2) & (solids.reach_m > 0.3)
        hidden += bool((before & tall).any())
    assert 3 < hidden < 20

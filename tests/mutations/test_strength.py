"""More strength or severity changes more, where a family promises it; and the sheets that show it."""

from __future__ import annotations

import numpy as np
import pytest

from adverse import mutations, plugins
from adverse.errors import MutationError
from adverse.mutations import settings
from adverse.mutations.batteries import BATTERIES, CORRUPTIONS, HOLDOUT, TRANSFORMATIONS
from pictures import photo

IMAGE = photo(120, 160)
NOT_MONOTONE = {
    "elastic_transform": "the field is drawn anew for every severity",
    "saturate": "severity 1 and 2 weaken the colours, 3 to 5 strengthen them",
    "spatter": "severity 1 to 3 is water, 4 and 5 are mud",
    "frost": "the textures differ more than the severities",
    "glass_blur": "severity 2 has one round of copying where 1 has two",
    "zoom_blur": "it averages whatever lies along the ray",
    "snow": "severity 3 has fewer flakes than 2, only brighter",
    "fog": "each cloud is another one",
}


def change(text: str, key: str) -> float:
    made = mutations.apply(IMAGE, text, key=key).astype(np.float64)
    return float(np.square(made - IMAGE).mean())


@pytest.mark.parametrize("name", sorted(set(CORRUPTIONS + HOLDOUT) - set(NOT_MONOTONE)))
def test_more_severity_changes_more(name: str) -> None:
    changes = [
        np.mean([change(f"c.{name}(severity={severity})", str(k)) for k in range(4)])
        for severity in range(1, 6)
    ]
    assert np.all(np.diff(changes) > 0), changes


@pytest.mark.parametrize("name", sorted(NOT_MONOTONE))
def test_severity_five_changes_more_than_one_even_so(name: str) -> None:
    least, most = (
        np.mean([change(f"c.{name}(severity={severity})", str(k)) for k in range(8)]) for severity in (1, 5)
    )
    assert most > least


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("key", ["one", "two"])
def test_more_strength_changes_more_and_never_jumps(name: str, key: str) -> None:
    image = photo(60, 80)
    plugin = plugins.load().get("mutation", f"t.{name}")
    changes = []
    for strength in np.linspace(0, 1, 11):
        rng = {"rng": np.random.default_rng(len(key))} if "rng" in plugin.needs else {}
        made = plugin.function(image, strength=float(strength), **rng).astype(np.float64)
        changes.append(np.abs(made - image).mean())
    assert changes[0] == 0
    assert np.all(np.diff(changes) > -0.3), changes
    assert changes[-1] > 15
    assert np.diff(changes).max() < 0.6 * changes[-1]


def test_a_sheet_shows_every_setting_in_its_place() -> None:
    registry = plugins.load()
    battery = settings.expand("first-look", registry, where="test")
    page = mutations.contact_sheet(IMAGE, battery, registry, tile_width=160)
    rows = len({setting.family for setting in battery})
    assert page.shape == (rows * (120 + 16 + 4), 150 + 3 * (160 + 4), 3)
    assert np.array_equal(page[16:136, 150:310], IMAGE)
    strong = mutations.apply(IMAGE, "gaussian_blur(sigma_px=3)")
    assert np.array_equal(page[16:136, 150 + 2 * 164 : 310 + 2 * 164], strong)
    assert page[:16, 150:310].min() < 100  # a caption is written


def test_a_sheet_of_gray_and_of_depth() -> None:
    registry = plugins.load()
    depth = np.full((120, 160), 30, np.float32)
    battery = settings.expand("first-look-depth", registry, where="test")
    page = mutations.contact_sheet(IMAGE[..., 0], battery, registry, depth_m=depth, tile_width=80)
    assert page.shape == (60 + 20, 150 + 4 * 84, 3)
    with pytest.raises(MutationError, match="needs at least one setting"):
        mutations.contact_sheet(IMAGE, [], registry)


def test_batteries_name_no_mutation_that_cannot_be_applied() -> None:
    registry = plugins.load()
    depth = np.full((24, 32), 8, np.float32)
    small = photo(24, 32)
    for name in BATTERIES:
        for setting in settings.expand(name, registry, where=name):
            made = settings.apply_setting(small, setting, registry, seed=0, key="k", depth_m=depth)
            assert made.shape == small.shape

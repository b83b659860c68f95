"""Drops and mud on the glass: how much they cover, where they stay, and what a drop shows (Snell's law)."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from adverse import mutations
from adverse.mutations import front_glass
from adverse.mutations.front_glass import FrontGlass
from adverse.mutations.lens_drops import bends, look_through
from adverse.mutations.linear_light import light_of
from adverse.types import Image
from pictures import photo

WHITE: Image = np.full((240, 320, 3), 255, np.uint8)
BOTH = pytest.mark.parametrize("mutation", [mutations.lens_drops, mutations.lens_mud])


def put(mutation: Any, image: Image, coverage: float, seed: int = 0, **options: float) -> Image:
    made: Image = mutation(image, coverage=coverage, log_rng=np.random.default_rng(seed), **options)
    return made


def touched(made: Image) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = (made != 255).any(axis=2)
    return mask


@BOTH
@pytest.mark.parametrize("coverage", [0.01, 0.1, 0.3, 0.6, 0.9])
def test_the_share_covered_is_the_coverage(mutation: Any, coverage: float) -> None:
    for seed in range(3):
        sharp = put(mutation, WHITE, coverage, seed, aperture_mm=0)
        assert abs(touched(sharp).mean() - coverage) < 1e-4


@BOTH
def test_out_of_focus_the_same_light_is_lost(mutation: Any) -> None:
    for seed in range(3):
        sharp, soft = (
            light_of(put(mutation, WHITE, 0.3, seed, aperture_mm=aperture)).mean() for aperture in (0, 1.2)
        )
        assert abs((1 - soft) / (1 - sharp) - 1) < 0.15  # other grids, and blots across the border


@BOTH
def test_more_coverage_adds_blots_and_moves_none(mutation: Any) -> None:
    before = np.zeros((240, 320), np.bool_)
    for coverage in (0.05, 0.1, 0.2, 0.4, 0.7):
        mask = touched(put(mutation, WHITE, coverage, aperture_mm=0))
        assert mask[before].all()
        before = mask


@BOTH
def test_the_same_at_any_resolution(mutation: Any) -> None:
    large = WHITE.repeat(2, axis=0).repeat(2, axis=1)
    made = cv2.resize(put(mutation, large, 0.3), (320, 240), interpolation=cv2.INTER_AREA)
    assert np.abs(made.astype(float) - put(mutation, WHITE, 0.3)).mean() < 1


@BOTH
def test_between_the_blots_the_scene_is_as_sharp_as_before(mutation: Any) -> None:
    image = photo(240, 320)
    made = put(mutation, image, 0.2)
    same = (made == image).all(axis=2)
    assert 0.45 < same.mean() < 0.8


@BOTH
@pytest.mark.parametrize("option", ["coverage", "diameter_mm"])
def test_blots_scale_with_their_options(mutation: Any, option: str) -> None:
    image = photo(240, 320)
    if option == "coverage":
        changes = [
            np.mean([np.abs(put(mutation, image, c, seed).astype(float) - image).mean() for seed in range(4)])
            for c in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
        ]
        assert np.all(np.diff(changes) > 0), changes
    else:
        counts = []
        for diameter in (1, 2, 4, 8):
            mask = touched(put(mutation, WHITE, 0.2, diameter_mm=diameter, aperture_mm=0)).astype(np.uint8)
            counts.append(cv2.connectedComponents(mask)[0])
        assert np.all(np.diff(counts) < 0), counts


@BOTH
def test_a_wider_aperture_is_softer(mutation: Any) -> None:
    steep = []
    for aperture in (0.0, 0.5, 1.2, 3.0):
        light = light_of(put(mutation, WHITE, 0.2, aperture_mm=aperture))[..., 1]
        steep.append(np.abs(np.diff(light, axis=1)).max())
    assert np.all(np.diff(steep) < 0), steep


@BOTH
def test_options_of_the_glass_are_read(mutation: Any) -> None:
    near = put(mutation, WHITE, 0.2, glass_mm=20, aperture_mm=0)
    far = put(mutation, WHITE, 0.2, glass_mm=40, diameter_mm=6 if mutation is mutations.lens_drops else 8)
    assert not np.array_equal(near, far)
    same = put(
        mutation,
        WHITE,
        0.2,
        glass_mm=40,
        aperture_mm=0,
        diameter_mm=6 if mutation is mutations.lens_drops else 8,
    )
    assert np.array_equal(near, same)  # twice as near is twice as large


def snell(place: float) -> tuple[float, float]:
    """Return tangent of the bend and share passed, by the vector form of the law and Fresnel's equations."""
    lean = np.arcsin(place * np.sin(np.radians(50)))
    normal, ray = np.array([np.sin(lean), np.cos(lean)]), np.array([0.0, 1.0])
    cosine, ratio = normal @ ray, 1.333
    under = 1 - ratio**2 * (1 - cosine**2)
    if under <= 0:
        return np.nan, 0.0
    out = ratio * ray + (np.sqrt(under) - ratio * cosine) * normal
    leaving = out @ normal
    s = ((ratio * cosine - leaving) / (ratio * cosine + leaving)) ** 2
    p = ((ratio * leaving - cosine) / (ratio * leaving + cosine)) ** 2
    return abs(out[0] / out[1]), 1 - (s + p) / 2


def test_a_drop_bends_by_snells_law() -> None:
    tables = bends()
    places = (np.arange(256) + 0.5) / 256
    for place, tangent, passed in zip(places, *tables, strict=True):
        wanted, share = snell(place)
        assert abs(passed - share) < 1e-5
        if share > 0:
            assert abs(tangent - wanted) < 1e-4 * max(1, wanted)


def test_a_drop_shows_the_scene_turned_by_180_degrees() -> None:
    """On a view that holds its own coordinates, what a drop shows is where each ray ends."""
    rows, columns, radius, focal = 60, 80, 20.0, 200.0
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    away = np.stack([(x + 0.5 - 40) / radius, (y + 0.5 - 30) / radius], axis=2).astype(np.float32)
    far = np.hypot(away[..., 0], away[..., 1])
    owner = np.where(far < 0.95, 0, -1).astype(np.int32)
    layer = np.zeros((rows, columns, 4), np.float32)
    view = np.stack([x, y, np.ones_like(x)], axis=2)
    look_through(owner, away, focal, *bends(), view, layer)
    covered = owner == 0
    assert np.array_equal(layer[..., 0] == 1, covered)
    assert not layer[~covered].any()
    for v, u in zip(*np.nonzero(covered), strict=True):
        tangent, passed = snell((np.floor(far[v, u] * 256) + 0.5) / 256)
        ends = [
            np.clip(at - focal * tangent * part / max(far[v, u], 1e-6), 0, most)
            for at, part, most in ((u, away[v, u, 0], columns - 1), (v, away[v, u, 1], rows - 1))
        ]
        np.testing.assert_allclose(layer[v, u, 1:3], np.array(ends) * passed, atol=2e-3)
        np.testing.assert_allclose(layer[v, u, 3], passed, atol=1e-5)
    assert layer[30, 36, 1] > layer[30, 43, 1]  # the left of the drop shows the right of the scene


def test_a_drop_before_a_horizon_has_the_sky_at_its_bottom() -> None:
    image = np.full((240, 320, 3), 60, np.uint8)
    image[:120] = 230
    for seed in range(40):
        made = put(mutations.lens_drops, image, 0.05, seed, diameter_mm=8)
        mask = (made != image).any(axis=2)
        if mask[90:150].any() and not mask[:60].any() and not mask[-60:].any():
            break
    above = made[:120][mask[:120]].mean()
    below = made[120:][mask[120:]].mean()
    assert above < 215
    assert below > 75


def test_mud_lets_little_light_through_and_less_at_dusk() -> None:
    day, dusk = WHITE // 2, WHITE // 8
    for image in (day, dusk):
        made = light_of(put(mutations.lens_mud, image, 0.5, aperture_mm=0))
        mud = made[(put(mutations.lens_mud, image, 0.5, aperture_mm=0) != image).any(axis=2)]
        share = mud.mean(axis=0) / light_of(image[0, 0])
        assert share[0] > share[1] > share[2]  # brown
        assert 0.02 < share[2] < share[0] < 0.4


def test_the_grid_follows_the_blur() -> None:
    glass = FrontGlass()
    small, large = (
        front_glass.grid_of(np.zeros(shape, np.uint8), glass) for shape in ((240, 320), (960, 1280))
    )
    assert small.cell_px < large.cell_px
    assert large.rows * large.cell_px >= 960
    assert front_glass.grid_of(np.zeros((240, 320), np.uint8), FrontGlass(aperture_mm=0)).cell_px == 1
    assert abs(glass.focal_px(640) - 554.26) < 0.01  # 320 / tan 30 deg

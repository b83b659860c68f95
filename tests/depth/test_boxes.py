"""The depth of a box: against a slow reference, and on people drawn before a background."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse.depth.boxes import box_depths_m
from adverse.types import Localizer

SEEDS = st.integers(0, 2**32 - 1)
LOCALIZERS: tuple[Localizer, Localizer] = ("foreground", "box_median")


def drawn(rng: np.random.Generator, shape: tuple[int, int] = (24, 32)) -> NDArray[np.float32]:
    """Draw a depth map of a few surfaces, with sky above and pixels that are not valid."""
    depth = rng.uniform(8, 30, shape).astype(np.float32)
    for _ in range(3):
        top, left = rng.integers(0, shape[0]), rng.integers(0, shape[1])
        part = depth[top : top + rng.integers(3, 20), left : left + rng.integers(3, 20)]
        part[:] = rng.uniform(1, 20) * np.exp(rng.normal(0, 0.02, part.shape))
    depth[rng.random(shape) < 0.2] = np.nan
    depth[rng.random(shape) < 0.1] = 0
    depth[rng.random(shape) < 0.05] = -1
    depth[: rng.integers(0, 6)] = np.inf
    return depth


def drawn_box(rng: np.random.Generator) -> NDArray[np.float32]:
    x, y = rng.uniform(-5, 30), rng.uniform(-5, 22)
    return np.array([[x, y, x + rng.uniform(0, 25), y + rng.uniform(0, 25)]], np.float32)


@given(SEEDS)
@settings(deadline=None)
def test_box_depth_is_the_median_of_row_medians(seed: int) -> None:
    rng = np.random.default_rng(seed)
    depth = rng.uniform(1, 30, (24, 32)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.2] = np.nan
    depth[rng.random(depth.shape) < 0.1] = 0
    depth[:4] = np.inf
    x, y = rng.uniform(-5, 30), rng.uniform(-5, 22)
    box = np.array([[x, y, x + rng.uniform(0, 20), y + rng.uniform(0, 20)]], np.float32)
    left, top = max(int(np.floor(box[0, 0])), 0), max(int(np.floor(box[0, 1])), 0)
    right, bottom = int(np.ceil(box[0, 2])), int(np.ceil(box[0, 3]))
    rows = [row[row > 0] for row in depth[top:bottom, left:right]] if right > 0 and bottom > 0 else []
    medians = [np.median(row) for row in rows if len(row)]
    wanted = np.float32(np.median(medians)) if medians else np.float32(np.nan)
    np.testing.assert_allclose(box_depths_m(depth, box, "box_median")[0], wanted, rtol=1e-6)


def slow_foreground(depth: NDArray[np.float32], box: NDArray[np.float32]) -> float:
    """Weigh pixels by their distance from the middle; return the nearest strong mode, sky as one of them."""
    x0, y0, x1, y1 = map(float, box)
    pixels, sky = [], 0.0
    for row in range(max(math.floor(y0), 0), min(math.ceil(y1), depth.shape[0])):
        for column in range(max(math.floor(x0), 0), min(math.ceil(x1), depth.shape[1])):
            z = float(depth[row, column])
            if not z > 0:
                continue
            u = (column + 0.5 - (x0 + x1) / 2) / max(x1 - x0, 1) / 0.3
            v = (row + 0.5 - (y0 + y1) / 2) / max(y1 - y0, 1) / 0.4
            weight = math.exp(-(u * u + v * v) / 2)
            if math.isinf(z):
                sky += weight
            else:
                pixels.append((weight, math.log(z), math.floor((math.log(z) - math.log(0.1)) * 50)))
    if not pixels:
        return math.inf if sky else math.nan
    bins = range(min(at for *_, at in pixels) - 13, max(at for *_, at in pixels) + 14)

    def kernel(gap: int) -> float:
        return math.exp(-((gap / 4) ** 2) / 2) if abs(gap) <= 12 else 0.0

    density = {here: sum(weight * kernel(at - here) for weight, _, at in pixels) for here in bins}
    strong = 0.7 * max(sky, *density.values())
    for here in bins[1:-1]:
        if density[here] >= strong and density[here - 1] < density[here] >= density[here + 1]:
            return math.exp(sum(w * kernel(at - here) * log for w, log, at in pixels) / density[here])
    return math.inf


@given(SEEDS)
@settings(deadline=None)
def test_the_foreground_is_the_nearest_strong_mode(seed: int) -> None:
    rng = np.random.default_rng(seed)
    depth, box = drawn(rng), drawn_box(rng)
    np.testing.assert_allclose(box_depths_m(depth, box)[0], slow_foreground(depth, box[0]), rtol=1e-5)


@given(SEEDS, st.floats(0.25, 4))
@settings(deadline=None)
def test_depth_scales_with_the_scene(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    person, wall = rng.uniform(1, 8), rng.uniform(12, 40)
    depth = np.full((40, 40), wall, np.float32)
    depth[5:38, 14:27] = person
    boxes = np.array([[12, 4, 30, 39], [0, 0, 40, 40], [0, 0, 8, 40]], float)
    for localizer in LOCALIZERS:
        once = box_depths_m(depth, boxes, localizer)
        np.testing.assert_allclose(box_depths_m(depth * scale, boxes, localizer), once * scale, rtol=1e-5)


def test_a_person_is_found_before_any_background_and_around_what_hides_them() -> None:
    """A body that fills two fifths of its box, as people do with their limbs apart, 5 m away."""
    for background in (7.0, 10.0, 30.0, math.inf):
        depth = np.full((60, 40), background, np.float32)
        depth[4:14, 17:23] = depth[14:36, 12:28] = depth[36:58, 13:18] = depth[36:58, 22:27] = 5.0
        box = np.array([[9, 3, 31, 59]], float)
        assert box_depths_m(depth, box)[0] == pytest.approx(5.0, rel=0.01)
        depth[:, 11:15] = 2.0  # a trunk before an arm
        assert box_depths_m(depth, box)[0] == pytest.approx(5.0, rel=0.01)
        depth[::2, ::2] = np.nan
        depth[1::2, ::3] = 0.0
        assert box_depths_m(depth, box)[0] == pytest.approx(5.0, rel=0.01)


def test_a_box_of_sky_is_far_away_and_one_of_nothing_has_no_depth() -> None:
    depth = np.full((20, 20), np.inf, np.float32)
    depth[18:] = 3.0
    depth[:, 15:] = np.nan
    boxes = np.array(
        [[0, 0, 14, 20], [16, 0, 20, 20], [0, 0, 14, 10], [-9, -9, -2, -2], [3, 19, 3, 19]], float
    )
    for localizer in LOCALIZERS:
        np.testing.assert_array_equal(
            box_depths_m(depth, boxes, localizer),
            np.array([np.inf, np.nan, np.inf, np.nan, np.nan], np.float32),
        )


@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_a_box_within_one_pixel_has_its_depth(localizer: Localizer) -> None:
    depth = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    boxes = np.array([[1.4, 1.1, 1.4001, 1.9], [1.9, 1.9, 1.95, 1.95]])
    np.testing.assert_allclose(box_depths_m(depth, boxes, localizer), [6, 6], rtol=1e-6)


def test_large_boxes_are_read_in_part_and_come_to_the_same() -> None:
    small = np.full((60, 50), 20.0, np.float32)
    small[10:55, 12:36] = 6.0
    box = np.array([[8, 6, 41, 58]], float)
    for times in (2, 5, 9):
        large = np.repeat(np.repeat(small, times, 0), times, 1)
        assert box_depths_m(large, times * box)[0] == pytest.approx(box_depths_m(small, box)[0], rel=1e-3)


def test_depths_out_of_range_come_back_as_they_are() -> None:
    for z in (0.02, 5000.0):
        depth = np.full((9, 9), z, np.float32)
        assert box_depths_m(depth, np.array([[0.0, 0, 9, 9]]))[0] == pytest.approx(z, rel=1e-5)

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.semantic.vanishing import VanishingPoint, vanishing_point
from adverse.types import Image
from drawn_scenes import street


def rays(point: tuple[float, float], size: tuple[int, int] = (640, 320)) -> Image:
    """Draw lines from the border towards a point that stop half way."""
    image = np.full((size[1], size[0], 3), 128, np.uint8)
    width, height = size
    starts = [(0, 0), (0, height - 1), (width // 3, height - 1), (2 * width // 3, height - 1)]
    for start in [*starts, (width - 1, height - 1), (width - 1, 0), (width // 4, 0)]:
        end = np.array(start) + 0.5 * (np.array(point) - start)
        cv2.line(image, start, (round(end[0]), round(end[1])), (10, 10, 10), 3)
    return image


@settings(max_examples=25)
@given(st.integers(140, 500), st.integers(90, 230))
def test_the_point_that_lines_run_to_is_found(x: int, y: int) -> None:
    found = vanishing_point(rays((x, y)))
    assert found is not None
    assert found.x == pytest.approx(x / 640, abs=0.02)
    assert found.y == pytest.approx(y / 320, abs=0.03)


def test_it_is_the_same_at_any_time_and_at_twice_the_size() -> None:
    small, large = rays((300, 140)), rays((600, 280), (1280, 640))
    first, again, other = vanishing_point(small), vanishing_point(small.copy()), vanishing_point(large)
    assert first is not None
    assert first == again
    assert other is not None
    assert (other.x, other.y) == pytest.approx((first.x, first.y), abs=0.02)


@pytest.mark.parametrize("kind", ["flat", "noise", "grid", "one line", "tiny"])
def test_what_has_no_vanishing_point_has_none(kind: str) -> None:
    image = np.full((240, 320, 3), 128, np.uint8)
    if kind == "noise":
        image = np.random.default_rng(1).integers(0, 256, image.shape, dtype=np.uint8)
        image = cv2.GaussianBlur(image, (0, 0), 3).astype(np.uint8)
    elif kind == "grid":
        image[::20], image[:, ::20] = 0, 0
    elif kind == "one line":
        cv2.line(image, (10, 10), (300, 200), (0, 0, 0), 3)
    elif kind == "tiny":
        image = image[:1, :1]
    assert vanishing_point(image) is None


def test_cells_are_counted_row_by_row_and_the_border_belongs_to_the_last() -> None:
    assert [VanishingPoint(x, y, 1).cell(2, 2) for y in (0.49, 0.5) for x in (0.49, 0.5)] == [0, 1, 2, 3]
    assert VanishingPoint(1.0, 1.0, 1).cell(3, 2) == 5


def test_a_mirrored_street_has_a_mirrored_point() -> None:
    scene = street()
    here, there = scene.vanishing_point, vanishing_point(np.ascontiguousarray(scene.image[:, ::-1]))
    assert here is not None
    assert there is not None
    assert there.x == pytest.approx(1 - here.x, abs=0.02)

"""Area against a slow reference: the share of a fine grid of points that some curve point dominates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse.curves import area

UNIT = st.floats(0, 1)
CURVES = st.lists(st.tuples(UNIT, UNIT), max_size=12)


def by_rectangles(points: list[tuple[float, float]]) -> float:
    """Union of rectangles by inclusion of elementary cells between all coordinates."""
    xs = sorted({0.0, *(e for _, e in points)})
    ys = sorted({0.0, *(s for s, _ in points)})
    total = 0.0
    for x0, x1 in itertools.pairwise(xs):
        for y0, y1 in itertools.pairwise(ys):
            if any(e >= x1 and s >= y1 for s, e in points):
                total += (x1 - x0) * (y1 - y0)
    return total


def split(points: list[tuple[float, float]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    array = np.array(points, np.float64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


@given(CURVES)
def test_equals_the_union_of_rectangles(points: list[tuple[float, float]]) -> None:
    assert area(*split(points)) == pytest.approx(by_rectangles(points), abs=1e-12)


@given(CURVES, st.permutations(range(12)))
def test_order_does_not_matter(points: list[tuple[float, float]], order: list[int]) -> None:
    shuffled = [points[i] for i in order if i < len(points)]
    assert area(*split(points)) == pytest.approx(area(*split(shuffled)), abs=1e-15)


@given(CURVES, UNIT, UNIT)
def test_another_point_never_lowers_it(points: list[tuple[float, float]], s: float, e: float) -> None:
    assert area(*split([*points, (s, e)])) >= area(*split(points)) - 1e-15


def test_known_curves() -> None:
    assert area([1, 0], [0, 1]) == 0  # fires always, or never: worth nothing
    assert area([1], [1]) == 1
    assert area([], []) == 0


@pytest.mark.parametrize("bad", [([1], [1, 2]), ([float("nan")], [1]), ([-0.1], [1])])
def test_what_is_no_curve_is_refused(bad: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="safety and efficiency"):
        area(*bad)

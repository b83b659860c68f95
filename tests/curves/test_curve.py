"""Area against a slow reference: the share of a fine grid of points that some curve point dominates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse.curves import area, hypervolume

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


def by_cells(points: list[tuple[float, ...]], objectives: int) -> float:
    """Union of boxes, cell by cell of the grid of all coordinates: slow, and for any number of objectives."""
    axes = [sorted({0.0, *(point[axis] for point in points)}) for axis in range(objectives)]
    total = 0.0
    for cell in itertools.product(*(itertools.pairwise(axis) for axis in axes)):
        if any(all(p >= high for p, (_, high) in zip(point, cell, strict=True)) for point in points):
            total += float(np.prod([high - low for low, high in cell]))
    return total


def by_inclusion_and_exclusion(points: list[tuple[float, ...]]) -> float:
    """Union of boxes as the alternating sum of their intersections, which are boxes too."""
    total = 0.0
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, size):
            total += (-1) ** (size + 1) * float(np.prod(np.min(chosen, axis=0)))
    return total


@given(st.integers(2, 4).flatmap(lambda m: st.lists(st.tuples(*[UNIT] * m), min_size=1, max_size=6)))
def test_hypervolume_equals_both_slow_ways(points: list[tuple[float, ...]]) -> None:
    got = hypervolume(points)
    assert got == pytest.approx(by_cells(points, len(points[0])), abs=1e-12)
    assert got == pytest.approx(by_inclusion_and_exclusion(points), abs=1e-12)


@given(CURVES)
def test_hypervolume_of_two_objectives_is_the_area(points: list[tuple[float, float]]) -> None:
    assert hypervolume(np.array(points).reshape(-1, 2)) == pytest.approx(area(*split(points)), abs=1e-15)


@given(st.lists(st.tuples(UNIT, UNIT, UNIT), max_size=8), st.permutations(range(3)))
def test_hypervolume_does_not_depend_on_the_order_of_objectives(
    points: list[tuple[float, float, float]], order: list[int]
) -> None:
    array = np.array(points).reshape(-1, 3)
    assert hypervolume(array[:, order]) == pytest.approx(hypervolume(array), abs=1e-12)


@pytest.mark.parametrize("bad", [[[1.0]], [1.0, 2.0], [[1.0, float("nan")]], [[-1.0, 1.0]], [[1.0, np.inf]]])
def test_what_has_no_hypervolume_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="points must be"):
        hypervolume(bad)  # type: ignore[arg-type]

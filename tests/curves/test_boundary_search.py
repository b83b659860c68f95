"""The boundary of two conditions is that of looking at every point, with far fewer points."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adverse.curves.boundary_search import BoundarySearch

FALLING = st.lists(st.integers(-1, 9), min_size=2, max_size=8).map(lambda steps: sorted(steps, reverse=True))


@given(FALLING)
def test_a_boundary_that_falls_is_found_with_few_points(wanted: list[int]) -> None:
    search = BoundarySearch((9, len(wanted) - 1))
    while (point := search.next_point()) is not None:
        assert point not in search.known
        search.known[point] = point[0] <= wanted[point[1]]
    swept = [
        max((first for first in range(10) if first <= wanted[second]), default=None)
        for second in range(len(wanted))
    ]
    assert search.limits() == swept
    assert search.reversals() == 0
    falls = len(set(wanted))
    assert len(search.known) <= len(wanted) + 4 * falls


def test_what_holds_beyond_a_failure_is_counted() -> None:
    known = {(0, 0): True, (3, 0): False, (1, 0): True, (2, 0): False, (2, 1): True}
    assert BoundarySearch((3, 1), known).reversals() == 1

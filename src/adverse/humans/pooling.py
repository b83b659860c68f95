"""Sparse bins pooled with their neighbours, so that every answer is tested, and holes found.

A bin with FEW answers or fewer shows nothing by itself. Dropped, such bins would hide what people do there:
however many have ten wrong answers each, no drop would be found. So neighbours are pooled, from small changes
to large ones, until they have more. A bin that has more by itself stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.humans.answers import BINS, EDGES, AnswerCounts, Array

FEW = 10
"""A bin with this many answers, or fewer, is pooled with its neighbours; a base with fewer is none."""
WIDEST_HOLE = 0.05
"""Visual change over which a curve may be drawn without a populated bin."""
_HOLE_BINS = round(WIDEST_HOLE * BINS)


class Pool(NamedTuple):
    """Bins from `first` up to `end`, that one not included, whose answers are counted at the bin `at`."""

    first: int
    end: int
    at: int

    @property
    def wide(self) -> bool:
        """Whether so many bins were pooled that nobody can say where among them people fail."""
        return self.end - self.first - 1 > _HOLE_BINS


class Pooled(NamedTuple):
    """Counts with sparse bins pooled, and from which bin up to which (BINS,) each of them then goes."""

    counted: AnswerCounts
    first: NDArray[np.int64]
    end: NDArray[np.int64]
    holes: tuple[tuple[float, float], ...]

    @property
    def low(self) -> Array:
        """Where each bin begins."""
        return EDGES[self.first]

    @property
    def high(self) -> Array:
        """Where each bin ends."""
        return EDGES[self.end]

    def in_all(self, fitted: Array) -> Array:
        """Return what was fitted (BINS,) in all bins that were pooled, not only where they are counted."""
        everywhere = fitted.copy()
        for at in np.flatnonzero(np.isfinite(fitted)):
            everywhere[self.first[at] : self.end[at]] = fitted[at]
        return everywhere

    def numbered(self, populated: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the number of each bin (BINS,) as the populated ones come, pooled bins with one number."""
        begins = np.zeros(BINS, np.int64)
        begins[self.first[populated]] = 1
        return np.cumsum(begins)

    def whole(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval widened so that no end lies within pooled bins; an infinite one stays."""
        begins, ends = self.low, self.high
        wider_low = begins[(begins < low) & (low < ends)].min(initial=low)
        wider_high = ends[(begins < high) & (high < ends)].max(initial=high)
        return float(wider_low), float(wider_high)


def pooled(counted: AnswerCounts) -> Pooled:
    """Pool the sparse bins of what was counted; those in a hole stay as they are, and sparse."""
    pools = pools_of(counted.answers.sum(axis=0))
    first = np.arange(BINS)
    end = first + 1
    move = np.eye(BINS)
    for pool in pools:
        move[pool.first : pool.end] = 0
        move[pool.first : pool.end, pool.at] = 1
        first[pool.at], end[pool.at] = pool.first, pool.end
    together = replace(counted, answers=counted.answers @ move, successes=counted.successes @ move)
    return Pooled(together, first, end, holes(pools))


def pools_of(answers: Array) -> list[Pool]:
    """Return the populated bins of (BINS,) answers, sparse ones pooled with their neighbours.

    Pooled bins begin where the bin before them ends. Nothing is pooled over a hole.

    >>> pools_of(np.repeat([20.0, 4.0, 0.0, 20.0], [2, 6, 90, 2]))[1:4]
    [Pool(first=1, end=2, at=1), Pool(first=2, end=5, at=3), Pool(first=5, end=8, at=6)]
    """
    pools: list[Pool] = []
    sparse: list[int] = []
    for place in np.flatnonzero(answers).tolist():
        if sparse and place - sparse[-1] - 1 > _HOLE_BINS:
            _add_last(pools, sparse, answers)
            sparse = []
        full = answers[place] > FEW
        if full and sparse and place - _start(pools, sparse) > _HOLE_BINS:
            _add_last(pools, sparse, answers)
            sparse = []
        sparse.append(place)
        if answers[sparse].sum() > FEW:
            first = place if len(sparse) == 1 else _start(pools, sparse)
            pools.append(Pool(first, place + 1, _middle(sparse, answers)))
            sparse = []
    if sparse:
        _add_last(pools, sparse, answers)
    return pools


def holes(pools: list[Pool]) -> tuple[tuple[float, float], ...]:
    """Return where more than WIDEST_HOLE lies between two populated bins, or was pooled to make one.

    >>> holes(pools_of(np.repeat([20.0, 0.0, 20.0], [10, 80, 10])))
    ((0.1, 0.9),)
    """
    found = []
    before = None
    for pool in pools:
        if before is not None and pool.first - before.end > _HOLE_BINS:
            found.append((float(EDGES[before.end]), float(EDGES[pool.first])))
        if pool.wide:
            found.append((float(EDGES[pool.first]), float(EDGES[pool.end])))
        before = pool
    return tuple(found)


def _start(pools: list[Pool], sparse: list[int]) -> int:
    """Return where sparse bins begin: with what lies empty before them, unless that is a hole."""
    before = pools[-1].end if pools else sparse[0]
    return before if sparse[0] - before <= _HOLE_BINS else sparse[0]


def _add_last(pools: list[Pool], sparse: list[int], answers: Array) -> None:
    """Add sparse bins that no neighbour follows to the one before them, unless that makes it too wide."""
    if pools and sparse[-1] - pools[-1].end < _HOLE_BINS:
        last = pools.pop()
        places = [place for place in range(last.first, last.end) if answers[place] > 0]
        longer = Pool(last.first, sparse[-1] + 1, _middle(places + sparse, answers))
        pools.append(last if longer.wide and not last.wide else longer)


def _middle(places: list[int], answers: Array) -> int:
    """Return the bin in which the answers of several bins lie on average."""
    if len(places) == 1:
        return places[0]
    return round(float(np.average(places, weights=answers[places])))

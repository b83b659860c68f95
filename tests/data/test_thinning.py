"""A part of a data set."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adverse.data.subsets import thinned
from adverse.types import Dataset, Frame, Log, Split, Truth

SPLITS: tuple[Split, ...] = ("test", "test", "validation", "test")


def frame(log: int, index: int) -> Frame:
    source: Any = None
    return Frame(f"{log}/{index}", str(log), index, source, Truth.none(), index)


def a_set(sizes: list[int]) -> Dataset:
    logs = [
        Log(str(n), tuple(frame(n, i) for i in range(size)), SPLITS[n % len(SPLITS)])
        for n, size in enumerate(sizes)
    ]
    return Dataset("a set", ("person",), tuple(logs))


def names(dataset: Dataset, split: Split) -> list[str]:
    return [one.id for log in dataset.logs if log.split == split for one in log.frames]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 30))
def test_so_many_frames_are_left_evenly_spaced_in_their_order(sizes: list[int], wanted: int) -> None:
    whole = a_set(sizes)
    part = thinned(whole, wanted)
    before, after = names(whole, "test"), names(part, "test")
    assert len(after) == min(wanted, len(before))
    places = [before.index(name) for name in after]
    assert places == sorted(places)
    gaps = {b - a for a, b in itertools.pairwise(places)}
    assert not gaps or max(gaps) - min(gaps) <= 1
    assert names(part, "validation") == names(whole, "validation")
    assert len(after) == len(before) or all(log.frames for log in part.logs)

"""The order of detections within frames against a plain sort."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.levels.match import MANY, strongest_first


def key(value: float) -> tuple[bool, float]:
    return (True, 0.0) if np.isnan(value) else (False, value)


@given(st.integers(0, 10**6), st.sampled_from([7, 2 * MANY]))
@settings(deadline=None)
def test_equals_a_plain_sort(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, most, 5)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    scores = (rng.integers(0, 3, counts.sum()) / 2).astype(np.float32)
    ties = rng.integers(0, 3, (counts.sum(), 2)).astype(np.float64)
    ties[rng.random(ties.shape) < 0.2] = np.nan
    wanted = [
        d
        for start, end in itertools.pairwise(offsets)
        for d in sorted(range(start, end), key=lambda d: (-scores[d], *map(key, ties[d].tolist())))
    ]
    found = strongest_first(offsets, scores, ties)
    for one, other in zip(found, wanted, strict=True):  # equal in everything: either may stand first
        assert scores[one] == scores[other]
        np.testing.assert_array_equal(ties[one], ties[other])
    assert sorted(found) == sorted(wanted)

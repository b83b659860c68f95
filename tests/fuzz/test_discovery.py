"""The closed form of the discovery curve against all permutations, and against some."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.fuzz.discovery import expected, permuted, steps


@settings(max_examples=30)
@given(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=6))
def test_the_closed_form_is_the_mean_of_all_orders(found: list[str | None]) -> None:
    at = np.arange(len(found) + 1)
    total = np.zeros(len(at))
    orders = list(itertools.permutations(found))
    for order in orders:
        total += [len({thing for thing in order[:n] if thing is not None}) for n in at]
    np.testing.assert_allclose(expected(found, at), total / len(orders), atol=1e-9)


def test_some_orders_lie_near_all_of_them() -> None:
    rng = np.random.default_rng(3)
    found = [None if rng.random() < 0.7 else int(rng.integers(40)) for _ in range(600)]
    at = steps(len(found))
    exact, some = expected(found, at), permuted(found, at, seed=1, permutations=200)
    assert np.abs(exact - some).max() < 0.5
    assert exact[-1] == some[-1] == len({thing for thing in found if thing is not None})


def test_large_campaigns_do_not_overflow() -> None:
    found = [number % 5000 if number % 7 == 0 else None for number in range(20_000)]
    curve = expected(found, steps(20_000))
    assert np.isfinite(curve).all()
    assert (np.diff(curve) >= 0).all()
    assert curve[-1] == pytest.approx(len({thing for thing in found if thing is not None}))

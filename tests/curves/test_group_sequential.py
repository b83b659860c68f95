"""Boundaries by spending functions: published ones, and the error that simulated looks make."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from adverse.curves.group_sequential import Spending, boundaries, look_confidence, spent

FIVE = (0.2, 0.4, 0.6, 0.8, 1.0)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        # Reboussin, DeMets, Kim and Lan, Controlled Clinical Trials 21 (2000): two-sided 0.05, five looks
        ("obrien-fleming", (4.8769, 3.3569, 2.6803, 2.2898, 2.0310)),
        ("pocock", (2.4380, 2.4268, 2.4101, 2.3966, 2.3859)),
    ],
)
def test_five_looks_have_the_published_boundaries(kind: Spending, wanted: tuple[float, ...]) -> None:
    assert boundaries(FIVE, kind=kind) == pytest.approx(wanted, abs=2e-4)


@pytest.mark.parametrize("kind", ["obrien-fleming", "pocock"])
def test_simulated_looks_are_wrong_as_often_as_allowed(kind: Spending) -> None:
    shares = (0.25, 0.4, 0.75, 1.0)
    steps = np.diff((0.0, *shares))
    rng = np.random.default_rng(3)
    process = np.cumsum(rng.normal(size=(400_000, 4)) * np.sqrt(steps), axis=1) / np.sqrt(shares)
    crossed = process > np.array(boundaries(shares, kind=kind))
    ever = np.maximum.accumulate(crossed, axis=1).mean(axis=0)
    assert ever == pytest.approx([spent(kind, share, 0.025) for share in shares], abs=8e-4)


def test_one_look_is_an_interval_as_ever() -> None:
    (z,) = boundaries((1.0,), kind="pocock")
    assert z == pytest.approx(stats.norm.ppf(0.975), abs=1e-6)
    assert look_confidence(z) == pytest.approx(0.95, abs=1e-7)


@pytest.mark.parametrize("shares", [(), (0.5, 0.5), (0.5, 1.2), (0.0, 1.0)])
def test_shares_that_do_not_rise_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="shares of information"):
        boundaries(shares, kind="pocock")


def test_later_looks_are_easier_to_cross_by_obrien_and_fleming() -> None:
    found = boundaries(FIVE, kind="obrien-fleming")
    assert all(later < earlier for earlier, later in itertools.pairwise(found))

"""Where the drop begins: losses against least squares one by one, and the bound on them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adverse.humans.answers import BINS, CENTRES, EDGES
from adverse.humans.drop_point import POWERS, _losses, joint_bound


def slow_loss(weight: np.ndarray, rate: np.ndarray, base: tuple[float, float], edge: int) -> float:
    """Return what the best curve with a drop at an edge fits worse than none does: minus its gain."""
    weights, rates = np.append(weight, base[0]), np.append(rate, base[1])
    level = np.average(rates, weights=weights)
    flat = float((weights * (rates - level) ** 2).sum())
    losses = [0.0]
    for power in POWERS:
        beyond = np.clip(CENTRES - EDGES[edge], 0, None) / (CENTRES[-1] - EDGES[edge])
        onset = np.append(np.where(beyond > 0, beyond**power, 0.0), 0.0)
        design = np.sqrt(weights)[:, None] * np.stack([np.ones(BINS + 1), onset], axis=1)
        (_, slope), *_ = np.linalg.lstsq(design, np.sqrt(weights) * rates, rcond=None)
        if slope < 0:
            fitted = design @ np.linalg.lstsq(design, np.sqrt(weights) * rates, rcond=None)[0]
            losses.append(float(((np.sqrt(weights) * rates - fitted) ** 2).sum()) - flat)
    return min(losses)


def test_losses_are_those_of_least_squares_at_every_edge() -> None:
    rng = np.random.default_rng(1)
    weight = rng.uniform(1, 40, (2, BINS)) * (np.arange(BINS) < 60)  # fitted up to the end of the onset
    rate = np.clip(0.95 - np.clip(CENTRES - 0.35, 0, None) + rng.normal(0, 0.1, (2, BINS)), 0, 1)
    base = np.array([300.0, 200.0]), np.array([0.94, 0.97])
    found = _losses(weight, weight * rate, base[0], base[0] * base[1])
    for row in (0, 1):
        slow = [slow_loss(weight[row], rate[row], (base[0][row], base[1][row]), edge) for edge in range(60)]
        assert found[row, :60] == pytest.approx(slow, abs=1e-7)
        assert not found[row, 60:].any()  # where nothing is fitted, nothing is gained
    assert found.min() < -5


@pytest.mark.parametrize("people", [10.0, 30.0, 412.5])
def test_the_bound_is_that_of_two_means_of_so_many_people(people: float) -> None:
    """Hotelling: (n - 2) / (2 (n - 1)) of T squared is F with 2 and n - 2 degrees of freedom."""
    bound = joint_bound(people, 0.9)
    assert stats.f.cdf(bound * (people - 2) / (2 * (people - 1)), 2, people - 2) == pytest.approx(0.9)
    assert bound > stats.chi2.ppf(0.9, 2) > stats.chi2.ppf(0.9, 1)


def test_the_bound_holds_for_two_measurements_of_few_people() -> None:
    """The T squared of 12 people who differ in two things, 4000 times."""
    rng = np.random.default_rng(0)
    answers = rng.normal(size=(4000, 12, 2))
    mean = answers.mean(axis=1)
    apart = answers - mean[:, None]
    spread = np.einsum("spi,spj->sij", apart, apart) / 11
    loss = 12 * np.einsum("si,sij,sj->s", mean, np.linalg.inv(spread), mean)
    assert np.mean(loss <= joint_bound(12, 0.9)) == pytest.approx(0.9, abs=0.015)

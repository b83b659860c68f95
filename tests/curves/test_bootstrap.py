"""Resamples and the bootstrap against a plain loop, and against textbook standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from adverse.curves import Area, Difference, Ratios, Share, area, bootstrap, draw, estimate
from curves.simulated import NAMES, outcomes, repeated

STRATA = ["positive"] * 6 + ["negative"] * 5


def test_resamples_keep_the_strata() -> None:
    drawn = draw(NAMES[:11], STRATA, seed=1, count=500)
    kinds = np.array(STRATA)[drawn.order]
    assert (drawn.counts[:, kinds == "positive"].sum(axis=1) == 6).all()
    assert (drawn.counts[:, kinds == "negative"].sum(axis=1) == 5).all()
    np.testing.assert_allclose(drawn.counts.mean(axis=0), 1, atol=0.2)


def test_resamples_belong_to_names_and_seed() -> None:
    drawn = draw(NAMES[:11], STRATA, seed=1, count=20)
    order = np.random.default_rng(0).permutation(11)
    other = draw([NAMES[i] for i in order], [STRATA[i] for i in order], seed=1, count=20)
    np.testing.assert_array_equal(drawn.counts, other.counts)
    np.testing.assert_array_equal(order[other.order], drawn.order)
    assert (draw(NAMES[:11], STRATA, seed=2, count=20).counts != drawn.counts).any()
    with pytest.raises(ValueError, match="name of its own"):
        draw(["a", "a"], [0, 0], seed=1)


def test_equals_a_loop_over_repeated_logs() -> None:
    rng = np.random.default_rng(5)
    base, mutated = outcomes(rng), outcomes(rng, skill=-0.3)
    drawn = draw(NAMES[:11], STRATA, seed=3, count=50)
    whole = Area((base,))
    found = estimate({"area": whole, "share": Share(Area((base, mutated)), whole)}, drawn)
    for row in range(50):
        counts = np.empty(11, np.int64)
        counts[drawn.order] = drawn.counts[row]
        curves = [repeated(curve, counts).observed for curve in (base, mutated)]
        wanted = area(*curves[0])
        worst = area(*np.minimum(curves[0], curves[1]))
        assert found["area"].values[row] == pytest.approx(wanted)
        assert found["share"].values[row] == pytest.approx(worst / wanted)


def test_the_standard_error_of_a_mean_is_the_textbook_one() -> None:
    """One level, perfect efficiency, equal logs: the area is a mean of recalls."""
    recalls = np.array([0.1, 0.4, 0.5, 0.9, 0.7, 0.3])
    hits = np.concatenate([recalls, np.zeros(4)])[:, None]
    positive = np.arange(10) < 6
    curve = Ratios(hits, positive.astype(float), np.zeros((10, 1)), (~positive).astype(float))
    found = estimate({"area": Area((curve,))}, draw(NAMES[:10], positive.tolist(), seed=1, count=2000))[
        "area"
    ]
    assert found.value == pytest.approx(recalls.mean())
    assert found.error == pytest.approx(recalls.std(ddof=1) / np.sqrt(6))
    assert found.values.std() == pytest.approx(recalls.std() / np.sqrt(6), rel=0.05)


def test_the_standard_error_of_a_stratified_mean_is_the_textbook_one() -> None:
    """All logs have alarms, positive ones more; how strata differ in the mean is no spread between logs."""
    times = np.array([1.0, 1.2, 1.1, 1.3, 2.0, 2.5, 3.0])
    curve = Ratios(np.ones((7, 1)), np.ones(7), 1 / times, np.ones(7), "ratio")
    found = estimate({"area": Area((curve,))}, draw(NAMES[:7], [0] * 4 + [1] * 3, seed=1, count=10))["area"]
    spread = [np.var(1 / part, ddof=1) * len(part) for part in (times[:4], times[4:])]
    assert found.error == pytest.approx(np.sqrt(sum(spread)) / 7)


def test_the_standard_error_is_near_that_of_leaving_one_log_out() -> None:
    rng = np.random.default_rng(8)
    curve = outcomes(rng, 40, 40)
    left_out = []
    for log in range(80):
        counts = np.ones(80, np.int64)
        counts[log] = 0
        left_out.append(area(*repeated(curve, counts).observed))
    jackknife = 0.0
    for stratum in (np.array(left_out[:40]), np.array(left_out[40:])):
        jackknife += 39 / 40 * float(np.sum((stratum - stratum.mean()) ** 2))
    drawn = draw(NAMES[:80], [0] * 40 + [1] * 40, seed=1, count=10)
    assert estimate({"area": Area((curve,))}, drawn)["area"].error == pytest.approx(
        np.sqrt(jackknife), rel=0.05
    )


def test_a_difference_is_paired() -> None:
    """Of two SUTs that always do the same the difference has no spread, however much each has."""
    rng = np.random.default_rng(5)
    one = outcomes(rng)
    same = Ratios(one.num_s, one.den_s, one.num_e, one.den_e)
    found = estimate({"d": Difference(Area((one,)), Area((same,)))}, draw(NAMES[:11], STRATA, seed=3))["d"]
    assert found.value == found.error == 0
    assert (found.values == 0).all()


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    quantities = {"area": Area((outcomes(rng), outcomes(rng)))}
    drawn = draw(NAMES[:11], STRATA, seed=3, count=100)
    whole = estimate(quantities, drawn)["area"]
    monkeypatch.setattr(bootstrap, "MEMORY_BYTES", 1)
    pieces = estimate(quantities, drawn)["area"]
    np.testing.assert_allclose(pieces.values, whole.values, rtol=1e-12)
    np.testing.assert_allclose(pieces.errors, whole.errors, rtol=1e-9)

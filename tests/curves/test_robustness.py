"""The Robustness ROC against algorithm 1 of the paper, written out literally and slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.curves import area, expected_curve, mean_over_mutations, robustness, robustness_roc

Curve = tuple[list[float], list[float], list[float]]
LEVELS = st.sampled_from([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0])
VALUE = st.floats(0, 1)


@st.composite
def curves(draw: st.DrawFn, levels: list[float] | None = None) -> Curve:
    chosen = levels or sorted(draw(st.sets(LEVELS, min_size=1)))
    values = st.lists(VALUE, min_size=len(chosen), max_size=len(chosen))
    return chosen, draw(values), draw(values)


def literally(given_curves: list[Curve]) -> Curve:
    """Algorithm 1: for every level in the union, the minimum over prev and next of every curve."""
    union = sorted({level for curve in given_curves for level in curve[0]})
    worst: tuple[list[float], list[float]] = ([], [])
    for level in union:
        for objective in (0, 1):
            seen = []
            for known, safety, efficiency in given_curves:
                values = (safety, efficiency)[objective]
                below = [v for k, v in zip(known, values, strict=True) if k <= level]
                above = [v for k, v in zip(known, values, strict=True) if k >= level]
                seen += [below[-1] if below else 0.0, above[0] if above else 0.0]
            worst[objective].append(min(seen))
    return union, *worst


@given(st.lists(curves(), min_size=1, max_size=4))
def test_equals_the_algorithm_written_out(given_curves: list[Curve]) -> None:
    for got, wanted in zip(robustness_roc(given_curves), literally(given_curves), strict=True):
        np.testing.assert_array_equal(got, wanted)


@given(curves())
def test_a_curve_against_itself_is_itself(curve: Curve) -> None:
    for got, wanted in zip(robustness_roc([curve, curve]), curve, strict=True):
        np.testing.assert_array_equal(got, wanted)


SHARED = [0.001, 0.01, 0.1, 1.0]


@given(curves(SHARED), curves(SHARED), curves(SHARED))
def test_one_by_one_equals_all_at_once(a: Curve, b: Curve, c: Curve) -> None:
    stepwise = robustness_roc([robustness_roc([a, b]), c])
    for got, wanted in zip(stepwise, robustness_roc([a, b, c]), strict=True):
        np.testing.assert_array_equal(got, wanted)


@given(curves(), curves())
def test_never_better_than_the_baseline(baseline: Curve, mutated: Curve) -> None:
    worst = robustness_roc([baseline, mutated])
    assert area(worst.safety, worst.efficiency) <= area(baseline[1], baseline[2]) + 1e-12
    share = robustness(baseline, mutated)
    assert np.isnan(share) or 0 <= share <= 1 + 1e-9


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        robustness_roc([])
    with pytest.raises(ValueError, match="stand once"):
        robustness_roc([([1, 1], [0, 1], [1, 0])])
    with pytest.raises(ValueError, match="same length"):
        robustness_roc([([1, 2], [0], [1])])


def test_never_better_on_thousands_of_random_curves() -> None:
    rng = np.random.default_rng(3)
    levels = np.geomspace(1e-4, 1, 20)
    for _ in range(5000):
        kept = [np.sort(rng.choice(20, rng.integers(1, 21), replace=False)) for _ in range(3)]
        many = [(levels[k], rng.random(len(k)), rng.random(len(k))) for k in kept]
        worst = robustness_roc(many)
        assert area(*worst[1:]) <= min(area(s, e) for _, s, e in many) + 1e-12


def test_the_mean_counts_each_family_once() -> None:
    assert mean_over_mutations({"a": [1.0, 1.0, 1.0], "b": [0.0]}) == 0.5
    assert np.isnan(mean_over_mutations({"a": [1.0, float("nan")]}))
    assert np.isnan(mean_over_mutations({"a": [1.0], "b": []}))
    assert np.isnan(mean_over_mutations({}))


def counted(logs: list[tuple[int, int, int, int]], levels: int = 1) -> Curve:
    """Recall and false positives per image of pooled (hits, truths, alarms, images)."""
    hits, truths, alarms, images = np.sum(logs, axis=0)
    return [0.1] * levels, [hits / truths], [alarms / images]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=4))
def test_the_expected_curve_is_that_of_all_conditions_pooled(conditions: list[tuple[int, int]]) -> None:
    """With as many people and images in each condition, averaging rates is the same as pooling counts."""
    logs = [(hits, 9, alarms, 100) for hits, alarms in conditions]
    shares = np.full(len(logs), 1 / len(logs))
    got = expected_curve([counted([log]) for log in logs], shares, fpr_max=0.1)
    _, safety, rate = counted(logs)
    assert got.safety == pytest.approx(safety)
    assert got.efficiency == pytest.approx([max(0.0, 1 - rate[0] / 0.1)], abs=1e-12)


def test_the_expected_curve_of_a_sure_condition_is_its_own() -> None:
    calm, storm = ([0.1, 1], [0.5, 0.9], [0.9, 0.4]), ([0.1, 1], [0.1, 0.2], [0.8, 0.1])
    got = expected_curve([calm, storm], [1, 0])
    for part, wanted in zip(got, calm, strict=True):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize(
    ("second", "chances", "words"),
    [
        (([0.1], [1], [1]), [0.5, 0.6], "sum to 1"),
        (([0.1], [1], [1]), [1.5, -0.5], ">= 0"),
        (([0.1], [1], [1]), [1.0], "as many"),
        (([0.2], [1], [1]), [0.5, 0.5], "share"),
    ],
)
def test_what_has_no_expected_curve_is_refused(second: Curve, chances: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        expected_curve([([0.1], [1], [1]), second], chances)

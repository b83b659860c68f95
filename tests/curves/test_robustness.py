"""The Robustness ROC against algorithm 1 of the paper, written out literally and slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.curves import area, robustness, robustness_roc

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

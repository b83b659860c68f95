"""Values under weights against curves made from repeated logs; influences against finite differences."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse.curves import (
    Area,
    Difference,
    Expected,
    Mean,
    Ratios,
    Recall,
    Share,
    area,
    expected_curve,
    robustness_roc,
)
from adverse.curves.quantities import Quantity
from adverse.curves.weighting import Weighting
from curves.simulated import outcomes, repeated

Kind = Literal["rate", "ratio"]
KINDS = st.sampled_from(["rate", "ratio"])


def plain_area(*curves: Ratios) -> float:
    """Area of the Robustness ROC, by the functions that know nothing of weights."""
    levels = np.arange(curves[0].num_s.shape[1])
    made = []
    for curve in curves:
        safety = curve.num_s.sum(axis=0) / curve.den_s.sum()
        ratio = np.broadcast_to(curve.num_e.sum(axis=0) / curve.den_e.sum(axis=0), safety.shape)
        clipped = 1 - np.minimum(ratio / curve.fpr_max, 1)
        made.append((levels, safety, clipped if curve.efficiency == "rate" else ratio))
    return area(*robustness_roc(made)[1:])


@given(st.integers(0, 10**6), KINDS)
def test_a_weight_is_as_good_as_repeating_the_log(seed: int, kind: Kind) -> None:
    rng = np.random.default_rng(seed)
    base, mutated = outcomes(rng, efficiency=kind), outcomes(rng, skill=-0.2, efficiency=kind)
    counts = rng.integers(1, 4, 11)
    weighting = Weighting(counts[None].astype(float), np.arange(11))
    again = [repeated(curve, counts) for curve in (base, mutated)]
    whole, worst = Area((base,)), Area((base, mutated))
    assert weighting.evaluate(whole).value[0] == pytest.approx(plain_area(again[0]))
    assert weighting.evaluate(worst).value[0] == pytest.approx(plain_area(*again))
    share = plain_area(*again) / plain_area(again[0])
    assert weighting.evaluate(Share(worst, whole)).value[0] == pytest.approx(share)
    difference = Difference(Area((base,)), Area((mutated,)))
    wanted = plain_area(again[0]) - plain_area(again[1])
    assert weighting.evaluate(difference).value[0] == pytest.approx(wanted)
    mean = Mean((whole, worst), (0.25, 0.75))
    wanted = 0.25 * plain_area(again[0]) + 0.75 * plain_area(*again)
    assert weighting.evaluate(mean).value[0] == pytest.approx(wanted)
    expected = Expected((base, mutated), (0.3, 0.7))
    assert weighting.evaluate(expected).value[0] == pytest.approx(plain_expectation(again, [0.3, 0.7]))
    recall = again[1].num_s.sum(axis=0) / again[1].den_s.sum()
    assert weighting.evaluate(Recall(mutated)).value[0] == pytest.approx(recall.mean())


def plain_expectation(curves: list[Ratios], probabilities: list[float]) -> float:
    """Area of the expected curve, by the function that knows nothing of weights."""
    levels = np.arange(curves[0].num_s.shape[1])
    triples = []
    for curve in curves:
        ratio = curve.num_e.sum(axis=0) / curve.den_e.sum(axis=0)
        triples.append((levels, curve.num_s.sum(axis=0) / curve.den_s.sum(), ratio))
    fpr_max = curves[0].fpr_max if curves[0].efficiency == "rate" else None
    return area(*expected_curve(triples, probabilities, fpr_max=fpr_max)[1:])


def turned(curve: Ratios, order: NDArray[np.int64]) -> Ratios:
    """Return the curve with its points in another order, as one that turns back has them."""
    den_e = curve.den_e if curve.den_e.ndim == 1 else curve.den_e[:, order]
    num_e = curve.num_e if curve.num_e.ndim == 1 else curve.num_e[:, order]
    return Ratios(curve.num_s[:, order], curve.den_s, num_e, den_e, curve.efficiency, curve.fpr_max)


@given(st.integers(0, 10**6), KINDS, st.permutations(range(8)))
def test_influence_is_the_derivative_by_the_weight(seed: int, kind: Kind, order: list[int]) -> None:
    """Kinks - where two curves or two points meet - have no derivative, so most logs must agree, not all."""
    rng = np.random.default_rng(seed)
    made = (outcomes(rng, skill=skill, efficiency=kind) for skill in (0, -0.2, -0.1))
    base, mutated, other = (turned(curve, np.array(order)) for curve in made)
    whole = Area((base,))
    quantities: list[Quantity] = [
        whole,
        Area((base, mutated, other)),
        Share(Area((base, mutated)), whole),
        Difference(whole, Area((other,))),
        Mean((whole, Area((other,))), (0.5, 0.5)),
        Expected((base, mutated, other), (0.5, 0.3, 0.2)),
        Recall(mutated),
    ]
    weights = rng.uniform(0.5, 2, 11)  # uneven, so that nothing is equal by chance
    step = 1e-6
    moved = weights + step * np.concatenate([np.eye(11), -np.eye(11)])
    here, nearby = Weighting(weights[None], np.arange(11)), Weighting(moved, np.arange(11))
    for quantity in quantities:
        values = nearby.evaluate(quantity).value
        slope = (values[:11] - values[11:]) / (2 * step)
        agree = np.isclose(here.evaluate(quantity).influence[0], slope, rtol=1e-3, atol=1e-7)
        assert agree.mean() > 0.9


def test_a_curve_that_turns_back_is_measured_all_the_same() -> None:
    """At loop level more sensitivity may cost less time; the steps are sorted then."""
    hits = np.array([[1, 1, 0], [0, 1, 1]])
    curve = Ratios(hits, np.ones(2), np.ones(2), np.array([[2.0, 1, 4], [2, 1, 4]]), "ratio")
    found = Weighting(np.ones((1, 2)), np.arange(2)).evaluate(Area((curve,)))
    assert found.value[0] == area([0.5, 1, 0.5], [0.5, 1, 0.25]) == 1


def test_order_of_logs_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    curve = outcomes(rng)
    order = rng.permutation(11)
    shuffled = Ratios(curve.num_s[order], curve.den_s[order], curve.num_e[order], curve.den_e[order])
    weights = rng.uniform(0.5, 2, (1, 11))
    one = Weighting(weights, np.arange(11)).evaluate(Area((curve,)))
    other = Weighting(weights, np.argsort(order)).evaluate(Area((shuffled,)))
    np.testing.assert_array_equal(one.influence, other.influence)


def test_nothing_to_divide_by_is_undefined() -> None:
    rng = np.random.default_rng(1)
    curve = outcomes(rng, positive=0, negative=5)
    weighting = Weighting(np.ones((1, 5)), np.arange(5))
    assert np.isnan(weighting.evaluate(Area((curve,))).value).all()
    blind = Ratios(np.zeros((5, 8)), np.ones(5), curve.num_e, curve.den_e)
    nothing = Area((blind,))
    assert np.isnan(weighting.evaluate(Share(nothing, nothing)).value).all()


@pytest.mark.parametrize(
    "shapes", [((3, 4), (2,), (3, 4), (3,)), ((3,), (3,), (3,), (3,)), ((3, 4), (3,), (3, 5), (3,))]
)
def test_shapes_that_do_not_fit_are_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Ratios(np.ones(shapes[0]), np.ones(shapes[1]), np.ones(shapes[2]), np.ones(shapes[3]))

"""The splines of many curves at once are scipy's, and so smooth as leaving every point out would say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.interpolate import BSpline, make_smoothing_spline

from adverse.humans.smoothing import DEGREES, Array, smooth


def curves(seed: int, sizes: list[int]) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Curves of several sizes, each left in its row; what stands behind its end is rubbish."""
    rng = np.random.default_rng(seed)
    most = max(sizes)
    x = np.sort(rng.uniform(0, 1, (len(sizes), most)), axis=1)
    y = np.sin(5 * x) + rng.normal(0, 0.2, x.shape)
    return x, y, rng.uniform(0.5, 2, x.shape), np.array(sizes)


def straight_on(spline: BSpline, known: Array, x: float) -> float:
    """Evaluate a natural spline, which goes straight on beyond its ends; scipy's would bend there."""
    inside = min(max(x, known[0]), known[-1])
    return float(spline(inside) + spline.derivative()(inside) * (x - inside))


def left_out_error(x: Array, y: Array, w: Array, lam: float) -> float:
    """Leave every point out once, fit scipy's spline to the others, and see how far it misses."""
    total = 0.0
    for i in range(len(x)):
        others = np.arange(len(x)) != i
        spline = make_smoothing_spline(x[others], y[others], w[others], lam=lam)
        total += float(w[i] * (y[i] - straight_on(spline, x[others], x[i])) ** 2)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_spline_is_scipys(seed: int) -> None:
    x, y, w, sizes = curves(seed, [30, 12, 5])
    for lam in (1e-6, 1e-3, 1.0):
        found = smooth(x, y, w, sizes, np.full(3, lam))
        for row, size in enumerate(sizes):
            spline = make_smoothing_spline(x[row, :size], y[row, :size], w[row, :size], lam=lam)
            np.testing.assert_allclose(found.fitted[row, :size], spline(x[row, :size]), atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_the_degree_is_the_one_that_leaving_out_chooses(seed: int) -> None:
    x, y, w, sizes = curves(seed, [25, 14])
    found = smooth(x, y, w, sizes)
    for row, size in enumerate(sizes):
        errors = [left_out_error(x[row, :size], y[row, :size], w[row, :size], lam) for lam in DEGREES[::6]]
        chosen = left_out_error(x[row, :size], y[row, :size], w[row, :size], found.lam[row])
        assert chosen <= min(errors) * (1 + 1e-6)


def test_a_curve_does_not_depend_on_its_neighbours() -> None:
    x, y, w, sizes = curves(4, [40, 17, 9])
    together = smooth(x, y, w, sizes)
    for row, size in enumerate(sizes):
        part = slice(row, row + 1)
        alone = smooth(x[part, :size], y[part, :size], w[part, :size], sizes[part])
        np.testing.assert_allclose(together.fitted[row, :size], alone.fitted[0], rtol=1e-12)
        assert together.lam[row] == alone.lam[0]


def test_a_constant_is_itself_and_as_smooth_as_can_be() -> None:
    x = np.linspace(0, 1, 20)[None]
    found = smooth(x, np.full((1, 20), 0.5), np.ones((1, 20)), np.array([20]))
    np.testing.assert_allclose(found.fitted, 0.5)
    assert found.lam[0] == DEGREES[-1]


@given(st.integers(0, 1000), st.floats(-3, 3), st.floats(0.1, 10))
@settings(max_examples=20, deadline=None)
def test_shifting_and_stretching_the_values_shifts_and_stretches_the_curve(
    seed: int, shift: float, factor: float
) -> None:
    x, y, w, sizes = curves(seed, [20])
    lam = np.array([1e-3])
    plain, moved = smooth(x, y, w, sizes, lam), smooth(x, factor * y + shift, w, sizes, lam)
    np.testing.assert_allclose(moved.fitted, factor * plain.fitted + shift, atol=1e-9)

"""Cubic smoothing splines for many curves at once, each smoothed as leave-one-out cross-validation says.

A smoothing spline minimises sum w (y - f(x))^2 + lam * integral f''^2. In Reinsch's form its second
derivatives solve a system of five bands, and the bands of that system's inverse give every leave-one-out
error without leaving anything out. Both are recursions along x, done here for all curves and all degrees of
smoothing together: the bootstrap of a study is one call.

Curves may have different numbers of points: each is kept left in its row, `counts` says how many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_POINTS = 5
"""A spline through fewer says nothing; also scipy's limit."""
DEGREES: Array = 10.0 ** np.linspace(-8, 2, 61)
"""Degrees of smoothing to choose from, for x in 0..1: from joining the dots to a straight line."""
SAME, NOTHING = 1e-9, 1e-18
"""Scores this close, relative to each other or in themselves, are equal; the smoother curve wins."""


class Smooth(NamedTuple):
    """Fitted values (B, M), and the degree of smoothing of each curve (B,)."""

    fitted: Array
    lam: Array


def smooth(x: Array, y: Array, weights: Array, counts: NDArray[np.int64], lam: Array | None = None) -> Smooth:
    """Smooth B curves of up to M points (rows of x, y, weights); with `lam` (B,) to that degree.

    Without it each curve gets the degree of DEGREES with the least leave-one-out error.
    """
    lams = np.broadcast_to(DEGREES, (len(x), len(DEGREES))) if lam is None else lam[:, None]
    residual, leverage_left = _solve(x, y, weights, counts, lams)
    live = np.arange(x.shape[1])[:, None, None] < counts[:, None]
    left_out = np.where(live, residual / np.where(leverage_left > 0, leverage_left, 1.0), 0.0)
    scores = np.einsum("bm,mbl->bl", weights, left_out**2)
    good = scores <= scores.min(axis=1, keepdims=True) * (1 + SAME) + NOTHING
    best = scores.shape[1] - 1 - np.argmax(good[:, ::-1], axis=1)
    rows = np.arange(len(x))
    return Smooth(y - residual[:, rows, best].T, lams[rows, best])


def _solve(x: Array, y: Array, weights: Array, counts: NDArray[np.int64], lams: Array) -> tuple[Array, Array]:
    """Return residuals y - f and 1 - leverage, both (M, B, L), for L degrees of each of B curves."""
    size = x.shape[1]
    inner = size - 2
    gap = np.where(np.arange(size - 1) < counts[:, None] - 1, np.diff(x, axis=1), 1.0)
    live = np.arange(inner) < counts[:, None] - 2
    first, last = live / gap[:, :-1], live / gap[:, 1:]
    middle = -first - last
    spread = 1 / weights

    def band(values: Array) -> Array:
        return values.T[:, :, None]

    own = first**2 * spread[:, :-2] + middle**2 * spread[:, 1:-1] + last**2 * spread[:, 2:]
    next_one = (
        middle[:, :-1] * first[:, 1:] * spread[:, 1:-2] + last[:, :-1] * middle[:, 1:] * spread[:, 2:-1]
    )
    next_two = last[:, :-2] * first[:, 2:] * spread[:, 2:-2]
    bend = first * y[:, :-2] + middle * y[:, 1:-1] + last * y[:, 2:]
    diagonal = band(np.where(live, (gap[:, :-1] + gap[:, 1:]) / 3, 1.0)) + lams * band(own)
    beside = band(np.where(live[:, 1:], gap[:, 1:-1] / 6, 0.0)) + lams * band(next_one)
    beyond = lams * band(next_two)
    curvature, inverse = _five_bands(diagonal, beside, beyond, band(bend))
    shape = (size, *lams.shape)
    pull, held = np.zeros(shape), np.zeros(shape)
    parts = (band(first), band(middle), band(last))
    for offset, part in enumerate(parts):
        rows = slice(offset, offset + inner)
        pull[rows] += part * curvature
        held[rows] += part**2 * inverse[0]
    for step in (1, 2):
        for offset in range(3 - step):
            rows = slice(offset + step, offset + inner)
            ahead, behind = parts[offset][step:], parts[offset + step][: inner - step]
            held[rows] += 2 * ahead * behind * inverse[step][: inner - step]
    scale = lams * band(spread)
    return scale * pull, scale * held


def _five_bands(
    diagonal: Array, beside: Array, beyond: Array, right: Array
) -> tuple[Array, tuple[Array, Array, Array]]:
    """Solve symmetric systems of five bands; also return the same bands of their inverses.

    All arrays are (N, B, L), N along the system. The factors are unit lower triangular times diagonal; the
    inverse's bands follow backwards from them (Hutchinson and de Hoog, 1985).
    """
    size, shape = len(diagonal), diagonal.shape[1:]
    pivot = np.empty(diagonal.shape)
    first, second, solution = (np.zeros((size + 2, *shape)) for _ in range(3))
    for i in range(size):
        pivot[i] = diagonal[i]
        solution[i] = right[i]
        if i >= 1:
            pivot[i] -= pivot[i - 1] * first[i - 1] ** 2
            solution[i] -= first[i - 1] * solution[i - 1]
        if i >= 2:
            pivot[i] -= pivot[i - 2] * second[i - 2] ** 2
            solution[i] -= second[i - 2] * solution[i - 2]
        if i < size - 1:
            link = beside[i] - (pivot[i - 1] * first[i - 1] * second[i - 1] if i >= 1 else 0)
            first[i] = link / pivot[i]
        if i < size - 2:
            second[i] = beyond[i] / pivot[i]
    own, near, far = (np.zeros((size + 2, *shape)) for _ in range(3))
    for i in range(size - 1, -1, -1):
        solution[i] = solution[i] / pivot[i] - first[i] * solution[i + 1] - second[i] * solution[i + 2]
        near[i] = -first[i] * own[i + 1] - second[i] * near[i + 1]
        far[i] = -first[i] * near[i + 1] - second[i] * own[i + 2]
        own[i] = 1 / pivot[i] - first[i] * near[i] - second[i] * far[i]
    return solution[:size], (own[:size], near[:size], far[:size])

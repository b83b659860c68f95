"""The linear functions of the HOG detector: a linear SVM, and a ridge regression for the box.

The SVM shrinks not the weights but the spread of the scores that they give to windows anywhere, as a linear
discriminant does (Hariharan, Malik, Ramanan 2012). Neighbouring cells look alike, so thousands of
weights fitted freely to some hundred people learn little but those people.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from hog_windows import Floats, Halves

STEPS = 60
SHRINK = 0.3
NUGGET = 0.05
"""Added to the covariance of windows, as a share of its mean variance."""
RIDGE = 30.0


class Background(NamedTuple):
    """How windows without people spread: their mean, and a map to coordinates in which they spread evenly."""

    mean: Floats
    even: Floats


def background(windows: Halves) -> Background:
    """Return the mean and spread of windows (N, F)."""
    values = windows.astype(np.float32)
    mean = values.mean(axis=0)
    values -= mean
    cover = values.T @ values / len(values)
    cover[np.diag_indices_from(cover)] += NUGGET * np.trace(cover) / len(cover)
    root = np.linalg.cholesky(cover)
    even = solve_triangular(root, np.eye(len(root), dtype=np.float32), lower=True).T
    return Background(mean, np.ascontiguousarray(even, np.float32))


def svm(people: Halves, others: Halves, spread: Background) -> Floats:
    """Return the weights and, last, the bias of a linear SVM with squared hinge loss."""
    values = np.concatenate([people, others]).astype(np.float32)
    values -= spread.mean
    sides = np.concatenate([np.ones(len(people)), -np.ones(len(others))]).astype(np.float32)
    share = np.where(sides > 0, 0.5 / len(people), 0.5 / len(others)).astype(np.float32)

    def loss(told: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        plain = told.astype(np.float32)
        short = np.maximum(1 - sides * (values @ (spread.even @ plain[:-1]) + plain[-1]), 0)
        pull = -2 * sides * share * short
        held = np.append(told[:-1], 0)
        slope = np.append(spread.even.T @ (pull @ values), pull.sum()) + SHRINK * held
        return float((share * short**2).sum() + SHRINK / 2 * (held @ held)), slope

    start = np.zeros(values.shape[1] + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x.astype(
        np.float32
    )
    weights = spread.even @ found[:-1]
    return np.append(weights, found[-1] - spread.mean @ weights)


def box_regression(features: Halves, boxes: Floats) -> tuple[Floats, Floats]:
    """Return what gives a box from features: the constant (4,) and the weights (F, 4)."""
    values = features.astype(np.float32)
    mean, middle = boxes.mean(axis=0), values.mean(axis=0)
    values -= middle
    cover = values.T @ values + RIDGE * np.eye(values.shape[1], dtype=np.float32)
    weights = np.linalg.solve(cover, values.T @ (boxes - mean))
    return mean - middle @ weights, weights

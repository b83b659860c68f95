"""The area that a trade-off curve dominates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def area(safety: ArrayLike, efficiency: ArrayLike) -> float:
    """Return the area of the union of the rectangles [0, efficiency] x [0, safety] of all points.

    It never credits performance between points that was not realised (001, section 6). Points may come in
    any order; no points have area 0.

    >>> area([1, 0], [0, 1])
    0.0
    >>> area([0.5, 1.0], [1.0, 0.5])
    0.75
    """
    s = np.asarray(safety, np.float64).ravel()
    e = np.asarray(efficiency, np.float64).ravel()
    if s.shape != e.shape:
        raise ValueError(f"safety and efficiency differ in length: {len(s)} and {len(e)}")
    if np.isnan(s).any() or np.isnan(e).any() or (s < 0).any() or (e < 0).any():
        raise ValueError("a curve's safety and efficiency must be numbers >= 0")
    order = np.argsort(-e, kind="stable")
    s, e = s[order], e[order]
    reached = np.maximum.accumulate(s) if len(s) else s
    return float(np.sum(reached * -np.diff(e, append=0.0)))

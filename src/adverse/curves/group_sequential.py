"""Looking at data several times without being wrong more often: boundaries by spending functions.

Whoever looks five times at 95 % finds something by chance in one case of seven. Lan and DeMets (Biometrika
70, 1983) spend the error allowed over the looks: by look k, at a share t of all information, no more than
f(t) of it. The boundary of a look is the standard normal quantile that spends just the rest, given that no
boundary was crossed before. The process of estimates is that of a Brownian motion observed at the shares t,
integrated numerically look by look (Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132, 1969).

An interval made with the quantile of its look holds, together with those of all other looks, with the
confidence of the whole (a repeated confidence interval; Jennison and Turnbull, J. R. Stat. Soc. B 51, 1989).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Spending = Literal["obrien-fleming", "pocock"]
POINTS = 513
"""Of the grid over which a density is integrated; an odd number, for Simpson's rule."""
FURTHEST = 12.0
"""A boundary beyond which nothing is spent that a float can hold."""


def spent(kind: Spending, share: float, alpha: float) -> float:
    """Return how much of the error `alpha` of one side is spent by a share of all information.

    >>> [round(spent("pocock", share, 0.025), 4) for share in (0.2, 1.0)]
    [0.0074, 0.025]
    """
    if kind == "pocock":
        return alpha * math.log(1 + (math.e - 1) * share)
    return float(2 * scipy.special.ndtr(scipy.special.ndtri(alpha / 2) / math.sqrt(share)))


def boundaries(shares: Sequence[float], *, kind: Spending, confidence: float = 0.95) -> list[float]:
    """Return the standard normal quantile of each look, the same to both sides.

    `shares` are the shares of all information at the looks, rising to 1.

    >>> [round(z, 2) for z in boundaries((0.5, 1.0), kind="obrien-fleming")]
    [2.96, 1.97]
    """
    if not shares or any(b <= a for a, b in zip((0.0, *shares), shares, strict=False)) or shares[-1] > 1:
        raise ValueError(f"shares of information rise from 0 to 1 at most, not {tuple(shares)}")
    alpha = (1 - confidence) / 2
    found: list[float] = []
    before, grid, density = 0.0, np.zeros(1), np.ones(1)  # at the start the process is at 0
    for share in shares:
        step = math.sqrt(share - before)
        rest = spent(kind, share, alpha) - (spent(kind, before, alpha) if before else 0.0)
        crossed = partial(_crossed, share=share, step=step, grid=grid, density=density)
        z = _root(crossed, rest)
        found.append(z)
        end = z * math.sqrt(share)
        after = np.linspace(-end, end, POINTS)
        kernel = np.exp(-((after[:, None] - grid) ** 2) / (2 * step**2)) / (step * math.sqrt(2 * math.pi))
        density = _integral(kernel * density, grid)
        before, grid = share, after
    return found


def _crossed(z: float, *, share: float, step: float, grid: Array, density: Array) -> float:
    """Return the chance to cross the boundary `z` to one side at a look, and none before."""
    return float(_integral(density * scipy.special.ndtr(-(z * math.sqrt(share) - grid) / step), grid))


def look_confidence(z: float) -> float:
    """Return the confidence of an interval whose ends are `z` standard errors away.

    >>> round(look_confidence(1.959964), 4)
    0.95
    """
    return float(1 - 2 * scipy.special.ndtr(-z))


def _integral(values: Array, grid: Array) -> Array:
    """Integrate over the last axis; on a single point, where all probability is, it is the value there."""
    return np.asarray(values[..., 0] if len(grid) == 1 else scipy.integrate.simpson(values, x=grid))


def _root(beyond: Callable[[float], float], rest: float) -> float:
    """Return the quantile that is crossed with a given chance, which falls as it rises."""
    low, high = 0.0, FURTHEST
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > rest else (low, middle)
    return (low + high) / 2

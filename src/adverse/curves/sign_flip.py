"""The exact paired test: how often so much would come out were before and after of some logs exchanged.

Where nothing changed, before and after of a log are as likely the other way round, so that its part in a
difference is as likely the negative of what it is. The chance that such signs alone make a difference as
large as the one seen is counted over all of them. For outcomes that are yes or no in every log - it stops or
does not - that is the exact test of McNemar: only logs whose outcome changed count, each a toss of a coin.

It needs no spread between logs and no allowance for what no log shows, which cost an interval most where all
logs were perfect before: 40 of 40 to 28 of 40 has p = 0.0005 here.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adverse.curves.interval import Interval

Array = NDArray[np.float64]

MOST_LOGS = 200
"""With more logs that differ an interval loses nothing by its allowances."""
STEPS = 128
"""The largest part is so many steps of the grid that the sums are counted on."""
NO_PART = 1e-9
"""A part below this share of the largest is rounding."""
LEAST_P = 1e-12
"""No chance is told to be less: the sums are counted in floating point."""
OF_THE_TEST = 0.9
"""The share of any error allowed that is spent on this test; the interval has the rest."""
ALONE, CLEAR = 0.05, 0.01
"""Where an interval at 95 % holds 0, the test counts from CLEAR on; both together err as one at 5 % does."""
NOT_NEAR = 2.0
"""A sum of less than so many standard deviations of the coins' is not worked out: it is far from clear."""


def sign_flip_p(parts: Array) -> float | None:
    """Return the chance that signs drawn by coins make |sum(parts)| as large as it is; None: too many logs.

    Parts are counted in steps of a grid; what that rounds away is given to the doubt, so that the chance is
    never too small. It is exact where all parts are equal, or multiples of one.

    >>> round(sign_flip_p(np.array([-1.0] * 12 + [0.0] * 28)), 6) == round(2 * 0.5**12, 6)
    True
    """
    size = np.abs(parts[np.isfinite(parts)])
    if size.size < len(parts):
        return None
    largest = float(size.max(initial=0.0))
    there = parts[size > NO_PART * largest]
    if largest == 0.0:
        return 1.0
    if len(there) > MOST_LOGS:
        return None
    exact = np.abs(there) * (STEPS / largest)
    steps = np.rint(exact).astype(np.int64)
    rounded = float(np.abs(exact - steps).sum())
    reached = abs(float(np.sum(there))) * (STEPS / largest) - rounded
    sums, chances = _sums(steps)
    return float(np.clip(chances[np.abs(sums) >= reached - 1e-6].sum(), LEAST_P, 1.0))


def paired_p(alone: float | None, parts: Array) -> float | None:
    """Return the p-value of a comparison, from that of its interval and from what each log adds (L,).

    Whichever is less counts, at its share of the error, so that both together err no more often than one
    would. None where there is no interval.

    >>> round(paired_p(0.016, np.array([-1.0] * 12)), 6), paired_p(0.2, np.array([-1.0] * 6))
    (0.000543, 0.2)
    """
    if alone is None or not np.isfinite(parts).all():
        return alone
    if alone >= ALONE and abs(float(parts.sum())) < NOT_NEAR * float(np.linalg.norm(parts)):
        return alone
    exact = sign_flip_p(parts)
    if exact is None:
        return alone
    if alone < ALONE:
        return min(exact / OF_THE_TEST, alone / (1 - OF_THE_TEST), math.nextafter(ALONE, 0))
    return exact / OF_THE_TEST if exact / OF_THE_TEST < CLEAR else alone


def without_0(found: Interval, p: float | None) -> Interval:
    """Return the interval of a difference, cut at 0 where the test leaves out 0 and the interval does not."""
    if p is None or p >= CLEAR or found.value is None or found.low is None or found.high is None:
        return found
    return (
        replace(found, high=min(found.high, 0.0))
        if found.value < 0
        else replace(found, low=max(found.low, 0.0))
    )


def _sums(steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
    """Return all sums of +-steps that there may be, and the chance of each.

    The characteristic function of a sum of coins is the product of cosines; its Fourier transform is the
    distribution.
    """
    most = int(steps.sum())
    length = 1 << (2 * most + 1).bit_length()
    angles = 2 * np.pi * np.arange(length // 2 + 1) / length
    product = np.ones(len(angles))
    for step, count in zip(*np.unique(steps, return_counts=True), strict=True):
        product *= np.cos(step * angles) ** int(count)
    chances = np.maximum(np.fft.irfft(product, length), 0.0)
    sums = np.arange(-most, most + 1)
    return sums, chances[sums % length]

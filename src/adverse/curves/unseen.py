"""What tested conditions say about an untested one: a prediction interval, and how often it is right.

Conditions are taken for draws from all that there are. Of each is known what share of the clean area survives
it at its worst. On the scale of the arcsine of its root, where shares of 0 and 1 are no obstacle, the next
one lies within mean +- t s sqrt(1 + 1/n), the prediction interval for one more draw. Whether that holds is
not assumed but measured: every tested condition is left out in turn and predicted from the others.

Where other systems were run under the condition in question, their mean is taken off first: what is predicted
is then how far this system is from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

LEAST_CONDITIONS = 5
"""With fewer of them nothing is said: the spread of four is hardly known."""
CONFIDENCE = 0.8
SAYS_NOTHING = 0.75
"""An interval of this width or more, of all that a share can be, says nothing."""


class Predicted(NamedTuple):
    """The share of the clean area to be expected under a condition that was not tested, and its interval."""

    share: float
    low: float
    high: float

    @property
    def says_something(self) -> bool:
        """Whether the interval leaves out a good part of what there is."""
        return self.high - self.low < SAYS_NOTHING


def predict_next(
    shares: ArrayLike,
    *,
    others: ArrayLike | None = None,
    next_others: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Predicted | None:
    """Return the share under one more condition, given those under n; None where n is too small.

    `others` (n,) are shares of other systems under the same conditions, `next_others` theirs under the next.

    >>> found = predict_next([0.5, 0.6, 0.7, 0.8, 0.9])
    >>> found is not None and found.low < 0.7 < found.high
    True
    """
    scale = _scaled(shares)
    count = len(scale)
    if count < LEAST_CONDITIONS:
        return None
    base = 0.0 if others is None else float(_scaled(next_others))
    away = scale if others is None else scale - _scaled(others)
    reach = float(scipy.special.stdtrit(count - 1, (1 + confidence) / 2)) * float(np.std(away, ddof=1))
    reach *= float(np.sqrt(1 + 1 / count))
    middle = base + float(np.mean(away))
    share, low, high = _share(np.array([middle, middle - reach, middle + reach])).tolist()
    return Predicted(share, low, high)


def left_out(
    shares: NDArray[np.float64], others: NDArray[np.float64] | None = None
) -> list[Predicted | None]:
    """Return what is predicted of each condition (n,) from all others; None where they are too few."""
    found = []
    for number in range(len(shares)):
        rest = np.arange(len(shares)) != number
        if others is None:
            found.append(predict_next(shares[rest]))
        else:
            found.append(predict_next(shares[rest], others=others[rest], next_others=float(others[number])))
    return found


def _scaled(shares: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(np.arcsin(np.sqrt(np.clip(np.asarray(shares, np.float64), 0, 1))))


def _share(scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sin(np.clip(scaled, 0, np.pi / 2)) ** 2)

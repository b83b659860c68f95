"""Whether people succeed less often than on what they are compared with: an exact one-sided test.

The rate they are compared with was counted, too, so two counts are compared: Fisher's exact test. With few
answers on originals the rate measured there can be too high by chance, and a test that takes it for the truth
then finds a drop where there is none; how often, and why this test and no other, is in docs/human-study.md. A
rate that comes from outside is taken as exact: the binomial test, which Fisher's becomes as answers on
originals grow without end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, gammaln

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-13
"""A further part of a p-value that is smaller than this, relative to it, is left out."""


class BaseRate(NamedTuple):
    """The rates that B rows of counts are compared with (B,), and the answers they are from.

    Answers are infinitely many, in all rows, where the rate comes from outside.
    """

    rate: Array
    answers: Array


def p_of_fewer(hits: Array, answers: Array, base: BaseRate, *, enough: float = 1.0) -> Array:
    """Return the p-values of (B, M) counts: so few successes, or fewer, by chance at the rate of the base.

    Where p is above `enough` anything above it may be returned, which is quicker.

    >>> p_of_fewer(np.array([[24.0, 25.0]]), np.full((1, 2), 25.0), BaseRate(np.ones(1), np.array([15.0])))
    array([[0.625, 1.   ]])
    """
    p = np.ones(hits.shape)
    rate = np.broadcast_to(base.rate[:, None], hits.shape)
    fewer = hits < answers * rate
    if np.isinf(base.answers).any():
        asked = fewer | (enough >= 1)
        p[asked] = bdtr(hits[asked], answers[asked].astype(np.int64), rate[asked])
        return p
    base_answers = np.broadcast_to(base.answers[:, None], hits.shape)
    failed, base_failed = answers - hits, np.rint(base_answers * (1 - rate))
    p[fewer] = _at_least(
        failed[fewer], answers[fewer], base_failed[fewer], base_answers[fewer], enough=enough
    )
    if enough >= 1:  # from the other end, as the first of these terms can be too small for a number
        p[~fewer] -= _at_least(
            base_failed[~fewer] + 1, base_answers[~fewer], failed[~fewer] - 1, answers[~fewer]
        )
    return p


def _at_least(failed: Array, n: Array, base_failed: Array, base_n: Array, *, enough: float = 1.0) -> Array:
    """Return the chance of so many failures or more among n, if all failures had fallen anywhere alike.

    The sum of hypergeometric terms from the observed one on, each from the last by the ratio of the two.
    """
    total = failed + base_failed
    everyone = n + base_n
    term = np.exp(_log_choose(n, failed) + _log_choose(base_n, base_failed) - _log_choose(everyone, total))
    p = term.copy()
    place = np.flatnonzero((term > 0) & (p <= enough))
    term, more = term[place], failed[place]
    while len(place):
        here = n[place], total[place], base_n[place]
        term = term * (here[0] - more) * (here[1] - more) / ((more + 1) * (here[2] - here[1] + more + 1))
        more = more + 1
        p[place] += term
        going = (term > NEGLIGIBLE * p[place]) & (p[place] <= enough)
        place, term, more = place[going], term[going], more[going]
    return np.minimum(p, 1.0)


def _log_choose(n: Array, k: Array) -> Array:
    chosen: Array = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return chosen

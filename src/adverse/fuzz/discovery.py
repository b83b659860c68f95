"""How fast a campaign finds things: how many distinct ones are known after so many tests.

The mean of what is known after n tests, over all orders of the tests, has a closed form (rarefaction,
Hurlbert 1971): a thing that k of the N tests show is still unknown after n with probability
C(N-k, n) / C(N, n). Averages over some permutations, as published curves are drawn, check it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from adverse.seeds import generator

PERMUTATIONS = 10
"""As many orders as published curves average."""
POINTS = 60


def steps(tests: int, points: int = POINTS) -> NDArray[np.int64]:
    """Return numbers of tests to look at, from 0 to all of them, evenly spaced.

    >>> steps(10, 5).tolist()
    [0, 2, 5, 8, 10]
    """
    return np.unique(np.round(np.linspace(0, tests, min(points, tests + 1))).astype(np.int64))


def expected(shown: Sequence[Hashable | None], at: ArrayLike) -> NDArray[np.float64]:
    """Return how many distinct things are known after `at` tests, on average over all orders.

    `shown` says for each test what it shows, None for nothing.

    >>> expected(["a", "a", None, "b"], [0, 1, 2, 4]).round(4).tolist()
    [0.0, 0.75, 1.3333, 2.0]
    """
    taken = np.asarray(at, np.float64)
    tests = float(len(shown))
    total = np.zeros(len(taken))
    shows = Counter(Counter(thing for thing in shown if thing is not None).values())
    for times, things in sorted(shows.items()):
        total += things * (1.0 - _all_missed(tests, float(times), taken))
    return total


def permuted(
    shown: Sequence[Hashable | None], at: ArrayLike, *, seed: int, permutations: int = PERMUTATIONS
) -> NDArray[np.float64]:
    """Return the same, averaged over some random orders."""
    taken = np.asarray(at, np.int64)
    rng = generator(seed, "discovery")
    total = np.zeros(len(taken))
    for _ in range(permutations):
        order = rng.permutation(len(shown))
        seen: set[Hashable] = set()
        counts = [0]
        for number in order.tolist():
            if (thing := shown[number]) is not None:
                seen.add(thing)
            counts.append(len(seen))
        total += np.array(counts, np.float64)[taken]
    return total / permutations


def _all_missed(tests: float, times: float, taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance that none of `times` tests is among the first ones: C(N-k, n) / C(N, n)."""
    possible = taken <= tests - times
    n = np.where(possible, taken, 0.0)
    log = scipy.special.gammaln(tests - times + 1) - scipy.special.gammaln(tests - times - n + 1)
    log -= scipy.special.gammaln(tests + 1) - scipy.special.gammaln(tests - n + 1)
    return np.where(possible, np.exp(log), 0.0)

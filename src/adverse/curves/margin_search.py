"""How far each object is from being lost along a condition, and which step to look at next.

Steps go from 0, clean, to the strongest. The margin of an object that is found at step 0 is the first step at
which it is lost. Ascending until it is lost is exact. Bisection takes fewer steps and trusts that who is lost
stays lost: where somebody comes back at a stronger step, its answer can only be too far. So every answer is
checked at random weaker steps, and where one contradicts it, all weaker steps are looked at.

Everything here is a function of what is known, so a search that was stopped goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.seeds import generator

UNKNOWN, LOST, FOUND, UNUSABLE = -1, 0, 1, 2
"""What is known of an object at a step; unusable: its frame could not be had at this strength."""
NEAR, CHECKS = 4, 3
"""Of so many steps just below an answer of bisection, so many are looked at, random ones: who comes back does
so near the border."""
KEY = "margin search"
Method = Literal["ascend", "bisect"]
Known = NDArray[np.int8]
"""(P, K + 1): what is known of each object at each step."""


class Margins(NamedTuple):
    """The margin of each object (P,): the first step at which it is lost.

    `lost`: it is lost there; else it was seen to be found up to the step before, and no further (censored).
    Objects that are not found at step 0 are not `at_risk` and have margin 0.
    """

    step: NDArray[np.int64]
    lost: NDArray[np.bool_]
    at_risk: NDArray[np.bool_]


def margins(known: Known) -> Margins:
    """Return the margins as far as they are known; a step that is unknown or unusable censors what follows.

    >>> margins(np.array([[1, 1, 0, 1], [1, 1, 1, 1], [0, -1, -1, -1]], np.int8)).step.tolist()
    [2, 4, 0]
    """
    steps = known.shape[1]
    at_risk = known[:, 0] == FOUND
    not_found = known != FOUND
    first = np.where(not_found.any(axis=1), not_found.argmax(axis=1), steps)
    inside = np.minimum(first, steps - 1)
    lost = at_risk & (first < steps) & (known[np.arange(len(known)), inside] == LOST)
    return Margins(np.where(at_risk, first, 0), lost, at_risk)


def bisected_margins(known: Known) -> Margins:
    """Return the margins where steps between those that were looked at are taken to be as these.

    The first step at which an object is known to be lost, or could not be looked at, is the end; with none,
    it is found as far as it was seen.

    >>> bisected_margins(np.array([[1, -1, 1, 0, -1], [1, -1, -1, -1, 1]], np.int8)).step.tolist()
    [3, 5]
    """
    steps = known.shape[1]
    at_risk = known[:, 0] == FOUND
    over = (known == LOST) | (known == UNUSABLE)
    seen = np.where(known == FOUND, np.arange(steps), 0).max(axis=1)
    step = np.where(over.any(axis=1), over.argmax(axis=1), seen + 1)
    lost = at_risk & over.any(axis=1) & (known[np.arange(len(known)), over.argmax(axis=1)] == LOST)
    return Margins(np.where(at_risk, step, 0), lost, at_risk)


def wanted_steps(
    known: Known, method: Method, frame: NDArray[np.int64], names: Sequence[str], *, seed: int
) -> NDArray[np.bool_]:
    """Return the steps (P, K + 1) to look at next for each object; nothing: the search is over.

    `frame` (P,) is where each object is: what is shown for one is known of all in the frame, so answers are
    checked when there is nothing else to ask of a frame. `names` (P,) tell objects apart; random checks are
    drawn by them.
    """
    wanted, checks = np.zeros(known.shape, np.bool_), np.zeros(known.shape, np.bool_)
    for row in np.flatnonzero(known[:, 0] == FOUND).tolist():
        step = _next_up(known[row]) if method == "ascend" else _next_half(known[row])
        if step is not None:
            wanted[row, step] = True
        elif method == "bisect" and (step := _next_check(known[row], names[row], seed)) is not None:
            checks[row, step] = True
    asked = np.isin(frame, frame[wanted.any(axis=1)])
    checks[asked] = False
    return wanted | checks


def _next_up(known: NDArray[np.int8]) -> int | None:
    """Return the first step that is not known, if at all weaker ones the object is found."""
    not_found = np.flatnonzero(known != FOUND)
    return int(not_found[0]) if len(not_found) and known[not_found[0]] == UNKNOWN else None


def _bracket(known: NDArray[np.int8]) -> tuple[int, int]:
    """Return the last step at which an object is found before the first at which it is not, and that one."""
    over = np.flatnonzero((known == LOST) | (known == UNUSABLE))
    high = int(over[0]) if len(over) else len(known)
    return int(np.flatnonzero(known[:high] == FOUND)[-1]), high


def _next_half(known: NDArray[np.int8]) -> int | None:
    """Return the middle of what is not known yet; after a contradiction, the first step that is unknown."""
    low, high = _bracket(known)
    if (known[high:] == FOUND).any():  # it came back: every step below the first loss counts
        unseen = np.flatnonzero(known[:high] == UNKNOWN)
        return int(unseen[0]) if len(unseen) else None
    return (low + high) // 2 if high - low > 1 else None


def _next_check(known: NDArray[np.int8], name: str, seed: int) -> int | None:
    """Return a random one of the steps just below an answer, until enough of them are known."""
    low, high = _bracket(known)
    near = np.arange(max(low - NEAR, 1), low)
    unseen = near[known[near] == UNKNOWN]
    if (known[high:] == FOUND).any() or len(near) - len(unseen) >= CHECKS or not len(unseen):
        return None
    return int(unseen[int(generator(seed, KEY, name, str(len(unseen))).integers(len(unseen)))])

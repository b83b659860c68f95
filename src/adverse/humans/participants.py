"""Whether a drop rests on people, or on one or two of them.

Answers of one person are alike: somebody who is bad at the task, or answers at random for a while, can make
any bin look like a drop. A test that takes answers for independent then proves what it should not. So every
drop must also hold over participants: left out one by one (the jackknife), they tell how sure the fitted rate
is, Student's distribution asks for more where a bin has few of them, and two alone never make a drop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from adverse.humans.answers import CENTRES, AnswerCounts, Array
from adverse.humans.smoothing import smooth

FEWEST_IN_A_BIN = 3.0
"""What fewer people say, by effective number, is theirs and not people's."""
REST = 1 / 3
"""Share of a fall that must remain without the two people who make most of it."""
NOTHING = 1e-12


def effective_people(answers: Array) -> Array:
    """Return how many people with equally many answers would be worth as much: (P, ...) answers by person.

    >>> [round(float(effective_people(np.array(given))), 2) for given in ([10, 10, 0], [1991, 3, 3, 3])]
    [2.0, 1.01]
    """
    total: Array = answers.sum(axis=0)
    worth: Array = total**2 / np.maximum((answers**2).sum(axis=0), 1)
    return worth


class OverPeople(NamedTuple):
    """For each populated bin, p of people being worse there, and whether that rests on one or two of them."""

    p: Array
    by_two: NDArray[np.bool_]


def over_people(counted: AnswerCounts, populated: NDArray[np.intp], weights: Array, lam: float) -> OverPeople:
    """Test the fitted rate of each populated bin against the base, participants left out in turn.

    A bin that nobody is left in says nothing, so it is taken to be like the base. The degrees of freedom are
    those of the people in the bin, by effective number. Where bins have different people there are as many
    chances to meet bad ones as there are groups of them: p is multiplied by that (Bonferroni). Where the fall
    is gone without the two people who make most of it, p is 1.
    """
    answers, successes = counted.answers[:, populated], counted.successes[:, populated]
    size = len(populated)
    rows = np.ones((size, 1))
    hat = smooth(
        CENTRES[populated] * rows, np.eye(size), weights * rows, np.full(size, size), np.full(size, lam)
    ).fitted
    everyone = np.vstack([np.zeros(len(answers)), np.eye(len(answers))])
    fall = _falls(counted, answers, successes, everyone, hat)
    change = fall[0] - fall[1:]
    variance = (1 - 1 / len(change)) * (change**2).sum(axis=0)
    two = np.zeros((size, len(answers)))
    np.put_along_axis(two, np.argsort(-change, axis=0, kind="stable")[:2].T, 1.0, axis=1)
    without = np.diag(_falls(counted, answers, successes, two, hat))
    here = effective_people(answers)
    groups = np.maximum(effective_people(counted.answers.sum(axis=1)) / np.maximum(here, 1), 1)
    t = fall[0] / np.sqrt(np.maximum(variance, NOTHING))
    p = stdtr(np.maximum(here - 1, 1), -t) * groups
    by_two = (without < REST * fall[0]) | (here < FEWEST_IN_A_BIN)
    return OverPeople(np.where(by_two, 1.0, np.minimum(p, 1.0)), by_two)


def _falls(counted: AnswerCounts, answers: Array, successes: Array, out: Array, hat: Array) -> Array:
    """Return how far below the base each bin is fitted (R, M) when people (R, P) are left out."""
    left, right = answers.sum(axis=0) - out @ answers, successes.sum(axis=0) - out @ successes
    base = _bases(counted, out)[:, None]
    falls: Array = base - np.where(left > 0, right / np.maximum(left, 1), base) @ hat
    return falls


def _bases(counted: AnswerCounts, out: Array) -> Array:
    """Return the base rate when people (R, P) are left out; it stays where nobody is left."""
    if counted.base_given is not None:
        return np.full(len(out), counted.base_given)
    answers = counted.base_answers.sum() - out @ counted.base_answers
    right = counted.base_successes.sum() - out @ counted.base_successes
    rates: Array = np.where(answers > 0, right / np.maximum(answers, 1), counted.base_rate)
    return rates

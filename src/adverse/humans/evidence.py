"""What the answers can show at all: enough of them, by enough people, and where nobody was asked.

"No drop was found" says something about people only where a drop would have been found. So a bin counts as
asked when a fall to guessing would be proven in it, and the range that people tolerate ends where that ends.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adverse.humans.answers import AnswerCounts
from adverse.humans.drop_test import BaseRate, p_of_fewer
from adverse.humans.participants import FEWEST_IN_A_BIN, effective_people
from adverse.humans.pooling import FEW
from adverse.humans.smoothing import LEAST_POINTS

MOST = 0.5
"""Share of the populated bins that must be able to show something."""


def base_of(counted: AnswerCounts) -> BaseRate:
    """Return the rate that all people are compared with, and how many answers it is from."""
    answers = math.inf if counted.base_given is not None else float(counted.base_answers.sum())
    return BaseRate(np.array([counted.base_rate]), np.array([answers]))


def able(counted: AnswerCounts, alpha: float) -> NDArray[np.bool_]:
    """Return in which bins (BINS,) a fall to guessing would be proven: enough answers, by enough people."""
    people = effective_people(counted.answers)
    asked: NDArray[np.bool_] = _shows_guessing(counted, alpha) & (people >= FEWEST_IN_A_BIN)
    return asked


def _shows_guessing(counted: AnswerCounts, alpha: float) -> NDArray[np.bool_]:
    answers = counted.answers.sum(axis=0)
    hits = np.rint(answers * counted.guessing)
    p = p_of_fewer(hits[None], answers[None], base_of(counted))[0]
    shown: NDArray[np.bool_] = (p < alpha) & (answers > FEW)
    return shown


def provable_rate(counted: AnswerCounts, alpha: float) -> float | None:
    """Return the highest rate that would be proven to be a drop in a typical bin; None if there is none."""
    answers = counted.answers.sum(axis=0)
    typical = float(np.median(answers[answers > FEW]) // 1)
    hits = np.arange(typical + 1)
    p = p_of_fewer(hits[None], np.full((1, len(hits)), typical), base_of(counted))[0]
    proven = hits[p < alpha]
    return float(proven[-1] / typical) if len(proven) else None


def lacking(counted: AnswerCounts, alpha: float) -> str:
    """Say why what was counted is too small to estimate anything from; empty where it is not.

    Where so few succeed even on the base that no success at all in the fullest bin would be no drop, finding
    none says nothing about what people tolerate. So it is where not even guessing would be found.
    """
    if not counted.answers.any():
        return "no answer has what this threshold needs: truth for t_c, answers on the original for t_p"
    if counted.base_given is None and counted.base_answers.sum() < FEW:
        return f"fewer than {FEW} answers to compare with"
    answers = counted.answers.sum(axis=0)
    populated = int((answers > FEW).sum())
    if populated < LEAST_POINTS:
        return f"{populated} bins with more than {FEW} answers, where {LEAST_POINTS} are needed"
    if p_of_fewer(np.zeros((1, 1)), answers.max(keepdims=True)[None], base_of(counted))[0, 0] >= alpha:
        return f"the base rate is {counted.base_rate:.1%}: so low that no drop below it could be proven"
    return _too_few_people(counted) or _too_weak(counted, alpha, populated)


def _too_few_people(counted: AnswerCounts) -> str:
    of_each = counted.answers.sum(axis=1)
    worth = float(effective_people(of_each))
    if worth >= FEWEST_IN_A_BIN:
        return ""
    return (
        f"the answers are worth those of {worth:.1f} participants, where {FEWEST_IN_A_BIN:g} are needed: one "
        f"gave {of_each.max():.0f} of {of_each.sum():.0f}"
    )


def _too_weak(counted: AnswerCounts, alpha: float, populated: int) -> str:
    least = max(LEAST_POINTS, math.ceil(MOST * populated))
    enough = int(_shows_guessing(counted, alpha).sum())
    if enough < least:
        compared = "" if counted.base_given is not None else f" of {counted.base_answers.sum():.0f} answers"
        answers = counted.answers.sum(axis=0)
        return (
            f"with about {np.median(answers[answers > FEW]):.0f} answers in a bin and a base rate of "
            f"{counted.base_rate:.1%}{compared}, not even a fall to guessing ({counted.guessing:.0%}) could "
            f"be proven in {populated - enough} of {populated} bins"
        )
    asked = int(able(counted, alpha).sum())
    if asked < least:
        return (
            f"in {populated - asked} of {populated} bins the answers are by one or two participants, or "
            f"nearly so; a drop must show in {FEWEST_IN_A_BIN:g} or more"
        )
    return ""

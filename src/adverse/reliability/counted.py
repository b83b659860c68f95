"""Answers counted by participant and bin of visual change: all that the estimation needs to know.

Counting by participant keeps the bootstrap cheap: drawing participants anew is one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.reliability.judgments import Judgments
from adverse.reliability.thresholds import Kind

Array = NDArray[np.float64]

BINS = 100
WIDTH = 1 / BINS
EDGES: Array = np.arange(BINS + 1) / BINS
CENTRES: Array = (np.arange(BINS) + 0.5) / BINS
ON_THE_EDGE = 1e-9
"""0.29 in binary is a little less than 29 hundredths; it belongs to the bin that begins there."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Answers and successes of P participants in each bin (P, BINS), and on what they are compared with (P,).

    A success is the right answer, or the answer that was given on the original. `base_apart` says whether
    the base is not already among the answers in the bins.
    """

    answers: Array
    successes: Array
    base_answers: Array
    base_successes: Array
    base_apart: bool

    @property
    def participants(self) -> int:
        """How many people answered."""
        return len(self.answers)

    @property
    def base_rate(self) -> float:
        """The share of successes that is compared with: m0 or s0."""
        return float(self.base_successes.sum() / self.base_answers.sum())


def bin_of(dv: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bin of each visual change; 1 belongs to the last.

    >>> bin_of(np.array([0, 0.29, 0.999, 1]))
    array([ 0, 29, 99, 99])
    """
    return np.minimum(np.floor(dv * BINS + ON_THE_EDGE), BINS - 1).astype(np.int64)


def count_answers(judgments: Judgments, kind: Kind, baseline_quantile: float) -> Counted:
    """Count the answers that say something about a threshold of this kind.

    Correctness is compared with the originals: what people answered there, right or wrong. Prediction is
    compared with barely changed images: those up to the given quantile of visual change.
    """
    if kind == "correctness":
        used = judgments.where(judgments.truth != "")
        success = used.answer == used.truth
        compared = used.original_answer != ""
        base_success = (used.original_answer == used.truth) & compared
    else:
        used = judgments.where(judgments.original_answer != "")
        success = used.answer == used.original_answer
        cut = np.quantile(used.dv, baseline_quantile, method="inverted_cdf") if len(used) else 0.0
        compared = used.dv <= cut
        base_success = success & compared
    people, person = np.unique(used.participant, return_inverse=True)
    places = person * BINS + bin_of(used.dv)

    def by_bin(counted: NDArray[np.bool_]) -> Array:
        found = np.bincount(places, counted, len(people) * BINS).astype(np.float64)
        return found.reshape(len(people), BINS)

    def by_person(counted: NDArray[np.bool_]) -> Array:
        return np.bincount(person, counted, len(people)).astype(np.float64)

    return Counted(
        by_bin(np.ones(len(used), np.bool_)),
        by_bin(success),
        by_person(compared),
        by_person(base_success),
        base_apart=kind == "correctness",
    )

"""Answers counted by participant and bin of visual change: all that the estimation needs to know.

Counting by participant keeps the bootstrap cheap: drawing participants anew is one matrix product.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adverse.reliability.judgments import ORIGINAL, Judgments
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

    A success is the right answer, or what most people answered on the original. `base_apart` says whether
    the base is not already among the answers in the bins. Somebody who answered on originals alone is one of
    the P, too. `tied` and `unseen` count answers that were left out: most people agree on nothing about the
    original, or nobody has seen it.
    """

    answers: Array
    successes: Array
    base_answers: Array
    base_successes: Array
    base_apart: bool
    tied: int = 0
    unseen: int = 0

    @property
    def participants(self) -> int:
        """How many people answered on changed images."""
        return int((self.answers.sum(axis=1) > 0).sum())

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


def majorities(originals: Judgments) -> dict[str, str]:
    """Return what most people answered on each original; empty where two answers are tied for the most.

    More than any other answer is most: 2 of 4 with two single others is. One answer is a majority of one.
    """
    said: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for image, answer in zip(originals.image.tolist(), originals.answer.tolist(), strict=True):
        said[image][answer] += 1
    return {image: _most(answers) for image, answers in said.items()}


def _most(answers: Counter[str]) -> str:
    top = max(answers.values())
    leaders = [answer for answer, count in answers.items() if count == top]
    return leaders[0] if len(leaders) == 1 else ""


def count_answers(judgments: Judgments, kind: Kind, baseline_quantile: float) -> Counted:
    """Count the answers on one transformation that say something about a threshold of this kind.

    Correctness is compared with the originals: all answers on them, right or wrong, whichever of them this
    transformation was shown on (m0). Prediction is agreement with what most people answered on the original,
    and is compared with that on barely changed images: those up to the given quantile of visual change (s0).
    """
    originals = judgments.originals
    changed = judgments.where(judgments.transformation != ORIGINAL)
    if kind == "correctness":
        used = changed.where(changed.truth != "")
        base = originals.where(originals.truth != "")
        return _counted(used, used.answer == used.truth, base, base.answer == base.truth, base_apart=True)
    most = majorities(originals)
    on_original = np.array([most.get(image, "") for image in changed.image.tolist()], np.str_)
    unseen = sum(image not in most for image in changed.image.tolist())
    known = on_original != ""
    used, on_original = changed.where(known), on_original[known]
    success = used.answer == on_original
    cut = np.quantile(used.dv, baseline_quantile, method="inverted_cdf") if len(used) else 0.0
    barely = used.dv <= cut
    found = _counted(used, success, used.where(barely), success[barely], base_apart=False)
    return replace(found, tied=len(changed) - len(used) - unseen, unseen=unseen)


def _counted(
    used: Judgments,
    success: NDArray[np.bool_],
    base: Judgments,
    base_success: NDArray[np.bool_],
    *,
    base_apart: bool,
) -> Counted:
    people = np.unique(np.concatenate([used.participant, base.participant]))
    person, base_person = (np.searchsorted(people, one.participant) for one in (used, base))
    places = person * BINS + bin_of(used.dv)

    def by_bin(counted: NDArray[np.bool_]) -> Array:
        found = np.bincount(places, counted, len(people) * BINS).astype(np.float64)
        return found.reshape(len(people), BINS)

    def by_person(counted: NDArray[np.bool_]) -> Array:
        return np.bincount(base_person, counted, len(people)).astype(np.float64)

    return Counted(
        by_bin(np.ones(len(used), np.bool_)),
        by_bin(success),
        by_person(np.ones(len(base), np.bool_)),
        by_person(base_success),
        base_apart=base_apart,
    )

"""The average detection rate, and what it costs to detect a person (Pezzementi et al. 2018).

ADR is the mean recall at sensitivities chosen on un-mutated data, where they cost 10^-3 to 10^-1 false
positives per image. Mutated data is evaluated at the same ones, whatever it costs there (II-A).

A person costs the false-positive rate that one must accept to detect them (figure 6). A detection of strength
s is kept by any threshold up to s. A threshold at s costs the false positives that are at least as strong,
and how many that is per image is known from un-mutated validation images.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

REFERENCES: tuple[float, ...] = tuple(10.0 ** (-3 + step / 4) for step in range(9))
"""False positives per image: 10^-3, 10^-2.75, ... 10^-1."""

ROUNDING = 1e-9
"""Relative slack when a rate is compared with a reference, so that 1 / 1000 does not exceed 10^-3."""


def reference_points(baseline_false_rate: ArrayLike, references: ArrayLike = REFERENCES) -> NDArray[np.int64]:
    """Return for each reference the last curve point whose BASELINE rate does not exceed it, -1 if none.

    `baseline_false_rate` (K,) is false positives per image on un-mutated data, by rising sensitivity.

    >>> reference_points([0.001, 0.01, 0.5], [0.0001, 0.001, 0.1])
    array([-1,  0,  1])
    """
    rate = np.asarray(baseline_false_rate, np.float64)
    if rate.ndim != 1 or np.isnan(rate).any() or (np.diff(rate) < 0).any():
        raise ValueError("the baseline's false-positive rates must be numbers that rise with sensitivity")
    limits = np.asarray(references, np.float64) * (1 + ROUNDING)
    return np.asarray(np.searchsorted(rate, limits, side="right") - 1, np.int64)


def adr(recall: ArrayLike, baseline_false_rate: ArrayLike, references: ArrayLike = REFERENCES) -> float:
    """Return the mean of `recall` (K,) at the points that the baseline's rates choose; no point counts 0.

    `recall` is that of the baseline or of mutated data at the same K thresholds. NaN when a recall that is
    needed is NaN (no truth).

    >>> adr([0.5, 0.8, 1.0], [0.001, 0.01, 0.5], [0.0001, 0.001, 0.1])
    0.43333333333333335
    """
    found = np.asarray(recall, np.float64)
    if found.shape != np.shape(baseline_false_rate):
        raise ValueError(f"recall {found.shape} and rates {np.shape(baseline_false_rate)} differ in shape")
    points = reference_points(baseline_false_rate, references)
    return float(np.mean(np.append(found, 0.0)[points]))  # -1 is the appended 0


@dataclass(frozen=True, eq=False)
class Required:
    """Per truth: false positives per image to accept before and after a mutation.

    A rate of 0 means that no false positive on the validation images is as strong: less than 1 / images. A
    rate of inf means that no threshold finds the person: there is no detection of it at all.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    images: int

    def orders(self) -> NDArray[np.float64]:
        """Return by how many powers of ten the rate rises; rates below 1 / images count as 1 / images.

        inf where the mutation makes the person undetectable, -inf where it was so before only, NaN where it
        is so in both.
        """
        least = 1.0 / self.images
        with np.errstate(invalid="ignore"):
            rise: NDArray[np.float64] = np.log10(np.maximum(self.after, least)) - np.log10(
                np.maximum(self.before, least)
            )
        return rise


def required_rate(scores: ArrayLike, false_scores: ArrayLike, images: int) -> NDArray[np.float64]:
    """Return the expected false positives per image of a threshold set at each score.

    `scores` (N,) is the strength of the best right detection of each truth, NaN if it has none;
    `false_scores` are the scores of all false positives on `images` un-mutated validation images. Not
    detected is inf; with no validation images nothing is known, and the rate is NaN.

    >>> required_rate([0.95, 0.5, float("nan")], [0.9, 0.5, 0.2], 10)
    array([0. , 0.2, inf])
    """
    strength = np.asarray(scores, np.float64)
    if images <= 0:
        return np.full(strength.shape, np.nan)
    rising = np.sort(np.asarray(false_scores, np.float64).ravel())
    as_strong = len(rising) - np.searchsorted(rising, strength, side="left")
    return np.where(np.isnan(strength), np.inf, as_strong / images)


def required_rates(before: ArrayLike, after: ArrayLike, false_scores: ArrayLike, images: int) -> Required:
    """Return the required rates of the same N truths before and after a mutation, from their best scores."""
    if np.shape(before) != np.shape(after):
        raise ValueError(f"the truths before {np.shape(before)} and after {np.shape(after)} are not the same")
    rates = [required_rate(scores, false_scores, images) for scores in (before, after)]
    return Required(rates[0], rates[1], images)

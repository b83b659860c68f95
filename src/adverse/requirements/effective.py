"""How many equal images the images count as, where some hold most of what a measure counts.

Recall counts people. Where a tenth of the images holds most of them, recall is what it is on that tenth, and
the others say little. Kish (Survey Sampling, 1965): sizes s count as (sum s)^2 / sum s^2 equal ones. What was
seen nowhere may sit in the fullest images: where the fullest tenth is F times as full as the mean, n images
rule out as much about it as n / F equal ones.
"""

from __future__ import annotations

import numpy as np

from adverse.requirements.measures import Array, Evidence, Side

FULLEST = 0.1
"""The share of the images, the fullest, in which what was not seen is assumed to be."""


def kish(sizes: Array) -> float:
    """Return how many equal units the sizes (N,) count as, by the spread that they cause.

    >>> kish(np.array([3.0, 3.0, 0.0])), round(kish(np.array([8.0, 1.0, 1.0])), 2)
    (2.0, 1.52)
    """
    squares = float(np.sum(sizes**2))
    return float(np.sum(sizes)) ** 2 / squares if squares > 0 else 0.0


def counted_as(sizes: Array) -> float:
    """Return how many equal units the sizes (N,) count as for what may be hidden in the fullest of them.

    >>> counted_as(np.ones(40)), round(counted_as(np.array([11.0] * 4 + [1.0] * 36)), 2)
    (40.0, 7.27)
    """
    ordered = np.sort(sizes[sizes > 0])[::-1]
    units = len(ordered)
    if not units:
        return 0.0
    shares = np.concatenate([[0.0], np.cumsum(ordered) / ordered.sum()])
    fullest = float(np.interp(FULLEST * units, np.arange(units + 1), shares)) / FULLEST
    return min(kish(ordered), units / max(fullest, 1.0))


def image_sizes(evidence: Evidence) -> tuple[Array, Array]:
    """Return how much each image (N,) holds of what is required, and of what is measured."""
    return _of_images(evidence.required, evidence), _of_images(evidence.measured, evidence)


def log_sizes(evidence: Evidence) -> tuple[Array, Array]:
    """Return how much each log holds of what is required, and of what is measured."""
    log = np.unique(evidence.log, return_inverse=True)[1]
    required, measured = (
        np.bincount(log, weights=sizes).astype(np.float64) for sizes in image_sizes(evidence)
    )
    return required, measured


def _of_images(side: Side, evidence: Evidence) -> Array:
    """Versions of an image share its weight evenly."""
    images = len(evidence.log)
    count = np.bincount(side.image, minlength=images)
    return np.bincount(side.image, weights=side.tally.size, minlength=images) / np.maximum(count, 1)

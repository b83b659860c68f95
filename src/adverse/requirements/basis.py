"""What a PASS rests on: the answers that are required, and whether a fall could be seen in them.

A distance only counts what is lost beyond what is required. So a PASS is none where what is required was
measured on images that are changed too much, or on images that the SUT failed on.
"""

from __future__ import annotations

from dataclasses import replace

from adverse.requirements.decision import Decision
from adverse.requirements.evidence import MOST_UNREACHED, VersionStats
from adverse.requirements.verdicts import Outcome


def on_its_basis(
    found: Decision, barely: VersionStats | None, barely_to: float, faults: float, margin: float
) -> Decision:
    """Return the decision once it is counted what is required.

    `barely` are the barely changed versions, which should change by `barely_to` at most; None for
    correctness. `faults` is the share of the images behind what is required that the SUT failed on.
    """
    words, sound = [], True
    lost = 1 - (found.finding.required or 0.0)
    if barely is not None and len(barely.missed):
        words.append(barely_words(barely, barely_to))
        if barely.unreached > MOST_UNREACHED and lost > 0:  # more than every answer cannot be required
            sound = False
            words[-1] += ", so what is required may be too little"
    if faults > 0:
        images = "images as they are" if barely is None else "barely changed images"
        words.append(f"faults on {_percent(faults)} of the {images}")
        if faults > margin:
            sound = False
            words[-1] += f", more than the margin {margin:g}: a fall there cannot be seen"
    if barely is not None and found.outcome is Outcome.PASS and lost > margin:
        words.append(
            f"{_percent(lost)} of the answers are lost at the least change already; only the rest is required"
        )
    if not words:
        return found
    if found.outcome is Outcome.PASS and not sound:
        reason = "; ".join(filter(None, ("met, but " + words[0], *words[1:], found.reason)))
        return replace(found, outcome=Outcome.INCONCLUSIVE, reason=reason)
    return replace(found, reason="; ".join(filter(None, (found.reason, *words))))


def barely_words(barely: VersionStats, barely_to: float) -> str:
    """Say how many barely changed versions are changed by more, and how far all of them really go.

    >>> import numpy as np
    >>> made = VersionStats(3, 9, np.array([0.01, 0.02, 0.165]), aimed=3, missed=np.array([0.02]))
    >>> barely_words(made, 0.025)
    '1 of 3 barely changed images could not be changed by 0.025 or less: their changes go from 0.010 to 0.165'
    """
    words = f"{len(barely.missed)} of {barely.aimed} barely changed images could not be changed by "
    words += f"{barely_to:.3g} or less"
    if not len(barely.visual_change):
        return words
    low, high = barely.visual_change.min(), barely.visual_change.max()
    return f"{words}: their changes go from {low:.3f} to {high:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.2g} %"

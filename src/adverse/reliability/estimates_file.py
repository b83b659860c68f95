"""The estimates file: what a human study found, as requirements read it and people can check it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from adverse.reliability.estimate import Estimate, Options
from adverse.reliability.judgments import Judgments
from adverse.reliability.reuse import Reuse
from adverse.reliability.thresholds import FORMAT, FORMAT_VERSION


def as_data(
    judgments: Judgments, estimates: Sequence[Estimate], agreement: Sequence[Reuse], options: Options
) -> dict[str, Any]:
    """Return the findings of a study as plain data; `thresholds.threshold` reads them from JSON."""
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "backend": judgments.measured_by,
        "answers": _changed(judgments),
        "answers_on_originals": len(judgments.originals),
        "participants": len(set(judgments.participant.tolist())),
        "images": len(set(judgments.image.tolist())),
        "seen_before": judgments.seen_before,
        "options": asdict(options),
        "thresholds": [found.plain() for found in estimates],
        "reuse": [found.plain() for found in agreement],
    }


def as_json(
    judgments: Judgments, estimates: Sequence[Estimate], agreement: Sequence[Reuse], options: Options
) -> str:
    """Return the findings of a study as the text of an estimates file."""
    return json.dumps(as_data(judgments, estimates, agreement, options), indent=1, allow_nan=False) + "\n"


def counts_in_words(judgments: Judgments) -> str:
    """Say how much was asked, and what is odd about it."""
    people = len(set(judgments.participant.tolist()))
    images = len(set(judgments.image.tolist()))
    words = f"{_changed(judgments)} answers of {people} participants on changed versions of {images} images."
    words += f" {len(judgments.originals)} answers on originals."
    words += f" Visual change is by {judgments.measured_by}."
    if judgments.seen_before:
        words += (
            f" {judgments.seen_before} answers are by somebody who had already seen another version of the "
            "image; they may be too good."
        )
    return words


def _changed(judgments: Judgments) -> int:
    return len(judgments) - len(judgments.originals)

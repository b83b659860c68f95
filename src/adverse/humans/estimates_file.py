"""The estimates file: the thresholds of a human study, as requirements read them and people can check them.

It also says whether other images would give the same thresholds: two random parts, 60% of the images each,
are compared: whether the 83% bands of their splines overlap (Hu et al. 2022, RQ1), and how far their
thresholds lie apart. Where they do not agree, answers dealt out at random say whether that is more than
chance; only then do images matter. The parts share images, so agreement is no proof that they do not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from adverse.humans.answers import Judgments
from adverse.humans.estimate import Estimate, EstimateOptions, estimate_one
from adverse.humans.parts_test import chance_of_parts
from adverse.humans.thresholds import (
    CHECKSUM,
    FORMAT,
    FORMAT_VERSION,
    INSUFFICIENT,
    KINDS,
    SYMBOLS,
    Kind,
    checksum,
)
from adverse.seeds import generator
from adverse.text import counted, shown

PART = 0.6
BAND = 0.83
ALIKE = 0.95
"""Share of the common bins in which the bands must overlap; 5% are allowed to differ by chance."""
SAME_THRESHOLD = 0.05
"""Visual change by which the thresholds of two parts that agree may lie apart."""
LEVEL = 0.05
"""How often parts may be said to differ where images do not matter."""
SCRIPT = ("alpha", "weight", "base_rate")
"""Options that the published script has, too."""


@dataclass(frozen=True)
class Reuse:
    """How far two random parts of the images agree; `overlap` is None where that cannot be told.

    `thresholds` are None where no drop was found; then `tolerated` holds how far there is none. `chance` is p
    of parts that do not agree differing as much though images do not matter (`parts_test`).
    """

    transformation: str
    kind: Kind
    overlap: float | None
    bins: int
    thresholds: tuple[float | None, float | None]
    why: str = ""
    tolerated: tuple[float, float] = (0.0, 0.0)
    chance: float | None = None

    @property
    def differ(self) -> bool:
        """Whether the parts differ by more than chance, so that the threshold depends on the images."""
        return not self.agree and self.chance is not None and self.chance < LEVEL

    @property
    def apart(self) -> float:
        """How far the two thresholds lie apart; 0 where neither part has a drop."""
        return 0.0 if self.thresholds == (None, None) else abs(self.tolerated[0] - self.tolerated[1])

    @property
    def agree(self) -> bool:
        """Whether curves and thresholds agree: 0.69 and 0.12 do not, however wide the bands are."""
        return self.overlap is not None and self.overlap >= ALIKE and self.apart <= SAME_THRESHOLD + 1e-9

    @property
    def words(self) -> str:
        """The finding in words."""
        head = f"{SYMBOLS[self.kind]} of {self.transformation}, for other images:"
        if self.overlap is None:
            return f"{head} cannot be told; {self.why}"
        first, second = (
            f"none up to {end:g}" if value is None else f"{value:g}"
            for value, end in zip(self.thresholds, self.tolerated, strict=True)
        )
        if self.agree:
            verdict = "agree"
        else:
            verdict = "do not agree"
            if self.apart > SAME_THRESHOLD + 1e-9:
                verdict += f": their thresholds are more than {SAME_THRESHOLD:g} apart"
            if self.differ:
                verdict += ". By chance that is rare: the threshold depends on which images are shown"
            elif self.chance is not None:
                verdict += ". So do parts drawn by chance: answers are too few to tell whether images matter"
        return (
            f"{head} two random parts of the images {verdict} (bands overlap in {self.overlap:.0%} of "
            f"{self.bins} bins; thresholds {first} and {second})"
        )

    def plain(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return asdict(self) | {"agree": self.agree, "differ": self.differ}


def reuse(judgments: Judgments, options: EstimateOptions | None = None) -> list[Reuse]:
    """Compare two random parts of the images, for t_c and t_p of every transformation."""
    chosen = replace(options or EstimateOptions(), confidence=BAND)
    return [
        _one(judgments.of(name), name, kind, chosen) for name in judgments.transformations for kind in KINDS
    ]


def _one(judgments: Judgments, name: str, kind: Kind, options: EstimateOptions) -> Reuse:
    images = np.unique(judgments.image)
    rng = generator(options.seed, "reuse", name, kind)
    size = round(PART * len(images))
    parts = rng.permutation(images)[:size], rng.permutation(images)[:size]
    first, second = (
        estimate_one(
            judgments.where(np.isin(judgments.image, part)), name, kind, options, with_interval=False
        )
        for part in parts
    )
    thresholds = (first.value, second.value)
    for part in (first, second):
        if part.status == INSUFFICIENT:
            return Reuse(name, kind, None, 0, thresholds, f"in a part of the images: {part.why}")
    shared = _bands(first).keys() & _bands(second).keys()
    if not shared:
        return Reuse(name, kind, None, 0, thresholds, "the two parts have no bin with a band in common")
    overlapping = [
        max(low, other_low) <= min(high, other_high)
        for (low, high), (other_low, other_high) in ((_bands(first)[b], _bands(second)[b]) for b in shared)
    ]
    ends = (first.tolerated_to or 0.0, second.tolerated_to or 0.0)
    found = Reuse(name, kind, float(np.mean(overlapping)), len(shared), thresholds, tolerated=ends)
    if found.agree:
        return found
    return replace(found, chance=chance_of_parts(judgments, kind, parts, options, name, kind))


def _bands(estimate: Estimate) -> dict[float, tuple[float, float]]:
    return {b.low: b.band for b in estimate.bins if b.band is not None}


def as_data(
    judgments: Judgments | None,
    estimates: Sequence[Estimate],
    agreement: Sequence[Reuse],
    options: EstimateOptions,
) -> dict[str, Any]:
    """Return the findings of a study as plain data; `thresholds.threshold` reads them from JSON.

    Without `judgments` only the bins were at hand, not the answers.
    """
    counts = {} if judgments is None else _counts(judgments)
    compat = next((finding.compat for finding in estimates if finding.compat), None)
    data = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        **counts,
        "compat": compat,
        "options": {name: value for name, value in asdict(options).items() if not compat or name in SCRIPT},
        "thresholds": [finding.plain() for finding in estimates],
        "reuse": [finding.plain() for finding in agreement],
    }
    return data | {CHECKSUM: checksum(data)}


def _counts(judgments: Judgments) -> dict[str, Any]:
    return {
        "backend": judgments.measured_by,
        "answers": _changed(judgments),
        "answers_on_originals": len(judgments.originals),
        "participants": len(set(judgments.participant.tolist())),
        "images": len(set(judgments.image.tolist())),
        "seen_before": judgments.seen_before,
    }


def as_json(
    judgments: Judgments | None,
    estimates: Sequence[Estimate],
    agreement: Sequence[Reuse],
    options: EstimateOptions,
) -> str:
    """Return the findings of a study as the text of an estimates file."""
    return json.dumps(as_data(judgments, estimates, agreement, options), indent=1, allow_nan=False) + "\n"


def counts_in_words(judgments: Judgments | None) -> str:
    """Say how much was asked, and what is odd about it."""
    if judgments is None:
        return "Only bins are in the file: who answered what is not."
    people = len(set(judgments.participant.tolist()))
    images = len(set(judgments.image.tolist()))
    words = (
        f"{counted(_changed(judgments), 'answer')} of {counted(people, 'participant')} on changed versions"
    )
    words += f" of {counted(images, 'image')}. {counted(len(judgments.originals), 'answer')} on originals."
    words += f" Visual change is by {judgments.measured_by}."
    if judgments.strangers:
        kinds = [
            f"{shown(answer, longest=40)!r} ({count})" for answer, count in judgments.strangers.most_common(5)
        ]
        more = ", ..." if len(judgments.strangers) > len(kinds) else ""
        words += f" {counted(judgments.strangers.total(), 'answer')} of no category that is a truth count as "
        words += f"wrong: {', '.join(kinds)}{more}."
    if judgments.seen_before:
        words += (
            f" {counted(judgments.seen_before, 'answer')} by somebody who had already seen another version "
            "of the image may be too good."
        )
    return words


def _changed(judgments: Judgments) -> int:
    return len(judgments) - len(judgments.originals)

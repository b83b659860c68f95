"""From the answers of a finished check to the evidence on each requirement.

Only images that could be used as they are and in at least one version count, the same on both sides; a SUT
that failed on a version answered wrongly there, or found nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adverse.reliability.measures import Answered, Rows
from adverse.reliability.tally import Evidence, Side, Tally
from adverse.reliability.versions import Versions
from adverse.study.store.read import QUARANTINED, Store


@dataclass(frozen=True, eq=False)
class Reach:
    """How the drawing of versions went: how many there are, what they look like, and what was refused why."""

    versions: int
    tries: int
    visual_change: NDArray[np.float64]
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def rejections(self) -> int:
        """Versions that could not be made."""
        return self.refused.total()


class Answers:
    """The answers of one SUT in the run of a check, by setting."""

    def __init__(self, store: Store, sut: str, answered: Answered) -> None:
        self.store = store
        self.sut = sut
        self.answered = answered
        self.baseline = store.run.baseline.id

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """The test frames (a mask over all) that could be used as they are."""
        return self.store.frames.test & self._ran(self.baseline)

    def evidence(self, kind: str, measure: str, versions: Versions) -> Evidence:
        """Return what is required and what is measured, row by row."""
        within = self._rows(versions.within)
        if kind == "correctness":
            measured = self.answered.correct(measure, within)
            originals = np.unique(within.frame)
            plain = Rows(originals, np.zeros(len(originals), np.int64), (self.baseline,))
            return self._paired(self.answered.correct(measure, plain), plain, measured, within)
        barely = self._rows(versions.barely)
        return self._paired(self.answered.alike(barely), barely, self.answered.alike(within), within)

    def mean(self, measure: str, settings: tuple[str, ...]) -> float | None:
        """Return the mean of a measure over settings, each over all usable frames; None: not defined."""
        values = []
        for setting in settings:
            rows = self._rows((setting,))
            tally = self.answered.correct(measure, rows)
            values.append(float(tally.under(np.ones((1, len(rows.frame))))[0]))
        return float(np.mean(values)) if values and np.isfinite(values).all() else None

    def reach(self, settings: tuple[str, ...]) -> Reach:
        """Return how the drawing of versions went."""
        table = self.store.told(self.sut, settings).to_pylist()
        frames = set(np.array(self.store.frames.ids)[self.usable].tolist())
        rows = [row for row in table if row["frame"] in frames]
        told = [dict(row["told"] or ()) for row in rows]
        refused = Counter(_kind_of(str(row["reason"])) for row in rows if row["status"] == "quarantined")
        reached = [one["visual_change"] for one in told if "visual_change" in one]
        tries = sum(int(one.get("tries", 0)) for one in told)
        return Reach(len(rows) - refused.total(), tries, np.array(reached, np.float64), refused)

    def _rows(self, settings: tuple[str, ...]) -> Rows:
        """Return a row for every usable frame and setting that could be had, frame by frame."""
        ran = np.array([self.usable & self._ran(setting) for setting in settings])
        frame, setting = np.nonzero(ran.T)
        return Rows(frame, setting, settings)

    def _paired(self, required: Tally, first: Rows, measured: Tally, second: Rows) -> Evidence:
        """Number the frames that take part from 0."""
        frames = np.unique(np.concatenate([first.frame, second.frame]))
        return Evidence(
            Side(required, np.searchsorted(frames, first.frame)),
            Side(measured, np.searchsorted(frames, second.frame)),
            self.store.frames.log[frames],
        )

    def _ran(self, setting: str) -> NDArray[np.bool_]:
        frame, status = self.answered.status(setting)
        mask = np.zeros(len(self.store.frames.ids), np.bool_)
        mask[frame[status != QUARANTINED]] = True
        return mask


def _kind_of(reason: str) -> str:
    """Return why a version was refused without what differs from frame to frame.

    >>> _kind_of("the visual change cannot be reached; got: 0.31; wanted: 0.4 to 0.5. Fix: Raise tries:.")
    'the visual change cannot be reached'
    >>> _kind_of("the mutation up_to failed; where: frame 'a'; got: ValueError: no. Fix: Mend it.")
    'the mutation up_to failed: ValueError: no'
    """
    what, *details = reason.partition(". Fix: ")[0].split("; ")
    got = next((text.removeprefix("got: ") for text in details if text.startswith("got: ")), "")
    return f"{what}: {got}" if "failed" in what else what

"""The pictures of a report: frames that fail for little reason, and one frame under every mutation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from adverse.analysis.results import Summary
from adverse.errors import AdverseError
from adverse.report.pictures import Box, Looker, Picture, box_of, picture, visible_change
from adverse.store.read import Store
from adverse.store.tables import Answers
from adverse.types import Image

FAILURES = 12
LEAST_CHANGE = 1.0
"""Grey levels; a change below this is as good as none."""
LEAST_VISUAL_CHANGE = 0.01
"""The same where visual change was measured, which then decides."""


@dataclass(frozen=True)
class Failure:
    """A failure of the summary with its two pictures, and how much of the change can be seen, in words."""

    row: Mapping[str, Any]
    change_words: str
    was: Picture
    now: Picture


def failures(summary: Summary, looker: Looker) -> list[Failure]:
    """Return the largest of the run's failures for the least visible change, each with its pictures."""
    shown: list[tuple[float, int, Failure]] = []
    store = looker.store
    answers = _Cached(store)
    turns = list(enumerate(summary.data["failures"]))
    for turn, row in sorted(turns, key=lambda entry: entry[1]["sut"]):  # so that each SUT is read once
        frame, setting = row["frame"], row["setting"]
        try:
            before, after = (looker.image(frame, name) for name in (_baseline(store), setting))
        except AdverseError:
            continue
        dv = row["visual_change"]
        moved = visible_change(before, after)
        least = max(dv, LEAST_VISUAL_CHANGE) if dv is not None else max(moved, LEAST_CHANGE) / 255
        words = f"visual change {dv:.2f}" if dv is not None else f"pixels moved by {moved:.1f} of 255 levels"
        was = picture(before, answers.boxes(row["sut"], _baseline(store), frame, before))
        now = picture(after, answers.boxes(row["sut"], setting, frame, after))
        shown.append((row["orders"] / least, turn, Failure(row, words, was, now)))
    shown.sort(key=lambda entry: (-entry[0], entry[1]))
    return [failure for _, _, failure in shown[:FAILURES]]


def mutation_gallery(store: Store, looker: Looker) -> Iterator[tuple[str, Picture]]:
    """Yield one frame, with a person if there is one, under every setting."""
    frame = _typical_frame(store)
    for setting in store.groups:
        try:
            yield setting, picture(looker.image(frame, setting))
        except AdverseError:
            continue


def _typical_frame(store: Store) -> str:
    """Return the test frame with the true object of median size, or the first one."""
    truth = store.truth
    mine = np.flatnonzero(store.frames.test[truth.frame] & ~truth.ignore)
    if not len(mine):
        return store.frames.ids[int(np.flatnonzero(store.frames.test)[0])]
    height = (truth.boxes[:, 3] - truth.boxes[:, 1])[mine]
    return store.frames.ids[int(truth.frame[mine[np.argsort(height, kind="stable")[len(mine) * 3 // 4]]])]


def _baseline(store: Store) -> str:
    return store.run.baseline.id


class _Cached:
    """Boxes of truth and detections by frame, each SUT's answers read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._answers: dict[str, dict[str, Answers]] = {}
        self._index = {frame: number for number, frame in enumerate(store.frames.ids)}
        self._thresholds = _thresholds(store)

    def boxes(self, sut: str, setting: str, frame: str, image: Image) -> tuple[Box, ...]:
        """Return truth, and detections above the threshold of the highest rate that counts."""
        if sut not in self._answers:
            self._answers = {sut: self.store.answers(sut)}
        number, truth = self._index[frame], self.store.truth
        drawn = [
            box_of("ignored" if truth.ignore[row] else "truth", truth.boxes[row], image)
            for row in np.flatnonzero(truth.frame == number).tolist()
        ]
        answers = self._answers[sut][setting]
        for row in np.flatnonzero(answers.frame == number).tolist():
            drawn += [
                box_of("found", answers.boxes[at], image)
                for at in range(int(answers.offsets[row]), int(answers.offsets[row + 1]))
                if answers.scores[at] >= self._thresholds.get(sut, -np.inf)
            ]
        return tuple(drawn)


def _thresholds(store: Store) -> dict[str, float]:
    """Return for each SUT the threshold at which its expected false positives per image reach fpr_max."""
    names = ["sut", "sensitivity", "threshold"]
    path = store.result("sensitivity.parquet")
    if path is None:
        return {}
    table = pq.read_table(path, columns=names)
    suts = np.array(table["sut"].to_pylist(), object)
    sensitivity, threshold = (table[name].to_numpy() for name in names[1:])
    away = np.abs(np.log(sensitivity / store.run.fpr_max))
    thresholds = {}
    for sut in dict.fromkeys(suts.tolist()):
        mine = np.flatnonzero(suts == sut)
        thresholds[sut] = float(threshold[mine[np.argmin(away[mine])]])
    return thresholds

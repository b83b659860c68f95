"""The pictures of a report: frames that fail for little reason, and one frame under every mutation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adverse.analysis.strengths import RECORDED, visual_changes
from adverse.errors import AdverseError
from adverse.report.pictures import Box, Looker, Picture, box_of, picture, visible_change
from adverse.store.read import Answers, Store
from adverse.types import Image

FAILURES = 12
TRIED = 60
"""Frames that are looked at before the failures to show are chosen."""
NEVER = 4.0
"""Powers of ten that a person nobody finds any more counts as."""
LEAST_CHANGE = 1.0
"""Grey levels; a change below this is as good as none."""
LEAST_VISUAL_CHANGE = 0.01
"""The same where visual change was measured, which then decides."""


@dataclass(frozen=True)
class Fall:
    """One person whose detection costs more false alarms under a mutation: rates per image."""

    sut: str
    setting: str
    frame: str
    thing: int
    before: float
    after: float
    orders: float


@dataclass(frozen=True)
class Failure:
    """A fall with its two pictures, and how much of the change can be seen, in words."""

    fall: Fall
    change_words: str
    was: Picture
    now: Picture


def falls(store: Store) -> list[Fall]:
    """Return the people that cost most, the worst of each (SUT, mutation, log) only, worst first."""
    path = store.result("required.parquet")
    if path is None:
        return []
    table = pq.read_table(path)
    before, after = (table[name].to_numpy() for name in ("before", "after"))
    images = max(1, int((~store.frames.test).sum()) or int(store.frames.test.sum()))
    with np.errstate(divide="ignore", invalid="ignore"):
        orders = np.log10(np.maximum(after, 1 / images)) - np.log10(np.maximum(before, 1 / images))
    fpr_max = store.run.fpr_max
    failed = np.flatnonzero((before <= fpr_max) & (after > fpr_max))
    rank = np.where(np.isfinite(after[failed]), orders[failed], NEVER)
    log_of = dict(zip(store.frames.ids, store.frames.log.tolist(), strict=True))
    names = {name: table[name].to_pylist() for name in ("sut", "setting", "frame", "object")}
    seen: set[tuple[str, str, int]] = set()
    worst = []
    for row in failed[np.argsort(-rank, kind="stable")].tolist():
        key = (names["sut"][row], names["setting"][row], log_of[names["frame"][row]])
        if key not in seen:
            seen.add(key)
            value = float(orders[row]) if np.isfinite(after[row]) else NEVER
            texts = (names["sut"][row], names["setting"][row], names["frame"][row], names["object"][row])
            worst.append(Fall(*texts, float(before[row]), float(after[row]), value))
    return worst


def failures(store: Store, looker: Looker) -> list[Failure]:
    """Return the largest falls for the least visible change; SUTs and mutations take turns."""
    pictured: list[tuple[float, int, Failure]] = []
    answers = _Cached(store)
    seen = visual_changes(store)
    turns = list(enumerate(_in_turns(falls(store), TRIED)))
    for turn, fall in sorted(turns, key=lambda turn: turn[1].sut):  # so that each SUT is read once
        try:
            before, after = (looker.image(fall.frame, s) for s in (_baseline(store), fall.setting))
        except AdverseError:
            continue
        dv = next((v for k, v in seen.get((fall.setting, fall.frame), {}).items() if RECORDED in k), None)
        moved = visible_change(before, after)
        least = max(dv, LEAST_VISUAL_CHANGE) if dv is not None else max(moved, LEAST_CHANGE) / 255
        words = f"visual change {dv:.2f}" if dv is not None else f"pixels moved by {moved:.1f} of 255 levels"
        was = picture(before, answers.boxes(fall.sut, _baseline(store), fall.frame, before))
        now = picture(after, answers.boxes(fall.sut, fall.setting, fall.frame, after))
        pictured.append((fall.orders / least, turn, Failure(fall, words, was, now)))
    pictured.sort(key=lambda entry: (-entry[0], entry[1]))
    return [failure for _, _, failure in pictured[:FAILURES]]


def mutation_gallery(store: Store, looker: Looker) -> Iterator[tuple[str, Picture]]:
    """Yield one frame, with a person if there is one, under every setting."""
    frame = _typical_frame(store)
    for setting in store.groups:
        try:
            yield setting, picture(looker.image(frame, setting))
        except AdverseError:
            continue


def _in_turns(all_falls: list[Fall], count: int) -> list[Fall]:
    """Take the worst of every (SUT, mutation), then the second worst, and so on."""
    place: dict[tuple[str, str], int] = {}
    keyed = []
    for number, fall in enumerate(all_falls):
        turn = place.get((fall.sut, fall.setting), 0)
        place[fall.sut, fall.setting] = turn + 1
        keyed.append((turn, number, fall))
    return [fall for _, _, fall in sorted(keyed, key=lambda entry: entry[:2])[:count]]


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
    plain = pc.field("setting") == _baseline(store)
    path = store.result("curves.parquet")
    if path is None:
        return {}
    table = pq.read_table(path, columns=names, filters=plain)
    suts = np.array(table["sut"].to_pylist(), object)
    sensitivity, threshold = (table[name].to_numpy() for name in names[1:])
    away = np.abs(np.log(sensitivity / store.run.fpr_max))
    thresholds = {}
    for sut in dict.fromkeys(suts.tolist()):
        mine = np.flatnonzero(suts == sut)
        thresholds[sut] = float(threshold[mine[np.argmin(away[mine])]])
    return thresholds

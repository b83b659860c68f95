"""One closed-loop run of one log, step by step: by a SUT at one sensitivity, and by the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adverse.analysis.context import Context, Seen
from adverse.analysis.judged import sensitivity_of
from adverse.errors import StudyError, suggestion
from adverse.levels.image import judge
from adverse.levels.places import ROUNDING_M
from adverse.robot.playback import Trace, trace
from adverse.study.store.read import Store


class Told(NamedTuple):
    """Who tells the robot what is there: a SUT under a setting, from which score on, at which sensitivity."""

    sut: str
    setting: str
    level: float
    threshold: float


@dataclass(frozen=True)
class Driven:
    """The two runs, and whether the SUT's was safe (None on a negative log)."""

    log: str
    sut: str
    setting: str
    level: float
    threshold: float
    by_sut: Trace
    by_truth: Trace
    positive: bool
    tolerance_m: float = 0.0
    """How much later than the truth it may stop."""

    @property
    def safe(self) -> bool | None:
        """Whether the SUT stopped no later than the truth; None where there is nothing to stop for."""
        if not self.positive or not self.by_truth.stopped[-1]:
            return None
        latest = self.by_truth.position_m[-1] + ROUNDING_M + self.tolerance_m
        return bool(self.by_sut.stopped[-1] and self.by_sut.position_m[-1] <= latest)


def drive_log(store: Store, *, log: str, sut: str, sensitivity: float, setting: str | None = None) -> Driven:
    """Drive one log of a run at the level nearest to a sensitivity (expected false positives per image)."""
    _known("SUT", sut, store.suts)
    chosen = setting or store.run.baseline.id
    _known("mutation", chosen, list(store.groups))
    _known("log", log, sorted({store.frames.logs[i] for i in store.frames.log[store.frames.test]}))
    context = Context(store, [store.frames.logs.index(log)])
    answers = store.answers(sut, settings=dict.fromkeys((store.run.baseline.id, chosen)))
    baseline = judge(answers[store.run.baseline.id], store.truth)
    known, _ = sensitivity_of(store, baseline)
    k = int(np.argmin(np.abs(np.log(known.levels) - np.log(sensitivity))))
    told = Told(sut, chosen, float(known.levels[k]), float(known.thresholds[k]))
    return drive_seen(context, context.seen(answers[chosen]), told, log)


def drive_seen(context: Context, seen: Seen, told: Told, log: str, *, kind: str | None = None) -> Driven:
    """Drive one log by detections whose places are known, against one kind of truth (None: the first)."""
    if context.robot is None:
        raise StudyError(
            "the run has no robot to drive",
            where=str(context.store.folder.path),
            fix="Add loop to levels: and robot: to the study, and run it again.",
        )
    frames = context.store.frames
    threshold = np.array([told.threshold], np.float32)
    obstacles = context.obstacles(seen, threshold, frames.test)
    runs, left_out = context.playbacks(obstacles, kind or next(iter(context.truths)), frames.test)
    number = frames.logs.index(log)
    if number not in runs:
        raise StudyError("this log cannot be played back", where=f"log {log!r}", got=str(dict(left_out)))
    run = runs[number]
    by_sut, by_truth = (
        trace(run.stations, column, run.too_close_m, run.end_m, context.robot, positive=run.positive)
        for column in (run.obstacles_m[:, 0], run.true_m)
    )
    tolerance_m = context.robot.stop_tolerance_m
    return Driven(log, *told, by_sut, by_truth, run.positive, tolerance_m)


def _known(noun: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise StudyError(f"the run has no {noun} called {name!r}", fix=suggestion(name, names))

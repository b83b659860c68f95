"""The image level: detections judged one image at a time, without any context (001 section 6.1).

ROC_A: safety is recall; efficiency falls with all false positives over all images. ROC_B: recall on
positive logs; efficiency falls with the share of images of NEGATIVE logs on which anything fires, so that a
false alarm beside a real person, which would stop the robot anyway, costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.levels.match import FALSE, HIT, IGNORED, match
from adverse.levels.outcomes import Events, Outcomes, first_level
from adverse.store.read import Answers, Frames, TruthTable

ROC_A, ROC_B = "image/ROC_A", "image/ROC_B"


@dataclass(frozen=True, eq=False)
class Judged:
    """Answers with the outcome of every detection."""

    answers: Answers
    outcome: NDArray[np.int8]
    truth: NDArray[np.int64]
    """The row of the truth that each detection hits; -1: none."""
    row: NDArray[np.int64]
    """The row of `answers` that each detection belongs to."""


def judge(answers: Answers, truth: TruthTable) -> Judged:
    """Match the detections of one SUT under one setting with the truth."""
    row = np.repeat(np.arange(len(answers.frame)), np.diff(answers.offsets))
    return Judged(answers, *match(answers, truth), row)


def false_scores(judged: Judged, counted: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the scores of the false positives on the frames that count (a mask over all frames)."""
    chosen = (judged.outcome == FALSE) & counted[judged.answers.frame[judged.row]]
    scores: NDArray[np.float32] = judged.answers.scores[chosen]
    return scores


def image_outcomes(
    judged: Judged,
    truth: TruthTable,
    frames: Frames,
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
) -> dict[str, Outcomes]:
    """Return the outcomes of ROC_A and ROC_B over the frames that count (a mask over all frames)."""
    events = image_events(judged, truth, frames, thresholds, counted)
    return {name: one.outcomes(len(thresholds)) for name, one in events.items()}


def image_events(
    judged: Judged,
    truth: TruthTable,
    frames: Frames,
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
) -> dict[str, Events]:
    """Return the hits and false alarms of ROC_A and ROC_B, and the level each begins at."""
    groups = len(frames.logs)
    log_of = frames.log
    frame = judged.answers.frame[judged.row]
    level = first_level(judged.answers.scores, thresholds)
    on = counted[frame]

    positive = positive_logs(truth, frames)
    real = counted[truth.frame] & ~truth.ignore
    truths = np.bincount(log_of[truth.frame[real]], minlength=groups)
    images = as_float(np.bincount(log_of[counted], minlength=groups))
    hit, false = on & (judged.outcome == HIT), on & (judged.outcome == FALSE)
    negative = on & ~positive[log_of[frame]] & (judged.outcome != IGNORED)
    seen, strongest = first_per_frame(frame[negative], level[negative])
    hits = log_of[frame[hit]], level[hit]
    return {
        ROC_A: Events(frames.logs, *hits, truths, log_of[frame[false]], level[false], images),
        ROC_B: Events(frames.logs, *hits, truths, log_of[seen], strongest, np.where(positive, 0.0, images)),
    }


def positive_logs(truth: TruthTable, frames: Frames) -> NDArray[np.bool_]:
    """Return which logs have a target in them anywhere, be it an ignored one."""
    positive = np.zeros(len(frames.logs), np.bool_)
    positive[frames.log[truth.frame]] = True
    return positive


def as_float(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return counts as the costs and exposures that outcomes hold."""
    return counts.astype(np.float64)


def first_per_frame(
    frame: NDArray[np.int64], level: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each frame once, with the first level at which anything in it counts."""
    order = np.lexsort((level, frame))
    frames, first = np.unique(frame[order], return_index=True)
    return frames, level[order][first]

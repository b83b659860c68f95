"""Consistency over time: what is detected before and after a frame is detected on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.levels.tracks import LINKED_S, linked
from adverse.plugins import relation
from adverse.relations.pairs import counting, frame_of
from adverse.relations.relation import Checks, RelationInput
from adverse.store.tables import Frames


@relation(title="objects that are missing between two frames that show them", clean=True, beside="before")
def steady(given: RelationInput) -> Checks | None:
    """Check that a detected object does not vanish for a frame or two and come back.

    The SUT's own detections are linked over the frames of a log by their overlap, as objects are for the
    metrics over time. Between the first and the last frame of such a track every frame is a check; it is a
    violation where the object is missing, and is shown where its neighbours say that it must be. Frames more
    than half a second apart are not checked: who walks is elsewhere by then, and would count as missing.
    """
    frames, answers = given.frames, counting(given.changed, given.counted)
    if not _near(frames).any():
        return None
    frame, boxes = frame_of(answers), answers.boxes.astype(np.float64)
    order = np.argsort(frame, kind="stable")
    order = order[_near(frames)[frame[order]]]
    frame, boxes = frame[order], boxes[order]
    scores = answers.scores[order].astype(np.float64)
    who = linked(frame, boxes, answers.labels[order], frames.log[frame])
    rows = np.lexsort((frame, who))
    steps = np.flatnonzero(np.diff(who[rows]) == 0)  # from a detection to the next of the same object
    inner = set(rows[steps[1:][np.diff(steps) == 1]].tolist())  # those that are neither first nor last
    checked, places, holds, weight = [], [], [], []
    for one, other in zip(rows[steps].tolist(), rows[steps + 1].tolist(), strict=True):
        if one in inner:
            checked.append(int(frame[one]))
            places.append(boxes[one])
            holds.append(True)
            weight.append(scores[one])
        for between in range(int(frame[one]) + 1, int(frame[other])):
            if given.counted[between]:
                part = (between - frame[one]) / (frame[other] - frame[one])
                checked.append(between)
                places.append(boxes[one] * (1 - part) + boxes[other] * part)
                holds.append(False)
                weight.append(min(scores[one], scores[other]))
    if not checked:
        return Checks.none()
    return Checks(np.array(checked), np.array(places), np.array(holds), np.array(weight))


def _near(frames: Frames) -> NDArray[np.bool_]:
    """Return which frames (F,) are of logs whose frames are near enough in time, or have no times."""
    near = np.ones(len(frames.ids), np.bool_)
    for log in np.unique(frames.log):
        inside = frames.log == log
        steps_s = np.diff(frames.time_s[inside])
        near[inside] = not len(steps_s) or not np.median(steps_s) > LINKED_S
    return near

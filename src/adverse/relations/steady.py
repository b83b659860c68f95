"""Consistency over time: what is detected before and after a frame is detected on it."""

from __future__ import annotations

import numpy as np

from adverse.levels.tracks import linked
from adverse.plugins import relation
from adverse.relations.pairs import counting, frame_of
from adverse.relations.relation import Checks, RelationInput


@relation(title="objects that are missing between two frames that show them", clean=True, beside="before")
def steady(given: RelationInput) -> Checks:
    """Check that a detected object does not vanish for a frame or two and come back.

    The SUT's own detections are linked over the frames of a log by their overlap, as objects are for the
    metrics over time. Between the first and the last frame of such a track every frame is a check; it is a
    violation where the object is missing, and is shown where its neighbours say that it must be.
    """
    frames, answers = given.frames, counting(given.changed, given.counted)
    frame, boxes = frame_of(answers), answers.boxes.astype(np.float64)
    order = np.argsort(frame, kind="stable")
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

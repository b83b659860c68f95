"""Random answers and truth for the tests of the levels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adverse.store.tables import Answers, Frames, TruthTable


def random_scene(
    seed: int, *, frames: int = 12, logs: int = 4, classes: int = 1, ties: bool = True
) -> tuple[Answers, TruthTable, Frames]:
    """Return detections near and far from true boxes, with tied scores and ignored truth; some logs empty."""
    rng = np.random.default_rng(seed)
    log = np.sort(rng.integers(0, logs, frames))
    truth_frame, truth_boxes, boxes, row = [], [], [], []
    for frame in range(frames):
        people = rng.integers(0, 4) if log[frame] % 2 == 0 else 0
        for _ in range(people):
            x, y = rng.integers(0, 60, 2)
            box = [x, y, x + rng.integers(8, 30), y + rng.integers(8, 30)]
            truth_frame.append(frame)
            truth_boxes.append(box)
            for _ in range(rng.integers(0, 3)):
                boxes.append(np.array(box) + rng.integers(-4, 5, 4) * [1, 1, 1, 1])
                row.append(frame)
        for _ in range(rng.integers(0, 3)):
            x, y = rng.integers(0, 80, 2)
            boxes.append(np.array([x, y, x + rng.integers(0, 20), y + rng.integers(1, 20)]))
            row.append(frame)
    count = len(boxes)
    scores = (rng.integers(0, 6, count) / 5 if ties else rng.random(count)).astype(np.float32)
    shuffled = rng.permutation(count)
    rows = np.array(row, np.int64)[shuffled]
    order = shuffled[np.argsort(rows, kind="stable")]
    array = np.array(boxes, np.float32).reshape(-1, 4)
    array[:, 2:] = np.maximum(array[:, 2:], array[:, :2])
    ends = np.cumsum(np.bincount(rows, minlength=frames))
    answers = Answers(
        frame=np.arange(frames),
        status=np.zeros(frames, np.int8),
        offsets=np.concatenate([[0], ends]).astype(np.int64),
        boxes=array[order],
        scores=scores[order],
        labels=rng.integers(0, classes, count)[order],
        depths_m=np.full(count, np.nan, np.float32),
    )
    n = len(truth_frame)
    truth = TruthTable(
        frame=np.array(truth_frame, np.int64),
        boxes=np.array(truth_boxes, np.float64).reshape(-1, 4),
        labels=rng.integers(0, classes, n),
        ignore=rng.random(n) < 0.25,
        positions_m=np.full((n, 3), np.nan),
        place=np.zeros(n, np.int64),
        area=np.zeros(n),
        crowd=np.zeros(n, np.bool_),
    )
    names = tuple(f"log{i}" for i in range(logs))
    nowhere = np.full((frames, 4, 4), np.nan), np.full((frames, 7), np.nan), np.full(frames, np.nan)
    ids = tuple(map(str, range(frames)))
    return answers, truth, Frames(ids, names, log, np.ones(frames, np.bool_), *nowhere)


def reordered(answers: Answers, seed: int) -> Answers:
    """Return the same answers with the detections of every frame in another order."""
    rng = np.random.default_rng(seed)
    order = np.concatenate(
        [
            start + rng.permutation(end - start)
            for start, end in zip(answers.offsets[:-1], answers.offsets[1:], strict=True)
        ]
    ).astype(np.int64)
    return replace(
        answers,
        boxes=answers.boxes[order],
        scores=answers.scores[order],
        labels=answers.labels[order],
        depths_m=answers.depths_m[order],
    )

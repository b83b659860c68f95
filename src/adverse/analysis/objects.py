"""What became of every true object and every frame under every setting: rows to filter, sort and look at.

Detections count from the SUT's operating point on, as in slices. For a classifier the object is the image
(found: the best class is the right one; its score is that of the right class), for a segmenter likewise (its
score is the mean IoU of the frame; nothing is found or missed).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adverse.analysis.detection_rates import best_scores
from adverse.analysis.detections import SutDetections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.analysis.strengths import RECORDED, visual_changes
from adverse.benchmarks import classification, segmentation
from adverse.benchmarks.task_table import answers_of
from adverse.levels.match import FALSE
from adverse.store.read import Store
from adverse.store.tables import QUARANTINED, STATUSES, PixelCounts, RankedClasses

_NAME = pa.dictionary(pa.int32(), pa.string())
OBJECTS = pa.schema(
    [
        *((name, _NAME) for name in ("sut", "setting", "frame")),
        ("object", pa.int32()),  # which of the frame's true objects, in the order of the data set
        ("score", pa.float32()),  # of the detection that matches it at any threshold; null: none does
        ("score_before", pa.float32()),  # the same un-mutated
        ("found", pa.bool_()),  # at the operating point; null: this task finds nothing
        ("found_before", pa.bool_()),  # the same un-mutated; null: that frame could not be used un-mutated
    ]
)
FRAMES = pa.schema(
    [
        *((name, _NAME) for name in ("sut", "setting", "frame", "status")),
        ("false_positives", pa.int32()),  # at the operating point; null: this task has none
        ("surest_false", pa.float32()),  # the highest score of a false positive
        ("surest_false_box", pa.list_(pa.float32(), 4)),  # and its box, x0 y0 x1 y1
        ("visual_change", pa.float32()),  # null: not measured
    ]
)

Changes = Mapping[tuple[str, str], float]


def measured_changes(store: Store) -> Changes:
    """Return the visual change of every (setting, frame) that was measured, by the study's first backend."""
    return {
        key: next(value for name, value in numbers.items() if name.startswith(RECORDED))
        for key, numbers in visual_changes(store).items()
    }


def detected_objects(store: Store, detections: SutDetections) -> pa.Table:
    """Return the true objects of the test frames that ran, without ignored ones, under every setting."""
    truth, baseline = store.truth, detections.baseline
    threshold = operating_threshold(store, detections).score
    scores = {
        setting: best_scores(matched, len(truth.frame)) for setting, matched in detections.settings.items()
    }
    plain = detections.counted(baseline)[truth.frame]
    tables = []
    for setting, after in scores.items():
        rows = np.flatnonzero(detections.counted(setting)[truth.frame] & ~truth.ignore)
        before = scores[baseline][rows]
        tables.append(
            _objects(
                store,
                (detections.sut, setting),
                truth.frame[rows],
                truth.place[rows],
                (after[rows], before),
                (after[rows] >= threshold, before >= threshold),
                plain[rows],
            )
        )
    return pa.concat_tables(tables)


def detected_frames(store: Store, detections: SutDetections, changes: Changes) -> pa.Table:
    """Return all test frames under every setting, with their false positives."""
    threshold, frames = operating_threshold(store, detections).score, len(store.frames.ids)
    tables = []
    for setting, matched in detections.settings.items():
        answers = matched.answers
        false = np.flatnonzero((matched.outcome == FALSE) & (answers.scores >= threshold))
        frame = answers.frame[matched.row[false]]
        count = np.bincount(frame, minlength=frames)
        surest = np.full(frames, -1, np.int64)
        order = np.lexsort((*-answers.boxes[false].T[::-1], answers.scores[false]))  # the last is kept
        surest[frame[order]] = false[order]
        rows = np.flatnonzero(store.frames.test[answers.frame])
        mine = surest[answers.frame[rows]]
        ran = answers.status[rows] != QUARANTINED
        tables.append(
            _frames(
                store,
                (detections.sut, setting),
                answers.frame[rows],
                answers.status[rows],
                changes,
                (
                    pa.array(count[answers.frame[rows]].astype(np.int32), mask=~ran),
                    pa.array(
                        answers.scores[mine] if len(answers.scores) else np.zeros(len(mine), np.float32),
                        mask=mine < 0,
                    ),
                    _boxes(answers.boxes, mine),
                ),
            )
        )
    return pa.concat_tables(tables)


def task_objects(store: Store, sut: str, changes: Changes) -> tuple[pa.Table, pa.Table]:
    """Return images as objects, and frames, of a classifier or segmenter under every setting."""
    answers = answers_of(store, sut)
    each = {setting: _image_scores(store, found) for setting, found in answers.items()}
    scores, found, counted = (
        {setting: _by_frame(store, answers[setting], part[n]) for setting, part in each.items()}
        for n in range(3)
    )
    baseline = store.run.baseline.id
    objects, frames = [], []
    for setting, ranked in answers.items():
        rows = np.flatnonzero(counted[setting] == 1)
        objects.append(
            _objects(
                store,
                (sut, setting),
                rows,
                np.zeros(len(rows), np.int64),
                (scores[setting][rows], scores[baseline][rows]),
                (found[setting][rows] == 1, found[baseline][rows] == 1)
                if isinstance(ranked, RankedClasses)
                else None,
                counted[baseline][rows] == 1,
            )
        )
        tested = np.flatnonzero(store.frames.test[ranked.frame])
        none = tuple(pa.nulls(len(tested), FRAMES.field(n).type) for n in (4, 5, 6))
        named = (sut, setting)
        frames.append(_frames(store, named, ranked.frame[tested], ranked.status[tested], changes, none))
    return pa.concat_tables(objects), pa.concat_tables(frames)


def _image_scores(
    store: Store, answers: PixelCounts | RankedClasses
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the score of each row, whether it is right, and whether it counts, as numbers."""
    counted = store.frames.test[answers.frame] & (answers.status != QUARANTINED)
    if isinstance(answers, PixelCounts):
        return segmentation.mean_iou(answers.counts), np.zeros(len(counted)), counted.astype(np.float64)
    truth = [store.categories_shown[row] or "" for row in answers.frame.tolist()]
    right = classification.hits(answers.best, truth, 1)
    scores = [
        dict(zip(best, given, strict=True)).get(name, np.nan)
        for name, best, given in zip(truth, answers.best, answers.scores, strict=True)
    ]
    return np.array(scores, np.float64), right.astype(np.float64), counted.astype(np.float64)


def _by_frame(
    store: Store, answers: PixelCounts | RankedClasses, values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return one value for each frame of the run; NaN for those that were not run."""
    spread = np.full(len(store.frames.ids), np.nan)
    spread[answers.frame] = values
    return spread


def _objects(
    store: Store,
    named: tuple[str, str],
    frame: NDArray[np.int64],
    place: NDArray[np.int64],
    scores: Sequence[NDArray[np.float64]],
    found: Sequence[NDArray[np.bool_]] | None,
    plain: NDArray[np.bool_],
) -> pa.Table:
    """Return rows of objects; scores and what is found come after and before the mutation."""
    after, before = (score.astype(np.float32) for score in scores)
    nothing = pa.nulls(len(frame), pa.bool_())
    columns = [
        *_names(store, named, frame),
        place.astype(np.int32),
        pa.array(after, mask=np.isnan(after)),
        pa.array(before, mask=np.isnan(before) | ~plain),
        nothing if found is None else pa.array(found[0]),
        nothing if found is None else pa.array(found[1], mask=~plain),
    ]
    return pa.table(columns, schema=OBJECTS)


def _frames(
    store: Store,
    named: tuple[str, str],
    frame: NDArray[np.int64],
    status: NDArray[np.int8],
    changes: Changes,
    false: Sequence[Any],
) -> pa.Table:
    seen = [changes.get((named[1], store.frames.ids[row])) for row in frame.tolist()] if changes else None
    columns = [
        *_names(store, named, frame),
        pa.DictionaryArray.from_arrays(pa.array(status.astype(np.int32)), pa.array(STATUSES)),
        *false,
        pa.nulls(len(frame), pa.float32()) if seen is None else pa.array(seen, pa.float32()),
    ]
    return pa.table(columns, schema=FRAMES)


def _names(store: Store, named: tuple[str, str], frame: NDArray[np.int64]) -> Iterator[pa.Array]:
    """Yield SUT, setting and frame of every row; each name is held once."""
    for name in named:
        yield pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(frame), np.int32)), pa.array([name]))
    ids = pa.array(store.frames.ids, pa.string())
    yield pa.DictionaryArray.from_arrays(pa.array(frame.astype(np.int32)), ids)


def _boxes(boxes: NDArray[np.float32], rows: NDArray[np.int64]) -> pa.Array:
    """Return the boxes of some detections, null where the row is none (-1)."""
    kept = boxes[rows] if len(boxes) else np.zeros((len(rows), 4), np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(kept.ravel()), 4, mask=pa.array(rows < 0))

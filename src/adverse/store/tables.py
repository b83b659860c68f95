"""The tables of a run as arrays: frames, true objects, and the answers of one SUT under one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adverse.errors import StoreError

OK, FAULT, QUARANTINED = 0, 1, 2
STATUSES = ("ok", "fault", "quarantined")


@dataclass(frozen=True, eq=False)
class Frames:
    """The frames of a run, in order; `log` indexes `logs`, `test` marks the test split."""

    ids: tuple[str, ...]
    logs: tuple[str, ...]
    log: NDArray[np.int64]
    test: NDArray[np.bool_]
    poses: NDArray[np.float64]
    """world_from_camera (F,4,4); NaN where it is not known."""
    cameras: NDArray[np.float64]
    """fx fy cx cy width height baseline_m (F,7); NaN where it is not known."""
    time_s: NDArray[np.float64]
    """When each was taken (F,), from any beginning of its log; NaN where it is not known."""


@dataclass(frozen=True, eq=False)
class TruthTable:
    """True objects of some classes, sorted by frame; `frame` indexes Frames, `labels` those classes."""

    frame: NDArray[np.int64]
    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    ignore: NDArray[np.bool_]
    positions_m: NDArray[np.float64]
    """Annotated world positions (T,3); NaN where there is none."""
    place: NDArray[np.int64]
    """Which of its frame's true objects it is, in the order of the data set."""
    area: NDArray[np.float64]
    """Pixels that it covers, as annotated or, where there is none, those of its box."""
    crowd: NDArray[np.bool_]
    """Ignored ones that are a region of many; where the format knows no such thing, all ignored ones."""
    masks: tuple[bytes, ...] | None = None
    """Compressed run lengths, in runs with masks; their sizes are those of the frames."""
    ids: NDArray[np.int64] | None = None
    """The number of each, that of its track in data that tell who is who; None: not known."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The detections of one SUT under one setting: a row for each frame that was planned.

    `frame` indexes Frames; `status` is OK, FAULT or QUARANTINED; the detections of row r are
    `offsets[r]:offsets[r+1]`, of the requested classes only.
    """

    frame: NDArray[np.int64]
    status: NDArray[np.int8]
    offsets: NDArray[np.int64]
    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]
    depths_m: NDArray[np.float32]
    positions_m: NDArray[np.float32] | None = None
    """Where the SUT itself says they are (N,3), in the frame of the camera; NaN or None: it does not."""
    masks: tuple[bytes, ...] | None = None
    """Compressed run lengths, if they were asked for; their sizes are those of the frames."""


@dataclass(frozen=True, eq=False)
class PixelCounts:
    """The confusion counts of a segmenter under one setting: a row for each frame that was planned.

    `counts` (F, C, C + 1) are pixels by true and predicted class; the last column is everything else.
    """

    frame: NDArray[np.int64]
    status: NDArray[np.int8]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RankedClasses:
    """The answers of a classifier under one setting: the best classes of each frame and their scores."""

    frame: NDArray[np.int64]
    status: NDArray[np.int8]
    best: list[list[str]]
    scores: list[list[float]]


def confusion_counts(table: pa.Table, classes: tuple[str, ...]) -> NDArray[np.int64]:
    """Return pixels by true and predicted class (F, C, C + 1) from the confusions of a segmenter."""
    columns = (*classes, "")
    lists = table["confusion"].combine_chunks()
    row = np.repeat(np.arange(len(lists)), pc.fill_null(pc.list_value_length(lists), 0).to_numpy())
    entries = lists.flatten()
    counts = np.zeros((len(lists), len(columns) - 1, len(columns)), np.int64)
    true, predicted = (
        positions(entries.field("true"), classes),
        positions(entries.field("predicted"), columns),
    )
    counts[row, true, predicted] = entries.field("pixels").to_numpy()
    return counts


def answered_truth(answers: pa.Table, score: float, schema: pa.Schema) -> pa.Table:
    """Return the answers of a SUT as true objects, from a score on; boxes without a size are left out.

    Scores are held in 32 bits, so the limit is rounded as they are: an answer of 0.7 reaches 0.7.
    """
    rows: dict[str, list[Any]] = {name: [] for name in schema.names}
    for row in answers.to_pylist():
        for at in _standing_in(row, score):
            told = {"frame": row["frame"], "id": len(rows["id"]) + 1, "label": row["labels"][at]}
            told |= {"ignore": False, "box": list(row["boxes"][at])}
            for name, column in rows.items():
                column.append(told.get(name))
    return pa.table(rows, schema=schema)


def answered_depths_m(answers: pa.Table, score: float) -> list[list[float]]:
    """Return the depths of the answers that `answered_truth` takes, frame by frame."""
    return [[row["depths"][at] for at in _standing_in(row, score)] for row in answers.to_pylist()]


def _standing_in(row: Mapping[str, Any], score: float) -> list[int]:
    """Return which answers of a frame count as true objects."""
    least = float(np.float32(score))
    found = enumerate(zip(row["boxes"] or [], row["scores"] or [], strict=True))
    return [at for at, (box, one) in found if one >= least and box[2] > box[0] and box[3] > box[1]]


def answers_in_order(
    table: pa.Table,
    frames: tuple[str, ...],
    classes: tuple[str, ...],
    sizes: Mapping[str, tuple[int, int] | None],
    *,
    where: str,
) -> Answers:
    """Return rows of detections in the order of the frames, of some classes; masks where there are columns.

    `sizes` are the true (height, width) by frame, which masks must have.
    """
    frame = positions(table["frame"], frames)
    order = np.argsort(frame, kind="stable")
    table = table.take(pa.array(order)).combine_chunks()
    lists = table["scores"].combine_chunks()
    counts = pc.list_value_length(lists).to_numpy()
    labels = positions(table["labels"].combine_chunks().flatten(), classes)
    counted = labels >= 0
    row = np.repeat(np.arange(len(counts)), counts)[counted]
    boxes = table["boxes"].combine_chunks().flatten().flatten().to_numpy().reshape(-1, 4)
    masked = "masks" in table.column_names
    return Answers(
        frame=frame[order],
        status=positions(table["status"], STATUSES).astype(np.int8),
        offsets=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(counts)))]).astype(np.int64),
        boxes=boxes[counted],
        scores=lists.flatten().to_numpy()[counted],
        labels=labels[counted],
        depths_m=table["depths"].combine_chunks().flatten().to_numpy()[counted],
        positions_m=_reported(table["positions_m"].combine_chunks(), counts, counted),
        masks=_masks(table, sizes, counted, where) if masked else None,
    )


def _reported(
    lists: Any, counts: NDArray[np.int64], counted: NDArray[np.bool_]
) -> NDArray[np.float32] | None:
    """Return where SUTs say that detections are (N,3), NaN where they do not; None where they never do."""
    given = lists.is_valid().to_numpy(zero_copy_only=False)
    if not given.any():
        return None
    places = np.full((int(counts.sum()), 3), np.nan, np.float32)
    places[np.repeat(given, counts)] = lists.flatten().flatten().to_numpy().reshape(-1, 3)
    return places[counted]


def _masks(
    table: pa.Table, sizes: Mapping[str, tuple[int, int] | None], wanted: NDArray[np.bool_], where: str
) -> tuple[bytes, ...]:
    for frame, size in zip(table["frame"].to_pylist(), table["mask_size"].to_pylist(), strict=True):
        true = sizes[frame]
        if size is not None and any(size) and true is not None and tuple(size) != true:
            raise StoreError(
                "masks are not of the size of their image",
                where=f"{where}, frame {frame!r}",
                got=f"{size[1]}x{size[0]}",
                wanted=f"{true[1]}x{true[0]}",
                fix="Record masks of the image's size, and run the study again.",
            )
    every = table["masks"].combine_chunks().flatten().to_pylist()
    return tuple(mask for mask, counts in zip(every, wanted.tolist(), strict=True) if counts)


def vectors(column: Any, width: int) -> NDArray[np.float64]:
    """Return a column of lists as (N, width); NaN where a list is missing."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    rows = np.full((len(whole), width), np.nan)
    rows[whole.is_valid().to_numpy(zero_copy_only=False)] = whole.flatten().to_numpy().reshape(-1, width)
    return rows


def place_in_group(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each entry how many of the same group stand before it."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], group[order], side="left")
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - starts
    return place


def positions(column: Any, values: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the position of each entry in `values`, -1 where it is not there."""
    positions = pc.index_in(column, value_set=pa.array(values, pa.string()))
    if isinstance(positions, pa.ChunkedArray):
        positions = positions.combine_chunks()
    filled: NDArray[np.int64] = pc.fill_null(positions, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return filled

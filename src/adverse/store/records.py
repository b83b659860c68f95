"""The result of one (frame, setting, SUT), and the Parquet table of many.

One row each, also where nothing was found or nothing could be run, so that counts always add up:
planned = ok + fault + quarantined. What a worker hands over may also be unreachable: nothing is known of the
SUT then, the cell is not finished, and of its rows only the counts of requests are kept.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.types import Detections

Status = Literal["ok", "fault", "quarantined", "unreachable"]

CONFUSION = pa.struct([("true", pa.string()), ("predicted", pa.string()), ("pixels", pa.int64())])
"""`predicted` is empty for a class that the data set does not have, and where there is no answer."""

FAILURE = pa.struct(
    [("kind", pa.string()), ("message", pa.string()), ("images", pa.int32()), ("answered", pa.bool_())]
)
OUTAGES = ("connection", "machine")
"""The kinds of failure that say nothing about the SUT."""
MUTATION_ENDED = "the mutation was ended: "
"""How the reason begins why a frame is not used whose mutation took too long or too much memory."""

DEPTH_QUANTILES = 32
QUANTILES = pa.list_(pa.list_(pa.float32(), DEPTH_QUANTILES))

SCHEMA = pa.schema(
    [
        ("frame", pa.string()),
        ("setting", pa.string()),
        ("sut", pa.string()),
        ("status", pa.string()),  # ok; fault: the SUT failed; quarantined: the frame could not be used
        ("reason", pa.string()),  # why, where status is not ok
        ("pixels", pa.string()),  # blake2b of the decoded image before mutation
        ("notes", pa.string()),  # what decoding normalised: gray, palette, ...
        ("attempts", pa.int32()),  # requests to the SUT that began with this image, in a batch or alone
        ("failed_attempts", pa.int32()),  # of these; a batch that failed counts once
        ("outages", pa.int32()),  # requests that did not reach it
        (
            "failures",
            pa.list_(FAILURE),
        ),  # each of both: kind, message, images in it, answered when sent again?
        ("retried", pa.string()),  # why the first attempt failed, where a later one gave an answer
        ("repeats", pa.bool_()),  # asked twice: did it give the same answer? null: asked once
        ("repeats_at_once", pa.bool_()),  # after a different answer: is the next one like it? null: not asked
        ("mutated", pa.string()),  # blake2b of the image after mutation by a plug-in
        ("mutation_repeats", pa.bool_()),  # mutated twice: are the pixels the same? null: mutated once
        ("truth_depths", pa.list_(pa.float32())),  # metres; of the true boxes, on un-mutated frames
        ("truth_depth_quantiles", QUANTILES),  # metres; of the pixels in each true box, mutated by depth
        ("truth_depth_pixels", pa.list_(pa.int32())),  # how many pixels these are of
        ("boxes", pa.list_(pa.list_(pa.float32(), 4))),  # x0 y0 x1 y1 pixels
        ("scores", pa.list_(pa.float32())),
        ("labels", pa.list_(pa.string())),
        ("depths", pa.list_(pa.float32())),  # metres, of each box on the un-mutated depth map; NaN: none
        (
            "positions_m",
            pa.list_(pa.list_(pa.float32(), 3)),
        ),  # in the camera's frame, where the SUT says it
        ("mask_size", pa.list_(pa.int32(), 2)),  # height, width of the masks; null: the run keeps none
        ("masks", pa.list_(pa.binary())),  # of each detection, as COCO's compressed run lengths
        ("confusion", pa.list_(CONFUSION)),  # of a segmenter: pixels by true and predicted class
        ("label_map", pa.binary()),  # of a segmenter, if the study keeps them: PNG of its own labels
        ("ranked", pa.list_(pa.string())),  # of a classifier: the best classes, best first
        ("ranked_scores", pa.list_(pa.float32())),
        ("details", pa.map_(pa.string(), pa.float64())),  # numbers that a mutation reports about what it did
    ]
)
PLAIN = SCHEMA.names[: SCHEMA.get_field_index("boxes")]
OPTIONAL = SCHEMA.names[SCHEMA.get_field_index("positions_m") :]
"""What some SUTs and tasks have beside boxes; null elsewhere."""


NOTHING = Detections.none()
GROUP_ROWS = 1 << 20
"""Rows of a row group, as Arrow has them unless it is told."""


@dataclass(frozen=True)
class Failure:
    """A request that failed: what kind of fault, how many images it held, whether they were answered later.

    Kinds: exception, bad answer, crash, time-out, unattributed (the death of a worker that held others too);
    connection and machine (no memory) say nothing of the SUT.
    """

    kind: str
    message: str
    images: int = 1
    answered: bool = False


@dataclass(frozen=True)
class Record:
    """One row. `labels` are class names of the data set, one for each detection."""

    frame: str
    setting: str
    sut: str
    status: Status
    detections: Detections = NOTHING
    labels: tuple[str, ...] = ()
    reason: str | None = None
    pixels: str | None = None
    notes: str | None = None
    attempts: int = 0
    failed_attempts: int = 0
    outages: int = 0
    failures: tuple[Failure, ...] = ()
    retried: str | None = None
    repeats: bool | None = None
    repeats_at_once: bool | None = None
    mutated: str | None = None
    mutation_repeats: bool | None = None
    truth_depths: list[float] | None = None
    truth_depth_quantiles: list[list[float]] | None = None
    truth_depth_pixels: list[int] | None = None
    depths: NDArray[np.float32] | None = None
    confusion: list[dict[str, str | int]] | None = None
    label_map: bytes | None = None
    ranked: list[str] | None = None
    ranked_scores: list[float] | None = None
    details: Mapping[str, float] = field(default_factory=dict)


def to_parquet(records: Sequence[Record]) -> bytes:
    """Write records as Parquet; equal records give equal bytes."""
    lengths = [len(record.detections) for record in records]
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    boxes = _joined([record.detections.boxes.reshape(-1) for record in records])
    scores = _joined([record.detections.scores for record in records])
    labels = pa.array([label for record in records for label in record.labels], pa.string())
    columns: list[Any] = [_column(records, name) for name in PLAIN]
    columns.append(
        pa.ListArray.from_arrays(
            offsets, pa.FixedSizeListArray.from_arrays(boxes, 4), type=SCHEMA.field("boxes").type
        )
    )
    columns.append(pa.ListArray.from_arrays(offsets, scores, type=SCHEMA.field("scores").type))
    columns.append(pa.ListArray.from_arrays(offsets, labels, type=SCHEMA.field("labels").type))
    depths = _joined([_depths(record) for record in records])
    columns.append(pa.ListArray.from_arrays(offsets, depths, type=SCHEMA.field("depths").type))
    columns += [_column(records, name) for name in OPTIONAL]
    return table_bytes(pa.Table.from_arrays(columns, schema=SCHEMA))


def keys_in(parquet: bytes) -> list[tuple[str, str, str]]:
    """Return the frame, setting and SUT of each row, in their order."""
    table = pq.read_table(io.BytesIO(parquet), columns=["frame", "setting", "sut"])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def table_bytes(table: pa.Table) -> bytes:
    """Write any table as Parquet bytes, the same way everywhere."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def tables_bytes(tables: Iterable[pa.Table], schema: pa.Schema) -> bytes:
    """Write small tables to the bytes that `table_bytes` makes of all together, one row group at a time."""
    sink, written = io.BytesIO(), 0
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        waiting = schema.empty_table()
        for table in tables:
            waiting = pa.concat_tables([waiting, table])
            while len(waiting) >= GROUP_ROWS:
                writer.write_table(waiting.slice(0, GROUP_ROWS).combine_chunks())
                waiting, written = waiting.slice(GROUP_ROWS), written + GROUP_ROWS
        if len(waiting) or not written:
            writer.write_table(waiting.combine_chunks())
    return sink.getvalue()


def _column(records: Sequence[Record], name: str) -> pa.Array:
    if name == "positions_m":
        positions = [record.detections.positions_m for record in records]
        return pa.array(
            [None if some is None else some.tolist() for some in positions], SCHEMA.field(name).type
        )
    if name in ("mask_size", "masks"):
        every = [record.detections.masks for record in records]
        sizes = name == "mask_size"
        return pa.array(
            [None if masks is None else list(masks.size if sizes else masks.counts) for masks in every],
            SCHEMA.field(name).type,
        )
    values = [getattr(record, name) for record in records]
    if name == "details":
        values = [sorted(details.items()) or None for details in values]
    if name == "failures":
        values = [[asdict(failure) for failure in failures] or None for failures in values]
    return pa.array(values, SCHEMA.field(name).type)


class Growing:
    """A Parquet table that is written piece by piece, one row group or more for each."""

    def __init__(self) -> None:
        self._sink = io.BytesIO()
        self._writer: pq.ParquetWriter | None = None

    def add(self, table: pa.Table) -> None:
        """Write some more rows, of the same columns."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._sink, table.schema, compression="zstd")
        self._writer.write_table(table)

    def data(self) -> bytes:
        """Finish, and return the whole file."""
        if self._writer is not None:
            self._writer.close()
        return self._sink.getvalue()


def _depths(record: Record) -> NDArray[np.float32]:
    return np.full(len(record.detections), np.nan, np.float32) if record.depths is None else record.depths


def _joined(parts: list[np.ndarray[Any, np.dtype[np.float32]]]) -> pa.Array:
    return pa.array(np.concatenate(parts) if parts else np.zeros(0, np.float32), pa.float32())

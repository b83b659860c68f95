"""The file of a resource set: Arrow IPC, written batch by batch, read by mapping it into memory."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.content import ChangedError, PlannedFiles, content_hash, digest
from adverse.errors import AdverseError, DataError
from adverse.semantic.cutouts import cutouts, in_rows
from adverse.semantic.scenes import scene_of
from adverse.types import Dataset, Frame

VERSION = "6"
"""Changes whenever the same data would make another file."""
KEY = b"adverse.resources"
NUMBERS = {
    "instance": "int32",
    "x0": "int32",
    "y0": "int32",
    "x1": "int32",
    "y1": "int32",
    "pixels": "int32",
    "components": "int32",
    "frame_width": "int32",
    "frame_height": "int32",
    "median_value": "float32",
    "largest_part": "float64",
    "vanishing_x": "float64",
    "vanishing_y": "float64",
    "depth_near_m": "float32",
    "depth_far_m": "float32",
    "nearness": "float64",
    "horizon_row": "float64",
    "camera_height_m": "float64",
    "scale_px_m": "float64",
    "around_r": "float32",
    "around_g": "float32",
    "around_b": "float32",
}
FLAGS = ("occluded", "cut", "standing")
TEXTS = ("scene", "log", "class_name", "notes", "fault")
BLOBS = ("polygon", "alpha", "rgb", "depth_m")
BATCH_BYTES = 2**26
AT_ONCE = 16
"""Frames that are decoded before the first of them is written."""

Watch = Callable[[int, int], None]


class Blobs(NamedTuple):
    """The bytes of one column, one array of bytes and one of borders for each batch."""

    first: NDArray[np.int64]
    """The number of the first row of each batch."""
    borders: list[NDArray[np.int64]]
    data: list[NDArray[np.uint8]]

    def row(self, number: int) -> NDArray[np.uint8]:
        """Return the bytes of a row, without copying them; none for a missing value."""
        batch = int(np.searchsorted(self.first, number, side="right")) - 1
        at = number - int(self.first[batch])
        return self.data[batch][self.borders[batch][at] : self.borders[batch][at + 1]]


class ResourceColumns(NamedTuple):
    """What a file holds: its key, columns of numbers and texts, columns of bytes."""

    key: str
    columns: Mapping[str, NDArray[Any]]
    blobs: Mapping[str, Blobs]


def hash_files(dataset: Dataset) -> dict[Path, str]:
    """Return the hash of each file that a resource set is made from."""
    paths = sorted({source.path for frame in usable_frames(dataset) for source in _sources(frame)})
    with ThreadPoolExecutor() as pool:
        return dict(zip(paths, pool.map(content_hash, paths), strict=True))


def resource_key(dataset: Dataset, hashes: Mapping[Path, str]) -> str:
    """Return the hash of everything that decides a resource set: file contents, how they are read, names."""
    parts = [VERSION, json.dumps(sorted(dataset.pixel_classes.items()))]
    for frame in usable_frames(dataset):
        pose = b"" if frame.world_from_camera is None else frame.world_from_camera.tobytes()
        sources = [part for source in _sources(frame) for part in (hashes[source.path], source.recipe)]
        parts.append(digest(frame.id, frame.log_id, repr(frame.camera), pose, *sources))
    return digest(*parts)


def usable_frames(dataset: Dataset) -> Iterator[Frame]:
    """Yield the frames that have both labels and instances."""
    for log in dataset.logs:
        for frame in log.frames:
            if frame.fault is None and frame.labels is not None and frame.instances is not None:
                yield frame


def write_resources(
    path: Path, key: str, dataset: Dataset, hashes: Mapping[Path, str], watch: Watch | None
) -> None:
    """Cut out the objects of all usable frames into a file, which appears only when it is whole.

    Raises ChangedError where a file is not what its hash says.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and most commands do not need it

    frames = list(usable_frames(dataset))
    path.parent.mkdir(parents=True, exist_ok=True)
    number, unfinished = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    os.close(number)
    try:
        schema = _schema(key)
        with pa.OSFile(unfinished, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for rows in _in_batches(_all_rows(frames, dataset, hashes, watch)):
                columns = [
                    pa.array([row.get(name) for row in rows], schema.field(name).type)
                    for name in schema.names
                ]
                writer.write_batch(pa.record_batch(columns, schema=schema))
        Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)


def read_resources(path: Path) -> ResourceColumns:
    """Map a file into memory; a file that is not a resource set, or of another version, is an error."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        metadata = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    except (OSError, pa.ArrowInvalid, ValueError) as error:
        raise _unreadable(path, " ".join(str(error).split())) from error
    if metadata.get("version") != VERSION or table.schema != _schema(metadata.get("key", "")):
        raise _unreadable(path, f"version {metadata.get('version')}")
    columns: dict[str, NDArray[Any]] = {}
    for name, kind in NUMBERS.items():
        column = table[name].combine_chunks()
        columns[name] = column.fill_null(np.nan if kind.startswith("f") else 0).to_numpy(zero_copy_only=False)
    for name in FLAGS:
        columns[name] = table[name].combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
    for name in TEXTS:
        columns[name] = table[name].combine_chunks().fill_null("").to_numpy(zero_copy_only=False)
    return ResourceColumns(metadata["key"], columns, {name: _blobs(table[name]) for name in BLOBS})


def _sources(frame: Frame) -> list[Any]:
    every = (frame.image, frame.labels, frame.instances, frame.behind, frame.depth_m)
    return [source for source in every if source is not None]


def _schema(key: str) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    fields = [
        *((name, pa.string()) for name in TEXTS),
        *((name, pa.type_for_alias(kind)) for name, kind in NUMBERS.items()),
        *((name, pa.bool_()) for name in FLAGS),
        *((name, pa.large_binary()) for name in BLOBS),
    ]
    return pa.schema(fields, metadata={KEY: json.dumps({"key": key, "version": VERSION})})


def _blobs(column: Any) -> Blobs:
    first, borders, data = [], [], []
    seen = 0
    for chunk in column.chunks:
        _, ends, content = chunk.buffers()
        first.append(seen)
        borders.append(np.frombuffer(ends, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1])
        data.append(np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8))
        seen += len(chunk)
    return Blobs(np.array(first, np.int64), borders, data)


def _all_rows(
    frames: list[Frame], dataset: Dataset, hashes: Mapping[Path, str], watch: Watch | None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of all frames in order, a few frames being decoded at once."""
    faults = []
    done = 0
    with ThreadPoolExecutor(min(os.cpu_count() or 1, AT_ONCE)) as pool:
        for start in range(0, len(frames), AT_ONCE):
            some = frames[start : start + AT_ONCE]
            for frame, rows in zip(
                some, pool.map(lambda member: _rows_or_fault(member, dataset, hashes), some), strict=True
            ):
                if isinstance(rows, AdverseError):
                    faults.append(rows)
                    yield {"scene": frame.id, "log": frame.log_id, "instance": 0, "fault": str(rows)}
                else:
                    yield from rows
                done += 1
                if watch is not None:
                    watch(done, len(frames))
    if len(faults) == len(frames):
        raise faults[0]


def _rows_or_fault(
    frame: Frame, dataset: Dataset, hashes: Mapping[Path, str]
) -> list[dict[str, Any]] | AdverseError:
    files = PlannedFiles(hashes)
    try:
        scene = scene_of(files.of(frame), dataset)
        return list(in_rows(scene, *cutouts(scene)))
    except AdverseError as error:
        if files.changed:
            raise ChangedError(files.changed) from error
        return error


def _in_batches(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        batch.append({**row, "notes": json.dumps(row.get("notes", {}))})
        size += sum(len(row.get(name) or b"") for name in BLOBS)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _unreadable(path: Path, got: str) -> DataError:
    return DataError(
        "the resource set cannot be read",
        where=str(path),
        got=got,
        wanted=f"a file that `adverse fuzz resources` wrote, version {VERSION}",
        fix="Remove the file; it is made again when it is needed.",
    )

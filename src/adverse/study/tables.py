"""What a run knows before it starts, as tables in its folder: frames, truth, inputs, finished cells.

With them the quick half needs neither the data set nor the code that read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from adverse.store.records import table_bytes
from adverse.study.plan import Plan
from adverse.types import Frame, Log

FRAMES = pa.schema(
    [
        ("frame", pa.string()),
        ("image_id", pa.string()),
        ("log", pa.string()),
        ("split", pa.string()),
        ("index", pa.int32()),
        ("time_s", pa.float64()),
        ("world_from_camera", pa.list_(pa.float64())),  # 4 x 4, row by row
        ("camera", pa.list_(pa.float64())),  # fx fy cx cy width height baseline_m (NaN: none)
        ("category", pa.string()),  # what the whole image shows, in data for classifiers
        ("fault", pa.string()),
    ]
)
TRUTH = pa.schema(
    [
        ("frame", pa.string()),
        ("id", pa.int64()),
        ("label", pa.string()),
        ("ignore", pa.bool_()),
        ("box", pa.list_(pa.float64(), 4)),  # x0 y0 x1 y1 pixels
        ("position_m", pa.list_(pa.float64(), 3)),  # world x y z, null: not known
        ("area", pa.float64()),  # pixels, as annotated; null: not told
        ("crowd", pa.bool_()),  # a region of many; null: the format knows no such thing
    ]
)
INPUTS = pa.schema([("path", pa.string()), ("sha256", pa.string())])
CELLS = pa.schema(
    [("key", pa.string()), ("setting", pa.string()), ("sut", pa.string()), ("file", pa.string())]
)


def frames_table(logs: Iterable[Log], categories: tuple[str, ...]) -> bytes:
    """Return the frames of all logs but those for training."""
    pairs = [(log, frame) for log in logs if log.split != "train" for frame in log.frames]
    rows = [
        {
            "frame": frame.id,
            "image_id": str(frame.image_id),
            "log": log.id,
            "split": log.split,
            "index": frame.index,
            "time_s": frame.time_s,
            "world_from_camera": None
            if frame.world_from_camera is None
            else [float(value) for value in frame.world_from_camera.ravel()],
            "camera": _camera(frame),
            "category": None if frame.category is None else categories[frame.category],
            "fault": frame.fault,
        }
        for log, frame in pairs
    ]
    return table_bytes(pa.Table.from_pylist(rows, schema=FRAMES))


def truth_table(logs: Iterable[Log], categories: tuple[str, ...]) -> bytes:
    """Return the true objects of the same frames."""
    rows = [
        {
            "frame": frame.id,
            "id": int(frame.truth.ids[row]),
            "label": categories[int(frame.truth.labels[row])],
            "ignore": bool(frame.truth.ignore[row]),
            "box": frame.truth.boxes[row].tolist(),
            "position_m": None if frame.truth.positions_m is None else frame.truth.positions_m[row].tolist(),
            "area": _known_area(frame, row),
            "crowd": None if frame.truth.crowd is None else bool(frame.truth.crowd[row]),
        }
        for log in logs
        if log.split != "train"
        for frame in log.frames
        for row in range(len(frame.truth.ids))
    ]
    return table_bytes(pa.Table.from_pylist(rows, schema=TRUTH))


def inputs_table(inputs: Mapping[Path, str]) -> bytes:
    """Return the hash of every input file."""
    rows = [{"path": str(path), "sha256": found} for path, found in sorted(inputs.items())]
    return table_bytes(pa.Table.from_pylist(rows, schema=INPUTS))


def cells_table(plan: Plan, files: Mapping[str, str]) -> bytes:
    """Return the cells of the plan that are finished, and the file that holds each."""
    rows = [
        {
            "key": cell.key,
            "setting": plan.job.settings[cell.setting].id,
            "sut": plan.job.suts[cell.sut].name,
            "file": files[cell.key],
        }
        for unit in plan.units
        for cell in unit.cells
        if cell.key in files
    ]
    return table_bytes(pa.Table.from_pylist(rows, schema=CELLS))


def _known_area(frame: Frame, row: int) -> float | None:
    area = frame.truth.area
    return None if area is None or math.isnan(area[row]) else float(area[row])


def _camera(frame: Frame) -> list[float] | None:
    camera = frame.camera
    if camera is None:
        return None
    baseline = float("nan") if camera.baseline_m is None else camera.baseline_m
    return [camera.fx, camera.fy, camera.cx, camera.cy, camera.width, camera.height, baseline]

"""A run folder of any size without images: drives past people, and what detectors might say about them.

Written as a real run is, unit by unit through the store, so that `adverse analyze` cannot tell.
"""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import adverse
from adverse import plugins
from adverse.content import digest
from adverse.mutations.settings import parse
from adverse.robot.profile import Robot
from adverse.seeds import generator
from adverse.store.durable import write_file
from adverse.store.folder import RunFolder
from adverse.store.journal import RunEntry, RunJournal
from adverse.store.records import DEPTH_QUANTILES, SCHEMA, table_bytes
from adverse.store.run import setting_entry
from adverse.study.provenance import CELLS, INPUTS, frames_table, truth_table
from adverse.types import Camera, Frame, Log, Truth

CAMERA = Camera(fx=600.0, fy=600.0, cx=511.5, cy=271.5, width=1024, height=544)
CAMERA_HEIGHT_M = 1.5
STEP_M = 0.3
TALL_M, WIDE_M = 1.75, 0.6
NEAREST_M, FURTHEST_M = 1.0, 25.0
UNIT_FRAMES = 8
LEVELS = ("image", "located", "path", "loop")
CONTEXTUAL = ("haze(visibility_m={})", "defocus(focus_m={}, kappa=2)")
SIMPLE = (
    "gaussian_blur(sigma_px={})",
    "alpha_blend(alpha=0.{})",
    "brightness(scale=0.{})",
    "salt_pepper(fraction=0.{})",
)


@dataclass(frozen=True)
class Size:
    """How much of everything; `detections` is the mean number per image."""

    suts: int = 12
    conditions: int = 23
    logs: int = 240
    frames_per_log: int = 100
    validation_logs: int = 24
    detections: float = 5.0
    bootstrap: int = 1000
    mutations: tuple[str, ...] = ()
    """Settings besides the baseline; made up if none are given."""
    levels: tuple[str, ...] = LEVELS
    unit_frames: int = UNIT_FRAMES


class _NoImage:
    """Stands where a real data set has an image; nobody looks."""

    path = Path("none.png")
    recipe = "none"

    def __call__(self) -> NDArray[np.uint8]:
        return np.zeros((1, 1, 3), np.uint8)


NO_STUDY = b"name: scale\ndata: {format: folder, root: there-are-no-images}\n"


def write_run(path: Path, size: Size, *, seed: int = 1, study: bytes = NO_STUDY) -> None:
    """Write the whole run folder; `study` is what its pictures are found by, if there are any."""
    folder = RunFolder(path)
    folder.create()
    logs = list(_logs(size, seed))
    settings = ["identity", *size.mutations] if size.mutations else _settings(size.conditions)
    names = {"settings": settings, "suts": [f"sut{k:02d}" for k in range(size.suts)]}
    write_file(folder.study, study)
    write_file(folder.frames, frames_table(logs, ("person",)))
    write_file(folder.truth, truth_table(logs, ("person",)))
    write_file(folder.inputs, table_bytes(INPUTS.empty_table()))
    journal = RunJournal(folder.journal)
    cells: list[pa.Table] = []
    skill = generator(seed, "skill").uniform(0.5, 1.0, (size.suts, len(settings)))
    for split in ("validation", "test"):
        settings = names["settings"] if split == "test" else names["settings"][:1]
        for frames in _units([log for log in logs if log.split == split], size.unit_frames):
            name = digest(frames[0].id, size=8)
            data = table_bytes(_unit(frames, settings, names["suts"], skill, size, seed))
            file = f"{name}.parquet"
            write_file(folder.detections / file, data, flush=False)
            keyed = tuple((digest(name, s, k), s, k) for s in settings for k in names["suts"])
            journal.append(RunEntry(file, hashlib.sha256(data).hexdigest(), keyed))
            keys, of_setting, of_sut = (list(column) for column in zip(*keyed, strict=True))
            cells.append(pa.table([keys, of_setting, of_sut, [file] * len(keys)], schema=CELLS))
    write_file(folder.cells, table_bytes(pa.concat_tables(cells).combine_chunks()))
    folder.write_manifest({**_manifest(names, size, seed), "status": "complete"})


def _units(logs: list[Log], most: int) -> Iterator[tuple[Frame, ...]]:
    """Yield the frames of long logs in parts, and those of logs of one frame together."""
    if all(len(log.frames) == 1 for log in logs):
        frames = [frame for log in logs for frame in log.frames]
        parts = [frames]
    else:
        parts = [list(log.frames) for log in logs]
    for part in parts:
        for start in range(0, len(part), most):
            yield tuple(part[start : start + most])


def _manifest(names: dict[str, list[str]], size: Size, seed: int) -> dict[str, object]:
    registry = plugins.load()
    groups = ["baseline", *("mild" if n % 3 else "severe" for n in range(1, len(names["settings"])))]
    return {
        "study": {"name": "scale", "task": "detection", "seed": seed, "file": "study.yaml", "folder": "."},
        "adverse": {"version": adverse.__version__, "commit": None},
        "environment": {"python": platform.python_version(), "system": "", "cpu": "", "libraries": {}},
        "engine": {"name": "none: made up", "workers": 0},
        "data": {
            "format": "synthetic",
            "annotations": {},
            "categories": ["person"],
            "fingerprint": digest(str(size), str(seed)),
            "frames": {
                "validation": size.validation_logs * size.frames_per_log,
                "test": size.logs * size.frames_per_log,
            },
            "logs": size.validation_logs + size.logs,
            "notes": {},
            "pixel_classes": {},
        },
        "suts": {name: {"fingerprint": digest(name)} for name in names["suts"]},
        "settings": {
            name: {**setting_entry(parse(name, registry)), "group": group}
            for name, group in zip(names["settings"], groups, strict=True)
        },
        "warnings": [],
        "statistics": {
            "targets": ["person"],
            "levels": list(size.levels),
            "metrics": [],
            "localizer": "foreground",
            "robot": asdict(Robot(control_radius_m=2.0, safety_radius_m=1.0)),
            "sensitivity": {"levels": 100, "lowest": 1e-4, "highest": 1.0},
            "fpr_max": 0.1,
            "operating_points": {name: {"sensitivity": 0.1, "score": None} for name in names["suts"]},
            "bootstrap": size.bootstrap,
            "conditions": {},
            "quarantine_budget": 0.01,
            "visual_change": None,
        },
    }


def _settings(count: int) -> list[str]:
    """Return settings of several families, mildest last, as canonical ids; the first is the baseline."""
    forms = (*CONTEXTUAL, *SIMPLE)
    return ["identity", *(forms[n % len(forms)].format(1 + n // len(forms)) for n in range(count - 1))]


def _logs(size: Size, seed: int) -> Iterator[Log]:
    splits = [("validation", size.validation_logs), ("test", size.logs)]
    for split, count in splits:
        for number in range(count):
            name = f"{split}/{number:04d}"
            poses = _drive(size.frames_per_log, generator(seed, name, "path"))
            people = _people(poses, generator(seed, name, "people")) if number % 2 == 0 else np.zeros((0, 3))
            frames = tuple(
                Frame(
                    id=f"{name}/{index:05d}",
                    log_id=name,
                    index=index,
                    image=_NoImage(),
                    truth=_truth(pose, people),
                    image_id=f"{name}/{index:05d}",
                    time_s=index * STEP_M / 3.0,
                    camera=CAMERA,
                    world_from_camera=pose,
                )
                for index, pose in enumerate(poses)
            )
            yield Log(name, frames, split)  # type: ignore[arg-type]


def _drive(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return poses (N,4,4) along a gently winding path at uneven steps."""
    heading = np.cumsum(rng.normal(0, 0.004, count))
    step = STEP_M * rng.uniform(0.8, 1.2, count)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, 0, 3] = np.cumsum(step * np.cos(heading))
    poses[:, 1, 3] = np.cumsum(step * np.sin(heading))
    poses[:, 2, 3] = CAMERA_HEIGHT_M
    cos, sin = np.cos(heading), np.sin(heading)
    zero = np.zeros(count)
    poses[:, :3, 0] = np.stack([sin, -cos, zero], axis=1)  # right
    poses[:, :3, 1] = (0, 0, -1)  # down
    poses[:, :3, 2] = np.stack([cos, sin, zero], axis=1)  # ahead
    return poses


def _people(poses: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return one to three people standing about the path, most of them in its way."""
    chosen = poses[rng.integers(len(poses) // 2, len(poses), rng.integers(1, 4))]
    aside = rng.normal(0, 1.2, len(chosen))
    places = chosen[:, :3, 3] + 4.0 * chosen[:, :3, 2] - aside[:, None] * chosen[:, :3, 0]
    places[:, 2] = TALL_M / 2
    return np.asarray(places)


def _truth(pose: NDArray[np.float64], people: NDArray[np.float64]) -> Truth:
    seen = (people - pose[:3, 3]) @ pose[:3, :3]
    depth = seen[:, 2]
    kept = (depth > NEAREST_M) & (depth < FURTHEST_M)
    boxes = _boxes(seen[kept])
    inside = (boxes[:, 2] > 8) & (boxes[:, 0] < CAMERA.width - 8)
    count = int(inside.sum())
    return Truth(
        boxes[inside],
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.flatnonzero(kept)[inside].astype(np.int64),
        people[kept][inside],
    )


def _boxes(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the boxes of people at points (N,3) of the camera, cut at the image's border."""
    u = CAMERA.fx * points[:, 0] / points[:, 2] + CAMERA.cx + 0.5
    v = CAMERA.fy * points[:, 1] / points[:, 2] + CAMERA.cy + 0.5
    wide, tall = CAMERA.fx * WIDE_M / points[:, 2] / 2, CAMERA.fy * TALL_M / points[:, 2] / 2
    boxes = np.stack([u - wide, v - tall, u + wide, v + tall], axis=1)
    return np.clip(boxes, 0, [CAMERA.width, CAMERA.height] * 2)


def _unit(
    frames: tuple[Frame, ...],
    settings: list[str],
    suts: list[str],
    skill: NDArray[np.float64],
    size: Size,
    seed: int,
) -> pa.Table:
    """Return the records of some frames: rows by frame, setting and SUT."""
    rng = generator(seed, frames[0].id, "answers")
    cells = len(settings) * len(suts)
    rows = len(frames) * cells
    quality = skill[: len(suts), : len(settings)].T.ravel()
    parts = []
    for number, frame in enumerate(frames):
        true = frame.truth.boxes
        row = np.repeat(np.arange(cells), len(true))
        found = rng.random(len(row)) < quality[row]
        tp = row[found] + number * cells
        box = np.tile(true, (cells, 1))[found]
        box = box + rng.normal(0, 0.06, box.shape) * (box[:, [2]] - box[:, [0]])
        depth = np.tile(_depths(frame), cells)[found] + rng.normal(0, 0.15, len(tp))
        score = rng.beta(6 * quality[row[found]], 2)
        count = rng.poisson(size.detections - len(true) * 0.75, cells)
        fp = np.repeat(np.arange(cells), count) + number * cells
        away = rng.uniform(2.0, 30.0, len(fp))
        across = rng.uniform(-0.7, 0.7, len(fp)) * away
        wrong = _boxes(np.stack([across, np.full(len(fp), 0.6), away], axis=1))
        parts.append((tp, box, depth, score))
        parts.append((fp, wrong, away, rng.beta(1, 8, len(fp))))
    row, box, depth, score = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-score, row))
    offsets = pa.array(np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))]).astype(np.int32))
    blank = pa.nulls(rows, pa.string())
    flat = pa.array(box[order].astype(np.float32).ravel())
    boxes = pa.FixedSizeListArray.from_arrays(flat, 4)
    true_depths = [
        [float(d) for d in _depths(frame)] if setting == settings[0] else None
        for frame in frames
        for setting in settings
        for _ in suts
    ]
    columns = {
        "frame": [frame.id for frame in frames for _ in range(cells)],
        "setting": [setting for _ in frames for setting in settings for _ in suts],
        "sut": suts * (rows // len(suts)),
        "status": ["ok"] * rows,
        "reason": blank,
        "pixels": [digest(frame.id) for frame in frames for _ in range(cells)],
        "notes": blank,
        "attempts": pa.array(np.ones(rows, np.int32)),
        "failed_attempts": pa.array(np.zeros(rows, np.int32)),
        "outages": pa.array(np.zeros(rows, np.int32)),
        "truth_depths": true_depths,
        "boxes": pa.ListArray.from_arrays(offsets, boxes, type=SCHEMA.field("boxes").type),
        "scores": pa.ListArray.from_arrays(offsets, pa.array(score[order].astype(np.float32))),
        "labels": pa.ListArray.from_arrays(offsets, pa.array(["person"] * len(order))),
        "depths": pa.ListArray.from_arrays(offsets, pa.array(depth[order].astype(np.float32))),
    }
    columns |= _inside_boxes(frames, settings, suts)
    empty = {field.name: pa.nulls(rows, field.type) for field in SCHEMA if field.name not in columns}
    return pa.table({**columns, **empty}, schema=SCHEMA)


def _inside_boxes(frames: tuple[Frame, ...], settings: list[str], suts: list[str]) -> dict[str, pa.Array]:
    """Return the depth inside the true boxes, one and the same for each person, under haze and defocus."""
    by_depth = np.array([setting.startswith(("haze", "defocus")) for setting in settings])
    recorded = np.tile(np.repeat(by_depth, len(suts)), len(frames))
    depths = [_depths(frame) for frame in frames]
    people = np.repeat([len(depth) for depth in depths], len(settings) * len(suts)) * recorded
    times = int(by_depth.sum()) * len(suts)
    depth = np.concatenate([np.tile(depth, times) for depth in depths]).astype(np.float32)
    offsets, missing = (
        pa.array(np.concatenate([[0], np.cumsum(people)]).astype(np.int32)),
        pa.array(~recorded),
    )
    quantiles = pa.FixedSizeListArray.from_arrays(np.repeat(depth, DEPTH_QUANTILES), DEPTH_QUANTILES)
    pixels = pa.array(np.full(len(depth), 1000, np.int32))
    return {
        "truth_depth_quantiles": pa.ListArray.from_arrays(
            offsets, quantiles, type=SCHEMA.field("truth_depth_quantiles").type, mask=missing
        ),
        "truth_depth_pixels": pa.ListArray.from_arrays(offsets, pixels, mask=missing),
    }


def _depths(frame: Frame) -> NDArray[np.float64]:
    """Return how far ahead the true people of a frame are."""
    pose = frame.world_from_camera
    if pose is None or frame.truth.positions_m is None:
        return np.full(len(frame.truth.boxes), math.nan)
    away = (frame.truth.positions_m - pose[:3, 3]) @ pose[:3, :3]
    return np.asarray(away[:, 2])

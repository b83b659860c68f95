"""What a run writes into its folder about itself: the manifest, tables of frames, truth, inputs and cells.

The manifest says what a number rests on: versions, hashes, settings. With the tables the quick half needs
neither the data set nor the code that read it.
"""

from __future__ import annotations

import math
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import adverse
from adverse.content import digest, file_sha256
from adverse.plugins import library_version
from adverse.store.cell_keys import PackedCells
from adverse.store.journal import FinishedCells
from adverse.store.records import table_bytes, tables_bytes
from adverse.store.run import setting_entry
from adverse.store.selection import Selection, selection_table
from adverse.study.job import PlannedCell
from adverse.study.needs import robot_of, truth_source
from adverse.study.plan import StudyPlan, conditions_of, levels_of
from adverse.suts.fingerprint import hashes_of
from adverse.types import Frame, Log

UNITS_AT_ONCE = 256
"""Units whose cells are rows at a time."""
LIBRARIES = (
    "duckdb",
    "numba",
    "numpy",
    "onnxruntime",
    "opencv-python-headless",
    "pillow",
    "pyarrow",
    "scipy",
    "simplejpeg",
)


def describe(plan: StudyPlan, *, engine: str, workers: int) -> dict[str, Any]:
    """Return all of the manifest that is known before the run."""
    study = plan.file.study
    registry = plan.registry
    robot = robot_of(plan.file, plan.dataset, levels_of(plan.file, plan.registry))
    return {
        "adverse": {"version": adverse.__version__, "commit": _commit()},
        "environment": {
            "python": platform.python_version(),
            "system": platform.platform(),
            "machine": platform.machine(),
            "cpu": _cpu(),
            "libraries": {name: library_version(name) for name in LIBRARIES},
        },
        "study": {
            "name": study.name,
            "task": study.task,
            "masks": study.masks,
            "seed": study.seed,
            **({} if study.noise == "own" else {"noise": study.noise}),
            **({"log_by_log": True} if plan.file.log_by_log else {}),
            **({} if plan.unit_frames is None else {"unit_frames": plan.unit_frames}),
            "file": str(plan.file.source.path),
            "folder": str(plan.file.folder),
        },
        "data": {
            "format": study.data.format,
            "options": study.data.model_dump(exclude={"format"}, exclude_none=True),
            "fingerprint": digest(*(part for item in sorted(plan.inputs.items()) for part in map(str, item))),
            "annotations": {str(path): sha256 for path, sha256 in plan.annotations.items()},
            "categories": list(plan.dataset.categories),
            "frames": {split: plan.frames(split) for split in ("validation", "test")},
            "logs": len(plan.dataset.logs),
            "notes": dict(plan.dataset.notes),
            "pixel_classes": {str(number): name for number, name in plan.dataset.pixel_classes.items()},
        },
        "plugins": {str(path): file_sha256(path) for path in registry.sources()},
        "suts": {
            task.name: {
                "fingerprint": task.fingerprint,
                "batch": task.batch,
                **({"batch_trial": trial} if (trial := plan.batch_trials.get(task.name)) else {}),
                "class_map": dict(task.class_map),
                "trained_on": list(task.trained_on),
                **task.made_of,
            }
            for task in plan.job.suts
        },
        "commits": _commits(plan),
        "settings": {
            setting.id: {
                **setting_entry(setting),
                "code": [registry.get("mutation", step.mutation).code for step in setting.steps],
            }
            for setting in plan.job.settings
        },
        "statistics": {
            "targets": list(study.targets),
            "levels": list(study.levels),
            "metrics": list(study.metrics),
            **({"relations": list(study.relations)} if study.relations else {}),
            "localizer": study.localizer if plan.job.locate else None,
            "localize_on": study.localize_on if plan.job.locate else None,
            "robot": None if robot is None else robot.plain(),
            "sensitivity": study.sensitivity.model_dump(),
            "fpr_max": study.fpr_max,
            "operating_points": {
                task.name: dict(zip(("sensitivity", "score"), point, strict=True))
                for task in plan.job.suts
                for point in [_operating_point(plan, task.name)]
            },
            "truth": None
            if (truth := truth_source(plan.file)) is None
            else {"sut": truth[0], "score": truth[1]},
            "bootstrap": study.robustness.bootstrap,
            "conditions": dict(conditions_of(plan.file, plan.job.settings)),
            "quarantine_budget": study.quarantine_budget,
            "visual_change": study.visual_change,
        },
        **_selected(plan),
        "warnings": list(plan.warnings),
        "engine": {"name": engine, "workers": workers},
    }


def _selected(plan: StudyPlan) -> dict[str, Any]:
    """Return what the manifest says of a search that chose what is run; nothing where all is run."""
    part = plan.file.selection
    return {} if part is None else {"selection": {"kind": part.kind, "facts": dict(part.facts)}}


def _operating_point(plan: StudyPlan, sut: str) -> tuple[float | None, float | None]:
    """Return the sensitivity and score of a SUT; clean answers are evaluated where they are cut."""
    study, truth = plan.file.study, truth_source(plan.file)
    point = study.operating_point.of(sut, study.fpr_max)
    free = point[1] is None and study.operating_point.sensitivity is None
    if truth is not None and truth[0] == sut and free:
        return None, truth[1]
    return point


def _commit() -> str | None:
    """Return the commit of the source tree we run from, or None for an installed package."""
    root = Path(adverse.__file__).parents[2]
    return _git(root, "rev-parse", "HEAD") if (root / ".git").exists() else None


def _commits(plan: StudyPlan) -> dict[str, str]:
    """Return the commit checked out where the first tracked file of each SUT lies; others have none."""
    commits = {}
    for task in plan.job.suts:
        for path in hashes_of(task.made_of):
            if _git(path.parent, "ls-files", "--error-unmatch", path.name):
                commits[task.name] = _git(path.parent, "rev-parse", "HEAD") or ""
                break
    return {name: commit for name, commit in commits.items() if commit}


def _git(folder: Path, *words: str) -> str | None:
    """Return what git answers; None where it cannot. It runs no program that a repository names."""
    try:
        answer = subprocess.run(  # noqa: S603
            ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *words],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


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
        ("mask_size", pa.list_(pa.int32(), 2)),  # height, width of the masks; null: none were read
        ("void", pa.binary()),  # pixels in which nothing is evaluated, as compressed run lengths; null: none
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
        ("attributes", pa.map_(pa.string(), pa.string())),  # what else is annotated; null: nothing
        ("mask", pa.binary()),  # COCO's compressed run lengths; null: none was read
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
            "mask_size": None if frame.truth.masks is None else list(frame.truth.masks.size),
            "void": None if frame.truth.void is None else frame.truth.void.counts[0],
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
            "attributes": sorted(frame.truth.attributes[row].items()) if frame.truth.attributes else None,
            "mask": None if frame.truth.masks is None else frame.truth.masks.counts[row],
        }
        for log in logs
        if log.split != "train"
        for frame in log.frames
        for row in range(len(frame.truth.ids))
    ]
    return table_bytes(pa.Table.from_pylist(rows, schema=TRUTH))


def planned_table(plan: StudyPlan, selection: Selection) -> bytes:
    """Return all that a search asked for; validation frames are run as in every run."""
    logs = [log for log in plan.dataset.logs if log.split == "validation"]
    others = [(frame.id, task.name) for log in logs for frame in log.frames for task in plan.job.suts]
    return selection_table(selection, plan.job.settings[0].id, others)


def inputs_table(inputs: Mapping[Path, str]) -> bytes:
    """Return the hash of every input file."""
    rows = [{"path": str(path), "sha256": sha256} for path, sha256 in sorted(inputs.items())]
    return table_bytes(pa.Table.from_pylist(rows, schema=INPUTS))


def cells_table(plan: StudyPlan, finished: FinishedCells) -> bytes:
    """Return the cells of the plan that are finished, and the file that holds each."""
    settings = pa.array([setting.id for setting in plan.job.settings], pa.string())
    suts = pa.array([task.name for task in plan.job.suts], pa.string())
    names = pa.array([entry.file for entry in finished.entries], pa.string())

    def some(start: int) -> pa.Table:
        rows = [unit.cells for unit in plan.units[start : start + UNITS_AT_ONCE]]
        columns_of = [_columns(cells) for cells in rows]
        holders = np.concatenate([finished.numbers(cells) for cells in rows])
        there = np.flatnonzero(holders >= 0)
        keys = pa.array([key for mine, _ in columns_of for key in mine], pa.string())
        setting, sut = np.concatenate([numbers for _, numbers in columns_of])[there].T
        columns = [keys.take(there), settings.take(setting), suts.take(sut), names.take(holders[there])]
        return pa.table(columns, schema=CELLS)

    return tables_bytes(map(some, range(0, len(plan.units), UNITS_AT_ONCE)), CELLS)


def _columns(cells: Sequence[PlannedCell]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the keys of cells, and the numbers of their settings and SUTs (N, 2)."""
    if isinstance(cells, PackedCells):
        return cells.hex_keys(), cells.numbers()
    numbers = [(cell.setting, cell.sut) for cell in cells]
    return [cell.key for cell in cells], np.array(numbers, np.int64).reshape(-1, 2)


def _known_area(frame: Frame, row: int) -> float | None:
    area = frame.truth.area
    return None if area is None or math.isnan(area[row]) else float(area[row])


def _camera(frame: Frame) -> list[float] | None:
    camera = frame.camera
    if camera is None:
        return None
    baseline = float("nan") if camera.baseline_m is None else camera.baseline_m
    return [camera.fx, camera.fy, camera.cx, camera.cy, camera.width, camera.height, baseline]

"""What a number rests on: versions, hashes, settings; all of the manifest that is known before a run."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import adverse
from adverse.content import digest, file_sha256
from adverse.plugins import library_version
from adverse.store.run import setting_entry
from adverse.study.plan import Plan, conditions_of, levels_of, robot_of

LIBRARIES = (
    "duckdb",
    "numba",
    "numpy",
    "onnxruntime",
    "opencv-python-headless",
    "pillow",
    "pyarrow",
    "scipy",
)


def describe(plan: Plan, *, engine: str, workers: int) -> dict[str, Any]:
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
            "seed": study.seed,
            "file": str(plan.file.source.path),
            "folder": str(plan.file.folder),
        },
        "data": {
            "format": study.data.format,
            "options": study.data.model_dump(exclude={"format"}, exclude_none=True),
            "fingerprint": digest(*(part for item in sorted(plan.inputs.items()) for part in map(str, item))),
            "annotations": {str(path): file_sha256(path) for path in plan.dataset.annotations},
            "categories": list(plan.dataset.categories),
            "frames": {split: plan.frames(split) for split in ("validation", "test")},
            "logs": len(plan.dataset.logs),
            "notes": dict(plan.dataset.notes),
            "pixel_classes": {str(number): name for number, name in plan.dataset.pixel_classes.items()},
        },
        "suts": {
            task.name: {
                "fingerprint": task.fingerprint,
                "batch": task.batch,
                "class_map": dict(task.class_map),
                **task.made_of,
            }
            for task in plan.job.suts
        },
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
            "robot": None if robot is None else asdict(robot),
            "sensitivity": study.sensitivity.model_dump(),
            "fpr_max": study.fpr_max,
            "bootstrap": study.robustness.bootstrap,
            "conditions": dict(conditions_of(plan.file, plan.job.settings)),
            "quarantine_budget": study.quarantine_budget,
            "visual_change": study.visual_change,
        },
        "warnings": list(plan.warnings),
        "engine": {"name": engine, "workers": workers},
    }


def _commit() -> str | None:
    """Return the commit of the source tree we run from, or None for an installed package."""
    root = Path(adverse.__file__).parents[2]
    if not (root / ".git").exists():
        return None
    answer = subprocess.run(  # noqa: S603
        ["git", "-C", str(root), "rev-parse", "HEAD"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")

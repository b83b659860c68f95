"""Adverse finds out how perception systems fail before the field does.

Run a study with `run`, open a finished one with `open_run`, read data with `read_dataset`, and change images
with `mutations.apply`. `mutation`, `sut`, `dataset`, `level`, `metric` and `relation` mark plug-ins. Names
load what they need when they are first used, so `import adverse` is quick and imports neither OpenCV nor
numba nor ONNX Runtime.
"""

from __future__ import annotations

import sys

_by_name = "adverse" in (word.removeprefix("-m") for word in sys.orig_argv)
if sys.argv[:1] == ["-m"] and _by_name and not sys.flags.safe_path:
    del sys.path[0]  # of `python -m adverse`: the current folder, whose json.py is not the one that we need

import importlib  # noqa: E402 - after the search path is put right
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from adverse import curves, depth, mutations, transforms, visual
    from adverse.analysis.results import Summary
    from adverse.api import FinishedRun, open_run, read_dataset, run
    from adverse.errors import (
        AdverseError,
        DataError,
        IncompleteError,
        MutationError,
        PluginError,
        StoreError,
        StudyError,
        SutError,
    )
    from adverse.marks import Hazard, Strength
    from adverse.plugins import dataset, level, metric, mutation, relation, sut
    from adverse.store.run import Run
    from adverse.types import Camera, ClassScores, Dataset, Detections, Frame, LabelMap, Log, Setting, Truth

__version__ = "0.1.0"

_NAMES = {
    "adverse.analysis.results": ("Summary",),
    "adverse.api": ("FinishedRun", "open_run", "read_dataset", "run"),
    "adverse.errors": (
        "AdverseError",
        "DataError",
        "IncompleteError",
        "MutationError",
        "PluginError",
        "StoreError",
        "StudyError",
        "SutError",
    ),
    "adverse.marks": ("Hazard", "Strength"),
    "adverse.plugins": ("dataset", "level", "metric", "mutation", "relation", "sut"),
    "adverse.store.run": ("Run",),
    "adverse.types": (
        "Camera",
        "ClassScores",
        "Dataset",
        "Detections",
        "Frame",
        "LabelMap",
        "Log",
        "Setting",
        "Truth",
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("curves", "depth", "mutations", "transforms", "visual")

__all__ = [
    "AdverseError",
    "Camera",
    "ClassScores",
    "DataError",
    "Dataset",
    "Detections",
    "FinishedRun",
    "Frame",
    "Hazard",
    "IncompleteError",
    "LabelMap",
    "Log",
    "MutationError",
    "PluginError",
    "Run",
    "Setting",
    "StoreError",
    "Strength",
    "StudyError",
    "Summary",
    "SutError",
    "Truth",
    "curves",
    "dataset",
    "depth",
    "level",
    "metric",
    "mutation",
    "mutations",
    "open_run",
    "read_dataset",
    "relation",
    "run",
    "sut",
    "transforms",
    "visual",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"adverse.{name}")
    raise AttributeError(f"module 'adverse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

"""Adverse finds out how perception systems fail before the field does.

The names below load what they need when they are first used, so `import adverse` is quick and pulls in
neither OpenCV nor numba nor ONNX Runtime.
"""

from __future__ import annotations

import sys

_by_name = "adverse" in (word.removeprefix("-m") for word in sys.orig_argv)
if sys.argv[:1] == ["-m"] and _by_name and not sys.flags.safe_path:
    del sys.path[0]  # of `python -m adverse`: the current folder, whose json.py is not the one that we need

import importlib  # noqa: E402 - after the search path is put right
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from adverse import curves, mutations, visual
    from adverse.api import run
    from adverse.errors import AdverseError
    from adverse.marks import Hazard, Strength
    from adverse.plugins import dataset, level, metric, mutation, sut
    from adverse.types import Dataset, Detections, Frame, Log, Truth

__version__ = "0.1.0"

_HOMES = {
    "AdverseError": "adverse.errors",
    "Dataset": "adverse.types",
    "Detections": "adverse.types",
    "Frame": "adverse.types",
    "Hazard": "adverse.marks",
    "Log": "adverse.types",
    "Strength": "adverse.marks",
    "Truth": "adverse.types",
    "dataset": "adverse.plugins",
    "level": "adverse.plugins",
    "metric": "adverse.plugins",
    "mutation": "adverse.plugins",
    "run": "adverse.api",
    "sut": "adverse.plugins",
}
_MODULES = ("curves", "mutations", "visual")

__all__ = [
    "AdverseError",
    "Dataset",
    "Detections",
    "Frame",
    "Hazard",
    "Log",
    "Strength",
    "Truth",
    "curves",
    "dataset",
    "level",
    "metric",
    "mutation",
    "mutations",
    "run",
    "sut",
    "visual",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"adverse.{name}")
    raise AttributeError(f"module 'adverse' has no attribute {name!r}")

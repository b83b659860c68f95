"""What holds for all tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from browsing import browser, driven, run
from compiled_loops import compile_loops
from rewritten_asserts import rewriting_asserts

__all__ = ["browser", "driven", "run"]  # fixtures

settings.register_profile("no clocks", deadline=None, max_examples=50)  # others than last time, each time
settings.load_profile("no clocks")

IN_MEMORY = Path("/dev/shm")
ENOUGH = 4 << 30
"""Bytes; the suite has needed 150 MB at most."""

if "TMPDIR" not in os.environ and IN_MEMORY.is_dir():
    free = min(shutil.disk_usage(IN_MEMORY).free, psutil.virtual_memory().available)
    if free >= ENOUGH and os.access(IN_MEMORY, os.W_OK):
        # A run flushes every file that it acknowledges: a third of the suite's time was waiting for the disk.
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Spare each worker of `pytest -n` what can be done once."""
    with rewriting_asserts():
        compile_loops()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let reports say which rows of the reliability matrix a test shows (`docs/reliability_matrix.py`)."""
    for item in items:
        case = getattr(getattr(item, "callspec", None), "id", "")
        marks = item.iter_markers("fault")
        rows = [row for mark in marks if case in mark.kwargs.get("cases", [case]) for row in mark.args]
        if rows:
            item.user_properties.append(("faults", rows))

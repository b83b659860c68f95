"""Rewrites the asserts of all tests: once, before several workers of pytest would each do it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent


@contextlib.contextmanager
def rewriting_asserts() -> Iterator[None]:
    """Do so beside the block, unless it was done: on a clean checkout it was not."""
    if any((TESTS / "study" / "__pycache__").glob("*-pytest-*.pyc")):
        yield
        return
    collecting = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    with subprocess.Popen(collecting, cwd=TESTS.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        yield

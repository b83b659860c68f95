"""The public surface: small, sorted, and quick to import."""

from __future__ import annotations

import subprocess
import sys

import adverse

HEAVY = ("cv2", "numba", "onnxruntime", "pyarrow", "duckdb", "scipy", "pydantic", "numpy")


def test_names_are_sorted_and_there() -> None:
    assert adverse.__all__ == sorted(adverse.__all__)
    for name in adverse.__all__:
        assert getattr(adverse, name) is not None


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, adverse; print([name for name in {HEAVY} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

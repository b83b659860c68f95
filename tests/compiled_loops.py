"""Compiles the loops that most tests need: once, before several workers of pytest would each do it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()


def compile_loops() -> None:
    """Do so in a process of its own, unless some are in the cache: on a clean checkout none is."""
    if not any((HERE.parents[1] / "src").rglob("*.nbi")):
        subprocess.run([sys.executable, HERE], check=True)


def main() -> None:
    """Analyse a run of all levels up to the closed loop."""
    sys.path += [str(HERE.parents[1] / "bench"), str(HERE.parents[1] / "src")]
    from adverse.analysis.results import analyze  # noqa: PLC0415 - as `pyproject.toml` has it for pytest
    from synthetic_run import Size, write_run  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write_run(run, Size(suts=2, conditions=3, logs=6, frames_per_log=24, validation_logs=2, bootstrap=0))
        analyze(run, workers=1)


if __name__ == "__main__":
    main()

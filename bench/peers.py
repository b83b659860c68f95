"""The libraries that ours is measured against, each in a virtual environment and a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
HOME = Path(os.environ.get("ADVERSE_PEERS", Path.home() / ".cache" / "adverse-peers"))
PACKAGES = {
    "imagecorruptions": (
        "imagecorruptions==1.1.2",
        "numpy==1.26.4",
        "scikit-image==0.22.0",
        "opencv-python-headless==4.11.0.86",
        "setuptools<81",
    ),
    "albumentations": ("albumentations==2.0.8",),
}
"""What each environment holds; imagecorruptions 1.1.2 needs libraries of its time."""

LISTING = """
import importlib.metadata, json, sys
there = {one.name.lower(): one.version for one in importlib.metadata.distributions()}
print(json.dumps({name: there[name] for name in sys.argv[1:] if name in there}))
"""
"""Which versions an interpreter has of the packages named; it needs no pip."""

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def python_of(peer: str) -> Path:
    """Return the interpreter of a peer, making its environment first if there is none."""
    if peer == "adverse":
        return Path(sys.executable)
    folder = HOME / peer
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder} ...", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES[peer]], check=True)
    return python


def versions(peer: str) -> str:
    """Say which versions a peer runs with."""
    wanted = (peer, "numpy", "numba", "scikit-image", "opencv-python-headless", "pillow", "scipy")
    listed = subprocess.run(
        [python_of(peer), "-c", LISTING, *wanted], check=True, capture_output=True, text=True
    )
    found = json.loads(listed.stdout)
    return ", ".join(f"{name} {found[name]}" for name in wanted if name in found)


class Peer:
    """A library waiting in its own process."""

    def __init__(self, name: str) -> None:
        self.name = name
        paths = os.pathsep.join(path for path in sys.path if path) if name == "adverse" else ""
        self._process = subprocess.Popen(
            [python_of(name), HERE / "worker.py", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": paths},
        )
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()

    def times(self, image: Path, name: str, severity: int, *, seed: int = 0, repeat: int = 1) -> list[float]:
        """Return the CPU seconds of each of `repeat` calls; nothing where the library has no such thing."""
        seconds: list[float] = self._ask(image, name, severity, seed, repeat, None)["seconds"]
        return seconds

    def output(self, image: Path, name: str, severity: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """Return the corrupted image."""
        path = Path(self._folder.name) / "out.npy"
        self._ask(image, name, severity, seed, 1, path)
        made: NDArray[np.uint8] = np.load(path)
        return made

    def _ask(
        self, image: Path, name: str, severity: int, seed: int, repeat: int, save: Path | None
    ) -> dict[str, Any]:
        request = {
            "image": str(image),
            "name": name,
            "severity": severity,
            "seed": seed,
            "repeat": repeat,
            "save": str(save) if save else None,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"{self.name} ended while at {name}, severity {severity}")
            if line.startswith("{"):  # imagecorruptions prints remarks of its own
                answer: dict[str, Any] = json.loads(line)
                return answer

"""Which files stand for a file that was opened: itself, the source of a compiled module, a distribution.

Of an installed distribution the list of its files with their hashes stands for all of them, so that a model
that imports a framework rests on one file and not on thousands.
"""

from __future__ import annotations

import functools
import re
from importlib.util import source_from_cache
from pathlib import Path

import adverse

OURS = f"{Path(adverse.__file__).parent}/"
SYSTEM = ("/proc/", "/sys/", "/dev/", "/run/", "/etc/", "/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")
"""What belongs to the machine: results from another one are flagged, not repeated."""
STANDARD_LIBRARY = re.compile(r"/lib(?:64)?/python3(?:\.\d+/|\d+\.zip)")
INSTALLED = re.compile(r"(.*?/(?:site|dist)-packages)/([^/]+)")
METADATA = (".dist-info", ".egg-info", ".pth")
"""Endings of what is read to find distributions, not to run them."""
LIBRARIES = (
    "ai-edge-litert",
    "duckdb",
    "llvmlite",
    "numba",
    "numpy",
    "onnxruntime",
    "opencv-python-headless",
    "pillow",
    "psutil",
    "pyarrow",
    "pydantic",
    "pydantic-core",
    "pyrtools",
    "pywavelets",
    "scipy",
    "simplejpeg",
)
"""Distributions that we use ourselves: whose code loads them is chance, so they belong to the environment."""


def identity_of(path: str) -> tuple[str, ...]:
    """Return the files whose content says what was opened; none for what is ours, Python's or the system's.

    >>> identity_of("/home/me/__pycache__/model.cpython-311.pyc")
    ('/home/me/model.py',)
    >>> identity_of("/usr/local/lib/python3.11/json/decoder.py")
    ()
    """
    installed = INSTALLED.match(path)
    if path.startswith(OURS) or (installed is not None and installed[2].endswith(METADATA)):
        return ()
    if installed is not None and installed[2] in _records(installed[1]):
        return _records(installed[1])[installed[2]]
    if installed is None and (path.startswith(SYSTEM) or STANDARD_LIBRARY.search(path)):
        return ()
    if "/__pycache__/" not in path:
        return (path,)
    try:
        return (source_from_cache(path),)
    except ValueError:  # what else is kept there is made from the source too
        return ()


def is_code(path: Path) -> bool:
    """Return whether a file stands for something that a process imports, which it does only once."""
    return path.suffix in (".py", ".so") or path.name == "RECORD"


@functools.cache
def _records(site: str) -> dict[str, tuple[str, ...]]:
    """Return the lists of the distributions below a folder by the first part of the files' names."""
    found: dict[str, set[str]] = {}
    for record in Path(site).glob("*.dist-info/RECORD"):
        ours = record.parent.name.partition("-")[0].lower().replace("_", "-") in LIBRARIES
        try:
            lines = record.read_text("utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for top in {line.partition(",")[0].partition("/")[0].strip('"') for line in lines} - {"..", ""}:
            found.setdefault(top, set()).update(() if ours else {str(record)})
    return {top: tuple(sorted(records)) for top, records in found.items() if top != "__pycache__"}

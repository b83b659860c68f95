"""What a machine brings to a number: its processor as the libraries see it, and the builds of the libraries.

The same model on the same image gives other last digits with AVX2 switched off, or with another build of
OpenCV. That is no error, but two halves of a run that come from two environments are not one experiment:
each unit is kept with the environment it was done in, and a run that mixes some says so.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np

from adverse.content import digest
from adverse.file_access.identity import LIBRARIES

SWITCHES = re.compile(
    r"(NPY_\w*CPU|OPENCV_CPU|OPENCV_IPP|NUMBA_(CPU|ENABLE_AVX)|OPENBLAS_CORETYPE|MKL_CBWR|JSIMD_)\w*"
)
"""Environment variables that choose between code for different processors."""
VECTORS = re.compile(r"(sse|ssse|avx|fma|f16c|amx|asimd|neon|sve)\w*")
"""Flags of a processor that decide how numbers are added up."""
SHOWN = 6
"""Features or builds that are named in one line."""


@functools.cache
def environment() -> Mapping[str, str]:
    """Return the environment of this process, a few words on each thing."""
    return {
        "processor": _cpu("model name") or platform.processor() or platform.machine(),
        "processor features": " ".join(
            sorted({*filter(VECTORS.fullmatch, _cpu("flags", "Features").split())})
        ),
        "numpy CPU features": " ".join(_numpy_features()),
        "OpenCV CPU features": " ".join(_opencv_features()),
        "switches": " ".join(
            f"{name}={os.environ[name]}" for name in sorted(filter(SWITCHES.fullmatch, os.environ))
        ),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "C library": " ".join(platform.libc_ver()),
        **{name: build_of(name) for name in LIBRARIES},
    }


def build_of(distribution: str) -> str:
    """Return the version of a distribution and a hash of its compiled files, as its installer listed them."""
    try:
        found = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
    lines = (found.read_text("RECORD") or "").splitlines()
    compiled = sorted(line for line in lines if re.search(r"\.(so|pyd|dll|dylib)\b", line.partition(",")[0]))
    return f"{found.version} build {digest(*compiled, size=4)}"


def environment_id(facts: Mapping[str, str]) -> str:
    """Return what an environment is called in the journal."""
    return digest(*(part for item in sorted(facts.items()) for part in item), size=8)


def mixture(environments: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Say in one line that results come from several environments, and what differs; nothing for one.

    >>> old, new = {"numpy": "2.0", "switches": ""}, {"numpy": "2.1", "switches": ""}
    >>> mixture({"a": old, "b": new})
    ['mixed environments: results of this run come from 2; they differ in numpy (2.0; 2.1)']
    >>> mixture({"a": old})
    []
    """
    if len(environments) <= 1:
        return []
    facts = list(environments.values())
    different = [
        f"{what} ({_apart([each.get(what, 'unknown') for each in facts])})"
        for what in dict.fromkeys(key for each in facts for key in each)
        if len({each.get(what, "unknown") for each in facts}) > 1
    ]
    what = ", ".join(different) or "what is not known any more"
    return [f"mixed environments: results of this run come from {len(facts)}; they differ in {what}"]


def _apart(values: list[str]) -> str:
    """Return different values side by side; of long lists, what not all of them have."""
    words = [value.split() for value in dict.fromkeys(values)]
    if max(map(len, words)) <= SHOWN:
        return "; ".join(" ".join(some) or "none" for some in words)
    everywhere = set(words[0]).intersection(*words)
    rest = [[word for word in some if word not in everywhere] for some in words]
    return "; ".join(
        " ".join(some[:SHOWN]) + (" ..." if len(some) > SHOWN else "") if some else "without" for some in rest
    )


def _cpu(*keys: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() in keys), "")


def _numpy_features() -> list[str]:
    """Return the features that numpy may use: found, and not switched off."""
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    return [*simd.get("baseline", ()), *simd.get("found", ())]


def _opencv_features() -> list[str]:
    """Return the features that OpenCV was built for and may use: those it marks with ? it may not."""
    return [word.strip("*") for word in cv2.getCPUFeaturesLine().split() if not word.endswith("?")]

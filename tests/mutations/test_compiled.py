"""Compiled kernels: loaded late, safe in threads, the same in every process."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from adverse import mutations, plugins
from adverse.mutations import area_kernels, defocus, pixel_kernels
from adverse.mutations.compiled import Kernel
from adverse.plugins.registry import reachable_sources
from pictures import photo

TEXTS = (
    "c.gaussian_noise(severity=2)",
    "c.fog(severity=3)",
    "c.snow(severity=4)",
    "c.defocus_blur(severity=5)",
)


def fingerprint(text: str) -> str:
    return hashlib.sha256(mutations.apply(photo(50, 70), text, seed=3, key="k").tobytes()).hexdigest()


def test_importing_the_mutations_loads_no_compiler() -> None:
    code = "import sys, adverse.mutations, adverse.plugins as p; p.load(); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_threads_and_processes_give_the_same_bytes() -> None:
    alone = [fingerprint(text) for text in TEXTS]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fingerprint, TEXTS * 10)) == alone * 10


def test_every_kernel_is_part_of_the_code_that_a_mutation_is_known_by() -> None:
    registry = plugins.load()
    for name, file in (
        ("c.fog", "area_kernels.py"),
        ("haze", "pixel_kernels.py"),
        ("defocus", "defocus.py"),
    ):
        module = sys.modules[registry.get("mutation", name).function.__module__]
        assert file in {path.name for path in reachable_sources(module.__name__)}


def test_kernels_keep_their_names() -> None:
    for module in (area_kernels, pixel_kernels, defocus):
        for name, value in vars(module).items():
            if isinstance(value, Kernel):
                assert value.__name__ == name  # type: ignore[attr-defined]
                assert value.__doc__

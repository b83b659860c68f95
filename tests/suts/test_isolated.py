"""Our own server as a child: the same answers, the same errors, and no orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
import psutil
import pytest

from adverse import plugins
from adverse.errors import SutError
from adverse.suts.ask import ask
from adverse.suts.build import build
from adverse.suts.child import Child, isolated
from adverse.types import Detector, Image

PLUGIN = """
import ctypes, os, sys, time
from pathlib import Path
from typing import cast
import numpy as np
from adverse import Detections, sut

class Odd:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
    def detect(self, images):
        print("noise on stdout", flush=True)
        os.system("echo noise of a child; cat")
        os.write(1, b"@adverse without an end of line")
        value = int(images[0][0, 0, 0])
        if value == 1:
            raise ValueError("cannot see")
        if value == 2:
            ctypes.string_at(0)
        if value == 3:
            time.sleep(600)
        if value == 5:
            ctypes.PyDLL(None).sleep(600)  # hangs without letting any other thread run
        if value == 4:
            return [([[0, 0, 1, 1]], [float("nan")])]
        boxes = np.sort(self.rng.uniform(0, 640, (200, 4)).astype(np.float32), axis=1)[:, [0, 1, 2, 3]]
        return [(boxes.copy(), self.rng.uniform(-1, 1, 200).astype(np.float32)) for _ in images]

@sut
def odd(weights: Path, *, seed: int = 0, shape: tuple[int, int] = (1, 2),
        names: dict[int, str] | None = None):
    assert weights.read_text() == "w" and isinstance(shape, tuple) and names in (None, {1: "a"})
    print("loading")
    return Odd(seed)

@sut
def broken():
    raise OSError("no such card")
"""


def frame(value: int) -> Image:
    return np.full((20, 30, 3), value, np.uint8)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "odd.py").write_text(PLUGIN, "utf-8")
    (tmp_path / "w.bin").write_text("w", "utf-8")
    return [tmp_path / "odd.py"]


@pytest.fixture
def odd(files: list[Path]) -> Iterator[Detector]:
    options = {"weights": files[0].with_name("w.bin"), "seed": 5, "shape": (3, 4), "names": {1: "a"}}
    with isolated("odd", options, files, name="vendor", default_class="person", timeout_s=5) as child:
        yield child


def test_answers_are_equal_to_the_bit_to_those_in_this_process(odd: Detector, files: list[Path]) -> None:
    plugin = plugins.load(files).get("sut", "odd")
    near = build(plugin, {"weights": files[0].with_name("w.bin"), "seed": 5}, default_class="person")
    assert hasattr(near, "detect")
    assert odd.classes == near.classes == ("person",)
    images = [frame(9), frame(8), frame(7)]
    for far_answer, near_answer in zip(
        odd.detect(images), ask(cast("Detector", near), images, name="x"), strict=True
    ):
        assert far_answer.same(near_answer)


def test_an_exception_reads_as_it_would_in_this_process(odd: Detector) -> None:
    with pytest.raises(SutError) as caught:
        odd.detect([frame(1)])
    assert caught.value.what == "the system under test failed on an image"
    assert caught.value.where == "vendor"
    assert caught.value.got == "ValueError: cannot see"


def test_a_nan_score_is_a_fault(odd: Detector) -> None:
    with pytest.raises(SutError, match="not finite"):
        odd.detect([frame(4)])


@pytest.mark.fault(35)
def test_a_segfault_costs_one_answer(odd: Detector) -> None:
    with pytest.raises(SutError, match="the program died") as caught:
        odd.detect([frame(2)])
    assert "SIGSEGV" in str(caught.value)
    assert len(odd.detect([frame(0)])[0]) == 200


def test_a_hang_costs_one_answer(files: list[Path]) -> None:
    options = {"weights": files[0].with_name("w.bin")}
    with isolated("odd", options, files, default_class="person", timeout_s=1) as child:
        _ = child.classes
        with pytest.raises(SutError, match="hung"):
            child.detect([frame(3)])
        assert len(child.detect([frame(0)])[0]) == 200


def test_a_system_that_cannot_be_built_says_why(files: list[Path]) -> None:
    with (
        isolated("broken", {}, files, name="card", default_class="person") as child,
        pytest.raises(SutError) as caught,
    ):
        _ = child.classes
    assert caught.value.where == "card"
    assert "no such card" in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [0, 3, pytest.param(5, marks=pytest.mark.skipif(sys.platform != "linux", reason="needs PDEATHSIG"))],
)
def test_the_child_dies_with_its_parent_even_while_it_hangs(files: list[Path], value: int) -> None:
    script = files[0].with_name("parent.py")
    script.write_text(
        textwrap.dedent(f"""
        import sys, threading, time
        from pathlib import Path
        import numpy as np
        from adverse.suts.child import isolated
        folder = Path(sys.argv[1])
        child = isolated("odd", {{"weights": folder / "w.bin"}}, [folder / "odd.py"], default_class="person")
        child.classes
        print(child.pid, flush=True)
        child.detect([np.full((4, 4, 3), {value}, np.uint8)])
        time.sleep(600)
        """),
        "utf-8",
    )
    parent = subprocess.Popen([sys.executable, str(script), str(script.parent)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.3)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for _ in range(200):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child outlived its parent")


def test_a_python_program_of_three_lines_is_a_command(
    program: Callable[[str], list[str]], picture: Image
) -> None:
    argv = program("""
from adverse.suts.python_callable import PythonCallable
from adverse.suts.serve import serve
serve(PythonCallable(lambda images: [([[0, 0, *i.shape[1::-1]]], [1]) for i in images], ["person"]))
""")
    with Child(argv, name="mine") as child:
        assert child.detect([picture])[0].boxes.tolist() == [[0, 0, 64, 48]]
        assert child.classes == ("person",)

"""The command adapter as a study names it, and the programs that the documentation shows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adverse import plugins
from adverse.suts.child import Child
from adverse.suts.command import command
from adverse.suts.fingerprint import fingerprint
from adverse.types import Image

PROTOCOL = Path(__file__).parents[2] / "docs" / "command-protocol.md"
Script = Callable[[str], list[str]]


def test_a_script_relative_to_cwd_is_found_and_is_part_of_the_fingerprint(
    on_request: Script, tmp_path: Path, picture: Image
) -> None:
    on_request("reply(number, [ONE])")
    plugin = plugins.load().get("sut", "command")
    given = {"argv": [sys.executable, "child.py"], "cwd": "."}
    options = plugins.bind(plugin, given, where="suts[0]", base=tmp_path)
    child = command(**options)
    assert child.detect([picture])[0].labels.tolist() == [1]
    child.close()
    before = fingerprint(plugin, options)
    with (tmp_path / "child.py").open("a", encoding="utf-8") as file:
        file.write("# another version\n")
    assert fingerprint(plugin, options) != before
    odd = {**options, "argv": [sys.executable, "child.py", "x" * 5000, "a\0b", ""]}
    assert fingerprint(plugin, odd) != fingerprint(plugin, options)


def test_every_file_in_argv_counts_in_its_place(tmp_path: Path) -> None:
    plugin = plugins.load().get("sut", "command")
    options = {"argv": ["python3", "--near=a.bin", "b.bin"], "cwd": tmp_path}
    keys = set()
    for contents in (("1", "2"), ("2", "1"), ("1", "3"), ("3", "2")):
        for name, content in zip(("a.bin", "b.bin"), contents, strict=True):
            (tmp_path / name).write_text(content)
        keys.add(fingerprint(plugin, options))
    assert len(keys) == 4


@pytest.mark.parametrize("argv", [["python3", "tools/run.py"], ["python3", "-m", "tools.run"]])
def test_what_a_python_program_imports_from_its_folder_is_part_of_the_fingerprint(
    argv: list[str], tmp_path: Path
) -> None:
    plugin = plugins.load().get("sut", "command")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "run.py").write_text("import json\nimport boxes\nfrom tools import net\n")
    (tools / "boxes.py").write_text("import net\n")
    (tools / "net.py").write_text("SCALE = 1\n")
    options = {"argv": argv, "cwd": tmp_path}
    before = fingerprint(plugin, options)
    (tools / "unused.txt").write_text("a note")
    assert fingerprint(plugin, options) == before
    (tools / "net.py").write_text("SCALE = 2\n")
    assert fingerprint(plugin, options) != before


def shown(language: str) -> str:
    """Return the first program in a language that the documentation of the protocol shows."""
    found = re.search(rf"```{language}\n(.*?)```", PROTOCOL.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found.group(1)


def bright_spot(child: Child) -> None:
    """Both programs box the brightest pixel; ask for three pictures at once."""
    images = [np.zeros((20 + k, 30, 3), np.uint8) for k in range(3)]
    for k, image in enumerate(images):
        image[5 + k, 7] = 255
    with child:
        answers = child.detect(images)
    assert [answer.boxes.tolist() for answer in answers] == [[[7, 5 + k, 8, 6 + k]] for k in range(3)]
    assert [answer.scores.tolist() for answer in answers] == [[1.0]] * 3
    assert child.classes == ("person",)


def test_the_python_program_of_the_documentation_works(program: Script) -> None:
    bright_spot(Child(program(shown("python")), name="python"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_c_program_of_the_documentation_works(tmp_path: Path) -> None:
    (tmp_path / "bright.c").write_text(shown("c"), "utf-8")
    subprocess.run(["cc", "-Wall", "-Werror", "-O1", "-o", "bright", "bright.c"], cwd=tmp_path, check=True)
    bright_spot(command(["./bright"], cwd=tmp_path))

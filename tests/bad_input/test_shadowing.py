"""Files of the current folder that are called like modules we need: none of them is ever imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adverse
from adverse.errors import PluginError
from adverse.user_files import load_python

from .cases import PASS
from .command import Said
from .good_study import GoodStudy

TRAPPED = ("cv2", "json", "multiprocessing", "numpy", "psutil", "queue", "struct", "typing", "yaml")
BEFORE_US = ("contextlib", "enum", "functools", "re", "types")
"""What Python's own `-m` may import before a line of ours is run; the `adverse` script does not."""
TRAP = """
from pathlib import Path
Path(__file__).with_suffix(".imported").touch()
raise ImportError("a file of the current folder was imported")
"""
SCRIPT = ("-P", "-c", "from adverse.cli import main; main()")
"""What the installed `adverse` script does: only its own folder is on the search path."""
MODULE = ("-m", "adverse")


def in_the_folder(study: GoodStudy, how: tuple[str, ...], *args: str | Path) -> Said:
    """Run a command in the study's folder; an empty entry of PYTHONPATH stands for the current folder."""
    source = str(Path(adverse.__file__).parents[1])
    ended = subprocess.run(
        [sys.executable, *how, *map(str, args)],
        cwd=study.folder,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Said(ended.returncode, ended.stdout)


@pytest.fixture
def trapped(coco: GoodStudy) -> GoodStudy:
    for name in (*TRAPPED, *BEFORE_US):
        (coco.folder / f"{name}.py").write_text(TRAP)
    coco.study["suts"].append({"name": "alone", "adapter": "probe", "memory_limit_mb": 4000})
    coco.write()
    return coco


def imported(study: GoodStudy) -> list[str]:
    return sorted(path.stem for path in study.folder.glob("*.imported"))


@pytest.mark.parametrize("how", [SCRIPT, MODULE], ids=["script", "module"])
def test_neither_the_command_nor_its_workers_import_the_folder(
    trapped: GoodStudy, how: tuple[str, ...]
) -> None:
    for name in BEFORE_US if how == MODULE else ():
        (trapped.folder / f"{name}.py").unlink()
    said = in_the_folder(trapped, how, "run", trapped.file, "--out", trapped.run, "--workers", "1")
    assert imported(trapped) == []
    said.expect(PASS, "32/32 images done")


def test_an_empty_entry_of_the_search_path_does_not_stand_for_the_folder(
    trapped: GoodStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`PYTHONPATH=$PYTHONPATH:/more` has one at its front where the variable was not set."""
    monkeypatch.chdir(trapped.folder)
    monkeypatch.setenv("PYTHONPATH", f":{trapped.folder.parent}")
    trapped.adverse(workers=1).expect(PASS, "32/32 images done")
    assert imported(trapped) == []


def test_the_workers_that_write_images_do_not_import_the_folder(trapped: GoodStudy) -> None:
    said = in_the_folder(trapped, SCRIPT, "mutate", trapped.file, trapped.folder / "out", "--workers", "2")
    assert imported(trapped) == []
    assert said.code == PASS, said.text
    assert len(list((trapped.folder / "out").rglob("*.png"))) == 8


PLUGIN = """
import json
from palette import DIVISOR
from adverse import mutation

@mutation
def painted(image):
    "Paint it."
    assert json.loads("1") == 1
    return image // DIVISOR
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_plug_in_may_import_what_lies_beside_it_but_not_over_the_standard_library(
    coco: GoodStudy, workers: int
) -> None:
    home = coco.folder / "mine"
    home.mkdir()
    (home / "painter.py").write_text(PLUGIN)
    (home / "palette.py").write_text("DIVISOR = 1\n")
    (home / "json.py").write_text(TRAP)
    coco.study["plugins"].append("mine/painter.py")
    coco.study["mutations"] = ["painted"]
    command = ("run", coco.file, "--out", coco.run, "--workers", str(workers))
    coco.write()
    in_the_folder(coco, SCRIPT, *command).expect(PASS, "16/16 images done, ")
    assert not list(home.glob("*.imported"))
    (home / "palette.py").write_text("DIVISOR = 2\n")
    in_the_folder(coco, SCRIPT, *command).expect(PASS, "mutation painted changed", "8 of 16 images were done")


def test_each_plug_in_has_the_module_that_lies_beside_it(tmp_path: Path) -> None:
    made = {}
    for number, folder in enumerate(("one", "two"), start=1):
        home = tmp_path / folder
        home.mkdir()
        (home / f"{folder}.py").write_text(PLUGIN.replace("painted", folder))
        (home / "palette.py").write_text(f"DIVISOR = {number}\n")
        made[folder] = load_python(home / f"{folder}.py")
    image = np.full((2, 2, 3), 100, np.uint8)
    assert [made["one"].one(image).max(), made["two"].two(image).max()] == [100, 50]
    assert str(tmp_path) not in "".join(sys.path)


def test_a_plug_in_that_fails_leaves_no_module_for_the_next(tmp_path: Path) -> None:
    for folder, end in (("broken", "raise ValueError\n"), ("whole", "")):
        home = tmp_path / folder
        home.mkdir()
        (home / "user.py").write_text(f"from swatches import NAME\n{end}")
        (home / "swatches.py").write_text(f"NAME = {folder!r}\n")
    with pytest.raises(PluginError):
        load_python(tmp_path / "broken" / "user.py")
    assert load_python(tmp_path / "whole" / "user.py").NAME == "whole"

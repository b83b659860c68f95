"""Inputs that are easily overlooked: each is changed between two runs, and no result is reused."""

from __future__ import annotations

import json
import os
import py_compile
import shelve
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from bad_input.cases import INCOMPLETE, PASS
from bad_input.good_study import GoodStudy

from .test_identity import scores

READER = '''
import contextlib
import importlib
import importlib.machinery
import os
import shelve
import sqlite3
import sys
from pathlib import Path

import cv2
import numpy as np

from adverse import sut

HERE = Path(__file__).parent


def read_plus(path):
    with open(path, "r+") as file:
        return file.read()


def append_plus(path):
    with open(path, "a+") as file:
        file.seek(0)
        return file.read()


def counted(path):
    """Read a score, and write beside it how often that was done."""
    with open(path, "r+") as file:
        score, _, count = file.read().partition(" ")
        file.seek(0)
        file.write(f"{score} {int(count or 0) + 1}")
    return score


def by_handle(path):
    return os.read(os.open(path, os.O_RDWR | os.O_CREAT), 3)


def database(path):
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT score FROM scores").fetchone()[0]


def database_by_uri(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT score FROM scores").fetchone()[0]


def shelf(path):
    with shelve.open(str(path)) as opened:
        return opened["score"]


def module(path):
    sys.path.insert(0, str(path))
    return importlib.import_module(path.name).SCORE


def package(path):
    sys.path.append(str(path / "site-packages"))
    import installed_model
    return installed_model.score()


def compiled(path):
    return importlib.machinery.SourcelessFileLoader("compiled", str(path)).load_module().SCORE


def by_opencv(path):
    return cv2.imread(str(HERE / "mask.png"))[0, 0, 0] / 100


WAYS = {
    "read plus": read_plus,
    "append plus": append_plus,
    "counted": counted,
    "O_RDWR": by_handle,
    "sqlite": database,
    "sqlite uri": database_by_uri,
    "memmap": lambda path: np.memmap(path, np.float32, "r+")[0],
    "shelf": shelf,
    "stale module": module,
    "sourceless": module,
    "pycache": compiled,
    "package data": package,
    "shared memory": lambda path: path.read_text(),
    "like a library": lambda path: path.read_text(),
    "variable": lambda path: os.environ["HIDDEN_SCORE"],
    "opencv": by_opencv,
}


class Reader:
    classes = ("person",)

    def __init__(self, score):
        self.score = float(score)

    def detect(self, images):
        return [([[20, 10, 32, 40]], [self.score], [0]) for _ in images]


@sut
def reader(way: str):
    """Read a score from somewhere."""
    return Reader(WAYS[way](Path((HERE / f"{way}.path").read_text())))
'''
PROGRAM = """#!/bin/sh
echo '@adverse {"protocol": 1, "classes": ["person"], "ready": true}'
score=$(cat "$1")
while read -r line; do
    id=${line#*: }
    head -c 9216 > /dev/null
    echo "@adverse {\\"id\\": ${id%%,*}, \\"detections\\":" \\
        "[{\\"boxes\\": [[20, 10, 32, 40]], \\"scores\\": [$score], \\"labels\\": [0]}]}"
done
"""
"""Answers with the score in a file, which is open for a moment only."""


SWITCH = '''
import os
from pathlib import Path

from adverse import sut

HERE = Path(__file__).parent


def lead_to(name):
    if not (HERE / "still").exists():
        os.system(f"ln -sfn {name} {HERE}/link")


class Switch:
    classes = ("person",)

    def __init__(self, back):
        self.back = back
        lead_to("b" if back else "a")
        self.score = float((HERE / "link").read_text())
        lead_to("a" if back else "b")

    def detect(self, images):
        return [([[20, 10, 32, 40]], [self.score], [0]) for _ in images]


@sut
def switch(back: bool):
    """Read a score from where a link leads, which is elsewhere before and after."""
    return Switch(back)
'''


def text(path: Path, score: float) -> None:
    path.write_text(str(score))


def database(path: Path, score: float) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS scores (score)")
        connection.execute("DELETE FROM scores")
        connection.execute("INSERT INTO scores VALUES (?)", (score,))
    connection.close()


def shelf(path: Path, score: float) -> None:
    with shelve.open(str(path)) as opened:
        opened["score"] = score


def stale_module(path: Path, score: float) -> None:
    """Another source, of the same size and time as the one that was compiled, which Python then uses."""
    path.mkdir(exist_ok=True)
    source = path / f"{path.name}.py"
    shutil.rmtree(path / "__pycache__", ignore_errors=True)
    for value in (score, 0.5):
        source.write_text(f"SCORE = {value}\n")
        os.utime(source, (1_700_000_000, 1_700_000_000))
        if value == score:
            py_compile.compile(str(source))


def sourceless(path: Path, score: float) -> None:
    path.mkdir(exist_ok=True)
    source = path / f"{path.name}.py"
    source.write_text(f"SCORE = {score}\n")
    py_compile.compile(str(source), cfile=str(path / f"{path.name}.pyc"))
    source.unlink()


def in_pycache(path: Path, score: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_name("some.py")
    source.write_text(f"SCORE = {score}\n")
    py_compile.compile(str(source), cfile=str(path))
    source.unlink()


def package(path: Path, score: float) -> None:
    """Weights that a package has fetched into its folder, which no installer lists."""
    home = path / "site-packages" / "installed_model"
    home.mkdir(parents=True, exist_ok=True)
    (home / "__init__.py").write_text(
        "def score():\n    return open(__file__.replace('__init__.py', 'weights')).read()\n"
    )
    listed = path / "site-packages" / "installed_model-1.dist-info" / "RECORD"
    listed.parent.mkdir(exist_ok=True)
    listed.write_text("installed_model/__init__.py,,\n")
    (home / "weights").write_text(str(score))


def memory_map(path: Path, score: float) -> None:
    path.write_bytes(np.float32(score).tobytes())


FILES: dict[str, tuple[str, Callable[[Path, float], None]]] = {
    "read plus": ("{}/in/r+", text),
    "append plus": ("{}/in/a+", text),
    "counted": ("{}/in/counted", text),
    "O_RDWR": ("{}/in/rdwr", text),
    "sqlite": ("{}/in/sqlite", database),
    "sqlite uri": ("{}/in/uri.db", database),
    "memmap": ("{}/in/memmap", memory_map),
    "shelf": ("{}/in/shelf", shelf),
    "stale module": ("{}_stale", stale_module),
    "sourceless": ("{}_sourceless", sourceless),
    "pycache": ("{}-x/__pycache__/some.cpython-399.pyc", in_pycache),
    "package data": ("{}-packages", package),
    "shared memory": ("/dev/shm/{0.name}-{1}", text),
    "like a library": ("{}/lib/python3.11/weights", text),
}
COMMANDS = {
    "sh -c": ["sh", "-c", "./program.sh 'shell line'"],
    "sh -c cd": ["sh", "-c", "cd below && exec ../program.sh shell-folder"],
    "env": ["env", "SOME=1", "./program.sh", "env line"],
    "script": ["sh", "script.sh"],
}


@pytest.fixture
def study(tmp_path: Path) -> Iterator[GoodStudy]:
    home = tmp_path / "home"
    good = GoodStudy(home, "coco")
    places = {way: Path(place.format(home, os.getpid())) for way, (place, _) in FILES.items()}
    (home / "reads.py").write_text(READER)
    (home / "program.sh").write_text(PROGRAM)
    (home / "program.sh").chmod(0o755)
    program = PROGRAM.replace('$(cat "$1")', "${HIDDEN_SCORE:-0.1}")
    (home / "variable.sh").write_text(program)
    (home / "variable.sh").chmod(0o755)
    (home / "script.sh").write_text("./program.sh 'script line'\n")
    (home / "below").mkdir()
    (home / "in").mkdir()
    (home / "lib" / "python3.11").mkdir(parents=True)
    for way, place in places.items():
        (home / f"{way}.path").write_text(str(place))
    for way in ("variable", "opencv"):
        (home / f"{way}.path").write_text("none")
    good.study |= {"plugins": ["reads.py"], "suts": [], "robustness": {"bootstrap": 0}}
    good.study.pop("mutations")
    yield good
    places["shared memory"].unlink(missing_ok=True)


def change(study: GoodStudy, score: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a score to all places."""
    for way, (_, write) in FILES.items():
        write(Path((study.folder / f"{way}.path").read_text()), score)
    for name in ("shell line", "below/shell-folder", "env line", "script line"):
        (study.folder / name).write_text(str(score))
    cv2.imwrite(str(study.folder / "mask.png"), np.full((1, 1, 3), round(100 * score), np.uint8))
    monkeypatch.setenv("HIDDEN_SCORE", str(score))


@pytest.mark.fault(48)
def test_no_result_is_reused_when_a_hidden_input_changed(
    study: GoodStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ways as SUTs of one study, with a worker process, which imports each module anew."""
    ways = [*FILES, "variable"]
    study.study["suts"] = [{"name": way, "adapter": "reader", "way": way} for way in ways]
    study.study["suts"] += [
        {"name": "opencv", "adapter": "reader", "way": "opencv", "files": ["mask.png"]},
        {"name": "program variable", "adapter": "command", "argv": ["./variable.sh"], "cwd": "."},
        {"name": "not handed on", "adapter": "command", "argv": ["./variable.sh"], "cwd": "."},
        *({"name": name, "adapter": "command", "argv": argv, "cwd": "."} for name, argv in COMMANDS.items()),
    ]
    study.study["suts"][-len(COMMANDS) - 2]["env"] = ["HIDDEN_SCORE"]
    names = [sut["name"] for sut in study.study["suts"]]
    change(study, 0.9, monkeypatch)
    study.adverse(workers=1).expect(PASS, "warning: SUT counted reads and writes")
    before = {name: {0.5 if name == "stale module" else 0.9} for name in names} | {"not handed on": {0.1}}
    assert scores(study) == before
    images = 8 * len(names)
    study.adverse("plan").expect(PASS, f"{images} done, 0 to do")
    study.adverse("verify").expect(PASS, "SUT counted reads and writes", "unless the study names them")
    report = (study.run / "report.html").read_text()
    assert "SUT counted reads and writes" in report
    assert "unless the study names them" in report
    change(study, 0.5, monkeypatch)
    unchanged = 8 * 2  # what is not handed on, and the module whose source is the same
    planned = study.adverse("plan")
    planned.expect(
        PASS, f"{unchanged} done, {images - unchanged} to do", "$HIDDEN_SCORE, read by SUT variable"
    )
    said = study.adverse(workers=1)
    said.expect(PASS, f"{unchanged} of {images} images were done before")
    assert scores(study) == {name: {0.5} for name in names} | {"not handed on": {0.1}}
    assert "0.5" not in json.dumps(json.loads((study.run / "manifest.json").read_text())["files_read"])
    study.adverse("plan").expect(PASS, f"{images} done, 0 to do")
    monkeypatch.delenv("HIDDEN_SCORE")
    study.adverse("verify").expect(PASS, "note: $HIDDEN_SCORE: read by the run with another value")


@pytest.mark.fault(48)
@pytest.mark.parametrize("way", ["read", "planned"])
def test_a_link_that_is_switched_during_a_unit(study: GoodStudy, way: str) -> None:
    """And even back again: what is hashed is what the link led to when it was opened."""
    for name, score in (("a", 0.9), ("b", 0.5)):
        (study.folder / name).write_text(str(score))
    (study.folder / "link").symlink_to("a")
    (study.folder / "switch.py").write_text(SWITCH)
    study.study["plugins"] = ["switch.py"]
    study.study["suts"] = [{"name": "switch", "adapter": "switch", "back": way == "planned"}]
    if way == "planned":
        study.study["suts"][0]["files"] = ["link"]
    link = study.folder / "link"
    study.adverse(workers=1).expect(INCOMPLETE, f"{link} was changed", "not kept")
    (study.folder / "still").touch()
    study.adverse(workers=1).expect(PASS)
    assert scores(study) == {"switch": {float(link.read_text())}}

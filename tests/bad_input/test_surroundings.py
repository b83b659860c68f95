"""What a SUT or the machine does around a run: folders, generators, output and clocks change no result."""

from __future__ import annotations

import ast
import itertools
import time
from pathlib import Path
from typing import Any

import pytest

import adverse

from .cases import PASS
from .command import adverse_here
from .good_study import GoodStudy

MEDDLER = '''
import os, random, sys
import numpy as np
from adverse import sut
from probe import look

class Meddler:
    classes = ("person",)

    def __init__(self, meddles):
        self.meddles = meddles

    def detect(self, images):
        if self.meddles:
            os.chdir("/")
            random.seed(1)
            np.random.seed(1)
            os.environ["TZ"] = "Nowhere/Never"
            print("@adverse {}", flush=True)
            os.write(1, b"raw bytes")
            sys.stderr.write("more noise")
        return [look(image) for image in images]

@sut
def meddler(meddles: bool = False):
    """Find the red figure, and leave nothing as it was."""
    return Meddler(meddles)
'''


def results(study: GoodStudy) -> Any:
    """Return what was counted, and the detections without the SUT's fingerprint."""
    return [
        {key: row[key] for key in ("setting", "level", "area", "truths")} for row in study.summary()["rows"]
    ]


@pytest.mark.fault(39)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_sut_that_leaves_nothing_as_it_was(
    coco: GoodStudy, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Relative paths, as a user types them: the folder is another one after the first answer."""
    (coco.folder / "meddler.py").write_text(MEDDLER)
    monkeypatch.setenv("TZ", "UTC")  # so that the next test gets back what it was
    coco.study["plugins"] = ["probe.py", "meddler.py"]
    coco.study["mutations"] = ["salt_pepper(fraction=0.02)"]
    found = []
    for meddles in (False, True):
        coco.study["suts"] = [{"name": "meddler", "adapter": "meddler", "meddles": meddles}]
        coco.rewrite()
        coco.run = coco.folder / f"run-{meddles}"
        monkeypatch.chdir(coco.folder)
        said = adverse_here("run", "study.yaml", "--out", coco.run.name, "--workers", str(workers))
        said.expect(PASS, "16/16 images done")
        adverse_here("verify", coco.run).expect(PASS)
        found.append(results(coco))
    assert found[0] == found[1]


@pytest.mark.fault(51)
def test_a_clock_that_jumps(coco: GoodStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day on, a day back, at every look; the run is stopped in between and resumed."""
    coco.adverse().expect(PASS)
    straight = {path.name: path.read_bytes() for path in (coco.run / "results").iterdir()}
    coco.run = coco.folder / "jumping"
    jumps = itertools.cycle((86_400, -86_400, 0, -3_600))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    coco.adverse().expect(PASS)
    journal = coco.run / "journal"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    coco.adverse().expect(PASS, "8 of 16 images were done before")
    assert {path.name: path.read_bytes() for path in (coco.run / "results").iterdir()} == straight


WALL_CLOCK = {"time", "localtime", "gmtime", "ctime", "now", "utcnow", "today"}


@pytest.mark.fault(51)
def test_nothing_reads_the_wall_clock() -> None:
    """Timers are monotonic, and order comes from the journal. A run only notes when it ended."""
    source = Path(adverse.__file__).parent
    readers = [
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in WALL_CLOCK
        and isinstance(node.value, ast.Name)
        and node.value.id in ("time", "datetime", "date")
    ]
    assert readers == ["study/run.py"]

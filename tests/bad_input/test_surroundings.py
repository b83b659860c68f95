"""What a SUT or the machine does around a run: folders, generators, output and clocks change no result."""

from __future__ import annotations

import ast
import itertools
import time
from pathlib import Path
from typing import Any

import cv2
import pytest
from PIL import Image as Pil
from PIL import ImageFile

import adverse

from .cases import PASS
from .command import adverse_here
from .good_study import PICTURES, GoodStudy, picture

MEDDLER = '''
import decimal, locale, os, random, signal, socket, sys, warnings
import cv2
import numpy as np
from PIL import Image, ImageFile
from adverse import mutation, sut
from probe import look

def set_all():
    os.chdir("/")
    os.umask(0o777)
    random.seed(1)
    np.random.seed(1)
    np.seterr(all="raise")
    np.set_printoptions(precision=1, threshold=1)
    warnings.simplefilter("error")
    cv2.setUseOptimized(False)
    cv2.setNumThreads(8)
    cv2.setRNGSeed(1)
    locale.setlocale(locale.LC_ALL, "C")
    socket.setdefaulttimeout(1e-9)
    decimal.getcontext().prec = 1
    sys.setrecursionlimit(200)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    Image.MAX_IMAGE_PIXELS = 1

class Meddler:
    classes = ("person",)

    def __init__(self, meddles):
        self.meddles = meddles
        if meddles:
            set_all()

    def detect(self, images):
        if self.meddles:
            assert np.geterr()["over"] == "raise", "a SUT finds its own settings again"
            set_all()
            os.environ["TZ"] = "Nowhere/Never"
            print("@adverse {}", flush=True)
            os.write(1, b"raw bytes")
            sys.stderr.write("more noise")
        return [look(image) for image in images]

@sut
def meddler(meddles: bool = False):
    """Find the red figure, and leave nothing as it was."""
    return Meddler(meddles)

@mutation
def meddling(image, *, meddles: bool = False):
    """Leave the image alone, and nothing else."""
    if meddles:
        set_all()
    return image
'''


def results(study: GoodStudy) -> Any:
    """Return what was counted, and the detections without the SUT's fingerprint."""
    return [
        {key: row[key] for key in ("setting", "level", "area", "truths")}
        for row in study.summary()["rows"]
        if not row["setting"].startswith("meddling")
    ]


@pytest.mark.fault(39)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_sut_that_leaves_nothing_as_it_was(
    coco: GoodStudy, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Relative paths, as a user types them: the folder is another one after the first answer.

    `low_light` has underflows. A BMP that is cut off is quarantined, also where Pillow is told to read it.
    """
    cut = coco.images[-1]
    cut.write_bytes(cv2.imencode(".bmp", picture(PICTURES - 1))[1].tobytes()[:2000])
    coco.study["quarantine_budget"] = 0.2
    (coco.folder / "meddler.py").write_text(MEDDLER)
    monkeypatch.setenv("TZ", "UTC")  # so that the next test gets back what it was
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)
    monkeypatch.setattr(Pil, "MAX_IMAGE_PIXELS", Pil.MAX_IMAGE_PIXELS)
    coco.study["plugins"] = ["probe.py", "meddler.py"]
    found = []
    for meddles in (False, True):
        coco.study["suts"] = [{"name": "meddler", "adapter": "meddler", "meddles": meddles}]
        mutations = [f"meddling(meddles={meddles})", "low_light(stops=1)", "salt_pepper(fraction=0.02)"]
        coco.study["mutations"] = mutations
        coco.rewrite()
        coco.run = coco.folder / f"run-{meddles}"
        monkeypatch.chdir(coco.folder)
        said = adverse_here("run", "study.yaml", "--out", coco.run.name, "--workers", str(workers))
        said.expect(PASS, "32/32 images done", "1 frame could not be used")
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
    """Timers are monotonic, and order comes from the journal.

    A run only notes when it ended, and `adverse status` says how long ago another process wrote.
    """
    source = Path(adverse.__file__).parent
    readers = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in WALL_CLOCK
        and isinstance(node.value, ast.Name)
        and node.value.id in ("time", "datetime", "date")
    }
    assert readers == {"study/run.py", "store/status.py", "cli/status.py"}

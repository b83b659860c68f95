"""Pictures are what the SUTs saw, to the pixel; as few are kept as fit; what is gone is said."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from starlette.testclient import TestClient

import adverse
from adverse.data.images import write_image
from adverse.pages.view.frames import CHANGED, Pictures
from adverse.pages.view.session import ExploredRun
from adverse.types import Image

NOISE = ("salt_pepper(fraction=0.3)", "c.gaussian_noise(severity=3)")


class Witness:
    """A detector that remembers what it was shown."""

    classes = ("person",)
    fingerprint = "witness"

    def __init__(self) -> None:
        self.shown: list[str] = []

    def detect(self, images: Sequence[Image]) -> list[Any]:
        self.shown += [hashlib.sha256(image.tobytes()).hexdigest() for image in images]
        return [([[1, 1, 9, 9]], [0.5]) for _ in images]


@pytest.fixture
def seen(tmp_path: Path) -> tuple[Path, Witness]:
    rng = np.random.default_rng(4)
    root = tmp_path / "data"
    entries: list[dict[str, Any]] = []
    for name in ("a/0.png", "a/1.png", "b/0.png"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        write_image(root / name, rng.integers(0, 256, (12, 16, 3)).astype(np.uint8))
        entries.append({"id": len(entries) + 1, "file_name": name, "width": 16, "height": 12})
    truth = {
        "images": entries,
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 8, 8]}],
        "categories": [{"id": 1, "name": "person"}],
    }
    (root / "truth.json").write_text(json.dumps(truth))
    witness = Witness()
    study = {
        "name": "seen",
        "seed": 11,
        "data": {"format": "folder", "root": str(root)},
        "mutations": list(NOISE),
        "robustness": {"bootstrap": 0},
    }
    adverse.run(study, tmp_path / "run", detectors={"witness": witness})
    return tmp_path / "run", witness


def test_pictures_are_what_the_sut_was_shown(
    seen: tuple[Path, Witness], guest_of: Callable[[Path], TestClient]
) -> None:
    run, witness = seen
    guest = guest_of(run)
    hashes = set()
    for setting in ("identity", *NOISE):
        for log, frame in (("a", 0), ("a", 1), ("b", 0)):
            answer = guest.get("/picture.png", params={"setting": setting, "log": log, "frame": frame})
            assert answer.headers["content-type"] == "image/png"
            image = cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_COLOR)
            assert image is not None
            hashes.add(hashlib.sha256(np.ascontiguousarray(image[..., ::-1]).tobytes()).hexdigest())
    assert len(hashes) == 9
    assert hashes == set(witness.shown)


def test_as_few_pictures_are_kept_as_fit(seen: tuple[Path, Witness]) -> None:
    run = ExploredRun(seen[0])
    one = len(Pictures(run).of(0, "identity").png)
    pictures = Pictures(run, most_bytes=int(2.5 * one))
    for setting in ("identity", NOISE[0], NOISE[1]):
        for frame in range(3):
            pictures.of(frame, setting)
            assert sum(len(kept.png) for kept in pictures.kept.values()) <= 2.5 * one
    assert list(pictures.kept) == [(1, NOISE[1]), (2, NOISE[1])]
    before = pictures.kept[1, NOISE[1]]
    assert pictures.of(1, NOISE[1]) is before
    assert list(pictures.kept)[-1] == (1, NOISE[1])


def test_data_that_changed_since_the_run_are_noticed(
    seen: tuple[Path, Witness], guest_of: Callable[[Path], TestClient]
) -> None:
    run, _ = seen
    write_image(run.parent / "data" / "a" / "0.png", np.zeros((12, 16, 3), np.uint8))
    guest = guest_of(run)
    first, second = (guest.get("/frame.json", params={"log": "a", "frame": n}).json() for n in (0, 1))
    assert first["sides"]["left"]["why"] == CHANGED
    assert second["sides"]["left"]["why"] is None
    assert CHANGED in guest.get("/explore", params={"log": "a", "frame": 0}).text


def test_data_that_are_gone_leave_the_curves_and_a_reason(
    seen: tuple[Path, Witness], guest_of: Callable[[Path], TestClient]
) -> None:
    run, _ = seen
    guest = guest_of(run)
    data = run.parent / "data"
    data.rename(run.parent / "elsewhere")
    page = guest.get("/explore.json").json()
    why = page["frame"]["sides"]["left"]["why"]
    assert "data" in why
    assert str(run.parent) not in why
    assert page["frame"]["sides"]["left"]["found"]
    assert page["curves"]["panels"]
    assert guest.get("/explore").status_code == 200
    (run.parent / "elsewhere").rename(data)
    assert guest.get("/frame.json").json()["sides"]["left"]["picture"]

"""Studies from Python, with detectors that are objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import adverse
from adverse.errors import StudyError
from adverse.types import Detections, Image
from analysis.test_results import write_images

DATA = {"format": "coco", "root": "data", "annotations": "truth.json"}


def bright(images: Sequence[Image]) -> list[Any]:
    return [([[10, 5, 31, 25]], [float(image.max()) / 255], [0]) for image in images]


class Counting:
    classes = ("person",)

    def __init__(self, fingerprint: str | None = None) -> None:
        self.asked = 0
        if fingerprint:
            self.fingerprint = fingerprint

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        self.asked += len(images)
        return [Detections.none() for _ in images]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    write_images(tmp_path)
    path = tmp_path / "study.yaml"
    path.write_text(
        json.dumps({"name": "api", "data": DATA, "suts": [], "mutations": ["brightness(scale=0)"]})
    )
    return path


def test_a_function_is_a_detector(study: Path, tmp_path: Path) -> None:
    summary = adverse.run(study, tmp_path / "run", detectors={"bright": bright})
    areas = {row["setting"]: row["area"] for row in summary.rows if row["level"] == "image/ROC_A"}
    assert areas["identity"] == 1
    assert areas["brightness(scale=0)"] == 0


@pytest.mark.parametrize(("fingerprint", "asked_again"), [("weights-1", False), (None, True)])
def test_answers_are_used_again_only_if_the_object_says_what_it_is(
    study: Path,
    tmp_path: Path,
    fingerprint: str | None,
    asked_again: bool,  # noqa: FBT001
) -> None:
    for wanted in (True, asked_again):
        detector = Counting(fingerprint)
        adverse.run(study, tmp_path / "run", detectors={"counting": detector})
        assert (detector.asked > 0) == wanted


def test_something_else_is_refused(study: Path, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no detector"):
        adverse.run(study, tmp_path / "run", detectors={"seven": 7})

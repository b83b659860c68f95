"""Annotations that are a frame off: found by what a live detector says of clean frames; no false alarm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from adverse.api import GIVEN
from adverse.requirements import run_figures
from adverse.strict_yaml import YamlFile
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.shifted_truth import SHIFTED
from adverse.study.spec import study_with
from adverse.suts.recorded_shift import shifted_truth
from adverse.types import Image
from suts.test_recorded_shift import CONSECUTIVE, frames_of
from watching import Quiet

FRAMES, SIDE = 14, 12
PLACES = np.random.default_rng(4).integers(0, (80 - SIDE, 64 - SIDE), (FRAMES + 1, 2)).tolist()


def white(images: Sequence[Image]) -> list[Any]:
    """Find the white square by its pixels."""
    answers = []
    for image in images:
        rows, columns = np.nonzero(image[..., 0] > 128)
        answers.append(([[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]], [0.9], [0]))
    return answers


@pytest.mark.parametrize(
    ("speed", "off", "noise", "warned"),
    [
        (400, 1, 1, True),  # photos
        (400, -2, 1, True),
        (400, 0, 1, False),
        (400, 1, 200, False),  # it finds nothing anywhere
        (3, 0, 1, False),  # video
        (3, 1, 1, False),  # 3 pixels of 30 and 40: it fits both frames
        (25, 1, 1, True),  # fast video: no box fits the next frame
        (25, 0, 1, False),
        (0, 1, 1, False),  # nothing moves
        (0, 1, 9, False),
    ],
)
def test_no_alarm_where_own_frames_fit_as_well_or_none_does(
    speed: float, off: int, noise: float, *, warned: bool
) -> None:
    frames = frames_of(CONSECUTIVE, speed=speed)
    rng = np.random.default_rng(2)
    found = {
        frame.id: seen.truth.boxes + rng.normal(0, noise, seen.truth.boxes.shape)
        for n, frame in enumerate(frames)
        for seen in frames[max(n + off, 0) : n + off + 1]
    }
    assert (shifted_truth(found, frames) is not None) == warned


def test_truth_that_is_a_frame_off_is_told_by_the_run(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for number, (x, y) in enumerate(PLACES[:FRAMES]):
        image = np.zeros((64, 80, 3), np.uint8)
        image[y : y + SIDE, x : x + SIDE] = 255
        cv2.imwrite(str(tmp_path / "images" / f"{number:02}.png"), image)
    truth = {
        "images": [
            {"id": n + 1, "file_name": f"{n:02}.png", "width": 80, "height": 64} for n in range(FRAMES)
        ],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {
                "id": n + 1,
                "image_id": n + 1,
                "category_id": 1,
                "bbox": [x, y, SIDE, SIDE],
                "area": SIDE * SIDE,
                "iscrowd": 0,
            }
            for n, (x, y) in enumerate(PLACES[1:])
        ],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    data = {"format": "coco", "root": str(tmp_path), "annotations": str(tmp_path / "truth.json")}
    study = {"name": "s", "data": data, "suts": [], "mutations": ["brightness(scale=0.9)"]}
    watch = Quiet()
    file = study_with(YamlFile(GIVEN, study, {}), {"mine": white})
    done = run_study(file, tmp_path / "run", InlineEngine(), watch=watch, stop=Stop())
    (line,) = done.folder.read_manifest()["warnings"]
    assert watch.notes == [f"warning: {line}"]
    assert line.startswith(run_figures.SHIFTED)
    assert "0 of 14 true objects are hit, and 13 of 13 if each is compared with the truth of" in line
    assert run_figures.SHIFTED == SHIFTED

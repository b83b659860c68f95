"""The study's choice of localizer: what depth boxes are kept with, and what is done again when it changes."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adverse
from adverse.analysis.pairing import pair
from adverse.errors import StudyError
from adverse.store.finished_run import finished
from adverse.study.spec import study_from
from adverse.types import Detections, Localizer
from analysis.test_context import PERSON_M, STEP_M, WALL_M, perfect, write_drives

WIDER = 2.1
"""Boxes so much wider than the person hold more wall than person, but not in their middle."""


class Counting:
    """The perfect detector, which tells how often it was asked."""

    classes = ("person",)
    fingerprint = "1"
    calls = 0

    def detect(self, images: Any) -> list[Detections]:
        self.calls += 1
        return [
            Detections(np.array(boxes, np.float32).reshape(-1, 4), np.array(scores), np.array(labels, int))
            for boxes, scores, labels in perfect(images)
        ]


def study(root: Path, localizer: Localizer | None) -> dict[str, object]:
    said = {} if localizer is None else {"localizer": localizer}
    return {"name": "l", "data": {"format": "folder", "root": str(root)}, "levels": ["located"], **said}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run by default, and one for each localizer."""
    root = tmp_path_factory.mktemp("localizer")
    write_drives(root / "data")
    truth = json.loads((root / "data" / "truth.json").read_text())
    for annotation in truth["annotations"]:
        x, y, width, height = annotation["bbox"]
        annotation["bbox"] = [x - (WIDER - 1) / 2 * width, y, WIDER * width, height]
    (root / "data" / "truth.json").write_text(json.dumps(truth))
    choices: dict[str, Localizer | None] = {
        "default": None,
        "foreground": "foreground",
        "box_median": "box_median",
    }
    for name, localizer in choices.items():
        adverse.run(study(root / "data", localizer), root / name, detectors={"perfect": perfect})
    return {name: root / name for name in choices}


def test_the_default_reads_the_person_and_box_median_the_wall(runs: dict[str, Path]) -> None:
    depths = {name: finished(path).truth_depths_m() for name, path in runs.items()}
    away = PERSON_M - STEP_M * np.arange(len(depths["default"]))
    apart = np.abs(np.log(away / WALL_M)) > 0.3  # or person and wall are one mode
    assert apart.sum() > 20
    np.testing.assert_allclose(depths["default"][apart], away[apart], rtol=1e-3)
    np.testing.assert_array_equal(depths["default"], depths["foreground"])
    np.testing.assert_allclose(depths["box_median"], WALL_M)


def test_the_choice_is_kept_with_the_run(runs: dict[str, Path]) -> None:
    kept = {name: finished(path).run.localizer for name, path in runs.items()}
    assert kept == {"default": "foreground", "foreground": "foreground", "box_median": "box_median"}


def test_runs_with_different_localizers_stand_side_by_side(runs: dict[str, Path]) -> None:
    assert not any(
        "read in different ways" in note for note in pair(runs["default"], runs["foreground"], {}).notes
    )
    notes = pair(runs["default"], runs["box_median"], {}).notes
    assert "the depth of boxes was read in different ways: box_median and foreground" in notes


def test_another_choice_is_another_answer(runs: dict[str, Path], tmp_path: Path) -> None:
    data = runs["default"].parent / "data"
    counting = Counting()
    run = functools.partial(adverse.run, out=tmp_path / "run", detectors={"counting": counting})
    run(study(data, "foreground"))
    asked = counting.calls
    run(study(data, "foreground"))
    assert counting.calls == asked
    run(study(data, "box_median"))
    assert counting.calls == 2 * asked
    np.testing.assert_allclose(finished(tmp_path / "run").truth_depths_m(), WALL_M)


def test_a_localizer_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    whole = {**study(tmp_path, None), "localizer": "box_mean"}
    with pytest.raises(StudyError, match="localizer"):
        study_from(whole, tmp_path)

"""Whole studies whose every number is known beforehand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from adverse.analysis.results import analyze
from adverse.data.images import write_image
from adverse.errors import DataError, IncompleteError
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import StudyRun, run_study
from adverse.study.spec import study_from
from watching import Quiet

SQUARE = """
import numpy as np
from adverse import Detections, sut

class Square:
    classes = ("person",)
    def detect(self, images):
        return [self.look(image) for image in images]
    def look(self, image):
        if image[0, 0, 0] == 7:
            raise RuntimeError("seven is bad luck")
        ys, xs = np.nonzero(image[..., 1] > 128)
        if not len(ys):
            return Detections.none()
        return Detections([[xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]], [0.9])

@sut
def square():
    \"\"\"Find the one white square, exactly.\"\"\"
    return Square()
"""


def write_images(folder: Path, *, people: int = 4, unlucky: int = 0) -> None:
    """Write 8 images, `people` of them with a square, the first `unlucky` of those bad luck."""
    (folder / "data" / "images").mkdir(parents=True)
    images, annotations = [], []
    for number in range(8):
        image = np.zeros((40, 60, 3), np.uint8)
        if number < people:
            image[5 : 5 + 20, 10 + number : 30 + number] = 255
            box = [10 + number, 5, 20, 20]
            annotations.append({"id": number, "image_id": number, "category_id": 1, "bbox": box})
        image[0, 0] = 7 if number < unlucky else 0
        write_image(folder / "data" / "images" / f"{number}.png", image)
        images.append({"id": number, "file_name": f"{number}.png", "width": 60, "height": 40})
    truth = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "person"}]}
    (folder / "data" / "truth.json").write_text(json.dumps(truth))
    (folder / "square.py").write_text(SQUARE)


def run(folder: Path, mutations: list[Any], stop: Stop | None = None) -> StudyRun:
    data = {"format": "coco", "root": "data", "annotations": "truth.json"}
    suts = [{"name": "square", "adapter": "square"}]
    study: dict[str, Any] = {"name": "known", "plugins": ["square.py"], "data": data, "suts": suts}
    study |= {"mutations": mutations} if mutations else {}
    return run_study(
        study_from(study, folder), folder / "run", InlineEngine(), watch=Quiet(), stop=stop or Stop()
    )


def study(folder: Path, mutations: list[Any], *, people: int = 4, unlucky: int = 0) -> Path:
    write_images(folder, people=people, unlucky=unlucky)
    return run(folder, mutations).folder.path


def figures(folder: Path, level: str = "image/ROC_A") -> dict[str, dict[str, Any]]:
    return {row["setting"]: row for row in analyze(folder).rows if row["level"] == level}


@pytest.mark.parametrize("level", ["image/ROC_A", "image/ROC_B"])
def test_a_perfect_detector_that_darkness_blinds(tmp_path: Path, level: str) -> None:
    found = figures(study(tmp_path, ["brightness(scale=0)", "brightness(scale=0.9)"]), level)
    assert found["identity"]["area"] == found["identity"]["robustness"] == 1
    assert found["brightness(scale=0.9)"]["area"] == 1
    assert found["brightness(scale=0)"]["area"] == found["brightness(scale=0)"]["robustness"] == 0
    assert found["Any"]["area"] == found["AnyMild"]["area"] == 0
    assert {row["status"] for row in found.values()} == {"ok"}


def test_any_and_any_mild_differ_by_the_severe(tmp_path: Path) -> None:
    dark = {"brightness": {"scale": 0}, "group": "severe"}
    found = figures(study(tmp_path, [dark, "brightness(scale=0.9)"]))
    assert (found["AnyMild"]["area"], found["Any"]["area"]) == (1, 0)
    assert found["brightness(scale=0)"]["group"] == "severe"


def test_a_fault_stays_in_the_denominator_and_is_shown_with_and_without(tmp_path: Path) -> None:
    folder = study(tmp_path, [], unlucky=1)
    row = figures(folder)["identity"]
    assert (row["area"], row["area_without_faults"], row["faults"]) == (0.75, 1.0, 1)
    summary = json.loads((folder / "results" / "summary.json").read_text())
    counts = summary["counts"]["square"]
    assert counts["planned"] == counts["ok"] + counts["fault"] + counts["quarantined"] == 8
    troubles = pq.read_table(folder / "results" / "troubles.parquet").to_pylist()
    assert [(row["frame"], row["status"]) for row in troubles] == [("0", "fault")]
    assert "seven is bad luck" in troubles[0]["reason"]


def test_no_positives_is_insufficient_not_zero(tmp_path: Path) -> None:
    found = figures(study(tmp_path, ["brightness(scale=0.9)"], people=0))
    assert {row["status"] for row in found.values()} == {"insufficient"}
    assert {row["area"] for row in found.values()} == {None}


def test_no_negatives_leaves_roc_b_undefined_and_roc_a_sound(tmp_path: Path) -> None:
    folder = study(tmp_path, [], people=8)
    assert figures(folder, "image/ROC_A")["identity"]["status"] == "ok"
    assert figures(folder, "image/ROC_B")["identity"]["status"] == "insufficient"


def test_quarantine_beyond_the_budget_is_incomplete(tmp_path: Path) -> None:
    write_images(tmp_path)
    (tmp_path / "data" / "images" / "3.png").write_bytes(b"<html>not found</html>")
    row = figures(run(tmp_path, []).folder.path)["identity"]
    assert (row["status"], row["quarantined"], row["frames"], row["truths"]) == ("incomplete", 1, 7, 3)
    assert row["area"] == 1  # of those that ran


def test_nothing_usable_is_an_error(tmp_path: Path) -> None:
    write_images(tmp_path)
    for path in (tmp_path / "data" / "images").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match="not one frame"):
        analyze(run(tmp_path, []).folder.path)


def test_an_unfinished_run_gives_no_numbers(tmp_path: Path) -> None:
    write_images(tmp_path)
    stop = Stop()
    stop.soft = True
    ran = run(tmp_path, [], stop)
    assert ran.status == "interrupted"
    with pytest.raises(IncompleteError, match="not finished"):
        analyze(ran.folder.path)


def test_curves_table_holds_what_the_area_is_made_of(tmp_path: Path) -> None:
    folder = study(tmp_path, [], unlucky=2)
    analyze(folder)
    table = pq.read_table(folder / "results" / "curves.parquet").to_pylist()
    mine = [row for row in table if (row["setting"], row["level"]) == ("identity", "image/ROC_A")]
    assert [(row["safety"], row["efficiency"]) for row in mine] == [(0.0, 1.0), (0.5, 1.0)]
    assert [(row["sensitivity"], row["resolved"]) for row in mine] == [(0.0, False)] * 2
    shared = pq.read_table(folder / "results" / "sensitivity.parquet").to_pylist()
    assert len(shared) == 100
    assert [row["resolved"] for row in shared].count(False) == sum(r["sensitivity"] < 1 / 8 for r in shared)

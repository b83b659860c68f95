"""COCO results of a run: pycocotools takes them, and so do we, with nothing lost on the way."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import adverse
from adverse.data.images import write_image
from adverse.store.finished_run import finished as open_run
from adverse.store.folder import existing_run
from bad_input.command import adverse_here
from bad_input.good_study import BOX, PICTURES, GoodStudy

SETTINGS = ("identity", "brightness(scale=0.9)")


@pytest.fixture
def finished(tmp_path: Path) -> GoodStudy:
    study = GoodStudy(tmp_path / "study", "coco")
    for number, image in enumerate(study.truth["images"]):  # ids of the data set's own, in no order
        image["id"] = 1000 - 7 * number
    for annotation in study.truth["annotations"]:
        annotation["image_id"] = 1000 - 7 * annotation["image_id"]
    study.truth["categories"] = [{"id": 3, "name": "dog"}, {"id": 44, "name": "person"}]
    for annotation in study.truth["annotations"]:
        annotation["category_id"] = 44
    study.adverse().expect(0)
    return study


def exported(study: GoodStudy, out: Path, *options: str) -> Any:
    said = adverse_here("export", study.run, out, *options)
    assert said.code == 0, said.text
    return json.loads((out / "index.json").read_text())["results"]


def test_pycocotools_takes_them_and_finds_what_is_there(finished: GoodStudy, tmp_path: Path) -> None:
    out = tmp_path / "coco"
    index = exported(finished, out)
    assert [(one["sut"], one["setting"], one["file"]) for one in index] == [
        ("probe", setting, f"probe/{setting}.json") for setting in SETTINGS
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(out / "annotations.json"))
        results = truth.loadRes(str(out / index[0]["file"]))
        evaluation = COCOeval(truth, results, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    assert sorted(truth.getImgIds()) == sorted(1000 - 7 * number for number in range(PICTURES))
    names = {image["id"]: image["file_name"] for image in finished.truth["images"]}
    assert {number: image["file_name"] for number, image in truth.imgs.items()} == names
    assert [category["name"] for category in truth.loadCats(truth.getCatIds())] == ["dog", "person"]
    assert len(results.getAnnIds()) == PICTURES // 2
    assert evaluation.stats[0] == pytest.approx(1.0)  # the probe is always right
    assert truth.loadAnns(truth.getAnnIds())[0]["bbox"] == list(BOX)


def test_boxes_and_scores_are_those_of_the_run_to_the_bit(finished: GoodStudy, tmp_path: Path) -> None:
    index = exported(finished, tmp_path / "coco")
    store = open_run(finished.run)
    for one in index:
        entries = json.loads((tmp_path / "coco" / one["file"]).read_text())
        answers = store.answers("probe")[one["setting"]]
        corners = np.array([entry["bbox"] for entry in entries])
        corners[:, 2:] += corners[:, :2]
        np.testing.assert_array_equal(corners.astype(np.float32), answers.boxes)
        np.testing.assert_array_equal(
            np.array([entry["score"] for entry in entries], np.float32), answers.scores
        )


def test_our_own_predictions_adapter_gives_the_same_results(finished: GoodStudy, tmp_path: Path) -> None:
    exported(finished, tmp_path / "coco")
    before = finished.summary()["rows"]
    finished.study["suts"] = [
        {
            "name": "probe",
            "adapter": "predictions",
            "path": str(tmp_path / "coco" / "probe" / "{mutation}.json"),
            "annotations": str(tmp_path / "coco" / "annotations.json"),
        }
    ]
    finished.rewrite()
    finished.adverse("run", "--fresh").expect(0)
    assert finished.summary()["rows"] == before


def test_faults_and_unusable_images_are_named(tmp_path: Path) -> None:
    study = GoodStudy(tmp_path / "study", "coco")
    study.sut(mood="nan score", at=2)
    study.images[5].write_bytes(b"no image")
    study.adverse()
    out = tmp_path / "coco"
    for one in exported(study, out):
        assert (one["faults"], one["quarantined"]) == ([2], [5])
        assert {entry["image_id"] for entry in json.loads((out / one["file"]).read_text())} == {0, 1, 3}
    truth = json.loads((out / "annotations.json").read_text())
    assert [image["id"] for image in truth["images"]] == [0, 1, 2, 3, 4, 6, 7]
    assert "2 files, 6 detections, 2 faults, 2 unusable images" in adverse_here("export", study.run, out).text


def test_only_what_is_asked_for(finished: GoodStudy, tmp_path: Path) -> None:
    index = exported(finished, tmp_path / "coco", "--sut", "probe", "--setting", "identity")
    assert [one["setting"] for one in index] == ["identity"]


def test_bad_requests_are_told_with_a_fix(finished: GoodStudy, tmp_path: Path) -> None:
    out = tmp_path / "coco"
    adverse_here("export", finished.run, out, "--sut", "prob").expect(
        2, "no SUT 'prob'", "Did you mean 'probe'"
    )
    adverse_here("export", finished.run, out, "--setting", "identiti").expect(2, "no setting 'identiti'")
    adverse_here("export", tmp_path / "nowhere", out).expect(2, "nowhere")
    (tmp_path / "file").write_text("")
    adverse_here("export", finished.run, tmp_path / "file").expect(2, "file")
    folder = existing_run(finished.run)
    folder.write_manifest({**folder.read_manifest(), "status": "interrupted"})
    adverse_here("export", finished.run, out).expect(3, "not finished")


def test_a_run_without_boxes_is_told(tmp_path: Path) -> None:
    class Dark:
        classes = ("dark", "bright")

        def classify(self, images: Any) -> list[Any]:
            return [[1 - image.mean() / 255, image.mean() / 255] for image in images]

    for name, value in (("dark", 5), ("bright", 250)):
        (tmp_path / "data" / name).mkdir(parents=True)
        write_image(tmp_path / "data" / name / "a.png", np.full((8, 8, 3), value, np.uint8))
    study = {
        "name": "classes",
        "task": "classification",
        "data": {"format": "class-folders", "root": str(tmp_path / "data")},
        "mutations": ["brightness(scale=0.9)"],
    }
    adverse.run(study, tmp_path / "run", detectors={"dark": Dark()})
    adverse_here("export", tmp_path / "run", tmp_path / "out").expect(2, "a run of task classification")


def test_export_keeps_to_its_own_folder(finished: GoodStudy, tmp_path: Path) -> None:
    """Nothing of others is overwritten, and no file of an earlier export is left among the new ones."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "annotations.json").write_text("mine")
    for folder in (mine, finished.run):
        adverse_here("export", finished.run, folder).expect(2, str(folder), "not a folder of COCO results")
    assert (mine / "annotations.json").read_text() == "mine"
    out = tmp_path / "coco"
    exported(finished, out)
    (out / "probe" / "notes.json").write_text("mine")
    exported(finished, out, "--setting", "identity")
    assert sorted(path.name for path in (out / "probe").iterdir()) == ["identity.json", "notes.json"]

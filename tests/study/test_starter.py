"""adverse init: from a folder and a model to a study that runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from adverse.cli import main
from adverse.cli.app import app
from adverse.data.images import write_image
from adverse.study.starter import _also_known
from stereo_scenes import orchard

SHARED = Path(__file__).parents[3] / "shared"


def write_data(root: Path, name: str) -> None:
    (root / "images").mkdir(parents=True)
    images, annotations = [], []
    for number in range(1, 5):
        image = np.full((48, 64, 3), 90, np.uint8)
        image[10:30, 20:40] = 220
        write_image(root / "images" / f"{number}.png", image)
        images.append({"id": number, "file_name": f"{number}.png", "width": 64, "height": 48})
        if number % 2:
            annotations.append({"id": number, "image_id": number, "category_id": 1, "bbox": [20, 10, 20, 20]})
    told = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": name}]}
    (root / "instances.json").write_text(json.dumps(told))


def write_model(path: Path, *, prototypes: int = 0) -> None:
    """Write a detector of one class that always finds the same box, in YOLOv8's shape, or with masks."""
    rows = np.zeros((1, 5 + prototypes, 60), np.float32)
    rows[0, :5, 0] = [30, 20, 20, 20, 0.9]
    rows[0, 5:, 0] = 1
    masks = {"output1": np.ones((1, prototypes, 12, 16), np.float32)} if prototypes else {}
    write_constant(path, {"output0": rows, **masks})


def write_constant(path: Path, outputs: Mapping[str, Any]) -> None:
    """Write a model that always answers the same."""
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values, f"{name}_value"))
        for name, values in outputs.items()
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 48, 64])
    out = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, list(values.shape))
        for name, values in outputs.items()
    ]
    graph = helper.make_graph(nodes, "tiny", [image], out)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))


def test_a_classifier_and_folders_of_classes_become_a_finished_run(tmp_path: Path) -> None:
    """Without boxes and with a classifier, a folder says what its images show: half of them a cat."""
    for number, name in enumerate(["cat", "dog"]):
        (tmp_path / "data" / name).mkdir(parents=True)
        for shade in (60, 160):
            image = np.full((48, 64, 3), shade + number, np.uint8)
            write_image(tmp_path / "data" / name / f"{shade}.png", image)
    write_constant(tmp_path / "model.onnx", {"scores": np.array([[0.9, 0.1]], np.float32)})
    study = tmp_path / "study.yaml"
    said = adverse("init", tmp_path / "data", tmp_path / "model.onnx", "--out", study)
    assert said.exit_code == 0, said.output
    assert yaml.safe_load(study.read_text())["data"]["format"] == "class-folders"
    words = ("init", tmp_path / "data", tmp_path / "model.onnx", "--out")
    assert adverse(*words, tmp_path / "quiet.yaml", "--quiet").output == ""
    written = json.loads(adverse(*words, tmp_path / "second.yaml", "--json").output)
    assert (written["study"], written["picture"]) == (str(tmp_path / "second.yaml"), None)
    assert all(f"- {line}" in said.output for line in written["assumed"])
    assert written["assumed"]
    ran = adverse("run", study, "--workers", 0, "--out", tmp_path / "run")
    assert ran.exit_code == 0, ran.output
    rows = json.loads((tmp_path / "run" / "results" / "summary.json").read_text())["rows"]
    assert {row["scores"]["top1"] for row in rows} == {0.5}


def test_a_classifier_and_boxes_are_one_error_and_no_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The study that was written could not run."""
    write_data(tmp_path / "data", "person")
    write_constant(tmp_path / "model.onnx", {"scores": np.array([[0.9, 0.1]], np.float32)})
    study = tmp_path / "study.yaml"
    with pytest.raises(SystemExit) as ended:
        main(["init", str(tmp_path / "data"), str(tmp_path / "model.onnx"), "--out", str(study)])
    assert ended.value.code == 2
    assert "4 of 4 test frames have none" in capsys.readouterr().err
    assert not study.exists()


def adverse(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.mark.parametrize("name", ["person", "pedestrian"])
def test_a_coco_file_and_a_model_become_a_finished_run(tmp_path: Path, name: str) -> None:
    write_data(tmp_path / "data", name)
    write_model(tmp_path / "model.onnx")
    study = tmp_path / "study.yaml"
    said = adverse("init", tmp_path / "data", tmp_path / "model.onnx", "--out", study)
    assert said.exit_code == 0, said.output
    told = yaml.safe_load(study.read_text())
    assert told["suts"][0]["decoder"] == "yolo-v8"
    assert told["targets"] == [name]
    assert not Path(told["suts"][0]["model"]).is_absolute()
    picture = cv2.imread(str(tmp_path / "study.png"))
    assert picture is not None
    assert picture.shape == (720, 960, 3)
    ran = adverse("run", study, "--workers", 0, "--out", tmp_path / "run")
    assert ran.exit_code == 0, ran.output
    summary = json.loads((tmp_path / "run" / "results" / "summary.json").read_text())
    assert {row["sut"] for row in summary["rows"]} == {"model"}
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize("masked", [True, False])
def test_a_model_with_masks_is_judged_by_them_where_the_data_have_some(
    tmp_path: Path,
    masked: bool,  # noqa: FBT001
) -> None:
    write_data(tmp_path / "data", "person")
    truth = json.loads((tmp_path / "data" / "instances.json").read_text())
    for annotation in truth["annotations"][: 2 if masked else 1]:
        annotation["segmentation"] = [[20, 10, 40, 10, 40, 30, 20, 30]]
    (tmp_path / "data" / "instances.json").write_text(json.dumps(truth))
    write_model(tmp_path / "model.onnx", prototypes=4)
    study = tmp_path / "study.yaml"
    said = adverse("init", tmp_path / "data", tmp_path / "model.onnx", "--out", study)
    assert said.exit_code == 0, said.output
    made = yaml.safe_load(study.read_text())
    assert made["suts"][0]["decoder"] == "yolo-seg"
    assert made.get("task") == ("instance-segmentation" if masked else None)
    assert made["targets"] == ["person"]
    assert ("1 of 4 images have objects without one" in study.read_text()) != masked
    assert adverse("plan", study).exit_code == 0


def test_classes_that_are_left_out_are_named() -> None:
    data: Any = SimpleNamespace(categories=("person", "car", "kite"))
    model: Any = SimpleNamespace(classes=("person", "automobile", "dog"))
    assert _also_known(data, model, {"class_map": {"automobile": "car"}}, "person") == ["car"]
    assert _also_known(data, None, {}, "person") == []


def test_a_study_is_never_written_over(tmp_path: Path) -> None:
    write_data(tmp_path / "data", "person")
    study = tmp_path / "study.yaml"
    study.write_text("mine")
    with pytest.raises(SystemExit) as ended:
        main(["init", str(tmp_path / "data"), "--out", str(study)])
    assert ended.value.code == 2
    assert study.read_text() == "mine"


def test_without_a_model_hog_stands_in(tmp_path: Path) -> None:
    write_data(tmp_path / "data", "pedestrian")
    said = adverse("init", tmp_path / "data", "--out", tmp_path / "study.yaml")
    assert said.exit_code == 0, said.output
    told = yaml.safe_load((tmp_path / "study.yaml").read_text())
    assert told["suts"] == [{"name": "hog", "adapter": "opencv-hog", "class_map": {"person": "pedestrian"}}]


@pytest.mark.skipif(not SHARED.exists(), reason="needs the real data in ../shared")
@pytest.mark.parametrize(
    ("data", "levels", "depth"),
    [("coco128_permissive", ["image"], False), ("kitti_object_NC", ["image", "located"], True)],
)
def test_real_data_and_a_real_model(tmp_path: Path, data: str, levels: list[str], depth: bool) -> None:  # noqa: FBT001
    study = tmp_path / "study.yaml"
    said = adverse("init", SHARED / "data" / data, SHARED / "models" / "FastestDet.onnx", "--out", study)
    assert said.exit_code == 0, said.output
    told = yaml.safe_load(study.read_text())
    assert (told["levels"], told.get("depth")) == (levels, {"from": "laser"} if depth else None)
    assert (told["suts"][0]["decoder"], told["suts"][0]["classes"]) == ("fastestdet", "coco-80")
    planned = adverse("plan", study)
    assert planned.exit_code == 0, planned.output


def test_stereo_pairs_without_depth_are_used_for_it(tmp_path: Path) -> None:
    pair = orchard(3, 160, 120)
    for kind, image in (("images", pair.left), ("right", pair.right)):
        (tmp_path / "data" / "row" / kind).mkdir(parents=True)
        write_image(tmp_path / "data" / "row" / kind / "0.png", image)
    (tmp_path / "data" / "camera.json").write_text(json.dumps(asdict(pair.camera)))
    said = adverse("init", tmp_path / "data", "--out", tmp_path / "study.yaml")
    assert said.exit_code == 0, said.output
    told = yaml.safe_load((tmp_path / "study.yaml").read_text())
    assert told["depth"] == {"from": "stereo"}
    assert "first-look-depth" in told["mutations"]

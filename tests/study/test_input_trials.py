"""How images are shown to a model, found by trying: models that see a red box in one way only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.data.images import write_image
from adverse.study.input_trials import RankedDetections, pooled_precision

SIDE, WIDTH, HEIGHT, BOX = 32, 128, 32, (32, 12)
RED, BLUE = (220, 40, 40), (40, 40, 220)
CONTRAST = (RED[0] - BLUE[0]) / 255


def write_data(root: Path, *, labelled: bool = True) -> None:
    """Write 10 blue images with one red box each, somewhere."""
    (root / "images").mkdir(parents=True)
    images, annotations = [], []
    for number in range(10):
        x, y = 8 + 8 * number, 4 + 4 * (number % 3)
        image = np.full((HEIGHT, WIDTH, 3), BLUE, np.uint8)
        image[y : y + BOX[1], x : x + BOX[0]] = RED
        write_image(root / "images" / f"{number}.png", image)
        images.append({"id": number, "file_name": f"{number}.png", "width": WIDTH, "height": HEIGHT})
        annotations.append({"id": number + 1, "image_id": number, "category_id": 1, "bbox": [x, y, *BOX]})
    told = {
        "images": images,
        "annotations": annotations if labelled else [],
        "categories": [{"id": 1, "name": "person"}],
    }
    (root / "instances.json").write_text(json.dumps(told))


def write_model(path: Path, resize: str, channels: str, contrast: float, **metadata: str) -> None:
    """Write a grid detector that is surest where red less blue, over a window like the box, is `contrast`."""
    wide = BOX[0] * SIDE // WIDTH
    tall = BOX[1] * SIDE // (WIDTH if resize == "letterbox" else HEIGHT)
    kernel = [(side - 1) // 2 * 2 + 1 for side in (tall, wide)]
    weights = np.zeros((1, 3, *kernel), np.float32)
    red, blue = (0, 2) if channels == "rgb" else (2, 0)
    weights[0, red], weights[0, blue] = 1 / np.prod(kernel), -1 / np.prod(kernel)
    middle, size = np.arctanh(0.5), [wide / SIDE, tall / SIDE]
    logits = [float(np.log(share / (1 - share))) for share in size]
    rest = np.zeros((1, 5, SIDE, SIDE), np.float32)
    for channel, value in enumerate([middle, middle, *logits, 1.0]):
        rest[0, channel] = value
    constants = {"weights": weights, "contrast": np.float32(contrast), "steep": np.float32(2 / contrast)}
    pads = [side // 2 for side in kernel]
    nodes = [
        helper.make_node("Conv", ["image", "weights"], ["redness"], pads=[*pads, *pads]),
        helper.make_node("Sub", ["redness", "contrast"], ["off"]),
        helper.make_node("Abs", ["off"], ["away"]),
        helper.make_node("Mul", ["away", "steep"], ["far"]),
        helper.make_node("Sub", ["one", "far"], ["near"]),
        helper.make_node("Relu", ["near"], ["objectness"]),
        helper.make_node("Concat", ["objectness", "rest"], ["o"], axis=1),
    ]
    given = {**constants, "one": np.float32(1), "rest": rest}
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIDE, SIDE])
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [1, 6, SIDE, SIDE])
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in given.items()]
    graph = helper.make_graph(nodes, "red", [image], [out], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, metadata)
    onnx.save(model, str(path))


def init(tmp_path: Path) -> tuple[dict[str, Any], str, str]:
    """Return the SUT of the study that is written, the whole text, and what is printed."""
    study = tmp_path / "study.yaml"
    words = ["init", str(tmp_path / "data"), str(tmp_path / "model.onnx"), "--out", str(study)]
    said = CliRunner().invoke(app, words, catch_exceptions=False)
    assert said.exit_code == 0, said.output
    text = study.read_text()
    return yaml.safe_load(text)["suts"][0], text, said.output


@pytest.mark.parametrize(
    ("resize", "channels", "contrast", "wanted"),
    [
        ("stretch", "bgr", CONTRAST, {}),
        ("letterbox", "rgb", CONTRAST * 255, {"scale": 1.0}),
        ("letterbox", "bgr", CONTRAST * 2, {"scale": pytest.approx(1 / 127.5), "mean": [1, 1, 1]}),
        ("stretch", "rgb", CONTRAST, {}),
    ],
)
def test_the_way_in_which_the_model_sees_is_found(
    tmp_path: Path, resize: str, channels: str, contrast: float, wanted: dict[str, Any]
) -> None:
    write_data(tmp_path / "data")
    write_model(tmp_path / "model.onnx", resize, channels, contrast)
    sut, text, said = init(tmp_path)
    assert (sut["resize"], sut["channels"]) == (resize, channels)
    assert {key: sut[key] for key in ("scale", "mean", "std") if key in sut} == wanted
    assert f"images are shown as {resize} (area), {channels.upper()}" in said
    assert "pooled AP50 1.000 on 10 labelled images, 16 ways tried" in said
    assert text.count("#     0.000  ") >= 8  # what was tried and finds nothing is in the file too


def test_unlabelled_data_leave_a_guess_that_is_called_one(tmp_path: Path) -> None:
    write_data(tmp_path / "data", labelled=False)
    write_model(tmp_path / "model.onnx", "letterbox", "rgb", CONTRAST)
    sut, text, said = init(tmp_path)
    assert (sut["resize"], sut["channels"]) == ("stretch", "bgr")  # as the family does
    for heard in (text, said):
        assert "GUESSED: images are shown as stretch (area), BGR, pixels / 255" in heard
        assert "Check resize:, channels:, scale:, mean: and std:" in heard
    assert "study.png: detections are orange" in said, "there is no ground truth to draw"


def test_what_the_model_itself_says_is_taken(tmp_path: Path) -> None:
    write_data(tmp_path / "data")
    write_model(
        tmp_path / "model.onnx", "letterbox", "rgb", CONTRAST, names="{}", stride="32", imgsz="[32, 32]"
    )
    sut, _, said = init(tmp_path)
    assert (sut["resize"], sut["channels"]) == ("letterbox", "rgb")
    assert "its metadata are those of a YOLO export" in said


def test_a_model_that_finds_nothing_is_told(tmp_path: Path) -> None:
    write_data(tmp_path / "data")
    write_model(tmp_path / "model.onnx", "letterbox", "rgb", 1e6)
    sut, _, said = init(tmp_path)
    assert (sut["resize"], sut["channels"]) == ("stretch", "bgr")
    assert "NO WAY FITS: check decoder:" in said


def test_pooled_precision_is_that_of_a_slow_loop() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        ranked = []
        for _ in range(6):
            hits = rng.random(8) < 0.4
            ranked.append(
                RankedDetections(
                    rng.permutation(100)[:8] / 100 + rng.random() / 1000, hits, int(hits.sum()) + 2
                )
            )
        pairs = sorted(
            ((s, h) for one in ranked for s, h in zip(one.scores, one.hits, strict=True)), reverse=True
        )
        total = sum(one.truths for one in ranked)
        precisions = [sum(h for _, h in pairs[: n + 1]) / (n + 1) for n in range(len(pairs))]
        area = sum(max(precisions[n:]) / total for n, (_, hit) in enumerate(pairs) if hit)
        assert pooled_precision(ranked) == pytest.approx(area)
    assert pooled_precision([]) == 0

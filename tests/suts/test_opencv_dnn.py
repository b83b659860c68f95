"""The opencv-dnn adapter: tiny Darknet and ONNX nets whose answers are known in closed form."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from adverse.data.images import ImageFile
from adverse.errors import SutError
from adverse.plugins import bind, by_options, load
from adverse.suts.ask import ask
from adverse.suts.fingerprint import fingerprint
from adverse.suts.onnx import onnx_model as onnx_adapter
from adverse.suts.opencv_dnn import opencv_dnn as opencv_dnn_adapter
from adverse.suts.score_cuts import uncut
from adverse.types import Image

onnx_model = by_options(onnx_adapter)
opencv_dnn = by_options(opencv_dnn_adapter)

NAMES = ["person", "car"]
IMAGE = np.full((100, 200, 3), 90, np.uint8)
TX, TY, TW, TH, OBJECTNESS, PERSON, CAR = 0.4, -0.3, 0.2, -0.1, 1.5, -2.0, 2.0
ANCHOR = (16, 24)
CFG = """[net]
width=64
height=32
channels=3

[convolutional]
filters=7
size=1
stride=32
pad=0
activation=linear

[yolo]
mask=0
anchors={},{}
classes=2
num=1
"""


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.fixture
def darknet(tmp_path: Path) -> tuple[Path, Path]:
    return darknet_net(tmp_path, OBJECTNESS)


def darknet_net(folder: Path, objectness: float, more: str = "") -> tuple[Path, Path]:
    """Write a net of one anchor on a grid of 2 x 1 cells that says the same in each, whatever it sees."""
    cfg, weights = folder / "tiny.cfg", folder / "tiny.weights"
    cfg.write_text(CFG.format(*ANCHOR) + more)
    biases = np.array([TX, TY, TW, TH, objectness, PERSON, CAR], np.float32)
    header = np.array([0, 2, 0, 0, 0], np.int32)
    weights.write_bytes(header.tobytes() + biases.tobytes() + np.zeros(7 * 3, np.float32).tobytes())
    return weights, cfg


def onnx_net(path: Path, rows: list[list[float]]) -> Path:
    """Write a net of the given (1, 1, N, 7) answer, plus 0 times the mean of what it sees."""
    values = np.array(rows, np.float32).reshape(-1)
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["image"], ["mean"]),
            helper.make_node("Flatten", ["mean"], ["flat"]),
            helper.make_node("Gemm", ["flat", "w", "b"], ["line"]),
            helper.make_node("Reshape", ["line", "shape"], ["detections"]),
        ],
        "rows",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 50, 100])],
        [helper.make_tensor_value_info("detections", TensorProto.FLOAT, [1, 1, len(rows), 7])],
        [
            numpy_helper.from_array(np.zeros((3, len(values)), np.float32), "w"),
            numpy_helper.from_array(values, "b"),
            numpy_helper.from_array(np.array([1, 1, len(rows), 7], np.int64), "shape"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path


def test_a_darknet_net_gives_the_boxes_of_its_equations(darknet: tuple[Path, Path]) -> None:
    weights, cfg = darknet
    detector: Any = opencv_dnn(weights, "darknet", (64, 32), config=cfg, classes=NAMES)
    answer: Any = ask(detector, [IMAGE], name="tiny")[0]
    assert detector.classes == tuple(NAMES)
    assert answer.labels.tolist() == [1, 1]
    np.testing.assert_allclose(answer.scores, [sigmoid(OBJECTNESS) * sigmoid(CAR)] * 2, rtol=1e-5)
    wide, tall = ANCHOR[0] / 64 * math.exp(TW), ANCHOR[1] / 32 * math.exp(TH)
    wanted = []
    for column in (0, 1):
        x, y = (column + sigmoid(TX)) / 2, sigmoid(TY)
        box = [x - wide / 2, y - tall / 2, x + wide / 2, y + tall / 2]
        wanted.append([min(max(v, 0), 1) * side for v, side in zip(box, (200, 100, 200, 100), strict=True)])
    np.testing.assert_allclose(sorted(answer.boxes.tolist()), wanted, rtol=1e-4)


@pytest.mark.parametrize("more", ["", "thresh = .6\n", "\nthresh=0.2\n\n# the end"])
@pytest.mark.parametrize("objectness", [-1.7, -6.0])
def test_a_darknet_score_is_kept_down_to_the_score_threshold(
    tmp_path: Path, objectness: float, more: str
) -> None:
    """OpenCV itself drops what scores below 0.2, or below the training option `thresh` of a [region]."""
    weights, cfg = darknet_net(tmp_path, objectness, more)
    wanted = sigmoid(objectness) * sigmoid(CAR)
    assert 0.001 < wanted < 0.2
    for threshold, scores in ((0.001, [wanted] * 2), (wanted * 1.01, [])):
        options: dict[str, Any] = {"config": cfg, "classes": NAMES, "score_threshold": threshold}
        detector: Any = opencv_dnn(weights, "darknet", (64, 32), **options)
        np.testing.assert_allclose(detector.detect([IMAGE])[0].scores, scores, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        (".prototxt", "{ nms_threshold: 0.45 confidence_threshold:0.25 }", b"confidence_threshold:0.001 }"),
        (".prototxt", "confidence_threshold: 1e-8\nkeep_top_k: 100", b"threshold: 1e-8\nkeep_top_k: 100"),
        (".pbtxt", 'key: "confidence_threshold"\n value {\n f: 0.3\n}', b"\n value {\n f: 0.001\n}"),
        (".pbtxt", "key: 'confidence_threshold' value: { f: .5 }", b"value: { f: 0.001 }"),
        (".pbtxt", 'key: "nms_threshold"\n value {\n f: 0.6\n}', b"f: 0.6"),
        (".cfg", "[yolo]\r\nthresh = .2\r\nignore_thresh = .7\r\n[net]\r\nthresh=3", b"ignore_thresh = .7"),
    ],
)
def test_a_cut_in_a_description_is_lowered_and_nothing_else_changes(
    kind: str, text: str, wanted: bytes
) -> None:
    made = uncut(text.encode(), kind, 0.001)
    assert wanted in made
    assert uncut(made, kind, 0.001) == made
    assert (b"thresh=3" in made) == ("thresh=3" in text)


def test_answers_do_not_depend_on_batches_or_threads(darknet: tuple[Path, Path], picture: Image) -> None:
    weights, cfg = darknet
    detector: Any = opencv_dnn(weights, "darknet", (64, 32), config=cfg, classes=NAMES)
    threads = cv2.getNumThreads()
    one, other = detector.detect([picture, IMAGE])
    assert one.same(detector.detect([picture])[0])
    assert other.same(detector.detect([IMAGE])[0])
    assert cv2.getNumThreads() == threads
    assert detector.detect([]) == []


def test_rows_of_a_detection_output_layer(tmp_path: Path) -> None:
    rows: list[list[float]] = [
        [0, 1, 0.8, 0.2, 0.2, 0.6, 1.0],
        [0, 0, 0.0005, 0, 0, 1, 1],
        [-1, 0, 0, 0, 0, 0, 0],
    ]
    detector: Any = opencv_dnn(
        onnx_net(tmp_path / "a.onnx", rows), "detection-output", (100, 50), classes=NAMES
    )
    answer: Any = ask(detector, [IMAGE], name="tiny")[0]
    np.testing.assert_allclose(answer.boxes, [[40, 20, 120, 100]], atol=1e-3)
    np.testing.assert_allclose(answer.scores, [0.8], atol=1e-6)
    assert answer.labels.tolist() == [1]


def test_not_a_number_is_a_fault(tmp_path: Path) -> None:
    rows = [[0.0, 1.0, float("nan"), 0.2, 0.2, 0.6, 1.0]]
    detector: Any = opencv_dnn(
        onnx_net(tmp_path / "a.onnx", rows), "detection-output", (100, 50), classes=NAMES
    )
    with pytest.raises(SutError, match="finite"):
        ask(detector, [IMAGE], name="tiny")


def test_a_study_can_say_it_and_both_files_are_part_of_the_fingerprint(darknet: tuple[Path, Path]) -> None:
    weights, cfg = darknet
    plugin = load().get("sut", "opencv-dnn")
    given = {"model": weights.name, "config": cfg.name, "decoder": "darknet", "size": [64, 32]}
    options = bind(plugin, {**given, "classes": NAMES}, where="suts[0]", base=weights.parent)
    assert len(plugin.function(**options).detect([IMAGE])[0]) == 2
    before = fingerprint(plugin, options)
    cfg.write_text(cfg.read_text() + "\n")
    assert fingerprint(plugin, options) != before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"classes": ["person"]}, "(N, 6)"),
        ({"decoder": "detection-output"}, "1 images with 3 axes each"),
        ({"decoder": "ssd"}, "[boxes, scores, labels, number]"),
        ({"outputs": ["yolo_9"]}, "no output 'yolo_9'"),
        ({"config": None}, "Add config: tiny.cfg"),
        ({"model": "tiny.pt"}, ".weights (Darknet)"),
        ({"model": "gone.weights"}, "gone.weights"),
    ],
)
def test_what_does_not_fit_is_found_when_it_is_built(
    darknet: tuple[Path, Path], options: dict[str, Any], told: str
) -> None:
    weights, cfg = darknet
    given: dict[str, Any] = {
        "decoder": "darknet",
        "size": (64, 32),
        "config": cfg,
        "classes": NAMES,
        **options,
    }
    model = weights.with_name(given.pop("model", weights.name))
    with pytest.raises(SutError) as caught:
        opencv_dnn(model, **given)
    assert told in str(caught.value)


def test_damaged_files_are_told_by_name(tmp_path: Path) -> None:
    for ending, config in ((".onnx", None), (".caffemodel", "a.prototxt"), (".pb", "a.pbtxt")):
        path = tmp_path / f"bad{ending}"
        path.write_bytes(b"<html>not found</html>")
        if config:
            (tmp_path / config).write_text("<html>")
        with pytest.raises(SutError, match="OpenCV cannot read") as caught:
            opencv_dnn(path, "detection-output", (9, 9), config=config and tmp_path / config)
        assert path.name in str(caught.value)


def test_an_opencv_without_the_reader_is_told_with_the_fix(
    darknet: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(cv2.dnn, "readNetFromDarknet")
    with pytest.raises(SutError, match="cannot read Darknet") as caught:
        opencv_dnn(darknet[0], "darknet", (64, 32), config=darknet[1], classes=NAMES)
    assert 'pip install "opencv-python-headless<5"' in str(caught.value)


def test_a_real_onnx_model_gives_the_answers_of_onnx_runtime(fastestdet: Path, photos: Path) -> None:
    options: dict[str, Any] = {"resize": "stretch", "interpolation": "area", "channels": "bgr"}
    options["score_threshold"] = 0.3
    image = ImageFile(photos / "train2017" / "000000000071.jpg")()
    theirs: Any = onnx_model(fastestdet, "fastestdet", **options)
    ours: Any = opencv_dnn(fastestdet, "fastestdet", (352, 352), **options)
    (wanted,), (found,) = theirs.detect([image]), ours.detect([image])
    assert len(wanted) > 0
    assert found.labels.tolist() == wanted.labels.tolist()
    np.testing.assert_allclose(found.boxes, wanted.boxes, atol=0.05)
    np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-3)

"""Segmenters and classifiers through every adapter of networks: the answers are those of the onnx adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from adverse.errors import SutError
from adverse.plugins import by_options
from adverse.suts.ask import ask, task_of
from adverse.suts.litert import litert_model as litert_adapter
from adverse.suts.onnx import onnx_model as onnx_adapter
from adverse.suts.open_inference import served_model as served_adapter
from adverse.suts.opencv_dnn import opencv_dnn as opencv_dnn_adapter
from adverse.types import Image
from inference_server import Model, serving
from tiny_tflite import write_tflite

onnx_model = by_options(onnx_adapter)
litert_model = by_options(litert_adapter)
opencv_dnn = by_options(opencv_dnn_adapter)
served_model = by_options(served_adapter)

NAMES = ["sky", "road", "person"]
SIZE = (32, 24)


def conv_net(path: Path, task: str) -> Path:
    """Write a net of one convolution: scores of three classes for each 4 x 4 pixels, or their mean."""
    weights = np.random.default_rng(4).normal(size=(3, 3, 4, 4)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["image", "w"], ["map"], strides=[4, 4], kernel_shape=[4, 4])]
    shape: list[int] = [1, 3, SIZE[1] // 4, SIZE[0] // 4]
    if task == "classification":
        nodes += [helper.make_node("GlobalAveragePool", ["map"], ["mean"])]
        nodes += [helper.make_node("Flatten", ["mean"], ["out"])]
        shape = [1, 3]
    else:
        nodes[0].output[0] = "out"
    graph = helper.make_graph(
        nodes,
        "conv",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIZE[1], SIZE[0]])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path


def same_answers(one: Any, other: Any, images: list[Image], task: str) -> None:
    assert task_of(one) == task_of(other) == task
    for first, second in zip(ask(one, images, name="one"), ask(other, images, name="other"), strict=True):
        if task == "classification":
            np.testing.assert_allclose(first.scores, second.scores, rtol=1e-4, atol=1e-5)
        else:
            assert np.mean(first.labels == second.labels) > 0.999


@pytest.mark.parametrize("task", ["segmentation", "classification"])
@pytest.mark.parametrize("resize", ["stretch", "letterbox"])
def test_opencv_and_a_server_answer_as_onnx_runtime_does(
    tmp_path: Path, picture: Image, task: Any, resize: Any
) -> None:
    path = conv_net(tmp_path / "a.onnx", task)
    images = [picture, np.ascontiguousarray(picture[:, :20])]
    here = onnx_model(path, task, classes=NAMES, resize=resize)
    same_answers(here, opencv_dnn(path, task, SIZE, classes=NAMES, resize=resize), images, task)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def net(values: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"out": session.run(None, {"image": values})[0]}

    with serving(Model(net, [1, 3, SIZE[1], SIZE[0]], ["out"])) as url:
        served = served_model(url, "tiny", task, classes=NAMES, resize=resize)
        same_answers(here, served, images, task)
        with pytest.raises(SutError, match="Check classes:"):
            served_model(url, "tiny", task, classes=NAMES[:2])


def test_litert_segments(tmp_path: Path) -> None:
    scores = np.zeros((1, 2, 4, 3), np.float32)
    scores[0, :, :2, 1] = 1  # the left half is road, the right half sky
    scores[0, :, 2:, 0] = 1
    path = write_tflite(tmp_path / "a.tflite", {"out": scores})
    segmenter = litert_model(path, "segmentation", classes=NAMES)
    answer: Any = ask(segmenter, [np.zeros((50, 100, 3), np.uint8)], name="tiny")[0]
    assert answer.labels.shape == (50, 100)
    assert (answer.labels[:, :50] == 1).all()
    assert (answer.labels[:, 51:] == 0).all()


def test_litert_classifies_also_from_quantized_scores(tmp_path: Path) -> None:
    scores = np.array([[0.25, 0.5, 0.125]], np.float32)
    path = write_tflite(tmp_path / "a.tflite", {"out": scores}, output_steps=(1 / 256, 0))
    classifier = litert_model(path, "classification", classes=NAMES)
    answer: Any = ask(classifier, [np.zeros((50, 100, 3), np.uint8)], name="tiny")[0]
    np.testing.assert_allclose(answer.scores, scores[0])
    assert answer.best(1).tolist() == [1]

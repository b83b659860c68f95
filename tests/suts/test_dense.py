"""Segmenters and classifiers: outputs to answers, through ONNX and over pipes."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from adverse.errors import SutError
from adverse.plugins import by_options
from adverse.suts import wire
from adverse.suts.ask import ask, check_answer, task_of
from adverse.suts.child import isolated
from adverse.suts.decoders import Output
from adverse.suts.dense import class_scores, label_map
from adverse.suts.onnx import onnx_model as onnx_adapter
from adverse.suts.preprocess import Preprocess, place
from adverse.types import ClassScores, LabelMap

onnx_model = by_options(onnx_adapter)

SEED = 5


def slow_scores(scores: NDArray[np.float64], size: tuple[int, int], placed: Any) -> NDArray[np.float64]:
    """Sample every class at every pixel of the image by hand, borders repeated."""
    _, rows, columns = scores.shape
    out = np.zeros((len(scores), placed.image_height, placed.image_width))
    for y in range(placed.image_height):
        for x in range(placed.image_width):
            fx = ((x + 0.5) * placed.width / placed.image_width + placed.left) * columns / size[0] - 0.5
            fy = ((y + 0.5) * placed.height / placed.image_height + placed.top) * rows / size[1] - 0.5
            x0, y0 = int(np.floor(fx)), int(np.floor(fy))
            px, py = fx - x0, fy - y0
            xs = np.clip([x0, x0 + 1], 0, columns - 1)
            ys = np.clip([y0, y0 + 1], 0, rows - 1)
            corner = scores[:, ys][:, :, xs]
            out[:, y, x] = (corner * np.outer([1 - py, py], [1 - px, px])).sum(axis=(1, 2))
    return out


@pytest.mark.parametrize("resize", ["stretch", "letterbox"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_scores_are_interpolated_before_the_best_is_chosen(
    resize: Any,
    channels_last: bool,  # noqa: FBT001
) -> None:
    scores = np.random.default_rng(SEED).normal(size=(4, 12, 16))
    placed = place(50, 30, (64, 48), resize=resize, anchor="centre")
    given = scores.transpose(1, 2, 0) if channels_last else scores
    found = label_map(Output("o", given.astype(np.float32)), 4, (64, 48), placed).labels
    wanted = slow_scores(scores, (64, 48), placed)
    second, first = np.sort(wanted, axis=0)[-2:]
    clear = first - second > 0.2  # cv2 places samples to 1/32 of a pixel, so near ties may turn
    assert clear.mean() > 0.7
    assert np.array_equal(found[clear], wanted.argmax(axis=0)[clear])


def test_labels_are_taken_from_the_nearest() -> None:
    labels = np.array([[0, 1], [2, 3]])
    placed = place(8, 8, (4, 4), resize="stretch", anchor="centre")
    found = label_map(Output("o", labels), 4, (4, 4), placed).labels
    assert np.array_equal(found, labels.repeat(4, 0).repeat(4, 1))
    assert np.array_equal(label_map(Output("o", labels[None]), 4, (4, 4), placed).labels, found)


def test_a_crop_shows_the_middle_at_seven_eighths() -> None:
    placed = place(512, 256, (224, 224), resize="crop", anchor="centre")
    assert (placed.width, placed.height, placed.left, placed.top) == (512, 256, -144, -16)
    image = np.zeros((256, 512, 3), np.uint8)
    image[16:240, 144:368] = 200
    seen, _ = Preprocess((224, 224), np.uint8, resize="crop", layout="nhwc").batch([image])
    assert (seen == 200).all()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((3, 4, 4), np.float32), "(3, 4, 4)"),
        (np.zeros((5, 4, 5, 2), np.float32), "(5, 4, 5, 2)"),
        (np.full((5, 4, 4), np.nan, np.float32), "NaN"),
        (np.full((4, 4), 0.5, np.float32), "0.5"),
    ],
)
def test_what_is_no_segmentation_is_refused(array: NDArray[Any], words: str) -> None:
    placed = place(4, 4, (4, 4), resize="stretch", anchor="centre")
    with pytest.raises(SutError) as caught:
        label_map(Output("o", array), 5, (4, 4), placed)
    assert words in str(caught.value)


def test_class_scores_may_have_axes_of_one_around_them() -> None:
    scores = np.array([0.1, 0.9, 0.3], np.float32)
    for shape in ((3,), (1, 3), (3, 1, 1)):
        assert np.array_equal(class_scores(Output("o", scores.reshape(shape)), 3).scores, scores)
    with pytest.raises(SutError, match="one score for each class"):
        class_scores(Output("o", scores), 4)


def test_equal_scores_rank_by_label() -> None:
    assert ClassScores([0.5, 0.7, 0.7, 0.1]).best(3).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (LabelMap(np.zeros((3, 4), int)), "not of the image's size"),
        (LabelMap(np.full((4, 4), 2)), "label 2"),
        (ClassScores([1, 2, 3]), "3 scores"),
    ],
)
def test_an_answer_must_fit_image_and_classes(answer: LabelMap | ClassScores, words: str) -> None:
    with pytest.raises(SutError) as caught:
        check_answer(answer, np.zeros((4, 4, 3), np.uint8), ("a", "b"))
    assert words in str(caught.value)


@pytest.mark.parametrize("labels", [[[0.5, 1]], [[-1, 0]], [[70000]], [1, 2], [[[1]]], "no", []])
def test_what_is_no_label_map_is_refused(labels: Any) -> None:
    with pytest.raises(SutError, match="label map"):
        LabelMap(labels)


@pytest.mark.parametrize("scores", [[np.nan, 1], [[1, 2]], [], "no", [1e40]])
def test_what_are_no_class_scores_is_refused(scores: Any) -> None:
    with pytest.raises(SutError, match="class scores"):
        ClassScores(scores)


def pass_through(path: Path, nodes: list[Any], output: str, shape: list[Any]) -> Path:
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))
    return path


IMAGES = [np.random.default_rng(n).integers(0, 256 >> n, (8, 8, 3)).astype(np.uint8) for n in range(3)]


def test_an_onnx_segmenter_says_which_colour_is_strongest(tmp_path: Path) -> None:
    model = pass_through(
        tmp_path / "m.onnx", [helper.make_node("Identity", ["image"], ["o"])], "o", ["n", 3, 8, 8]
    )
    system = onnx_model(model, "segmentation", classes=["red", "green", "blue"], resize="stretch")
    assert task_of(system) == "segmentation"
    answers = ask(system, IMAGES, name="colours")
    for image, answer in zip(IMAGES, answers, strict=True):
        assert isinstance(answer, LabelMap)
        assert np.array_equal(answer.labels, image.argmax(axis=2))


def test_an_onnx_classifier_says_which_colour_is_strongest(tmp_path: Path) -> None:
    nodes = [helper.make_node("GlobalAveragePool", ["image"], ["o"])]
    model = pass_through(tmp_path / "m.onnx", nodes, "o", ["n", 3, 1, 1])
    system = onnx_model(model, "classification", classes=["red", "green", "blue"], resize="stretch")
    answers = ask(system, IMAGES, name="colours")
    for image, answer in zip(IMAGES, answers, strict=True):
        assert isinstance(answer, ClassScores)
        assert np.allclose(answer.scores, image.mean(axis=(0, 1)) / 255, atol=1e-6)


def test_an_onnx_segmenter_with_the_wrong_classes_is_found_at_once(tmp_path: Path) -> None:
    model = pass_through(
        tmp_path / "m.onnx", [helper.make_node("Identity", ["image"], ["o"])], "o", ["n", 3, 8, 8]
    )
    with pytest.raises(SutError, match="not a segmentation"):
        onnx_model(model, "segmentation", classes=["a", "b"])
    with pytest.raises(SutError, match="which output"):
        onnx_model(model, "segmentation", classes=["a", "b", "c"], outputs=["other"])


PLUGIN = """
    import numpy as np
    from adverse import sut

    class Segmenter:
        classes = tuple(f"c{n}" for n in range(300))
        def segment(self, images):
            return [image[..., 0].astype(int) + (44 if image.max() > 199 else 0) for image in images]

    class Classifier:
        classes = ("red", "green", "blue")
        def classify(self, images):
            return [image.mean(axis=(0, 1)) / 7 for image in images]

    @sut
    def segmenter():
        return Segmenter()

    @sut
    def classifier():
        return Classifier()
"""


@pytest.mark.parametrize("adapter", ["segmenter", "classifier"])
def test_in_a_process_of_its_own_it_gives_the_same_bits(tmp_path: Path, adapter: str) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(textwrap.dedent(PLUGIN))
    scope: dict[str, Any] = {}
    exec(plugin.read_text(), scope)
    here = ask(scope[adapter](), IMAGES, name="here")
    with isolated(adapter, {}, [plugin], default_class="c0") as child:
        assert task_of(child) == {"segmenter": "segmentation", "classifier": "classification"}[adapter]
        there = ask(child, IMAGES, name="there")
    assert all(a.same(b) for a, b in zip(here, there, strict=True))
    if adapter == "segmenter":
        assert {str(a.labels.dtype) for a in here} == {"uint8", "uint16"}


@pytest.mark.parametrize(
    "said",
    [
        {"width": 2, "height": 2, "bits": 8, "data": "AAAA"},
        {"width": 2, "height": 2, "bits": 9, "data": "AAAAAA=="},
        {"width": 2, "height": 2, "bits": 8, "data": "?"},
        {"width": 2},
        7,
    ],
)
def test_a_label_map_that_cannot_be_read_is_a_fault(said: Any) -> None:
    line = wire.MARK + json.dumps({"id": 1, "label_maps": [said]}).encode()
    with pytest.raises(SutError, match="cannot be read"):
        wire.read_answer(wire.parse(line), 1, 1, "segmentation")


def test_a_program_must_name_a_task_there_is() -> None:
    line = wire.MARK + json.dumps({"protocol": 1, "task": "poetry", "classes": ["a"], "ready": True}).encode()
    with pytest.raises(SutError, match="task"):
        wire.read_ready(wire.parse(line))

"""The whole ONNX adapter: tiny models whose outputs are constants, and a real one on real photos."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from adverse.errors import SutError
from adverse.plugins import bind, by_options, load
from adverse.suts.ask import ask
from adverse.suts.onnx import onnx_model as onnx_adapter
from adverse.types import Detector, Image

onnx_model = by_options(onnx_adapter)

NAMES = ["person", "car", "dog"]
IMAGE = np.full((100, 200, 3), 90, np.uint8)
Tiny = Callable[..., Path]


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """Write a model that gives constants, whatever it sees; its input is added as nothing, to be used."""

    def write(
        arrays: dict[str, NDArray[Any]],
        shape: tuple[int | str, ...] = (1, 3, 50, 100),
        dtype: int = TensorProto.FLOAT,
    ) -> Path:
        nodes = [
            helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, f"{name}_value"))
            for name, array in arrays.items()
        ]
        graph = helper.make_graph(
            nodes,
            "tiny",
            [helper.make_tensor_value_info("image", dtype, shape)],
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in arrays.items()
            ],
        )
        return saved(graph, tmp_path / "tiny.onnx")

    return write


def built(*given: Any, **options: Any) -> Detector:
    return cast("Detector", onnx_model(*given, **options))


def saved(graph: Any, path: Path) -> Path:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))
    return path


def f32(values: Any) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def logit(p: float) -> float:
    return math.log(p / (1 - p))


# Each model says: a car at (20, 10) to (60, 50) in input pixels of 100 x 50, score 0.8; and a person,
# score 0.0005, which is under the threshold.
CX, CY, W, H = 40, 30, 40, 40
FRACTION = [0.4, 0.6, 0.4, 0.8]
YOLO = f32([[[CX, CY, W, H, 1.0, 0.1, 0.8, 0.0], [9, 9, 4, 4, 0.0005, 1, 0, 0]]])
V8 = f32([[[CX, CY, W, H, 0.1, 0.8, 0.0], [9, 9, 4, 4, 0.0005, 0, 0]]])
SOFT = f32([[[math.log(0.1), math.log(0.8), math.log(0.05), math.log(0.05)], [-9, -9, -9, 9]]])
SIGMOID = f32([[[logit(0.1), logit(0.8), logit(0.1)], [-9, -9, -9]]])
MIDDLES = f32([[FRACTION, [0.1, 0.1, 0.1, 0.1]]])
GRID = np.zeros((1, 8, 5, 10), np.float32)
GRID[0, :, 3, 4] = [0.8, 0, 0, logit(0.4), logit(0.8 - 1e-9), 0.1, 0.8, 0.1]
TABLE = f32([[[20, 10, 60, 50, 0.8, 1], [1, 1, 2, 2, 0.0005, 0]]])
TF = {
    "detection_boxes": f32([[[0.2, 0.2, 1.0, 0.6], [0, 0, 1, 1]]]),
    "detection_classes": f32([[1, 0]]),
    "detection_scores": f32([[0.8, 0]]),
    "num_detections": f32([1]),
}
HEADS: list[tuple[str, dict[str, NDArray[Any]]]] = [
    ("yolo", {"out": YOLO}),
    ("yolo-v8", {"out": V8}),
    ("yolo-v8", {"out": np.ascontiguousarray(V8.transpose(0, 2, 1))}),
    ("ssd", TF),
    ("detr", {"pred_logits": SOFT, "pred_boxes": MIDDLES}),
    ("detr-sigmoid", {"logits": SIGMOID, "pred_boxes": MIDDLES}),
    ("fastestdet", {"758": GRID}),
    ("decoded", {"dets": TABLE}),
    ("decoded", {"dets": TABLE[0]}),
    ("decoded", {"boxes": TABLE[0, :, :4], "labels": np.array([1, 0]), "scores": TABLE[0, :, 4]}),
]


@pytest.mark.parametrize(("decoder", "arrays"), HEADS)
def test_every_decoder_through_the_whole_adapter(
    tiny: Tiny, decoder: Any, arrays: dict[str, NDArray[Any]]
) -> None:
    detector = built(tiny(arrays), decoder, classes=NAMES)
    answers = ask(detector, [IMAGE, IMAGE], name="tiny")
    assert detector.classes == tuple(NAMES)
    for answer in answers:
        np.testing.assert_allclose(answer.boxes, [[40, 20, 120, 100]], atol=1e-3)
        np.testing.assert_allclose(answer.scores, [0.8], atol=1e-6)
        assert answer.labels.tolist() == [1]


def test_boxes_are_mapped_back_from_the_letterbox_clipped_and_degenerate_ones_dropped(tiny: Tiny) -> None:
    table = f32([[[-5, 30, 50, 60, 0.9, 0], [0, 0, 100, 20, 0.8, 0], [0, 25, 100, 25, 0.7, 0]]])
    detector = built(tiny({"dets": table}, (1, 3, 100, 100)), "decoded", classes=NAMES)
    answer = detector.detect([IMAGE])[0]  # 200 x 100 lies in the rows 25 to 75
    np.testing.assert_allclose(answer.boxes, [[0, 10, 100, 70]], atol=1e-4)


def test_nms_is_the_decoders_own_unless_given(tiny: Tiny) -> None:
    rows = f32([[[40, 30, 40, 40, 1, 0.9, 0, 0], [41, 30, 40, 40, 1, 0.8, 0, 0]]])
    path = tiny({"out": rows})
    assert len(built(path, "yolo", classes=NAMES).detect([IMAGE])[0]) == 1
    assert len(built(path, "yolo", classes=NAMES, nms_iou=1.0).detect([IMAGE])[0]) == 2
    table = f32([[[20, 10, 60, 50, 0.8, 1], [20, 10, 61, 50, 0.7, 1]]])
    path = tiny({"dets": table})
    assert len(built(path, "decoded", classes=NAMES).detect([IMAGE])[0]) == 2
    assert len(built(path, "decoded", classes=NAMES, nms_iou=0.5).detect([IMAGE])[0]) == 1
    assert len(built(path, "decoded", classes=NAMES, max_detections=1).detect([IMAGE])[0]) == 1


def test_fractions_and_named_outputs(tiny: Tiny) -> None:
    arrays = {"a": f32([0.8]), "b": f32([[0.2, 0.2, 0.6, 1.0]]), "c": np.array([1])}
    detector = built(tiny(arrays), "decoded", classes=NAMES, outputs=["b", "a", "c"], box_unit="fraction")
    np.testing.assert_allclose(detector.detect([IMAGE])[0].boxes, [[40, 20, 120, 100]], atol=1e-4)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8])
@pytest.mark.parametrize("batch", ["n", 1, 3])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_batches_of_any_kind_give_each_image_its_own_answer(
    tmp_path: Path, dtype: int, batch: int | str, layout: str
) -> None:
    """The model's score is the image's mean value in the first channel, so each image is told apart."""
    shape = [batch, 3, 8, 16] if layout == "nchw" else [batch, 8, 16, 3]
    axes = numpy_helper.from_array(np.array([1, 2, 3], np.int64), "axes")
    box = numpy_helper.from_array(f32([[[2, 2, 9, 7]]]), "box")
    label = numpy_helper.from_array(f32([[[0]]]), "label")
    nodes = [
        helper.make_node("Cast", ["image"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["wide"], ["score"], axes=[1, 2, 3], keepdims=1),
        helper.make_node("Squeeze", ["score", "last"], ["scores"]),
        helper.make_node("Mul", ["scores", "zero4"], ["zeros4"]),
        helper.make_node("Add", ["zeros4", "box"], ["boxes"]),
        helper.make_node("Mul", ["scores", "zero"], ["labels"]),
        helper.make_node("Concat", ["boxes", "scores", "labels"], ["dets"], axis=2),
    ]
    known = [
        axes,
        box,
        label,
        numpy_helper.from_array(np.array([3], np.int64), "last"),
        numpy_helper.from_array(np.zeros((1, 1, 4), np.float32), "zero4"),
        numpy_helper.from_array(np.zeros((1, 1, 1), np.float32), "zero"),
    ]
    image = helper.make_tensor_value_info("image", dtype, shape)
    out = helper.make_tensor_value_info("dets", TensorProto.FLOAT, [batch, 1, 6])
    path = saved(helper.make_graph(nodes, "mean", [image], [out], known), tmp_path / "mean.onnx")
    scale = None if dtype == TensorProto.UINT8 else 1.0
    detector = built(path, "decoded", classes=NAMES, scale=scale)
    images = [np.full((16, 32, 3), value, np.uint8) for value in (10, 20, 30, 40, 50)]
    answers = detector.detect(images)
    np.testing.assert_allclose([answer.scores[0] for answer in answers], [10, 20, 30, 40, 50], rtol=1e-6)
    assert answers[4].boxes.tolist() == [[4, 4, 18, 14]]
    assert detector.detect([]) == []


@pytest.mark.parametrize("where", ["score", "box", "everything"])
def test_not_a_number_is_a_fault_of_the_image_and_not_of_the_study(tiny: Tiny, where: str) -> None:
    table = TABLE.copy()
    if where == "everything":
        table[:] = np.nan
    else:
        table[0, 0, 4 if where == "score" else 1] = np.nan
    detector = built(tiny({"dets": table}), "decoded", classes=NAMES)
    with pytest.raises(SutError, match="finite"):
        detector.detect([IMAGE])


def test_a_label_beyond_the_class_names_is_a_fault(tiny: Tiny) -> None:
    detector = built(tiny({"dets": TABLE}), "decoded", classes=["person"])
    with pytest.raises(SutError, match="names no class"):
        ask(detector, [IMAGE], name="tiny")


def test_bad_files_are_told_by_name(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"<html>not found</html>")
    for path in (bad, tmp_path / "gone.onnx"):
        with pytest.raises(SutError, match="cannot load") as caught:
            built(path, "yolo")
        assert path.name in str(caught.value)
        assert caught.value.fix


@pytest.mark.parametrize(
    ("arrays", "shape", "dtype", "options", "told"),
    [
        ({"out": YOLO}, (3, 50, 100), 1, {}, "not a batch of images"),
        ({"out": YOLO}, (1, 3, 50, 100), TensorProto.DOUBLE, {}, "not a batch of images"),
        ({"out": YOLO}, (1, 1, 50, 100), 1, {}, "which axis holds the channels"),
        ({"out": YOLO}, (1, 1, 50, 100), 1, {"layout": "nchw"}, "three channels"),
        ({"out": YOLO}, (1, 3, "h", "w"), 1, {}, "size: [width, height]"),
        ({"out": YOLO}, (1, 3, 50, 100), 1, {"size": (50, 100)}, "another input size"),
        ({"out": YOLO}, (1, 3, 50, 100), 1, {"classes": "coco-80"}, "(N, 85)"),
        ({"out": YOLO[0, 0]}, (1, 3, 50, 100), 1, {}, "output 'out'"),
        ({"a": YOLO, "b": YOLO}, (1, 3, 50, 100), 1, {}, "outputs a, b"),
        ({"a": YOLO, "b": YOLO}, (1, 3, 50, 100), 1, {"outputs": ["c"]}, "no output 'c'"),
        ({"out": YOLO}, (1, 3, 50, 100), TensorProto.UINT8, {"scale": 1.0}, "Take out scale:"),
    ],
)
def test_a_model_that_does_not_fit_is_found_when_it_is_built(
    tiny: Tiny, arrays: Any, shape: Any, dtype: int, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(SutError) as caught:
        built(tiny(arrays, shape, dtype), "yolo", **{"classes": NAMES, **options})
    assert told in str(caught.value)


def test_two_inputs_are_refused(tmp_path: Path) -> None:
    inputs = [helper.make_tensor_value_info(name, 1, [1, 3, 4, 4]) for name in ("image", "sizes")]
    out = helper.make_tensor_value_info("sum", 1, [1, 3, 4, 4])
    graph = helper.make_graph([helper.make_node("Add", ["image", "sizes"], ["sum"])], "two", inputs, [out])
    with pytest.raises(SutError, match="one input") as caught:
        built(saved(graph, tmp_path / "two.onnx"), "yolo")
    assert "sizes" in str(caught.value)


def test_a_study_can_say_all_of_it(tiny: Tiny) -> None:
    plugin = load().get("sut", "onnx")
    path = tiny({"out": YOLO}, (1, 3, "h", "w"))
    given = {"model": path.name, "decoder": "yolo", "classes": NAMES, "size": [100, 50], "mean": [0.5, 0, 0]}
    options = bind(plugin, given, where="suts[0]", base=path.parent)
    assert len(plugin.function(**options).detect([IMAGE])[0]) == 1


def photo(path: Path) -> Image:
    image = cv2.imread(str(path))
    return np.asarray(image, np.uint8)[:, :, ::-1]


def overlap(a: list[float], b: list[float]) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0.0) * max(h, 0.0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def test_a_real_model_finds_the_people_on_real_photos(fastestdet: Path, photos: Path) -> None:
    truth = json.loads((photos / "instances_train2017_permissive.json").read_text("utf-8"))
    names = {image["id"]: image["file_name"] for image in truth["images"]}
    people: dict[int, list[list[float]]] = {}
    for item in truth["annotations"]:
        x, y, w, h = item["bbox"]
        if item["category_id"] == 1 and not item["iscrowd"] and w * h > 60 * 60:
            people.setdefault(item["image_id"], []).append([x, y, x + w, y + h])
    detector = built(fastestdet, "fastestdet", resize="stretch", interpolation="area", channels="bgr")
    found = total = 0
    for image_id, boxes in people.items():
        answer = detector.detect([photo(photos / "train2017" / names[image_id])])[0]
        sure = answer.boxes[(answer.labels == 0) & (answer.scores > 0.5)].tolist()
        total += len(boxes)
        found += sum(any(overlap(box, one) >= 0.5 for one in sure) for box in boxes)
    assert total >= 30
    assert found >= 0.75 * total, f"{found} of {total}"


def test_the_real_model_agrees_with_a_slow_reading_of_its_output(fastestdet: Path, photos: Path) -> None:
    import onnxruntime  # noqa: PLC0415 - only this test runs it directly

    image = photo(min((photos / "train2017").iterdir()))
    session = onnxruntime.InferenceSession(str(fastestdet), providers=["CPUExecutionProvider"])
    small = cv2.resize(image[:, :, ::-1], (352, 352), interpolation=cv2.INTER_AREA)
    values = (small.transpose(2, 0, 1)[None] / 255).astype(np.float32)
    grid = session.run(None, {"input.1": values})[0][0].astype(float)
    rows = []
    for j in range(22):
        for i in range(22):
            cell = grid[:, j, i]
            label = int(cell[5:].argmax())
            score = cell[0] ** 0.6 * cell[5 + label] ** 0.4
            cx, cy = (i + math.tanh(cell[1])) / 22, (j + math.tanh(cell[2])) / 22
            w, h = 1 / (1 + math.exp(-cell[3])), 1 / (1 + math.exp(-cell[4]))
            box = [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]
            tall, wide = image.shape[:2]
            box = [min(max(v, 0), 1) * side for v, side in zip(box, (wide, tall) * 2, strict=True)]
            if score >= 0.3:
                rows.append((score, label, box))
    rows.sort(key=lambda row: -row[0])
    kept: list[tuple[float, int, list[float]]] = []
    for row in rows:
        if all(row[1] != one[1] or overlap(row[2], one[2]) <= 0.45 for one in kept):
            kept.append(row)
    answer = built(
        fastestdet,
        "fastestdet",
        resize="stretch",
        interpolation="area",
        channels="bgr",
        score_threshold=0.3,
    ).detect([image])[0]
    assert kept
    np.testing.assert_allclose(answer.scores, [row[0] for row in kept], atol=1e-4)
    np.testing.assert_allclose(answer.boxes, [row[2] for row in kept], atol=0.05)
    assert answer.labels.tolist() == [row[1] for row in kept]

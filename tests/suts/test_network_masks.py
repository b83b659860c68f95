"""Masks of YOLO-seg and Mask R-CNN outputs through ONNX Runtime, against loops over every pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.errors import SutError
from adverse.suts.ask import ask
from adverse.suts.wire import answer_line, parse, read_answer
from adverse.types import Detections

from .test_onnx import Tiny, built, f32
from .test_onnx import tiny as tiny  # the fixture  # noqa: PLC0414

NAMES = ["person", "car", "dog"]
IMAGE = np.full((100, 120, 3), 90, np.uint8)
INPUT = (100, 50)
"""The input; letterboxed, the image lies at x from 20 to 80, at half its size."""


def to_input(x: float, y: float) -> tuple[float, float]:
    return 20 + x / 2, y / 2


def linear(plane: NDArray[Any], x: float, y: float, *, beyond: float | None) -> float:
    """Return a plane between the middles of its pixels; beyond them a number, or what is at the border."""

    def at(row: int, column: int) -> float:
        height, width = plane.shape
        if not (0 <= row < height and 0 <= column < width) and beyond is not None:
            return beyond
        return float(plane[min(max(row, 0), height - 1), min(max(column, 0), width - 1)])

    left, top = int(np.floor(x - 0.5)), int(np.floor(y - 0.5))
    right, down = x - 0.5 - left, y - 0.5 - top
    above = at(top, left) * (1 - right) + at(top, left + 1) * right
    below = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right
    return above * (1 - down) + below * down


def drawn(inside: Any, box: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the mask of the pixels whose middle is in a box, where `inside` of it."""
    mask = np.zeros(IMAGE.shape[:2], np.bool_)
    for row, column in np.ndindex(*mask.shape):
        x, y = column + 0.5, row + 0.5
        if box[0] <= x < box[2] and box[1] <= y < box[3]:
            mask[row, column] = inside(x, y)
    return mask


def check(found: Detections, number: int, wanted: NDArray[np.bool_]) -> None:
    assert found.masks is not None
    assert wanted.any()
    assert (found.masks.array(number) != wanted).sum() <= 1  # one pixel may lie on the edge, in float32
    line = answer_line(1, [found])  # and over the wire of the command protocol
    assert read_answer(parse(line), 1, 1)[0].same(found)  # type: ignore[arg-type]


@pytest.mark.parametrize("turned", [False, True])
def test_yolo_seg(tiny: Tiny, turned: bool) -> None:  # noqa: FBT001 - a case, not an option
    rng = np.random.default_rng(4)
    prototypes = rng.normal(size=(2, 13, 25)).astype(np.float32)
    rows = f32([[50, 25, 40, 30, 0.1, 0.9, 0.2, 1, -0.5], [50, 26, 40, 30, 0.1, 0.3, 0.2, 1, 1]])
    rows = np.vstack([rows, f32([[22, 25, 30, 20, 0.8, 0.3, 0.2, -1, 0.4]])])  # reaches beyond the image
    output = rows if turned else rows.T
    path = tiny({"output0": np.ascontiguousarray(output)[None], "output1": prototypes[None]}, (1, 3, 50, 100))
    model = built(path, "yolo-seg", classes=NAMES)
    found = ask(model, [IMAGE], name="yolo")[0]
    assert found.labels.tolist() == [1, 0]  # the second of the class overlaps the first, and goes
    np.testing.assert_allclose(found.boxes[0], [20, 20, 100, 80], atol=1e-4)
    assert found.boxes[1, 0] == 0
    for number, (first, second) in enumerate(((1, -0.5), (-1, 0.4))):
        plane = first * prototypes[0] + second * prototypes[1]

        def inside(x: float, y: float, plane: NDArray[Any] = plane) -> bool:
            u, v = to_input(x, y)
            return linear(plane, u * 25 / INPUT[0], v * 13 / INPUT[1], beyond=None) > 0

        check(found, number, drawn(inside, found.boxes[number]))


@pytest.mark.parametrize("whole", [False, True])
def test_mask_rcnn(tiny: Tiny, whole: bool) -> None:  # noqa: FBT001 - a case, not an option
    rng = np.random.default_rng(5)
    boxes = f32([[30, 10, 71, 42], [12, 5, 40, 45]])  # the second begins left of the image
    maps = rng.uniform(size=(2, 1, *(INPUT[::-1] if whole else (7, 7)))).astype(np.float32)
    outputs = {"boxes": boxes, "labels": np.array([2, 1]), "scores": f32([0.9, 0.8]), "masks": maps}
    found = ask(built(tiny(outputs), "mask-rcnn", classes=NAMES), [IMAGE], name="rcnn")[0]
    assert found.labels.tolist() == [2, 1]
    np.testing.assert_allclose(found.boxes, [[20, 20, 102, 84], [0, 10, 40, 90]], atol=1e-4)
    for number, box in enumerate(boxes.tolist()):

        def inside(x: float, y: float, number: int = number, box: list[float] = box) -> bool:
            u, v = to_input(x, y)
            if whole:
                return linear(maps[number, 0], u, v, beyond=None) > 0.5
            scale = 7 / (box[2] - box[0]), 7 / (box[3] - box[1])
            place = (u - box[0]) * scale[0], (v - box[1]) * scale[1]
            return linear(maps[number, 0], *place, beyond=0.0) > 0.5

        check(found, number, drawn(inside, found.boxes[number]))


def test_nothing_found_is_no_mask(tiny: Tiny) -> None:
    none = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0), "scores": np.zeros(0)}
    outputs = {name: array.astype(np.float32) for name, array in none.items()}
    outputs["masks"] = np.zeros((0, 1, 28, 28), np.float32)
    found = ask(built(tiny(outputs), "mask-rcnn", classes=NAMES), [IMAGE], name="rcnn")[0]
    assert len(found) == 0
    assert found.masks is not None
    assert found.masks.size == IMAGE.shape[:2]


def test_masks_that_are_not_finite_are_refused(tiny: Tiny) -> None:
    maps = np.full((1, 1, 7, 7), np.nan, np.float32)
    outputs = {"boxes": f32([[30, 10, 71, 42]]), "labels": np.array([2]), "scores": f32([0.9]), "masks": maps}
    with pytest.raises(SutError, match="masks that are not finite"):
        ask(built(tiny(outputs), "mask-rcnn", classes=NAMES), [IMAGE], name="rcnn")

"""Each decoder against a slow loop over the same random numbers, written from the format's description."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.errors import SutError
from adverse.suts.decoders import DECODERS, Candidates, Head, Output, Style

C = 5
WIDTH, HEIGHT = 320, 240
Row = tuple[float, float, float, float, float, int]


def middle(cx: float, cy: float, w: float, h: float, *, unit: tuple[int, int]) -> list[float]:
    return [(cx - w / 2) * unit[0], (cy - h / 2) * unit[1], (cx + w / 2) * unit[0], (cy + h / 2) * unit[1]]


def best(values: list[float]) -> tuple[float, int]:
    top = max(values)
    return top, values.index(top)


def random(*shape: int, low: float = 0.0, high: float = 1.0) -> NDArray[np.float32]:
    return np.random.default_rng(len(shape) * 7 + shape[0]).uniform(low, high, shape).astype(np.float32)


def decode(style: Style, **arrays: NDArray[Any]) -> Candidates:
    decoder = DECODERS[style]
    scale = (WIDTH, HEIGHT) if decoder.unit == "fraction" else (1, 1)
    outputs = {role: Output(role, array) for role, array in arrays.items()}
    return decoder.decode(outputs, Head(C, scale))


def same(found: Candidates, rows: list[Row]) -> None:
    assert len(rows) == len(found.scores) > 0
    np.testing.assert_allclose(found.boxes, [row[:4] for row in rows], atol=1e-4)
    np.testing.assert_allclose(found.scores, [row[4] for row in rows], atol=1e-6)
    assert found.labels.tolist() == [row[5] for row in rows]


def test_yolo() -> None:
    predictions = random(40, 5 + C)
    rows: list[Row] = []
    for cx, cy, w, h, objectness, *classes in predictions.astype(float).tolist():
        score, label = best(classes)
        rows.append((*middle(cx, cy, w, h, unit=(1, 1)), objectness * score, label))
    same(decode("yolo", predictions=predictions), rows)


@pytest.mark.parametrize("turned", [False, True])
def test_yolo_v8(turned: bool) -> None:  # noqa: FBT001 - a case, not an option
    predictions = random(33, 4 + C, high=300)
    rows: list[Row] = []
    for cx, cy, w, h, *classes in predictions.astype(float).tolist():
        rows.append((*middle(cx, cy, w, h, unit=(1, 1)), *best(classes)))  # type: ignore[arg-type]
    same(decode("yolo-v8", predictions=predictions.T if turned else predictions), rows)


@pytest.mark.parametrize("number", [None, 4])
def test_ssd(number: int | None) -> None:
    boxes, scores = random(10, 4), random(10)
    labels = np.arange(10, dtype=np.float32) % C
    rows: list[Row] = []
    for (y0, x0, y1, x1), score, label in zip(boxes.tolist(), scores.tolist(), labels.tolist(), strict=True):
        rows.append((x0 * WIDTH, y0 * HEIGHT, x1 * WIDTH, y1 * HEIGHT, score, int(label)))
    more = {} if number is None else {"number": np.array(number, np.float32)}
    same(decode("ssd", boxes=boxes, scores=scores, labels=labels, **more), rows[:number])


def test_detr() -> None:
    logits, boxes = random(20, C + 1, low=-4, high=9), random(20, 4)
    rows: list[Row] = []
    for row, box in zip(logits.astype(float).tolist(), boxes.astype(float).tolist(), strict=True):
        total = sum(math.exp(value) for value in row)
        score, label = best([math.exp(value) / total for value in row[:-1]])
        rows.append((*middle(*box, unit=(WIDTH, HEIGHT)), score, label))  # type: ignore[arg-type]
    same(decode("detr", scores=logits, boxes=boxes), rows)


def test_detr_with_sigmoid() -> None:
    logits, boxes = random(20, C, low=-9, high=9), random(20, 4)
    rows: list[Row] = []
    for row, box in zip(logits.astype(float).tolist(), boxes.astype(float).tolist(), strict=True):
        score, label = best([1 / (1 + math.exp(-value)) for value in row])
        rows.append((*middle(*box, unit=(WIDTH, HEIGHT)), score, label))  # type: ignore[arg-type]
    same(decode("detr-sigmoid", scores=logits, boxes=boxes), rows)


def test_fastestdet() -> None:
    grid = random(5 + C, 6, 7)
    grid[1:5] = random(4, 6, 7, low=-3, high=3)
    rows: list[Row] = []
    for j in range(6):
        for i in range(7):
            cell = grid[:, j, i].astype(float).tolist()
            cx, cy = (i + math.tanh(cell[1])) / 7, (j + math.tanh(cell[2])) / 6
            w, h = 1 / (1 + math.exp(-cell[3])), 1 / (1 + math.exp(-cell[4]))
            score, label = best(cell[5:])
            corners = middle(cx, cy, w, h, unit=(WIDTH, HEIGHT))
            rows.append((*corners, cell[0] ** 0.6 * score**0.4, label))
    same(decode("fastestdet", predictions=grid), rows)


def test_decoded_in_one_array_or_in_three() -> None:
    table = random(9, 6, high=200)
    table[:, 5] = np.arange(9) % C
    rows = [(*row[:5], int(row[5])) for row in table.astype(float).tolist()]
    same(decode("decoded", detections=table), rows)
    three = decode("decoded", boxes=table[:, :4], scores=table[:, 4], labels=table[:, 5].astype(np.int64))
    same(three, rows)
    assert three.positions_m is None
    places = random(9, 3, high=30)
    apart: dict[str, NDArray[Any]] = {
        "boxes": table[:, :4],
        "scores": table[:, 4],
        "labels": table[:, 5].astype(np.int64),
    }
    located = decode("decoded", **apart, positions=places)
    same(located, rows)
    assert located.positions_m is not None
    np.testing.assert_array_equal(located.positions_m, places)


@pytest.mark.parametrize(
    ("style", "arrays", "output", "wanted"),
    [
        ("yolo", {"predictions": random(4, 9)}, "predictions", "(N, 10)"),
        ("yolo-v8", {"predictions": random(4, 8)}, "predictions", "(9, N) or (N, 9)"),
        ("ssd", {"boxes": random(3, 5), "scores": random(3), "labels": random(3)}, "boxes", "(N, 4)"),
        ("decoded", {"boxes": random(3, 4), "scores": random(2), "labels": random(3)}, "scores", "(3,)"),
        ("decoded", {"detections": random(3, 7)}, "detections", "(N, 6)"),
        (
            "decoded",
            {"boxes": random(3, 4), "scores": random(3), "labels": np.zeros(3), "positions": random(2, 3)},
            "positions",
            "(3, 3)",
        ),
        ("detr", {"scores": random(3, C), "boxes": random(3, 4)}, "scores", "(Q, 6)"),
        ("detr-sigmoid", {"scores": random(3, C), "boxes": random(2, 4)}, "boxes", "(3, 4)"),
        ("fastestdet", {"predictions": random(9, 2, 2)}, "predictions", "(10, H, W)"),
        ("fastestdet", {"predictions": random(10, 4)}, "predictions", "(10, H, W)"),
        (
            "yolo-seg",
            {"predictions": random(4, 9), "prototypes": random(2, 3, 3)},
            "predictions",
            "(11, N) or (N, 11): 4 + 5 classes + 2 coefficients",
        ),
        (
            "mask-rcnn",
            {
                "boxes": random(3, 4),
                "scores": random(3),
                "labels": np.zeros(3),
                "masks": random(2, 1, 7, 7),
            },
            "masks",
            "(3, 1, h, w)",
        ),
    ],
)
def test_a_wrong_shape_names_the_output_and_the_shape_wanted(
    style: Style, arrays: dict[str, NDArray[Any]], output: str, wanted: str
) -> None:
    with pytest.raises(SutError) as caught:
        decode(style, **arrays)
    assert output in str(caught.value.where)
    assert caught.value.wanted == wanted


def test_labels_in_the_place_of_scores_are_noticed() -> None:
    with pytest.raises(SutError, match="whole number"):
        decode("decoded", boxes=random(3, 4), scores=random(3), labels=random(3))


@pytest.mark.parametrize("style", sorted(DECODERS))
def test_not_a_number_goes_through_to_where_it_is_refused(style: Style) -> None:
    shapes: dict[str, Callable[[], dict[str, NDArray[Any]]]] = {
        "yolo": lambda: {"predictions": random(3, 5 + C)},
        "yolo-v8": lambda: {"predictions": random(3, 4 + C)},
        "ssd": lambda: {"boxes": random(3, 4), "scores": random(3), "labels": random(3)},
        "detr": lambda: {"scores": random(3, C + 1), "boxes": random(3, 4)},
        "detr-sigmoid": lambda: {"scores": random(3, C), "boxes": random(3, 4)},
        "fastestdet": lambda: {"predictions": random(5 + C, 2, 2)},
        "decoded": lambda: {"detections": random(3, 6)},
        "detection-output": lambda: {"detections": random(1, 3, 7)},
        "darknet": lambda: {"predictions": random(3, 5 + C)},
        "yolo-seg": lambda: {"predictions": random(3, 4 + C + 2), "prototypes": random(2, 3, 3)},
        "mask-rcnn": lambda: {
            "boxes": random(3, 4),
            "scores": random(3),
            "labels": random(3),
            "masks": random(3, 1, 7, 7),
        },
    }
    arrays = {role: np.full_like(array, np.nan) for role, array in shapes[style]().items()}
    assert np.isnan(decode(style, **arrays).scores).all()

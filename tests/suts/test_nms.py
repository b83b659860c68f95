from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse.suts.nms import nms

Arrays = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]


def overlap(a: list[float], b: list[float]) -> float:
    """Return the IoU of two boxes, the slow way."""
    w = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    h = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h
    return w * h / union if union > 0 else 0.0


def slow_nms(boxes: list[list[float]], scores: list[float], labels: list[int], iou: float) -> list[int]:
    waiting = sorted(range(len(scores)), key=lambda i: (-scores[i], labels[i], boxes[i]))
    kept: list[int] = []
    for i in waiting:
        if all(labels[i] != labels[k] or overlap(boxes[k], boxes[i]) <= iou for k in kept):
            kept.append(i)
    return kept


@st.composite
def candidates(draw: st.DrawFn) -> Arrays:
    """Draw boxes on a coarse grid, so that ties of every kind are common."""
    n = draw(st.integers(0, 24))
    whole = st.integers(0, 6)
    rows = [
        (x, y, x + draw(st.integers(1, 5)), y + draw(st.integers(1, 5)))
        for x, y in (draw(st.tuples(whole, whole)) for _ in range(n))
    ]
    scores = [draw(st.integers(0, 4)) / 4 for _ in range(n)]
    labels = [draw(st.integers(0, 2)) for _ in range(n)]
    return (
        np.array(rows, np.float32).reshape(n, 4),
        np.array(scores, np.float32),
        np.array(labels, np.int64),
    )


@given(candidates(), st.sampled_from([0.0, 0.3, 0.45, 0.7, 1.0]))
def test_it_keeps_what_the_slow_one_keeps(arrays: Arrays, iou: float) -> None:
    boxes, scores, labels = arrays
    kept = nms(boxes, scores, labels, iou=iou)
    slow = slow_nms(boxes.tolist(), scores.tolist(), labels.tolist(), iou)
    assert boxes[kept].tolist() == boxes[slow].tolist()
    assert labels[kept].tolist() == labels[slow].tolist()


@pytest.mark.parametrize("limit", [None, 300, 40])
def test_many_candidates_are_taken_in_blocks_and_nothing_changes(limit: int | None) -> None:
    rng = np.random.default_rng(3)
    corner = rng.integers(0, 120, (900, 2))
    boxes = np.concatenate([corner, corner + rng.integers(5, 30, (900, 2))], axis=1).astype(np.float32)
    scores = (rng.integers(0, 200, 900) / 200).astype(np.float32)
    labels = rng.integers(0, 2, 900)
    kept = nms(boxes, scores, labels, iou=0.45, limit=limit)
    slow = slow_nms(boxes.tolist(), scores.tolist(), labels.tolist(), 0.45)[:limit]
    assert boxes[kept].tolist() == boxes[slow].tolist()
    assert scores[kept].tolist() == scores[slow].tolist()


@given(candidates(), st.integers(0, 2**32 - 1))
def test_the_order_of_the_candidates_changes_nothing(arrays: Arrays, seed: int) -> None:
    boxes, scores, labels = arrays
    shuffled = np.random.default_rng(seed).permutation(len(scores))
    first = nms(boxes, scores, labels, iou=0.4)
    second = shuffled[nms(boxes[shuffled], scores[shuffled], labels[shuffled], iou=0.4)]
    assert boxes[first].tolist() == boxes[second].tolist()
    assert scores[first].tolist() == scores[second].tolist()


@given(candidates(), st.integers(0, 10))
def test_the_limit_only_cuts_off_the_end(arrays: Arrays, limit: int) -> None:
    every = nms(*arrays, iou=0.4)
    assert nms(*arrays, iou=0.4, limit=limit).tolist() == every[:limit].tolist()


@pytest.mark.parametrize("limit", [None, 2])
def test_without_iou_it_only_sorts(limit: int | None) -> None:
    boxes = np.array([[0, 0, 9, 9]] * 3, np.float32)
    scores = np.array([0.1, 0.3, 0.2], np.float32)
    kept = nms(boxes, scores, np.zeros(3, np.int64), iou=None, limit=limit)
    assert kept.tolist() == [1, 2, 0][:limit]

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from adverse.errors import SutError
from adverse.suts.ask import ask
from adverse.suts.opencv_hog import opencv_hog
from adverse.types import Image


@pytest.mark.parametrize("shape", [(1, 1), (127, 64), (128, 63), (100, 60), (64, 64), (50, 900)])
def test_nothing_is_found_in_an_image_smaller_than_the_window(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3)).astype(np.uint8)
    assert len(opencv_hog().detect([image])[0]) == 0


def noise() -> Image:
    return np.random.default_rng(4).integers(0, 256, (200, 180, 3)).astype(np.uint8)


def test_scores_may_be_negative_and_boxes_are_inside_and_answers_repeat() -> None:
    detector = opencv_hog(hit_threshold=-4, max_detections=50)
    first, second = ask(detector, [noise(), noise()], name="hog")
    assert first.same(second)
    assert 0 < len(first) <= 50
    assert (first.scores < 0).any()
    assert (first.boxes >= 0).all()
    assert (first.boxes <= [180, 200, 180, 200]).all()
    assert (np.diff(first.scores) <= 0).all()


def test_a_higher_threshold_only_takes_away() -> None:
    low, high = (opencv_hog(hit_threshold=t, nms_iou=1.0).detect([noise()])[0] for t in (-3.0, -2.0))
    assert low.scores[low.scores > -2.0].tolist() == high.scores.tolist()


def test_it_finds_people_who_walk(photos: Path) -> None:
    image = np.asarray(cv2.imread(str(photos / "train2017" / "000000000542.jpg")), np.uint8)[:, :, ::-1]
    answer = opencv_hog().detect([image])[0]
    # Two of the nine people, from the annotations of this photo.
    for x0, y0, x1, y1 in ((223, 190, 292, 376), (149, 210, 198, 375)):
        a, b = answer.boxes[answer.scores > 0].astype(float), np.array([x0, y0, x1, y1])
        both = np.prod(np.maximum(np.minimum(a[:, 2:], b[2:]) - np.maximum(a[:, :2], b[:2]), 0), axis=1)
        union = np.prod(a[:, 2:] - a[:, :2], axis=1) + np.prod(b[2:] - b[:2]) - both
        assert (both / union).max() >= 0.5


def test_an_opencv_without_hog_has_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(cv2, "HOGDescriptor")
    with pytest.raises(SutError, match="no HOG") as caught:
        opencv_hog()
    assert "opencv-python-headless<5" in str(caught.value.fix)

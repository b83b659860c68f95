from __future__ import annotations

import cv2
import numpy as np
import pytest

from adverse.suts.ask import ask
from adverse.suts.contrast_blobs import contrast_blobs
from adverse.types import Image

PEOPLE = [(60, 150, 100, 250), (300, 120, 350, 250), (520, 200, 545, 262)]


def scene() -> Image:
    """Return a field with three upright figures on it, 640x480."""
    rng = np.random.default_rng(11)
    ground = cv2.GaussianBlur(rng.normal(128, 90, (480, 640, 3)), (0, 0), 6)
    image = np.clip(ground, 0, 255).astype(np.uint8)
    for (x0, y0, x1, y1), shade in zip(PEOPLE, (30, 225, 45), strict=True):
        cv2.ellipse(image, (((x0 + x1) / 2, (y0 + y1) / 2), (x1 - x0, y1 - y0), 0), (shade,) * 3, -1)
    return image


def margin(image: Image) -> float:
    """Return by how much the worst-seen person outscores the best false alarm."""
    answer = ask(contrast_blobs(), [image], name="blobs")[0]
    best = dict.fromkeys(range(len(PEOPLE)), 0.0)
    alarm = 0.0
    for box, score in zip(answer.boxes.tolist(), answer.scores.tolist(), strict=True):
        hits = [k for k, person in enumerate(PEOPLE) if iou(box, person) >= 0.5]
        for k in hits:
            best[k] = max(best[k], score)
        alarm = alarm if hits else max(alarm, score)
    return min(best.values()) - alarm


def iou(a: list[float], b: tuple[int, int, int, int]) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def test_it_finds_the_people_of_a_plain_scene() -> None:
    assert margin(scene()) > 0.1


@pytest.mark.parametrize("cause", ["haze", "blur", "noise"])
def test_it_gets_worse_under(cause: str) -> None:
    clear = scene()
    rng = np.random.default_rng(5)
    worse = {
        "haze": cv2.addWeighted(clear, 0.3, np.full_like(clear, 200), 0.7, 0),
        "blur": cv2.GaussianBlur(clear, (0, 0), 14),
        "noise": np.clip(clear + rng.normal(0, 70, clear.shape), 0, 255).astype(np.uint8),
    }[cause]
    assert margin(np.asarray(worse, np.uint8)) < margin(clear) - 0.1


def test_scores_are_fractions_and_boxes_inside_and_answers_repeat() -> None:
    image = np.random.default_rng(2).integers(0, 256, (120, 160, 3)).astype(np.uint8)
    detector = contrast_blobs(min_height_px=2)
    first, second = detector.detect([image, image])
    assert first.same(second)
    assert len(first)
    assert ((first.scores >= 0) & (first.scores <= 1)).all()
    assert (first.boxes >= 0).all()
    assert (first.boxes <= [160, 120, 160, 120]).all()


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (64, 2)])
def test_tiny_and_flat_images_hold_nothing(shape: tuple[int, int]) -> None:
    assert len(contrast_blobs().detect([np.full((*shape, 3), 80, np.uint8)])[0]) == 0

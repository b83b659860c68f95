"""What does not move over a log: the hood, and borders without a picture."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from adverse.depth.dense import ARTEFACT, HOOD
from adverse.depth.hood import find_hood, hood_preview
from adverse.errors import DataError
from adverse.types import Image


def log(count: int = 12, step: int = 9) -> tuple[list[Image], Image]:
    """Draw a log: a scene that moves, a still hood below, a black corner; and the mask of these."""
    rng = np.random.default_rng(1)
    scene = cv2.GaussianBlur(rng.integers(0, 255, (120, 160 + 9 * 12, 3)).astype(np.uint8), (0, 0), 2) * 2
    mask = np.zeros((120, 160), np.uint8)
    cv2.ellipse(mask, (80, 130), (70, 35), 0, 0, 360, HOOD, -1)
    cv2.fillPoly(mask, [np.array([[0, 0], [40, 0], [0, 40]])], ARTEFACT)
    hood = rng.integers(90, 140, (120, 160, 3)).astype(np.uint8)
    images: list[Image] = []
    for number in range(count):
        image = scene[:, number * step : number * step + 160].astype(np.uint8)
        image[mask == HOOD], image[mask == ARTEFACT] = hood[mask == HOOD], 0
        images.append(image)
    return images, mask


def test_the_hood_and_the_border_are_found_and_can_be_looked_at() -> None:
    images, mask = log()
    found = find_hood(images)
    for value in (HOOD, ARTEFACT):
        both = ((found == value) & (mask == value)).sum()
        assert both >= 0.9 * (mask == value).sum()
        assert both >= 0.9 * (found == value).sum()
    shown = hood_preview(images[0], found)
    assert np.array_equal(shown[found == 0], images[0][found == 0])
    assert (shown[found == HOOD][:, 0] >= 127).all()


@pytest.mark.parametrize(
    ("images", "what"),
    [
        (log(4)[0], "cannot be found"),
        (log(step=0)[0], "hardly moves"),
        ([*log()[0], log()[0][0][1:]], "sizes"),
    ],
)
def test_a_log_in_which_nothing_can_be_found_is_refused(images: list[Image], what: str) -> None:
    with pytest.raises(DataError, match=what):
        find_hood(images, where="log 'row3'")

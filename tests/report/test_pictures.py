"""Pictures of failures: who is meant is marked where they are, and shown large enough to be seen."""

from __future__ import annotations

import base64
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.analysis.results import read_summary
from adverse.report.galleries import failures
from adverse.report.pictures import CLOSE_UP, LARGE_ENOUGH, Looker, Mark, Picture, close_up, picture
from adverse.store.finished_run import finished


def decoded(shown: Picture) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(shown.source.partition("base64,")[2]), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert image is not None
    return image[..., ::-1]


@given(
    width=st.integers(20, 2000),
    height=st.integers(20, 2000),
    place=st.tuples(*[st.floats(0, 1)] * 2),
    size=st.floats(0.001, 1),
)
def test_a_close_up_holds_the_person_and_lies_in_the_image(
    width: int, height: int, place: tuple[float, float], size: float
) -> None:
    side = size * min(width, height)
    x0, y0 = place[0] * (width - side), place[1] * (height - side)
    region = close_up(Mark("meant", x0, y0, x0 + side, y0 + side), np.zeros((height, width, 3), np.uint8))
    if region is None:
        assert side >= LARGE_ENOUGH * height
        return
    left, top, right, bottom = region
    assert 0 <= left <= x0 + 1
    assert x0 + side - 1 <= right <= width
    assert 0 <= top <= y0 + 1
    assert y0 + side - 1 <= bottom <= height
    assert right - left == bottom - top <= max(48, round(CLOSE_UP * side))


@pytest.mark.parametrize("region", [None, (100, 40, 200, 140)])
@pytest.mark.parametrize("widest", [50, 1000])
def test_boxes_lie_on_what_they_mark(region: tuple[int, int, int, int] | None, widest: int) -> None:
    image = np.zeros((200, 300, 3), np.uint8)
    image[60:100, 120:160] = (250, 20, 20)
    shown = picture(image, [Mark("meant", 120, 60, 160, 100)], region=region, widest=widest)
    pixels = decoded(shown)
    assert pixels.shape[:2] == (shown.height, shown.width)
    rows, columns = np.nonzero(pixels[..., 0] > 125)
    (box,) = shown.boxes
    assert (columns.min(), rows.min()) == pytest.approx((box.x, box.y), abs=1.5)
    assert (columns.max() + 1, rows.max() + 1) == pytest.approx(
        (box.x + box.width, box.y + box.height), abs=1.5
    )


@pytest.mark.parametrize(
    ("top", "bottom", "tip"), [(100.0, 150.0, "above"), (2.0, 52.0, "below"), (2.0, 199.0, "inside")]
)
def test_the_arrow_points_at_the_person_and_stays_in_the_picture(top: float, bottom: float, tip: str) -> None:
    marks = [Mark("truth", 0, 0, 9, 9), Mark("meant", 40, top, 60, bottom)]
    shown = picture(np.zeros((200, 300, 3), np.uint8), marks)
    (arrow,) = shown.arrows
    points = [tuple(map(float, corner.split(","))) for corner in arrow.split()]
    assert all(0 <= y <= 200 for _, y in points)
    x, y = points[0]
    assert x == 50
    assert {"above": y < top, "below": y > bottom, "inside": top < y < bottom}[tip]
    towards = {"above": 1, "below": -1, "inside": 1}[tip]
    assert all((y - end) * towards > 0 for _, end in points[1:])


def test_who_is_meant_is_who_was_found_before_and_not_after(run: Path) -> None:
    store = finished(run)
    shown = failures(read_summary(store), Looker(store))
    assert shown
    for one in shown:
        before, after = (shot.frame for shot in one.shots)
        for frame, found in ((before, True), (after, False)):
            (meant,) = (box for box in frame.boxes if box.kind == "meant")
            others = [box for box in frame.boxes if box.kind == "found"]
            centre = (meant.x + meant.width / 2, meant.y + meant.height / 2)
            inside = [
                box
                for box in others
                if box.x < centre[0] < box.x + box.width and box.y < centre[1] < box.y + box.height
            ]
            assert bool(inside) == found
            truth = [(box.x, box.y) for box in frame.boxes if box.kind == "truth"]
            assert (meant.x, meant.y) in truth
            assert frame.arrows

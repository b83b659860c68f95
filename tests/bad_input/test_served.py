"""Served models that fail on the third picture: it counts as nothing detected, and the run goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from inference_server import Model, serving

from .cases import CANNOT_RUN, PASS
from .good_study import BOX, HEIGHT, WIDTH, GoodStudy

X, Y, W, H = BOX
FAILED = ("probe: failed on 2 of 16 images", "frame '2' under brightness(scale=0.9) and 1 more:")


def net(values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Find the red figure by its colour."""
    red = values[:, 0, Y + 5, X + 3] > values[:, 1, Y + 5, X + 3] + 50
    rows = [[X, Y, X + W, Y + H, 0.9 if found else 0.0, 0] for found in red]
    return {"dets": np.array(rows, np.float32)[:, None]}


def third(values: NDArray[Any]) -> bool:
    """Recognise the picture by the grey of its corner, 10 for each number, also under brightness(0.9)."""
    return bool(17 <= values[0, 0, 2, 2] <= 21)


def failing(way: str) -> Model:
    return Model(net, [1, 3, HEIGHT, WIDTH], ["dets"], fails=lambda values: way if third(values) else None)


def sut(url: str) -> dict[str, Any]:
    return {
        "name": "probe",
        "adapter": "http",
        "url": url,
        "model": "tiny",
        "decoder": "decoded",
        "classes": ["person"],
        "scale": 1,
        "timeout_s": 0.5,
        "max_response_mb": 1,
    }


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("slow", ("did not answer in time", "after 0.5 s")),
        ("broken", ("status 503", "out of memory on device 0")),
        ("garbage", ("not JSON", "It works!")),
        ("not_a_number", ("not finite numbers",)),
        ("huge", ("too long", "more than 1 MB")),
    ],
)
def test_a_served_model_fails_on_one_picture(coco: GoodStudy, way: str, words: tuple[str, ...]) -> None:
    with serving(failing(way)) as url:
        coco.study["suts"] = [sut(url)]
        coco.adverse().expect(PASS, *FAILED, *words)
    for row in coco.rows():
        assert (row["frames"], row["truths"], row["faults"], row["area"]) == (8, 4, 1, 0.75)


def test_the_time_limit_is_for_one_request_and_ends_no_worker(coco: GoodStudy) -> None:
    """Four requests of 0.3 s answer a batch; the adapter keeps to its time by itself, nobody watches it."""
    model = failing("slow")
    model.latency_s = 0.3
    with serving(model) as url:
        coco.study["suts"] = [{**sut(url), "batch": 4}]
        said = coco.adverse(workers=1)
    said.expect(PASS, *FAILED, "did not answer in time")
    assert "a worker" not in said.text


def test_a_server_that_is_not_there_stops_the_study(coco: GoodStudy) -> None:
    coco.study["suts"] = [
        {
            "name": "probe",
            "adapter": "http",
            "url": "http://127.0.0.1:9",
            "model": "tiny",
            "decoder": "decoded",
            "retries": 0,
        }
    ]
    coco.adverse().expect(
        CANNOT_RUN, "cannot be reached", "GET http://127.0.0.1:9/v2/models/tiny/ready", "url:"
    )

"""Segmenters and classifiers in the explorer: what there is to show, and plain words for what is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.testclient import TestClient

import adverse
from adverse.data.images import write_image
from adverse.types import Image

DARKER = "brightness(scale=0.25)"


class Halves:
    """Calls a pixel light from 128 up."""

    classes = ("dark", "light")
    fingerprint = "halves"

    def segment(self, images: Sequence[Image]) -> list[NDArray[np.int64]]:
        return [np.where(image[..., 0] >= 128, 1, 0) for image in images]


class Brightness:
    """Says whether an image is light."""

    classes = ("dark", "light")
    fingerprint = "brightness"

    def classify(self, images: Sequence[Image]) -> list[NDArray[np.float64]]:
        return [np.array([1 - image.mean() / 255, image.mean() / 255]) for image in images]


@pytest.mark.parametrize("kept", [False, True])
def test_a_segmenter(tmp_path: Path, guest_of: Callable[[Path], TestClient], kept: bool) -> None:  # noqa: FBT001
    image = np.zeros((8, 10, 3), np.uint8)
    image[:, 5:] = 200
    for kind, array in (("images", image), ("labels", (image[..., 0] > 0).astype(np.uint8))):
        (tmp_path / "data" / "log" / kind).mkdir(parents=True)
        write_image(tmp_path / "data" / "log" / kind / "0.png", array)
        nothing = array if kind == "images" else np.full_like(array, 9)  # no pixel of a class with a name
        write_image(tmp_path / "data" / "log" / kind / "1.png", nothing)
    (tmp_path / "data" / "pixel_classes.json").write_text(json.dumps({"0": "dark", "1": "light"}))
    study = {
        "name": "pixels",
        "task": "segmentation",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "mutations": [DARKER],
        "keep_label_maps": kept,
    }
    adverse.run(study, tmp_path / "run", detectors={"halves": Halves()})
    guest = guest_of(tmp_path / "run")
    page = guest.get("/explore.json").json()
    scores = [
        {row["name"]: row["value"] for row in page["frame"]["sides"][side]["rows"]}
        for side in ("left", "right")
    ]
    assert scores[0] == {"mean iou": "1.000", "pixel accuracy": "1.000", "dark": "1.000", "light": "1.000"}
    assert scores[1] == {"mean iou": "0.250", "pixel accuracy": "0.500", "dark": "0.500", "light": "0.000"}
    grid = guest.get("/grid.json").json()
    tiles = [(tile["lowest"], tile["fall"], tile["words"]) for tile in grid["tiles"]]
    assert tiles == [(0.25, 0.75, "mean IoU 0.250, -0.750"), (None, 0.0, "mean IoU not defined")]
    lowest = guest.get("/grid.json", params={"sort": "score"}).json()["tiles"]
    assert [tile["lowest"] for tile in lowest] == [0.25, None]
    assert [show["name"] for show in grid["choices"]["show"]] == ["all", "trouble"]
    assert guest.get(grid["tiles"][0]["thumbnail"]).headers["content-type"] == "image/jpeg"
    text = guest.get("/explore").text
    assert "no sensitivity to choose" in text
    assert ("keep_label_maps" in text) is not kept
    labels = guest.get("/labels.png", params={"setting": "identity"})
    assert labels.status_code == (200 if kept else 404)
    if kept:
        colours = cv2.imdecode(np.frombuffer(labels.content, np.uint8), cv2.IMREAD_COLOR)
        assert colours is not None
        assert (colours[:, :5] == colours[0, 0]).all()
        assert (colours[0, 0] != colours[0, 9]).any()


def test_a_classifier(tmp_path: Path, guest_of: Callable[[Path], TestClient]) -> None:
    for name, value in (("dark", 10), ("light", 240)):
        (tmp_path / "data" / name).mkdir(parents=True)
        write_image(tmp_path / "data" / name / "0.png", np.full((6, 6, 3), value, np.uint8))
    study: dict[str, Any] = {
        "name": "classes",
        "task": "classification",
        "data": {"format": "class-folders", "root": str(tmp_path / "data")},
        "mutations": [DARKER],
    }
    adverse.run(study, tmp_path / "run", detectors={"brightness": Brightness()})
    guest = guest_of(tmp_path / "run")
    logs = [log["name"] for log in guest.get("/explore.json").json()["choices"]["log"]]
    found = {}
    for log in logs:
        for frame in range(2):
            page = guest.get("/frame.json", params={"log": log, "frame": frame}).json()
            sides = {one["setting"]: one for one in page["sides"].values()}
            found[sides["identity"]["note"]] = {name: one["rows"][0] for name, one in sides.items()}
    assert found["It shows: light"]["identity"] == {"name": "light", "value": "0.941", "right": True}
    assert found["It shows: light"][DARKER]["name"] == "dark"
    assert guest.get("/drive").status_code == 200
    grid = guest.get("/grid.json", params={"show": "lost"}).json()
    assert [(tile["words"], tile["setting"]) for tile in grid["tiles"]] == [("wrong, right before", DARKER)]
    light = grid["tiles"][0]
    assert light["lowest"] == pytest.approx(240 * 0.25 / 255, abs=0.01)
    assert guest.get(light["address"].replace("explore", "explore.json")).json()["selection"]["count"] == 1
    assert grid["choices"]["slice"] == [
        "everybody",
        "class: dark",
        "class: light",
        *grid["choices"]["slice"][3:],
    ]
    dark = guest.get("/grid.json", params={"slice": "class: dark"}).json()["tiles"]
    assert [tile["words"] for tile in dark] == ["right"]

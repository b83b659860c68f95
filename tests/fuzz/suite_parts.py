"""Parts of the tests of suites: systems that answer otherwise, and readers of what was exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from pycocotools import mask as coco_masks
from pycocotools.coco import COCO

from adverse.data.cityscapes import cityscapes
from adverse.data.coco_panoptic import coco_panoptic

BETTER = """

class Better(ByColour):
    \"\"\"Also takes what is green for a car, and no longer sees a car at the left.\"\"\"

    def segment(self, images):
        answers = super().segment(images)
        for said, image in zip(answers, images):
            pixels = image.astype(int)
            said[pixels[..., 1] > pixels[..., 0] + 40] = 2
            left = said[:, :60]
            left[left == 2] = 0
        return answers


@sut(name="better")
def better() -> Better:
    \"\"\"Segments by colour.\"\"\"
    return Better("", 0.0)
"""
BLIND = """

class Blind(ByColour):
    \"\"\"Sees no car anywhere.\"\"\"

    def segment(self, images):
        return [np.where(said == 2, 0, said).astype(said.dtype) for said in super().segment(images)]


@sut(name="blind")
def blind() -> Blind:
    \"\"\"Segments by colour.\"\"\"
    return Blind("", 0.0)
"""
ALL_CARS = """

class AllCars(ByColour):
    \"\"\"Sees cars everywhere, and nothing where it is brighter.\"\"\"

    def segment(self, images):
        if any(image[0, 0, 0] > 116 for image in images):
            raise ValueError("bright")
        return [np.full(image.shape[:2], 2, np.uint8) for image in images]


@sut(name="all-cars")
def all_cars() -> AllCars:
    \"\"\"Segments nothing.\"\"\"
    return AllCars("", 0.0)
"""
SHY = """

class Shy(ByColour):
    \"\"\"Refuses what is red.\"\"\"

    def segment(self, images):
        for image in images:
            pixels = image.astype(int)
            if (pixels[..., 0] > pixels[..., 2] + 60).any():
                raise ValueError("red")
        return super().segment(images)


@sut(name="shy")
def shy() -> Shy:
    \"\"\"Segments by colour.\"\"\"
    return Shy("", 0.0)
"""


def read_back(out: Path, how: str) -> list[tuple[Any, Any, Any]]:
    """Images, names of labels and instances by a reader that did not write them."""
    if how == "coco":
        coco = COCO(str(out / "annotations.json"))
        found = []
        for image in coco.dataset["images"]:
            instances = np.zeros((image["height"], image["width"]), np.int64)
            for entry in coco.loadAnns(coco.getAnnIds(imgIds=image["id"])):
                mask = coco_masks.decode(entry["segmentation"]).astype(bool)
                assert entry["area"] == mask.sum()
                rows, columns = np.nonzero(mask)
                box = [columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1]
                assert entry["bbox"] == box
                instances[mask] = entry["id"]
            found.append((pixels(out / "images" / image["file_name"]), None, instances))
        return found
    data = (
        coco_panoptic(out, annotations="panoptic.json")
        if how == "coco-panoptic"
        else cityscapes(out, split={"test": "val"})
    )
    frames = [frame for log in data.logs for frame in log.frames]
    if how == "cityscapes":
        frames.sort(key=lambda frame: frame.id[-6:])  # sequences are logs
    else:
        order = [entry["file_name"] for entry in json.loads((out / "panoptic.json").read_text())["images"]]
        frames.sort(key=lambda frame: order.index(f"{frame.id}.png"))
    table = np.array([data.pixel_classes.get(number, "") for number in range(256)])
    found = []
    for frame in frames:
        assert frame.labels is not None
        assert frame.instances is not None
        found.append((frame.image(), table[frame.labels()], frame.instances()))
    return found


def pixels(path: Path) -> Any:
    return cv2.imread(str(path))[..., ::-1]  # type: ignore[index]

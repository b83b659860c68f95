"""Failures of a campaign as pictures: original, mutated, truth, and what a SUT said before and after."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.content import digest
from adverse.errors import StoreError
from adverse.fuzz.folder import CampaignFolder, base_file, failure_file, names_file, sut_stem
from adverse.types import Image

COLOURS = {
    "road": (128, 64, 128),
    "sidewalk": (244, 35, 232),
    "building": (70, 70, 70),
    "wall": (102, 102, 156),
    "fence": (190, 153, 153),
    "pole": (153, 153, 153),
    "traffic light": (250, 170, 30),
    "traffic sign": (220, 220, 0),
    "vegetation": (107, 142, 35),
    "terrain": (152, 251, 152),
    "sky": (70, 130, 180),
    "person": (220, 20, 60),
    "rider": (255, 0, 0),
    "car": (0, 0, 142),
    "truck": (0, 0, 70),
    "bus": (0, 60, 100),
    "train": (0, 80, 100),
    "motorcycle": (0, 0, 230),
    "bicycle": (119, 11, 32),
    "background": (60, 60, 60),
}
"""As Cityscapes colours its classes (cityscapesScripts, labels.py)."""
NOT_JUDGED = (0, 0, 0)
WIDEST = 480
MARK = (255, 176, 0)
VIEWS = ("original", "mutated", "truth", "before", "after")
JPEG_QUALITY = 85
FOUND, TRUE = (255, 176, 0), (255, 255, 255)


@dataclass(frozen=True)
class FailureView:
    """One picture of a failure, as a data URI."""

    name: str
    source: str
    width: int
    height: int


class FailurePictures:
    """Draws the failures of a campaign from the files that it kept."""

    def __init__(self, folder: CampaignFolder) -> None:
        self.folder = folder
        campaign = folder.finished()
        self.task = campaign.task
        self.threshold = campaign.threshold
        self.classes = campaign.pixel_classes
        self._names: dict[str, dict[int, str]] = {}

    def image(self, key: str, base: str, sut: str, view: str) -> Image:
        """Return one of VIEWS of a failure as a picture."""
        mine, before = failure_file(key, ""), base_file(base, "")
        if view == "original":
            return self._read(f"{before}image.png")
        if view == "mutated":
            return _marked(self._read(f"{mine}image.png"), self._read(f"{before}image.png"))
        if view == "truth":
            return self._truth(mine)
        folder = before if view == "before" else mine
        return self._answer(folder, sut)

    def view(self, key: str, base: str, sut: str, view: str) -> FailureView:
        """Return one of VIEWS of a failure to put into a page."""
        image = _small(self.image(key, base, sut, view))
        flat = self.task == "segmentation" and view in ("truth", "before", "after")
        media, data = ("png", _png(image)) if flat else ("jpeg", _jpeg(image))
        source = f"data:image/{media};base64,{base64.b64encode(data).decode()}"
        return FailureView(view, source, image.shape[1], image.shape[0])

    def png(self, key: str, base: str, sut: str, view: str) -> bytes:
        """Return one of VIEWS of a failure as PNG."""
        return _png(self.image(key, base, sut, view))

    def legend(self, failures: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the classes in truth and answers of some failures (key, SUT), with their colours."""
        names: dict[str, None] = {}
        if self.task != "segmentation":
            return []
        for key, sut in failures:
            for file, meant in (("labels", self.classes), (sut_stem(sut), self._labels(sut))):
                name = failure_file(key, f"{file}.png")
                labels = np.unique(self._map(name)).tolist() if self.folder.keeps(name) else []
                names |= dict.fromkeys(meant[number] for number in labels if number in meant)
        return [(name, "#{:02x}{:02x}{:02x}".format(*colour_of(name))) for name in names]

    def _truth(self, folder: str) -> Image:
        if self.task == "detection":
            return _with_boxes(self._read(f"{folder}image.png"), self._true_boxes(folder), TRUE)
        return coloured(self._map(f"{folder}labels.png"), self.classes)

    def _true_boxes(self, folder: str) -> list[list[float]]:
        instances = self._map(f"{folder}instances.png")
        if instances.ndim == 3:
            instances = instances[..., ::-1].astype(np.int64) @ np.array([1, 256, 65536])
        boxes = []
        for value in np.unique(instances[instances > 0]).tolist():
            rows, columns = np.nonzero(instances == value)
            boxes.append([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        return boxes

    def _answer(self, folder: str, sut: str) -> Image:
        stem = sut_stem(sut)
        if self.task == "detection":
            boxes = json.loads(self.folder.kept_file(f"{folder}{stem}.json").read_text())
            sure = [
                box
                for box, score in zip(boxes["boxes"], boxes["scores"], strict=True)
                if score >= self.threshold
            ]
            return _with_boxes(self._read(f"{folder}image.png"), sure, FOUND)
        name = f"{folder}{stem}.png"
        if not self.folder.keeps(name):  # the SUT gave no answer
            return np.zeros_like(self._read(f"{folder}image.png"))
        return coloured(self._map(name), self._labels(sut))

    def _labels(self, sut: str) -> dict[int, str]:
        if sut not in self._names:
            stored = json.loads(self.folder.kept_file(names_file(sut)).read_text())
            self._names[sut] = {int(label): name for label, name in stored["names"].items()}
        return self._names[sut]

    def _read(self, name: str) -> Image:
        return _read(self.folder.kept_file(name))

    def _map(self, name: str) -> NDArray[Any]:
        return _map(self.folder.kept_file(name))


def _marked(image: Image, original: Image) -> Image:
    """Return the mutated image with a frame around all that was changed."""
    rows, columns = np.nonzero((image != original).any(axis=2))
    if not len(rows):
        return image
    corners = [columns.min() - 2.0, rows.min() - 2.0, columns.max() + 3.0, rows.max() + 3.0]
    return _with_boxes(image, [corners], MARK)


def coloured(labels: NDArray[Any], names: Mapping[int, str]) -> Image:
    """Return a label map in the colours of its classes; black where a label has no name."""
    table = np.zeros((2**16, 3), np.uint8)
    table[:] = NOT_JUDGED
    for label, name in names.items():
        table[label] = colour_of(name)
    return np.asarray(table[labels], np.uint8)


def colour_of(name: str) -> tuple[int, int, int]:
    """Return the colour of a class: the usual one, else one made of its name, always the same."""
    if name in COLOURS:
        return COLOURS[name]
    value = int(digest(name, size=3), 16)
    return 64 + value % 160, 64 + value // 160 % 160, 64 + value // 25600 % 160


def _with_boxes(image: Image, boxes: list[list[float]], colour: tuple[int, int, int]) -> Image:
    drawn = np.ascontiguousarray(image).copy()
    thick = max(1, round(image.shape[1] / 400))
    for x0, y0, x1, y1 in boxes:
        corners = (round(float(x0)), round(float(y0))), (round(float(x1)) - 1, round(float(y1)) - 1)
        cv2.rectangle(drawn, *corners, colour, thick)
    return drawn


def _small(image: Image) -> Image:
    scale = min(1.0, WIDEST / image.shape[1])
    if scale == 1:
        return image
    return np.asarray(cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), np.uint8)


def _read(path: Path) -> Image:
    pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if pixels is None:
        raise _gone(path)
    return np.asarray(pixels[..., ::-1], np.uint8)


def _map(path: Path) -> NDArray[Any]:
    pixels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise _gone(path)
    return np.asarray(pixels)


def _gone(path: Path) -> StoreError:
    return StoreError(
        "a picture of the campaign is missing",
        where=str(path),
        fix="Run the campaign again in the same folder: what is missing is made anew.",
    )


def _png(image: Image) -> bytes:
    return bytes(cv2.imencode(".png", image[..., ::-1])[1].tobytes())


def _jpeg(image: Image) -> bytes:
    made = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1]
    return bytes(made.tobytes())

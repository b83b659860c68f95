"""Small pictures of the grid: a frame under a mutation with what was found, missed and falsely found in it.

They are rendered when a browser asks for them, which it does for those that come into view, and as few kept
as fit a bound. A frame that cannot be shown is grey, with its boxes; one whose image is no longer that of the
run says so.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.errors import AdverseError
from adverse.pages.view.selection import Selections
from adverse.pages.view.session import ExploredRun

WIDTH_PX = 360
"""Twice what a thumbnail has on the page, for screens with fine pixels."""
UNKNOWN_SIZE = (640, 480)
MOST_BYTES = 32 * 1024 * 1024
JPEG_QUALITY = 82
LEAST_BOX_PX = 9
"""What is smaller is drawn with a box of this size around it."""
HIT, MISS, FALSE = (86, 180, 233), (255, 119, 51), (240, 228, 66)
GREY = 128

Key = tuple[str, str, int]
"""SUT, setting, and the row of the frame."""
Image = NDArray[np.uint8]


class Thumbnails:
    """Renders thumbnails one at a time, and keeps the latest."""

    def __init__(self, run: ExploredRun, *, most_bytes: int = MOST_BYTES) -> None:
        self.run = run
        self.most_bytes = most_bytes
        self.kept: OrderedDict[Key, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()  # plug-ins need not be safe to run in two threads

    def of(self, selections: Selections, sut: str, setting: str, frame: int) -> bytes:
        """Return a frame (a row of the run's frames) under a setting as JPEG."""
        key = (sut, setting, frame)
        with self._lock:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key]
            image, words = self._image(frame, setting)
            small = self._drawn(image, selections, key)
            if words:
                _write(small, words)
            jpeg = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[
                1
            ].tobytes()
            if image is not None:  # what failed may work again once the data are back
                self.kept[key] = jpeg
                self._bytes += len(jpeg)
            while len(self.kept) > 1 and self._bytes > self.most_bytes:
                self._bytes -= len(self.kept.popitem(last=False)[1])
            return jpeg

    def _image(self, frame: int, setting: str) -> tuple[Image | None, str]:
        """Return the image, and what is wrong with it."""
        name = self.run.store.frames.ids[frame]
        try:
            version = self.run.looker.version(name, setting)
        except AdverseError:
            return None, "no picture"
        seen = self.run.store.pixel_hashes([name]).get(name, version.pixels)
        return np.asarray(version.image), "" if version.pixels == seen else "image changed since the run"

    def _drawn(self, image: Image | None, selections: Selections, key: Key) -> Image:
        if image is None:
            width, height = self._size(key[2])
            image = np.full((height, width, 3), GREY, np.uint8)
        scale = min(1.0, WIDTH_PX / image.shape[1])
        small: Image = image.copy()
        if scale < 1:
            resized = cv2.resize(small, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            small = np.asarray(resized, np.uint8)
        found, false = selections.frame(*key)
        truth = self.run.store.truth if self.run.detection else None
        if truth is not None:
            first, last = np.searchsorted(truth.frame, [key[2], key[2] + 1])
            for row in range(first, last):
                hit = found.get(int(truth.place[row]))
                if hit is not None:
                    _box(small, truth.boxes[row] * scale, HIT if hit else MISS)
        if false is not None:
            _box(small, np.array(false) * scale, FALSE)
        return small

    def _size(self, frame: int) -> tuple[int, int]:
        width, height = self.run.store.frames.cameras[frame, 4:6]
        return (int(width), int(height)) if np.isfinite([width, height]).all() else UNKNOWN_SIZE


def _box(image: Image, box: NDArray[np.float64], colour: tuple[int, int, int]) -> None:
    """Draw a box with a dark halo; a very small one larger than it is."""
    x0, y0, x1, y1 = box.tolist()
    wide, high = max(0.0, LEAST_BOX_PX - (x1 - x0)) / 2, max(0.0, LEAST_BOX_PX - (y1 - y0)) / 2
    corners = (round(x0 - wide), round(y0 - high)), (round(x1 + wide), round(y1 + high))
    cv2.rectangle(image, *corners, (0, 0, 0), 4, cv2.LINE_AA)
    cv2.rectangle(image, *corners, colour, 2, cv2.LINE_AA)


def _write(image: Image, words: str) -> None:
    """Write over the foot of a picture, as large as fits."""
    size = 0.45 * min(1.0, image.shape[1] / 240)
    place = (4, image.shape[0] - 6)
    cv2.putText(image, words, place, cv2.FONT_HERSHEY_SIMPLEX, size, (0, 0, 0), 3, cv2.LINE_AA)
    cv2.putText(image, words, place, cv2.FONT_HERSHEY_SIMPLEX, size, (255, 255, 255), 1, cv2.LINE_AA)

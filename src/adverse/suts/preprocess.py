"""Bring an image to a model's input and its boxes back.

Coordinates are edges of pixels, as boxes are: an image of width w spans 0 to w, so scaling it to W maps
x to x * W / w exactly. This is what `cv2.resize` does with pixel centres at half numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import DTypeLike, NDArray

from adverse.types import Image

Resize = Literal["letterbox", "stretch", "crop"]
CROPPED = 7 / 8
"""Share of the shorter side that a crop keeps: 224 of 256, as ImageNet models are evaluated."""
Anchor = Literal["centre", "top-left"]
Channels = Literal["rgb", "bgr"]
Layout = Literal["nchw", "nhwc"]
Interpolation = Literal["linear", "area"]
INTERPOLATIONS = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}


@dataclass(frozen=True)
class Placement:
    """Where an image of one size lies in the model's input: scaled to `width` x `height` at `left`, `top`."""

    image_width: int
    image_height: int
    left: int
    top: int
    width: int
    height: int

    def to_input(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map boxes (N, 4) from pixels of the image to pixels of the input."""
        return boxes * self._scale() + self._offset()

    def to_image(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map boxes (N, 4) from pixels of the input to pixels of the image."""
        return (boxes - self._offset()) / self._scale()

    def _scale(self) -> NDArray[np.float64]:
        return np.tile([self.width / self.image_width, self.height / self.image_height], 2)

    def _offset(self) -> NDArray[np.float64]:
        return np.tile(np.array([self.left, self.top], np.float64), 2)


def place(
    image_width: int, image_height: int, size: tuple[int, int], *, resize: Resize, anchor: Anchor
) -> Placement:
    """Return where an image lies in an input of `size` (width, height).

    `letterbox` keeps the shape and leaves a border, around the image or, with `top-left`, right and below;
    `stretch` fills the input; `crop` keeps the shape and shows the middle, 7/8 of the shorter side.

    >>> place(640, 480, (320, 320), resize="letterbox", anchor="centre")
    Placement(image_width=640, image_height=480, left=0, top=40, width=320, height=240)
    """
    if resize == "stretch":
        return Placement(image_width, image_height, 0, 0, *size)
    if resize == "crop":
        ratio = max(size[0] / image_width, size[1] / image_height) / CROPPED
        width, height = max(round(image_width * ratio), size[0]), max(round(image_height * ratio), size[1])
        return Placement(
            image_width, image_height, -((width - size[0]) // 2), -((height - size[1]) // 2), width, height
        )
    ratio = min(size[0] / image_width, size[1] / image_height)
    width = min(max(round(image_width * ratio), 1), size[0])
    height = min(max(round(image_height * ratio), 1), size[1])
    left, top = ((size[0] - width) // 2, (size[1] - height) // 2) if anchor == "centre" else (0, 0)
    return Placement(image_width, image_height, left, top, width, height)


@dataclass(frozen=True)
class Preprocess:
    """How a model wants to see an image: values are (pixel * scale - mean) / std, per channel.

    `size` is (width, height). For integer inputs pixels are passed on as they are. `mean` and `std` are
    in the model's own order of channels.
    """

    size: tuple[int, int]
    dtype: DTypeLike
    resize: Resize = "letterbox"
    anchor: Anchor = "centre"
    pad: int = 114
    interpolation: Interpolation = "linear"
    channels: Channels = "rgb"
    layout: Layout = "nchw"
    scale: float = 1 / 255
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def batch(self, images: Sequence[Image]) -> tuple[NDArray[Any], list[Placement]]:
        """Return the input for a batch of images, and where in it each one lies."""
        placements = [
            place(i.shape[1], i.shape[0], self.size, resize=self.resize, anchor=self.anchor) for i in images
        ]
        width, height = self.size
        planes = np.empty((len(images), 3, height, width), self.dtype)
        for image, placed, out in zip(images, placements, planes, strict=True):
            self._see(image, placed, out)
        if self.layout == "nhwc":
            return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), placements
        return planes, placements

    @cached_property
    def _values(self) -> NDArray[np.float32]:
        """What each level of each channel becomes (3,256)."""
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        levels = np.arange(256, dtype=np.uint8)[:, None]
        return np.ascontiguousarray(((levels * np.float32(self.scale) - mean) / std).T)

    def _see(self, image: Image, placed: Placement, out: NDArray[Any]) -> None:
        """Write what the model is shown of an image into `out` (3,H,W)."""
        inside = cv2.resize(
            image, (placed.width, placed.height), interpolation=INTERPOLATIONS[self.interpolation]
        )
        canvas = np.full((self.size[1], self.size[0], 3), self.pad, np.uint8)
        if self.resize == "crop":
            canvas[:] = inside[-placed.top :, -placed.left :][: self.size[1], : self.size[0]]
        else:
            canvas[placed.top : placed.top + placed.height, placed.left : placed.left + placed.width] = inside
        ordered = cv2.split(canvas) if self.channels == "rgb" else cv2.split(canvas)[::-1]
        for plane, values, target in zip(ordered, self._values, out, strict=True):
            target[:] = cv2.LUT(plane, values) if out.dtype.kind == "f" else plane

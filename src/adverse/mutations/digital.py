"""What happens to the numbers after the sensor: lost channels, lossy compression, fewer pixels."""

from __future__ import annotations

import io
from typing import Annotated, Literal

import cv2
import numpy as np
from PIL import Image as PillowImage
from pydantic import Field

from adverse.mutations import layout
from adverse.mutations.colour import LUMA
from adverse.plugins import mutation
from adverse.types import Image

Quality = Annotated[int, Field(ge=1, le=100)]
LUMA_ROW = np.array(LUMA)
CHROMA = {"Cb": (2, 1.772, (0.0, -0.344136, 1.772)), "Cr": (0, 1.402, (1.402, -0.714136, 0.0))}
"""Full-range BT.601: which channel a difference is taken of, its divisor, and what a unit adds to R, G, B."""


@mutation
def identity(image: Image) -> Image:
    """Change nothing: the baseline that every mutated run is compared with."""
    return image.copy()


@mutation
def jpeg(image: Image, *, quality: Quality) -> Image:
    """Encode as JPEG and decode, the way Pillow does it: chroma at half resolution (000 III-A.4)."""
    flat = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    buffer = io.BytesIO()
    PillowImage.fromarray(np.ascontiguousarray(flat)).save(buffer, "JPEG", quality=quality)
    return np.array(PillowImage.open(buffer), np.uint8).reshape(image.shape)


@mutation
def channel_dropout(image: Image, *, channel: Literal["R", "G", "B", "Cb", "Cr"]) -> Image:
    """Store 0 in one channel of RGB, or of full-range BT.601 YCbCr (000 III-A.6).

    A dropped Cb or Cr is 0, not the neutral 128, as the paper says. A gray image is taken as R = G = B, and
    stays gray: what is left is the luma of the result.

    >>> channel_dropout(np.full((1, 1, 3), 100, np.uint8), channel="G")
    array([[[100,   0, 100]]], dtype=uint8)
    """
    source = layout.pixels(image)
    if source.shape[2] == 3:
        return _without(source, channel)
    ramp = np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
    table: Image = np.rint(_without(ramp, channel)[0] @ LUMA_ROW).astype(np.uint8)
    return table[image]


def _without(colours: Image, channel: str) -> Image:
    matrix = np.eye(3, 4)
    if channel in CHROMA:
        source, divisor, adds = CHROMA[channel]
        difference = (np.eye(3)[source] - LUMA_ROW) / divisor
        matrix[:, :3] -= np.outer(adds, difference)
        matrix[:, 3] = -128 * np.array(adds)
    else:
        matrix["RGB".index(channel)] = 0
    return cv2.transform(colours, matrix).astype(np.uint8, copy=False)


def pixelate(image: Image, share: float) -> Image:
    """Shrink to `share` of rows and columns by averaging boxes, and enlarge by repeating pixels."""
    rows, columns = image.shape[:2]
    flat = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    small = PillowImage.fromarray(np.ascontiguousarray(flat)).resize(
        (max(int(columns * share), 1), max(int(rows * share), 1)), PillowImage.Resampling.BOX
    )
    return np.array(small.resize((columns, rows), PillowImage.Resampling.NEAREST), np.uint8).reshape(
        image.shape
    )

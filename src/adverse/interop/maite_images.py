"""Images as MAITE has them, (channel, row, column), and as we do, (row, column, channel) RGB bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from adverse.errors import SutError
from adverse.types import Image


def planes_of(image: Image) -> Image:
    """Return one of our images as (channel, row, column)."""
    return np.ascontiguousarray(image.transpose(2, 0, 1))


def image_of(planes: Any, *, scale: float | None = None, where: str | None = None) -> Image:
    """Return a (channel, row, column) array as our (row, column, 3) RGB bytes; gray becomes RGB.

    >>> image_of(np.zeros((3, 4, 5), np.uint8)).shape
    (4, 5, 3)
    """
    array = np.asarray(planes)
    if array.ndim != 3 or array.shape[0] not in (1, 3) or array.size == 0:
        raise SutError(
            "this is not an image as MAITE has them",
            where=where,
            got=f"shape {array.shape}",
            wanted="(channel, row, column) with 3 or 1 channels",
            fix="Move the channels to the front.",
        )
    if scale is not None:
        array = np.rint(array.astype(np.float64) * scale)
    whole = array.astype(np.uint8)
    if (array.dtype.kind == "f" and scale is None) or not np.array_equal(whole, array):
        raise SutError(
            "the values of an image are not bytes",
            where=where,
            got=f"{array.dtype} from {array.min()} to {array.max()}",
            wanted="whole numbers from 0 to 255",
            fix="Scale the image to 0..255 and make it uint8.",
        )
    return np.ascontiguousarray(np.broadcast_to(whole, (3, *whole.shape[1:])).transpose(1, 2, 0))

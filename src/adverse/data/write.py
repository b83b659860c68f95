"""Writing images: for `adverse mutate` and for the data sets that we draw ourselves."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError
from adverse.types import Image

SUFFIXES = (".png", ".jpg", ".jpeg")
JPEG_QUALITY = 95
Pixels = Image | NDArray[np.uint16]


def write_image(path: Path, image: Pixels) -> None:
    """Write RGB or gray as PNG (exact, 8 or 16 bits) or JPEG (quality 95), by the file's ending."""
    data = image_bytes(image, path)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise DataError(
            "the image cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            fix="Give a place in a folder that exists and that you may write to.",
        ) from error


def image_bytes(image: Pixels, path: Path) -> bytes:
    """Return an image as the bytes of the file it is to be written to: PNG or JPEG by its ending."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            "an image is written as PNG or JPEG",
            where=str(path),
            got=f"the ending {suffix!r}",
            wanted=", ".join(SUFFIXES),
            fix="Give a name that ends in .png.",
        )
    stored = image[..., ::-1] if image.ndim == 3 and image.shape[2] == 3 else image
    quality = [] if suffix == ".png" else [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    _, data = cv2.imencode(suffix, np.ascontiguousarray(stored), quality)
    return data.tobytes()

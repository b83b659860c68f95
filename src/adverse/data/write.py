"""Writing images: for `adverse mutate` and for the data sets that we draw ourselves."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from adverse.errors import DataError
from adverse.types import Image

SUFFIXES = (".png", ".jpg", ".jpeg")
JPEG_QUALITY = 95


def write_image(path: Path, image: Image) -> None:
    """Write RGB or gray as PNG (exact) or JPEG (quality 95), by the file's ending."""
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(
            "an image is written as PNG or JPEG",
            where=str(path),
            got=f"the ending {path.suffix!r}",
            wanted=", ".join(SUFFIXES),
            fix="Give a name that ends in .png.",
        )
    stored = image[..., ::-1] if image.ndim == 3 and image.shape[2] == 3 else image
    quality = [] if path.suffix.lower() == ".png" else [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    _, data = cv2.imencode(path.suffix.lower(), np.ascontiguousarray(stored), quality)
    try:
        path.write_bytes(data.tobytes())
    except OSError as error:
        raise DataError(
            "the image cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            fix="Give a place in a folder that exists and that you may write to.",
        ) from error

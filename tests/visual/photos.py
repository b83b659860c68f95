"""Images to change: real photographs beside the repository, and drawn ones that are always there."""

from __future__ import annotations

import functools

import cv2
import numpy as np
import pytest

from adverse.types import Image
from pictures import SHARED

FOLDER = SHARED / "data" / "coco128_permissive" / "train2017"
needs_photos = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the shared photos are not beside the repository"
)


@functools.cache
def photo(number: int, side: int = 256) -> Image:
    """Return the middle of a photo, as taken; the whole of it, in steps of 16 pixels, if `side` is 0."""
    path = sorted(FOLDER.glob("*.jpg"))[number]
    image = cv2.imread(str(path), cv2.IMREAD_COLOR_RGB)
    assert image is not None
    rows, columns = (side, side) if side else (length // 16 * 16 for length in image.shape[:2])
    top, left = ((image.shape[0] - rows) // 2, (image.shape[1] - columns) // 2) if side else (0, 0)
    cut: Image = np.ascontiguousarray(image[top : top + rows, left : left + columns]).astype(np.uint8)
    return cut


@functools.cache
def drawn(rows: int = 96, columns: int = 120, seed: int = 0) -> Image:
    """Return a colour image with structure at all scales, not square."""
    rng = np.random.default_rng(seed)
    total = np.zeros((rows, columns, 3))
    for size in (2, 4, 8, 16, 32):
        coarse = rng.normal(size=(rows // size + 2, columns // size + 2, 3)) * size**0.5
        total += cv2.resize(coarse, (columns, rows), interpolation=cv2.INTER_LINEAR)
    total = (total - total.min()) / np.ptp(total) * 200 + 25
    out: Image = np.rint(total).astype(np.uint8)
    return out


def noisy(image: Image, sigma: float, seed: int = 1) -> Image:
    """Return the image with rounded normal noise; more sigma amplifies the same noise."""
    rng = np.random.default_rng(seed)
    levels = np.rint(image + sigma * rng.normal(size=image.shape))
    out: Image = np.clip(levels, 0, 255).astype(np.uint8)
    return out


def blurred(image: Image, sigma_px: float) -> Image:
    return cv2.GaussianBlur(image, (0, 0), sigma_px).astype(np.uint8)


def compressed(image: Image, quality: int) -> Image:
    data = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    decoded = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB)
    assert decoded is not None
    return decoded.astype(np.uint8)

"""What a calibration can be: checked before depth is computed with it."""

from __future__ import annotations

import math

from adverse.errors import DataError
from adverse.types import Camera, Image

WIDEST, NARROWEST = 0.2, 20.0
"""Focal length over image width: a view of 136 and of 3 degrees."""


def check_camera(camera: Camera, image: Image, where: str) -> None:
    """Raise where a calibration is not of this image, or not of any camera that takes pictures of a scene."""
    height, width = image.shape[:2]
    if (camera.width, camera.height) != (width, height):
        raise DataError(
            "the calibration is of another image size",
            where=where,
            got=f"{width}x{height} pixels, calibrated {camera.width}x{camera.height}",
            wanted="the calibration of these images",
            fix="Correct width and height, and fx, fy, cx and cy with them.",
        )
    numbers = {name: getattr(camera, name) for name in ("fx", "fy", "cx", "cy")}
    absurd = [
        f"{name} {value:g}"
        for name, value in numbers.items()
        if not math.isfinite(value)
        or (name in ("fx", "fy") and not WIDEST <= value / width <= NARROWEST)
        or (name == "cx" and not 0 <= value <= width)
        or (name == "cy" and not -height <= value <= 2 * height)
    ]
    if absurd:
        raise DataError(
            "the calibration cannot be right",
            where=where,
            got=f"{', '.join(absurd)} for an image of {width}x{height}",
            wanted=f"fx and fy in pixels, {WIDEST * width:.0f} to {NARROWEST * width:.0f}, and (cx, cy) near the middle",
            fix="Give all four in pixels of these images.",
        )

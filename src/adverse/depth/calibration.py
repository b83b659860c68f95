"""What a calibration can be: checked before depth is computed with it."""

from __future__ import annotations

import math

from adverse.errors import DataError
from adverse.types import Camera

WIDEST, NARROWEST = 0.2, 20.0
"""Focal length over image width: a view of 136 and of 3 degrees."""
MOST_UNEQUAL = 1.5
"""fx over fy, either way: pixels that are longer than this are a mistake."""
LEAST_BASELINE_M, MOST_BASELINE_M = 0.01, 5.0


def check_camera(camera: Camera, size: tuple[int, int], where: str) -> None:
    """Raise where a calibration is not of images of this size (width, height), or cannot be right."""
    width, height = size
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
            wanted=f"fx, fy: {WIDEST * width:.0f} to {NARROWEST * width:.0f} pixels; cx, cy: in the image",
            fix="Give all four in pixels of these images.",
        )

    if not 1 / MOST_UNEQUAL <= camera.fx / camera.fy <= MOST_UNEQUAL:
        raise DataError(
            "fx and fy cannot both be right",
            where=where,
            got=f"fx {camera.fx:g}, fy {camera.fy:g}",
            wanted=f"nearly the same, at most {MOST_UNEQUAL:g} times the other",
            fix="Correct the wrong one; scale images and calibration where pixels are not square.",
        )


def check_baseline(camera: Camera, where: str) -> float:
    """Return the distance between the two cameras in metres, or raise where there is none that can be."""
    if camera.baseline_m is None:
        raise DataError(
            "the calibration has no baseline",
            where=where,
            got="baseline_m missing",
            wanted="the distance between the two cameras in metres",
            fix='Add it to camera.json, e.g. "baseline_m": 0.24.',
        )
    if not LEAST_BASELINE_M <= camera.baseline_m <= MOST_BASELINE_M:
        raise DataError(
            "the baseline cannot be right",
            where=where,
            got=f"{camera.baseline_m:g} m",
            wanted=f"{LEAST_BASELINE_M:g} to {MOST_BASELINE_M:g} m",
            fix="Give baseline_m in metres, not millimetres.",
        )
    return camera.baseline_m

"""What the eye compares: the luminance of two images of one size, checked once for all measures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError
from adverse.mutations.compiled import kernel
from adverse.mutations.pixels import LUMA
from adverse.types import Image

RED, GREEN, BLUE = LUMA

Luminance = NDArray[np.float64]
"""(rows, columns), 0..255."""

FLAT = 1e-9
"""Luminance that varies by no more than this is constant: it is rounding."""


def luminance(image: NDArray[Any], *, where: str = "image") -> Luminance:
    """Return the BT.601 luminance of an RGB or gray uint8 image, not rounded.

    >>> luminance(np.array([[[255, 0, 0], [10, 10, 10]]], np.uint8)).round(3)
    array([[76.245, 10.   ]])
    """
    shaped = image.ndim == 2 or (image.ndim == 3 and image.shape[2] in {1, 3})
    if image.dtype != np.uint8 or not shaped or image.size == 0:
        raise DataError(
            "visual change compares uint8 images",
            where=where,
            got=f"{image.dtype} {image.shape}",
            wanted="(rows, columns, 3) RGB, (rows, columns, 1) or (rows, columns), uint8",
            fix="Scale to 0..255 and call .astype(np.uint8).",
        )
    if image.ndim == 3 and image.shape[2] == 3:
        values = np.empty(image.shape[:2])
        mix_channels(np.ascontiguousarray(image), values)
        return values
    return np.ascontiguousarray(image.reshape(image.shape[:2]), np.float64)


def check_reference(reference: Luminance, *, measure: str, least_px: int, smaller: str = "") -> None:
    """Refuse a reference that a measure says nothing about: too small for its scales, or all of one value.

    `smaller` is the backend that is made for small images, where there is one.
    """
    rows, columns = reference.shape
    if min(rows, columns) < least_px:
        raise DataError(
            f"the image is too small for the scales of {measure}"
            + (f" (backend {smaller} is for small ones, with its own thresholds)" if smaller else ""),
            got=f"{rows} x {columns} pixels",
            wanted=f"at least {least_px} x {least_px}",
            fix=f"Set backend: {smaller} (in a human study visual_change: {smaller}), with a threshold by "
            f"{smaller}; the published ones are by vif. Or use larger images."
            if smaller
            else "Use a larger image, or enlarge both images in the same way first.",
        )
    if np.ptp(reference) <= FLAT:
        raise DataError(
            f"the reference image is constant, so {measure} is not defined",
            got=f"luminance {float(reference.flat[0]):.6g} everywhere",
            wanted="an image with some structure",
            fix="Leave this frame out.",
        )


def check_sizes(reference: Luminance, changed: Luminance) -> None:
    """Refuse to compare images of different sizes."""
    if reference.shape != changed.shape:
        raise DataError(
            "the two images have different sizes",
            got=f"reference {reference.shape[0]} x {reference.shape[1]}, "
            f"changed {changed.shape[0]} x {changed.shape[1]} (rows x columns)",
            wanted="two images of one size",
            fix="Compare an image with a change of itself.",
        )


@kernel("(Array(u1, 3, 'C', readonly=True), f8[:, ::1])")
def mix_channels(image: Image, out: Luminance) -> None:
    """Fill in the luminance of every pixel."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = (
                RED * image[row, column, 0] + GREEN * image[row, column, 1] + BLUE * image[row, column, 2]
            )

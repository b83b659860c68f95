"""Blur that is the same everywhere in the image."""

from __future__ import annotations

from typing import Annotated

import cv2
import numpy as np

from adverse.plugins import NonNegative, mutation, unchanged_at
from adverse.types import Image

TRUNCATE_SIGMA = 4.0
"""Kernel half-width in standard deviations: what is cut off weighs less than 1e-4."""


@mutation
def gaussian_blur(image: Image, *, sigma_px: Annotated[NonNegative, unchanged_at(0)]) -> Image:
    """Blur with an isotropic Gaussian of standard deviation `sigma_px`, reflecting at the border.

    A rough stand-in for defocus or dirt on the lens (000 III-A.1).

    >>> gaussian_blur(np.full((2, 3), 7, np.uint8), sigma_px=1.5)
    array([[7, 7, 7],
           [7, 7, 7]], dtype=uint8)
    """
    if sigma_px == 0:
        return image.copy()
    width = 2 * int(np.ceil(TRUNCATE_SIGMA * sigma_px)) + 1
    source = np.ascontiguousarray(image)
    blurred = cv2.GaussianBlur(source, (width, width), sigma_px, borderType=cv2.BORDER_REFLECT)
    return blurred.reshape(image.shape).astype(np.uint8, copy=False)

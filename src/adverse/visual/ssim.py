"""SSIM: the structural similarity of two images (Wang et al. 2004), recorded beside the visual change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.visual.luminance import Luminance, check_reference, check_sizes, luminance
from adverse.visual.vifp import moments, structural_similarity

REACH_PX, SIGMA_PX = 5, 1.5
"""The Gaussian window: 11 x 11, where it fits."""

STEADY_MEAN, STEADY_CONTRAST = (0.01 * 255) ** 2, (0.03 * 255) ** 2
"""What keeps the ratios steady where mean or contrast is near 0."""

LEAST_PX = 2 * REACH_PX + 1


class SsimReference:
    """All that SSIM needs of the reference, made once for any number of changes of it."""

    def __init__(self, values: Luminance) -> None:
        check_reference(values, measure="SSIM", least_px=LEAST_PX)
        self._values = values
        inside = tuple(side - 2 * REACH_PX for side in values.shape)
        self._mean, self._variance = np.empty(inside), np.empty(inside)
        moments(values, _taps(), self._mean, self._variance)

    def compare(self, changed: Luminance) -> float:
        """Return SSIM of a changed image, averaged over all windows."""
        check_sizes(self._values, changed)
        steady = STEADY_MEAN, STEADY_CONTRAST
        total = structural_similarity(self._values, changed, _taps(), self._mean, self._variance, *steady)
        return float(total / self._mean.size)


def ssim(reference: NDArray[Any], changed: NDArray[Any]) -> float:
    """Return the structural similarity of two uint8 images: 1 for equal ones.

    >>> image = np.add.outer(np.arange(48) % 7, np.arange(50) % 5).astype(np.uint8) * 20
    >>> round(ssim(image, image), 6), ssim(image, 255 - image) < 0
    (1.0, True)
    """
    return SsimReference(luminance(reference, where="reference")).compare(luminance(changed, where="changed"))


def _taps() -> NDArray[np.float64]:
    weights = np.exp(-0.5 * (np.arange(REACH_PX + 1) / SIGMA_PX) ** 2)
    normed: NDArray[np.float64] = weights / (2 * weights.sum() - weights[0])
    return normed

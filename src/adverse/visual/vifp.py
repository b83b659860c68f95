"""VIFp: visual information fidelity in the pixel domain (Sheikh and Bovik 2006), four scales.

Around every pixel the changed image is modelled as a gain of the reference plus noise; both are seen through
the noise of the eye, of variance `sigma_n_sq`. VIFp is the information that the changed image still has of
the reference, over that of the reference itself: 1 for an equal image, 0 for an unrelated one, above 1 where
contrast is enhanced.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.visual import vifp_kernels as kernels
from adverse.visual.luminance import Luminance, check_reference, check_sizes, luminance

SIGMA_N_SQ = 0.4
"""Variance of the eye's noise on levels 0..255, as in the wavelet domain; public code often takes 2."""

WINDOWS = (17, 9, 5, 3)
"""Side of the Gaussian window at each scale, from fine to coarse; its standard deviation is a fifth of it."""

LEAST_PX = 41
"""Sides below this leave the coarsest scale without a single whole window."""


class VifpReference:
    """All that VIFp needs of the reference, made once for any number of changes of it."""

    def __init__(self, values: Luminance, *, sigma_n_sq: float = SIGMA_N_SQ) -> None:
        check_reference(values, measure="VIFp", least_px=LEAST_PX)
        self._noise = sigma_n_sq
        self._scales: list[tuple[Luminance, Luminance, Luminance, Luminance]] = []
        self._information = 0.0
        for scale in _scales(values):
            taps = _taps(WINDOWS[len(self._scales)])
            inside = tuple(side - 2 * (len(taps) - 1) for side in scale.shape)
            mean, variance = np.empty(inside), np.empty(inside)
            kernels.moments(scale, taps, mean, variance)
            self._scales.append((scale, taps, mean, variance))
            self._information += kernels.information(variance, sigma_n_sq)

    def compare(self, changed: Luminance) -> float:
        """Return VIFp of a changed image."""
        check_sizes(self._scales[0][0], changed)
        kept = 0.0
        for values, (scale, taps, mean, variance) in zip(_scales(changed), self._scales, strict=True):
            kept += kernels.kept_information(scale, values, taps, mean, variance, self._noise)
        return float(kept / self._information)


def vifp(reference: NDArray[Any], changed: NDArray[Any], *, sigma_n_sq: float = SIGMA_N_SQ) -> float:
    """Return the visual information fidelity of two uint8 images by their pixels.

    >>> image = np.add.outer(np.arange(48) % 7, np.arange(50) % 5).astype(np.uint8) * 20
    >>> round(vifp(image, image), 6), vifp(image, image // 2) < 1
    (1.0, True)
    """
    return VifpReference(luminance(reference, where="reference"), sigma_n_sq=sigma_n_sq).compare(
        luminance(changed, where="changed")
    )


def _scales(values: Luminance) -> list[Luminance]:
    """Return the image at all scales: smoothed with the window of the scale to come, every other pixel."""
    found = [values]
    for window in WINDOWS[1:]:
        finer = found[-1]
        coarser = np.empty(tuple((side - window + 2) // 2 for side in finer.shape))
        kernels.halve(finer, _taps(window), coarser)
        found.append(coarser)
    return found


def _taps(window: int) -> NDArray[np.float64]:
    """Return a Gaussian window's weights from the centre outwards; both halves together sum to 1."""
    weights = np.exp(-0.5 * (np.arange(window // 2 + 1) / (window / 5)) ** 2)
    normed: NDArray[np.float64] = weights / (2 * weights.sum() - weights[0])
    return normed

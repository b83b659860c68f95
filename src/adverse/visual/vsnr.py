"""VSNR: the visual signal-to-noise ratio (Chandler and Hemami 2007) in dB, infinite where nothing is seen.

Contrast is measured in luminance, as a display shows it to somebody at a given distance, at five scales of
a 9/7 wavelet transform. Natural images mask distortions: at each scale one is seen only above a contrast that
is in a known ratio to the image's own. What is below it at every scale, and does not shift the mean luminance
by 1 %, is invisible.

Two things are not as in the authors' program, which compares one total contrast with one total threshold, and
takes the mean luminance of the flattened image for that of the image: here every scale has to be below its
threshold, as the paper has it, and the shift of luminance is that between the two images.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.visual.luminance import Luminance, check_reference, check_sizes, luminance

PIXEL_GAIN, GAMMA = 0.02874, 2.2
"""Luminance of pixel value v: (PIXEL_GAIN v) ** GAMMA, an sRGB display without black offset."""

DPI, DISTANCE_IN = 96, 19.1
"""Pixels of the display per inch, and the distance it is seen from in inches."""

SCALES = 5
FREQUENCIES = tuple(DPI * DISTANCE_IN * math.tan(math.pi / 180) / 2**scale for scale in range(1, SCALES + 1))
"""Cycles per degree at each scale, fine to coarse: 16, 8, 4, 2, 1."""

MASKING = (59.8, -0.1258, -0.1087)
"""a0, a1, a2: at frequency f a change is seen when the image has less than a0 f^(a1 + a2 ln f) times its
contrast."""

CONTRAST_SHARE = 0.04
"""alpha: the share of perceived contrast in what disturbs; the rest is scales out of proportion."""

LEAST_SHIFT = 0.01
"""A relative shift of the mean luminance that is seen."""

LEAST_PX = 2**SCALES
"""A side below this leaves the coarsest scale without a coefficient."""

MARGIN = 2
"""Coefficients that PyWavelets adds before the first one of a transform as long as the signal."""


class VsnrReference:
    """All that VSNR needs of the reference, made once for any number of changes of it."""

    def __init__(self, values: Luminance) -> None:
        check_reference(values, measure="VSNR", least_px=LEAST_PX)
        shown = _shown(values)
        self._values = values
        self._mean_level = float(values.mean())
        self._mean_shown = float(shown.mean())
        self._contrast = float(shown.std()) / self._mean_shown
        slope = GAMMA * PIXEL_GAIN * (PIXEL_GAIN * self._mean_level) ** (GAMMA - 1)
        self._per_level = slope / self._mean_shown
        self._contrasts = np.array(list(self._by_scale(values)))

    def invisible(self, changed: Luminance) -> bool:
        """Return whether VSNR is infinite: nobody would see the change. Stops at the first scale seen."""
        check_sizes(self._values, changed)
        thresholds = self._contrasts / _best_ratios(0)
        scales = zip(self._by_scale(self._error(changed)), thresholds, strict=True)
        return (
            all(contrast <= threshold for contrast, threshold in scales)
            and self._shift(changed) < LEAST_SHIFT
        )

    def compare(self, changed: Luminance) -> float:
        """Return VSNR of a changed image in dB, inf where the change is invisible.

        Where only the mean luminance differs, its relative shift is the contrast that is perceived.
        """
        check_sizes(self._values, changed)
        error = self._error(changed)
        actual = np.array(list(self._by_scale(error)))
        if (actual <= self._contrasts / _best_ratios(0)).all():
            shift = self._shift(changed)
            return math.inf if shift < LEAST_SHIFT else _decibels(self._contrast, CONTRAST_SHARE * shift)
        total = float(_shown(error).std()) / self._mean_shown
        out_of_proportion = float(np.linalg.norm(self._least_disturbing(total) - actual))
        disturbance = CONTRAST_SHARE * total + (1 - CONTRAST_SHARE) * out_of_proportion / math.sqrt(2)
        return _decibels(self._contrast, disturbance)

    def _error(self, changed: Luminance) -> Luminance:
        """Return the change alone, around the reference's mean value, as far as a display can show it."""
        error: Luminance = np.clip(changed - self._values + self._mean_level, 0, 255)
        return error

    def _shift(self, changed: Luminance) -> float:
        return abs(float(_shown(changed).mean()) - self._mean_shown) / self._mean_shown

    def _by_scale(self, values: Luminance) -> Iterator[float]:
        """Yield the contrast of each scale, fine to coarse, all orientations together."""
        for scale, bands in enumerate(_bands(values), start=1):
            spread = math.sqrt(sum(float(band.var()) for band in bands))
            yield spread * self._per_level / 2**scale

    def _least_disturbing(self, total: float) -> NDArray[np.float64]:
        """Return the contrasts by scale, of that total, that keep the image's proportions best."""

        def spread(visibility: float) -> NDArray[np.float64]:
            contrasts: NDArray[np.float64] = self._contrasts / _best_ratios(visibility)
            return contrasts

        low, high = 0.0, 1.0
        for _ in range(50):  # the total grows from the threshold without bound
            middle = (low + high) / 2
            if np.linalg.norm(spread(middle)) < total:
                low = middle
            else:
                high = middle
        return spread(low)


def vsnr(reference: NDArray[Any], changed: NDArray[Any]) -> float:
    """Return the visual signal-to-noise ratio of two uint8 images in dB; inf: no change can be seen.

    >>> image = np.add.outer(np.arange(48) % 7, np.arange(50) % 5).astype(np.uint8) * 20
    >>> vsnr(image, image)
    inf
    >>> round(vsnr(image, image // 2), 1)
    12.6
    """
    return VsnrReference(luminance(reference, where="reference")).compare(luminance(changed, where="changed"))


def _shown(values: Luminance) -> Luminance:
    """Return the luminance that a display gives to levels."""
    shown: Luminance = (PIXEL_GAIN * values) ** GAMMA
    return shown


def _decibels(signal: float, noise: float) -> float:
    return 20 * math.log10(signal / noise)


def _best_ratios(visibility: float) -> NDArray[np.float64]:
    """Return, by scale, the ratio of the image's contrast to that of the change, at a visibility of 0..1.

    At 0 it is the threshold of seeing. More visible changes disturb least when they are weaker at coarse
    scales, where the eye looks first.
    """
    a0, a1, a2 = MASKING
    b0 = a0 * (1 - visibility)
    b1 = a1 + (1 - a1) * visibility
    b2 = a2 - (1 + a2) * visibility
    logs = np.log(FREQUENCIES)
    ratios: NDArray[np.float64] = b0 * np.exp((b1 + b2 * logs) * logs)
    return ratios


def _bands(values: Luminance) -> Iterator[list[Luminance]]:
    """Yield the three detail bands of each scale: 9/7 filters, low-pass gain sqrt 2, mirrored ends."""
    for _ in range(SCALES):
        low, high = _halves(values, 1)
        (values, low_high), (high_low, high_high) = _halves(low, 0), _halves(high, 0)
        yield [low_high, high_low, high_high]


def _halves(values: Luminance, axis: int) -> tuple[Luminance, Luminance]:
    """Return the low and the high half, together as long as the signal.

    What PyWavelets adds at the ends mirrors what is kept, and is left out.
    """
    import pywt  # noqa: PLC0415 - only VSNR needs it

    low, high = pywt.dwt(values, "bior4.4", mode="reflect", axis=axis)
    length = values.shape[axis]
    keep = [slice(None), slice(None)]
    keep[axis] = slice(MARGIN, MARGIN + (length + 1) // 2)
    low = low[tuple(keep)]
    keep[axis] = slice(MARGIN, MARGIN + length // 2)
    return low, high[tuple(keep)]

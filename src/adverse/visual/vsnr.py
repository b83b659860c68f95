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

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel
from adverse.visual.luminance import Luminance, check_reference, check_sizes, luminance

PIXEL_GAIN, GAMMA = 0.02874, 2.2
"""Luminance of pixel value v: (PIXEL_GAIN v) ** GAMMA, an sRGB display without black offset."""

DPI, DISTANCE_IN = 96, 19.1
"""Pixels of the display per inch, and the distance it is seen from in inches."""

SCALES = 5
FREQUENCIES = tuple(DPI * DISTANCE_IN * math.tan(math.pi / 180) / 2**scale for scale in range(1, SCALES + 1))
"""Cycles per degree at each scale, fine to coarse: 16, 8, 4, 2, 1."""

LOGS = np.log(FREQUENCIES)
A0, A1, A2 = 59.8, -0.1258, -0.1087
"""At frequency f a change is seen when the image has less than A0 f^(A1 + A2 ln f) times its contrast."""

CONTRAST_SHARE = 0.04
"""alpha: the share of perceived contrast in what disturbs; the rest is scales out of proportion."""

LEAST_SHIFT = 0.01
"""A relative shift of the mean luminance that is seen."""

LEAST_PX = 2**SCALES
"""A side below this leaves the coarsest scale without a coefficient."""

Taps = NDArray[np.float64]
LOW: Taps = np.array(
    [
        0.8526986790088938,
        0.37740285561283066,
        -0.11062440441843718,
        -0.023849465019556843,
        0.03782845550726404,
    ]
)
HIGH: Taps = np.array([-0.7884856164055829, 0.41809227322161724, 0.04068941760916406, -0.06453888262869706])
"""The analysis filters of the 9/7 wavelet (Cohen, Daubechies and Feauveau), from the centre outwards."""


class VsnrReference:
    """All that VSNR needs of the reference, made once for any number of changes of it."""

    def __init__(self, values: Luminance) -> None:
        check_reference(values, measure="VSNR", least_px=LEAST_PX)
        self._values = values
        self._mean_level = float(values.mean())

    @functools.cached_property
    def _finest(self) -> float:
        """The spread of the finest scale alone: most changes are seen there."""
        return next(_spreads(self._values))

    @functools.cached_property
    def _spreads(self) -> NDArray[np.float64]:
        return np.array(list(_spreads(self._values)))

    @functools.cached_property
    def _mean_shown(self) -> float:
        return float(_shown(self._values).mean())

    @functools.cached_property
    def _contrast(self) -> float:
        return math.sqrt(variance(_shown(self._values))) / self._mean_shown

    def invisible(self, changed: Luminance) -> bool:
        """Return whether VSNR is infinite: nobody would see the change. Stops at the first scale seen."""
        check_sizes(self._values, changed)
        ratios = _best_ratios(0)
        spreads = _spreads(self._error(changed))
        if next(spreads) > self._finest / ratios[0]:
            return False
        coarser = zip(spreads, (self._spreads / ratios)[1:], strict=True)
        return (
            all(spread <= threshold for spread, threshold in coarser) and self._shift(changed) < LEAST_SHIFT
        )

    def compare(self, changed: Luminance) -> float:
        """Return VSNR of a changed image in dB, inf where the change is invisible.

        Where only the mean luminance differs, its relative shift is the contrast that is perceived.
        """
        check_sizes(self._values, changed)
        error = self._error(changed)
        spreads = np.array(list(_spreads(error)))
        if (spreads <= self._spreads / _best_ratios(0)).all():
            shift = self._shift(changed)
            return math.inf if shift < LEAST_SHIFT else _decibels(self._contrast, CONTRAST_SHARE * shift)
        total = math.sqrt(variance(_shown(error))) / self._mean_shown
        least_disturbing = self._least_disturbing(total)
        out_of_proportion = float(np.linalg.norm(least_disturbing - self._contrasts(spreads)))
        disturbance = CONTRAST_SHARE * total + (1 - CONTRAST_SHARE) * out_of_proportion / math.sqrt(2)
        return _decibels(self._contrast, disturbance)

    def _error(self, changed: Luminance) -> Luminance:
        """Return the change alone, around the reference's mean value, as far as a display can show it."""
        error = np.empty(changed.shape)
        difference(changed, self._values, self._mean_level, error)
        return error

    def _shift(self, changed: Luminance) -> float:
        return abs(float(_shown(changed).mean()) - self._mean_shown) / self._mean_shown

    def _contrasts(self, spreads: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the contrast of each scale: its spread in levels, as luminance over the mean luminance."""
        slope = GAMMA * PIXEL_GAIN * (PIXEL_GAIN * self._mean_level) ** (GAMMA - 1)
        contrasts: NDArray[np.float64] = (
            spreads * (slope / self._mean_shown) / 2.0 ** np.arange(1, SCALES + 1)
        )
        return contrasts

    def _least_disturbing(self, total: float) -> NDArray[np.float64]:
        """Return the contrasts by scale, of that total, that keep the image's proportions best."""
        contrasts = self._contrasts(self._spreads)
        best: NDArray[np.float64] = contrasts / _best_ratios(visibility_of(total, contrasts, LOGS))
        return best


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
    ratios = np.empty(SCALES)
    best_ratios(visibility, LOGS, ratios)
    return ratios


@kernel("(f8, f8[::1], f8[::1])")
def best_ratios(visibility: float, logs: Taps, out: Taps) -> None:
    """Fill in the ratios at each scale, from the logarithm of its frequency."""
    b0 = A0 * (1 - visibility)
    b1 = A1 + (1 - A1) * visibility
    b2 = A2 - (1 + A2) * visibility
    for scale in range(len(logs)):
        out[scale] = b0 * np.exp((b1 + b2 * logs[scale]) * logs[scale])


@kernel("f8(f8, f8[::1], f8[::1])")
def visibility_of(total: float, contrasts: Taps, logs: Taps) -> float:
    """Return at which visibility the least disturbing contrasts have this total, from below."""
    ratios = np.empty(len(logs))
    low, high = 0.0, 1.0
    for _ in range(50):  # the total grows from the threshold without bound
        middle = (low + high) / 2
        best_ratios(middle, logs, ratios)
        squares = 0.0
        for scale in range(len(logs)):
            squares += (contrasts[scale] / ratios[scale]) ** 2
        if np.sqrt(squares) < total:
            low = middle
        else:
            high = middle
    return low


def _spreads(values: Luminance) -> Iterator[float]:
    """Yield the standard deviation of each scale in levels, fine to coarse, all orientations together."""
    for bands in _bands(values):
        yield math.sqrt(sum(variance(band) for band in bands))


def _bands(values: Luminance) -> Iterator[list[Luminance]]:
    """Yield the three detail bands of each scale: 9/7 filters, low-pass gain sqrt 2, mirrored ends.

    Rows are filtered before columns, and low before high: high across, high down, high in both.
    """
    for _ in range(SCALES):
        rows, columns = values.shape
        low_rows, low_columns = (rows + 1) // 2, (columns + 1) // 2
        bands = [
            np.empty((low_rows if low_down else rows // 2, low_columns if low_across else columns // 2))
            for low_across in (True, False)
            for low_down in (True, False)
        ]
        split(values, LOW, HIGH, *bands)
        values = bands[0]
        yield bands[1:]


@kernel("(f8[:, ::1], f8[:, ::1], f8, f8[:, ::1])")
def difference(changed: Luminance, reference: Luminance, level: float, out: Luminance) -> None:
    """Fill in the difference around a level, as far as a display can show it."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            value = changed[row, column] - reference[row, column] + level
            out[row, column] = min(max(value, 0.0), 255.0)


@kernel("f8(f8[:, ::1])", reorder=True)
def variance(values: Luminance) -> float:
    """Return the variance of all values, in two passes."""
    mean = 0.0
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            mean += values[row, column]
    mean /= values.size
    total = 0.0
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            apart = values[row, column] - mean
            total += apart * apart
    return total / values.size


@kernel("(f8[:, ::1], f8[::1], f8[::1], f8[:, ::1], f8[:, ::1], f8[:, ::1], f8[:, ::1])")
def split(
    values: Luminance,
    low: Taps,
    high: Taps,
    low_low: Luminance,
    low_high: Luminance,
    high_low: Luminance,
    high_high: Luminance,
) -> None:
    """Fill in the four bands of one scale; the first word of a name is across a row, the second down."""
    rows, columns = values.shape
    line = np.empty(columns)
    for row in range(rows):
        taps = low if row % 2 == 0 else high
        for column in range(columns):
            line[column] = taps[0] * values[row, column]
        for k in range(1, len(taps)):
            above, below = mirrored(row - k, rows), mirrored(row + k, rows)
            weight = taps[k]
            for column in range(columns):
                line[column] += weight * (values[above, column] + values[below, column])
        if row % 2 == 0:
            halves(line, low, high, low_low[row // 2], high_low[row // 2])
        else:
            halves(line, low, high, low_high[row // 2], high_high[row // 2])


@kernel("i8(i8, i8)")
def mirrored(place: int, count: int) -> int:
    """Return the place within a line of 2 or more that one beyond its ends mirrors, however far beyond."""
    period = 2 * (count - 1)
    place = abs(place) % period
    return place if place < count else period - place


@kernel("(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def halves(line: Taps, low: Taps, high: Taps, low_out: Taps, high_out: Taps) -> None:
    """Filter a line, mirrored about its ends: low-pass at its even places, high-pass at the odd ones."""
    count = len(line)
    even, odd = np.empty(count // 2 + 5), np.empty(count // 2 + 5)  # two of each before the line and behind
    inside = count // 2
    for place in range(inside):
        even[place + 2] = line[2 * place]
        odd[place + 2] = line[2 * place + 1]
    for end in range(5):
        place = end if end < 2 else inside + end
        even[place] = line[mirrored(2 * place - 4, count)]
        odd[place] = line[mirrored(2 * place - 3, count)]
    for k in range(len(low_out)):
        low_out[k] = (
            low[0] * even[k + 2]
            + low[1] * (odd[k + 1] + odd[k + 2])
            + low[2] * (even[k + 1] + even[k + 3])
            + low[3] * (odd[k] + odd[k + 3])
            + low[4] * (even[k] + even[k + 4])
        )
    for k in range(len(high_out)):
        high_out[k] = (
            high[0] * odd[k + 2]
            + high[1] * (even[k + 2] + even[k + 3])
            + high[2] * (odd[k + 1] + odd[k + 3])
            + high[3] * (even[k + 1] + even[k + 4])
        )

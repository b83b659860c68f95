"""VIFp: visual information fidelity in the pixel domain (Sheikh and Bovik 2006), four scales.

Around every pixel the changed image is modelled as a gain of the reference plus noise; both are seen through
the noise of the eye, of variance `sigma_n_sq`. VIFp is the information that the changed image still has of
the reference, over that of the reference itself: 1 for an equal image, 0 for an unrelated one, above 1 where
contrast is enhanced.

The compiled loops filter images where the window fits, rows first and then columns, in double precision: in a
flat part of an image the variance is the small difference of two large numbers. Windows are symmetric; `taps`
are their weights from the centre outwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel
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
            moments(scale, taps, mean, variance)
            self._scales.append((scale, taps, mean, variance))
            self._information += information(variance, sigma_n_sq)

    def compare(self, changed: Luminance) -> float:
        """Return VIFp of a changed image."""
        check_sizes(self._scales[0][0], changed)
        preserved = 0.0
        for values, (scale, taps, mean, variance) in zip(_scales(changed), self._scales, strict=True):
            preserved += preserved_information(scale, values, taps, mean, variance, self._noise)
        return float(preserved / self._information)


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
    scales = [values]
    for window in WINDOWS[1:]:
        finer = scales[-1]
        coarser = np.empty(tuple((side - window + 2) // 2 for side in finer.shape))
        halve(finer, _taps(window), coarser)
        scales.append(coarser)
    return scales


def _taps(window: int) -> NDArray[np.float64]:
    """Return a Gaussian window's weights from the centre outwards; both halves together sum to 1."""
    weights = np.exp(-0.5 * (np.arange(window // 2 + 1) / (window / 5)) ** 2)
    normed: NDArray[np.float64] = weights / (2 * weights.sum() - weights[0])
    return normed


Plane = NDArray[np.float64]

LEAST_VARIANCE = 1e-10
"""A variance below this is rounding, and taken for none."""

TERMS = 8
"""Factors multiplied before a logarithm is taken: each is below 1e17, so that their product is a number."""


@kernel("(f8[::1], f8[::1], f8[::1])")
def across(values: Plane, taps: Plane, out: Plane) -> None:
    """Smooth one row; slices, since an index that might be negative cannot be vectorised."""
    reach, count = len(taps) - 1, len(out)
    middle = values[reach : reach + count]
    for column in range(count):
        out[column] = taps[0] * middle[column]
    k = 1
    while k + 3 <= reach:  # four at a time: a sum stays in its register instead of going to memory and back
        w1, w2, w3, w4 = taps[k], taps[k + 1], taps[k + 2], taps[k + 3]
        l1, r1 = values[reach - k : reach - k + count], values[reach + k : reach + k + count]
        l2, r2 = values[reach - k - 1 : reach - k - 1 + count], values[reach + k + 1 : reach + k + 1 + count]
        l3, r3 = values[reach - k - 2 : reach - k - 2 + count], values[reach + k + 2 : reach + k + 2 + count]
        l4, r4 = values[reach - k - 3 : reach - k - 3 + count], values[reach + k + 3 : reach + k + 3 + count]
        for column in range(count):
            total = out[column]
            total += w1 * (l1[column] + r1[column])
            total += w2 * (l2[column] + r2[column])
            total += w3 * (l3[column] + r3[column])
            total += w4 * (l4[column] + r4[column])
            out[column] = total
        k += 4
    while k <= reach:
        left, right = values[reach - k : reach - k + count], values[reach + k : reach + k + count]
        weight = taps[k]
        for column in range(count):
            out[column] += weight * (left[column] + right[column])
        k += 1


@kernel("(f8[:, ::1], f8[::1], f8[:, ::1])")
def halve(values: Plane, taps: Plane, out: Plane) -> None:
    """Smooth an image and keep every other row and column."""
    reach = len(taps) - 1
    columns = values.shape[1]
    down, smooth = np.empty(columns), np.empty(columns - 2 * reach)
    for row in range(out.shape[0]):
        middle = 2 * row + reach
        for column in range(columns):
            down[column] = taps[0] * values[middle, column]
        for k in range(1, reach + 1):
            weight = taps[k]
            for column in range(columns):
                down[column] += weight * (values[middle - k, column] + values[middle + k, column])
        across(down, taps, smooth)
        for column in range(out.shape[1]):
            out[row, column] = smooth[2 * column]


@kernel("(f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1])")
def moments(values: Plane, taps: Plane, mean: Plane, variance: Plane) -> None:
    """Fill in mean and variance within the window around every pixel where it fits."""
    reach = len(taps) - 1
    rows, columns = mean.shape
    wide = values.shape[1]
    first, second = np.empty(wide), np.empty(wide)
    mean_row, second_row = np.empty(columns), np.empty(columns)
    for row in range(rows):
        middle = row + reach
        for column in range(wide):
            value = values[middle, column]
            first[column] = taps[0] * value
            second[column] = taps[0] * value * value
        for k in range(1, reach + 1):
            weight = taps[k]
            for column in range(wide):
                above, below = values[middle - k, column], values[middle + k, column]
                first[column] += weight * (above + below)
                second[column] += weight * (above * above + below * below)
        across(first, taps, mean_row)
        across(second, taps, second_row)
        for column in range(columns):
            centre = mean_row[column]
            mean[row, column] = centre
            spread = second_row[column] - centre * centre
            variance[row, column] = spread if spread >= LEAST_VARIANCE else 0.0


@kernel("f8(f8[:, ::1], f8)")
def information(variance: Plane, noise: float) -> float:
    """Return the sum of ln(1 + variance / noise): what the eye gets from the reference."""
    total = 0.0
    terms = np.ones(variance.shape[1] // TERMS * TERMS + TERMS)
    for row in range(variance.shape[0]):
        for column in range(variance.shape[1]):
            terms[column] = 1 + variance[row, column] / noise
        for start in range(0, len(terms), TERMS):
            product = 1.0
            for k in range(TERMS):
                product *= terms[start + k]
            total += np.log(product)
    return total


@kernel("(f8[:, ::1], f8[:, ::1], f8[::1], i8, f8[:, ::1], f8[::1], f8[::1], f8[::1])")
def row_moments(
    reference: Plane,
    changed: Plane,
    taps: Plane,
    row: int,
    down: Plane,
    mean_row: Plane,
    second_row: Plane,
    cross_row: Plane,
) -> None:
    """Fill in the windowed means of change, its square, and its product with the reference along one row.

    `down` (3, wide) is room for the sums over the columns of the windows.
    """
    reach, wide = len(taps) - 1, reference.shape[1]
    first, second, cross = down[0], down[1], down[2]
    middle = row + reach
    for column in range(wide):
        value = changed[middle, column]
        first[column] = taps[0] * value
        second[column] = taps[0] * value * value
        cross[column] = taps[0] * value * reference[middle, column]
    for k in range(1, reach + 1):
        weight = taps[k]
        for column in range(wide):
            above, below = changed[middle - k, column], changed[middle + k, column]
            first[column] += weight * (above + below)
            second[column] += weight * (above * above + below * below)
            cross[column] += weight * (
                above * reference[middle - k, column] + below * reference[middle + k, column]
            )
    across(first, taps, mean_row)
    across(second, taps, second_row)
    across(cross, taps, cross_row)


@kernel("f8(f8[:, ::1], f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], f8)")
def preserved_information(
    reference: Plane, changed: Plane, taps: Plane, mean: Plane, variance: Plane, noise: float
) -> float:
    """Return the sum of ln(1 + g^2 variance / (sv^2 + noise)): what the eye still gets from the change.

    Within each window the change is modelled as g times the reference plus noise of variance sv^2.
    """
    rows, columns = mean.shape
    down = np.empty((3, reference.shape[1]))
    mean_row, second_row, cross_row = np.empty(columns), np.empty(columns), np.empty(columns)
    terms = np.ones(columns // TERMS * TERMS + TERMS)
    total = 0.0
    for row in range(rows):
        row_moments(reference, changed, taps, row, down, mean_row, second_row, cross_row)
        for column in range(columns):
            centre = mean_row[column]
            spread = second_row[column] - centre * centre
            shared = cross_row[column] - centre * mean[row, column]
            original = variance[row, column]
            related = original > 0 and spread >= LEAST_VARIANCE and shared > 0
            gain = shared / (original + LEAST_VARIANCE) if related else 0.0
            rest = spread - gain * shared
            rest = max(rest, LEAST_VARIANCE)
            terms[column] = 1 + gain * gain * original / (rest + noise)
        for start in range(0, len(terms), TERMS):
            product = 1.0
            for k in range(TERMS):
                product *= terms[start + k]
            total += np.log(product)
    return total


@kernel("f8(f8[:, ::1], f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], f8, f8)")
def structural_similarity(
    reference: Plane,
    changed: Plane,
    taps: Plane,
    mean: Plane,
    variance: Plane,
    steady_mean: float,
    steady_contrast: float,
) -> float:
    """Return the sum of SSIM over all windows; `mean` and `variance` are those of the reference."""
    rows, columns = mean.shape
    down = np.empty((3, reference.shape[1]))
    mean_row, second_row, cross_row = np.empty(columns), np.empty(columns), np.empty(columns)
    total = 0.0
    for row in range(rows):
        row_moments(reference, changed, taps, row, down, mean_row, second_row, cross_row)
        for column in range(columns):
            centre, other = mean_row[column], mean[row, column]
            spread = second_row[column] - centre * centre
            spread = spread if spread >= LEAST_VARIANCE else 0.0
            shared = cross_row[column] - centre * other
            means = (2 * other * centre + steady_mean) / (other * other + centre * centre + steady_mean)
            rest = (2 * shared + steady_contrast) / (variance[row, column] + spread + steady_contrast)
            total += means * rest
    return total

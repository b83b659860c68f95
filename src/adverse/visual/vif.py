"""VIF: visual information fidelity in the wavelet domain (Sheikh and Bovik 2006), used by Hu et al. 2022.

Natural images are modelled, in each band of a steerable pyramid, as blocks of 3 x 3 coefficients with one
covariance and a local scale (a Gaussian scale mixture); a change as a local gain plus noise. Both are seen
through the noise of the eye. VIF is the information that the changed image still has of the reference, over
that of the reference itself: 1 for an equal image, 0 for an unrelated one, above 1 where contrast grows.

Like its authors' program, it uses the horizontal and the vertical of the six directions at each of four
scales, and estimates gains in windows of 17, 9, 5 and 3 coefficients from the finest scale on. For images of
32 x 32 pixels, which have no four scales, Hu et al. 2022 took two scales: windows of 5 and 3. The values are
others, and so this is a backend of its own, `vif2`.

In the compiled loops, blocks of 3 x 3 coefficients lie side by side from the first one on; a border of `skip`
blocks, whose windows do not fit, is left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel
from adverse.visual import pyramid
from adverse.visual.luminance import Luminance, check_reference, check_sizes, luminance

SIGMA_N_SQ = 0.4
"""Variance of the eye's noise, on coefficients of levels 0..255."""

DIRECTIONS = (0, pyramid.DIRECTIONS // 2)
"""Changes across, and changes down."""

REACHES: dict[int, tuple[int, ...]] = {4: (8, 4, 2, 1), 2: (2, 1)}
"""How far the window around a block's middle goes at each of so many scales, from fine to coarse."""

LEAST_PX = {4: 65, 2: 17}
"""Sides below this leave the coarsest scale without a block inside its border."""

LEAST_SHARE = 1e-10
"""An eigenvalue of the covariance below this share of the largest is rounding: nothing varies that way."""


class _Band(NamedTuple):
    """A band of the reference: coefficients, the scale of every block, the eigenvalues of the covariance."""

    values: Luminance
    energy: Luminance
    eigenvalues: NDArray[np.float64]
    reach: int
    skip: int


class VifReference:
    """All that VIF needs of the reference, made once for any number of changes of it."""

    def __init__(self, values: Luminance, *, sigma_n_sq: float = SIGMA_N_SQ, scales: int = 4) -> None:
        small = "vif2" if scales > min(LEAST_PX) else ""
        check_reference(values, measure=f"VIF at {scales} scales", least_px=LEAST_PX[scales], smaller=small)
        self._values = values
        self._scales = scales
        self._noise = sigma_n_sq
        self._bands = [
            _band(band, reach)
            for bands, reach in zip(pyramid.bands(values, DIRECTIONS, scales), REACHES[scales], strict=True)
            for band in bands
        ]
        self._information = sum(
            information(band.energy, band.eigenvalues, sigma_n_sq) for band in self._bands
        )

    def compare(self, changed: Luminance) -> float:
        """Return VIF of a changed image."""
        check_sizes(self._values, changed)
        bands_of_changed = (
            np.ascontiguousarray(band)
            for bands in pyramid.bands(changed, DIRECTIONS, self._scales)
            for band in bands
        )
        preserved = 0.0
        for band, values in zip(self._bands, bands_of_changed, strict=True):
            preserved += preserved_information(
                band.values, values, band.energy, band.eigenvalues, band.reach, band.skip, self._noise
            )
        return float(preserved / self._information)


def vif(
    reference: NDArray[Any], changed: NDArray[Any], *, sigma_n_sq: float = SIGMA_N_SQ, scales: int = 4
) -> float:
    """Return the visual information fidelity of two uint8 images by wavelets, at 4 scales, or at 2.

    >>> image = np.add.outer(np.arange(80) % 7, np.arange(90) % 5).astype(np.uint8) * 20
    >>> round(vif(image, image), 6), vif(image, image // 2) < 1
    (1.0, True)
    """
    values = luminance(reference, where="reference")
    return VifReference(values, sigma_n_sq=sigma_n_sq, scales=scales).compare(
        luminance(changed, where="changed")
    )


def _band(values: Luminance, reach: int) -> _Band:
    side = SIDE
    skip = -(-reach // side)
    values = np.ascontiguousarray(values)
    rows, columns = (length // side * side for length in values.shape)
    sums, products = np.empty(side**2), np.empty((side**2, side**2))
    block_sums(values, rows, columns, sums, products)
    count = (rows - side + 1) * (columns - side + 1)
    spread, directions = np.linalg.eigh(products / count - np.outer(sums, sums) / count**2)
    varies = spread > max(LEAST_SHARE * spread[-1], LEAST_SUM)
    whitener = (directions[:, varies] / np.sqrt(spread[varies])).T
    energy = np.empty((rows // side - 2 * skip, columns // side - 2 * skip))
    block_energy(values, np.ascontiguousarray(whitener), skip, energy)
    return _Band(values, energy, np.ascontiguousarray(spread[varies]), reach, skip)


Plane = NDArray[np.float64]

SIDE = 3
"""M: coefficients along the side of a block."""

LEAST_SUM = 1e-15
"""A sum of squares below this is taken for none."""


@kernel("(f8[:, ::1], i8, i8, f8[::1], f8[:, ::1])", reorder=True)
def block_sums(band: Plane, rows: int, columns: int, sums: Plane, products: Plane) -> None:
    """Fill in the sums of the 9 coefficients of all blocks, overlapping ones too, and of their products."""
    sums[:], products[:] = 0.0, 0.0
    for row in range(rows - SIDE + 1):
        for i in range(SIDE * SIDE):
            first = band[row + i // SIDE, i % SIDE : i % SIDE + columns - SIDE + 1]
            sums[i] += first.sum()
            for j in range(i + 1):
                other = band[row + j // SIDE, j % SIDE : j % SIDE + columns - SIDE + 1]
                total = 0.0
                for column in range(columns - SIDE + 1):
                    total += first[column] * other[column]
                products[i, j] += total
    for i in range(SIDE * SIDE):
        for j in range(i):
            products[j, i] = products[i, j]


@kernel("(f8[:, ::1], f8[:, ::1], i8, f8[:, ::1])")
def block_energy(band: Plane, whitener: Plane, skip: int, out: Plane) -> None:
    """Fill in the mean square of every block's 9 coefficients after whitening: the field s of the mixture."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            top, left = (row + skip) * SIDE, (column + skip) * SIDE
            total = 0.0
            for direction in range(whitener.shape[0]):
                projected = 0.0
                for place in range(SIDE * SIDE):
                    projected += whitener[direction, place] * band[top + place // SIDE, left + place % SIDE]
                total += projected * projected
            out[row, column] = total / (SIDE * SIDE)


@kernel("f8(f8[:, ::1], f8[::1], f8)")
def information(energy: Plane, eigenvalues: Plane, noise: float) -> float:
    """Return the sum of ln(1 + s lambda / noise) over blocks and directions: what the eye gets."""
    total = 0.0
    for row in range(energy.shape[0]):
        for column in range(energy.shape[1]):
            product = 1.0
            for value in eigenvalues:
                product *= 1 + energy[row, column] * value / noise
            total += np.log(product)
    return total


@kernel("f8(f8[:, ::1], f8[:, ::1], f8[:, ::1], f8[::1], i8, i8, f8)")
def preserved_information(
    reference: Plane, changed: Plane, energy: Plane, eigenvalues: Plane, reach: int, skip: int, noise: float
) -> float:
    """Return the sum of ln(1 + g^2 s lambda / (sv^2 + noise)): what the eye still gets from the changed band.

    Gain g and noise sv^2 are the regression of the changed on the reference band in the window of
    2 reach + 1 coefficients around the middle of each block.
    """
    columns = reference.shape[1]
    count = float((2 * reach + 1) ** 2)
    x, y, xx, yy, xy = (
        np.empty(columns),
        np.empty(columns),
        np.empty(columns),
        np.empty(columns),
        np.empty(columns),
    )
    total = 0.0
    for row in range(energy.shape[0]):
        middle = (row + skip) * SIDE + SIDE // 2
        x[:], y[:], xx[:], yy[:], xy[:] = 0.0, 0.0, 0.0, 0.0, 0.0
        for near in range(middle - reach, middle + reach + 1):
            for column in range(columns):
                a, b = reference[near, column], changed[near, column]
                x[column] += a
                y[column] += b
                xx[column] += a * a
                yy[column] += b * b
                xy[column] += a * b
        for block in range(energy.shape[1]):
            centre = (block + skip) * SIDE + SIDE // 2
            sum_x = sum_y = sum_xx = sum_yy = sum_xy = 0.0
            for column in range(centre - reach, centre + reach + 1):
                sum_x += x[column]
                sum_y += y[column]
                sum_xx += xx[column]
                sum_yy += yy[column]
                sum_xy += xy[column]
            spread_x = sum_xx - sum_x * sum_x / count
            spread_y = sum_yy - sum_y * sum_y / count
            shared = sum_xy - sum_x * sum_y / count
            if spread_x < LEAST_SUM or spread_y < LEAST_SUM or shared <= 0:
                continue
            gain = shared / spread_x
            rest = max((spread_y - gain * shared) / count, 0.0)
            scale = gain * gain * energy[row, block] / (rest + noise)
            product = 1.0
            for value in eigenvalues:
                product *= 1 + scale * value
            total += np.log(product)
    return total

"""Compiled loops of the wavelet-domain visual information fidelity: the channel between two bands.

Blocks of 3 x 3 coefficients lie side by side from the first one on; a border of `skip` blocks, whose windows
do not fit, is left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel

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
            one = band[row + i // SIDE, i % SIDE : i % SIDE + columns - SIDE + 1]
            sums[i] += one.sum()
            for j in range(i + 1):
                other = band[row + j // SIDE, j % SIDE : j % SIDE + columns - SIDE + 1]
                total = 0.0
                for column in range(columns - SIDE + 1):
                    total += one[column] * other[column]
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
def kept_information(
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

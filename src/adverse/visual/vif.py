"""VIF: visual information fidelity in the wavelet domain (Sheikh and Bovik 2006), used by Hu et al. 2022.

Natural images are modelled, in each band of a steerable pyramid, as blocks of 3 x 3 coefficients with one
covariance and a local scale (a Gaussian scale mixture); a change as a local gain plus noise. Both are seen
through the noise of the eye. VIF is the information that the changed image still has of the reference, over
that of the reference itself: 1 for an equal image, 0 for an unrelated one, above 1 where contrast grows.

Like its authors' program, it uses the horizontal and the vertical of the six directions at each of four
scales, and estimates gains in windows of 17, 9, 5 and 3 coefficients from the finest scale on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.visual import pyramid
from adverse.visual import vif_kernels as kernels
from adverse.visual.luminance import Luminance, check_reference, check_sizes, luminance

SIGMA_N_SQ = 0.4
"""Variance of the eye's noise, on coefficients of levels 0..255."""

DIRECTIONS = (0, pyramid.DIRECTIONS // 2)
"""Changes across, and changes down."""

REACHES = (8, 4, 2, 1)
"""How far the window around a block's middle goes, by scale, from fine to coarse."""

LEAST_PX = 65
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

    def __init__(self, values: Luminance, *, sigma_n_sq: float = SIGMA_N_SQ) -> None:
        check_reference(values, measure="VIF", least_px=LEAST_PX)
        self._values = values
        self._noise = sigma_n_sq
        self._bands = [
            _band(band, reach)
            for bands, reach in zip(pyramid.bands(values, DIRECTIONS), REACHES, strict=True)
            for band in bands
        ]
        self._information = sum(
            kernels.information(band.energy, band.eigenvalues, sigma_n_sq) for band in self._bands
        )

    def compare(self, changed: Luminance) -> float:
        """Return VIF of a changed image."""
        check_sizes(self._values, changed)
        found = (np.ascontiguousarray(band) for bands in pyramid.bands(changed, DIRECTIONS) for band in bands)
        kept = 0.0
        for band, values in zip(self._bands, found, strict=True):
            kept += kernels.kept_information(
                band.values, values, band.energy, band.eigenvalues, band.reach, band.skip, self._noise
            )
        return float(kept / self._information)


def vif(reference: NDArray[Any], changed: NDArray[Any], *, sigma_n_sq: float = SIGMA_N_SQ) -> float:
    """Return the visual information fidelity of two uint8 images by wavelets.

    >>> image = np.add.outer(np.arange(80) % 7, np.arange(90) % 5).astype(np.uint8) * 20
    >>> round(vif(image, image), 6), vif(image, image // 2) < 1
    (1.0, True)
    """
    return VifReference(luminance(reference, where="reference"), sigma_n_sq=sigma_n_sq).compare(
        luminance(changed, where="changed")
    )


def _band(values: Luminance, reach: int) -> _Band:
    side = kernels.SIDE
    skip = -(-reach // side)
    values = np.ascontiguousarray(values)
    rows, columns = (length // side * side for length in values.shape)
    sums, products = np.empty(side**2), np.empty((side**2, side**2))
    kernels.block_sums(values, rows, columns, sums, products)
    count = (rows - side + 1) * (columns - side + 1)
    spread, directions = np.linalg.eigh(products / count - np.outer(sums, sums) / count**2)
    known = spread > max(LEAST_SHARE * spread[-1], kernels.LEAST_SUM)
    whitener = (directions[:, known] / np.sqrt(spread[known])).T
    energy = np.empty((rows // side - 2 * skip, columns // side - 2 * skip))
    kernels.block_energy(values, np.ascontiguousarray(whitener), skip, energy)
    return _Band(values, energy, np.ascontiguousarray(spread[known]), reach, skip)

"""Wavelet VIF equals its definition written out with loops, on a pyramid that equals pyrtools' own."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.errors import DataError
from adverse.types import Image
from adverse.visual import pyramid, vif, visual_change
from adverse.visual.luminance import luminance
from adverse.visual.vif import LEAST_PX, VifReference
from visual.photos import blurred, compressed, drawn, needs_photos, noisy, photo

F64 = NDArray[np.float64]


def slow_vif(
    reference: Image, changed: Image, noise: float = 0.4, windows: tuple[int, ...] = (17, 9, 5, 3)
) -> float:
    """The definition, block by block: eigenvalues of the covariance, local scale, regression in a window."""
    kept = whole = 0.0
    scales = len(windows)
    pairs = zip(
        pyramid.bands(luminance(reference), (0, 3), scales),
        pyramid.bands(luminance(changed), (0, 3), scales),
        strict=True,
    )
    for (xs, ys), window in zip(pairs, windows, strict=True):
        for x, y in zip(xs, ys, strict=True):
            rows, columns = x.shape[0] // 3, x.shape[1] // 3
            vectors = [
                x[r : r + 3, c : c + 3].ravel() for r in range(3 * rows - 2) for c in range(3 * columns - 2)
            ]
            mean = np.mean(vectors, axis=0)
            covariance = sum(np.outer(v - mean, v - mean) for v in vectors) / len(vectors)
            inverse, spread = np.linalg.inv(covariance), np.linalg.eigvalsh(covariance)
            half = window // 2
            skip = math.ceil(half / 3)
            for row in range(skip, rows - skip):
                for column in range(skip, columns - skip):
                    block = x[3 * row : 3 * row + 3, 3 * column : 3 * column + 3].ravel()
                    scale = block @ inverse @ block / 9
                    around = (
                        slice(3 * row + 1 - half, 3 * row + 2 + half),
                        slice(3 * column + 1 - half, 3 * column + 2 + half),
                    )
                    a, b = x[around].ravel(), y[around].ravel()
                    shared = np.mean((a - a.mean()) * (b - b.mean()))
                    gain = max(shared / a.var(), 0.0)
                    rest = b.var() - gain * shared
                    kept += np.log2(1 + gain**2 * scale * spread / (rest + noise)).sum()
                    whole += np.log2(1 + scale * spread / noise).sum()
    return float(kept / whole)


def slow_correlation(image: F64, kernel: F64) -> F64:
    reach = len(kernel) // 2
    out = np.zeros_like(image)
    periods = [2 * (side - 1) for side in image.shape]
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            for i in range(-reach, reach + 1):
                for j in range(-reach, reach + 1):
                    r, c = (row + i) % periods[0], (column + j) % periods[1]
                    r, c = min(r, periods[0] - r), min(c, periods[1] - c)
                    out[row, column] += kernel[i + reach, j + reach] * image[r, c]
    return out


@pytest.mark.parametrize(
    "changed",
    [
        blurred(drawn(72, 81), 1.2),
        noisy(drawn(72, 81), 9),
        compressed(drawn(72, 81), 20),
        255 - drawn(72, 81),
        drawn(72, 81) // 3,
    ],
)
def test_it_equals_the_definition(changed: Image) -> None:
    assert vif(drawn(72, 81), changed) == pytest.approx(slow_vif(drawn(72, 81), changed), abs=1e-9)


def test_the_pyramid_is_correlation_with_mirrored_ends() -> None:
    image = luminance(drawn(20, 23))
    kernels = pyramid.sp5()
    low = slow_correlation(image, kernels.first)
    fine, coarse = list(pyramid.bands(image, range(6)))[:2]
    for k in range(6):
        np.testing.assert_allclose(fine[k], slow_correlation(low, kernels.directions[k]), atol=1e-9)
    low = slow_correlation(low, kernels.next)[::2, ::2]
    np.testing.assert_allclose(coarse[3], slow_correlation(low, kernels.directions[3]), atol=1e-9)


def test_the_pyramid_is_that_of_pyrtools() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it loads a plotting library
        from pyrtools.pyramids import SteerablePyramidSpace  # noqa: PLC0415

        wanted = SteerablePyramidSpace(
            luminance(drawn(96, 120)), height=4, order=5, edge_type="reflect1"
        ).pyr_coeffs
    for scale, bands in enumerate(pyramid.bands(luminance(drawn(96, 120)), range(6))):
        for k, band in enumerate(bands):
            inside = (slice(3, -3), slice(3, -3))  # it treats the kernels themselves at the ends
            np.testing.assert_allclose(band[inside], wanted[scale, k][inside], atol=1e-6)


@needs_photos
def test_it_is_what_a_public_port_of_the_authors_program_said_of_a_photo() -> None:
    """Run once beside it; the two differed by 1e-14 over 28 changes of 4 photos."""
    image = photo(8, side=0)
    assert vif(image, blurred(image, 2)) == pytest.approx(0.2437, abs=1e-4)
    assert vif(image, image // 2) == pytest.approx(0.6581, abs=1e-4)


def test_identity_is_one_and_more_contrast_above() -> None:
    image = drawn() // 2 + 40
    assert vif(image, image) == pytest.approx(1, abs=1e-9)
    assert vif(image, np.clip((image.astype(float) - 90) * 1.3 + 90, 0, 255).astype(np.uint8)) > 1


def test_a_kept_reference_gives_the_same() -> None:
    kept = VifReference(luminance(drawn()))
    for sigma in (1.0, 2.0):
        assert kept.compare(luminance(blurred(drawn(), sigma))) == vif(drawn(), blurred(drawn(), sigma))


def test_an_image_that_varies_one_way_only_has_bands_without_information() -> None:
    stripes = np.tile(drawn(1, 120)[:, :, 0], (96, 1))
    assert vif(stripes, stripes) == pytest.approx(1, abs=1e-6)
    assert 0 < vif(stripes, blurred(stripes, 1)) < 1


def test_what_cannot_be_compared_is_refused() -> None:
    assert vif(drawn(LEAST_PX[4], 80), drawn(LEAST_PX[4], 80)) == pytest.approx(1)
    with pytest.raises(DataError, match="too small for the scales of VIF"):
        vif(drawn(LEAST_PX[4] - 1, 80), drawn(LEAST_PX[4] - 1, 80))
    with pytest.raises(DataError, match="constant"):
        vif(np.full((96, 96), 3, np.uint8), drawn(96, 96))


@pytest.mark.parametrize("shape", [(32, 32), (45, 38)])
def test_two_scales_are_for_small_images(shape: tuple[int, int]) -> None:
    image = drawn(*shape)
    for changed in (blurred(image, 0.8), noisy(image, 9), image // 2):
        assert vif(image, changed, scales=2) == pytest.approx(
            slow_vif(image, changed, windows=(5, 3)), rel=1e-6
        )
        assert visual_change(image, changed, backend="vif2") == pytest.approx(
            1 - vif(image, changed, scales=2)
        )
    assert visual_change(image, image, backend="vif2") == 0
    with pytest.raises(DataError, match=r"VIF at 4 scales \(backend vif2 is for small ones") as refused:
        visual_change(image, image, backend="vif")
    assert "visual_change: vif2), with a threshold by vif2; the published" in str(refused.value)
    with pytest.raises(DataError, match="enlarge both"):
        vif(image[:16], image[:16], scales=2)
    large = drawn(72, 81)
    assert vif(large, noisy(large, 9), scales=2) != pytest.approx(vif(large, noisy(large, 9)), abs=0.01)

"""VIFp equals sewar's, and its definition written out with explicit loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sewar.full_ref import vifp as sewar_vifp

from adverse.errors import DataError
from adverse.types import Image
from adverse.visual import vifp
from adverse.visual.luminance import luminance
from adverse.visual.vifp import LEAST_PX, VifpReference
from visual.photos import blurred, compressed, drawn, needs_photos, noisy, photo


def witness(reference: Image, changed: Image, sigma_n_sq: float) -> float:
    return float(sewar_vifp(luminance(reference), luminance(changed), sigma_nsq=sigma_n_sq))


def window_loops(reference: NDArray[Any], changed: NDArray[Any], noise: float) -> float:
    """The definition, window by window, in plain Python."""
    kept = whole = 0.0
    x, y = reference, changed
    for number, side in enumerate((17, 9, 5, 3)):
        line = [math.exp(-0.5 * ((k - side // 2) / (side / 5)) ** 2) for k in range(side)]
        weights = np.outer(line, line)
        weights /= weights.sum()
        if number:
            x, y = (_smaller(image, weights) for image in (x, y))
        for row in range(x.shape[0] - side + 1):
            for column in range(x.shape[1] - side + 1):
                a = x[row : row + side, column : column + side]
                b = y[row : row + side, column : column + side]
                mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
                var_a = (weights * (a - mean_a) ** 2).sum()
                var_b = (weights * (b - mean_b) ** 2).sum()
                shared = (weights * (a - mean_a) * (b - mean_b)).sum()
                gain = max(shared / var_a, 0.0) if var_a > 1e-10 else 0.0
                rest = var_b - gain * shared
                kept += math.log(1 + gain**2 * var_a / (rest + noise))
                whole += math.log(1 + var_a / noise)
    return kept / whole


def _smaller(image: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    side = len(weights)
    rows, columns = image.shape[0] - side + 1, image.shape[1] - side + 1
    out = [
        [(weights * image[r : r + side, c : c + side]).sum() for c in range(0, columns, 2)]
        for r in range(0, rows, 2)
    ]
    return np.array(out)


@pytest.mark.parametrize("sigma_n_sq", [0.4, 2.0])
@pytest.mark.parametrize(
    "changed",
    [blurred(drawn(), 1.2), noisy(drawn(), 9), compressed(drawn(), 20), 255 - drawn(), drawn() // 3],
)
def test_it_equals_sewar(changed: Image, sigma_n_sq: float) -> None:
    ours = vifp(drawn(), changed, sigma_n_sq=sigma_n_sq)
    assert ours == pytest.approx(witness(drawn(), changed, sigma_n_sq), abs=1e-9)


@needs_photos
@pytest.mark.parametrize("number", [0, 5])
def test_it_equals_sewar_on_photos(number: int) -> None:
    image = photo(number)
    flat = image.copy()
    flat[:100, :] = 255  # an overexposed sky: variance that is only rounding
    for reference, changed in (
        (image, blurred(image, 2)),
        (flat, noisy(flat, 3)),
        (flat, compressed(flat, 5)),
    ):
        assert vifp(reference, changed) == pytest.approx(witness(reference, changed, 0.4), abs=1e-6)


def test_it_equals_the_definition_in_loops() -> None:
    reference, changed = drawn(43, 52), noisy(blurred(drawn(43, 52), 0.8), 4)
    wanted = window_loops(luminance(reference), luminance(changed), 0.4)
    assert vifp(reference, changed) == pytest.approx(wanted, abs=1e-9)


@given(st.integers(LEAST_PX, 70), st.integers(LEAST_PX, 70), st.integers(0, 2**32 - 1))
def test_identity_is_one_and_an_inverse_keeps_little(rows: int, columns: int, seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (rows, columns), np.uint8)
    assert vifp(image, image) == pytest.approx(1, abs=1e-6)
    assert 0 <= vifp(image, 255 - image) < 1e-9


def test_more_contrast_is_above_one() -> None:
    image = drawn() // 2 + 40
    assert vifp(image, np.clip((image.astype(float) - 90) * 1.3 + 90, 0, 255).astype(np.uint8)) > 1


def test_a_kept_reference_gives_the_same() -> None:
    kept = VifpReference(luminance(drawn()))
    for sigma in (1.0, 2.0):
        assert kept.compare(luminance(blurred(drawn(), sigma))) == vifp(drawn(), blurred(drawn(), sigma))


@pytest.mark.parametrize(
    ("reference", "changed", "reason"),
    [
        (np.full((64, 64), 7, np.uint8), np.zeros((64, 64), np.uint8), "constant"),
        (drawn(40, 90), drawn(40, 90), "too small"),
        (drawn(64, 64), drawn(64, 65), "different sizes"),
        (drawn(64, 64).astype(np.float32), drawn(64, 64), "uint8"),
    ],
)
def test_what_cannot_be_compared_is_refused(reference: Any, changed: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        vifp(reference, changed)


def test_the_least_size_is_the_least() -> None:
    assert vifp(drawn(LEAST_PX, 80), drawn(LEAST_PX, 80)) == pytest.approx(1)

"""The rule of visual change, and its laws on real photos."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sewar.full_ref import ssim as sewar_ssim
from sewar.utils import Filter

from adverse.errors import DataError, StudyError
from adverse.types import Image
from adverse.visual import BACKENDS, Backend, Reference, ssim, vifp, visual_change, vsnr
from adverse.visual.luminance import luminance
from visual.photos import blurred, compressed, drawn, needs_photos, noisy, photo

backends = pytest.mark.parametrize("backend", BACKENDS)


def gained(image: Image, gain: float) -> Image:
    """Contrast about the mean, without saturating."""
    values = image.astype(np.float64)
    out: Image = np.rint((values - values.mean()) * gain + values.mean()).astype(np.uint8)
    return out


@backends
def test_no_change_and_an_invisible_one_are_zero(backend: Backend) -> None:
    image = drawn()
    faint = image.copy()
    faint[::9, ::9] ^= 1
    assert visual_change(image, image, backend=backend) == 0
    assert visual_change(image, faint, backend=backend) == 0
    assert vifp(image, faint) < 1  # it is the eye that does not see it


@backends
def test_more_contrast_is_no_loss(backend: Backend) -> None:
    image = gained(drawn(), 0.5)
    better = gained(image, 1.4)
    assert np.isfinite(vsnr(image, better))
    assert visual_change(image, better, backend=backend) == 0
    assert visual_change(better, image, backend=backend) > 0.1


def test_otherwise_it_is_what_is_lost() -> None:
    changed = blurred(drawn(), 1)
    assert visual_change(drawn(), changed, backend="vifp") == 1 - vifp(drawn(), changed)


@needs_photos
@backends
@pytest.mark.parametrize("number", [0, 3, 8, 21])
def test_it_grows_with_blur_noise_and_compression(backend: Backend, number: int) -> None:
    image = photo(number)
    reference = Reference(image, backend=backend)
    for series in (
        [blurred(image, sigma) for sigma in (0.3, 0.5, 0.8, 1.2, 2, 3, 5, 8)],
        [noisy(image, sigma) for sigma in (0.2, 1, 2, 4, 8, 16, 32, 64)],
        [compressed(image, quality) for quality in (90, 75, 60, 45, 30, 20, 10, 5)],
    ):
        values = [reference.visual_change(changed) for changed in series]
        assert all(low <= high for low, high in itertools.pairwise(values)), values
        assert 0 <= values[0] < 0.45 < values[-1] <= 1


@needs_photos
def test_noise_below_sight_on_a_photo_is_no_change() -> None:
    image = photo(0)
    changed = noisy(image, 0.25)
    assert (changed != image).mean() > 0.02
    assert visual_change(image, changed) == 0


def test_the_record_has_everything() -> None:
    image, changed = drawn(), noisy(drawn(), 6)
    record = Reference(image, backend="vifp").measure(changed)
    assert record.dv == visual_change(image, changed, backend="vifp")
    assert record.backend == "vifp"
    assert record.vif == vifp(image, changed)
    assert record.vsnr_db == vsnr(image, changed)
    assert record.mse == pytest.approx(np.mean((luminance(image) - luminance(changed)) ** 2))
    assert record.ssim == ssim(image, changed)


@pytest.mark.parametrize("changed", [blurred(drawn(), 1), noisy(drawn(), 9), 255 - drawn(), drawn()])
def test_ssim_equals_sewars(changed: Image) -> None:
    wanted = sewar_ssim(
        luminance(drawn()),
        luminance(changed),
        MAX=255,
        fltr_specs={"fltr": Filter.GAUSSIAN, "sigma": 1.5, "ws": 11},
    )
    assert ssim(drawn(), changed) == pytest.approx(wanted[0], abs=1e-9)


def test_gray_and_colour_say_the_same_of_gray() -> None:
    gray = drawn()[:, :, 1]
    colour = np.repeat(gray[:, :, None], 3, axis=2)
    for reference, changed in ((gray, blurred(gray, 1)), (gray[:, :, None], blurred(gray, 1)[:, :, None])):
        assert visual_change(reference, changed) == pytest.approx(
            visual_change(colour, blurred(colour, 1)), abs=1e-9
        )


@backends
@pytest.mark.parametrize(
    ("reference", "changed", "reason"),
    [
        (np.full((96, 96, 3), 7, np.uint8), drawn(96, 96), "constant"),
        (drawn(30, 96), drawn(30, 96), "too small"),
        (drawn(96, 96), drawn(96, 97), "different sizes"),
        (drawn(96, 96)[:, :, :2], drawn(96, 96), "uint8"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    reference: Any, changed: Any, reason: str, backend: Backend
) -> None:
    with pytest.raises(DataError, match=reason):
        visual_change(reference, changed, backend=backend)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(StudyError, match="Did you mean 'vifp'"):
        visual_change(drawn(), drawn(), backend="vifpp")  # type: ignore[arg-type]

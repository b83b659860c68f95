"""Steady motion blur: the mean of shifted images."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from adverse.mutations import motion_blur
from pictures import gap, photo


@pytest.mark.parametrize(("length_px", "angle_deg"), [(0.4, 0), (3, 90), (7.5, 30), (12, -60), (5, 180)])
def test_it_is_the_mean_of_all_shifts(length_px: float, angle_deg: float) -> None:
    image = photo(40, 50)
    angle = np.radians(angle_deg)
    shifts = (np.arange(400) + 0.5) / 400 * length_px - length_px / 2
    total = np.zeros(image.shape)
    for shift in shifts:
        by = (shift * np.sin(angle), shift * np.cos(angle), 0)
        total += ndimage.shift(image.astype(np.float64), by, order=1, mode="nearest")
    assert gap(motion_blur(image, length_px=length_px, angle_deg=angle_deg), total / len(shifts)) <= 0.52


def test_gray_stays_gray_and_light_is_kept() -> None:
    image = photo(30, 31, channels=1)
    blurred = motion_blur(image, length_px=6, angle_deg=20)
    assert blurred.shape == image.shape
    flat = np.full((9, 9), 201, np.uint8)
    assert (motion_blur(flat, length_px=50, angle_deg=77) == 201).all()

"""Levels and light: the published curve, and every level comes back as itself."""

from __future__ import annotations

import numpy as np

from adverse.mutations import linear_light
from adverse.mutations.linear_light import CODED, LIGHT, STEPS


def test_the_curve_has_the_published_values() -> None:
    """IEC 61966-2-1: linear below 0.04045, a power of 2.4 above; level 188 is half the light of white."""
    np.testing.assert_allclose(linear_light.light_of([10, 188, 255]), [0.0030353, 0.5028865, 1.0], rtol=1e-5)


def test_every_level_comes_back() -> None:
    levels = np.arange(256)
    np.testing.assert_allclose(linear_light.levels_of(linear_light.light_of(levels)), levels, atol=1e-5)
    assert np.array_equal(CODED[(LIGHT * STEPS + 0.5).astype(np.int64)], levels)


def test_the_table_is_the_curve() -> None:
    light = np.random.default_rng(0).random(100_000)
    looked_up = CODED[(light * STEPS + 0.5).astype(np.int64)]
    assert np.abs(looked_up - linear_light.levels_of(light)).max() < 0.61

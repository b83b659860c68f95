"""Edge-aware refinement: against dense linear systems, and laws that both ways keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse.depth.bilateral_solver import bilateral_solver
from adverse.depth.smoothing import ATTENUATION, ITERATIONS, fast_global_smoother
from adverse.depth.stereo import refined
from adverse.types import Image

Floats = NDArray[np.float32]
Refine = Callable[[Floats, Floats, Image], Floats]
SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int, shape: tuple[int, int] = (9, 12)) -> tuple[Floats, Floats, Image]:
    rng = np.random.default_rng(seed)
    values = rng.uniform(1, 40, shape).astype(np.float32)
    confidence = rng.uniform(0.05, 1, shape).astype(np.float32)
    guide = rng.integers(0, 4, (*shape, 3)).astype(np.uint8) * 7
    return values, confidence, guide


@given(SEEDS)
@settings(max_examples=15)
def test_the_smoother_solves_its_systems(seed: int) -> None:
    values, confidence, guide = drawn(seed)
    data, weight = (values * confidence).astype(float), confidence.astype(float)
    for turn in range(ITERATIONS):
        strength = 50 * 1.5 * ATTENUATION ** (ITERATIONS - 1 - turn) / (ATTENUATION**ITERATIONS - 1)
        for axis in (1, 0):
            pixels = np.moveaxis(guide.astype(int), axis, 0)
            for line in range(pixels.shape[1]):
                step = np.abs(np.diff(pixels[:, line], axis=0)).max(axis=1)
                alike = strength * np.exp(-step / 9.0)
                system = np.eye(len(step) + 1)
                for at, tie in enumerate(alike):
                    system[at : at + 2, at : at + 2] += tie * np.array([[1, -1], [-1, 1]])
                for plane in (data, weight):
                    row = np.moveaxis(plane, axis, 0)
                    row[:, line] = np.linalg.solve(system, row[:, line])
    made = fast_global_smoother(values, confidence, guide)
    assert np.allclose(made.values, data / weight, rtol=1e-4)
    assert np.allclose(made.support, weight, rtol=1e-4)


@pytest.mark.parametrize("refine", [lambda *a: fast_global_smoother(*a).values, bilateral_solver])
@given(SEEDS)
@settings(max_examples=10)
def test_nothing_leaves_the_range_of_what_is_known_and_a_constant_stays(refine: Refine, seed: int) -> None:
    values, confidence, guide = drawn(seed, (24, 30))
    made = refine(values, confidence, guide)
    assert values.min() - 0.5 <= made.min() <= made.max() <= values.max() + 0.5
    assert np.allclose(refine(np.full_like(values, 7), confidence, guide), 7, rtol=1e-3)


def test_nothing_passes_a_cut() -> None:
    values = np.repeat(np.array([[1, 1, 1, 9, 9, 9]], np.float32), 6, axis=0)
    cut = values > 5
    plain = np.zeros((6, 6, 3), np.uint8)
    sure = np.ones((6, 6), np.float32)
    assert np.allclose(fast_global_smoother(values, sure, plain, cut=cut).values, values, atol=1e-4)
    assert not np.allclose(fast_global_smoother(values, sure, plain).values, values, atol=1)


def test_a_measured_step_between_surfaces_that_look_alike_stays_a_step() -> None:
    disparity = np.repeat(np.where(np.arange(60) < 30, 10, 60)[None], 20, axis=0).astype(np.float32)
    measured, plain = np.ones((20, 60), np.bool_), np.zeros((20, 60, 3), np.uint8)
    made, _ = refined(disparity, measured, plain, ~measured, "smoother")
    off = np.flatnonzero((np.abs(made - disparity) > 1.01).any(axis=0))
    assert 26 <= off.min() <= off.max() <= 33  # nothing in the image shows where it is

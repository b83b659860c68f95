"""The parts of the HOG detector's training that can be wrong without anybody noticing."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest

from adverse.suts.hog_views import BINS, cell_features, colour_table

TRAINING = Path(__file__).parents[2] / "training"


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TRAINING))
    return importlib.import_module(name)


def test_the_mirrored_window_has_the_features_of_the_mirrored_image(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = module("hog_windows", monkeypatch)
    shape = windows.SHAPES[0]
    wide, high = shape.cells
    rng = np.random.default_rng(3)
    image = cv2.GaussianBlur(rng.integers(0, 256, (high * 4, wide * 4, 3), np.uint8), (0, 0), 1.5)
    table = colour_table(np.array([[20, 20, 20], [200, 40, 40], [60, 160, 70]], np.float32))
    seen, turned = (
        cell_features(np.ascontiguousarray(one, np.uint8), table).reshape(-1)
        for one in (image, image[:, ::-1])
    )
    mirror = windows.mirror(shape, len(seen))
    # OpenCV weights the pixels of a block around a point half a pixel off its middle, so nearly
    assert np.abs(turned - seen[mirror]).max() < 0.1
    edges = np.arange(len(seen)) % (len(seen) // (wide * high)) < BINS
    assert np.abs(turned - seen[mirror])[edges].mean() < 0.2 * np.abs(turned - seen)[edges].mean()
    np.testing.assert_array_equal(turned[mirror][~edges].round(6) > 0, seen[~edges].round(6) > 0)
    np.testing.assert_array_equal(mirror[mirror], np.arange(len(seen)))


def test_windows_spread_evenly_in_the_coordinates_of_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = module("hog_fit", monkeypatch)
    monkeypatch.setattr(fit, "NUGGET", 0.0)
    rng = np.random.default_rng(4)
    values = (rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6)) + 2).astype(np.float16)
    spread = fit.background(values)
    even = (values.astype(np.float64) - spread.mean) @ spread.even
    np.testing.assert_allclose(even.T @ even / len(even), np.eye(6), atol=0.02)


def test_strongly_held_the_svm_is_the_linear_discriminant(monkeypatch: pytest.MonkeyPatch) -> None:
    # every window is then inside the margin, so the loss is that of least squares on means and background
    fit = module("hog_fit", monkeypatch)
    monkeypatch.setattr(fit, "SHRINK", 1e4)
    monkeypatch.setattr(fit, "NUGGET", 0.0)
    rng = np.random.default_rng(5)
    mix = rng.normal(size=(5, 5))
    others, people = (
        (rng.normal(size=(3000, 5)) @ mix + middle).astype(np.float16) for middle in (0, [1, 0, 0, 0.5, 0])
    )
    weights = fit.svm(people, others, fit.background(others))[:-1]
    plain, seen = others.astype(np.float64), people.astype(np.float64)
    wanted = np.linalg.solve(np.cov(plain.T), seen.mean(axis=0) - plain.mean(axis=0))
    cosine = weights @ wanted / np.linalg.norm(weights) / np.linalg.norm(wanted)
    assert cosine > 0.999

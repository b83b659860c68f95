"""Adverse conditions to train under: blur, defocus, haze by depth, noise, a lost channel, spots on the lens.

Plain and quick versions of what the mutations do, with strengths drawn anew for every picture. Mild ones are
a little blur, haze and noise, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SECOND = 0.2
"""Share of the pictures that suffer from two conditions."""
HAZY = 0.22
"""Share of the conditions that are haze."""


def spoilt(
    image: Floats, depth_m: Floats, rng: np.random.Generator, strength: Literal["mild", "any"]
) -> Floats:
    """Return an image (H, W, 3) in 0..1 under one drawn condition, at times under two if not mild."""
    if strength == "mild":
        kind = int(rng.integers(3))
        if kind == 0:
            return _hazy(image, depth_m, rng, least_m=80)
        return np.clip(_blurred(image, rng, most=1.5) if kind == 1 else _noisy(image, rng, most=0.05), 0, 1)
    for _ in range(1 + int(rng.random() < SECOND)):
        if rng.random() < HAZY:
            image = _hazy(image, depth_m, rng)
        else:
            image = CONDITIONS[int(rng.integers(len(CONDITIONS)))](image, rng)
    return np.clip(image, 0, 1)


def _blurred(image: Floats, rng: np.random.Generator, most: float = 3.2) -> Floats:
    return cv2.GaussianBlur(image, (0, 0), rng.uniform(0.6, most))


def _defocused(image: Floats, rng: np.random.Generator) -> Floats:
    radius = rng.uniform(1.0, 4.5)
    reach = int(np.ceil(radius))
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    disc = np.clip(radius + 0.5 - np.hypot(x, y), 0, 1)
    return cv2.filter2D(image, -1, disc / disc.sum())


def _hazy(image: Floats, depth_m: Floats, rng: np.random.Generator, least_m: float = 20) -> Floats:
    visibility_m = np.exp(rng.uniform(np.log(least_m), np.log(200)))
    clear = np.exp(-3.0 / visibility_m * depth_m)[..., None]
    air = rng.uniform(0.65, 0.95) * rng.uniform(0.95, 1.05, 3)
    return (image * clear + air * (1 - clear)).astype(np.float32)


def _noisy(image: Floats, rng: np.random.Generator, most: float = 0.12) -> Floats:
    return image + rng.normal(0, rng.uniform(0.02, most), image.shape).astype(np.float32)


def _speckled(image: Floats, rng: np.random.Generator) -> Floats:
    chance = rng.random(image.shape[:2])[..., None]
    share = rng.uniform(0.004, 0.05) / 2
    return np.where(chance < share, 0, np.where(chance > 1 - share, 1, image)).astype(np.float32)


def _dark(image: Floats, rng: np.random.Generator) -> Floats:
    """Return the picture of few photons, amplified to some brightness; pixels are roots of light."""
    photons, light = np.exp(rng.uniform(np.log(6), np.log(200))), image**2
    noise = rng.standard_normal(image.shape, np.float32) * np.sqrt((light + 0.02) / photons)
    return np.sqrt(np.clip((light + noise) * rng.uniform(0.25, 1.0), 0, 1)).astype(np.float32)


def _without_channel(image: Floats, rng: np.random.Generator) -> Floats:
    kept = np.ones(3, np.float32)
    kept[int(rng.choice(3, p=(0.25, 0.5, 0.25)))] = 0
    return image * kept


def _spotted(image: Floats, rng: np.random.Generator) -> Floats:
    mask = np.zeros(image.shape[:2], np.float32)
    for _ in range(int(rng.integers(3, 12))):
        x, y = int(rng.uniform(0, image.shape[1])), int(rng.uniform(0, image.shape[0]))
        axes = int(rng.uniform(2, 14)), int(rng.uniform(2, 14))
        cv2.ellipse(mask, (x, y), axes, rng.uniform(0, 180), 0, 360, rng.uniform(0.7, 1.0), -1)
    mask = cv2.GaussianBlur(mask, (0, 0), rng.uniform(1.0, 3.0))[..., None]
    mud = np.array([0.35, 0.28, 0.2], np.float32) * rng.uniform(0.4, 1.3)
    return (image * (1 - mask) + mud * mask).astype(np.float32)


CONDITIONS: tuple[Callable[[Floats, np.random.Generator], Floats], ...] = (
    _blurred,
    _defocused,
    _noisy,
    _speckled,
    _dark,
    _without_channel,
    _spotted,
)

"""The eight transformations of the reliability requirements (Hu et al. 2022): `t.frost(strength=0.3)`.

Strength 0 changes nothing and 1 is far beyond what people tolerate, so that any wanted visual change in
between can be searched for. The paper takes the eight from albumentations and from ImageNet-C and does not
print its ranges; the ranges here are ours, stated at the top. Where a direction is random (which channel
shifts which way), it is drawn before the strength is applied: for one frame, more strength goes further the
same way.
"""

from __future__ import annotations

import math
from typing import Annotated

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.mutations import blur, digital, light, noise, pixels
from adverse.mutations import weather as ice
from adverse.mutations.hazards import (
    COLOURED_LIGHT,
    COMPRESSED,
    ICE_ON_LENS,
    LOW_CONTRAST,
    OUT_OF_FOCUS,
    SENSOR_NOISE,
    TOO_BRIGHT,
)
from adverse.mutations.pixels import LUMA, affine
from adverse.plugins import Fraction, mutation, unchanged_at
from adverse.types import Image

Strength = Annotated[Fraction, unchanged_at(0)]

RGB_SHIFT_LEVELS = 255.0
"""Shift of the channel that shifts most, at strength 1."""

DEFOCUS_RADIUS_PX = 20.0
ALIAS_SIGMA_PX = 0.5
"""Disc at strength 1, and the smoothing of its rim."""

FROST_KEPT = 0.4
"""Weight of the image at strength 1; the ice then has weight 1."""

JITTER_FACTOR = 0.8
JITTER_HUE_TURN = 0.25
"""Largest change of brightness, contrast and saturation, and of hue in turns, at strength 1."""

JPEG_BEST, JPEG_WORST = 95, 1
"""Quality just above strength 0, and at strength 1."""

NOISE_SIGMA = 1.0
"""Standard deviation at strength 1, of full scale."""


@mutation(name="t.rgb_shift", hazards=(COLOURED_LIGHT,), stereo="shared")
def rgb_shift(image: Image, *, strength: Strength, rng: np.random.Generator) -> Image:
    """Add a constant to every channel, in a random direction of RGB."""
    source = pixels.pixels(image)
    direction = rng.uniform(-1, 1, 3)
    direction /= np.abs(direction).max()
    if source.shape[2] == 1:
        direction = np.sign(direction[:1])
    return affine(image, np.eye(source.shape[2]), direction * strength * RGB_SHIFT_LEVELS)


@mutation(name="t.contrast", hazards=(LOW_CONTRAST,))
def contrast(image: Image, *, strength: Strength) -> Image:
    """Move every channel towards its mean; at strength 1 nothing else is left."""
    return light.reduce_contrast(image, 1 - strength, offset=pixels.ROUND)


@mutation(name="t.defocus_blur", hazards=(OUT_OF_FOCUS,))
def defocus_blur(image: Image, *, strength: Strength) -> Image:
    """Blur with a disc, the same at all depths; between whole radii, mix the two next to them."""
    radius = strength * DEFOCUS_RADIUS_PX
    smaller = blur.disc_blur(image, radius_px=math.floor(radius), alias_sigma_px=ALIAS_SIGMA_PX)
    share = radius - math.floor(radius)
    if share == 0:
        return smaller
    larger = blur.disc_blur(image, radius_px=math.ceil(radius), alias_sigma_px=ALIAS_SIGMA_PX)
    mixed = cv2.addWeighted(smaller, 1 - share, larger, share, 0)
    return mixed.astype(np.uint8, copy=False).reshape(image.shape)


@mutation(name="t.brightness", hazards=(TOO_BRIGHT,))
def brightness(image: Image, *, strength: Strength) -> Image:
    """Raise the value of HSV; at strength 1 everything is as bright as can be."""
    return light.raise_value(image, strength)


@mutation(name="t.frost", hazards=(ICE_ON_LENS,))
def frost(image: Image, *, strength: Strength, rng: np.random.Generator) -> Image:
    """Cover the lens with ice."""
    texture = ice.texture(int(rng.integers(len(ice.LOOKS))))
    share = 1 - (1 - FROST_KEPT) * strength
    return ice.frost(image, texture=texture, weight=share, frost_weight=strength, rng=rng)


@mutation(name="t.color_jitter", hazards=(COLOURED_LIGHT,), stereo="shared")
def color_jitter(image: Image, *, strength: Strength, rng: np.random.Generator) -> Image:
    """Change brightness, contrast, saturation and hue together, each in a random direction."""
    source = pixels.pixels(image)
    amount = rng.uniform(-1, 1, 4) * strength
    bright, steep, vivid = 1 + JITTER_FACTOR * amount[:3]
    mean = np.array(cv2.mean(source)[: source.shape[2]])
    if source.shape[2] == 1:
        matrix = np.eye(1) * bright * steep
    else:
        gray = np.ones((3, 1)) * LUMA
        matrix = _hue(2 * math.pi * JITTER_HUE_TURN * amount[3]) @ (vivid * np.eye(3) + (1 - vivid) * gray)
        matrix = matrix * bright * steep
    middle = float(mean @ LUMA) if source.shape[2] == 3 else float(mean[0])
    return affine(image, matrix, np.full(source.shape[2], bright * (1 - steep) * middle))


@mutation(name="t.jpeg", hazards=(COMPRESSED,))
def jpeg(image: Image, *, strength: Strength) -> Image:
    """Compress as JPEG, the quality falling from 95 to 1; strength 0 does not compress at all."""
    if strength == 0:
        return image.copy()
    return digital.jpeg(image, quality=round(JPEG_BEST + (JPEG_WORST - JPEG_BEST) * strength))


@mutation(name="t.gaussian_noise", hazards=(SENSOR_NOISE,))
def gaussian_noise(image: Image, *, strength: Strength, rng: np.random.Generator) -> Image:
    """Add normal noise; more strength amplifies the same noise."""
    return noise.gaussian(image, 255 * NOISE_SIGMA * strength, pixels.ROUND, rng)


def _hue(angle: float) -> NDArray[np.float64]:
    """Return the rotation of RGB about the gray axis (Rodrigues)."""
    across = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)
    turned: NDArray[np.float64] = (
        math.cos(angle) * np.eye(3)
        + math.sin(angle) * across
        + (1 - math.cos(angle)) * np.full((3, 3), 1 / 3)
    )
    return turned

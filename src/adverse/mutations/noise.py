"""Noise of sensors and transmission.

Every value is drawn from a distribution that depends on its level alone, so the compiled loops take a table
per level: the scale of a normal distribution, or the chances of all 256 outcomes.
"""

from __future__ import annotations

import functools
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adverse.marks import Hazard, Strength
from adverse.mutations import pixel_kernels, pixels
from adverse.mutations.hazards import SENSOR_NOISE
from adverse.mutations.pixels import LEVELS, ROUND
from adverse.plugins import Fraction, NonNegative, mutation, unchanged_at
from adverse.types import Image


@mutation(
    hazards=(Hazard("observer", "pixels", "no", "pixels are dead, or stuck"),),
    strength=Strength("fraction", 0, 1, power=2),
)
def salt_pepper(
    image: Image, *, fraction: Annotated[Fraction, unchanged_at(0)], rng: np.random.Generator
) -> Image:
    """Set a share of the PIXELS, all channels together, to black or white (Pezzementi et al. 2018, III-A.5).

    The number of pixels is exact: `round(fraction * rows * columns)`, of which half (rounded up) are white.

    >>> salt_pepper(np.full((1, 4), 9, np.uint8), fraction=1.0, rng=np.random.default_rng(0)).sum()
    np.uint64(510)
    """
    pixels = image.shape[0] * image.shape[1]
    count = round(fraction * pixels)
    chosen = rng.choice(pixels, size=count, replace=False)
    out = np.array(image, order="C")
    flat = out.reshape(pixels, -1)
    white = (count + 1) // 2
    flat[chosen[:white]] = 255
    flat[chosen[white:]] = 0
    return out


@mutation(hazards=(SENSOR_NOISE,), strength=Strength("sigma_w", 0, 255, power=2))
def signal_noise(
    image: Image,
    *,
    psi: NonNegative,
    sigma_u: Annotated[NonNegative, unchanged_at(0)],
    sigma_w: Annotated[NonNegative, unchanged_at(0)],
    rng: np.random.Generator,
) -> Image:
    """Add noise that depends on the signal: P + P^psi N(0, sigma_u^2) + N(0, sigma_w^2).

    On levels 0..255, rounded and saturated (Pezzementi et al. 2018, III-A.7). The two normal parts are
    independent, so their sum is one normal value whose variance is the sum of both.

    >>> rng = np.random.default_rng(0)
    >>> signal_noise(np.full((1, 2), 9, np.uint8), psi=0.5, sigma_u=0, sigma_w=0, rng=rng)
    array([[9, 9]], dtype=uint8)
    """
    scale = np.hypot(LEVELS**psi * sigma_u, sigma_w)
    return gaussian(image, scale, ROUND, rng)


def gaussian(image: Image, scale: ArrayLike, offset: float, rng: np.random.Generator) -> Image:
    """Add normal noise whose standard deviation (of 255) is `scale[level]`, or one number for all."""
    flat = np.ascontiguousarray(image).reshape(-1)
    out = np.empty_like(flat)
    by_level = np.ascontiguousarray(np.broadcast_to(np.asarray(scale, np.float32), 256))
    seed = pixels.stream(rng)
    pixel_kernels.noise_by_level(flat, by_level, offset, pixels.normal_quantiles(), seed, out)
    return out.reshape(image.shape)


def impulse(image: Image, fraction: float, rng: np.random.Generator) -> Image:
    """Set a share of the VALUES, each channel on its own, to 0 or 255, half each on average."""
    flat = np.ascontiguousarray(image).reshape(-1)
    out = np.empty_like(flat)
    pixel_kernels.impulses(flat, min(round(fraction * 65536), 65535), pixels.stream(rng), out)
    return out.reshape(image.shape)


def shot(image: Image, photons: float, rng: np.random.Generator) -> Image:
    """Count photons: a Poisson number whose mean is `photons` for white, scaled back; truncates."""
    flat = np.ascontiguousarray(image).reshape(-1)
    out = np.empty_like(flat)
    pixel_kernels.replace_levels(flat, _photon_tables(photons), pixels.stream(rng), out)
    return out.reshape(image.shape)


@functools.lru_cache(maxsize=8)
def _photon_tables(photons: float) -> NDArray[np.uint32]:
    """Return alias tables of what each level becomes: 256 outcomes for each of 256 levels."""
    from scipy import special  # noqa: PLC0415 - slow to import, and most mutations need none of it

    count = np.arange(np.ceil(photons))
    outcome = (count / photons * 255).astype(np.int64)
    mean = LEVELS[:, None] / 255 * photons
    below = special.pdtr(count, mean)  # the chance of at most so many
    chances = np.zeros((256, 256))
    for column, chance in zip(outcome, np.diff(below, axis=1, prepend=0).T, strict=True):
        chances[:, column] += chance
    chances[:, 255] += 1 - below[:, -1]
    tables = np.empty((256, 256), np.uint32)
    pixel_kernels.alias_tables(chances, tables)
    flat = tables.reshape(-1)
    flat.flags.writeable = False
    return flat

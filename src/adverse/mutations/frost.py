"""Frost on the glass before the lens: ice of our own making, laid over the image.

The textures are drawn, not photographed: needles of ice, which are ridges of noise that was stretched in one
direction, grow in patches of different directions over a cloudy ground. They repeat without a seam, so an
image of any size can be cut from them. Their mean colours and contrasts are those of the five photographs
of the reference (002), so the veil has the same strength; the shapes differ.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from adverse.mutations import layout, pixel_kernels
from adverse.mutations.colour import LUMA
from adverse.seeds import generator
from adverse.types import Image

SIZE = (1024, 1536)
"""Rows and columns of a texture before it repeats."""

LOOKS = (
    ((78, 149, 166), 20),
    ((201, 205, 214), 22),
    ((201, 205, 214), 22),
    ((138, 153, 165), 29),
    ((112, 123, 135), 43),
)
"""Mean R, G, B and standard deviation of each texture; the reference has its second photograph twice."""

DIRECTIONS_DEG = (15.0, 50.0, 85.0, 120.0, 155.0)
NEEDLE_SPREAD_DEG = 6.0
PATCH_CYCLES = 5.0
"""Typical number of patches along the rows of a texture."""

FINEST_CYCLES = 180.0
"""Detail fades beyond so many waves along the rows of a texture."""

NEEDLE_SHARE = 0.7
"""How much of the relief is needles; the rest is cloud."""


def frost(
    image: Image, *, texture: Image, weight: float, frost_weight: float, rng: np.random.Generator
) -> Image:
    """Lay a texture over the image, starting at a random place: weight image + frost_weight ice; truncates.

    Any RGB texture will do: `texture(0)` to `texture(4)` are ours; photographs of your own lens are better.
    """
    source = layout.pixels(image)
    if source.shape[2] == 1:
        texture = np.rint(texture @ np.array(LUMA)).astype(np.uint8)[..., None]
    row, column = int(rng.integers(texture.shape[0])), int(rng.integers(texture.shape[1]))
    out = np.empty_like(source)
    pixel_kernels.blend_tiled(source, texture, row, column, weight, frost_weight, out)
    return out.reshape(image.shape)


@functools.lru_cache(maxsize=len(LOOKS))
def texture(number: int) -> Image:
    """Return one of our five ice textures, (1024, 1536, 3), the same on every call and machine.

    >>> texture(1).shape
    (1024, 1536, 3)
    """
    colour, contrast = LOOKS[number]
    relief = _relief(number)
    relief = (relief - relief.mean()) / relief.std() * contrast
    ice: Image = np.clip(relief[..., None] + np.array(colour, np.float32), 0, 255).astype(np.uint8)
    ice.flags.writeable = False
    return ice


def _relief(number: int) -> NDArray[np.float32]:
    """Return needles in patches over cloud, periodic, about zero."""
    from scipy import fft  # noqa: PLC0415 - slow to import, and most mutations need none of it

    rng = generator(0, "frost", str(number))
    rows, columns = SIZE
    down = (fft.fftfreq(rows) * rows)[:, None].astype(np.float32)
    across = (fft.rfftfreq(columns) * rows)[None, :].astype(np.float32)
    cycles = np.maximum(np.hypot(down, across), 1)
    angle = np.degrees(np.arctan2(down, across))
    spectrum = fft.rfft2(rng.standard_normal(SIZE, dtype=np.float32))
    spectrum *= np.exp(-((cycles / FINEST_CYCLES) ** 2))

    total, chosen = np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32)
    for direction in DIRECTIONS_DEG:
        gap = (angle - direction + 90) % 180 - 90
        along = np.exp(-0.5 * (gap / NEEDLE_SPREAD_DEG) ** 2) * cycles**-0.95 * (cycles > 4)
        streaks = fft.irfft2(spectrum * along, SIZE)
        needles = np.exp(-2.5 * np.abs(streaks) / streaks.std())
        patch = fft.irfft2(fft.rfft2(rng.standard_normal(SIZE, dtype=np.float32)) * _patches(cycles), SIZE)
        favour = np.exp(6 * patch / patch.std())
        total += favour * needles
        chosen += favour
    cloud = fft.irfft2(spectrum * cycles**-1.3, SIZE)
    needles = total / chosen
    needles -= needles.mean()
    cloud /= cloud.std()
    relief: NDArray[np.float32] = NEEDLE_SHARE * needles / needles.std() + (1 - NEEDLE_SHARE) * cloud
    return relief


def _patches(cycles: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a spectrum of soft patches of about one size."""
    soft: NDArray[np.float32] = np.exp(-0.5 * (cycles / PATCH_CYCLES) ** 2)
    return soft

"""From light to pixels: a lens that blurs a little, exposure, shot and read noise, 8 bits at a gamma of 2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled
from adverse.types import Image

SPREAD = 0.17
"""Share of a pixel's light that the lens gives to each neighbour along a row or a column."""
VIGNETTE = 0.22
"""Loss of light in the corners."""
SHOT, READ = 0.0016, 2e-5
"""Noise variance per unit of light, and without any: a small camera by day."""
Floats = NDArray[np.float64]


def exposed(radiance: Floats, exposure: float, rng: np.random.Generator) -> Image:
    """Return the picture (H, W, 3) uint8 that a camera takes of linear radiance."""
    normal = rng.standard_normal(radiance.shape, np.float32)
    return _develop(radiance, exposure, normal)


@compiled
def _develop(radiance: Floats, exposure: float, normal: NDArray[np.float32]) -> Image:
    height, width, _ = radiance.shape
    picture = np.empty((height, width, 3), np.uint8)
    rows = np.empty((height, width, 3))
    for v in range(height):
        for u in range(width):
            left, right = max(u - 1, 0), min(u + 1, width - 1)
            for c in range(3):
                beside = radiance[v, left, c] + radiance[v, right, c]
                rows[v, u, c] = (1 - 2 * SPREAD) * radiance[v, u, c] + SPREAD * beside
    for v in range(height):
        above, below = max(v - 1, 0), min(v + 1, height - 1)
        for u in range(width):
            x, y = 2 * u / width - 1, 2 * v / height - 1
            gain = exposure * (1 - VIGNETTE * (x * x + y * y) / 2)
            for c in range(3):
                beside = rows[above, u, c] + rows[below, u, c]
                light = gain * ((1 - 2 * SPREAD) * rows[v, u, c] + SPREAD * beside)
                light += normal[v, u, c] * np.sqrt(SHOT * light + READ)
                picture[v, u, c] = np.uint8(255 * np.sqrt(min(max(light, 0.0), 1.0)) + 0.5)
    return picture

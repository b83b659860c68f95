"""Mud on the glass before the lens: splashes with specks around them, opaque and out of focus.

The camera sees mud from behind. What little light it lets through is brown, more of it where the mud is thin,
near the rim; the light outside is taken from the image itself, so that mud at dusk is darker than at noon.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from adverse.marks import Hazard, Strength
from adverse.mutations import front_glass, pixels
from adverse.mutations.compiled import kernel
from adverse.mutations.front_glass import F32, I32, FrontGlass
from adverse.mutations.linear_light import LIGHT
from adverse.mutations.pixels import LUMA
from adverse.plugins import Fraction, mutation, unchanged_at
from adverse.types import Image

PASSED = (0.22, 0.12, 0.045)
"""Share of the light outside that mud lets through, in R, G, B: about (61, 46, 26) before a scene of middle
gray (0.2 of white)."""

SPLASH = 12
"""A splash is one blot and so many less one specks around it."""

SPREAD = 0.5
"""Standard deviation of the logarithm of the diameters of splashes."""

SPECK = (0.08, 0.4)
"""Least and largest diameter of a speck, of its splash; small ones are the most."""

OUTLINE = (0.30, 0.18)
THICKNESS_SPREAD = 0.35
THICKNESSES = 251
"""So many blots differ in thickness before it repeats."""

SAMPLED = 32
"""The light outside is the mean of the image, in so many rows or columns of it."""


@mutation(
    hazards=(
        Hazard("observer", "cleanliness of the lens", "part of", "mud on the lens hides a part of the view"),
    ),
    strength=Strength("coverage", 0, 0.9),
)
def lens_mud(
    image: Image,
    *,
    coverage: Annotated[Fraction, unchanged_at(0)],
    diameter_mm: Annotated[float, Field(ge=0.1, le=100)] = 4.0,
    glass: FrontGlass,
    log_rng: np.random.Generator,
) -> Image:
    """Cover a share of the glass before the lens with splashes of mud, opaque, their rims out of focus.

    `coverage` is the share of the view that is covered; `diameter_mm` is the median diameter of a splash on a
    glass `glass_mm` before a lens of `aperture_mm`, whose view is `fov_deg` wide. The mud stays in its place
    over the frames of a log.

    >>> white = np.full((40, 40, 3), 255, np.uint8)
    >>> bool(lens_mud(white, coverage=0.3, log_rng=np.random.default_rng(0)).mean() < 220)
    True
    """
    if not coverage:
        return image.copy()
    grid = front_glass.grid_of(image, glass)
    wide_mm, high_mm = (side * grid.cell_px / grid.px_per_mm for side in (grid.columns, grid.rows))

    def draw(count: int) -> F32:
        chance = log_rng.random((count // SPLASH, SPLASH, 9))
        middle = chance[:, :, :2].copy()
        size = np.exp(SPREAD * 2 * (chance[:, :1, 2:5].sum(axis=2) - 1.5)).repeat(SPLASH, axis=1)
        away = (0.6 + 1.2 * -np.log1p(-chance[:, 1:, 0])) * size[:, 1:] * diameter_mm / 2
        angle = 2 * math.pi * chance[:, 1:, 1]
        middle[:, 1:, 0] = middle[:, :1, 0] + away * np.cos(angle) / wide_mm
        middle[:, 1:, 1] = middle[:, :1, 1] + away * np.sin(angle) / high_mm
        small, large = SPECK
        size[:, 1:] *= small * (large / small) ** (chance[:, 1:, 2] ** 2)
        waves, turns = chance[:, :, 5:7] * OUTLINE, chance[:, :, 7:] * 2 * math.pi
        parts = np.concatenate([middle, size[..., None], waves, turns], axis=2)
        return parts.reshape(count, -1).astype(np.float32)

    blots = front_glass.covered(grid, coverage, draw, diameter_mm / 2, 1.0)
    sparse = max(min(image.shape[:2]) // SAMPLED, 1)
    outside = LIGHT[pixels.pixels(image)[::sparse, ::sparse]].mean(axis=(0, 1))
    gray = outside.size == 1
    passed = np.dot(LUMA, PASSED) * outside if gray else np.multiply(PASSED, np.dot(LUMA, outside))
    thinness = np.exp(THICKNESS_SPREAD * log_rng.standard_normal(THICKNESSES))
    layer = front_glass.empty_layer(image, grid)
    look_through(blots.owner, blots.away, thinness.astype(np.float32), passed.astype(np.float32), layer)
    return front_glass.laid_over(image, grid, layer)


@kernel(
    "void(Array(int32, 2, 'C', readonly=True), Array(float32, 3, 'C', readonly=True), "
    "Array(float32, 1, 'C', readonly=True), Array(float32, 1, 'C', readonly=True), float32[:, :, ::1])"
)
def look_through(owner: I32, away: F32, thinness: F32, passed: F32, layer: F32) -> None:
    """Write cover and light of each cell with mud, which is thinner towards the rim of a blot."""
    rows, columns = owner.shape
    for y in range(rows):
        for x in range(columns):
            if owner[y, x] < 0:
                continue
            dx, dy = away[y, x, 0], away[y, x, 1]
            thin = np.float32(0.5) + np.float32(1.2) * (dx * dx + dy * dy)
            thin *= thinness[owner[y, x] % thinness.size]
            layer[y, x, 0] = 1
            for c in range(passed.size):
                layer[y, x, 1 + c] = thin * passed[c]

"""Drops of water on the glass before the lens: each is a small lens that shows the scene upside down.

A ray that the camera sends out through a drop leaves its curved surface by Snell's law, bent towards the
drop's axis, the more the nearer it is to the rim. A drop therefore shows a wide view of the scene, small and
turned by 180 degrees, dark at the rim, where the surface reflects; and all of it is out of focus.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from adverse.marks import Hazard, Strength
from adverse.mutations import front_glass
from adverse.mutations.compiled import kernel
from adverse.mutations.front_glass import F32, I32, FrontGlass
from adverse.plugins import Fraction, mutation, unchanged_at
from adverse.types import Image

WATER = 1.333
"""Refractive index."""

CONTACT_DEG = 50.0
"""Angle between the glass and a drop's surface at its rim."""

SPREAD = 0.45
"""Standard deviation of the logarithm of the diameters."""

STRETCH = 1.12
"""Drops hang: longer than wide."""

OUTLINE = (0.10, 0.06)
"""Largest amplitude of the two and of the three waves around a drop."""

BENDS = 256
"""Entries of the tables from the place in a drop to what it does to a ray."""

VIEW_CELLS = 24
"""What a drop shows is taken from the image at this height: a drop shows it smaller still."""


class Bends(NamedTuple):
    """By place in a drop, 0 in the middle to 1 at the rim: tangent of the bend, and share of light passed."""

    tangent: NDArray[np.float32]
    passed: NDArray[np.float32]


@mutation(
    hazards=(
        Hazard("observer", "cleanliness of the lens", "other than", "drops on the lens bend the light"),
    ),
    strength=Strength("coverage", 0, 0.9),
)
def lens_drops(
    image: Image,
    *,
    coverage: Annotated[Fraction, unchanged_at(0)],
    diameter_mm: Annotated[float, Field(ge=0.1, le=100)] = 3.0,
    glass: FrontGlass,
    log_rng: np.random.Generator,
) -> Image:
    """Put drops on a share of the glass before the lens, each showing the scene small and upside down.

    `coverage` is the share of the view that drops cover; `diameter_mm` is their median diameter on a glass
    `glass_mm` before a lens of `aperture_mm`, whose view is `fov_deg` wide. The wider the aperture, the
    softer they are. The drops stay in their places over the frames of a log.

    >>> plain = np.full((40, 40, 3), 90, np.uint8)
    >>> np.array_equal(lens_drops(plain, coverage=0, log_rng=np.random.default_rng(0)), plain)
    True
    """
    if not coverage:
        return image.copy()
    grid = front_glass.grid_of(image, glass)

    def draw(count: int) -> F32:
        chance = log_rng.random((count, 9))
        size = np.exp(SPREAD * 2 * (chance[:, 2:5].sum(axis=1) - 1.5))  # three uniform ones are nearly normal
        waves = chance[:, 5:7] * OUTLINE
        turns = chance[:, 7:] * 2 * math.pi
        return np.column_stack([chance[:, :2], size, waves, turns]).astype(np.float32)

    blots = front_glass.covered(grid, coverage, draw, diameter_mm / 2, STRETCH)
    rows, columns = image.shape[:2]
    height = min(VIEW_CELLS, rows)
    view = front_glass.seen_from(image, (height, max(round(columns * height / rows), 1)))
    layer = front_glass.empty_layer(image, grid)
    look_through(blots.owner, blots.away, glass.focal_px(columns) / grid.cell_px, *bends(), view, layer)
    return front_glass.laid_over(image, grid, layer)


@functools.cache
def bends() -> Bends:
    """Return what a drop, a cap of a sphere, does to rays that come along its axis.

    The surface leans by a with sin a = place * sin(contact angle); the ray leaves at b with sin b = 1.333
    sin a, bent by b - a. What passes is Fresnel's, for unpolarised light; beyond the critical angle, nothing.
    """
    place = (np.arange(BENDS) + 0.5) / BENDS
    inside = np.arcsin(place * math.sin(math.radians(CONTACT_DEG)))
    leaves = WATER * np.sin(inside)
    outside = np.arcsin(np.minimum(leaves, 1))
    across = (np.sin(inside - outside) / np.sin(inside + outside)) ** 2
    along = (np.tan(inside - outside) / np.tan(inside + outside)) ** 2
    passed = np.where(leaves < 1, 1 - (across + along) / 2, 0)
    tables = [np.tan(outside - inside).astype(np.float32), passed.astype(np.float32)]
    for table in tables:
        table.flags.writeable = False
    return Bends(*tables)


@kernel(
    "void(Array(int32, 2, 'C', readonly=True), Array(float32, 3, 'C', readonly=True), float32, "
    "Array(float32, 1, 'C', readonly=True), Array(float32, 1, 'C', readonly=True), "
    "Array(float32, 3, 'C', readonly=True), float32[:, :, ::1])"
)
def look_through(
    owner: I32, away: F32, focal: float, tangent: F32, passed: F32, view: F32, layer: F32
) -> None:
    """Write cover and light of each cell with a drop; `focal` is in cells, the view may be coarser.

    Beyond its border the view goes on as it ends.
    """
    rows, columns = owner.shape
    high, wide, channels = view.shape
    for y in range(rows):
        for x in range(columns):
            if owner[y, x] < 0:
                continue
            dx, dy = away[y, x, 0], away[y, x, 1]
            far = np.float32(math.sqrt(dx * dx + dy * dy))
            k = min(int(far * np.float32(tangent.size)), tangent.size - 1)
            bend = np.float32(focal) * tangent[k] / max(far, np.float32(1e-6))
            u = (np.float32(x) + np.float32(0.5) - dx * bend) / np.float32(columns) * np.float32(wide)
            v = (np.float32(y) + np.float32(0.5) - dy * bend) / np.float32(rows) * np.float32(high)
            u = min(max(u - np.float32(0.5), np.float32(0)), np.float32(wide - 1))
            v = min(max(v - np.float32(0.5), np.float32(0)), np.float32(high - 1))
            left, top = int(u), int(v)
            right, bottom = min(left + 1, wide - 1), min(top + 1, high - 1)
            a, b = u - np.float32(left), v - np.float32(top)
            layer[y, x, 0] = 1
            for c in range(channels):
                upper = view[top, left, c] + (view[top, right, c] - view[top, left, c]) * a
                lower = view[bottom, left, c] + (view[bottom, right, c] - view[bottom, left, c]) * a
                layer[y, x, 1 + c] = passed[k] * (upper + (lower - upper) * b)

"""Where foliage has leaves and where gaps, for many points at once.

Foliage is a solid whose surface has holes: noise as fine as leaves plus noise as wide as clumps of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled
from adverse.data.worlds.textures import noise, sharpness

LEAF_M = 0.07
CLUMP_M = 0.21
"""Sizes of the leaves of foliage and of the clumps they grow in, and so of the gaps between them."""
RIM_M = 0.45
"""Where a ray runs through less foliage than this, it thins out."""
BATCH = 1024
"""How many points are collected before they are looked at together."""
Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@compiled
def density(t: Floats, through_m: Floats, holes: Floats, pixel_at_1m: float, dense: Floats) -> None:
    """Write how much of the surface is there (N,), where rays that run through so much foliage are at t.

    Gaps too far to be seen close up; towards the rim there are more, so no outline is round.
    """
    for i in range(len(t)):
        rim = max(1 - through_m[i] / RIM_M, 0.0)
        dense[i] = 1 - (holes[i] + 0.3 * rim) * sharpness(LEAF_M, t[i] * pixel_at_1m)


@compiled
def leaves(x: Floats, y: Floats, z: Floats, seed: Whole, dense: Floats) -> None:
    """Subtract from the density (N,) at points the value of the pattern there: above 0 is a leaf, else a gap.

    Points are in metres along the axes of their solids.
    """
    for i in range(len(x)):
        a, b, c = x[i] * (1 / LEAF_M), y[i] * (1 / LEAF_M), z[i] * (1 / LEAF_M)
        leaf = 0.62 * noise(a, b, c, seed[i])
        a, b, c = x[i] * (1 / CLUMP_M), y[i] * (1 / CLUMP_M), z[i] * (1 / CLUMP_M)
        clump = 0.38 * noise(a, b, c, seed[i] + 1)
        dense[i] = dense[i] - (leaf + clump)

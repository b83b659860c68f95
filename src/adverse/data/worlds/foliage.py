"""Where foliage has leaves and where gaps, for many points at once.

Foliage is a solid whose surface has holes: noise as fine as leaves plus noise as wide as clumps of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled, inlined
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


@inlined
def density(t0: float, t1: float, t: float, holes: float, pixel_at_1m: float) -> float:
    """Return how much of the surface is there where a ray that enters at t0 and leaves at t1 is at t.

    Gaps too far to be seen close up; towards the rim there are more, so no outline is round.
    """
    rim = max(1 - (t1 - t0) / RIM_M, 0.0)
    return 1 - (holes + 0.3 * rim) * sharpness(LEAF_M, t * pixel_at_1m)


@compiled
def leaves(x: Floats, y: Floats, z: Floats, seed: Whole, dense: Floats) -> None:
    """Subtract from the density (N,) at points the value of the pattern there: above 0 is a leaf, else a gap.

    Points are in metres along the axes of their solids.
    """
    for i in range(len(x)):
        leaf = 0.62 * noise(x[i] / LEAF_M, y[i] / LEAF_M, z[i] / LEAF_M, seed[i])
        clump = 0.38 * noise(x[i] / CLUMP_M, y[i] / CLUMP_M, z[i] / CLUMP_M, seed[i] + 1)
        dense[i] = dense[i] - (leaf + clump)

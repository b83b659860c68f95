"""Where foliage has leaves and where gaps.

Foliage is a solid whose surface has holes: noise as fine as leaves plus noise as wide as clumps of them.
"""

from __future__ import annotations

from adverse.data.worlds.compiled import inlined
from adverse.data.worlds.textures import noise, sharpness

LEAF_M = 0.07
CLUMP_M = 0.21
"""Sizes of the leaves of foliage and of the clumps they grow in, and so of the gaps between them."""
RIM_M = 0.45
"""Where a ray runs through less foliage than this, it thins out."""


@inlined
def foliage(x: float, y: float, z: float, seed: int, pixel_m: float, through_m: float, holes: float) -> float:
    """Return a number above 0 where there is a leaf and no gap, at a point in metres along a solid's axes.

    Gaps close up where a pixel is too large to show them; where a ray runs through little foliage there are
    more, so no outline is round.
    """
    rim = max(1 - through_m / RIM_M, 0.0)
    dense = 1 - (holes + 0.3 * rim) * sharpness(LEAF_M, pixel_m)
    a, b, c = x * (1 / LEAF_M), y * (1 / LEAF_M), z * (1 / LEAF_M)
    leaf = 0.62 * noise(a, b, c, seed)
    a, b, c = x * (1 / CLUMP_M), y * (1 / CLUMP_M), z * (1 / CLUMP_M)
    return dense - (leaf + 0.38 * noise(a, b, c, seed + 1))

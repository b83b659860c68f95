"""What contextual mutations ask of a depth map."""

from __future__ import annotations

import numpy as np

from adverse.errors import MutationError
from adverse.types import Depth


def usable(depth_m: Depth, mutation: str) -> Depth:
    """Return the depth as contiguous float32, or refuse it: every pixel must have one, +inf for the sky.

    >>> usable(np.array([[2.0, np.inf]]), "haze")
    array([[ 2., inf]], dtype=float32)
    """
    values = np.ascontiguousarray(depth_m, np.float32)
    if not values.min() > 0:  # also when it is NaN
        share = 1 - np.count_nonzero(values > 0) / values.size
        raise MutationError(
            f"{mutation} needs a depth for every pixel",
            got=f"no valid depth in {share:.1%} of the pixels",
            wanted="metres above 0, +inf where there is no surface",
            fix="Fill the holes first, or say invalid_depth: far or nearest in the study.",
        )
    return values

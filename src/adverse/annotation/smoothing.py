"""Places of one object over a log, made smooth: what a person does within a second is nearly straight.

A match is off by a fraction of a pixel, and its depth by that times the square of the distance. Over
neighbouring frames such errors differ, the person's motion does not; and from near by they are small.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

REACH = 2.5
"""Frames farther away than so many standard deviations do not count."""
LEAST = 3
"""A straight line needs more frames than this around it; fewer stay as they are."""


def smoothed_m(
    times_s: NDArray[np.float64], places_m: NDArray[np.float64], depth_m: NDArray[np.float64], spread_s: float
) -> NDArray[np.float64]:
    """Return places (N,3) of times (N,), each on the straight line that fits those around it best.

    They count by a normal curve over time with a standard deviation of `spread_s`, and by the variance that
    stereo gives their depth (N,), its fourth power. 0 seconds change nothing.
    """
    smooth = places_m.copy()
    if spread_s <= 0:
        return smooth
    for at, now in enumerate(times_s):
        away = (times_s - now) / spread_s
        weight = np.where(np.abs(away) <= REACH, np.exp(-0.5 * away**2), 0.0) / depth_m**4
        used = weight > 0
        if used.sum() <= LEAST:
            continue
        root = np.sqrt(weight[used] / weight[used].max())[:, None]
        line = np.stack([np.ones(int(used.sum())), away[used]], axis=1)
        fit, *_ = np.linalg.lstsq(line * root, places_m[used] * root, rcond=None)
        smooth[at] = fit[0]
    return smooth

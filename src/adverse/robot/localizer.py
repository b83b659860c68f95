"""Localizer: from a box and its depth to a place in the world (Pezzementi et al. 2021, section 6.1.1).

The depth of a box is read where the depth map is (`adverse.depth.boxes`); here it becomes the point on the
ray through the box centre, and by the frame's pose a point in the world.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PIXEL_CENTRE = 0.5
"""Boxes are half-open: the pixel that calibration calls (0, 0) is centred at (0.5, 0.5) of a box."""


def localize(
    boxes: NDArray[np.floating],
    depth_m: NDArray[np.floating],
    cameras: NDArray[np.float64],
    world_from_camera: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return world positions (N,3); NaN where depth, camera or pose is not known.

    Boxes (N,4) xyxy, depth (N,) along the optical axis, cameras (N,>=4) as fx fy cx cy, poses (N,4,4).
    """
    box = np.asarray(boxes, np.float64)
    z = np.asarray(depth_m, np.float64)
    u = (box[:, 0] + box[:, 2]) / 2 - PIXEL_CENTRE
    v = (box[:, 1] + box[:, 3]) / 2 - PIXEL_CENTRE
    with np.errstate(invalid="ignore", over="ignore"):
        x = (u - cameras[:, 2]) / cameras[:, 0] * z
        y = (v - cameras[:, 3]) / cameras[:, 1] * z
        point = np.stack([x, y, z], axis=1)
        turned = np.einsum("nij,nj->ni", world_from_camera[:, :3, :3], point)
        world: NDArray[np.float64] = turned + world_from_camera[:, :3, 3]
    known = np.isfinite(z)
    world[~known] = np.nan
    return world

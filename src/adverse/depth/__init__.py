"""Depth: computed from stereo (`from_stereo`) or laser returns (`from_laser`), and made usable for mutations.

Depth that is not a distance (NaN, zero, negative) is never used silently.

A frame with such pixels is refused for mutations by depth unless the study says what to put there. +inf is
valid: nothing is there, the sky.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import cv2
import numpy as np

from adverse.errors import MutationError
from adverse.types import Depth

if TYPE_CHECKING:
    from adverse.depth.consistency import Neighbour, consistent
    from adverse.depth.dense import DenseDepth
    from adverse.depth.laser import from_laser
    from adverse.depth.rectification import StereoRig, from_recorded_stereo
    from adverse.depth.stereo import from_stereo

__all__ = [
    "DenseDepth",
    "Neighbour",
    "Policy",
    "StereoRig",
    "UsableDepth",
    "consistent",
    "from_laser",
    "from_recorded_stereo",
    "from_stereo",
    "usable",
]

_HOMES = {
    "DenseDepth": "dense",
    "Neighbour": "consistency",
    "StereoRig": "rectification",
    "consistent": "consistency",
    "from_laser": "laser",
    "from_recorded_stereo": "rectification",
    "from_stereo": "stereo",
}
"""What is loaded when it is first used: it needs numba and scipy."""

Policy = Literal["refuse", "far", "nearest"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"adverse.depth.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'adverse.depth' has no attribute {name!r}")


class UsableDepth(NamedTuple):
    """Depth without invalid pixels, and the share that was."""

    depth_m: Depth
    invalid_share: float


def usable(depth_m: Depth, policy: Policy, *, where: str) -> UsableDepth:
    """Return depth that is valid everywhere, by the study's policy, or raise.

    `far` puts +inf where depth is invalid; `nearest` the depth of the nearest valid pixel.
    """
    valid = depth_m > 0  # False for NaN too
    share = 1.0 - float(np.count_nonzero(valid)) / depth_m.size
    if share == 0:
        return UsableDepth(depth_m, 0.0)
    if policy == "refuse" or not valid.any():
        raise MutationError(
            "the depth map has pixels without a depth",
            where=where,
            got=f"{depth_m.size - np.count_nonzero(valid)} of {depth_m.size} are NaN, zero or negative",
            wanted="a distance in metres, or +inf for the sky, at every pixel",
            fix="Complete the depth map (depth: {from: laser} in the study does), or say what to put there: "
            "invalid_depth: far or nearest in the study, --invalid-depth for adverse mutate.",
        )
    if policy == "far":
        return UsableDepth(np.where(valid, depth_m, np.float32(np.inf)).astype(np.float32), share)
    return UsableDepth(_nearest(depth_m, valid), share)


def _nearest(depth_m: Depth, valid: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Depth:
    _, labels = cv2.distanceTransformWithLabels(
        (~valid).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    values = np.zeros(int(labels.max()) + 1, np.float32)
    values[labels[valid]] = depth_m[valid]
    filled: Depth = values[labels]
    return filled

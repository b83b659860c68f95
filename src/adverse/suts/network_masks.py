"""Masks of a network's detections, brought to the image's pixels, for those detections that are kept.

Two styles: coefficients of prototypes that all detections share (YOLO-seg), and a small map for each box
(Mask R-CNN), or one of the input's size. All are sampled at the middle of each pixel of the image by linear
interpolation, only inside the box, and cut at one half (of a logit: at 0). Around a box its map is 0, as it
is where Mask R-CNN was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adverse.errors import SutError
from adverse.masks import Masks, mask_in_crop
from adverse.suts.preprocess import Placement

Floats = NDArray[np.float64]
Planes = NDArray[np.float32]
HALF = 0.5


class Kept(NamedTuple):
    """Candidates that became detections: rows, boxes in the image as given (N,4) and cut at its border."""

    rows: NDArray[np.int64]
    boxes: Floats
    cut: NDArray[np.float32]


class CandidateMasks(Protocol):
    """The masks of a model's candidates, not yet made."""

    def of(self, kept: Kept, size: tuple[int, int], placed: Placement) -> Masks:
        """Return the masks of those that are kept; `size` is the input's (width, height)."""


@dataclass(frozen=True, eq=False)
class PrototypeMasks:
    """Coefficients (N, M) of prototypes (M, h, w) over the input: a mask is where their sum is above 0."""

    coefficients: Floats
    prototypes: Planes

    def of(self, kept: Kept, size: tuple[int, int], placed: Placement) -> Masks:
        """Return the masks of those that are kept."""
        count, height, width = self.prototypes.shape
        flat = self.coefficients[kept.rows].astype(np.float32) @ self.prototypes.reshape(count, -1)
        planes = flat.reshape(-1, height, width)
        return _sampled(planes, _over_input(planes, size, placed), kept, placed, above=0.0)


@dataclass(frozen=True, eq=False)
class MaskMaps:
    """A map (N, h, w) from 0 to 1 for each candidate: over its box, or over the whole input."""

    maps: Planes
    over_input: bool

    def of(self, kept: Kept, size: tuple[int, int], placed: Placement) -> Masks:
        """Return the masks of those that are kept."""
        planes = self.maps[kept.rows]
        if self.over_input:
            return _sampled(planes, _over_input(planes, size, placed), kept, placed, above=HALF)
        scale = np.array(planes.shape[:0:-1]) / np.maximum(kept.boxes[:, 2:] - kept.boxes[:, :2], 1e-9)
        grids = np.stack([scale, 1 - kept.boxes[:, :2] * scale], axis=1)
        bordered = np.pad(planes, ((0, 0), (1, 1), (1, 1)))
        return _sampled(bordered, grids, kept, placed, above=HALF)


def _over_input(planes: Planes, size: tuple[int, int], placed: Placement) -> Floats:
    """Return scale and offset (N, 2, xy) from edges of the image's pixels to those of such planes."""
    per_input = np.array(planes.shape[:0:-1], np.float64) / np.array(size)
    scale = np.array([placed.width / placed.image_width, placed.height / placed.image_height])
    grid = np.stack([per_input * scale, per_input * np.array([placed.left, placed.top], np.float64)])
    return np.broadcast_to(grid, (len(planes), 2, 2))


def _sampled(planes: Planes, grids: Floats, kept: Kept, placed: Placement, *, above: float) -> Masks:
    """Sample each plane inside of its box and cut it; a pixel belongs to the box if its middle does."""
    if not np.isfinite(planes).all():
        raise SutError(
            "the model gives masks that are not finite numbers",
            got=f"{int((~np.isfinite(planes)).any(axis=(1, 2)).sum())} of {len(planes)} masks",
            fix="Find out why the model gives them; if it always does, check scale:, mean: and std:.",
        )
    size = placed.image_height, placed.image_width
    counts = []
    for plane, (scale, offset), box in zip(planes, grids, kept.cut, strict=True):
        x0, y0, x1, y1 = np.ceil(box.astype(np.float64) - HALF).astype(int).tolist()
        columns = (np.arange(x0, x1) + HALF) * scale[0] + offset[0] - HALF
        rows = (np.arange(y0, y1) + HALF) * scale[1] + offset[1] - HALF
        crop = _between(_between(plane, rows).T, columns).T
        counts.append(mask_in_crop(crop > above, x0, y0, size))
    return Masks(size, tuple(counts))


def _between(plane: NDArray[np.floating], places: Floats) -> Floats:
    """Return rows of a plane at fractional places, interpolated; beyond its ends, the last ones."""
    within = np.clip(places, 0, len(plane) - 1)
    low = np.minimum(within.astype(np.int64), max(len(plane) - 2, 0))
    share = (within - low)[:, None]
    high = np.minimum(low + 1, len(plane) - 1)
    return np.asarray(plane[low] * (1 - share) + plane[high] * share, np.float64)

"""The masks of true objects, from what annotation files hold: polygons, run lengths, a map of instances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import hotcoco.mask
import numpy as np
from numpy.typing import NDArray

from adverse.data.images import Size
from adverse.masks import Masks, coco_counts, mask_in_crop

LEAST_NUMBERS = 6
"""Of a polygon: three corners."""


def annotated_mask(segmentation: Any, size: Size) -> bytes:
    """Return the mask of COCO's `segmentation` in an image of (width, height), or raise ValueError.

    Polygons are filled as COCO's own tools fill them; several of one object are taken together.
    """
    height_width = size[1], size[0]
    if isinstance(segmentation, dict):
        return coco_counts(segmentation, height_width)[1]
    if not isinstance(segmentation, list) or not segmentation:
        raise ValueError("it has no segmentation")
    for polygon in segmentation:
        if (
            not isinstance(polygon, list)
            or len(polygon) < LEAST_NUMBERS
            or len(polygon) % 2
            or not all(isinstance(value, int | float) and math.isfinite(value) for value in polygon)
        ):
            raise ValueError("its segmentation is not polygons [x, y, x, y, x, y, ...], nor run lengths")
    parts = hotcoco.mask.frPyObjects(segmentation, size[1], size[0])
    counts = hotcoco.mask.merge(parts)["counts"]
    return counts if isinstance(counts, bytes) else str(counts).encode()


def masks_by_value(numbers: NDArray[Any], wanted: Iterable[int]) -> Masks:
    """Return the masks of the pixels of an instance map (H,W) that have each of the wanted values."""
    size = int(numbers.shape[0]), int(numbers.shape[1])
    values, index = np.unique(numbers, return_inverse=True)
    place = {value: at for at, value in enumerate(values.tolist())}
    index = index.reshape(size)
    return Masks(size, tuple(mask_in_crop(index == place.get(value, -1), 0, 0, size) for value in wanted))

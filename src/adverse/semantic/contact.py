"""Where things meet the ground: their order of distance, and about how far they are, without any depth.

On level ground what meets it lower in the image is nearer. An object meets it at its lowest visible row; a
pixel of anything else that stands up (a wall, a hedge, a fence) where its run down the column ends on ground.
What ends on something else has its foot hidden: how far it is nobody knows. With the horizon, the row of the
vanishing point of a level street, rows become distances: z = f h / (row - horizon).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

CAMERA_HEIGHT_M = 1.5
"""Taken where it is not known: it scales all distances alike, and their order does not depend on it."""
FOCAL_LENGTHS = 1.0
"""The focal length in widths of the image, where no camera is known: about 53 degrees of view."""


def contact_rows(
    labels: NDArray[np.integer],
    instances: NDArray[np.int32],
    feet: Mapping[int, int],
    ground: Iterable[int],
    behind: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """Return the row (H,W) at which what is seen at each pixel meets the ground; -1 where it is not known.

    `feet` has the lowest row of each instance. Ground meets itself. `behind` (H,W) has the instance next
    behind what is seen: what stands before it is no farther, even if its own foot is hidden.

    >>> column = np.array([[1], [1], [7], [2], [7]])
    >>> contact_rows(column, np.zeros((5, 1), np.int32), {}, [7]).ravel().tolist()
    [1, 1, 2, 3, 4]
    >>> contact_rows(np.array([[1], [2], [7]]), np.zeros((3, 1), np.int32), {}, [7]).ravel().tolist()
    [-1, 1, 2]
    >>> behind = np.array([[0], [5], [0]])  # object 5, which meets the ground in row 9, is behind the second
    >>> no_objects = np.zeros((3, 1), np.int32)
    >>> contact_rows(np.array([[1], [2], [7]]), no_objects, {5: 9}, [7], behind).ravel().tolist()
    [-1, 9, 2]
    """
    height = labels.shape[0]
    rows = np.arange(height, dtype=np.int32)[:, None]
    is_ground = np.isin(labels, list(ground)) & (instances == 0)
    ends = np.ones(labels.shape, np.bool_)
    ends[:-1] = (labels[1:] != labels[:-1]) | (instances[1:] != instances[:-1])
    last = np.where(ends, rows, np.int32(height))
    last = np.minimum.accumulate(last[::-1], axis=0)[::-1]
    on_ground = np.zeros(labels.shape, np.bool_)
    on_ground[:-1] = is_ground[1:]
    stands = np.take_along_axis(on_ground, last.astype(np.int64), axis=0)
    contact = np.where(is_ground, rows, np.where(stands, last, np.int32(-1)))
    if feet:
        numbers = np.array(sorted(feet), np.int64)
        table = np.array([feet[number] for number in numbers.tolist()], np.int32)
        inside = instances > 0
        contact[inside] = table[np.searchsorted(numbers, instances[inside])]
        if behind is not None:
            before = np.isin(behind, numbers) & ~is_ground
            contact[before] = np.maximum(contact[before], table[np.searchsorted(numbers, behind[before])])
    return np.asarray(contact, np.int32)


def distance_m(
    row: float, horizon_row: float, focal_px: float, camera_height_m: float = CAMERA_HEIGHT_M
) -> float | None:
    """Return about how far away the ground is that is seen at a row; None at and above the horizon.

    >>> distance_m(199, 100, 1000)
    15.0
    """
    below = row + 1 - horizon_row
    return focal_px * camera_height_m / below if below > 0 else None

"""The image as a mirror shows it: what is on the left is on the right.

People, vehicles and streets look as likely this way round, so a detector should answer with the mirrored
boxes. Answers are mirrored back before they are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.marks import Hazard, Moves
from adverse.plugins import mutation
from adverse.types import Image


def mirrored_pixels(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array (rows, columns, ...) with its columns in the opposite order."""
    return np.array(array[:, ::-1], order="C")


def mirrored_boxes(boxes: NDArray[np.floating], size: tuple[int, int]) -> NDArray[np.floating]:
    """Return boxes (N,4) where a mirror shows them in an image of `size` (rows, columns).

    >>> mirrored_boxes(np.array([[1.0, 2, 4, 8]]), (10, 20)).tolist()
    [[16.0, 2.0, 19.0, 8.0]]
    """
    mirrored = np.array(boxes)
    mirrored[:, 0], mirrored[:, 2] = size[1] - boxes[:, 2], size[1] - boxes[:, 0]
    return mirrored


@mutation(
    hazards=(Hazard("observer", "orientation", "reverse", "the image is mirrored"),),
    moves=Moves(mirrored_pixels, mirrored_boxes),
    stereo="shared",
)
def mirror(image: Image) -> Image:
    """Mirror the image, left to right; answers are mirrored back before they are kept.

    >>> mirror(np.array([[1, 2, 3]], np.uint8))
    array([[3, 2, 1]], dtype=uint8)
    """
    return mirrored_pixels(image)

"""What the outputs of segmentation and classification models mean, for one image at a time."""

from __future__ import annotations

from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.errors import SutError
from adverse.suts.decoders import Output
from adverse.suts.preprocess import Placement
from adverse.types import ClassScores, LabelMap

DenseStyle = Literal["segmentation", "classification"]
"""Decoders that make a model a segmenter or a classifier."""


def label_map(output: Output, classes: int, size: tuple[int, int], placed: Placement) -> LabelMap:
    """Read scores (C,h,w) or (h,w,C), or labels (h,w), that cover an input of `size` (width, height).

    Scores are brought to the image's size by linear interpolation before the best class is chosen, labels
    by nearest neighbour; what lies outside of the image is left out.
    """
    array = output.array
    if array.ndim == 3 and array.shape[0] == 1 and (classes != 1 or array.dtype.kind in "iu"):
        array = array[0]
    if array.ndim == 2:
        return LabelMap(_to_image(_whole(array, output.name), size, placed, cv2.INTER_NEAREST))
    if array.ndim != 3 or classes not in (array.shape[0], array.shape[2]):
        raise SutError(
            "an output of the model is not a segmentation",
            where=f"output {output.name!r}",
            got=f"{output.array.shape} for one image",
            wanted=f"({classes}, height, width), (height, width, {classes}) or labels (height, width)",
            fix="Check classes: and outputs:.",
        )
    scores = array if array.shape[0] == classes else array.transpose(2, 0, 1)
    best: NDArray[np.float32] | None = None
    labels = np.zeros((placed.image_height, placed.image_width), np.uint16)
    for label, plane in enumerate(scores):
        if not np.isfinite(plane).all():
            raise SutError(
                "the model gives scores that are not finite numbers",
                where=f"output {output.name!r}",
                got=f"NaN or infinity for class {label}",
            )
        score = _to_image(plane.astype(np.float32), size, placed, cv2.INTER_LINEAR)
        if best is None:
            best = score
            continue
        better = score > best
        np.copyto(labels, label, where=better)
        np.copyto(best, score, where=better)
    return LabelMap(labels)


def class_scores(output: Output, classes: int) -> ClassScores:
    """Read scores (C,), whatever axes of length 1 stand around them."""
    if output.array.size != classes or max(output.array.shape, default=0) != classes:
        raise SutError(
            "an output of the model is not one score for each class",
            where=f"output {output.name!r}",
            got=f"{output.array.shape} for one image",
            wanted=f"({classes},)",
            fix="Check classes: and outputs:; a background class counts.",
        )
    return ClassScores(output.array.reshape(-1))


def _to_image(
    plane: NDArray[Any], size: tuple[int, int], placed: Placement, interpolation: int
) -> NDArray[Any]:
    """Sample a plane that covers the model's input at every pixel of the image."""
    per_input = plane.shape[1] / size[0], plane.shape[0] / size[1]
    scale = placed.width / placed.image_width, placed.height / placed.image_height
    shift = placed.left, placed.top
    # Pixel i of the image has its middle at i + 0.5; so have the pixels of the plane.
    matrix = np.array(
        [
            [per_input[0] * scale[0], 0, per_input[0] * (0.5 * scale[0] + shift[0]) - 0.5],
            [0, per_input[1] * scale[1], per_input[1] * (0.5 * scale[1] + shift[1]) - 0.5],
        ]
    )
    flags = interpolation | cv2.WARP_INVERSE_MAP
    target = placed.image_width, placed.image_height
    made: NDArray[Any] = cv2.warpAffine(plane, matrix, target, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return made


def _whole(labels: NDArray[Any], name: str) -> NDArray[np.uint16]:
    whole = labels.astype(np.uint16)
    if not np.array_equal(whole, labels):
        raise SutError(
            "labels of the model are not whole numbers from 0",
            where=f"output {name!r}",
            got=f"{labels.dtype} from {labels.min()} to {labels.max()}",
            fix="Check outputs:, and that the model gives labels rather than scores.",
        )
    return whole

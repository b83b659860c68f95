"""What was recorded in one file, and the frames it must answer for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.types import Frame

Boxes = Literal["xywh", "xyxy"]
Floats = NDArray[np.float64]
ImageId = int | str


class Needed(NamedTuple):
    """The frames that one file must answer for, by split, and all image ids that the data set has.

    `whole` are all frames of the data set, where the study uses a part of it.
    """

    splits: Mapping[str, Sequence[Frame]]
    known: frozenset[ImageId]
    whole: Sequence[Frame] = ()

    @property
    def all_frames(self) -> Sequence[Frame]:
        """The frames of the data set, as far as they were given."""
        return self.whole or [frame for split in self.splits.values() for frame in split]


class RecordedRows(NamedTuple):
    """The entries of one file: image ids, boxes (N,4) as written, scores (N,), labels (N,).

    `spoilt` are the images with an entry that is no detection, `unknown_categories` count what has no name.
    """

    path: Path
    images: Sequence[ImageId]
    boxes: Floats
    scores: Floats
    labels: NDArray[np.int64]
    spoilt: Mapping[ImageId, str]
    unknown_categories: Mapping[object, int]


def overlaps(boxes: Floats, truth: Floats) -> Floats:
    """Return the intersection over union (N,M) of boxes given by their corners."""
    low = np.maximum(boxes[:, None, :2], truth[None, :, :2])
    size = np.maximum(np.minimum(boxes[:, None, 2:], truth[None, :, 2:]) - low, 0)
    both = size.prod(axis=2)
    areas = [np.maximum(some[:, 2:] - some[:, :2], 0).prod(axis=1) for some in (boxes, truth)]
    union = areas[0][:, None] + areas[1][None, :] - both
    share: Floats = both / np.maximum(union, 1e-9)
    return share

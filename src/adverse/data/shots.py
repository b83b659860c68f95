"""Where one shot of a film ends and the next begins: the colours of a frame are suddenly others.

Neighbouring frames of one shot share nearly all of their colour histogram, whatever moves in them.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.errors import AdverseError
from adverse.types import Frame, Image

CHANGED = 0.5
"""Share of the pixels whose colour must be another one for a new shot."""
BINS = 8
SMALL_PX = 160


def shot_changes(frames: Sequence[Frame]) -> list[int]:
    """Return the places at which shots begin, 0 first; every frame is decoded."""
    starts, before = [0], None
    for at, frame in enumerate(frames):
        try:
            now = _colours(frame.image())
        except AdverseError:
            continue
        if before is not None and float(np.abs(now - before).sum()) / 2 > CHANGED:
            starts.append(at)
        before = now
    return starts


def _colours(image: Image) -> NDArray[np.float64]:
    """Return the share of the pixels in each of 512 cells of colour."""
    scale = min(1.0, SMALL_PX / max(image.shape[:2]))
    small = (
        image if scale == 1.0 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    )
    cells = small.reshape(-1, 3).astype(np.int64) * BINS // 256
    counts = np.bincount(cells @ (BINS * BINS, BINS, 1), minlength=BINS**3)
    return counts / len(cells)

"""The steerable pyramid: an image in bands of one scale and one direction (Simoncelli and Freeman 1995).

Small kernels, "sp5", divide an image into a ring of high frequencies, six directions of it, and the rest,
which is halved and divided again. VIF is defined on any such pyramid, but its published values come from
these kernels: on a pyramid cut in the spectrum, with sharper bands, VIF is smaller by up to 0.15.

The weights are those of pyrtools, from its authors. Only the file that holds them is loaded: the package
would load a plotting library first.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.visual.luminance import Luminance

SCALES = 4
DIRECTIONS = 6

Kernel = NDArray[np.float64]


class Kernels(NamedTuple):
    """The filters: what all scales see, what the next scale sees, and one for each direction."""

    first: Kernel
    next: Kernel
    directions: tuple[Kernel, ...]


def bands(values: Luminance, directions: Sequence[int], scales: int = SCALES) -> Iterator[list[Luminance]]:
    """Yield the bands of each scale, fine to coarse, in the given directions: k stands for k * 30 degrees.

    Scale 1 has the image's resolution, each further one half of the last, rounded up. Ends are mirrored.

    >>> stripes = np.tile([0.0, 0, 9, 9], (64, 16))
    >>> across, along = next(bands(stripes, (0, 3)))
    >>> across.shape, bool(abs(across).max() > 1), bool(abs(along).max() < 1e-9)
    ((64, 64), True, True)
    """
    kernels = sp5()
    low = _filtered(values, kernels.first)
    for scale in range(scales):
        if scale:
            low = np.ascontiguousarray(_filtered(low, kernels.next)[::2, ::2])
        yield [_filtered(low, kernels.directions[k]) for k in directions]


@functools.cache
def sp5() -> Kernels:
    """Return the kernels of the pyramid with six directions."""
    package = importlib.util.find_spec("pyrtools")
    if package is None or package.origin is None:  # pragma: no cover - it is a dependency
        raise ModuleNotFoundError("pyrtools")
    file = Path(package.origin).parent / "pyramids" / "filters.py"
    spec = importlib.util.spec_from_file_location("adverse_pyrtools_filters", file)
    if spec is None or spec.loader is None:  # pragma: no cover - it is a file of Python
        raise ModuleNotFoundError("pyrtools.pyramids.filters")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    filters: dict[str, Any] = module.steerable_filters("sp5_filters")
    side = round(len(filters["bfilts"]) ** 0.5)
    return Kernels(
        filters["lo0filt"],
        filters["lofilt"],
        tuple(column.reshape(side, side).T.copy() for column in filters["bfilts"].T),
    )


def _filtered(values: Luminance, kernel: Kernel) -> Luminance:
    """Correlate; OpenCV does so pixel by pixel for kernels of up to 11, whatever the number of threads."""
    out = cv2.filter2D(values, cv2.CV_64F, kernel, borderType=cv2.BORDER_REFLECT_101)
    return out.astype(np.float64, copy=False)

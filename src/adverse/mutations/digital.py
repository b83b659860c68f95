"""What happens to the numbers after the sensor: lost channels, lossy compression, fewer or shifted pixels."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from pydantic import Field

from adverse.errors import MutationError
from adverse.marks import Hazard, Strength
from adverse.mutations import area_kernels, pixels
from adverse.mutations.blur import smoothed
from adverse.mutations.hazards import COMPRESSED
from adverse.mutations.pixels import LUMA, affine
from adverse.plugins import mutation
from adverse.types import Image

JPEG_MOST_PX = 65500
"""Of libjpeg."""
Quality = Annotated[int, Field(ge=1, le=100)]
LUMA_ROW = np.array(LUMA)
CHROMA = {"Cb": (2, 1.772, (0.0, -0.344136, 1.772)), "Cr": (0, 1.402, (1.402, -0.714136, 0.0))}
"""Full-range BT.601: which channel a difference is taken of, its divisor, and what a unit adds to R, G, B."""

ELASTIC_SIGMA = 0.01
"""Smoothness of the displacement, as a share of rows and columns."""

ELASTIC_TRUNCATE = 3.0
"""Half-width of its smoothing kernel in standard deviations."""

COARSE_SIGMA_PX = 3.0
"""Least deviation on the coarser grid; cubic enlargement then errs by less than 1 %."""

ELASTIC_SHIFT = 0.005
"""Largest shift before smoothing, as a share of the rows (both ways, as in the reference)."""


@mutation(hazards=())
def identity(image: Image) -> Image:
    """Change nothing: the baseline that every mutated run is compared with."""
    return image.copy()


@mutation(hazards=(COMPRESSED,), strength=Strength("quality", 100, 1, whole=True, exact=False))
def jpeg(image: Image, *, quality: Quality) -> Image:
    """Encode as JPEG and decode, as Pillow does: chroma at half resolution (Pezzementi et al. 2018, III-A.4).

    OpenCV, Pillow and simplejpeg carry the same codec and give the same bytes; OpenCV copies least on the way
    there, and simplejpeg on the way back.
    """
    source = pixels.pixels(image)
    colour = source.shape[2] == 3
    stored = cv2.cvtColor(source, cv2.COLOR_RGB2BGR) if colour else source
    encoded, data = cv2.imencode(".jpg", stored, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not encoded:
        raise MutationError(
            "the image is too large for JPEG",
            got=f"{image.shape[0]}x{image.shape[1]}",
            wanted=f"at most {JPEG_MOST_PX} pixels a side",
        )
    read: Image = simplejpeg.decode_jpeg(data, "RGB" if colour else "GRAY")
    return read.reshape(image.shape)


@mutation(hazards=(Hazard("observer", "channels", "part of", "a channel of the image is lost"),))
def channel_dropout(image: Image, *, channel: Literal["R", "G", "B", "Cb", "Cr"]) -> Image:
    """Store 0 in one channel of RGB, or of full-range BT.601 YCbCr (Pezzementi et al. 2018, III-A.6).

    A dropped Cb or Cr is 0, not the neutral 128, as the paper says. A gray image is taken as R = G = B, and
    stays gray: what is left is the luma of the result.

    >>> channel_dropout(np.full((1, 1, 3), 100, np.uint8), channel="G")
    array([[[100,   0, 100]]], dtype=uint8)
    """
    source = pixels.pixels(image)
    if source.shape[2] == 3:
        return _without(source, channel)
    ramp = np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
    table: Image = np.rint(_without(ramp, channel)[0] @ LUMA_ROW).astype(np.uint8)
    return table[image]


def _without(colours: Image, channel: str) -> Image:
    matrix, shift = np.eye(3), np.zeros(3)
    if channel in CHROMA:
        source, divisor, adds = CHROMA[channel]
        difference = (matrix[source] - LUMA_ROW) / divisor
        matrix -= np.outer(adds, difference)
        shift -= 128 * np.array(adds)
    else:
        matrix["RGB".index(channel)] = 0
    return affine(colours, matrix, shift)


def pixelate(image: Image, share: float) -> Image:
    """Shrink to `share` of rows and columns by averaging boxes, and enlarge again, as Pillow does."""
    source = pixels.pixels(image)
    row, row_of = _boxes(source.shape[0], share)
    column, column_of = _boxes(source.shape[1], share)
    out = np.empty_like(source)
    area_kernels.pixelate(source, row, column, row_of, column_of, out)
    return out.reshape(image.shape)


def _boxes(size: int, share: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (begin, end) of each box, and which box each pixel is shown from."""
    count = max(int(size * share), 1)
    scale = size / count
    centre = (np.arange(count) + 0.5) * scale
    begin = np.maximum((centre - scale / 2 + 0.5).astype(np.int64), 0)
    end = np.minimum((centre + scale / 2 + 0.5).astype(np.int64), size)
    # A pixel whose middle lies on an edge belongs to the box before it, as far as rounding can tell.
    begin += (begin - centre + 0.5) / scale <= -0.5
    end -= (end - 1 - centre + 0.5) / scale > 0.5
    # Pillow adds the step up from pixel to pixel, and its rounding decides where a pixel falls on an edge.
    step = np.full(size, count / size)
    step[0] /= 2
    return np.stack([begin, end], axis=1), np.add.accumulate(step).astype(np.int64)


def elastic(image: Image, *, alpha: float, rng: np.random.Generator) -> Image:
    """Move every pixel by a smooth random displacement, `alpha` times as far; mirrored, truncates."""
    source = pixels.pixels(image)
    rows, columns = image.shape[:2]
    across, down = _displacement((rows, columns), rng), _displacement((rows, columns), rng)
    out = np.empty_like(source)
    area_kernels.warp(source, down, across, alpha * ELASTIC_SHIFT * rows, out)
    return out.reshape(image.shape)


def _displacement(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return uniform noise of at most 1, smoothed by ELASTIC_SIGMA of its rows and columns.

    A field so smooth needs no value for every pixel: where the deviation is large it is made on a coarser
    grid, of noise as much weaker as there is less of it, and enlarged.
    """
    sigma = [ELASTIC_SIGMA * size for size in shape]
    step = [max(int(deviation / COARSE_SIGMA_PX), 1) for deviation in sigma]
    coarse = pixels.uniform((-(-shape[0] // step[0]), -(-shape[1] // step[1])), rng)
    coarse *= np.float32(1 / math.sqrt(step[0] * step[1]))
    smooth = smoothed(
        coarse,
        (sigma[0] / step[0], sigma[1] / step[1]),
        border=cv2.BORDER_REFLECT,
        truncate=ELASTIC_TRUNCATE,
    )
    if step == [1, 1]:
        return smooth
    size = (coarse.shape[1] * step[1], coarse.shape[0] * step[0])
    large = cv2.resize(smooth, size, interpolation=cv2.INTER_CUBIC)
    return np.ascontiguousarray(large[: shape[0], : shape[1]], np.float32)

"""What lies on the glass before a lens: blots of water or mud, out of focus, in place over all of a log.

A camera that is focused on the scene sees its front glass blurred by the width of its aperture: what lies
there is a layer with soft rims, and through the part of the aperture that it leaves free the scene is seen as
sharp as ever. The layer is soft, so it is drawn on a coarse grid, blurred there, and laid over the image in
linear light.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.
# ruff: noqa: C901

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from adverse.mutations import pixels
from adverse.mutations.blur import smoothed
from adverse.mutations.compiled import kernel
from adverse.mutations.linear_light import CODED, LIGHT, STEPS
from adverse.plugins import NonNegative
from adverse.types import Image

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
I32 = NDArray[np.int32]

CELLS_PER_BLUR = 4
"""The grid is so fine that the blur is four cells wide."""

LARGEST_CELL_PX = 16
BATCH = 480
"""Blots drawn at a time."""

BLUR_SIGMAS = 3.0
"""Half-width of the blur's kernel in standard deviations."""

LEAST_RADIUS = 0.75
"""Of a cell: a blot of this size covers at least one."""


@dataclass(frozen=True)
class FrontGlass:
    """The glass: its distance, the aperture that it is seen through, and the width of the view."""

    glass_mm: Annotated[float, Field(ge=1, le=10000)] = 40.0
    aperture_mm: Annotated[NonNegative, Field(le=100)] = 1.2
    fov_deg: Annotated[float, Field(gt=0, le=170)] = 60.0

    def focal_px(self, columns: int) -> float:
        """Return the focal length in pixels of an image of that many columns."""
        return columns / 2 / math.tan(math.radians(self.fov_deg) / 2)

    def pixels_per_mm(self, columns: int) -> float:
        """Return how large a millimetre on the glass is in the image."""
        return self.focal_px(columns) / self.glass_mm


class Grid(NamedTuple):
    """A coarse grid over an image: its size in cells, pixels per cell, and pixels per mm of the glass."""

    rows: int
    columns: int
    cell_px: int
    px_per_mm: float
    blur_px: float


class Blots(NamedTuple):
    """Which blot lies on each cell (-1: none), and where in it the cell is.

    `away` is the offset from the blot's middle, (rows, columns, 2) as (across, down), in its own radii: 1 is
    the rim.
    """

    owner: I32
    away: F32


def grid_of(image: Image, glass: FrontGlass) -> Grid:
    """Return the grid on which the blur of the glass is some cells wide."""
    rows, columns = image.shape[:2]
    scale = glass.pixels_per_mm(columns)
    blur = glass.aperture_mm * scale
    cell = int(min(max(blur / CELLS_PER_BLUR, 1), LARGEST_CELL_PX, max(min(rows, columns) / 8, 1)))
    return Grid(-(-rows // cell), -(-columns // cell), cell, scale, blur)


def covered(
    grid: Grid, coverage: float, draw: Callable[[int], F32], radius_mm: float, stretch: float
) -> Blots:
    """Lay blots until a share of the cells is covered; the last one is shrunk to meet it.

    `draw(n)` returns the next n blots: middle (across, down, of 1), radius (of `radius_mm`), and the two
    amplitudes and two phases of its outline. Blots whose middle is already covered flow into what lies there.
    More coverage with the same draws adds blots and moves none.
    """
    owner = np.full((grid.rows, grid.columns), -1, np.int32)
    away = np.zeros((grid.rows, grid.columns, 2), np.float32)
    target, count, laid = round(coverage * owner.size), 0, 0
    radius = radius_mm * grid.px_per_mm / grid.cell_px
    while count < target:
        batch = draw(BATCH)
        batch[:, 2] = np.maximum(batch[:, 2] * np.float32(radius), np.float32(LEAST_RADIUS))
        reach = 2 * np.float32(radius)
        batch[:, 0] = batch[:, 0] * (grid.columns + 2 * reach) - reach
        batch[:, 1] = batch[:, 1] * (grid.rows + 2 * reach) - reach
        count = lay_blots(batch, laid, stretch, target, count, owner, away)
        laid += BATCH
    return Blots(owner, away)


def empty_layer(image: Image, grid: Grid) -> F32:
    """Return a layer that covers nothing: for each cell its cover, 0 or 1, then its light by channel."""
    channels = image.shape[2] if image.ndim == 3 else 1
    return np.zeros((grid.rows, grid.columns, channels + 1), np.float32)


def laid_over(image: Image, grid: Grid, layer: F32) -> Image:
    """Lay a layer over the image, out of focus: what passes beside it, plus its own linear light."""
    source = pixels.pixels(image)
    sigma = grid.blur_px / 4 / grid.cell_px  # a disc has a quarter of its diameter
    if sigma > 0.1:
        layer = smoothed(layer, sigma, border=cv2.BORDER_REPLICATE, truncate=BLUR_SIGMAS)
    out = np.empty_like(source)
    lay_over(source, layer.reshape(grid.rows, -1), grid.cell_px, LIGHT, CODED, STEPS, out)
    return out.reshape(image.shape)


def seen_from(image: Image, size: tuple[int, int]) -> F32:
    """Return the linear light of the image at a coarser size, (rows, columns, channels)."""
    rows, columns = size
    small = cv2.resize(pixels.pixels(image), (columns, rows), interpolation=cv2.INTER_AREA)
    light: F32 = LIGHT[small].reshape(rows, columns, -1)
    return light


@kernel("int64(float32[:, ::1], int64, float32, int64, int64, int32[:, ::1], float32[:, :, ::1])")
def lay_blots(blots: F32, first: int, stretch: float, target: int, count: int, owner: I32, away: F32) -> int:
    """Lay blots on cells that are free, until so many are covered; returns how many are.

    A blot's rim is its radius times 1 plus two waves, of two and of three periods around it; `stretch` makes
    it longer than wide. Of the last blot the innermost cells are kept.
    """
    rows, columns = owner.shape
    place = np.empty(owner.size, np.int64)
    inside = np.empty((owner.size, 3), np.float32)
    for n in range(blots.shape[0]):
        x, y, radius = blots[n, 0], blots[n, 1], blots[n, 2]
        two, three = blots[n, 3], blots[n, 4]
        at_x, at_y = math.floor(x), math.floor(y)
        if count >= target:
            return count
        if 0 <= at_x < columns and 0 <= at_y < rows and owner[at_y, at_x] >= 0:
            continue
        cos_2, sin_2 = np.float32(math.cos(blots[n, 5])), np.float32(math.sin(blots[n, 5]))
        cos_3, sin_3 = np.float32(math.cos(blots[n, 6])), np.float32(math.sin(blots[n, 6]))
        reach = radius * (np.float32(1) + two + three)
        new = 0
        for v in range(max(0, int(y - reach * stretch)), min(rows, int(y + reach * stretch) + 1)):
            dy = (np.float32(v) + np.float32(0.5) - y) / (radius * np.float32(stretch))
            for u in range(max(0, int(x - reach)), min(columns, int(x + reach) + 1)):
                if owner[v, u] >= 0:
                    continue
                dx = (np.float32(u) + np.float32(0.5) - x) / radius
                square = max(dx * dx + dy * dy, np.float32(1e-12))
                far = np.float32(math.sqrt(square))
                once = (cos_2 * (dx * dx - dy * dy) - sin_2 * np.float32(2) * dx * dy) / square
                again = cos_3 * (dx * dx - np.float32(3) * dy * dy) * dx
                again -= sin_3 * (np.float32(3) * dx * dx - dy * dy) * dy
                rim = np.float32(1) + two * once + three * again / (square * far)
                if far < rim:
                    place[new] = v * columns + u
                    inside[new, 0], inside[new, 1], inside[new, 2] = dx / rim, dy / rim, far / rim
                    new += 1
        limit = np.float32(1)
        if count + new > target:
            limit = np.sort(inside[:new, 2])[target - count]
        for k in range(new):
            if inside[k, 2] < limit:
                v, u = place[k] // columns, place[k] % columns
                owner[v, u] = first + n
                away[v, u, 0], away[v, u, 1] = inside[k, 0] / limit, inside[k, 1] / limit
                count += 1
    return count


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), Array(float32, 2, 'C', readonly=True), int64, "
    "Array(float32, 1, 'C', readonly=True), Array(uint8, 1, 'C', readonly=True), int64, uint8[:, :, ::1])"
)
def lay_over(image: U8, layer: F32, cell: int, light: F32, coded: U8, steps: int, out: U8) -> None:
    """Write image * (1 - cover) + layer in linear light; the layer is enlarged bilinearly by its cell.

    Each cell of the layer has its cover, then its light for each channel. Where it covers nothing, the image
    stays as it is.
    """
    rows, columns, channels = image.shape
    planes = channels + 1
    cells = layer.shape[1] // planes
    line = np.empty((cells + 1) * planes, np.float32)
    left, share = np.empty(columns, np.int64), np.empty(columns, np.float32)
    for x in range(columns):
        at = min(max((np.float32(x) + np.float32(0.5)) / np.float32(cell) - np.float32(0.5), 0), cells - 1)
        left[x] = int(at) * planes
        share[x] = at - np.float32(int(at))
    top, half = np.float32(steps), np.float32(0.5)
    for y in range(rows):
        at = (np.float32(y) + np.float32(0.5)) / np.float32(cell) - np.float32(0.5)
        at = min(max(at, np.float32(0)), np.float32(layer.shape[0] - 1))
        above = int(at)
        below = min(above + 1, layer.shape[0] - 1)
        part = at - np.float32(above)
        upper, lower = layer[above], layer[below]
        for i in range(cells * planes):
            line[i] = upper[i] + (lower[i] - upper[i]) * part
        for i in range(planes):
            line[cells * planes + i] = line[(cells - 1) * planes + i]
        source, target = image[y], out[y]
        for x in range(columns):
            i, to_right = left[x], share[x]
            clear = np.float32(1) - (line[i] + (line[i + planes] - line[i]) * to_right)
            if clear > np.float32(0.999):
                for c in range(channels):
                    target[x, c] = source[x, c]
            elif channels == 3:
                red = light[source[x, 0]] * clear + line[i + 1] + (line[i + 5] - line[i + 1]) * to_right
                green = light[source[x, 1]] * clear + line[i + 2] + (line[i + 6] - line[i + 2]) * to_right
                blue = light[source[x, 2]] * clear + line[i + 3] + (line[i + 7] - line[i + 3]) * to_right
                target[x, 0] = coded[np.int32(min(red * top + half, top))]
                target[x, 1] = coded[np.int32(min(green * top + half, top))]
                target[x, 2] = coded[np.int32(min(blue * top + half, top))]
            else:
                gray = light[source[x, 0]] * clear + line[i + 1] + (line[i + 3] - line[i + 1]) * to_right
                target[x, 0] = coded[np.int32(min(gray * top + half, top))]

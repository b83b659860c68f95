"""Blur by motion: of the camera across the scene, and towards it."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.marks import Strength
from adverse.mutations import area_kernels, pixels
from adverse.mutations.hazards import CAMERA_MOVES
from adverse.plugins import NonNegative, mutation, unchanged_at
from adverse.types import Image

LINE_STEPS = 64
"""Shifts that are averaged, for each pixel of a motion's length."""

ZOOM_BLOCK = 100_000
"""Values to which all zooms are added before the next ones: few enough to stay in the cache."""


@mutation(name="motion_blur", hazards=(CAMERA_MOVES,), strength=Strength("length_px", 0, 100, power=2))
def steady_motion_blur(
    image: Image, *, length_px: Annotated[NonNegative, unchanged_at(0)], angle_deg: float = 0.0
) -> Image:
    """Blur along a line, as when the camera moves steadily by `length_px` while the shutter is open.

    The mean of the image shifted by every distance from half of that length back to half of it ahead, between
    pixels linearly. `angle_deg` is the direction: 0 across, 90 down. Border pixels are repeated.

    >>> steady_motion_blur(np.array([[0, 0, 90, 0, 0]], np.uint8), length_px=3.0)
    array([[ 4, 26, 30, 26,  4]], dtype=uint8)
    """
    if length_px == 0:
        return image.copy()
    source = pixels.pixels(image).astype(np.float32)
    line = _line(length_px, angle_deg)
    out = cv2.filter2D(source, cv2.CV_32F, line, borderType=cv2.BORDER_REPLICATE)
    rounded: Image = (out + np.float32(pixels.ROUND)).astype(np.uint8)
    return rounded.reshape(image.shape)


class Track(NamedTuple):
    """Where the light of a pixel goes while the camera moves: shifts in pixels, and their weights."""

    down: NDArray[np.int64]
    right: NDArray[np.int64]
    weight: NDArray[np.float64]


def track(radius: int, sigma: float, angle_deg: float, shape: tuple[int, int]) -> Track:
    """Return 2 * radius + 1 steps along a line, weighted by one half of a Gaussian.

    As in the reference, steps that would leave the image end the track, and the weight they had is lost.
    """
    step = np.arange(2 * radius + 1)
    weight = np.exp(-0.5 * (step / sigma) ** 2)
    angle = math.radians(angle_deg)
    down = -np.ceil(step * math.sin(angle) - 0.5).astype(np.int64)
    right = -np.ceil(step * math.cos(angle) - 0.5).astype(np.int64)
    leaves = (np.abs(down) >= shape[0]) | (np.abs(right) >= shape[1])
    count = int(np.argmax(leaves)) if leaves.any() else len(step)
    return Track(down[:count], right[:count], (weight / weight.sum())[:count])


def motion_blur(image: NDArray[Any], path: Track, *, gain: float = 1.0, offset: float = 0.0) -> Image:
    """Sum shifted copies of the image, replicating its border, times `gain` plus `offset`, truncated."""
    source = image.reshape(image.shape[0], image.shape[1], -1)
    top, bottom = max(int(path.down.max()), 0), max(int(-path.down.min()), 0)
    left, right = max(int(path.right.max()), 0), max(int(-path.right.min()), 0)
    padded = cv2.copyMakeBorder(source, top, bottom, left, right, cv2.BORDER_REPLICATE)
    values = pixels.rows(np.ascontiguousarray(padded, np.float32))
    shifts: dict[tuple[int, int], float] = {}
    for down, across, weight in zip(path.down.tolist(), path.right.tolist(), path.weight, strict=True):
        place = (top - down, (left - across) * source.shape[2])
        shifts[place] = shifts.get(place, 0.0) + float(weight) * gain
    spare = -len(shifts) % 4  # the kernel takes four at a time
    row, column = np.array([*shifts, *[(0, 0)] * spare]).T.copy()
    weights = np.pad(np.array(list(shifts.values()), np.float32), (0, spare))
    out = np.empty(source.shape, np.uint8)
    area_kernels.sum_shifted(values, row, column, weights, offset, pixels.rows(out))
    return out.reshape(image.shape)


class Zoomed(NamedTuple):
    """Where an enlarged middle comes from, as `area_kernels.add_zoomed` takes it."""

    row: NDArray[np.int64]
    row_part: NDArray[np.float32]
    first: int
    last: int
    run: NDArray[np.int64]
    shift: NDArray[np.int64]
    part: NDArray[np.float32]


def zoom_blur(image: Image, factors: list[float]) -> Image:
    """Average the image with versions of itself zoomed in about the centre; truncates."""
    source = pixels.pixels(image)
    height, width, channels = source.shape
    values = pixels.rows(source).astype(np.float32)
    out = np.empty(values.shape, np.uint8)
    versions = [_zoomed(height, width, channels, factor) for factor in factors if factor != 1]
    step = max(ZOOM_BLOCK // values.shape[1], 1)
    for top in range(0, height, step):
        total = values[top : top + step] * np.float32(1 + factors.count(1))
        for version in versions:
            down, parts = version.row[top : top + step], version.row_part[top : top + step]
            area_kernels.add_zoomed(values, channels, down, parts, *version[2:], total[: len(down)])
        total *= np.float32(1 / (len(factors) + 1))
        total += np.float32(pixels.HAIR)
        out[top : top + step] = total
    return out.reshape(image.shape)


def add_zoomed(values: NDArray[np.float32], factor: float, total: NDArray[np.float32]) -> None:
    """Add the middle of `values`, enlarged bilinearly, to `total`; both (rows, columns, channels), flat.

    The first and last sample of the middle part land on the first and last sample of the result, which is
    cropped to the image at its lower right (scipy.ndimage.zoom's grid).
    """
    area_kernels.add_zoomed(pixels.rows(values), values.shape[2], *_zoomed(*values.shape, factor), total)


@functools.lru_cache(maxsize=128)
def _zoomed(height: int, width: int, channels: int, factor: float) -> Zoomed:
    down, first_row = _grid(height, factor)
    across, first_column = _grid(width, factor)
    shift = np.repeat(np.arange(len(across)) - across.astype(np.int64), channels) * channels
    run = np.flatnonzero(np.diff(shift, prepend=-1))
    return Zoomed(
        first_row + down.astype(np.int64),
        (down % 1).astype(np.float32),
        first_column * channels,
        (first_column + math.ceil(width / factor)) * channels,
        np.append(run, len(shift)),
        shift[run],
        np.repeat((across % 1).astype(np.float32), channels),
    )


def _grid(size: int, factor: float) -> tuple[NDArray[np.float64], int]:
    """Return where, in the cut-out middle, each pixel of the enlarged image comes from, and its start."""
    count = math.ceil(size / factor)
    enlarged = round(count * factor)
    step = (count - 1) / (enlarged - 1) if enlarged > 1 else 0.0
    return np.arange(min(size, enlarged), dtype=np.float64) * step, (size - count) // 2


def _line(length_px: float, angle_deg: float) -> NDArray[np.float32]:
    """Return the weights of a line about the middle, its points shared between the four pixels around."""
    steps = LINE_STEPS * math.ceil(length_px)
    along = ((np.arange(steps) + 0.5) / steps - 0.5) * length_px
    angle = math.radians(angle_deg)
    down, right = along * math.sin(angle), along * math.cos(angle)
    reach = math.ceil(length_px / 2) + 1
    line = np.zeros((2 * reach + 1, 2 * reach + 1))
    row, column = np.floor(down).astype(np.int64), np.floor(right).astype(np.int64)
    for i in (0, 1):
        for j in (0, 1):
            share = np.abs(1 - i - (down - row)) * np.abs(1 - j - (right - column))
            np.add.at(line, (row + i + reach, column + j + reach), share)
    weights: NDArray[np.float32] = (line / line.sum()).astype(np.float32)
    return weights

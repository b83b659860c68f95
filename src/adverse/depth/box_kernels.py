"""The loops of `boxes`, compiled: the depth of each box, by modes of its log-depth or by medians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

ACROSS, DOWN = 0.3, 0.4
"""How fast weights fall from the middle of the box: standard deviations, in widths and heights of it."""
RESOLUTION = 0.08
"""Standard deviation of the kernel over log-depth: what differs by less than about 8 % is one thing."""
STRONG = 0.7
"""A mode is strong if it reaches this share of the strongest."""
BINS_PER_UNIT = 50
NEAREST_M, FURTHEST_M = 0.1, 1000.0
"""Depths beyond these count in the first and the last bin."""
MOST_ACROSS = 64
"""Large boxes are read at every second, third ... column and row, but at no fewer than this."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def foreground(depth: Any, boxes: Any) -> Any:  # pragma: no cover - compiled
    """Return the depth (N,) of the nearest strong mode in each box (N,4); NaN without a valid pixel."""
    found = np.full(len(boxes), np.nan, np.float32)
    lowest = math.log(NEAREST_M)
    bins = int((math.log(FURTHEST_M) - lowest) * BINS_PER_UNIT) + 1
    reach = int(3 * RESOLUTION * BINS_PER_UNIT)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / (RESOLUTION * BINS_PER_UNIT)) ** 2)
    for b in range(len(boxes)):
        left, top, right, bottom = touched_pixels(depth.shape, boxes[b])
        weight, moment = np.zeros(bins), np.zeros(bins)
        sky = 0.0
        any_valid = False
        across = _weights(left, right, boxes[b, 0], boxes[b, 2], ACROSS)
        down = _weights(top, bottom, boxes[b, 1], boxes[b, 3], DOWN)
        for y in range(top, bottom, max((bottom - top) // MOST_ACROSS, 1)):
            for x in range(left, right, max((right - left) // MOST_ACROSS, 1)):
                z = depth[y, x]
                if not z > 0:
                    continue
                any_valid = True
                w = across[x - left] * down[y - top]
                if z == np.inf:
                    sky += w
                else:
                    log = math.log(z)
                    at = min(max(int((log - lowest) * BINS_PER_UNIT), 0), bins - 1)
                    weight[at] += w
                    moment[at] += w * log
        if any_valid:
            found[b] = _nearest_mode(weight, moment, sky, kernel)
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _nearest_mode(weight: Any, moment: Any, sky: float, kernel: Any) -> float:  # pragma: no cover - compiled
    """Return the depth of the nearest of the strong modes; the sky is one, at +inf."""
    bins, reach = len(weight), len(kernel) // 2
    density = np.zeros(bins + 2)  # one empty bin at either end, so that every mode has two neighbours
    for at in range(bins):
        if weight[at] > 0:
            for near in range(max(at - reach, 0), min(at + reach + 1, bins)):
                density[near + 1] += weight[at] * kernel[near - at + reach]
    needed = STRONG * max(density.max(), sky)
    for at in range(bins):
        here = density[at + 1]
        if here > 0 and here >= needed and here > density[at] and here >= density[at + 2]:
            log = 0.0  # of the pixels around, each by the kernel: finer than a bin
            for near in range(max(at - reach, 0), min(at + reach + 1, bins)):
                log += moment[near] * kernel[near - at + reach]
            return math.exp(log / here)
    return np.inf


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _weights(  # pragma: no cover - compiled
    first: int, last: int, low: float, high: float, deviation: float
) -> Any:
    """Return the weight of each pixel along one side of a box, by the distance from its middle."""
    away = (np.arange(first, last) + 0.5 - (low + high) / 2) / max(high - low, 1.0)
    return np.exp(-0.5 * (away / deviation) ** 2)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def touched_pixels(shape: Any, box: Any) -> Any:  # pragma: no cover - compiled
    """Return left, top, right, bottom of the pixels that a box touches."""
    return (
        max(int(np.floor(box[0])), 0),
        max(int(np.floor(box[1])), 0),
        min(int(np.ceil(box[2])), shape[1]),
        min(int(np.ceil(box[3])), shape[0]),
    )


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def box_medians(depth: Any, boxes: Any) -> Any:  # pragma: no cover - compiled
    """Return the median (N,) of the rows' medians in each box (N,4); NaN without a valid pixel."""
    depths = np.full(len(boxes), np.nan, np.float32)
    line = np.empty(depth.shape[1], np.float32)
    medians = np.empty(depth.shape[0], np.float32)
    for b in range(len(boxes)):
        left, top, right, bottom = touched_pixels(depth.shape, boxes[b])
        rows_used = 0
        for y in range(top, bottom):
            count = 0
            for x in range(left, right):
                if depth[y, x] > 0:
                    line[count] = depth[y, x]
                    count += 1
            if count:
                medians[rows_used] = np.median(line[:count])
                rows_used += 1
        if rows_used:
            depths[b] = np.median(medians[:rows_used])
    return depths

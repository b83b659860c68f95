"""Compiled loops that scatter: every pixel spreads its colour over its neighbours by a Gaussian of its own.

Sums are kept with the channels of a pixel side by side, and the sum of weights after them.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.
# ruff: noqa: C901, PLR0912

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

SHORT_GAP = 4
"""Pixels of other layers that a run may bridge beyond the reach of its kernel; starting a run costs more."""


@kernel("void(Array(uint8, 3, 'C', readonly=True), float32[:, ::1], float32, float32, float32[:, ::1])")
def scatter_exactly(image: U8, radius: F32, least: float, truncate: float, sums: F32) -> None:
    """Add up what every pixel spreads, one pixel at a time; below the least radius it stays where it is."""
    rows, columns, channels = image.shape
    planes = channels + 1
    widest = np.float32(0)
    for y in range(rows):
        for x in range(columns):
            widest = max(widest, radius[y, x])
    taps = np.empty(2 * math.ceil(widest * truncate) + 1, np.float32)
    for y in range(rows):
        for x in range(columns):
            sigma = radius[y, x]
            reach = math.ceil(sigma * truncate) if sigma >= least else 0
            total = np.float32(0)
            for k in range(-reach, reach + 1):
                taps[k + reach] = math.exp(-0.5 * (k / sigma) ** 2) if reach else 1.0
                total += taps[k + reach]
            for v in range(max(y - reach, 0), min(y + reach + 1, rows)):
                down = taps[v - y + reach] / (total * total)
                for u in range(max(x - reach, 0), min(x + reach + 1, columns)):
                    weight = down * taps[u - x + reach]
                    for c in range(channels):
                        sums[v, u * planes + c] += weight * np.float32(image[y, x, c])
                    sums[v, u * planes + channels] += weight


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), float32[:, ::1], float32, float32[::1], float32[:, ::1], "
    "int64[::1], float32[:, ::1])",
    reorder=True,
)
def scatter_in_layers(
    image: U8, radius: F32, scale: float, place: F32, taps: F32, reach: I64, sums: F32
) -> None:
    """Add up what every pixel spreads, sharing each between the two layers nearest to its radius.

    place[radius * scale] is the layer's number, with a fraction that says how much goes to the next one. All
    of a layer has one kernel, so a run of its pixels in a row is smoothed across and then added to the rows
    around it.
    """
    rows, columns, channels = image.shape
    planes, layers = channels + 1, reach.size
    widest = min(reach.max(), columns)
    layer = np.empty(columns, np.float32)
    start, end = np.empty(layers, np.int64), np.empty(layers, np.int64)
    source = np.empty((columns + 4 * widest) * planes, np.float32)
    across = np.empty((columns + 2 * widest) * planes, np.float32)
    for y in range(rows):
        for x in range(columns):
            at = radius[y, x] * np.float32(scale)
            k = min(int(at), place.size - 2)
            layer[x] = place[k] + (place[k + 1] - place[k]) * (at - np.float32(k))
        start[:] = -1
        for x in range(columns + 1):
            first, stop = 0, layers
            if x < columns:
                first = int(layer[x])
                stop = min(first + 2, layers)
            for n in range(first, stop):
                r = min(reach[n], columns)  # what is further away is outside
                if start[n] >= 0 and (x == columns or x - end[n] >= 2 * r + SHORT_GAP):
                    begin, size = start[n], end[n] - start[n]
                    start[n] = -1
                    source[: 2 * r * planes] = 0
                    source[(size + 2 * r) * planes : (size + 4 * r) * planes] = 0
                    for i in range(size):
                        weight = max(np.float32(0), np.float32(1) - abs(layer[begin + i] - np.float32(n)))
                        to = (i + 2 * r) * planes
                        for c in range(channels):
                            source[to + c] = weight * np.float32(image[y, begin + i, c])
                        source[to + channels] = weight
                    values = (size + 2 * r) * planes
                    middle = source[r * planes : r * planes + values]
                    for i in range(values):
                        across[i] = taps[n, 0] * middle[i]
                    for k in range(1, r + 1):
                        left, right = source[(r - k) * planes :], source[(r + k) * planes :]
                        for i in range(values):
                            across[i] += taps[n, k] * (left[i] + right[i])
                    low, high = max(begin - r, 0) * planes, min(begin + size + r, columns) * planes
                    spread = across[low - (begin - r) * planes :]
                    for k in range(max(-reach[n], -y), min(reach[n] + 1, rows - y)):
                        target = sums[y + k, low:high]
                        share = taps[n, abs(k)]
                        for i in range(high - low):
                            target[i] += share * spread[i]
                if x < columns:
                    if start[n] < 0:
                        start[n] = x
                    end[n] = x + 1


@kernel("void(float32[:, ::1], uint8[:, :, ::1])")
def divide_by_weight(sums: F32, out: U8) -> None:
    """Write the sums over their weights, rounded."""
    rows, columns, channels = out.shape
    planes = channels + 1
    for y in range(rows):
        for x in range(columns):
            share = np.float32(1) / sums[y, x * planes + channels]
            for c in range(channels):
                value = sums[y, x * planes + c] * share + np.float32(0.5)
                out[y, x, c] = np.uint8(np.int32(min(value, np.float32(255))))

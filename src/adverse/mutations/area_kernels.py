"""Compiled loops in which a pixel depends on its neighbours: shifts, zooms, boxes, warps, scatters.

Rows of an image are flat here, channels side by side, so that one loop serves gray and colour: a step of one
pixel to the right is a step of `channels` values. The caller has padded what is read beyond the border.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.
# ruff: noqa: C901, PLR0912

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel
from adverse.mutations.pixel_kernels import random_words

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

CHUNK = 1024
"""Values of a row summed at a time: few enough to stay in the nearest cache."""

FIXED_POINT = 22
"""Fraction bits of Pillow's means of 8-bit values."""


@kernel("void(float32[:, ::1], int64[::1], int64[::1], float32[::1], float32, uint8[:, ::1])", reorder=True)
def sum_shifted(padded: F32, row: I64, column: I64, weight: F32, offset: float, out: U8) -> None:
    """Write the weighted sum of shifted copies; the number of shifts is a multiple of four."""
    total = np.empty(CHUNK, np.float32)
    for y in range(out.shape[0]):
        for start in range(0, out.shape[1], CHUNK):
            target = out[y, start : start + CHUNK]
            n = target.size
            total[:n] = np.float32(offset)
            for k in range(0, weight.size, 4):
                a = padded[y + row[k], start + column[k] : start + column[k] + n]
                b = padded[y + row[k + 1], start + column[k + 1] : start + column[k + 1] + n]
                c = padded[y + row[k + 2], start + column[k + 2] : start + column[k + 2] + n]
                d = padded[y + row[k + 3], start + column[k + 3] : start + column[k + 3] + n]
                wa, wb, wc, wd = weight[k], weight[k + 1], weight[k + 2], weight[k + 3]
                for i in range(n):
                    total[i] += wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i]
            for i in range(n):
                target[i] = np.uint8(np.int32(min(total[i], np.float32(255))))


@kernel(
    "void(Array(float32, 2, 'C', readonly=True), int64, int64[::1], float32[::1], int64, int64, int64[::1], "
    "int64[::1], float32[::1], float32[:, ::1])",
    reorder=True,
)
def add_zoomed(
    source: F32,
    channels: int,
    row: I64,
    row_part: F32,
    first: int,
    last: int,
    run: I64,
    shift: I64,
    part: F32,
    out: F32,
) -> None:
    """Add bilinear values of `source`: row[y] + row_part[y] down, and across in runs.

    Values run[k] to run[k + 1] of a row come from those shift[k] further left in the values first to last of
    the source, mixed with the next pixel's by `part`: runs of neighbours stay neighbours, which is fast.
    """
    size = last - first
    line = np.empty(size + channels, np.float32)
    for y in range(row.size):
        upper, lower = source[row[y], first:last], source[min(row[y] + 1, source.shape[0] - 1), first:last]
        down = row_part[y]
        for i in range(size):
            line[i] = upper[i] + (lower[i] - upper[i]) * down
        line[size:] = line[size - channels : size]
        for k in range(shift.size):
            start, stop = run[k], run[k + 1]
            near = line[start - shift[k] : stop - shift[k]]
            far = line[start - shift[k] + channels : stop - shift[k] + channels]
            target, share = out[y, start:stop], part[start:stop]
            for i in range(stop - start):
                target[i] += near[i] + (far[i] - near[i]) * share[i]


@kernel("void(Array(uint8, 1, 'C', readonly=True), uint32[::1])")
def _add_fours(line: U8, total: NDArray[np.uint32]) -> None:
    """Add the rounded means of four RGB pixels each: known widths spare the inner loop."""
    for b in range(total.size // 3):
        four = line[12 * b : 12 * b + 12]
        for c in range(3):
            few = (
                np.uint32(four[c]) + np.uint32(four[c + 3]) + np.uint32(four[c + 6]) + np.uint32(four[c + 9])
            )
            total[3 * b + c] += (few + np.uint32(2)) >> np.uint32(2)


@kernel("void(Array(uint8, 1, 'C', readonly=True), uint32[::1])")
def _add_twos(line: U8, total: NDArray[np.uint32]) -> None:
    """Add the rounded means of two RGB pixels each."""
    for b in range(total.size // 3):
        two = line[6 * b : 6 * b + 6]
        for c in range(3):
            total[3 * b + c] += (np.uint32(two[c]) + np.uint32(two[c + 3]) + np.uint32(1)) >> np.uint32(1)


@kernel("void(Array(uint8, 1, 'C', readonly=True), int64[:, ::1], uint32[::1], uint32[::1])")
def _add_boxes(line: U8, column: I64, shares: NDArray[np.uint32], total: NDArray[np.uint32]) -> None:
    """Add the rounded means of RGB pixels in boxes of any width."""
    half, bits = np.uint32(1 << (FIXED_POINT - 1)), np.uint32(FIXED_POINT)
    for b in range(len(column)):
        share = shares[b]
        red, green, blue = np.uint32(0), np.uint32(0), np.uint32(0)
        for i in range(3 * column[b, 0], 3 * column[b, 1], 3):
            red += np.uint32(line[i])
            green += np.uint32(line[i + 1])
            blue += np.uint32(line[i + 2])
        total[3 * b] += (red * share + half) >> bits
        total[3 * b + 1] += (green * share + half) >> bits
        total[3 * b + 2] += (blue * share + half) >> bits


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], "
    "uint8[:, :, ::1])"
)
def pixelate(image: U8, row: I64, column: I64, row_of: I64, column_of: I64, out: U8) -> None:
    """Average boxes, first across, then down, each time rounded; `row` and `column` hold (begin, end).

    Pixel (y, x) of `out` gets box (row_of[y], column_of[x]). Means are taken in fixed point, as Pillow does.
    Long runs of boxes that are two or four pixels wide have loops of their own.
    """
    channels, boxes = image.shape[2], len(column)
    half, bits = np.uint32(1 << (FIXED_POINT - 1)), np.uint32(FIXED_POINT)
    total = np.empty(boxes * channels, np.uint32)
    small = np.empty(boxes * channels, np.uint8)
    place = column_of * channels
    shares = np.empty(boxes, np.uint32)
    for b in range(boxes):
        shares[b] = np.uint32((1 << FIXED_POINT) / (column[b, 1] - column[b, 0]) + 0.5)
    runs, few = np.empty((boxes, 3), np.int64), 0
    for b in range(boxes):
        width = column[b, 1] - column[b, 0]
        alike = few > 0 and runs[few - 1, 2] == width and column[b, 0] == column[b - 1, 1]
        if alike:
            runs[few - 1, 1] = b + 1
        else:
            runs[few, 0], runs[few, 1], runs[few, 2] = b, b + 1, width
            few += 1
    if 8 * few > boxes:  # too short to gain anything
        runs[0, 0], runs[0, 1], runs[0, 2], few = 0, boxes, 0, 1
    y = 0
    for k in range(len(row)):
        total[:] = 0
        for source in range(row[k, 0], row[k, 1]):
            line = image[source].reshape(-1)
            if channels == 3:
                for n in range(few):
                    first, last, width = runs[n, 0], runs[n, 1], runs[n, 2]
                    begin = 3 * column[first, 0]
                    if width == 4:
                        _add_fours(line[begin : begin + 12 * (last - first)], total[3 * first : 3 * last])
                    elif width == 2:
                        _add_twos(line[begin : begin + 6 * (last - first)], total[3 * first : 3 * last])
                    else:
                        _add_boxes(line, column[first:last], shares[first:last], total[3 * first : 3 * last])
            else:
                for b in range(boxes):
                    gray = np.uint32(0)
                    for i in range(column[b, 0], column[b, 1]):
                        gray += np.uint32(line[i])
                    total[b] += (gray * shares[b] + half) >> bits
        share = np.uint32((1 << FIXED_POINT) / (row[k, 1] - row[k, 0]) + 0.5)
        for i in range(total.size):
            small[i] = np.uint8((total[i] * share + half) >> bits)
        first = y
        while y < out.shape[0] and row_of[y] == k:
            made = out[y].reshape(-1)
            if y > first:
                made[:] = out[first].reshape(-1)
            elif channels == 3:
                for x in range(place.size):
                    made[3 * x] = small[place[x]]
                    made[3 * x + 1] = small[place[x] + 1]
                    made[3 * x + 2] = small[place[x] + 2]
            else:
                for x in range(place.size):
                    made[x] = small[place[x]]
            y += 1


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), float32[:, ::1], float32[:, ::1], float32, uint8[:, :, ::1])"
)
def warp(image: U8, row_shift: F32, column_shift: F32, scale: float, out: U8) -> None:
    """Sample bilinearly at each pixel's place plus its shift times `scale`, mirrored at the border."""
    rows, columns, channels = image.shape
    for y in range(rows):
        for x in range(columns):
            fy = np.float32(y) + row_shift[y, x] * np.float32(scale)
            fx = np.float32(x) + column_shift[y, x] * np.float32(scale)
            y0, x0 = np.int64(np.floor(fy)), np.int64(np.floor(fx))
            py, px = fy - np.float32(y0), fx - np.float32(x0)
            y1, x1 = y0 + 1, x0 + 1
            if y0 < 0 or x0 < 0 or y1 >= rows or x1 >= columns:
                y0, y1 = y0 % (2 * rows), y1 % (2 * rows)
                x0, x1 = x0 % (2 * columns), x1 % (2 * columns)
                y0 = min(y0, 2 * rows - 1 - y0)
                y1 = min(y1, 2 * rows - 1 - y1)
                x0 = min(x0, 2 * columns - 1 - x0)
                x1 = min(x1, 2 * columns - 1 - x1)
            for c in range(channels):
                a, b = np.float32(image[y0, x0, c]), np.float32(image[y0, x1, c])
                d, e = np.float32(image[y1, x0, c]), np.float32(image[y1, x1, c])
                upper, lower = a + (b - a) * px, d + (e - d) * px
                out[y, x, c] = np.uint8(np.int32(upper + (lower - upper) * py + np.float32(1e-3)))


@kernel("void(uint8[:, :, ::1], int64, uint64)")
def copy_neighbours(pixels: U8, reach: int, seed: np.uint64) -> None:
    """Copy a random neighbour into each pixel in turn, from the last to the first, in place."""
    rows, columns, channels = pixels.shape
    words = np.empty((columns + 1) // 2, np.uint64)
    halves = words.view(np.uint16)
    span = np.uint32(2 * reach)
    first = 0
    for y in range(rows - reach, reach, -1):
        random_words(seed, first, words)
        first += words.size
        for x in range(columns - reach, reach, -1):
            dx = np.int64((np.uint32(halves[2 * x - 2]) * span) >> np.uint32(16)) - reach
            dy = np.int64((np.uint32(halves[2 * x - 1]) * span) >> np.uint32(16)) - reach
            for c in range(channels):
                pixels[y, x, c] = pixels[y + dy, x + dx, c]


@kernel("void(float32[:, ::1], float32, uint64, float32[:, ::1], float32[::1])", reorder=True)
def refine_plasma(coarse: F32, wibble: float, seed: np.uint64, fine: F32, extent: F32) -> None:
    """Double a periodic height map by one diamond-square step: means of neighbours plus uniform noise.

    `fine` is the upper left part of the result, up to all of it; `extent` the least and greatest of all.
    """
    n = coarse.shape[0]
    words = np.empty((3 * n + 3) // 4, np.uint64)
    halves = words.view(np.uint16)
    noise = np.empty(3 * n, np.float32)
    square, above = np.empty(n, np.float32), np.empty(n, np.float32)
    across, down = np.empty(n, np.float32), np.empty(n, np.float32)
    pair = np.empty((2, 2 * n), np.float32)
    step = np.float32(wibble) / np.float32(32767.5)
    low, high = np.float32(np.inf), np.float32(-np.inf)
    for turn in range(-1, n):
        y = turn % n
        here, below = coarse[y], coarse[(y + 1) % n]
        random_words(seed, y * words.size, words)
        for i in range(noise.size):
            noise[i] = np.float32(halves[i]) * step - np.float32(wibble)
        for x in range(n):
            down[x] = here[x] + below[x]
        for x in range(n - 1):
            square[x] = (down[x] + down[x + 1]) * np.float32(0.25) + noise[x]
        square[n - 1] = (down[n - 1] + down[0]) * np.float32(0.25) + noise[n - 1]
        if turn >= 0:
            for x in range(n - 1):
                across[x] = here[x] + here[x + 1]
            across[n - 1] = here[n - 1] + here[0]
            down[0] += square[n - 1]
            for x in range(1, n):
                down[x] += square[x - 1]
            upper, lower = pair[0], pair[1]
            for x in range(n):
                upper[2 * x] = here[x]
                upper[2 * x + 1] = (across[x] + square[x] + above[x]) * np.float32(0.25) + noise[n + x]
                lower[2 * x] = (down[x] + square[x]) * np.float32(0.25) + noise[2 * n + x]
                lower[2 * x + 1] = square[x]
            for k in range(2):
                line = pair[k]
                for x in range(2 * n):
                    low = min(low, line[x])
                    high = max(high, line[x])
                if 2 * y + k < fine.shape[0]:
                    fine[2 * y + k] = line[: fine.shape[1]]
        above[:] = square
    extent[0], extent[1] = low, high

"""Compiled loops in which a pixel depends on its neighbours: shifts, discs, zooms, warps, scatters.

Rows of an image are flat here, channels side by side, so that one loop serves gray and colour: a step of one
pixel to the right is a step of `channels` values. The caller has padded what is read beyond the border.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.
# ruff: noqa: C901

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


@kernel("void(Array(uint8, 2, 'C', readonly=True), uint16[:, ::1])")
def running_sums(padded: U8, out: NDArray[np.uint16]) -> None:
    """Write sums from the top, modulo 65536; `out` has one row more, of zeros, above."""
    out[0] = 0
    for y in range(padded.shape[0]):
        source, above, target = padded[y], out[y], out[y + 1]
        for i in range(source.size):
            target[i] = np.uint16(above[i] + source[i])


@kernel("void(uint16[:, ::1], int64[::1], int64, float32[:, ::1])")
def sum_discs(sums: NDArray[np.uint16], half_height: I64, channels: int, out: F32) -> None:
    """Write the sum over the disc around every pixel, from the running sums of the padded image.

    The disc holds the pixels at most half_height[k] rows away in the columns k to the left and right.
    A few columns fit 16 bits, so they are added up in 16 bits, and then together.
    """
    radius = half_height.size - 1
    few = np.empty(out.shape[1], np.uint16)
    column = np.empty(sums.shape[1], np.uint16)
    for y in range(out.shape[0]):
        target = out[y]
        target[:] = np.float32(0)
        few[:] = 0
        room = 65535
        for k in range(radius + 1):
            half = half_height[k]
            if k == 0 or half != half_height[k - 1]:
                lower, upper = sums[y + radius + half + 1], sums[y + radius - half]
                for i in range(column.size):
                    column[i] = np.uint16(lower[i] - upper[i])
            if room < 2 * 255 * (2 * half + 1):
                for i in range(few.size):
                    target[i] += np.float32(few[i])
                few[:] = 0
                room = 65535
            room -= 2 * 255 * (2 * half + 1)
            left, right = column[(radius - k) * channels :], column[(radius + k) * channels :]
            if k == 0:
                for i in range(few.size):
                    few[i] = np.uint16(few[i] + left[i])
            else:
                for i in range(few.size):
                    few[i] = np.uint16(few[i] + left[i] + right[i])
        for i in range(few.size):
            target[i] += np.float32(few[i])


@kernel("void(float32[:, ::1], float32[::1], int64, float32, uint8[:, ::1])", reorder=True)
def smooth_sums(sums: F32, taps: F32, channels: int, offset: float, out: U8) -> None:
    """Smooth in both directions by symmetric taps, given from the centre outwards, and truncate."""
    reach = taps.size - 1
    line = np.empty(sums.shape[1], np.float32)
    total = np.empty(out.shape[1], np.float32)
    for y in range(out.shape[0]):
        centre = sums[y + reach]
        for i in range(line.size):
            line[i] = taps[0] * centre[i]
        for k in range(1, reach + 1):
            above, below = sums[y + reach - k], sums[y + reach + k]
            for i in range(line.size):
                line[i] += taps[k] * (above[i] + below[i])
        middle = line[reach * channels :]
        for i in range(total.size):
            total[i] = taps[0] * middle[i] + np.float32(offset)
        for k in range(1, reach + 1):
            left, right = line[(reach - k) * channels :], line[(reach + k) * channels :]
            for i in range(total.size):
                total[i] += taps[k] * (left[i] + right[i])
        target = out[y]
        for i in range(total.size):
            target[i] = np.uint8(np.int32(min(max(total[i], np.float32(0)), np.float32(255))))


@kernel(
    "void(Array(float32, 2, 'C', readonly=True), int64, int64[::1], float32[::1], int64[::1], float32[::1], "
    "float32[:, ::1])"
)
def add_zoomed(
    source: F32, channels: int, row: I64, row_part: F32, column: I64, column_part: F32, out: F32
) -> None:
    """Add the bilinear values of `source` at the rows and columns given as whole number and fraction."""
    line = np.empty(source.shape[1], np.float32)
    for y in range(row.size):
        upper, lower = source[row[y]], source[min(row[y] + 1, source.shape[0] - 1)]
        part = row_part[y]
        for i in range(line.size):
            line[i] = upper[i] + (lower[i] - upper[i]) * part
        target = out[y]
        last = line.size - channels
        if channels == 3:
            for x in range(column.size):
                at = column[x] * 3
                after = min(at + 3, last)
                share = column_part[x]
                target[3 * x] += line[at] + (line[after] - line[at]) * share
                target[3 * x + 1] += line[at + 1] + (line[after + 1] - line[at + 1]) * share
                target[3 * x + 2] += line[at + 2] + (line[after + 2] - line[at + 2]) * share
        else:
            for x in range(column.size):
                at = column[x]
                target[x] += line[at] + (line[min(at + 1, last)] - line[at]) * column_part[x]


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


@kernel("void(float32[:, ::1], float32, uint64, float32[:, ::1])")
def refine_plasma(coarse: F32, wibble: float, seed: np.uint64, fine: F32) -> None:
    """Double a periodic height map by one diamond-square step: means of neighbours plus uniform noise."""
    n = coarse.shape[0]
    words = np.empty((3 * n + 3) // 4, np.uint64)
    halves = words.view(np.uint16)
    noise = np.empty(3 * n, np.float32)
    square, above = np.empty(n, np.float32), np.empty(n, np.float32)
    across, down = np.empty(n, np.float32), np.empty(n, np.float32)
    step = np.float32(wibble) / np.float32(32767.5)
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
            upper, lower = fine[2 * y], fine[2 * y + 1]
            for x in range(n):
                upper[2 * x] = here[x]
                upper[2 * x + 1] = (across[x] + square[x] + above[x]) * np.float32(0.25) + noise[n + x]
                lower[2 * x] = (down[x] + square[x]) * np.float32(0.25) + noise[2 * n + x]
                lower[2 * x + 1] = square[x]
        above[:] = square

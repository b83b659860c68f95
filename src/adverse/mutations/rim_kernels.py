"""Compiled loops that find the rims of drops on a lens, and how far from a rim each pixel is.

Both make what OpenCV makes on x86, to the byte: `Canny` with an aperture of 3 pixels and sums of absolute
gradients, and `distanceTransform` with a mask of 5 x 5 pixels in float32, cut off at some distance.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel

U8 = NDArray[np.uint8]
I16 = NDArray[np.int16]
F32 = NDArray[np.float32]


@kernel("void(uint8[::1], uint8[::1], uint8[::1], int16[::1], int16[::1], float32[::1])")
def _gradients(above: U8, here: U8, below: U8, across: I16, down: I16, total: F32) -> None:
    """Write Sobel's differences and the sum of their sizes; the rows have one more pixel at each end."""
    for i in range(across.size):
        a, b = np.int16(above[i]), np.int16(above[i + 2])
        c, d = np.int16(below[i]), np.int16(below[i + 2])
        e, f = np.int16(here[i]), np.int16(here[i + 2])
        across[i] = np.int16((b - a) + (d - c) + np.int16(2) * (f - e))
        down[i] = np.int16(
            (c - a) + (d - b) + np.int16(2) * (np.int16(below[i + 1]) - np.int16(above[i + 1]))
        )
    for i in range(across.size):
        total[i] = abs(np.float32(across[i])) + abs(np.float32(down[i]))


@kernel(
    "void(int16[::1], int16[::1], float32[::1], float32[::1], float32[::1], float32, float32, uint8[::1])"
)
def _crests(
    across: I16, down: I16, above: F32, here: F32, below: F32, low: float, high: float, out: U8
) -> None:
    """Write 1 where a gradient above `low` is greatest across its rim, 2 where it is above `high`, else 0.

    The rows of sums have one more value at each end. All values are whole and exact; the tangent of
    22.5 degrees is OpenCV's, 13573 / 32768.
    """
    for i in range(out.size):
        size, x, y = here[i + 1], np.float32(across[i]), np.float32(down[i])
        run, rise = abs(x), abs(y)
        slope = run * np.float32(13573)
        flat = rise * np.float32(32768) < slope
        steep = (rise - np.float32(2) * run) * np.float32(32768) > slope
        fall = x * y < np.float32(0)
        one = above[i + 2] if fall else above[i]
        two = below[i] if fall else below[i + 2]
        one = above[i + 1] if steep else one
        two = below[i + 1] - np.float32(1) if steep else two
        one = here[i] if flat else one
        two = here[i + 2] - np.float32(1) if flat else two
        most = max(one, two, np.float32(low))
        mark = np.int32(2) if size > np.float32(high) else np.int32(1)
        out[i] = np.uint8(mark if size > most else np.int32(0))


@kernel("void(uint8[::1], uint8[::1], uint8[::1], uint8[::1])")
def _ends(above: U8, here: U8, below: U8, out: U8) -> None:
    """Write 1 on strong rims with a weak one beside them; rows have one more mark at each end."""
    for i in range(out.size):
        left = above[i] | here[i] | below[i]
        right = above[i + 2] | here[i + 2] | below[i + 2]
        beside = left | right | above[i + 1] | below[i + 1]
        out[i] = np.uint8((here[i + 1] >> np.uint8(1)) & beside & np.uint8(1))


@kernel("void(Array(uint8, 2, 'C', readonly=True), float32, float32, uint8[:, ::1])")
def mark_crests(levels: U8, low: float, high: float, out: U8) -> None:
    """Write 2 where a gradient is greatest across its rim and above `high`, 1 where above `low`, else 0.

    `out` has a margin of one pixel.
    """
    rows, columns = levels.shape
    lines = np.empty((3, columns + 2), np.uint8)
    across, down = np.empty((2, columns), np.int16), np.empty((2, columns), np.int16)
    total = np.zeros((3, columns + 2), np.float32)
    out[:] = np.uint8(0)
    for t in range(-1, rows + 2):
        line = lines[(t + 3) % 3]
        source = levels[min(max(t, 0), rows - 1)]
        line[1 : columns + 1] = source
        line[0], line[columns + 1] = source[0], source[columns - 1]
        y = t - 1
        if y < 0:
            continue
        sums = total[y % 3]
        if y < rows:
            _gradients(
                lines[(y + 2) % 3], lines[y % 3], line, across[y % 2], down[y % 2], sums[1 : columns + 1]
            )
        else:
            sums[:] = np.float32(0)
        if y > 0:
            k = y - 1
            made = out[y, 1 : columns + 1]
            _crests(across[k % 2], down[k % 2], total[(k + 2) % 3], total[k % 3], sums, low, high, made)


@kernel("void(int64[::1], uint8[:, ::1])")
def spread_strong(stack: NDArray[np.int64], out: U8) -> None:
    """Write 2 on weak rims (1) that hang together with strong ones (2); `stack` has room for every pixel."""
    rows, columns = len(out) - 2, out.shape[1] - 2
    width, flat = out.shape[1], out.reshape(-1)
    ends = np.zeros(-(-columns // 8) * 8, np.uint8)
    eights = ends.view(np.uint64)
    count = 0
    for y in range(1, rows + 1):
        _ends(out[y - 1], out[y], out[y + 1], ends[:columns])
        for i in range(eights.size):
            if eights[i]:
                for x in range(8 * i, 8 * i + 8):
                    if ends[x]:
                        stack[count] = y * width + x + 1
                        count += 1
    while count > 0:
        count -= 1
        p = stack[count]
        for row in range(p - width, p + width + 1, width):
            for q in range(row - 1, row + 2):
                if flat[q] == np.uint8(1):
                    flat[q] = np.uint8(2)
                    stack[count] = q
                    count += 1


@kernel("void(uint8[::1], float32[::1], float32[::1], float32[::1])")
def _from_rows(marks: U8, near: F32, further: F32, out: F32) -> None:
    """Write the least distance by way of the rows before: masks of 5 x 5 without the own row; 0 on a rim.

    The rows of distances have two more values at each end.
    """
    one, diagonal, leap = np.float32(1), np.float32(1.4), np.float32(2.1969)
    for i in range(marks.size):
        straight, slanted = near[i + 2] + one, min(near[i + 1], near[i + 3]) + diagonal
        leaps = min(further[i + 1], further[i + 3], near[i], near[i + 4]) + leap
        least = min(straight, slanted, leaps)
        out[i] = np.float32(0) if marks[i] == np.uint8(2) else least


@kernel("void(float32[::1], int64, int64, int64)")
def _along(line: F32, step: int, part: int, reach: int) -> None:
    """Lower each distance to that before it, plus 1, along a row; `step` is 1, or -1 from its end.

    A step waits for the one before, so four parts of the row are walked side by side. Each begins `reach`
    values ahead of its own, as distances beyond do not matter.
    """
    last = line.size - 1
    begin = 0 if step > 0 else last
    one = np.float32(1)
    a = b = c = d = np.float32(1000)
    if part < reach or 3 * part > last:
        for k in range(line.size):
            a = min(line[begin + step * k], a + one)
            line[begin + step * k] = a
        return
    for k in range(part - reach, part):
        place = begin + step * k
        b = min(line[place], b + one)
        c = min(line[place + step * part], c + one)
        d = min(line[place + 2 * step * part], d + one)
    whole = last + 1 - 3 * part
    for k in range(whole):
        place = begin + step * k
        a = min(line[place], a + one)
        b = min(line[place + step * part], b + one)
        c = min(line[place + 2 * step * part], c + one)
        d = min(line[place + 3 * step * part], d + one)
        line[place] = a
        line[place + step * part] = b
        line[place + 2 * step * part] = c
        line[place + 3 * step * part] = d
    for k in range(whole, part):
        place = begin + step * k
        a = min(line[place], a + one)
        b = min(line[place + step * part], b + one)
        c = min(line[place + 2 * step * part], c + one)
        line[place] = a
        line[place + step * part] = b
        line[place + 2 * step * part] = c


@kernel("void(uint8[:, ::1], float32, float32[:, ::1])")
def rim_distances(rims: U8, most: float, out: F32) -> None:
    """Write how far each pixel is from a rim (2), at most `most`.

    `rims` has a margin of one pixel at least, and `out` one of two pixels.
    """
    rows, columns = len(out) - 4, out.shape[1] - 4
    part, reach = -(-columns // 4), int(most) + 1
    out[:] = np.float32(1000)
    for y in range(rows):
        line = out[y + 2, 2 : columns + 2]
        _from_rows(rims[y + 1, 1 : columns + 1], out[y + 1], out[y], line)
        _along(line, 1, part, reach)
    both = np.empty(columns, np.float32)
    for y in range(rows - 1, -1, -1):
        line = out[y + 2, 2 : columns + 2]
        _from_rows(rims[y + 1, 1 : columns + 1], out[y + 3], out[y + 4], both)
        for i in range(columns):
            line[i] = min(line[i], both[i], np.float32(most))
        _along(line, -1, part, reach)

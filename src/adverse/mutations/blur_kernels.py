"""Compiled loops that blur: Gaussians row by row, discs from running sums.

Rows of an image are flat here, channels side by side, so that one loop serves gray and colour: a step of one
pixel to the right is a step of `channels` values. Nothing as large as the image is made on the way: a ring of
rows holds what the next row needs, in strips that stay in the nearest caches. Gaussian sums are taken in the
order in which OpenCV takes them, across from left to right and down from the middle outwards, each step a
fused multiply-add: where OpenCV computes with vectors, the values are the same to the bit.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.
# ruff: noqa: C901, PLR0912, PLR0915

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel

U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

AT_A_TIME = 8
"""Taps summed in one pass along a row, after the first; half as many pairs of rows, after the middle."""


@kernel("void(float32[::1], Array(float32, 1, 'C', readonly=True), float32[::1])")
def _across_17(line: F32, taps: F32, out: F32) -> None:
    """Write what `_across` makes of 17 neighbours, in one pass."""
    a, b, c, d, e, f, g, h, j = (
        taps[0],
        taps[1],
        taps[2],
        taps[3],
        taps[4],
        taps[5],
        taps[6],
        taps[7],
        taps[8],
    )
    k, m, n, o, p, q, r, s = taps[9], taps[10], taps[11], taps[12], taps[13], taps[14], taps[15], taps[16]
    for i in range(out.size):
        one = a * line[i] + b * line[i + 1] + c * line[i + 2] + d * line[i + 3] + e * line[i + 4]
        two = one + f * line[i + 5] + g * line[i + 6] + h * line[i + 7] + j * line[i + 8] + k * line[i + 9]
        three = two + m * line[i + 10] + n * line[i + 11] + o * line[i + 12] + p * line[i + 13]
        out[i] = three + q * line[i + 14] + r * line[i + 15] + s * line[i + 16]


@kernel("void(float32[::1], Array(float32, 1, 'C', readonly=True), int64, float32[::1])")
def _across(line: F32, taps: F32, step: int, out: F32) -> None:
    """Write sums of `line` weighted by 1 + 8 n taps that are `step` values apart."""
    n = out.size
    if taps.size == 17 and step == 1:
        _across_17(line, taps, out)
        return
    first, weight = line[:n], taps[0]
    for k in range(1, taps.size, 8):
        a, b = line[k * step : k * step + n], line[(k + 1) * step : (k + 1) * step + n]
        c, d = line[(k + 2) * step : (k + 2) * step + n], line[(k + 3) * step : (k + 3) * step + n]
        e, f = line[(k + 4) * step : (k + 4) * step + n], line[(k + 5) * step : (k + 5) * step + n]
        g, h = line[(k + 6) * step : (k + 6) * step + n], line[(k + 7) * step : (k + 7) * step + n]
        wa, wb, wc, wd = taps[k], taps[k + 1], taps[k + 2], taps[k + 3]
        we, wf, wg, wh = taps[k + 4], taps[k + 5], taps[k + 6], taps[k + 7]
        if k == 1:
            for i in range(n):
                left = weight * first[i] + wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i]
                out[i] = left + we * e[i] + wf * f[i] + wg * g[i] + wh * h[i]
        else:
            for i in range(n):
                left = out[i] + wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i]
                out[i] = left + we * e[i] + wf * f[i] + wg * g[i] + wh * h[i]


@kernel("void(float32[:, ::1], int64, int64, Array(float32, 1, 'C', readonly=True), float32, float32[::1])")
def _down(ring: F32, at: int, left: int, taps: F32, offset: float | np.float32, out: F32) -> None:
    """Write sums of rows around row `at` of a ring, with 1 + 4 n symmetric taps from the middle outwards.

    They begin in the column `left`, and end with `out`.
    """
    size = len(ring)
    middle, weight = ring[at % size, left:], taps[0]
    for k in range(1, taps.size, 4):
        a, b = ring[(at + k) % size, left:], ring[(at - k) % size, left:]
        c, d = ring[(at + k + 1) % size, left:], ring[(at - k - 1) % size, left:]
        e, f = ring[(at + k + 2) % size, left:], ring[(at - k - 2) % size, left:]
        g, h = ring[(at + k + 3) % size, left:], ring[(at - k - 3) % size, left:]
        wa, wc, we, wg = taps[k], taps[k + 1], taps[k + 2], taps[k + 3]
        if k == 1:
            for i in range(out.size):
                near = weight * middle[i] + np.float32(offset) + wa * (a[i] + b[i]) + wc * (c[i] + d[i])
                out[i] = near + we * (e[i] + f[i]) + wg * (g[i] + h[i])
        else:
            for i in range(out.size):
                near = out[i] + wa * (a[i] + b[i]) + wc * (c[i] + d[i])
                out[i] = near + we * (e[i] + f[i]) + wg * (g[i] + h[i])


@kernel(
    "void(float32[:, ::1], int64, int64, Array(float32, 1, 'C', readonly=True), float32, float32[::1], "
    "float32[::1])"
)
def _down_two(
    ring: F32, at: int, left: int, taps: F32, offset: float | np.float32, out: F32, below: F32
) -> None:
    """Write what `_down` makes for the rows `at` and at + 1: most rows are read once for both."""
    size, more, weight = len(ring), np.float32(offset), taps[0]
    for n in range(1, taps.size, 4):
        a, b, c = (
            ring[(at - n - 3) % size, left:],
            ring[(at - n - 2) % size, left:],
            ring[(at - n - 1) % size, left:],
        )
        d, e = ring[(at - n) % size, left:], ring[(at - n + 1) % size, left:]
        f, g, h = (
            ring[(at + n) % size, left:],
            ring[(at + n + 1) % size, left:],
            ring[(at + n + 2) % size, left:],
        )
        j, k = ring[(at + n + 3) % size, left:], ring[(at + n + 4) % size, left:]
        w1, w2, w3, w4 = taps[n], taps[n + 1], taps[n + 2], taps[n + 3]
        if n == 1:
            for i in range(out.size):
                vb, vc, vd, ve, vf, vg, vh, vj = b[i], c[i], d[i], e[i], f[i], g[i], h[i], j[i]
                one = weight * ve + more + w1 * (vf + vd) + w2 * (vg + vc)
                two = weight * vf + more + w1 * (vg + ve) + w2 * (vh + vd)
                out[i] = one + w3 * (vh + vb) + w4 * (vj + a[i])
                below[i] = two + w3 * (vj + vc) + w4 * (k[i] + vb)
        else:
            for i in range(out.size):
                vb, vc, vd, vg, vh, vj = b[i], c[i], d[i], g[i], h[i], j[i]
                one = out[i] + w1 * (f[i] + vd) + w2 * (vg + vc)
                two = below[i] + w1 * (vg + e[i]) + w2 * (vh + vd)
                out[i] = one + w3 * (vh + vb) + w4 * (vj + a[i])
                below[i] = two + w3 * (vj + vc) + w4 * (k[i] + vb)


@kernel(
    "void(float32[:, ::1], int64, Array(float32, 1, 'C', readonly=True), float32, uint8[::1], uint8[::1])"
)
def _down_two_levels(ring: F32, at: int, taps: F32, offset: float, out: U8, below: U8) -> None:
    """Write what `_down_two` makes of five taps, truncated, in one pass."""
    size, more = len(ring), np.float32(offset)
    a, b, c, d = ring[(at - 4) % size], ring[(at - 3) % size], ring[(at - 2) % size], ring[(at - 1) % size]
    e, f, g = ring[at % size], ring[(at + 1) % size], ring[(at + 2) % size]
    h, j, k = ring[(at + 3) % size], ring[(at + 4) % size], ring[(at + 5) % size]
    w0, w1, w2, w3, w4 = taps[0], taps[1], taps[2], taps[3], taps[4]
    for i in range(out.size):
        vb, vc, vd, ve, vf, vg, vh, vj = b[i], c[i], d[i], e[i], f[i], g[i], h[i], j[i]
        one = w0 * ve + more + w1 * (vf + vd) + w2 * (vg + vc) + w3 * (vh + vb) + w4 * (vj + a[i])
        two = w0 * vf + more + w1 * (vg + ve) + w2 * (vh + vd) + w3 * (vj + vc) + w4 * (k[i] + vb)
        out[i] = np.uint8(np.int32(min(one, np.float32(255))))
        below[i] = np.uint8(np.int32(min(two, np.float32(255))))


@kernel(
    "void(Array(uint8, 2, 'C', readonly=True), int64, int64, Array(float32, 1, 'C', readonly=True), "
    "Array(float32, 1, 'C', readonly=True), float32, Array(int64, 1, 'C', readonly=True), "
    "Array(int64, 1, 'C', readonly=True), int64, int64, uint8[:, ::1])"
)
def blur_levels(
    image: U8,
    channels: int,
    reach: int,
    across: F32,
    down: F32,
    offset: float,
    row_of: I64,
    column_of: I64,
    first: int,
    last: int,
    out: U8,
) -> None:
    """Write Gaussian means plus `offset`, truncated, in the values first to last of each row.

    `row_of` and `column_of` say which row and column stands at each place of the image with its border.
    """
    edge, size = reach * channels, last - first
    line = np.zeros(size + (across.size - 1) * channels, np.float32)
    # Taps that only fill up a pass weigh nothing, whatever finite row they fall on.
    ring, total = np.zeros((2 * reach + 2, size), np.float32), np.empty((2, size), np.float32)
    low, high = max(first, edge), min(last + 2 * edge, image.shape[1] + edge)
    for t in range(row_of.size):
        source = image[row_of[t]]
        for p in range(first, low):
            line[p - first] = np.float32(source[column_of[p // channels] * channels + p % channels])
        inner, place = source[low - edge : high - edge], line[low - first : high - first]
        for i in range(inner.size):
            place[i] = np.float32(inner[i])
        for p in range(high, last + 2 * edge):
            line[p - first] = np.float32(source[column_of[p // channels] * channels + p % channels])
        _across(line, across, channels, ring[t % len(ring)])
        y = t - 2 * reach
        alone = y >= 0 and y % 2 == 0 and t == row_of.size - 1
        if alone:
            _down(ring, t - reach, 0, down, offset, total[1])
        elif y >= 0 and y % 2 == 1 and down.size == 5:
            above, below = out[y - 1, first:last], out[y, first:last]
            _down_two_levels(ring, t - 1 - reach, down, offset, above, below)
            continue
        elif y >= 0 and y % 2 == 1:
            _down_two(ring, t - 1 - reach, 0, down, offset, total[0], total[1])
        else:
            continue
        for k in range(1 if alone else 0, 2):
            made, values = out[y - 1 + k, first:last], total[k]
            for i in range(size):
                made[i] = np.uint8(np.int32(min(values[i], np.float32(255))))


@kernel(
    "void(Array(float32, 2, 'C', readonly=True), int64, Array(float32, 1, 'C', readonly=True), "
    "Array(float32, 1, 'C', readonly=True), Array(int64, 1, 'C', readonly=True), "
    "Array(int64, 1, 'C', readonly=True), int64, int64, float32[:, ::1], float32[:, ::1], "
    "int64[:, ::1], float32, float32[:, ::1])"
)
def smooth_depth(
    depth: F32,
    reach: int,
    across: F32,
    down: F32,
    row_of: I64,
    column_of: I64,
    first: int,
    last: int,
    near: F32,
    ground: F32,
    skies: I64,
    gain: float,
    out: F32,
) -> None:
    """Write Gaussian means of the finite depths around each finite one, times `gain`; sky stays infinite.

    Takes rows first to last of the depth with its border into the rings `near` and `ground` (finite depths,
    and 1 where there is ground), and writes two rows as soon as all around them is known; `skies`
    remembers which columns see sky in each row of the rings, from where to where (nowhere: size and 0).
    Elsewhere the weight is the same everywhere. A ring `ground` without rows says that there is no sky at
    all; then nothing is divided.
    """
    size, sky = depth.shape[1], len(ground) > 0
    line = np.zeros(size + across.size - 1, np.float32)
    solid = np.zeros(size + across.size - 1, np.float32)
    share = np.empty((2, size), np.float32)
    sky_value = np.float32(np.inf) * np.float32(gain)
    solid[: size + 2 * reach] = np.float32(1)
    full = np.empty((1, 1), np.float32)
    _across(solid[: across.size], across, 1, full[0])
    whole = np.empty(1, np.float32)
    _down(full, 0, 0, down, np.float32(0), whole)
    for t in range(first, last):
        source, slot = depth[row_of[t]], t % len(near)
        line[reach : reach + size] = source
        for p in range(reach):
            line[p] = source[column_of[p]]
            line[reach + size + p] = source[column_of[reach + size + p]]
        seen, first_sky, last_sky = np.int32(0), np.int32(line.size), np.int32(-1)
        if sky:
            for p in range(size + 2 * reach):
                finite = line[p] < np.float32(np.inf)
                solid[p] = np.float32(1) if finite else np.float32(0)
                line[p] = line[p] if finite else np.float32(0)
                seen += np.int32(0) if finite else np.int32(1)
                first_sky = min(first_sky, np.int32(line.size) if finite else np.int32(p))
                last_sky = max(last_sky, np.int32(-1) if finite else np.int32(p))
            begin, end = max(int(first_sky) - 2 * reach, 0), min(int(last_sky) + 1, size)
            begin = begin if seen else size
            skies[slot, 0], skies[slot, 1] = begin, end
            if seen == size + 2 * reach:
                ground[slot] = np.float32(0)
            else:
                ground[slot] = full[0, 0]
                if seen:
                    _across(solid[begin : end + across.size - 1], across, 1, ground[slot, begin:end])
        if seen == size + 2 * reach:
            near[slot] = np.float32(0)
        else:
            _across(line, across, 1, near[slot])
        y = t - 2 * reach
        alone = t == row_of.size - 1 and y % 2 == 0
        if y < 0 or (y % 2 == 0 and not alone):
            continue
        at = y - max(first - 2 * reach, 0)
        made, above = out[at], out[at if alone else at - 1]
        if alone:
            _down(near, t - reach, 0, down, np.float32(0), made)
        else:
            _down_two(near, t - 1 - reach, 0, down, np.float32(0), above, made)
        begin, end = size, 0
        for k in range(len(skies)):
            begin, end = min(begin, skies[k, 0]), max(end, skies[k, 1])
        if begin < end:
            one, two = share[0, : end - begin], share[1, : end - begin]
            if alone:
                _down(ground, t - reach, begin, down, np.float32(0), two)
            else:
                _down_two(ground, t - 1 - reach, begin, down, np.float32(0), one, two)
        for k in range(1 if alone else 0, 2):
            values, here, weight = (above, depth[y - 1], share[0]) if k == 0 else (made, depth[y], share[1])
            if not sky:
                for i in range(size):
                    values[i] = values[i] * np.float32(gain)
                continue
            for part in (values[:begin], values[max(begin, end) :]):
                for i in range(part.size):
                    part[i] = part[i] / whole[0] * np.float32(gain)
            mixed, known = values[begin:end], here[begin:end]
            for i in range(mixed.size):
                smooth = mixed[i] / weight[i] * np.float32(gain)
                mixed[i] = smooth if known[i] < np.float32(np.inf) else sky_value


@kernel("void(uint16[::1], uint16[::1], uint16[::1])")
def _subtract(lower: U16, upper: U16, out: U16) -> None:
    for i in range(out.size):
        out[i] = np.uint16(lower[i] - upper[i])


@kernel("void(uint16[::1], int64, uint16[::1])")
def _add_beside(values: U16, step: int, out: U16) -> None:
    other = values[step:]
    for i in range(other.size):
        out[i] = np.uint16(values[i] + other[i])


@kernel("void(uint16[::1], uint16[::1], uint16[::1])")
def _add_both(left: U16, right: U16, total: U16) -> None:
    for i in range(total.size):
        total[i] = np.uint16(total[i] + left[i] + right[i])


@kernel("void(float32[::1], float32[::1], float32[::1], float32[::1], float32, uint8[::1])", reorder=True)
def _smooth_levels(middle: F32, west: F32, east: F32, taps: F32, offset: float, out: U8) -> None:
    centre, side = taps[0], taps[1]
    for i in range(out.size):
        value = centre * middle[i] + side * (west[i] + east[i]) + np.float32(offset)
        out[i] = np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(255))))


@kernel(
    "void(uint8[:, ::1], int64[::1], float32[::1], int64, float32, int64, int64, uint8[:, ::1])", reorder=True
)
def blur_discs(
    padded: U8, half_height: I64, taps: F32, channels: int, offset: float, first: int, last: int, out: U8
) -> None:
    """Sum over a disc, smooth the sums both ways, and truncate; in the values first to last of each row.

    The disc holds the pixels at most half_height[k] rows away in the columns k to the left and right; each
    such column is the difference of two running sums from the top, taken modulo 65536. Neighbours of equal
    height are added up first, in twos, fours and so on, once for both sides. A few columns fit 16 bits, so
    they are added up in 16 bits, and then together. `taps` are symmetric, from the centre outwards.
    """
    radius, reach = half_height.size - 1, taps.size - 1
    inner = last - first + 2 * reach * channels
    width = inner + 2 * radius * channels
    running = np.zeros((2 * radius + 2, width), np.uint16)
    discs = np.empty((2 * reach + 1, inner), np.float32)
    columns, few = np.zeros((2, width), np.uint16), np.empty(inner, np.uint16)
    line, total = np.empty(inner, np.float32), np.empty(last - first, np.float32)
    summed = 0
    for t in range(out.shape[0] + 2 * reach):
        while summed < t + 2 * radius + 1:
            source, above = padded[summed, first : first + width], running[summed % len(running)]
            summed += 1
            target = running[summed % len(running)]
            for i in range(width):
                target[i] = np.uint16(above[i] + source[i])
        disc = discs[t % len(discs)]
        lower = running[(t + radius + half_height[0] + 1) % len(running)][radius * channels :]
        upper = running[(t + radius - half_height[0]) % len(running)][radius * channels :]
        for i in range(inner):
            few[i] = np.uint16(lower[i] - upper[i])
        room, begun = 65535 - 255 * (2 * half_height[0] + 1), False
        k = 1
        while k <= radius:
            half, many = half_height[k], 1
            while k + 2 * many - 1 <= radius and half_height[k + 2 * many - 1] == half:
                many *= 2
            while many > 1 and 2 * 255 * (2 * half + 1) * many > 65535:  # what fits 16 bits on both sides
                many //= 2
            if room < 2 * 255 * (2 * half + 1) * many:
                if begun:
                    for i in range(inner):
                        disc[i] += np.float32(few[i])
                else:
                    for i in range(inner):
                        disc[i] = np.float32(few[i])
                begun = True
                few[:] = 0
                room = 65535
            room -= 2 * 255 * (2 * half + 1) * many
            lower = running[(t + radius + half + 1) % len(running)]
            upper = running[(t + radius - half) % len(running)]
            _subtract(lower, upper, columns[0])
            have, at = 1, 0
            while have < many:  # sums of so many neighbours become sums of twice as many
                _add_beside(columns[at], have * channels, columns[1 - at])
                have, at = 2 * have, 1 - at
            wide = columns[at]
            _add_both(wide[(radius - k - many + 1) * channels :], wide[(radius + k) * channels :], few)
            k += many
        if begun:
            for i in range(inner):
                disc[i] += np.float32(few[i])
        else:
            for i in range(inner):
                disc[i] = np.float32(few[i])
        y = t - 2 * reach
        if y < 0:
            continue
        centre = discs[(y + reach) % len(discs)]
        before, after = discs[(y + reach - 1) % len(discs)], discs[(y + reach + 1) % len(discs)]
        for i in range(inner):
            line[i] = taps[0] * centre[i] + taps[1] * (before[i] + after[i])
        for k in range(2, reach + 1):
            before, after = discs[(y + reach - k) % len(discs)], discs[(y + reach + k) % len(discs)]
            for i in range(inner):
                line[i] += taps[k] * (before[i] + after[i])
        middle = line[reach * channels :]
        west, east = line[(reach - 1) * channels :], line[(reach + 1) * channels :]
        made = out[y, first:last]
        if reach == 1:
            _smooth_levels(middle, west, east, taps, offset, made)
            continue
        for i in range(total.size):
            total[i] = taps[0] * middle[i] + taps[1] * (west[i] + east[i]) + np.float32(offset)
        for k in range(2, reach + 1):
            west, east = line[(reach - k) * channels :], line[(reach + k) * channels :]
            for i in range(total.size):
                total[i] += taps[k] * (west[i] + east[i])
        for i in range(total.size):
            made[i] = np.uint8(np.int32(min(max(total[i], np.float32(0)), np.float32(255))))

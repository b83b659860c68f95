"""Compiled loops that look at one pixel at a time: random values, noise, colour, veils.

Random bits come from SplitMix64 (Steele, Lea & Flood 2014) over a counter: bit i of a stream depends on its
seed and on i alone. The seed of each stream is drawn from the generator that the mutation was given.
Images come as flat arrays; what is written is truncated or rounded by the `offset` added before.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.compiled import kernel

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
BLOCK = 512
"""Words of 64 random bits made at a time: few enough to stay in the nearest cache."""


@kernel("void(uint64, int64, uint64[::1])")
def random_words(seed: np.uint64, first: int, out: NDArray[np.uint64]) -> None:
    """Fill with 64-bit words number first, first + 1, ... of the stream."""
    for i in range(out.size):
        z = seed + np.uint64(first + i) * GAMMA
        z = (z ^ (z >> np.uint64(30))) * MIX_1
        z = (z ^ (z >> np.uint64(27))) * MIX_2
        out[i] = z ^ (z >> np.uint64(31))


@kernel("void(uint64, Array(float32, 1, 'C', readonly=True), float32[::1])")
def random_values(seed: np.uint64, quantiles: F32, out: F32) -> None:
    """Fill with independent values: each is one of the 65536 quantiles, all equally likely."""
    words = np.empty(BLOCK, np.uint64)
    halves = words.view(np.uint16)
    for start in range(0, out.size, 4 * BLOCK):
        random_words(seed, start // 4, words)
        chunk = out[start : start + 4 * BLOCK]
        for i in range(chunk.size):
            chunk[i] = quantiles[halves[i]]


@kernel(
    "void(Array(uint8, 1, 'C', readonly=True), Array(float32, 1, 'C', readonly=True), float32, "
    "Array(float32, 1, 'C', readonly=True), uint64, uint8[::1])"
)
def noise_by_level(levels: U8, scale: F32, offset: float, quantiles: F32, seed: np.uint64, out: U8) -> None:
    """Add noise to every value: a random quantile times the scale of that value's level."""
    words = np.empty(BLOCK, np.uint64)
    halves = words.view(np.uint16)
    for start in range(0, out.size, 4 * BLOCK):
        random_words(seed, start // 4, words)
        source, target = levels[start : start + 4 * BLOCK], out[start : start + 4 * BLOCK]
        for i in range(target.size):
            level = source[i]
            value = np.float32(level) + scale[level] * quantiles[halves[i]] + np.float32(offset)
            target[i] = np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(255))))


@kernel("void(Array(uint8, 1, 'C', readonly=True), uint32, uint64, uint8[::1])")
def impulses(levels: U8, share: int, seed: np.uint64, out: U8) -> None:
    """Set `share` of 65536 values to 0 or 255, half each."""
    words = np.empty(BLOCK, np.uint64)
    halves = words.view(np.uint16)
    low, high = np.uint16(share // 2), np.uint16(share)
    for start in range(0, out.size, 4 * BLOCK):
        random_words(seed, start // 4, words)
        source, target = levels[start : start + 4 * BLOCK], out[start : start + 4 * BLOCK]
        for i in range(target.size):
            value = source[i] if halves[i] >= high else np.uint8(255)
            target[i] = value if halves[i] >= low else np.uint8(0)


@kernel("void(Array(uint8, 1, 'C', readonly=True), Array(uint32, 1, 'C', readonly=True), uint64, uint8[::1])")
def replace_levels(levels: U8, entries: NDArray[np.uint32], seed: np.uint64, out: U8) -> None:
    """Replace every value by a draw from its level's distribution, given as alias tables (Walker 1977)."""
    words = np.empty(BLOCK, np.uint64)
    quarters = words.view(np.uint32)
    for start in range(0, out.size, 2 * BLOCK):
        random_words(seed, start // 2, words)
        source, target = levels[start : start + 2 * BLOCK], out[start : start + 2 * BLOCK]
        for i in range(target.size):
            drawn = quarters[i]
            column = drawn >> np.uint32(24)
            entry = entries[(np.uint32(source[i]) << np.uint32(8)) | column]
            stays = ((drawn >> np.uint32(8)) & np.uint32(0xFFFF)) < (entry >> np.uint32(8))
            target[i] = np.uint8(column) if stays else np.uint8(entry)


@kernel("void(float64[:, ::1], uint32[:, ::1])")
def alias_tables(chances: NDArray[np.float64], out: NDArray[np.uint32]) -> None:
    """Turn rows of 256 chances into alias tables: (threshold of 65536) << 8 | other outcome."""
    small, large = np.empty(256, np.int64), np.empty(256, np.int64)
    for row in range(chances.shape[0]):
        left = chances[row] * 256.0
        few, many = 0, 0
        for k in range(256):
            out[row, k] = np.uint32(65536 << 8) | np.uint32(k)
            if left[k] < 1.0:
                small[few] = k
                few += 1
            else:
                large[many] = k
                many += 1
        while few > 0 and many > 0:
            few -= 1
            poor, rich = small[few], large[many - 1]
            out[row, poor] = (np.uint32(left[poor] * 65536.0 + 0.5) << np.uint32(8)) | np.uint32(rich)
            left[rich] -= 1.0 - left[poor]
            if left[rich] < 1.0:
                many -= 1
                small[few] = rich
                few += 1


@kernel("void(Array(uint8, 2, 'C', readonly=True), Array(uint8, 2, 'C', readonly=True), uint8[:, ::1])")
def look_up(pixels: U8, tables: U8, out: U8) -> None:
    """Replace each of three channels by the entry in its own table."""
    red, green, blue = tables[0], tables[1], tables[2]
    for i in range(pixels.shape[0]):
        out[i, 0] = red[pixels[i, 0]]
        out[i, 1] = green[pixels[i, 1]]
        out[i, 2] = blue[pixels[i, 2]]


@kernel("void(Array(uint8, 2, 'C', readonly=True), Array(uint8, 2, 'C', readonly=True), uint8[:, ::1])")
def map_by_brightest(pixels: U8, table: U8, out: U8) -> None:
    """Replace each channel of a pixel by table[largest channel, this channel]."""
    for i in range(pixels.shape[0]):
        r, g, b = pixels[i, 0], pixels[i, 1], pixels[i, 2]
        row = table[max(r, g, b)]
        out[i, 0] = row[r]
        out[i, 1] = row[g]
        out[i, 2] = row[b]


@kernel("void(Array(uint8, 2, 'C', readonly=True), float32, float32, uint8[:, ::1])")
def scale_saturation(pixels: U8, scale: float, shift: float, out: U8) -> None:
    """Set the HSV saturation S to S * scale + shift, at most 1; a gray pixel has hue 0, which is red.

    The values 0..255 are whole; a hair is added so that truncation keeps those that stay whole.
    """
    red, green, blue = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    for start in range(0, pixels.shape[0], BLOCK):
        source, target = pixels[start : start + BLOCK], out[start : start + BLOCK]
        for i in range(source.shape[0]):
            red[i] = source[i, 0]
            green[i] = source[i, 1]
            blue[i] = source[i, 2]
        for i in range(source.shape[0]):
            r, g, b = red[i], green[i], blue[i]
            high = max(r, g, b)
            spread = high - min(r, g, b)
            wanted = min(np.float32(scale) * spread + np.float32(shift) * high, high)
            gray = np.float32(1) if spread == np.float32(0) else np.float32(0)
            ratio = wanted / max(spread, np.float32(1))
            top = high + np.float32(1e-3)
            red[i] = top - (high - r) * ratio
            green[i] = top - (high - g + gray) * ratio
            blue[i] = top - (high - b + gray) * ratio
        for i in range(source.shape[0]):
            target[i, 0] = np.uint8(np.int32(red[i]))
            target[i, 1] = np.uint8(np.int32(green[i]))
            target[i, 2] = np.uint8(np.int32(blue[i]))


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), Array(uint8, 3, 'C', readonly=True), int64, int64, float32, "
    "float32, uint8[:, :, ::1])"
)
def blend_tiled(
    image: U8, tile: U8, row_0: int, column_0: int, weight: float, tile_weight: float, out: U8
) -> None:
    """Mix the image with a texture that repeats in both directions, starting at (row_0, column_0)."""
    rows, columns, channels = image.shape
    own, other = np.float32(weight), np.float32(tile_weight)
    for y in range(rows):
        strip = tile[(row_0 + y) % tile.shape[0]].reshape(-1)
        done = 0
        at = column_0 % tile.shape[1] * channels
        while done < columns * channels:
            patch = strip[at : at + columns * channels - done]
            source = image[y].reshape(-1)[done : done + patch.size]
            target = out[y].reshape(-1)[done : done + patch.size]
            for i in range(target.size):
                value = np.float32(source[i]) * own + np.float32(patch[i]) * other
                target[i] = np.uint8(np.int32(min(value, np.float32(255))))
            done += patch.size
            at = 0


@kernel("void(Array(float32, 1, 'C', readonly=True), int64, float32[::1])")
def widen(values: F32, channels: int, out: F32) -> None:
    """Repeat one value per pixel for each of its channels."""
    if channels == 3:
        for x in range(values.size):
            out[3 * x] = values[x]
            out[3 * x + 1] = values[x]
            out[3 * x + 2] = values[x]
    else:
        for x in range(values.size):
            out[x] = values[x]


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), Array(float32, 2, 'C', readonly=True), float32, float32, "
    "float32, uint8[:, :, ::1])"
)
def blend_layer(image: U8, layer: F32, weight: float, gain: float, shift: float, out: U8) -> None:
    """Write image * weight + (layer + shift) * gain, truncated; the layer has one value per pixel."""
    rows, columns, channels = image.shape
    narrow, wide = np.empty(columns, np.float32), np.empty(columns * channels, np.float32)
    for y in range(rows):
        for x in range(columns):
            narrow[x] = (layer[y, x] + np.float32(shift)) * np.float32(gain)
        widen(narrow, channels, wide)
        source, target = image[y].reshape(-1), out[y].reshape(-1)
        for i in range(target.size):
            value = np.float32(source[i]) * np.float32(weight) + wide[i]
            target[i] = np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(255))))


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), Array(float32, 2, 'C', readonly=True), "
    "Array(float32, 1, 'C', readonly=True), float32, uint8[:, :, ::1])"
)
def blend_colour(image: U8, weight: F32, colour: F32, offset: float, out: U8) -> None:
    """Write image * weight + colour * (1 - weight) + offset, truncated, with one weight for each pixel."""
    rows, columns, channels = image.shape
    wide, veil = np.empty(columns * channels, np.float32), np.empty(columns * channels, np.float32)
    for c in range(channels):
        veil[c::channels] = colour[c]
    for y in range(rows):
        widen(weight[y], channels, wide)
        source, target = image[y].reshape(-1), out[y].reshape(-1)
        for i in range(target.size):
            value = veil[i] + (np.float32(source[i]) - veil[i]) * wide[i] + np.float32(offset)
            target[i] = np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(255))))


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), Array(float32, 2, 'C', readonly=True), "
    "Array(float32, 1, 'C', readonly=True), uint8[:, :, ::1])"
)
def add_colour(image: U8, layer: F32, colour: F32, out: U8) -> None:
    """Write image + layer * colour, truncated; the layer has one value for each pixel."""
    rows, columns, channels = image.shape
    wide, veil = np.empty(columns * channels, np.float32), np.empty(columns * channels, np.float32)
    for c in range(channels):
        veil[c::channels] = colour[c]
    for y in range(rows):
        widen(layer[y], channels, wide)
        source, target = image[y].reshape(-1), out[y].reshape(-1)
        for i in range(target.size):
            value = np.float32(source[i]) + wide[i] * veil[i]
            target[i] = np.uint8(np.int32(min(value, np.float32(255))))


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), Array(uint8, 2, 'A', readonly=True), float32, "
    "uint8[:, :, ::1])"
)
def snow_over(image: U8, flakes: U8, mix: float, out: U8) -> None:
    """Whiten the image, and add the flakes and the flakes turned by 180 degrees."""
    rows, columns, channels = image.shape
    white, added = np.empty(columns, np.float32), np.empty(columns, np.float32)
    wide_white, wide_added = (
        np.empty(columns * channels, np.float32),
        np.empty(columns * channels, np.float32),
    )
    kept, whitened = np.float32(mix), np.float32(1 - mix)
    for y in range(rows):
        line, flake, turned = image[y], flakes[y], flakes[rows - 1 - y]
        for x in range(columns):
            added[x] = np.float32(flake[x]) + np.float32(turned[columns - 1 - x])
        if channels == 3:
            for x in range(columns):
                gray = (
                    np.float32(0.299) * np.float32(line[x, 0])
                    + np.float32(0.587) * np.float32(line[x, 1])
                    + np.float32(0.114) * np.float32(line[x, 2])
                )
                white[x] = np.float32(1.5) * gray + np.float32(127.5)
        else:
            for x in range(columns):
                white[x] = np.float32(1.5) * np.float32(line[x, 0]) + np.float32(127.5)
        widen(white, channels, wide_white)
        widen(added, channels, wide_added)
        source, target = line.reshape(-1), out[y].reshape(-1)
        for i in range(target.size):
            level = np.float32(source[i])
            value = kept * level + whitened * max(level, wide_white[i]) + wide_added[i]
            target[i] = np.uint8(np.int32(min(value, np.float32(255))))

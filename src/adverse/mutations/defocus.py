"""Defocus by depth: what is not at the focus distance spreads (Pezzementi et al. 2018, III-B.2).

Exactly, every pixel is scattered with a kernel of its own. Fast, the pixels are sorted into layers of equal
blur, each pixel shared between the two layers next to it so that the variance of its kernel is right, and
every layer is scattered with one separable kernel. On photographs the two differ by less than one level.

The loops at the end are compiled; they keep sums with the channels of a pixel side by side, and the sum of
weights after them.
"""
# Explicit widths keep the loops in vector registers, and indexing keeps them in one pass.
# ruff: noqa: C901, PLR0912

from __future__ import annotations

import functools
import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.marks import SimpleMagnitude, Strength
from adverse.mutations import pixels
from adverse.mutations.compiled import kernel
from adverse.mutations.hazards import OUT_OF_FOCUS
from adverse.plugins import NonNegative, Positive, mutation, unchanged_at
from adverse.types import Depth, Image

LEAST_RADIUS_PX = 0.2
"""A Gaussian narrower than this leaves a pixel where it is: its neighbours would get less than 4e-6."""

TRUNCATE_SIGMA = 4.0
"""Half-width of the exact kernel in standard deviations."""

LAYER_TRUNCATE_SIGMA = 3.3
"""Half-width of a layer's kernel: what is cut off weighs 0.1 %."""

FIRST_LAYERS_PX = (0.0, 0.28, 0.35, 0.41, 0.47, 0.53, 0.59, 0.65, 0.72, 0.8, 0.88, 0.97, 1.07)
LAYER_RATIO = 1.12
"""Blur radii of the layers: dense below 1 px, where a sampled kernel changes shape, then in proportion."""

PLACES = 4096
PLACE_PX = 1 / 64
"""The table from blur radius to layer has so many entries, more where they would be further apart than this:
one pixel before the lens must not make the blur of all others coarser."""

WIDEST_PX = 128.0
"""The widest blur: a depth of 10 um asks for 100,000 px, and the time grows with the square of the radius. A
pixel spread with this radius gives each neighbour 1e-5 of itself; more changes nothing one can see."""

WIDE_PX = 32.0
"""From here on the variance of a sampled kernel grows with its radius squared."""


class _Layers(NamedTuple):
    scale: float
    place: NDArray[np.float32]
    taps: NDArray[np.float32]
    reach: NDArray[np.int64]


def sigma_at(depth_m: NDArray[np.float64], *, focus_m: float, kappa: float) -> NDArray[np.float64]:
    """Return the blur radius at each depth in full precision, for figures; images take `blur_radius_px`.

    >>> sigma_at(np.array([1.0, 2.0]), focus_m=2.0, kappa=3.6)
    array([1.8, 0. ])
    """
    sigma: NDArray[np.float64] = kappa * np.abs(1 / depth_m - 1 / focus_m)
    return sigma


@mutation(
    hazards=(OUT_OF_FOCUS,),
    strength=Strength("kappa", 0, 100, power=2),
    simple=SimpleMagnitude("sigma_px", sigma_at),
)
def defocus(
    image: Image, *, depth_m: Depth, focus_m: Positive, kappa: Annotated[NonNegative, unchanged_at(0)]
) -> Image:
    """Spread every pixel by a Gaussian of `blur_radius_px`; output is received colour over received weight.

    Each pixel's kernel has unit weight, and what is spread beyond the border is lost
    (Pezzementi et al. 2018, eq. 3 and 4).
    `kappa` is in pixel metres; `camera_constant` makes it from a lens and a sensor. A radius beyond
    `WIDEST_PX`, or beyond the longer side of the image, counts as that: such a pixel is gone either way.

    >>> near_and_far = np.array([[1.0, np.inf]], np.float32)
    >>> defocus(np.array([[0, 200]], np.uint8), depth_m=near_and_far, focus_m=1.0, kappa=1.0)
    array([[ 18, 200]], dtype=uint8)
    """
    source = pixels.pixels(image)
    radius = _radius_within(source, blur_radius_px(depth_m, focus_m=focus_m, kappa=kappa))
    widest = float(radius.max())
    if widest < LEAST_RADIUS_PX:
        return image.copy()
    sums = _empty_sums(source)
    scatter_in_layers(source, radius, *_layers(_layers_up_to(widest)), sums)
    return _divided(sums, source).reshape(image.shape)


def defocus_exactly(image: Image, *, depth_m: Depth, focus_m: float, kappa: float) -> Image:
    """Do what `defocus` does, one pixel at a time: slow, and what the fast way is measured against."""
    source = pixels.pixels(image)
    radius = _radius_within(source, blur_radius_px(depth_m, focus_m=focus_m, kappa=kappa))
    sums = _empty_sums(source)
    scatter_exactly(source, radius, LEAST_RADIUS_PX, TRUNCATE_SIGMA, sums)
    return _divided(sums, source).reshape(image.shape)


def blur_radius_px(depth_m: Depth, *, focus_m: float, kappa: float) -> NDArray[np.float32]:
    """Return kappa |D - focus| / (D focus), the standard deviation of the blur; kappa / focus for the sky.

    >>> blur_radius_px(np.array([1.0, 2.0, np.inf], np.float32), focus_m=2.0, kappa=3.6)
    array([1.8, 0. , 1.8], dtype=float32)
    """
    with np.errstate(over="ignore"):
        closeness = np.reciprocal(np.ascontiguousarray(depth_m, np.float32))
        np.minimum(closeness, np.finfo(np.float32).max, out=closeness)  # infinity times a kappa of 0 is NaN
        closeness -= np.float32(1 / focus_m)
        np.abs(closeness, out=closeness)
        closeness *= np.float32(kappa)
    return closeness


def camera_constant(*, focal_m: float, f_number: float, pixel_m: float) -> float:
    """Return kappa = f^2 / (N gamma), in pixel metres, for a lens and the pitch of a sensor.

    Pezzementi et al. 2018 prints gamma above the line; metres^2 over metres per pixel gives the unit that
    its equation 4 needs.

    >>> round(camera_constant(focal_m=2.5e-3, f_number=1.4, pixel_m=1.24e-6), 3)
    3.6
    """
    return focal_m**2 / (f_number * pixel_m)


def _radius_within(source: Image, radius: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the radii, none above the longer side of the image, nor above the widest that is made."""
    return np.minimum(radius, np.float32(min(max(source.shape[:2]), WIDEST_PX)), out=radius)


def _empty_sums(source: Image) -> NDArray[np.float32]:
    rows, columns, channels = source.shape
    return np.zeros((rows, columns * (channels + 1)), np.float32)


def _divided(sums: NDArray[np.float32], source: Image) -> Image:
    out = np.empty_like(source)
    divide_by_weight(sums, out)
    return out


def _layer_radius_px(number: int) -> float:
    beyond = number - len(FIRST_LAYERS_PX) + 1
    return FIRST_LAYERS_PX[number] if beyond <= 0 else FIRST_LAYERS_PX[-1] * LAYER_RATIO**beyond


def _layers_up_to(widest_px: float) -> int:
    """Return how many layers reach a radius."""
    number = 1
    while _layer_radius_px(number) < widest_px:
        number += 1
    return number + 1


@functools.lru_cache(maxsize=64)
def _layers(count: int) -> _Layers:
    """Return the kernels of the first layers, and which layers each blur radius is shared between."""
    radii = [_layer_radius_px(number) for number in range(count)]
    kernels = [_taps(radius, LAYER_TRUNCATE_SIGMA) for radius in radii]
    taps = np.zeros((count, max(map(len, kernels))), np.float32)
    for number, layer in enumerate(kernels):
        taps[number, : len(layer)] = layer
    reach = np.array([len(layer) - 1 for layer in kernels])
    wanted = np.linspace(0, radii[-1], max(PLACES, math.ceil(radii[-1] / PLACE_PX)))
    variances = [_variance(radius) if radius >= LEAST_RADIUS_PX else 0.0 for radius in wanted]
    place = np.interp(variances, [_variance(radius) for radius in radii], np.arange(count))
    return _Layers((len(wanted) - 1) / radii[-1], place.astype(np.float32), taps, reach)


def _taps(sigma_px: float, truncate: float) -> NDArray[np.float64]:
    """Return one half of a sampled Gaussian, from its centre outwards; both halves together weigh 1."""
    distance = np.arange(math.ceil(truncate * sigma_px) + 1)
    weight = np.exp(-0.5 * (distance / sigma_px) ** 2) if sigma_px else np.ones(1)
    half: NDArray[np.float64] = weight / (2 * weight.sum() - weight[0])
    return half


def _variance(sigma_px: float) -> float:
    """Return the variance of the sampled kernel, which for narrow ones is not sigma squared."""
    if sigma_px > WIDE_PX:
        return _variance(WIDE_PX) * (sigma_px / WIDE_PX) ** 2
    weight = _taps(sigma_px, TRUNCATE_SIGMA)
    return float(2 * (weight * np.arange(len(weight)) ** 2).sum())


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

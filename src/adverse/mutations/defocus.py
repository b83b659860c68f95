"""Defocus by depth: what is not at the focus distance spreads (Pezzementi et al. 2018, III-B.2).

Exactly, every pixel is scattered with a kernel of its own. Fast, the pixels are sorted into layers of equal
blur, each pixel shared between the two layers next to it so that the variance of its kernel is right, and
every layer is scattered with one separable kernel. On photographs the two differ by less than one level.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.marks import SimpleMagnitude, Strength
from adverse.mutations import pixels, scatter_kernels
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
    `kappa` is in pixel metres; `camera_constant` makes it from a lens and a sensor. A radius beyond the
    longer side of the image counts as that side: such a pixel is spread over all of it either way.

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
    scatter_kernels.scatter_in_layers(source, radius, *_layers(_layers_up_to(widest)), sums)
    return _divided(sums, source).reshape(image.shape)


def defocus_exactly(image: Image, *, depth_m: Depth, focus_m: float, kappa: float) -> Image:
    """Do what `defocus` does, one pixel at a time: slow, and what the fast way is measured against."""
    source = pixels.pixels(image)
    radius = _radius_within(source, blur_radius_px(depth_m, focus_m=focus_m, kappa=kappa))
    sums = _empty_sums(source)
    scatter_kernels.scatter_exactly(source, radius, LEAST_RADIUS_PX, TRUNCATE_SIGMA, sums)
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
    """Return the radii, none above the longer side of the image; a depth of 10 um asks for 100,000 px."""
    return np.minimum(radius, np.float32(max(source.shape[:2])), out=radius)


def _empty_sums(source: Image) -> NDArray[np.float32]:
    rows, columns, channels = source.shape
    return np.zeros((rows, columns * (channels + 1)), np.float32)


def _divided(sums: NDArray[np.float32], source: Image) -> Image:
    out = np.empty_like(source)
    scatter_kernels.divide_by_weight(sums, out)
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
    for number, kernel in enumerate(kernels):
        taps[number, : len(kernel)] = kernel
    reach = np.array([len(kernel) - 1 for kernel in kernels])
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

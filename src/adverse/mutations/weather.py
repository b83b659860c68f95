"""Weather in the air and on the lens: fog, snow, frost, drops of water and mud.

The textures of frost are drawn, not photographed: needles of ice, which are ridges of noise that was
stretched in one direction, grow in patches of different directions over a cloudy ground. They repeat without
a seam, so an image of any size can be cut from them. Their mean colours and contrasts are those of the five
photographs of the reference (Michaelis et al. 2019), so the veil has the same strength; the shapes differ.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.mutations import area_kernels, motion, pixel_kernels, pixels, rim_kernels
from adverse.mutations.blur import smoothed
from adverse.mutations.pixels import LUMA, colour_for
from adverse.seeds import generator
from adverse.types import Image

FIRST_WIBBLE = 100.0
"""Amplitude of the coarsest step of the fog; a step adds uniform noise of plus or minus its square."""

WATER_COLOUR = (175, 238, 238)
MUD_COLOUR = (63, 42, 20)
MUD_EDGE = 0.8
"""Mud thinner than this is clear."""

RIM_GRADIENTS = (50, 150)
"""Changes of thickness, by Sobel's differences: above the second is a rim, and so is what is above the first
and hangs together with it."""
FAR_FROM_RIM_PX = 20
"""Drops are lit alike where they are further from their rim than this."""


class Flakes(NamedTuple):
    """Snow of one severity: brightness (mean, deviation), size, least brightness, motion, and whitening."""

    mean: float
    deviation: float
    zoom: float
    least: float
    radius: int
    sigma: float
    keep: float


class Splash(NamedTuple):
    """Spatter of one severity: thickness (mean, deviation), smoothness, least thickness, and strength.

    For mud, `strength` is the standard deviation in pixels that softens its rim.
    """

    mean: float
    deviation: float
    sigma: float
    least: float
    strength: float
    mud: bool


class Cloud(NamedTuple):
    """A part of a cloud, and the least and greatest height of the whole."""

    heights: NDArray[np.float32]
    low: float
    high: float


def fog(image: Image, *, weight: float, decay: float, rng: np.random.Generator) -> Image:
    """Add a cloud of `weight` times white, and scale back to the image's own maximum; truncates."""
    source = pixels.pixels(image)
    cloud = plasma(max(source.shape), source.shape[:2], decay, rng)
    brightest = float(source.max()) / 255
    scale = brightest / (brightest + weight)
    out = np.empty_like(source)
    spread = cloud.high - cloud.low
    gain = scale * weight * 255 / spread if spread > 0 else 0.0
    pixel_kernels.blend_layer(source, cloud.heights, scale, gain, -cloud.low, out)
    return out.reshape(image.shape)


def plasma(size: int, shape: tuple[int, ...], decay: float, rng: np.random.Generator) -> Cloud:
    """Return the upper left part of a fractal cloud made by diamonds and squares.

    The whole cloud is periodic, and its side is the next power of two from `size` on.

    >>> plasma(5, (3, 4), 2.0, np.random.default_rng(0)).heights.shape
    (3, 4)
    """
    heights: NDArray[np.float32] = np.zeros((1, 1), np.float32)
    extent = np.zeros(2, np.float32)
    side, wibble = 1, FIRST_WIBBLE
    while side < size:
        side *= 2
        finer = np.empty((side, side) if side < size else shape, np.float32)
        area_kernels.refine_plasma(heights, wibble * wibble, pixels.stream(rng), finer, extent)
        heights = finer
        wibble /= decay
    return Cloud(heights, float(extent[0]), float(extent[1]))


def snow(image: Image, flakes: Flakes, *, rng: np.random.Generator) -> Image:
    """Whiten the image and add falling flakes, and the same flakes turned by 180 degrees; truncates."""
    source = pixels.pixels(image)
    rows, columns, _ = source.shape
    layer = np.zeros((rows, columns), np.float32)
    motion.add_zoomed(pixels.normal((rows, columns), rng)[..., None], flakes.zoom, layer)
    layer *= np.float32(flakes.deviation)
    layer += np.float32(flakes.mean)
    bright = _at_least(np.minimum(layer, 1), flakes.least)
    path = motion.track(flakes.radius, flakes.sigma, float(rng.uniform(-135, -45)), (rows, columns))
    fallen = motion.motion_blur(bright, path, gain=255.0, offset=pixels.ROUND)
    out = np.empty_like(source)
    pixel_kernels.snow_over(source, fallen.reshape(rows, columns), flakes.keep, out)
    return out.reshape(image.shape)


def spatter(image: Image, splash: Splash, *, rng: np.random.Generator) -> Image:
    """Put drops of water, which brighten, or mud, which covers, on the lens; truncates."""
    source = pixels.pixels(image)
    liquid = pixels.normal(source.shape[:2], rng)
    liquid *= np.float32(splash.deviation)
    liquid += np.float32(splash.mean)
    liquid = smoothed(liquid, splash.sigma, border=cv2.BORDER_REPLICATE)
    out = np.empty_like(source)
    if splash.mud:
        cover = smoothed(
            (liquid > splash.least).astype(np.float32), splash.strength, border=cv2.BORDER_REPLICATE
        )
        clear = 1 - _at_least(cover, MUD_EDGE)
        colour = np.array(colour_for(image, MUD_COLOUR), np.float32)
        pixel_kernels.blend_colour(source, clear, colour, pixels.HAIR, out)
    else:
        drops = _drops(liquid, splash.least)
        colour = np.array(colour_for(image, WATER_COLOUR), np.float32)
        pixel_kernels.add_colour(source, drops, colour * np.float32(splash.strength), out)
    return out.reshape(image.shape)


def _drops(liquid: NDArray[np.float32], least: float) -> NDArray[np.float32]:
    """Return how much light each pixel's water adds, 0 to 1: brightest inside the rims, lit from one side."""
    thick = (_at_least(liquid, least) * np.float32(255)).astype(np.uint8)
    near = cv2.blur(rim_distances(thick), (3, 3)).astype(np.uint8)
    relief = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
    lit = cv2.blur(cv2.filter2D(cv2.equalizeHist(near), cv2.CV_8U, relief), (3, 3))
    light = cv2.multiply(thick, lit, dtype=cv2.CV_32F).astype(np.float32, copy=False)
    light /= np.float32(max(light.max(), 1))
    return light


def rim_distances(thick: Image) -> NDArray[np.float32]:
    """Return how many pixels away the nearest rim is, where thickness changes sharply; at most 20.

    >>> step = np.repeat(np.uint8([[0, 200]]), 4, axis=1)
    >>> rim_distances(step)[0].tolist()
    [3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    """
    rows, columns = thick.shape
    rims = np.empty((rows + 2, columns + 2), np.uint8)
    rim_kernels.mark_crests(thick, *RIM_GRADIENTS, rims)
    rim_kernels.spread_strong(np.empty(thick.size, np.int64), rims)
    near = np.empty((rows + 4, columns + 4), np.float32)
    rim_kernels.rim_distances(rims, FAR_FROM_RIM_PX, near)
    return near[2:-2, 2:-2]


def _at_least(values: NDArray[np.float32], least: float) -> NDArray[np.float32]:
    """Return the values, with 0 for those below `least`."""
    below = float(np.nextafter(np.float32(least), np.float32(0)))
    return cv2.threshold(values, below, 0, cv2.THRESH_TOZERO)[1].astype(np.float32, copy=False)


SIZE = (1024, 1536)
"""Rows and columns of a texture before it repeats."""

LOOKS = (
    ((77, 148, 164), 20),
    ((199, 203, 213), 21),
    ((199, 203, 213), 21),
    ((144, 159, 172), 27),
    ((103, 114, 126), 38),
)
"""Mean R, G, B and standard deviation of each texture: what crops of 224 x 224 to 640 x 480 pixels see of the
reference's photographs, more of the middle than of the edges. It has its second photograph twice."""

DIRECTIONS_DEG = (15.0, 50.0, 85.0, 120.0, 155.0)
NEEDLE_SPREAD_DEG = 6.0
PATCH_CYCLES = 5.0
"""Typical number of patches along the rows of a texture."""

FINEST_CYCLES = 180.0
"""Detail fades beyond so many waves along the rows of a texture."""

NEEDLE_SHARE = 0.7
"""How much of the relief is needles; the rest is cloud."""


def frost(
    image: Image, *, texture: Image, weight: float, frost_weight: float, rng: np.random.Generator
) -> Image:
    """Lay a texture over the image, starting at a random place: weight image + frost_weight ice; truncates.

    Any RGB texture will do: `texture(0)` to `texture(4)` are ours; photographs of your own lens are better.
    """
    source = pixels.pixels(image)
    if source.shape[2] == 1:
        texture = np.rint(texture @ np.array(LUMA)).astype(np.uint8)[..., None]
    row, column = int(rng.integers(texture.shape[0])), int(rng.integers(texture.shape[1]))
    out = np.empty_like(source)
    pixel_kernels.blend_tiled(source, texture, row, column, weight, frost_weight, out)
    return out.reshape(image.shape)


@functools.lru_cache(maxsize=len(LOOKS))
def texture(number: int) -> Image:
    """Return one of our five ice textures, (1024, 1536, 3), the same on every call and machine.

    >>> texture(1).shape
    (1024, 1536, 3)
    """
    colour, contrast = LOOKS[number]
    relief = _relief(number)
    relief = (relief - relief.mean()) / relief.std() * contrast
    ice: Image = np.clip(relief[..., None] + np.array(colour, np.float32), 0, 255).astype(np.uint8)
    ice.flags.writeable = False
    return ice


def _relief(number: int) -> NDArray[np.float32]:
    """Return needles in patches over cloud, periodic, about zero."""
    from scipy import fft  # noqa: PLC0415 - slow to import, and most mutations need none of it

    rng = generator(0, "frost", str(number))
    rows, columns = SIZE
    down = (fft.fftfreq(rows) * rows)[:, None].astype(np.float32)
    across = (fft.rfftfreq(columns) * rows)[None, :].astype(np.float32)
    cycles = np.maximum(np.hypot(down, across), 1)
    angle = np.degrees(np.arctan2(down, across))
    spectrum = fft.rfft2(rng.standard_normal(SIZE, dtype=np.float32))
    spectrum *= np.exp(-((cycles / FINEST_CYCLES) ** 2))

    total, chosen = np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32)
    for direction in DIRECTIONS_DEG:
        gap = (angle - direction + 90) % 180 - 90
        along = np.exp(-0.5 * (gap / NEEDLE_SPREAD_DEG) ** 2) * cycles**-0.95 * (cycles > 4)
        streaks = fft.irfft2(spectrum * along, SIZE)
        needles = np.exp(-2.5 * np.abs(streaks) / streaks.std())
        patch = fft.irfft2(fft.rfft2(rng.standard_normal(SIZE, dtype=np.float32)) * _patches(cycles), SIZE)
        favour = np.exp(6 * patch / patch.std())
        total += favour * needles
        chosen += favour
    cloud = fft.irfft2(spectrum * cycles**-1.3, SIZE)
    needles = total / chosen
    needles -= needles.mean()
    cloud /= cloud.std()
    relief: NDArray[np.float32] = NEEDLE_SHARE * needles / needles.std() + (1 - NEEDLE_SHARE) * cloud
    return relief


def _patches(cycles: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a spectrum of soft patches of about one size."""
    soft: NDArray[np.float32] = np.exp(-0.5 * (cycles / PATCH_CYCLES) ** 2)
    return soft

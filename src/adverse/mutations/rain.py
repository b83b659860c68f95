"""Rain by depth: streaks of the drops that fall through the view, and a veil of those too faint to be seen.

Drops are distributed in size as by Marshall & Palmer 1948 and fall as fast as by Atlas & Ulbrich 1977. While
the shutter is open a drop draws a streak, the shorter and thinner the further away; each pixel is covered for
a part of the exposure only, so a streak is a faint veil of the light that the drop gathers from the sky (Garg
& Nayar 2007). Surfaces hide the drops behind them. Drops whose streak would cover less than 0.4 % of what
is behind it are not drawn one by one: together they are a veil, thicker with distance.

Drawn drops and veil together take away as much light as is measured in rain, 0.365 R^0.63 per km: the mean
over many frames is that of haze, image T + sky (1 - T) with T = exp(-beta D), in linear light.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.

from __future__ import annotations

import functools
import itertools
import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from adverse.marks import Hazard, Strength
from adverse.mutations import pixels
from adverse.mutations.compiled import kernel
from adverse.mutations.linear_light import CODED, LIGHT, STEPS
from adverse.mutations.pixel_kernels import random_words
from adverse.plugins import NonNegative, Positive, mutation, unchanged_at
from adverse.seeds import generator
from adverse.types import Depth, Image

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]

DROPS_PER_M3_MM = 8000.0
"""N0 of Marshall & Palmer: drops per cubic metre and millimetre of diameter."""

LARGEST_MM = 8.0
SIZES = 400
FAINTEST = 0.004
"""A streak that covers less than this share of the light behind it is a part of the veil."""

NEAREST_M = 0.2
"""Nothing falls nearer to the lens than this."""

NEAR_FOCAL_PX = 800.0
SLICES = 4
"""Drops nearer than 1 m (at a focal length of 800 px; with its power 2/3, so that their number in the image
stays) are drawn anew for every frame. Those further away are many and faint: they are drawn once, on a tile
for each doubling of the distance, and the tiles are laid elsewhere in every frame."""

TILE = (256, 512)
"""Rows and columns of a tile; it repeats without a seam."""

MOST_DROPS = 200_000
"""On a tile; where there are more, the faintest of them are a part of the veil."""

RAIN_ENDS_M = 2000.0
"""What is further away, the sky as well, is seen through so much rain."""

GUST_M_S = 0.4
"""Standard deviation of the drops' speed across, by turbulence."""

QUANTILES = 4096
PLACES = 4096
"""Entries of the tables from chance to size, and from the root of the distance to the veil."""

PLACES_PER_ROOT_M = (PLACES - 1) / math.sqrt(RAIN_ENDS_M)
BRIGHTEST = 0.1
SAMPLED = 32
"""The light of the sky is the mean of the brightest tenth of the image, in so many rows or columns of it."""


class Camera(NamedTuple):
    """What of a camera matters to rain."""

    focal_px: float
    exposure_s: float
    aperture_m: float

    @property
    def slices_m(self) -> tuple[float, ...]:
        """Where near drops end, and where each slice does."""
        near = (self.focal_px / NEAR_FOCAL_PX) ** (2 / 3)
        return tuple(near * 2**number for number in range(SLICES + 1))


class Fall(NamedTuple):
    """Drops between two distances: how many per square pixel, and tables of equally likely sizes.

    Diameter in m, speed in m/s, cube of the distance up to which a streak is not too faint, in m^3; the last
    entry of the cubes is that of the distance where the drops begin.
    """

    density: float
    diameter_m: F32
    speed_m_s: F32
    cube_m3: F32


class Rain(NamedTuple):
    """Rain before one camera: the near drops, the tiles of the far ones, and the veil of all others.

    `places` says from which place on each tile is seen; `veil` is what the veil lets through at each place,
    which counts roots of the distance.
    """

    near: Fall
    tiles: F32
    places: NDArray[np.int32]
    veil: F32


def extinction_per_m(rate_mm_h: float) -> float:
    """Return beta of rain: twice the cross-section of the drops of Marshall & Palmer, 0.365 R^0.63 per km.

    >>> round(1000 * extinction_per_m(1.0), 3)
    0.365
    """
    return math.pi * DROPS_PER_M3_MM * 1e-6 / slope_per_mm(rate_mm_h) ** 3 if rate_mm_h else 0.0


def slope_per_mm(rate_mm_h: float) -> float:
    """Return Lambda = 4.1 R^-0.21: drops of diameter D are exp(-Lambda D) as many as the smallest."""
    return float(4.1 * rate_mm_h**-0.21)


def fall_speed_m_s(diameter_mm: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the speed of falling drops, 3.78 D^0.67 (Atlas & Ulbrich 1977)."""
    speed: NDArray[np.float64] = 3.78 * diameter_mm**0.67
    return speed


@mutation(
    hazards=(Hazard("medium", "particles", "as well as", "rain falls between the scene and the camera"),),
    strength=Strength("rate_mm_h", 0, 1000, power=3),
)
def rain(
    image: Image,
    *,
    depth_m: Depth,
    rate_mm_h: Annotated[NonNegative, Field(le=1000), unchanged_at(0)],
    exposure_ms: Annotated[Positive, Field(le=1000)] = 5.0,
    wind_m_s: Annotated[float, Field(ge=-40, le=40)] = 0.0,
    fov_deg: Annotated[float, Field(ge=5, le=170)] = 60.0,
    aperture_mm: Annotated[NonNegative, Field(le=100)] = 1.2,
    rng: np.random.Generator,
    baseline_m: float = 0.0,
) -> Image:
    """Let it rain at `rate_mm_h`: streaks by depth, and the veil of drops too faint to be seen one by one.

    5 mm/h is moderate rain, 25 heavy, 100 a cloudburst. Streaks are as long as drops fall, and `wind_m_s`
    blows them to the right, during `exposure_ms`; a longer exposure makes them longer and fainter. `fov_deg`
    is the width of the view, `aperture_mm` blurs drops close to the lens. The light in the drops is the mean
    of the brightest tenth of the image. Every frame has streaks of its own. A camera `baseline_m` further
    right sees the same drops, each shifted by its distance.

    >>> near = np.full((20, 20), 0.1, np.float32)
    >>> image = np.full((20, 20), 90, np.uint8)
    >>> int(rain(image, depth_m=near, rate_mm_h=25, rng=np.random.default_rng(0)).max())  # all is hidden
    90
    """
    if not rate_mm_h:
        return image.copy()
    source = pixels.pixels(image)
    rows, columns, _ = source.shape
    camera = Camera(columns / 2 / math.tan(math.radians(fov_deg) / 2), exposure_ms / 1000, aperture_mm / 1000)
    falling = rain_before(camera, rate_mm_h, wind_m_s, baseline_m)
    depth = np.ascontiguousarray(depth_m, np.float32)
    clear = np.ones((rows, columns), np.float32)
    _draw(falling.near, camera, wind_m_s, depth, clear, rng, baseline_m)
    sky = sky_light(source)
    beyond = (LIGHT - sky[:, None]) * np.float32(STEPS)
    out = np.empty_like(source)
    veil_over(
        source,
        clear,
        depth,
        np.array([RAIN_ENDS_M, PLACES_PER_ROOT_M], np.float32),
        falling.veil,
        falling.places,
        falling.tiles,
        rng.integers(0, TILE, (len(falling.tiles), 2)),
        sky * np.float32(STEPS) + np.float32(pixels.ROUND),
        beyond,
        CODED,
        out,
    )
    return out.reshape(image.shape)


def sky_light(source: Image) -> F32:
    """Return the mean linear light of the brightest pixels, for each channel."""
    sparse = max(min(source.shape[:2]) // SAMPLED, 1)
    some = source[::sparse, ::sparse].reshape(-1, source.shape[2])
    bright = sum(some[:, channel].astype(np.int64) for channel in range(some.shape[1]))
    last = len(some) - max(round(BRIGHTEST * len(some)), 1)
    least = np.partition(bright, last)[last]
    light: F32 = LIGHT[some[bright >= least]].mean(axis=0)
    return light


@functools.lru_cache(maxsize=8)
def rain_before(camera: Camera, rate_mm_h: float, wind_m_s: float, baseline_m: float = 0.0) -> Rain:
    """Return the rain before a camera, or one that far to its right; drawn once, for all frames."""
    falls = [
        drops_between(camera, rate_mm_h, low, high)
        for low, high in itertools.pairwise((0.0, *camera.slices_m))
    ]
    tiles = np.ones((len(falls) - 1, *TILE), np.float32)
    open_air = np.full(TILE, np.inf, np.float32)
    for number, tile in enumerate(tiles):
        rng = generator(0, "rain", str(number))
        _draw(falls[1 + number], camera, wind_m_s, open_air, tile, rng, baseline_m)
    places = np.array(
        [math.ceil(math.sqrt(far) * PLACES_PER_ROOT_M) for far in camera.slices_m[1:]], np.int32
    )
    place = np.arange(PLACES)
    distance = (place / PLACES_PER_ROOT_M) ** 2
    lost = extinction_per_m(rate_mm_h) * distance
    lost -= drawn_up_to(distance, camera, rate_mm_h, 0.0, camera.slices_m[0])
    for first, tile in zip(places, tiles, strict=True):
        lost += np.where(place >= first, np.log(tile.mean(dtype=np.float64)), 0)
    veil = np.exp(-lost).astype(np.float32)
    for table in (tiles, places, veil):
        table.flags.writeable = False
    return Rain(falls[0], tiles, places, veil)


def drops_between(camera: Camera, rate_mm_h: float, low_m: float, high_m: float) -> Fall:
    """Return the drops between two distances whose streaks are drawn."""
    diameter_m, number = drop_sizes(rate_mm_h)
    in_cone = number / 3 / camera.focal_px**2  # per square pixel, and cube of the distance
    low_m, high_m = max(low_m, NEAREST_M), max(high_m, NEAREST_M)
    furthest = seen_up_to(camera, rate_mm_h).clip(low_m, high_m)
    here = in_cone * (furthest**3 - low_m**3)
    chance = (np.arange(QUANTILES) + 0.5) / QUANTILES
    size = np.searchsorted(np.cumsum(here) / max(here.sum(), 1e-300), chance).clip(0, SIZES - 1)
    speed = fall_speed_m_s(diameter_m[size] * 1000)
    tables = [diameter_m[size], speed, np.append(furthest[size], low_m) ** 3]
    return Fall(float(here.sum()), *(table.astype(np.float32) for table in tables))


def drawn_up_to(
    distance_m: NDArray[np.float64], camera: Camera, rate_mm_h: float, low_m: float, high_m: float
) -> NDArray[np.float64]:
    """Return the share of the view that drawn drops nearer than each distance cover, if none overlap."""
    diameter_m, number = drop_sizes(rate_mm_h)
    low_m, high_m = max(low_m, NEAREST_M), max(high_m, NEAREST_M)
    furthest = seen_up_to(camera, rate_mm_h).clip(low_m, high_m)
    section = number * math.pi / 4 * diameter_m**2
    depths = np.clip(distance_m[:, None], low_m, furthest) - low_m
    share: NDArray[np.float64] = depths @ section
    return share


def seen_up_to(camera: Camera, rate_mm_h: float) -> NDArray[np.float64]:
    """Return the distance from which on the streaks of each size are too faint, or too many, to be drawn.

    A streak covers D / (v t) of the light behind it, for the time that the drop is before a pixel, times its
    width in pixels where that is less than one.
    """
    diameter_m, number = drop_sizes(rate_mm_h)
    speed = fall_speed_m_s(diameter_m * 1000)
    furthest = math.pi / 4 * camera.focal_px * diameter_m**2 / (FAINTEST * speed * camera.exposure_s)
    on_tile = number / 3 * TILE[0] * TILE[1] / camera.focal_px**2 @ furthest.clip(0, camera.slices_m[-1]) ** 3
    drawn: NDArray[np.float64] = furthest / max(on_tile / MOST_DROPS, 1) ** (1 / 3)
    return drawn


def drop_sizes(rate_mm_h: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return diameters in m, and how many drops of about each there are in a cubic metre."""
    step = LARGEST_MM / SIZES
    diameter_mm = (np.arange(SIZES) + 0.5) * step
    number = DROPS_PER_M3_MM * step * np.exp(-slope_per_mm(rate_mm_h) * diameter_mm)
    return diameter_mm / 1000, number


def _draw(
    fall: Fall,
    camera: Camera,
    wind_m_s: float,
    depth: F32,
    clear: F32,
    rng: np.random.Generator,
    baseline_m: float,
) -> None:
    """Draw the streaks of a random number of drops."""
    draw_streaks(
        pixels.stream(rng),
        int(rng.poisson(fall.density * clear.size)),
        fall.diameter_m,
        fall.speed_m_s,
        fall.cube_m3,
        pixels.normal_quantiles(),
        np.array([*camera, wind_m_s, depth.min(), baseline_m], np.float32),
        depth,
        clear,
    )


@kernel(
    "void(uint64, int64, Array(float32, 1, 'C', readonly=True), Array(float32, 1, 'C', readonly=True), "
    "Array(float32, 1, 'C', readonly=True), Array(float32, 1, 'C', readonly=True), float32[::1], "
    "Array(float32, 2, 'C', readonly=True), float32[:, ::1])"
)
def draw_streaks(
    seed: np.uint64,
    count: int,
    diameter: F32,
    speed: F32,
    cube: F32,
    normal: F32,
    camera: F32,
    depth: F32,
    clear: F32,
) -> None:
    """Multiply `clear` by what the streaks of so many drops let through, where they are before the scene.

    `camera` is focal length (px), exposure (s), aperture (m), wind (m/s), the scene's least distance (m), and
    how far to the right it stands (m).
    A drop's streak covers as many pixels, each weighted by its share, as the drop itself has at any moment. A
    streak that leaves the image comes in again at the other side, so that all places are alike.
    """
    rows, columns = clear.shape
    focal, exposure, aperture, wind, free = camera[0], camera[1], camera[2], camera[3], camera[4]
    baseline = camera[5]
    cube_0 = cube[cube.size - 1]
    one, half = np.float32(1), np.float32(0.5)
    part = np.float32(1 / 2**32)
    words = np.empty(512, np.uint64)
    quarters, eighths = words.view(np.uint32), words.view(np.uint16)
    for start in range(0, count, 256):
        random_words(seed, 2 * start, words)
        for n in range(min(256, count - start)):
            size = eighths[8 * n] >> np.uint16(4)
            chance = np.float32(quarters[4 * n + 1]) * part
            z = np.float32(math.exp(math.log(cube_0 + chance * (cube[size] - cube_0)) * np.float32(1 / 3)))
            x = np.float32(quarters[4 * n + 2]) * part * np.float32(columns)
            y = np.float32(quarters[4 * n + 3]) * part * np.float32(rows)
            across = wind + np.float32(GUST_M_S) * normal[eighths[8 * n + 1]]
            scale = focal / z
            x -= scale * baseline
            wide = scale * (diameter[size] + aperture)
            area = np.float32(math.pi / 4) * (scale * diameter[size]) ** 2
            fall = scale * speed[size] * exposure
            lean = across / speed[size]
            top, bottom = y - half * (fall + wide), y + half * (fall + wide)
            reach = np.float32(math.ceil(max(one, half * (wide + abs(lean)))))
            share = area / ((bottom - top) * reach * reach)  # a tent as wide as whole pixels weighs reach^2
            for v in range(math.floor(top), math.ceil(bottom)):
                within = min(bottom, np.float32(v + 1)) - max(top, np.float32(v))
                middle = x + lean * (np.float32(v) + half - y) - half  # in pixels, whole ones at their middle
                first, last = math.ceil(middle - reach), math.floor(middle + reach)
                row = v
                while row < 0:
                    row += rows
                while row >= rows:
                    row -= rows
                for u in range(first, last + 1):
                    column = u
                    while column < 0:
                        column += columns
                    while column >= columns:
                        column -= columns
                    if z < free or z < depth[row, column]:
                        covered = min(share * within * (reach - abs(np.float32(u) - middle)), one)
                        clear[row, column] *= one - covered


@kernel(
    "void(Array(uint8, 3, 'C', readonly=True), Array(float32, 2, 'C', readonly=True), "
    "Array(float32, 2, 'C', readonly=True), float32[::1], Array(float32, 1, 'C', readonly=True), "
    "Array(int32, 1, 'C', readonly=True), Array(float32, 3, 'C', readonly=True), int64[:, ::1], "
    "Array(float32, 1, 'C', readonly=True), Array(float32, 2, 'C', readonly=True), "
    "Array(uint8, 1, 'C', readonly=True), uint8[:, :, ::1])"
)
def veil_over(
    image: U8,
    clear: F32,
    depth: F32,
    scale: F32,
    veil: F32,
    places: NDArray[np.int32],
    tiles: F32,
    shifts: NDArray[np.int64],
    sky: F32,
    beyond: F32,
    coded: U8,
    out: U8,
) -> None:
    """Write sky + beyond[channel, level] T, coded; T is what near drops, tiles and veil let through.

    `scale` is the furthest distance, and places per root of a metre. `beyond` is the light of each level less
    that of the sky; both in steps of the table `coded`.
    """
    rows, columns, channels = image.shape
    high, wide = tiles.shape[1], tiles.shape[2]
    through, place = np.empty(columns, np.float32), np.empty(columns, np.int32)
    for y in range(rows):
        far, before = depth[y], clear[y]
        for x in range(columns):
            at = np.float32(math.sqrt(min(far[x], scale[0]))) * scale[1]
            place[x] = np.int32(at + np.float32(0.5))
            through[x] = before[x] * veil[place[x]]
        for n in range(places.size):
            line = tiles[n, (y + shifts[n, 0]) % high]
            begin, left = 0, shifts[n, 1]
            while begin < columns:  # until the tile begins again
                end = min(begin + wide - left, columns)
                some, where, strip = through[begin:end], place[begin:end], line[left:]
                for i in range(some.size):
                    some[i] *= strip[i] if where[i] >= places[n] else np.float32(1)
                begin, left = end, 0
        source, target = image[y], out[y]
        if channels == 3:
            red, green, blue = sky[0], sky[1], sky[2]
            for x in range(columns):
                target[x, 0] = coded[np.int32(red + beyond[0, source[x, 0]] * through[x])]
                target[x, 1] = coded[np.int32(green + beyond[1, source[x, 1]] * through[x])]
                target[x, 2] = coded[np.int32(blue + beyond[2, source[x, 2]] * through[x])]
        else:
            for x in range(columns):
                target[x, 0] = coded[np.int32(sky[0] + beyond[0, source[x, 0]] * through[x])]

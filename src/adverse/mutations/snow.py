"""Snow by depth: flakes that fall through the view from frame to frame, and a veil of those too small to see.

Flakes are distributed in size as by Gunn & Marshall 1958, by the diameter of the drop that each melts to.
How large the flake itself is follows from its density, 0.178 D^-0.922 g/cm^3 (Brandes et al. 2007), and how
fast it falls is 0.8 D^0.16 m/s (Locatelli & Hobbs 1974, D in mm). At 1 m/s a flake is in view for many
frames, so each has its place at any time: where it began, and how far it has fallen and been blown since.
That follows from the log's own random numbers and the time of the frame alone, and all places are equally
likely at all times. A flake that falls out of the view comes in again at the top, elsewhere.

Flakes that cover less than a twentieth of a pixel, and those beyond some metres, are not drawn one by one:
together they are a veil. All take away as much light as twice their cross-section: the mean over many logs
is that of haze, image T + sky (1 - T) with T = exp(-beta D), in linear light.
"""
# Loops are compiled: explicit widths keep them in vector registers, and indexing keeps them in one pass.

from __future__ import annotations

import functools
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
from adverse.mutations.rain import NEAREST_M, PLACES, PLACES_PER_ROOT_M, RAIN_ENDS_M, sky_light, veil_over
from adverse.plugins import NonNegative, Positive, mutation, unchanged_at
from adverse.types import Depth, Image

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

LARGEST_MELTED_MM = 5.0
SIZES = 48
SMALLEST_PX2 = 0.05
"""A flake that covers less of the image than this is a part of the veil."""
NEAR_M, NEAR_FOCAL_PX = 8.0, 800.0
"""So far flakes are drawn at a focal length of 800 px; with its power 2/3 at others, so that as many are."""
FLUTTER_M, SLOWEST_HZ, FASTEST_HZ = 0.02, 0.5, 1.5
"""Flakes swing to and fro as they fall."""


class Flakes(NamedTuple):
    """Flakes by size: diameter (m), how many in a cubic metre, and speed (m/s)."""

    diameter_m: F64
    per_m3: F64
    speed_m_s: F64


class View(NamedTuple):
    """What of a camera matters to snow."""

    rows: int
    columns: int
    focal_px: float
    exposure_s: float
    aperture_m: float

    @property
    def furthest_m(self) -> float:
        """Up to where flakes are drawn."""
        return float(NEAR_M * (self.focal_px / NEAR_FOCAL_PX) ** (2 / 3))


def flakes_of(rate_mm_h: float) -> Flakes:
    """Return the flakes of snow of so many millimetres of water in an hour.

    Of drops they melt to there are 3800 R^-0.87 exp(-2.55 R^-0.48 D) in a cubic metre and millimetre.

    >>> flakes = flakes_of(1.0)
    >>> round(float(flakes.per_m3.sum()))
    1490
    """
    edges_mm = np.linspace(0, LARGEST_MELTED_MM, SIZES + 1)
    slope = 2.55 * rate_mm_h**-0.48
    left = np.exp(-slope * edges_mm)
    melted_mm = (edges_mm[1:] + edges_mm[:-1]) / 2
    diameter_mm = (melted_mm**3 / 0.178) ** (1 / (3 - 0.922))
    per_m3 = 3800 * rate_mm_h**-0.87 / slope * (left[:-1] - left[1:])
    return Flakes(diameter_mm / 1000, per_m3, 0.8 * diameter_mm**0.16)


def snow_extinction_per_m(rate_mm_h: float) -> float:
    """Return beta of snow: twice the cross-section of its flakes; at 1 mm/h one sees about 900 m.

    >>> round(3.912 / snow_extinction_per_m(1.0))
    906
    """
    flakes = flakes_of(rate_mm_h)
    return float(2 * (flakes.per_m3 * math.pi / 4 * flakes.diameter_m**2).sum())


@mutation(
    hazards=(Hazard("medium", "particles", "as well as", "snow falls between the scene and the camera"),),
    strength=Strength("rate_mm_h", 0, 10, power=3),
)
def snow(
    image: Image,
    *,
    depth_m: Depth,
    rate_mm_h: Annotated[NonNegative, Field(le=10), unchanged_at(0)],
    exposure_ms: Annotated[Positive, Field(le=1000)] = 5.0,
    wind_m_s: Annotated[float, Field(ge=-40, le=40)] = 0.0,
    fov_deg: Annotated[float, Field(ge=5, le=170)] = 60.0,
    aperture_mm: Annotated[NonNegative, Field(le=100)] = 1.2,
    log_rng: np.random.Generator,
    time_s: float = 0.0,
    baseline_m: float = 0.0,
) -> Image:
    """Let it snow at `rate_mm_h` of water: flakes by depth, and the veil of those too small to be seen.

    0.5 mm/h is light snow, 2 moderate, 5 heavy, 10 about the most there is. Flakes move from frame to frame
    as they fall, and `wind_m_s` blows them to the right; during `exposure_ms` they draw short streaks.
    `fov_deg` is the width of the view, `aperture_mm` blurs flakes close to the lens. Their light is the mean
    of the brightest tenth of the image. A camera `baseline_m` further right sees the same flakes, each
    shifted by its distance.

    >>> near = np.full((20, 20), 0.1, np.float32)
    >>> image = np.full((20, 20), 90, np.uint8)
    >>> int(snow(image, depth_m=near, rate_mm_h=2, log_rng=np.random.default_rng(0)).max())  # all is hidden
    90
    """
    if not rate_mm_h:
        return image.copy()
    source = pixels.pixels(image)
    rows, columns, _ = source.shape
    focal_px = columns / 2 / math.tan(math.radians(fov_deg) / 2)
    view = View(rows, columns, focal_px, exposure_ms / 1000, aperture_mm / 1000)
    depth = np.ascontiguousarray(depth_m, np.float32)
    clear = np.ones((rows, columns), np.float32)
    drawn = flakes_in(view, rate_mm_h, log_rng.random(SIZES))
    where = np.array(
        [view.focal_px, view.exposure_s, view.aperture_m, wind_m_s, time_s, baseline_m, depth.min()]
    )
    draw_flakes(pixels.stream(log_rng), *drawn, where, depth, clear)
    sky = sky_light(source)
    out = np.empty_like(source)
    veil_over(
        source,
        clear,
        depth,
        np.array([RAIN_ENDS_M, PLACES_PER_ROOT_M], np.float32),
        snow_veil(view, rate_mm_h),
        np.empty(0, np.int32),
        np.empty((0, 1, 1), np.float32),
        np.empty((0, 2), np.int64),
        sky * np.float32(STEPS) + np.float32(pixels.ROUND),
        (LIGHT - sky[:, None]) * np.float32(STEPS),
        CODED,
        out,
    )
    return out.reshape(image.shape)


class DrawnFlakes(NamedTuple):
    """Of each size: how many are drawn, diameter, speed, up to where, and how far outside the image."""

    counts: NDArray[np.int64]
    diameter_m: F64
    speed_m_s: F64
    furthest_m: F64
    margin_px: F64


def flakes_in(view: View, rate_mm_h: float, chance: F64) -> DrawnFlakes:
    """Return the flakes that are drawn; their numbers are Poisson's, by a chance for each size.

    The same chance gives more flakes at a higher rate, and those of the lower one stay among them.
    """
    from scipy.special import pdtrik  # noqa: PLC0415 - slow to import, and most mutations need none of it

    flakes = flakes_of(rate_mm_h)
    furthest_m = drawn_up_to_m(view, flakes)
    margin_px = view.focal_px / NEAREST_M * (flakes.diameter_m + view.aperture_m + FLUTTER_M)
    area_px2 = (view.rows + 2 * margin_px) * (view.columns + 2 * margin_px)
    mean = flakes.per_m3 / 3 * (furthest_m**3 - NEAREST_M**3) * area_px2 / view.focal_px**2
    some = np.where(chance > np.exp(-mean), pdtrik(np.maximum(chance, 1e-300), np.maximum(mean, 1e-300)), 0)
    counts = np.ceil(np.nan_to_num(some)).astype(np.int64)
    return DrawnFlakes(counts, flakes.diameter_m, flakes.speed_m_s, furthest_m, margin_px)


def drawn_up_to_m(view: View, flakes: Flakes) -> F64:
    """Return the distance up to which flakes of each size are drawn one by one."""
    seen = view.focal_px * flakes.diameter_m * math.sqrt(math.pi / 4 / SMALLEST_PX2)
    return np.clip(seen, NEAREST_M, max(view.furthest_m, NEAREST_M))


@functools.lru_cache(maxsize=8)
def snow_veil(view: View, rate_mm_h: float) -> F32:
    """Return what all that is not drawn lets through, by place, which counts roots of the distance."""
    flakes = flakes_of(rate_mm_h)
    distance = (np.arange(PLACES) / PLACES_PER_ROOT_M) ** 2
    through_m = np.clip(distance[:, None], NEAREST_M, drawn_up_to_m(view, flakes)) - NEAREST_M
    drawn = through_m @ (flakes.per_m3 * math.pi / 4 * flakes.diameter_m**2)
    veil: F32 = np.exp(drawn - snow_extinction_per_m(rate_mm_h) * distance).astype(np.float32)
    veil.flags.writeable = False
    return veil


@kernel(
    "void(uint64, int64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
    "Array(float32, 2, 'C', readonly=True), float32[:, ::1])"
)
def draw_flakes(
    seed: np.uint64,
    counts: NDArray[np.int64],
    diameter: F64,
    speed: F64,
    furthest: F64,
    margin: F64,
    where: F64,
    depth: F32,
    clear: F32,
) -> None:
    """Multiply `clear` by what the flakes let through, where they are before the scene.

    `where` is focal length (px), exposure (s), aperture (m), wind (m/s), time (s), how far to the right the
    camera stands (m), and the scene's least distance (m). A flake covers as many pixels, each weighted by its
    share, as its own area; its random numbers are those of its size and number, at any time and rate.
    """
    rows, columns = clear.shape
    focal, exposure, aperture, wind = where[0], where[1], where[2], where[3]
    time, aside, free = where[4], where[5], where[6]
    part = 1 / 2**32
    words = np.empty(2, np.uint64)
    quarters = words.view(np.uint32)
    for size in range(counts.size):
        high, wide = rows + 2 * margin[size], columns + 2 * margin[size]
        near, far = NEAREST_M**3, furthest[size] ** 3
        for n in range(counts[size]):
            random_words(seed, (size << 40) + 2 * n, words)
            z = math.exp(math.log(near + quarters[0] * part * (far - near)) / 3)
            scale = focal / z
            fallen = quarters[2] * part + time * speed[size] * scale / high
            lap = math.floor(fallen)
            y = (fallen - lap) * high - margin[size]
            turns = (quarters[3] >> np.uint32(16)) / 65536
            rate = SLOWEST_HZ + (FASTEST_HZ - SLOWEST_HZ) * (quarters[3] & np.uint32(65535)) / 65536
            swing = FLUTTER_M * math.sin(2 * math.pi * (rate * time + turns))
            blown = (
                quarters[1] * part + lap * 0.6180339887498949 + (time * wind + swing - aside) * scale / wide
            )
            x = (blown - math.floor(blown)) * wide - margin[size]
            radius = max(0.5 * scale * (diameter[size] + aperture), 0.5)
            along, down = 0.5 * scale * exposure * wind, 0.5 * scale * exposure * speed[size]
            squared = along * along + down * down
            left, right = math.floor(x - abs(along) - radius - 1), math.ceil(x + abs(along) + radius + 1)
            top, bottom = math.floor(y - down - radius - 1), math.ceil(y + down + radius + 1)
            if right < 0 or bottom < 0 or left > columns or top > rows:
                continue
            whole = 0.0
            for phase in range(2):  # first what its pixels weigh together, then what each is covered by
                share = 0.0
                if phase == 1:
                    share = min(math.pi / 4 * (scale * diameter[size]) ** 2 / max(whole, 1e-9), 1.0)
                for v in range(top, bottom):
                    for u in range(left, right):
                        across, under = u + 0.5 - x, v + 0.5 - y
                        at = min(max((across * along + under * down) / max(squared, 1e-12), -1.0), 1.0)
                        away = math.hypot(across - at * along, under - at * down)
                        weight = min(max(radius + 0.5 - away, 0.0), 1.0)
                        if phase == 0:
                            whole += weight
                        elif (
                            weight > 0
                            and 0 <= v < rows
                            and 0 <= u < columns
                            and (z < free or z < depth[v, u])
                        ):
                            clear[v, u] *= np.float32(1 - share * weight)

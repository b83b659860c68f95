"""What the renderer leaves out changes no picture: each short cut against the long way."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.data.worlds import textures
from adverse.data.worlds.casting import NEAREST_M, screen_box
from adverse.data.worlds.exposure import READ, SHOT, exposed
from adverse.data.worlds.foliage import CLUMP_M, LEAF_M, RIM_M, foliage
from adverse.data.worlds.normals import QUANTILES, drawn_words, standard_normal
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.shadows import REACH_M, SHADOW_PIXEL, find_shadows, moved, sun_grid
from adverse.data.worlds.solids import BALL, BRICK, STEM, Solids, stretch
from adverse.data.worlds.textures import noise, sharpness
from adverse.data.worlds.writing import World
from adverse.seeds import generator
from data.worlds.views import Floats, script

SEEDS = st.integers(0, 2**32 - 1)


def drawn_solid(rng: np.random.Generator, kind: int) -> Solids:
    """Draw a solid beside, behind or before a camera at the origin, turned at random."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    size = np.exp(rng.uniform(-1, 1.5, 3))
    taper = float(rng.uniform(0.3, 1.6)) if kind == STEM else 1.0
    wide = max(taper, 1.0)
    reach = float(size.max()) if kind == BALL else float(np.sqrt(((size * [wide, wide, 1]) ** 2).sum()))
    one = script("orchard", "test/0").still
    first = Solids._make(column[:1].copy() for column in one)
    return first._replace(
        kind=np.array([kind]),
        taper=np.array([taper]),
        centre_m=rng.normal(0, 3, (1, 3)),
        inverse=(turn / size[:, None])[None],
        size_m=size[None],
        reach_m=np.array([reach]),
        holes=np.zeros(1),
    )


@pytest.mark.parametrize("kind", [BALL, BRICK, STEM])
def test_a_solid_is_inside_its_screen_rectangle_also_beside_and_behind_the_camera(kind: int) -> None:
    camera = stereo_camera(64, 48)
    lens = np.array([camera.fx, camera.fy, camera.cx, camera.cy])
    turn = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    eye = np.zeros(3)
    pixels = list(itertools.product(range(camera.height), range(camera.width)))
    rays = np.array([((u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, 1) for v, u in pixels])
    seen_wide = narrowed = 0
    for seed in range(150):
        solids = drawn_solid(np.random.default_rng(seed), kind)
        taper = float(solids.taper[0])
        box = np.zeros(4, np.int64)
        near = screen_box(solids, 0, eye, turn, lens, camera.width, camera.height, box)
        o, m = solids.inverse[0] @ -solids.centre_m[0], solids.inverse[0] @ turn
        rows, columns = [], []
        for (v, u), d in zip(pixels, rays @ m.T, strict=True):
            t0, t1 = stretch(kind, taper, *o, *d)
            if t0 <= t1 and t1 > NEAREST_M:
                rows.append(v)
                columns.append(u)
        if not rows:
            narrowed += near == math.inf
            continue
        assert near < math.inf
        assert box[0] <= min(columns)
        assert max(columns) < box[2]
        assert box[1] <= min(rows)
        assert max(rows) < box[3]
        seen_wide += int(len(rows) > 900)
    assert seen_wide > 5
    assert narrowed > 10


@given(SEEDS, st.floats(1e-3, 0.5), st.floats(0.05, 0.4))
@settings(deadline=None)
def test_mottling_is_two_octaves_of_noise(seed: int, pixel_m: float, size_m: float) -> None:
    x, y, z = np.random.default_rng(seed).normal(0, 3, 3)
    number = seed % 1000
    finer = 3.1 / size_m
    coarse = (noise(x / size_m, y / size_m, z / size_m, number) - 0.5) * sharpness(size_m, pixel_m)
    fine = (noise(x * finer, y * finer, z * finer, number + 1) - 0.5) * sharpness(1 / finer, pixel_m)
    assert textures.mottled(x, y, z, size_m, pixel_m, number) == 0.5 + 0.66 * coarse + 0.34 * fine


def there(x: float, y: float, z: float, seed: int, t: float, through_m: float, holes: float) -> bool:
    """Tell whether a point of foliage, as the sun sees it, is a leaf and no gap."""
    rim = max(1 - through_m / RIM_M, 0.0)
    solid = 1 - (holes + 0.3 * rim) * sharpness(LEAF_M, t * SHADOW_PIXEL)
    leaf = noise(x / LEAF_M, y / LEAF_M, z / LEAF_M, seed)
    clump = noise(x / CLUMP_M, y / CLUMP_M, z / CLUMP_M, seed + 1)
    return bool(0.62 * leaf + 0.38 * clump < solid)


def test_leaves_are_where_leaf_and_clump_say() -> None:
    rng = np.random.default_rng(5)
    count = 4000
    (x, y, z), t = rng.normal(0, 1, (3, count)), rng.uniform(0.1, 80, count)
    through, holes, seed = rng.uniform(0, 1, count), rng.uniform(0.1, 0.7, count), rng.integers(0, 999, count)
    rows = list(zip(x, y, z, seed, t, through, holes, strict=True))
    dense = [
        foliage(px, py, pz, which, at * SHADOW_PIXEL, much, sparse)
        for px, py, pz, which, at, much, sparse in rows
    ]
    wanted = [there(*row) for row in rows]
    assert ((np.array(dense) > 0) == wanted).all()
    assert 0.1 < np.mean(wanted) < 0.9


def _three(values: Floats) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return x, y, z


def in_sun(solids: Solids, sun: Floats, point: Floats) -> bool:
    """Tell whether a point sees the sun, asking every solid in turn."""
    away = point - solids.centre_m
    along = away @ sun
    near = (away**2).sum(axis=1) - along**2 < (solids.reach_m * 1.01) ** 2
    for index in np.flatnonzero(near & (along < solids.reach_m * 1.01)):
        o, d = solids.inverse[index] @ away[index], solids.inverse[index] @ sun
        t0, t1 = stretch(int(solids.kind[index]), float(solids.taper[index]), *o, *d)
        if t0 > t1 or t1 <= 0:
            continue
        holes, seed = float(solids.holes[index]), int(solids.seed[index])
        if holes == 0:
            return False
        for t in (t0, t1):
            if t > NEAREST_M and there(*_three((o + t * d) * solids.size_m[index]), seed, t, t1 - t0, holes):
                return False
    return True


@pytest.mark.parametrize("world", ["orchard", "street"])
def test_shadows_are_those_that_asking_every_solid_finds(world: World) -> None:
    made = script(world, "test/0")
    solids = made.scene().solids(1.0)
    eye = made.drive.pose(1.0)[:3, 3]
    first = sun_grid(solids, made.sun, eye)
    rng = np.random.default_rng(4)
    points: Floats = eye + rng.uniform([-2, -6, -1.2], [25, 6, 3], (2500, 3))
    x, y, z = points.T.copy()
    nobody, lit = np.full(len(x), -1), np.empty(len(x), np.bool_)
    wanted = [in_sun(solids, made.sun, point) for point in points]
    beside = moved(first, eye + np.array([0.1, -0.2, 0.05]))
    assert beside is not None
    for grid in (first, beside):
        find_shadows(grid, x, y, z, nobody, lit)
        assert (lit == wanted).all()
    assert 0.05 < np.mean(wanted) < 0.95
    assert moved(first, eye + 3.0) is None
    far = eye[:, None] + first.axes[:, :1] * (REACH_M + 0.1)  # beyond reach nothing casts a shadow
    find_shadows(first, far[0], far[1], far[2], nobody[:1], lit[:1])
    assert lit[0]


def drawn_normals(seed: int, first: int, count: int) -> Floats:
    numbers, room = np.empty(count, np.float32), np.empty(count, np.uint32)
    standard_normal(drawn_words(generator(seed, "noise")), first, QUANTILES, room, numbers)
    return numbers.astype(np.float64)


def test_noise_is_normal_and_alike_neither_along_a_picture_nor_in_two() -> None:
    count = 300_000
    numbers, others = drawn_normals(1, 0, count), drawn_normals(2, 0, count)
    np.testing.assert_array_equal(numbers[1000:1500], drawn_normals(1, 1000, 500))
    normal, error = NormalDist(), 4 / math.sqrt(count)
    assert abs(numbers.mean()) < error
    assert abs(numbers.var() - 1) < 1.5 * error
    for quantile in (0.001, 0.02, 0.16, 0.5, 0.84, 0.98, 0.999):
        share = np.mean(numbers < normal.inv_cdf(quantile))
        assert abs(share - quantile) < error * math.sqrt(quantile * (1 - quantile)) + 1 / len(QUANTILES)
    for lag in (1, 2, 3, 960, 961):  # a channel, a pixel and a row on
        assert abs(np.mean(numbers[lag:] * numbers[:-lag])) < error
    assert abs(np.mean(numbers * others)) < error
    spectrum = np.abs(np.fft.rfft(numbers)[1:]) ** 2 / count  # exponential with mean 1 for white noise
    assert spectrum.max() < math.log(len(spectrum)) + 8


def test_a_plain_wall_has_the_noise_of_its_light() -> None:
    light = 0.25
    made = exposed(np.full((200, 300, 3), light, np.float32), 1.0, generator(3, "wall"))
    middle = made[90:110, 140:160].astype(np.float64) / 255  # where the lens takes next to no light
    assert abs(np.mean(middle) - math.sqrt(light)) < 0.003
    deviation = math.sqrt(SHOT * light + READ) / (2 * math.sqrt(light))  # of the root of the light
    assert np.std(middle) == pytest.approx(deviation, rel=0.1)

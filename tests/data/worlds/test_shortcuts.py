"""What the renderer leaves out changes no picture: each short cut against the long way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.data.worlds import textures
from adverse.data.worlds.casting import CLUMP_M, LEAF_M, NEAREST_M, RIM_M, first_leaf, screen_box
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.shading import SHADOW_PIXEL, sun_grid, sunlit
from adverse.data.worlds.solids import BALL, BRICK, STEM, Solids, stretch
from adverse.data.worlds.textures import noise, sharpness
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
    camera = stereo_camera(96, 72)
    lens = np.array([camera.fx, camera.fy, camera.cx, camera.cy])
    turn = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    eye = np.zeros(3)
    seen_wide = narrowed = 0
    for seed in range(150):
        solids = drawn_solid(np.random.default_rng(seed), kind)
        box = np.zeros(4, np.int64)
        near = screen_box(solids, 0, eye, turn, lens, camera.width, camera.height, box)
        o, m = solids.inverse[0] @ -solids.centre_m[0], solids.inverse[0] @ turn
        rows, columns = [], []
        for v in range(camera.height):
            for u in range(camera.width):
                d = m @ [(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, 1]
                t0, t1 = stretch(kind, float(solids.taper[0]), *o, *d)
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
        seen_wide += int(len(rows) > 2000)
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


@given(SEEDS, st.floats(1e-4, 0.05), st.floats(0.1, 0.7))
@settings(deadline=None)
def test_leaves_are_where_leaf_and_clump_say(seed: int, pixel_at_1m: float, holes: float) -> None:
    rng = np.random.default_rng(seed)
    o, d, size = rng.normal(0, 1, 3), rng.normal(0, 1, 3), np.exp(rng.normal(0, 0.5, 3))
    t0 = float(rng.uniform(-1, 20))
    t1 = t0 + float(rng.uniform(0, 1))
    ox, oy, oz, dx, dy, dz, sx, sy, sz = (float(value) for value in (*o, *d, *size))
    found = first_leaf(t0, t1, holes, ox, oy, oz, dx, dy, dz, sx, sy, sz, seed % 1000, pixel_at_1m)
    wanted = math.inf
    for t in (t1, t0):
        if t > NEAREST_M:
            rim = max(1 - (t1 - t0) / RIM_M, 0.0)
            solid = 1 - (holes + 0.3 * rim) * sharpness(LEAF_M, t * pixel_at_1m)
            x, y, z = (o + t * d) * size
            leaf = noise(x / LEAF_M, y / LEAF_M, z / LEAF_M, seed % 1000)
            clump = noise(x / CLUMP_M, y / CLUMP_M, z / CLUMP_M, seed % 1000 + 1)
            if 0.62 * leaf + 0.38 * clump < solid:
                wanted = t
    assert found == wanted


def test_what_was_last_in_the_way_of_the_sun_changes_no_shadow() -> None:
    made = script("orchard", "test/0")
    solids = made.scene().solids(1.0)
    eye = made.drive.pose(1.0)[:3, 3]
    grid = sun_grid(solids, made.sun, eye)
    rng = np.random.default_rng(4)
    points: Floats = eye + rng.uniform([-2, -6, -1.5], [25, 6, 1], (3000, 3))
    recent = np.full(1, -1)
    kept = [sunlit(solids, grid, x, y, z, SHADOW_PIXEL, recent) for x, y, z in points]
    fresh = [sunlit(solids, grid, x, y, z, SHADOW_PIXEL, np.full(1, -1)) for x, y, z in points]
    assert kept == fresh
    assert 0.05 < np.mean(fresh) < 0.95
    assert recent[0] >= 0

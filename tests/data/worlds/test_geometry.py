"""Depth, disparity and places agree through the camera model, against a slow second opinion."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from adverse.data.worlds.rendering import right_of
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.solids import BALL, BRICK, STEM, Builder, Look, Solids
from adverse.data.worlds.writing import World
from data.worlds.views import Floats, cast, pair, points, rays, script, without_gaps

WORLDS: tuple[tuple[World, str], ...] = (("orchard", "test/a"), ("street", "test/a"))
PLAIN = Look(0, (128, 128, 128))


def surface(solids: Solids, index: int, point: Floats) -> float:
    """Return 0 on the surface of a solid, in its own units: negative inside, positive outside."""
    x, y, z = solids.inverse[index] @ (point - solids.centre_m[index])
    if solids.kind[index] == BALL:
        return float(np.sqrt(x * x + y * y + z * z) - 1)
    if solids.kind[index] == BRICK:
        return float(max(abs(x), abs(y), abs(z)) - 1)
    radius = 1 + (solids.taper[index] - 1) * (z + 1) / 2
    return float(max(np.sqrt(x * x + y * y) - radius, abs(z) - 1))


@pytest.mark.parametrize(("world", "name"), WORLDS)
def test_depth_leads_to_the_surface_that_is_seen_and_nothing_is_in_front(world: World, name: str) -> None:
    made, camera = script(world, name), stereo_camera(160, 120)
    solids, pose = without_gaps(made.scene().solids(1.0)), made.drive.pose(1.0)
    depth, owner = cast(solids, camera, pose)
    seen = points(depth, camera, pose)
    directions = rays(camera) @ pose[:3, :3].T
    rng = np.random.default_rng(0)
    for v, u in rng.integers((0, 0), (120, 160), (150, 2)):
        if owner[v, u] >= 0:
            assert surface(solids, owner[v, u], seen[v, u]) == pytest.approx(0, abs=1e-6)
        elif owner[v, u] == -2:
            assert seen[v, u, 2] == pytest.approx(0, abs=1e-9)
        stop = min(depth[v, u], 60.0) * (1 - 1e-6)
        for t in np.linspace(0.06, stop, 40):  # no point before it lies inside anything
            on_way = pose[:3, 3] + t * directions[v, u]
            inside = np.abs(np.einsum("nij,nj->ni", solids.inverse, on_way - solids.centre_m))
            for index in np.flatnonzero((inside <= 1.6).all(axis=1)):
                assert surface(solids, int(index), on_way) > -1e-6
            assert on_way[2] > -1e-9


def test_a_ball_at_a_known_place_has_the_depth_the_camera_model_says() -> None:
    made = Builder(24, 1)
    made.ball((10.0, 0.0, 1.5), (0.5, 0.5, 0.5), PLAIN)
    pose = np.eye(4)
    pose[:3, :3] = [[0, 0, 1], [-1, 0, 0], [0, -1, 0]]
    pose[:3, 3] = 0, 0, 1.5
    camera = stereo_camera(161, 121)
    depth, _ = cast(made.solids(), camera, pose)
    assert depth[60, 80] == pytest.approx(9.5, rel=1e-12)


@pytest.mark.parametrize("kind", [BALL, BRICK, STEM])
def test_a_turned_solid_is_seen_where_its_points_project(kind: int) -> None:
    """Points inside the solid project exactly onto the pixels that see it."""
    rng = np.random.default_rng(kind)
    made = Builder(24, 1)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    if kind == BALL:
        made.ball((6, 0.3, 1.4), (0.9, 0.4, 0.6), PLAIN, turn)
    elif kind == BRICK:
        made.brick((6, 0.3, 1.4), (0.9, 0.4, 0.6), PLAIN, turn)
    else:
        made.stem((5.6, -0.5, 0.9), (6.3, 0.8, 2.0), 0.7, PLAIN, top_radius=0.2, wide=1.5)
    solids, camera = made.solids(), stereo_camera(160, 120)
    pose = script("orchard", "test/a").drive.pose(0.0)
    depth, owner = cast(solids, camera, pose)
    unit = rng.uniform(-1, 1, (200_000, 3))
    world = unit @ np.linalg.inv(solids.inverse[0]).T + solids.centre_m[0]
    inside = np.array([surface(solids, 0, point) <= 0 for point in world[:4000]])
    x, y, z = ((world[:4000][inside] - pose[:3, 3]) @ pose[:3, :3]).T
    u, v = (
        np.rint(camera.fx * x / z + camera.cx).astype(int),
        np.rint(camera.fy * y / z + camera.cy).astype(int),
    )
    grown = cv2.dilate((owner == 0).astype(np.uint8), np.ones((3, 3), np.uint8))
    assert grown[v, u].all()
    hit = np.zeros_like(grown)
    hit[v, u] = 1
    assert hit[owner == 0].mean() > 0.5
    assert (depth[owner == 0] >= z.min() - 0.05).all()


@pytest.mark.parametrize(("world", "name"), WORLDS)
def test_the_right_eye_sees_each_point_at_the_true_disparity(world: World, name: str) -> None:
    made, camera = script(world, name), stereo_camera(160, 120)
    solids, pose = without_gaps(made.scene().solids(1.0)), made.drive.pose(1.0)
    depth, _ = cast(solids, camera, pose)
    other = right_of(pose, camera.baseline_m or 0)
    same = hidden = 0
    rng = np.random.default_rng(1)
    for v, u in rng.integers((0, 0), (120, 160), (400, 2)):
        if not np.isfinite(depth[v, u]):
            continue
        column = u - camera.fx * (camera.baseline_m or 0) / depth[v, u]
        one = type(camera)(camera.fx, camera.fy, -(column - camera.cx), camera.cy - v, 1, 1)
        found = cast(solids, one, other)[0][0, 0]
        assert found <= depth[v, u] * (1 + 1e-6)  # the point is there, so nothing farther can be seen
        same += abs(found / depth[v, u] - 1) < 1e-6
        hidden += found < depth[v, u] * (1 - 1e-6)
    assert same > 4 * hidden


@pytest.mark.parametrize(("world", "name"), WORLDS)
def test_the_eyes_warp_onto_each_other(world: World, name: str) -> None:
    seen = pair(world, name, 0.5, 320, 240)
    v, u = np.mgrid[:240, :320].astype(np.float32)
    near, far = (np.minimum(eye.depth_m, 1e4) for eye in (seen.left, seen.right))
    shift = (seen.camera.fx * (seen.camera.baseline_m or 0) / near).astype(np.float32)
    warped, depth = (cv2.remap(image, u - shift, v, cv2.INTER_LINEAR) for image in (seen.right.image, far))
    both = (np.abs(depth / near - 1) < 0.02) & (u - shift > 1) & (near < 25)
    off = np.abs(warped.astype(float) - seen.left.image).mean(axis=2)
    unwarped = np.abs(seen.right.image.astype(float) - seen.left.image).mean(axis=2)
    assert both.mean() > 0.3
    assert np.median(off[both]) < 8
    assert off[both].mean() < 0.6 * unwarped[both].mean()


def test_stereo_matching_recovers_depth() -> None:
    errors = []
    for name in ("test/a", "test/b"):
        seen = pair("orchard", name, 0.6, 480, 360)
        gray = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (seen.left.image, seen.right.image)]
        matcher = cv2.StereoSGBM.create(0, 64, 5, 200, 800, 1, 63, 10, 100, 2)
        disparity = matcher.compute(*gray).astype(float) / 16
        near = (seen.left.depth_m < 15) & (disparity > 0)
        assert near.sum() > 0.4 * (seen.left.depth_m < 15).sum()
        found = seen.camera.fx * (seen.camera.baseline_m or 0) / disparity[near]
        errors.append(np.abs(found / seen.left.depth_m[near] - 1))
    assert np.median(np.concatenate(errors)) < 0.05


def test_places_of_people_are_where_their_pixels_are() -> None:
    checked = 0
    for name in ("test/a", "test/b", "test/c"):
        seen = pair("orchard", name, 0.7)
        world = points(seen.left.depth_m, seen.camera, seen.pose)
        for actor in seen.script.actors:
            mine = world[seen.left.instances == 24000 + actor.instance]
            if len(mine) > 60:
                place = np.array(actor.centre_m(seen.time_s))
                assert np.hypot(*(np.median(mine, axis=0) - place)[:2]) < 0.35
                assert np.abs(mine - place).max() < 1.2
                checked += 1
    assert checked >= 2

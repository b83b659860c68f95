"""Matching against patterns whose place is known in closed form, and what cannot be matched."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.annotation.geometry import in_camera_m, in_world_m, mapped_depth_m, seen_at, stereo_depth_m
from adverse.annotation.matching import at_point, gray, match_in_row, match_near, piece
from adverse.annotation.tracking import Located, View, carry, locate
from adverse.types import Camera
from annotation_scenes import patterned

SIZE = (160, 120)
CAMERA = Camera(128.0, 128.0, 79.5, 59.5, 160, 120, 0.3)
HALF = (6, 9)


@pytest.mark.parametrize("disparity", [3.0, 5.25, 9.5, 17.83])
def test_the_partner_of_a_shifted_pattern_is_where_it_was_shifted_to(disparity: float) -> None:
    left, right = gray(patterned(SIZE)), gray(patterned(SIZE, (-disparity, 0.0)))
    match = match_in_row(left, right, (90.3, 60.7), half_px=HALF, disparity_px=(0.0, 40.0))
    assert match.why == ""
    assert match.score > 0.99
    assert match.point == pytest.approx((90.3 - disparity, 60.7), abs=0.03)


@pytest.mark.parametrize(("shift", "scale"), [((4.4, -3.7), 1.0), ((2.0, 1.5), 1.06), ((-3.3, 0.4), 0.94)])
def test_a_moved_and_enlarged_pattern_is_followed(shift: tuple[float, float], scale: float) -> None:
    before, after = gray(patterned(SIZE)), gray(patterned(SIZE, shift, scale))
    wanted = 70.2 * scale + shift[0], 55.6 * scale + shift[1]
    guess = round(wanted[0] + 3), round(wanted[1] - 2)
    match = match_near(before, after, (70.2, 55.6), guess, half_px=HALF, scale=scale, reach_px=12)
    assert match.why == ""
    assert match.point == pytest.approx(wanted, abs=0.06)


def test_light_and_contrast_do_not_matter() -> None:
    left, right = gray(patterned(SIZE)), gray(patterned(SIZE, (-7.4, 0.0)))
    match = match_in_row(left, 0.6 * right + 40, (90.0, 60.0), half_px=HALF, disparity_px=(0.0, 40.0))
    assert match.point[0] == pytest.approx(82.6, abs=0.03)


def test_the_pixels_at_the_point_tell_the_partner_and_how_sure_they_are() -> None:
    left, right = gray(patterned(SIZE)), gray(patterned(SIZE, (-7.25, 0.0)))
    noise = np.random.default_rng(5).normal(0, 6, (2, *left.shape)).astype(np.float32)
    found = at_point(left, right, (90.5, 60.5), 85.5, 5, 5.2)  # the piece around it is 2.25 pixels off
    assert found is not None
    assert found.x == pytest.approx(83.25, abs=0.03)
    assert found.error_px < 0.2
    for noisy in (1, 2):
        one, other = left + noisy * noise[0], right + noisy * noise[1]
        patch = one[
            55:66, 85:96
        ].ravel()  # 11 by 11 pixels around (90.5, 60.5), tried every quarter of a pixel
        tried = np.arange(-20, 21) * 0.25
        places = [piece(other, (85.5 + away, 60.5), (5, 5)).ravel() for away in tried]
        likeness = np.clip([np.corrcoef(patch, place)[0, 1] for place in places], 0, 0.999)
        chance = (1 - likeness**2) ** (-121 / (8 * math.pi))
        mean = (chance * tried).sum() / chance.sum()
        error = math.sqrt((chance * (tried - mean) ** 2).sum() / chance.sum() + 0.25**2 / 12)
        found = at_point(one, other, (90.5, 60.5), 85.5, 5, 5.2)
        assert found == pytest.approx((85.5 + mean, error), abs=1e-3)
    assert all(at_point(noise[0], noise[1], (x, 60.5), x - 7, 5, 5.2) is None for x in (40.5, 60.5, 100.5))
    assert at_point(0 * left, right, (90.5, 60.5), 83.5, 5, 5.2) is None
    assert locate(View(left, right, camera=CAMERA), (90.5, 60.5)).fine is None  # 11 cm appear as 3 pixels
    near = View(left, gray(patterned(SIZE, (-30.0, 0.0))), camera=CAMERA)
    assert (locate(near, (90.5, 60.5)).fine or (0,))[0] == pytest.approx(60.5, abs=0.1)


def located(left: object, right: object, point: tuple[float, float] = (90.0, 60.0)) -> Located:
    return locate(View(gray(left), gray(right), camera=CAMERA), point)  # type: ignore[arg-type]


def test_what_cannot_be_matched_says_why() -> None:
    image = patterned(SIZE)
    flat = np.full_like(image, 120)
    stripes = np.where(np.arange(160)[None, :, None] // 4 % 2, 200, 40) * np.ones_like(image)
    stripes = (stripes * 0.8 + image * 0.02).astype(np.uint8)
    noise = np.random.default_rng(1).integers(0, 255, image.shape).astype(np.uint8)
    assert "too little texture" in located(flat, flat).why
    assert "match alike" in located(stripes, np.roll(stripes, -8, axis=1)).why
    assert "nothing matches well" in located(image, noise).why
    assert "outside the image" in located(image, image, (200.0, 60.0)).why
    assert "neither a right image nor a depth map" in locate(View(gray(image)), (80.0, 60.0)).why


def test_depth_is_focal_length_times_baseline_over_disparity() -> None:
    found = located(patterned(SIZE), patterned(SIZE, (-9.6, 0.0)))
    assert found.why == ""
    assert found.depth_m == pytest.approx(128 * 0.3 / 9.6, rel=0.005)
    assert math.isnan(stereo_depth_m(CAMERA, 0.0))
    for depth_m in (4.0, 12.8):  # the principal point of the right camera is 6 pixels further right
        right = patterned(SIZE, (6.0 - 128 * 0.3 / depth_m, 0.0))
        offset = View(gray(patterned(SIZE)), gray(right), camera=replace(CAMERA, offset_px=6.0))
        assert locate(offset, (90.0, 60.0)).depth_m == pytest.approx(depth_m, rel=0.01)


@given(
    st.floats(0, 160),
    st.floats(0, 120),
    st.floats(0.5, 80),
    st.floats(-3, 3),
    st.tuples(*[st.floats(-50, 50)] * 3),
)
def test_a_place_in_the_world_is_seen_where_it_was_marked(
    x: float, y: float, depth: float, yaw: float, at: tuple[float, float, float]
) -> None:
    pose = np.eye(4)
    pose[:2, :2] = [[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]]
    pose[:3, 3] = at
    point, z = seen_at(CAMERA, pose, in_world_m(pose, in_camera_m(CAMERA, (x, y), depth)))
    assert point == pytest.approx((x, y), abs=1e-6)
    assert z == pytest.approx(depth)


def test_the_depth_map_is_read_where_there_is_no_right_image() -> None:
    depth = np.full((120, 160), 9.0, np.float32)
    depth[50:70, 85:95] = 4.0
    depth[60, 90] = np.nan
    view = View(gray(patterned(SIZE)), None, depth, CAMERA)
    assert locate(view, (90.5, 60.5)) == Located((90.5, 60.5), None, 4.0, 1.0)
    assert math.isnan(mapped_depth_m(np.full((9, 9), np.inf, np.float32), (4.0, 4.0)))
    assert (
        "no depth at this point"
        in locate(View(gray(patterned(SIZE)), None, depth * np.nan, CAMERA), (5, 5)).why
    )


def wall(depth_m: float, aside_px: float, pose: np.ndarray | None = None, time_s: float = 0.0) -> View:
    """A patterned wall at a depth: enlarged about the principal point, the more the nearer it is."""
    scale = 6.0 / depth_m
    centre = 80.0 * (1 - scale) + aside_px, 60.0 * (1 - scale)
    disparity = 128 * 0.3 / depth_m
    left, right = patterned(SIZE, centre, scale), patterned(SIZE, (centre[0] - disparity, centre[1]), scale)
    return View(gray(left), gray(right), None, CAMERA, pose, time_s)


def test_both_points_are_carried_to_the_next_frame() -> None:
    before, after = wall(6.0, 0.0), wall(5.7, 3.2, time_s=0.1)
    known = locate(before, (90.0, 62.0), near_m=6.0)
    found = carry(before, after, known)
    assert found.why == ""
    scale = 6.0 / 5.7
    assert found.point == pytest.approx((80 + 10 * scale + 3.2, 60 + 2 * scale), abs=0.2)
    assert found.depth_m == pytest.approx(5.7, rel=0.01)


def test_the_tracker_stops_where_it_is_unsure() -> None:
    before = wall(6.0, 0.0, np.eye(4))
    known = locate(before, (90.0, 62.0), near_m=6.0)
    another = gray(patterned(SIZE, seed=7))
    assert carry(before, View(another, before.right, None, CAMERA), known).why
    after = wall(6.0, 1.0)
    assert carry(before, View(after.left, another, None, CAMERA), known).why.startswith("right image:")
    moved = np.eye(4)
    moved[0, 3] = 2.0  # a pose that the images do not confirm
    jumped = View(before.left, before.right, None, CAMERA, moved, 0.1)
    assert carry(before, jumped, known).why


def test_nobody_is_followed_over_a_long_pause() -> None:
    before = wall(6.0, 0.0, np.eye(4))
    known = locate(before, (90.0, 62.0), near_m=6.0)
    assert "s have passed" in carry(before, wall(6.0, 0.0, np.eye(4), time_s=3600.0), known).why
    assert carry(before, wall(6.0, 0.5, np.eye(4), time_s=2.9), known).why == ""


def test_a_place_in_the_world_is_not_compared_with_one_in_the_camera() -> None:
    pose = np.eye(4)
    pose[:3, 3] = 1000.0, -200.0, 30.0
    before, after = wall(6.0, 0.0, pose), wall(5.9, 0.5, time_s=0.1)
    known = locate(before, (90.0, 62.0), near_m=6.0)
    assert carry(before, after, known).why == ""
    assert carry(after, before, carry(before, after, known)).why == ""

"""Depth from stereo: against exact depth of a rendered pair, and one clear error for each bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from adverse import depth
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.rendering import render, right_of
from adverse.data.worlds.scripts import stereo_camera
from adverse.depth.dense import ARTEFACT, HOOD, HOOD_M
from adverse.depth.filling import filled_from_farther
from adverse.depth.ground import below_ground
from adverse.depth.matching import match, moved_left
from adverse.depth.rows import FollowedPoints, advance, follow
from adverse.depth.sky import sky_mask
from adverse.depth.stereo import AHEAD_ERRORS, MOST_AHEAD, check_pair
from adverse.errors import DataError
from adverse.seeds import generator
from adverse.types import Camera
from stereo_scenes import haze_error, orchard


def test_depth_of_the_orchard_is_near_the_truth_and_the_sky_is_sky() -> None:
    pair = orchard()
    dense = depth.from_stereo(pair.left, pair.right, pair.camera)
    sky = np.isinf(pair.depth_m)
    assert haze_error(dense.depth_m, pair.depth_m).mean() <= 0.02
    near = (pair.depth_m < 40) & ~dense.sky
    assert np.abs(dense.depth_m[near] - pair.depth_m[near]).mean() <= 0.75
    assert (dense.sky & sky).sum() >= 0.999 * dense.sky.sum()
    assert (dense.sky & sky).sum() >= 0.97 * sky.sum()
    assert (dense.depth_m > 0).all()  # no NaN, nothing at the camera
    sure = dense.measured & (dense.confidence > 0.8)
    assert np.median(np.abs(dense.depth_m[sure] / pair.depth_m[sure] - 1)) < 0.02
    assert dense.shares == {
        "sky": dense.sky.mean(),
        "invented": (~dense.measured & ~dense.sky).mean(),
        "distant": 0.0,
    }


def test_refining_brings_depth_nearer_to_the_truth() -> None:
    pair = orchard()
    error: dict[str, float] = {}
    for refine in ("none", "smoother", "solver"):
        dense = depth.from_stereo(pair.left, pair.right, pair.camera, refine=refine)
        both = np.isfinite(dense.depth_m) & np.isfinite(pair.depth_m)
        error[refine] = float(np.abs(1 / dense.depth_m[both] - 1 / pair.depth_m[both]).mean())
    assert error["smoother"] < error["solver"] < error["none"]


def test_the_result_does_not_depend_on_the_number_of_threads() -> None:
    pair = orchard()
    before = cv2.getNumThreads()
    made = []
    try:
        for threads in (1, 3):
            cv2.setNumThreads(threads)
            made.append(depth.from_stereo(pair.left, pair.right, pair.camera).depth_m)
    finally:
        cv2.setNumThreads(before)
    assert np.array_equal(made[0], made[1])


@pytest.mark.parametrize("offset", [-20, 6, 15])
def test_a_shifted_principal_point_is_taken_into_account(offset: int) -> None:
    """Far and near: whatever it is, depth is that of the pair without; undeclared or wrong it is refused."""
    pair = orchard()
    shifted = moved_left(pair.right, -offset)  # the right camera's principal point is further right
    plain = depth.from_stereo(pair.left, pair.right, pair.camera)
    declared = []
    for fraction in (0.0, 0.3):
        moved = depth.from_stereo(pair.left, shifted, pair.camera, offset_px=offset + fraction)
        declared.append(moved.depth_m)
        both = (plain.measured & moved.measured)[:, 45:-20]
        assert both.sum() > 0.97 * plain.measured[:, 45:-20].sum()
        scale = pair.camera.fx * (pair.camera.baseline_m or 0)
        more = (scale / moved.depth_m - scale / plain.depth_m)[:, 45:-20][both]
        assert np.median(more) == pytest.approx(fraction, abs=0.01)
        assert np.percentile(np.abs(more - fraction), 95) < 0.3
    told = replace(pair.camera, offset_px=float(offset))
    check_pair(pair.left, shifted, told, where="")
    assert np.array_equal(depth.from_stereo(pair.left, shifted, told).depth_m, declared[0], equal_nan=True)
    with pytest.raises(DataError, match="below zero"):
        depth.from_stereo(pair.left, shifted, pair.camera, offset_px=offset - 8)
    if offset > 0:
        with pytest.raises(DataError, match="offset_px"):
            check_pair(pair.left, shifted, pair.camera, where="")


@pytest.mark.parametrize("person_m", [0.6, 2.0])
def test_a_person_nearer_than_is_searched_at_first_is_found(person_m: float) -> None:
    """A wide pair: at 2 m disparity is 100 of 320 pixels, far more than a fifth of the width."""
    camera = Camera(400.0, 400.0, 160.0, 120.0, 320, 240, 0.5 if person_m > 1 else 0.3)
    scale = camera.fx * (camera.baseline_m or 0)
    texture = np.random.default_rng(5).integers(40, 215, (2, 240, 640, 3)).astype(np.uint8)
    wall, person = (cv2.GaussianBlur(layer, (0, 0), 1.2).astype(np.uint8) for layer in texture)
    images = []
    for eye in (0, 1):
        far, near = (round(eye * scale / depth_m) for depth_m in (10.0, person_m))
        image = wall[:, far : far + 320].copy()
        left = 235 - near
        image[60:, left : left + 70] = person[60:, 100:170]
        images.append(image)
    body = np.s_[70:230, 240:300]
    found = depth.from_stereo(images[0], images[1], camera, with_sky=False)
    assert np.median(found.depth_m[body]) == pytest.approx(person_m, rel=0.02)
    assert found.measured[body].mean() > 0.9
    with pytest.raises(DataError, match="nearer than nearest_m"):
        depth.from_stereo(images[0], images[1], camera, with_sky=False, nearest_m=5.0)


def test_the_hood_is_near_and_what_has_no_picture_is_far() -> None:
    pair = orchard()
    hood = np.zeros(pair.depth_m.shape, np.uint8)
    hood[-20:], hood[:, :8] = HOOD, ARTEFACT
    dense = depth.from_stereo(pair.left, pair.right, pair.camera, hood=hood)
    assert (dense.depth_m[hood == HOOD] == HOOD_M).all()
    assert np.isinf(dense.depth_m[hood == ARTEFACT]).all()
    assert not dense.measured[hood > 0].any()
    assert not dense.confidence[hood > 0].any()


def _spoilt(**changes: Any) -> dict[str, Any]:
    pair = orchard()
    return {"left": pair.left, "right": pair.right, "camera": pair.camera, **changes}


def bad_inputs() -> dict[str, tuple[dict[str, Any], str]]:
    """Return what is wrong with a pair, and what the error says."""
    pair = orchard()
    sky = np.full_like(pair.left, (150, 180, 220))
    other = np.random.default_rng(0).integers(0, 255, pair.left.shape).astype(np.uint8)
    hood = np.zeros(pair.depth_m.shape, np.uint8)
    roll = cv2.getRotationMatrix2D((160, 120), 1.0, 1.0)
    rolled = cv2.warpAffine(pair.right, roll, (320, 240), borderMode=cv2.BORDER_REPLICATE).astype(np.uint8)
    later = orchard(seconds_later=0.1).right
    return {
        "other size": (_spoilt(right=pair.right[:-1]), "different size"),
        "no baseline": (_spoilt(camera=replace(pair.camera, baseline_m=None)), "no baseline"),
        "millimetres": (_spoilt(camera=replace(pair.camera, baseline_m=240.0)), "baseline cannot be right"),
        "absurd": (_spoilt(camera=replace(pair.camera, fx=0.004)), "calibration cannot be right"),
        "unequal": (
            _spoilt(camera=replace(pair.camera, fx=2 * pair.camera.fx)),
            "fx and fy cannot both",
        ),
        "NaN": (_spoilt(camera=replace(pair.camera, cx=float("nan"))), "calibration cannot be right"),
        "calibrated elsewhere": (_spoilt(camera=replace(pair.camera, width=640)), "another image size"),
        "swapped": (_spoilt(left=pair.right, right=pair.left), "swapped"),
        "copies": (_spoilt(right=pair.left), "show the same view"),
        "no pair": (_spoilt(right=other), "do not match"),
        "other moment": (_spoilt(right=later), "do not match"),
        "a little later": (_spoilt(right=orchard(seconds_later=0.01).right), "not of one moment"),
        "a row lower": (_spoilt(right=np.roll(pair.right, 1, axis=0)), "rows of left and right"),
        "rows higher": (_spoilt(right=np.roll(pair.right, -6, axis=0)), "rows of left and right"),
        "rolled": (_spoilt(right=rolled), "do not match"),
        "all sky": (_spoilt(left=sky, right=sky), "nothing but sky"),
        "too near": (_spoilt(nearest_m=0.01), "nearest_m does not fit"),
        "at the lens": (_spoilt(nearest_m=0.0), "nearest_m does not fit"),
        "absurd offset": (_spoilt(offset_px=-200.0), "offset_px cannot be right"),
        "no offset": (_spoilt(offset_px=float("nan")), "offset_px cannot be right"),
        "wrong offset": (_spoilt(offset_px=-60.0), "below zero"),
        "no refinement": (_spoilt(refine="bogus"), "no such refinement"),
        "fractions": (_spoilt(left=pair.left / 255, right=pair.right / 255), "not of 8 bits"),
        "black": (_spoilt(right=0 * pair.right), "right image is black"),
        "all hood": (_spoilt(hood=hood + 255), "leaves nothing"),
        "coloured hood": (_spoilt(hood=np.dstack([hood] * 3)), "has colours"),
        "small hood": (_spoilt(hood=hood[1:]), "not of the image's size"),
        "smooth hood": (_spoilt(hood=hood + 77), "other values"),
    }


NO_PAIR = {
    *("other size", "no baseline", "millimetres", "absurd", "NaN", "calibrated elsewhere"),
    *("swapped", "copies", "other moment", "a little later", "a row lower", "rows higher", "rolled"),
}


@pytest.mark.parametrize("case", bad_inputs())
def test_bad_input_is_one_clear_error(case: str) -> None:
    given, what = bad_inputs()[case]
    with pytest.raises(DataError, match=what) as caught:
        depth.from_stereo(**given, where="frame 'row3/000123'")
    assert caught.value.where == "frame 'row3/000123'"
    assert caught.value.fix
    if case in NO_PAIR:  # the quick check says the same
        with pytest.raises(DataError) as quick:
            check_pair(given["left"], given["right"], given["camera"], where="frame 'row3/000123'")
        assert (quick.value.what, quick.value.fix) == (caught.value.what, caught.value.fix)


def test_the_quick_check_asks_for_a_pair_and_nothing_else() -> None:
    """A good pair, and one of which little matches: on a person it may match all the same."""
    pair = orchard()
    check_pair(pair.left, pair.right, pair.camera, where="")
    noise = np.random.default_rng(0).normal(0, 40, (2, *pair.left.shape))
    left, right = (
        np.clip(one + more, 0, 255).astype(np.uint8) for one, more in zip(pair[:2], noise, strict=True)
    )
    with pytest.raises(DataError, match="do not match"):
        depth.from_stereo(left, right, pair.camera)
    check_pair(left, right, pair.camera, where="")


@pytest.mark.parametrize("rows", [-11, -3, -1, 0, 1, 4])
def test_how_many_rows_the_right_image_is_lower_is_measured(rows: int) -> None:
    pair = orchard()
    one, other = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.uint8) for image in pair[:2])
    moved = np.roll(other, rows, axis=0)
    offsets = follow(one, moved, *match(one, moved, 64)[:2]).rows_lower
    assert len(offsets) >= 20
    assert np.median(offsets) == pytest.approx(rows, abs=0.1)
    flat = np.full_like(one, 99)
    assert len(follow(flat, flat, *match(flat, flat, 16)[:2]).rows_lower) == 0


@pytest.mark.parametrize("ahead_m", [-0.05, 0.0, 0.03])
@pytest.mark.parametrize("offset", [0.0, 7.0])
def test_how_far_one_camera_is_ahead_follows_from_rows(ahead_m: float, offset: float) -> None:
    """The right camera is also lower, rolled and zoomed a little; every tenth point was followed wrongly."""
    rng = np.random.default_rng(4)
    camera = Camera(512.0, 512.0, 319.5, 239.5, 640, 480, 0.24)
    left = np.stack([rng.uniform(20, 620, 150), rng.uniform(20, 460, 150)], axis=1)
    depth_m = rng.uniform(2.5, 30, 150)
    x, y = ((left - (319.5, 239.5)) / 512 * depth_m[:, None]).T
    there_m = depth_m - ahead_m
    right_x = 512 * (x - 0.24) / there_m + 319.5 + offset
    right_y = 1.002 * 512 * (y - 0.004) / there_m + 239.5 + 0.3 + 0.002 * (right_x - 319.5)
    right_y += rng.normal(0, 0.15, 150)
    right_y[::10] += rng.normal(0, 5, 15)
    followed = FollowedPoints(
        *(values.astype(np.float32) for values in (left, left[:, 0] - right_x, right_y - left[:, 1]))
    )
    found = advance(followed, camera, offset)
    assert found is not None
    assert found.baselines == pytest.approx(
        ahead_m / 0.24, abs=max(4 * found.error, 0.08 * abs(ahead_m) / 0.24)
    )
    assert found.error < 0.02
    nothing = np.zeros((0, 2), np.float32)
    assert advance(FollowedPoints(nothing, nothing[:, 0], nothing[:, 0]), camera) is None


def test_few_points_that_were_followed_wrongly_do_not_make_a_wall_unsynchronized() -> None:
    """Where all others are equally far away, they decide a plain robust fit."""
    refused = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        points = rng.uniform((20, 20), (620, 460), (150, 2)).astype(np.float32)
        disparity = rng.normal(20, 0.05, 150).astype(np.float32)
        lower = rng.normal(0, 0.08, 150).astype(np.float32)
        disparity[:3], lower[:3] = rng.uniform(1, 60, 3), rng.uniform(-20, 20, 3)
        found = advance(FollowedPoints(points, disparity, lower), Camera(512, 512, 320, 240, 640, 480, 0.24))
        assert found is not None
        refused += abs(found.baselines) > max(MOST_AHEAD, AHEAD_ERRORS * found.error)
    assert refused <= 1


def test_a_gap_is_filled_from_the_farther_side() -> None:
    values = np.array([[0, 0, 0, 0], [0, 5, 0, 2], [0, 0, 0, 0]], np.float32)
    assert filled_from_farther(values, values > 0).tolist() == [[5, 5, 2, 2]] * 3


def test_a_plane_that_is_not_the_ground_takes_nothing_away() -> None:
    wall = np.full((80, 50), 9, np.float32)
    ground = np.repeat(np.linspace(-20, 20, 80, dtype=np.float32)[:, None].clip(0), 50, axis=1)
    ground[60:, 10:20] = 1  # a ditch: too much of it to be mistakes
    for disparity in (wall, ground):
        assert not below_ground(disparity, np.ones((80, 50), np.bool_)).any()
    low = np.ones((8, 50), np.float32)
    assert not below_ground(low, low < 0).any()  # too few rows to fit a line


def test_a_wall_of_the_colour_of_the_sky_is_no_sky_where_it_was_measured() -> None:
    image = np.full((60, 90, 3), (90, 120, 40), np.uint8)
    image[:30, :40], image[:30, 50:] = (150, 180, 220), (152, 182, 222)
    near = np.zeros((60, 90), np.bool_)
    near[5:28, 52:88] = True
    sky = sky_mask(image, near=near)
    assert sky[:30, :40].all()
    assert not sky[:, 40:].any()


def test_a_gray_wall_that_runs_on_into_the_sky_is_no_sky_where_it_was_measured() -> None:
    image = np.full((60, 90, 3), (105, 117, 123), np.uint8)  # a wall as bright as the sky beside it
    image[:40, 30:] = np.linspace((105, 117, 123), (108, 130, 165), 60)[None].round()
    image[40:, 30:] = (60, 60, 50)
    near = np.zeros((60, 90), np.bool_)
    near[:, :15] = True  # less than a quarter of the piece
    assert sky_mask(image)[:, :15].mean() > 0.5
    sky = sky_mask(image, near=near, matched=near)
    assert not sky[:, :9].any()
    assert sky[:40, 32:].all()


def test_a_pocket_of_blue_sky_of_which_little_was_matched_as_near_is_sky() -> None:
    image = np.full((60, 90, 3), (150, 180, 220), np.uint8)
    image[30:], image[:30, 38:54], image[:30, 40:50] = (90, 120, 40), (90, 120, 40), (142, 172, 212)
    near = np.zeros((60, 90), np.bool_)
    near[:30, 40:44] = True
    assert sky_mask(image, near=near, matched=near)[:30, 40:50].all()
    assert not sky_mask(image, near=near)[:28, 42:48].any()  # a laser gets no return from the sky
    half = near.copy()
    half[:30, 44:46] = True
    assert not sky_mask(image, near=half, matched=half)[:28, 42:48].any()
    for other in ((115, 145, 185), (175, 180, 195)):  # of another colour, or not blue
        image[:30, 40:50] = other
        assert not sky_mask(image, near=near, matched=near)[:28, 42:48].any()


@pytest.mark.parametrize("what", ["sky", "matched", "of another blue", "low"])
def test_a_piece_that_leaves_enclose_is_sky_if_it_is_as_the_sky_in_its_rows(what: str) -> None:
    image = np.full((60, 90, 3), (60, 80, 40), np.uint8)
    image[:30, :40] = np.linspace((90, 140, 230), (140, 180, 220), 30)[:, None].round()
    inside = np.s_[20:30, 60:72]
    image[inside] = image[20:30, :1]
    if what == "of another blue":
        image[inside] -= np.uint8(18)
    near = np.zeros((60, 90), np.bool_)
    near[20:30, 60 : 71 if what == "matched" else 69] = True
    sky = sky_mask(image, near=near, matched=near, horizon=22.0 if what == "low" else 40.0)
    assert sky[:30, :40].all()
    assert sky[21:29, 61:71].all() if what == "sky" else not sky[21:29, 61:71].any()


@pytest.mark.parametrize("sky", [(140, 160, 205), (180, 182, 184)], ids=["blue", "gray"])
def test_a_rough_gray_house_below_the_sky_is_no_sky_where_it_was_measured(sky: tuple[int, int, int]) -> None:
    image = np.full((60, 90, 3), sky, np.uint8)
    image[45:] = (90, 120, 40)
    rough = 9 * np.random.default_rng(2).integers(-1, 2, (30, 30, 1))  # not smooth, so no piece of its own
    image[15:45, 40:70] = np.array([172, 170, 175]) + rough
    house = np.zeros((60, 90), np.bool_)
    house[15:45, 40:70] = True
    found, by_colour = (sky_mask(image, near=near) for near in (house, ~house & house))
    assert found[:45][~house[:45]].all()
    assert not found[20:40, 45:65].any()
    assert by_colour[20:40, 45:65].mean() > 0.5


def test_sky_goes_on_in_another_colour_without_a_step_and_ends_at_one() -> None:
    nothing = np.zeros((60, 90), np.bool_)
    colours = np.linspace((100, 130, 200), (230, 200, 170), 40)[:, None].round()
    image = np.full((60, 90, 3), (60, 60, 40), np.uint8)
    image[:40] = colours
    assert sky_mask(image, near=nothing, matched=nothing, horizon=45.0)[:40].all()
    image[:20], image[20:40] = (120, 140, 180), (165, 145, 120)  # as bright, so the edge is smooth
    assert np.array_equal(
        sky_mask(image, near=nothing, matched=nothing, horizon=45.0)[:40].mean(axis=1), np.arange(40) < 20
    )


@pytest.mark.parametrize("gains", [(1.2, 1, 0.7), (1.35, 1, 0.5)])
def test_a_warm_sky_is_sky_by_the_pair_whatever_its_colour(gains: tuple[float, float, float]) -> None:
    pair = orchard(4)
    left, right = (
        np.sqrt(np.clip((image / 255) ** 2 * gains, 0, 1) * 255**2).round().astype(np.uint8)
        for image in (pair.left, pair.right)
    )
    found = depth.from_stereo(left, right, pair.camera).sky
    truth = np.isinf(pair.depth_m)
    assert (found & truth).sum() > 0.999 * found.sum()
    assert (found & truth).sum() > 0.97 * truth.sum()
    assert not sky_mask(left).any()  # colour alone does not find it


@pytest.mark.parametrize(
    "surface", ["measured", "matched", "low", "dark", "small"], ids=lambda name: f"a wall that is {name}"
)
def test_a_warm_smooth_surface_is_no_sky_unless_everything_says_so(surface: str) -> None:
    image = np.full((100, 90, 3), (90, 60, 40), np.uint8)
    wall = np.zeros((100, 90), np.bool_)
    wall[: 8 if surface == "small" else 45, : 9 if surface == "small" else 90] = True
    image[wall] = (230, 170, 110)
    nothing = np.zeros_like(wall)
    horizon = 20.0 if surface == "low" else 50.0
    if surface == "dark":
        image[~wall] = (250, 240, 220)
    near, matched = nothing.copy(), nothing.copy()
    near[:45, :15], matched[:45, :60] = surface == "measured", surface == "matched"
    if surface in ("measured", "low"):
        sky = sky_mask(image, near=nothing, matched=nothing, horizon=50.0)
        assert np.array_equal(sky, wall)
    assert not sky_mask(image, near=near, matched=matched, horizon=horizon).any()


def test_sky_may_begin_below_an_empty_border() -> None:
    image = np.full((60, 90, 3), (90, 120, 40), np.uint8)
    image[:6], image[6:30] = 0, (150, 180, 220)
    assert not sky_mask(image).any()
    assert sky_mask(image, empty=image.max(axis=2) == 0)[7:30].all()


def test_noise_in_the_sky_is_sky_and_a_leaf_before_it_is_not() -> None:
    image = np.full((60, 90, 3), (200, 205, 208), np.uint8)
    image[30:], image[10, 20], image[10, 60] = (90, 120, 40), (216, 205, 200), (90, 120, 40)
    sky = sky_mask(image)
    assert sky[10, 20]
    assert not sky[10, 60]
    assert sky[:30].sum() == 30 * 90 - 1


@pytest.mark.parametrize("share", [32 / 49, 1.0])
def test_the_rungs_of_a_ladder_are_not_behind_infinity(share: float) -> None:
    """Somebody carries one right before the camera: rungs are alike, and some are in the left image alone."""
    script, camera = orchard_log(31, "test/positive004", "positive"), stereo_camera(640, 480)
    time_s = share * script.drive.duration_s
    pose = script.drive.pose(time_s)
    left, right = (
        render(script.scene(), camera, view, time_s, generator(1, "ladder", eye)).image
        for eye, view in (("left", pose), ("right", right_of(pose, camera.baseline_m or 0.0)))
    )
    check_pair(left, right, camera, where="here")
    with pytest.raises(DataError, match=r"than infinity is|swapped"):
        check_pair(left, moved_left(right, -40), camera, where="here")

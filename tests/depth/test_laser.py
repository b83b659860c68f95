"""Depth from laser returns: held-out rings of a rendered scene, returns seen through, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adverse import depth
from adverse.depth.laser import DISTANT_PX, without_hidden
from adverse.errors import DataError
from adverse.types import Depth
from stereo_scenes import haze_error, orchard

RING_PX = 5
TOP = 90
"""A scanner sees nothing above this row."""


def scan(step: int, first: int = 0) -> Depth:
    """Return sparse depth as of a scanner: every `step`th row below TOP, every second column."""
    truth = orchard().depth_m
    sparse = np.full(truth.shape, np.nan, np.float32)
    sparse[TOP + first :: step, ::2] = truth[TOP + first :: step, ::2]
    sparse[np.isinf(sparse)] = np.nan
    return sparse


def test_held_out_rings_are_near_the_truth_nearer_than_by_nearest_neighbours() -> None:
    pair, sparse, held = orchard(), scan(2 * RING_PX), scan(2 * RING_PX, RING_PX)
    dense = depth.from_laser(sparse, pair.left)
    nearest = depth.usable(sparse, "nearest", where="here").depth_m
    known = np.isfinite(held)
    error = haze_error(dense.depth_m, held)[known].mean()
    assert error <= 0.03
    assert error <= 0.8 * haze_error(nearest, held)[known].mean()


def test_what_is_invented_is_told_and_far_from_returns_marked() -> None:
    pair, sparse = orchard(), scan(RING_PX)
    dense = depth.from_laser(sparse, pair.left)
    assert (dense.depth_m > 0).all()
    assert not (dense.measured & np.isnan(sparse)).any()
    assert np.array_equal(dense.depth_m[dense.measured], sparse[dense.measured])
    assert dense.distant[: TOP - DISTANT_PX - 10][~dense.sky[: TOP - DISTANT_PX - 10]].all()
    assert not dense.distant[TOP:].any()
    assert dense.shares["invented"] > 0.5
    sky = np.isinf(pair.depth_m)
    assert (dense.sky & sky).sum() >= 0.99 * dense.sky.sum() >= 0.9 * sky.sum()


def test_a_plane_is_exact_in_inverse_depth() -> None:
    row = np.arange(60, dtype=np.float32)[:, None] + np.zeros((60, 80), np.float32)
    truth = 300 / (row + 60)
    sparse = np.full(truth.shape, np.nan, np.float32)
    sparse[::6, ::3] = truth[::6, ::3]
    dense = depth.from_laser(sparse, np.full((60, 80, 3), 90, np.uint8), refine="none", with_sky=False)
    inside = np.s_[:55, :79]
    assert np.abs(dense.depth_m[inside] / truth[inside] - 1).max() < 1e-5


def test_a_step_fades_above_the_view_of_the_scanner() -> None:
    sparse = np.full((60, 120), np.nan, np.float32)
    sparse[40::3, ::3] = np.where(np.arange(0, 120, 3) < 60, 5, 20)
    image = np.full((60, 120, 3), 60, np.uint8)
    inverse = 1 / depth.from_laser(sparse, image, refine="none", with_sky=False).depth_m
    steps = np.abs(np.diff(inverse, axis=1)).max(axis=1)
    assert steps[40] == pytest.approx(1 / 5 - 1 / 20)
    for higher in (10, 30):  # over one column more to either side for every two rows, so 1 + higher in all
        assert steps[40 - higher] == pytest.approx((1 / 5 - 1 / 20) / (1 + higher), rel=1e-3)
    assert np.allclose(inverse[:40, 20], 1 / 5)


def test_returns_seen_through_a_nearer_surface_are_dropped_and_those_beside_it_kept() -> None:
    sparse = np.full((40, 60), np.nan, np.float32)
    sparse[4::6, 20:40:2] = 5
    sparse[7, 30] = 30  # between the rings of the surface
    sparse[4::6, 42:58:2] = 30  # beside it
    kept = without_hidden(sparse)
    assert np.isnan(kept[7, 30])
    assert np.array_equal(np.isfinite(kept), np.isfinite(sparse) & (np.arange(40) != 7)[:, None])


def test_points_are_as_good_as_the_sparse_depth_they_make() -> None:
    pair, sparse = orchard(), scan(RING_PX)
    y, x = np.nonzero(np.isfinite(sparse))
    z = sparse[y, x].astype(np.float64)
    camera = pair.camera
    points = np.column_stack([(x - camera.cx) / camera.fx * z, (y - camera.cy) / camera.fy * z, z])
    more = np.vstack([points, points * 2, -points, np.full((1, 3), np.nan)])  # hidden, behind, not a point
    made = depth.from_laser(more, pair.left, camera).depth_m
    assert np.array_equal(made, depth.from_laser(sparse, pair.left).depth_m)


def bad_inputs() -> dict[str, tuple[dict[str, Any], str]]:
    """Return what is wrong with a scan, and what the error says."""
    pair, sparse = orchard(), scan(RING_PX)
    line = np.full_like(sparse, np.nan)
    line[100] = 9
    negative = sparse.copy()
    negative[120, :40] = -3
    sky = np.full_like(pair.left, (150, 180, 220))
    few = np.full_like(sparse, np.nan)
    few[-1, -60::2] = 4
    few[-2, -60::2] = 4
    hood = np.zeros(sparse.shape, np.uint8)
    hood[-2:] = 255
    return {
        "empty": ({"returns_m": np.full_like(sparse, np.nan), "image": pair.left}, "too few returns"),
        "millimetres": ({"returns_m": sparse * 1000, "image": pair.left}, "not in metres"),
        "kilometres": ({"returns_m": sparse / 1000, "image": pair.left}, "not in metres"),
        "behind": ({"returns_m": negative, "image": pair.left}, "0 pixels of 0 m, 40 behind.*NaN where no"),
        "0 for none": (
            {"returns_m": np.nan_to_num(sparse), "image": pair.left},
            f"got: {np.isnan(sparse).sum()} pixels of 0 m, 0 behind",
        ),
        "other size": ({"returns_m": sparse[1:], "image": pair.left}, "not of the image's size"),
        "points of two": ({"returns_m": sparse, "image": pair.left, "camera": pair.camera}, "wrong shape"),
        "on a line": ({"returns_m": line, "image": pair.left}, "on one line"),
        "all sky": ({"returns_m": few, "image": sky}, "nothing but sky"),
        "all on the hood": ({"returns_m": few, "image": pair.left, "hood": hood}, "too few returns"),
    }


@pytest.mark.parametrize("case", bad_inputs())
def test_bad_input_is_one_clear_error(case: str) -> None:
    given, what = bad_inputs()[case]
    with pytest.raises(DataError, match=what) as caught:
        depth.from_laser(**given, where="scan 7")
    assert str(caught.value.where).removesuffix(", without the hood") == "scan 7"
    assert caught.value.fix

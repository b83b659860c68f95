"""Pairs as recorded: turned and distorted cameras, matched after rectification and carried back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from adverse import depth
from adverse.data.files import read_model
from adverse.depth.rectification import StereoRig, rectifier
from adverse.errors import DataError
from stereo_scenes import haze_error, orchard

Floats = NDArray[np.float64]
TURNS = ((0.02, -0.015, 0.01), (-0.01, 0.02, -0.02))
BENT = ((-0.1, 0.02, 0.0, 0.0), (-0.08, 0.01, 0.0, 0.0))


def turned(number: int) -> Floats:
    return cv2.Rodrigues(np.array(TURNS[number]))[0].astype(np.float64)


def seen_by(number: int) -> tuple[NDArray[np.float32], Floats]:
    """Return where (H,W,2) each pixel of a recorded image lies in the rectified one, and its ray there."""
    camera = orchard().camera
    lens = np.array([[camera.fx, 0, camera.cx], [0, camera.fy, camera.cy], [0, 0, 1]])
    x, y = np.meshgrid(np.arange(camera.width, dtype=float), np.arange(camera.height, dtype=float))
    pixels = np.stack([x.ravel(), y.ravel()], axis=1)[:, None]
    flat = cv2.undistortPoints(pixels, lens, np.array(BENT[number])).reshape(-1, 2)
    ray = np.column_stack([flat, np.ones(len(flat))]) @ turned(number)
    at = ray[:, :2] / ray[:, 2:] * (camera.fx, camera.fy) + (camera.cx, camera.cy)
    shape = camera.height, camera.width
    return at.reshape(*shape, 2).astype(np.float32), ray.reshape(*shape, 3)


def rig(**changes: Any) -> StereoRig:
    camera = orchard().camera
    lens = {"fx": camera.fx, "fy": camera.fy, "cx": camera.cx, "cy": camera.cy}
    given: dict[str, Any] = {
        "width": camera.width,
        "height": camera.height,
        "left": {**lens, "distortion": BENT[0]},
        "right": {**lens, "distortion": BENT[1]},
        "rotation": tuple(map(tuple, turned(1) @ turned(0).T)),
        "translation_m": tuple(turned(1) @ (-(camera.baseline_m or 0), 0, 0)),
    }
    return StereoRig.model_validate({**given, **changes})


def test_a_recorded_pair_has_depth_on_the_pixels_and_along_the_axis_of_its_left_image() -> None:
    pair = orchard()
    (at, ray), (at_right, _) = seen_by(0), seen_by(1)
    edge = cv2.BORDER_REPLICATE
    left = cv2.remap(pair.left, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=edge)
    right = cv2.remap(pair.right, at_right[..., 0], at_right[..., 1], cv2.INTER_LINEAR, borderMode=edge)
    there = cv2.remap(pair.depth_m, at[..., 0], at[..., 1], cv2.INTER_NEAREST, borderMode=edge)
    truth = (there / ray[..., 2]).astype(np.float32)
    inside = ((at >= 0) & (at < (pair.camera.width, pair.camera.height))).all(axis=2)
    dense = depth.from_recorded_stereo(left.astype(np.uint8), right.astype(np.uint8), rig())
    assert haze_error(dense.depth_m, truth)[inside].mean() <= 0.03
    edges = np.concatenate([dense.depth_m[-1], *dense.depth_m[pair.camera.height // 2 :, [0, -1]].T])
    assert np.isfinite(edges).all()  # no pixel of the ground takes the depth of a border without a picture
    sure = inside & dense.measured
    assert abs(np.median(dense.depth_m[sure] / truth[sure]) - 1) < 0.005
    with pytest.raises(DataError, match="rows of left and right image do not correspond"):
        depth.from_stereo(left.astype(np.uint8), right.astype(np.uint8), pair.camera)


def test_the_calibration_in_the_manual_is_read(tmp_path: Path) -> None:
    manual = (Path(__file__).parents[2] / "docs" / "depth.md").read_text()
    (tmp_path / "rig.json").write_text(manual.partition("```json\n")[2].partition("```")[0])
    given = read_model(tmp_path / "rig.json", "stereo calibration", StereoRig)
    assert given.translation_m == (-0.24, 0, 0)
    assert given.left.distortion[0] == -0.31
    rectifier(given)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"translation_m": (0.24, 0.0, 0.0)}, "not to the right"),
        ({"translation_m": (-0.01, -0.2, 0.0)}, "not to the right"),
        ({"rotation": ((1, 0, 0), (0, 2, 0), (0, 0, 1))}, "rotation"),
        ({"width": 100}, "size"),
    ],
)
def test_a_calibration_that_cannot_be_is_refused(changes: dict[str, Any], what: str) -> None:
    pair = orchard()
    with pytest.raises(DataError, match=what):
        depth.from_recorded_stereo(pair.left, pair.right, rig(**changes))

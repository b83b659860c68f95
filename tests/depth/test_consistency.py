"""Depth over neighbouring frames: steadier, not less exact, and people who move are not smeared."""

from __future__ import annotations

import functools
from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from adverse import depth
from adverse.depth.consistency import AGREE_PX
from adverse.depth.dense import HOOD, HOOD_M
from adverse.errors import DataError
from adverse.types import Camera
from stereo_scenes import flicker_px, haze_error, orchard_video


@functools.cache
def maps() -> tuple[list[depth.DenseDepth], list[depth.DenseDepth]]:
    """Return the depth of each frame as matched, and refined by itself."""
    matched, refined = (
        [depth.from_stereo(frame.left, frame.right, frame.camera, refine=how) for frame in orchard_video()]
        for how in ("none", "smoother")
    )
    return matched, refined


def neighbours(at: int) -> list[depth.Neighbour]:
    frames, matched = orchard_video(), maps()[0]
    here = np.linalg.inv(frames[at].pose)
    return [depth.Neighbour(frames[n].left, matched[n], here @ frames[n].pose) for n in (at - 1, at + 1)]


def consistent(at: int) -> depth.DenseDepth:
    frame = orchard_video()[at]
    return depth.consistent(frame.left, maps()[0][at], neighbours(at), frame.camera)


def test_consistent_depth_flickers_less_and_people_who_walk_stay_sharp() -> None:
    frames, (_, alone) = orchard_video(), maps()
    made = {at: consistent(at) for at in (1, 2)}
    error: dict[str, list[list[float]]] = {"alone": [], "consistent": []}
    for at, together in made.items():
        truth, person = frames[at].depth_m, frames[at].person
        assert person.mean() > 0.005
        near = (truth < 40) & ~alone[at].sky
        beside = cv2.dilate(person.astype(np.uint8), np.ones((13, 13), np.uint8)) > 0
        for name, dense in (("alone", alone[at]), ("consistent", together)):
            off = np.abs(np.minimum(dense.depth_m, 1000) - np.minimum(truth, 1000))
            error[name].append(
                [
                    haze_error(dense.depth_m, truth).mean(),
                    *(off[near & part].mean() for part in (True, beside)),
                ]
            )
        assert np.array_equal(together.sky, alone[at].sky)
        assert together.measured[alone[at].measured].all()
        assert together.measured.mean() > alone[at].measured.mean()
    before, after = (np.mean(error[name], axis=0) for name in ("alone", "consistent"))
    assert (after <= before * 1.001).all(), (before, after)
    pair = frames[1], frames[2]
    steady = flicker_px(*pair, made[1].depth_m, made[2].depth_m).mean()
    assert steady < 0.9 * flicker_px(*pair, alone[1].depth_m, alone[2].depth_m).mean()


def flat(value_px: float, camera: Camera, *, level: int = 90) -> tuple[NDArray[np.uint8], depth.DenseDepth]:
    shape = (camera.height, camera.width)
    metres = np.full(shape, camera.fx * (camera.baseline_m or 0) / value_px, np.float32)
    image = np.full((*shape, 3), level, np.uint8)
    return image, depth.DenseDepth(
        metres, np.ones(shape, np.float32), np.ones(shape, bool), np.zeros(shape, bool)
    )


CAMERA = Camera(50, 50, 20, 15, 40, 30, 0.2)


def test_what_agrees_is_averaged_what_has_moved_is_dropped_and_gaps_need_most_of_the_neighbours() -> None:
    image, own = flat(10.0, CAMERA)
    own.measured[:, :10] = False  # a gap, filled with what is beside it
    around = []
    for value, level in ((10.2, 90), (10.4, 90), (15.0, 90), (10.3, 140)):
        seen, other = flat(value, CAMERA, level=level)
        around.append(depth.Neighbour(seen, other, np.eye(4)))
    made = depth.consistent(image, own, around, CAMERA, refine="none")
    scale = CAMERA.fx * 0.2
    assert np.allclose(scale / made.depth_m[:, 12:], (10 + 10.2 + 10.4 + 10.3) / 4, atol=1e-4)
    assert not made.measured[:, :10].any()  # two of four are not most of them
    around[3] = around[3]._replace(image=image)
    made = depth.consistent(image, own, around[::-1], CAMERA, refine="none")
    assert made.measured.all()
    assert np.allclose(scale / made.depth_m[:, :9], (10.2 + 10.4 + 10.3) / 3, atol=1e-4)
    assert AGREE_PX < 4
    alone = depth.consistent(image, own, [], CAMERA, refine="none")
    assert np.array_equal(alone.measured, own.measured)
    assert np.allclose(alone.depth_m, own.depth_m)


def test_a_neighbour_is_carried_by_its_pose_and_the_hood_stays() -> None:
    image, own = flat(10.0, CAMERA)  # a wall at 1 m
    seen, other = flat(8.0, CAMERA)  # the same wall from 0.25 m farther back
    pose = np.eye(4)
    pose[2, 3] = -0.25
    hood = np.zeros((30, 40), np.uint8)
    hood[-5:] = HOOD
    made = depth.consistent(image, own, [depth.Neighbour(seen, other, pose)] * 2, CAMERA, hood=hood)
    assert np.allclose(made.depth_m[:-5], 1.0, atol=1e-5)
    assert (made.depth_m[-5:] == HOOD_M).all()
    with pytest.raises(DataError, match="of another size"):
        depth.consistent(image, own, [depth.Neighbour(seen[:-1], other, pose)], CAMERA)
    with pytest.raises(DataError, match="no usable pose"):
        depth.consistent(image, own, [depth.Neighbour(seen, other, pose * np.nan)], CAMERA)
    with pytest.raises(DataError, match="no baseline"):
        depth.consistent(image, own, [], replace(CAMERA, baseline_m=None))

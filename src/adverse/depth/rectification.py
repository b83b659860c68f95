"""Depth from a stereo pair as the cameras saw it: rectified by the calibration, matched, and carried back.

Matching needs images without distortion whose rows correspond. Mutations and detectors get the image as
recorded, so depth is returned on that image's pixels and along its camera's axis.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from adverse.depth import usable
from adverse.depth.dense import ARTEFACT, DenseDepth, checked_hood, with_hood
from adverse.errors import DataError
from adverse.types import Camera, Depth, Image

Floats = NDArray[np.float32]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_OF_LIST = BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)
"""JSON has lists alone, and strict validation takes none for a tuple."""
_Triple = Annotated[tuple[_Finite, _Finite, _Finite], _OF_LIST]
MIRRORED_TERMS = (3, 8, 9, 13)
"""Terms of the distortion that change sign in a mirror: p2, s1, s2 and tau_y."""
NOT_A_ROTATION = 1e-3
"""How far the rotation may be from orthonormal."""


class Lens(BaseModel):
    """One camera in pixels, with OpenCV's distortion: k1, k2, p1, p2, then k3 and so on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fx: _Positive
    fy: _Positive
    cx: _Finite
    cy: _Finite
    distortion: Annotated[tuple[_Finite, ...], Field(max_length=14), _OF_LIST] = ()

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The (3,3) camera matrix."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1]])

    def mirrored(self, width: int) -> Lens:
        """Return the camera whose images are the mirrored ones of this."""
        bent = list(self.distortion)
        for place in MIRRORED_TERMS:
            if place < len(bent):
                bent[place] = -bent[place]
        return self.model_copy(update={"cx": width - 1 - self.cx, "distortion": tuple(bent)})

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """The distortion, as many as OpenCV takes."""
        count = next(size for size in (4, 5, 8, 12, 14) if size >= len(self.distortion))
        return np.array([*self.distortion, *[0.0] * (count - len(self.distortion))])


class StereoRig(BaseModel):
    """Two cameras: a point of the left one's frame is at rotation @ point + translation_m of the right's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    left: Lens
    right: Lens
    rotation: Annotated[tuple[_Triple, _Triple, _Triple], _OF_LIST]
    translation_m: _Triple

    def mirrored(self) -> StereoRig:
        """Return the rig as a mirror shows it: the right camera is then the left one of mirrored images."""
        mirror = np.diag([-1.0, 1.0, 1.0])
        turn = mirror @ np.array(self.rotation).T @ mirror
        move = mirror @ -np.array(self.rotation).T @ np.array(self.translation_m)
        return self.model_copy(
            update={
                "left": self.right.mirrored(self.width),
                "right": self.left.mirrored(self.width),
                "rotation": tuple(map(tuple, turn.tolist())),
                "translation_m": tuple(move.tolist()),
            }
        )


class Rectifier(NamedTuple):
    """Maps that rectify both images, the rectified camera, and how to come back to the left image."""

    left: tuple[Floats, Floats]
    right: tuple[Floats, Floats]
    camera: Camera
    back: tuple[Floats, Floats]
    axial: Floats
    """Depth along the recorded image's axis over depth along the rectified one's (H,W)."""


def from_recorded_stereo(
    left: Image,
    right: Image,
    rig: StereoRig,
    *,
    hood: NDArray[np.uint8] | None = None,
    sky: NDArray[np.bool_] | None = None,
    where: str = "stereo pair",
    **options: Any,
) -> DenseDepth:
    """Return dense depth of a left image (H,W,3) that is not rectified, with options of `from_stereo`."""
    for image in (left, right):
        if image.shape[:2] != (rig.height, rig.width):
            raise DataError(
                "the images are not of the size that the stereo calibration is for",
                where=where,
                got=f"{image.shape[1]}x{image.shape[0]} pixels",
                wanted=f"{rig.width}x{rig.height}",
                fix="Give the calibration of these images.",
            )
    maps = rectifier(rig)
    hood = checked_hood(hood, left, where)
    mask = np.zeros(left.shape[:2], np.uint8) if hood is None else hood
    straight = cv2.remap(mask, *maps.left, cv2.INTER_NEAREST, borderValue=ARTEFACT).astype(np.uint8)
    pair = [
        cv2.remap(image, *to, cv2.INTER_LINEAR).astype(np.uint8)
        for image, to in ((left, maps.left), (right, maps.right))
    ]
    if sky is not None:
        above = cv2.remap(sky.astype(np.uint8), *maps.left, cv2.INTER_NEAREST, borderValue=0)
        options["sky"] = above > 0
    from adverse.depth.stereo import from_stereo  # noqa: PLC0415 - slow to import, and many runs match nothing

    dense = from_stereo(pair[0], pair[1], maps.camera, hood=straight, where=where, **options)
    everywhere_m = _into_borders(dense.depth_m, straight == ARTEFACT, where)

    def carried(values: NDArray[Any]) -> NDArray[Any]:
        return cv2.remap(values, *maps.back, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)

    depth = (carried(everywhere_m) * maps.axial).astype(np.float32)
    measured = carried(dense.measured.astype(np.uint8)) > 0
    sure = carried(dense.confidence).astype(np.float32)
    distant = carried(dense.distant.astype(np.uint8)) > 0
    return with_hood(DenseDepth(depth, sure, measured, distant), hood)


def _into_borders(depth_m: Depth, empty: NDArray[np.bool_], where: str) -> Depth:
    """Return depth (H,W) with that of the nearest pixel where a rectified image has no picture.

    A pixel at the edge of the recorded image may lie nearest to one of these.
    """
    pictured = np.where(empty, np.float32(np.nan), depth_m)
    return usable(pictured, "nearest", where=where).depth_m if (pictured > 0).any() else depth_m


@lru_cache(maxsize=4)
def rectifier(rig: StereoRig) -> Rectifier:
    """Return what rectifies the images of a rig, or raise where the calibration cannot be right."""
    rotation, translation = np.array(rig.rotation), np.array(rig.translation_m)
    off = np.abs(rotation @ rotation.T - np.eye(3)).max()
    if off > NOT_A_ROTATION or np.linalg.det(rotation) < 0:
        raise _absurd("its rotation is none", f"{off:.3g} from orthonormal", "a rotation matrix, row by row")
    if abs(translation[0]) <= np.abs(translation[1:]).max() or translation[0] >= 0:
        got = f"translation_m {', '.join(f'{part:g}' for part in translation)}"
        raise _absurd(
            "the right camera is not to the right of the left one", got, "x negative, and the largest"
        )
    size = (rig.width, rig.height)
    one, other = ((lens.matrix, lens.coefficients) for lens in (rig.left, rig.right))
    turn, turn_right, project, project_right, *_ = cv2.stereoRectify(
        *one, *other, size, rotation, translation, flags=cv2.CALIB_ZERO_DISPARITY, alpha=1
    )
    (fx, _, cx), (_, fy, cy) = project[:2, :3].tolist()
    baseline_m = float(-project_right[0, 3] / project_right[0, 0])
    camera = Camera(fx, fy, cx, cy, rig.width, rig.height, baseline_m)
    to_left = cv2.initUndistortRectifyMap(*one, turn, project, size, cv2.CV_32FC1)
    to_right = cv2.initUndistortRectifyMap(*other, turn_right, project_right, size, cv2.CV_32FC1)
    x, y = np.meshgrid(np.arange(rig.width, dtype=np.float64), np.arange(rig.height, dtype=np.float64))
    pixels = np.stack([x.ravel(), y.ravel()], axis=1)[:, None]
    at = cv2.undistortPoints(pixels, *one, R=turn, P=project).reshape(rig.height, rig.width, 2)
    ray = np.stack([(at[..., 0] - camera.cx) / camera.fx, (at[..., 1] - camera.cy) / camera.fy], axis=-1)
    axial = ray @ turn[:2, 2] + turn[2, 2]
    back = at[..., 0].astype(np.float32), at[..., 1].astype(np.float32)
    return Rectifier(_pair(to_left), _pair(to_right), camera, back, axial.astype(np.float32))


def _pair(maps: Any) -> tuple[Floats, Floats]:
    return maps[0], maps[1]


def _absurd(what: str, got: str, wanted: str) -> DataError:
    return DataError(
        f"the stereo calibration cannot be right: {what}",
        got=got,
        wanted=wanted,
        fix="A point of the left camera's frame is at rotation @ point + translation_m in the right one's.",
    )

"""Whether depth from stereo has the right scale: with a baseline ten times too long it is ten times too far.

No image tells that. What the data set says besides does: depth that it recorded, annotated positions, and
poses, by how far points move between two frames. Where it has none of these, the heights of people and of the
camera above the ground are at least plausible or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.plausibility import Doubt, spread
from adverse.depth.boxes import box_depths_m
from adverse.depth.ground import ground_line
from adverse.depth.matching import gray
from adverse.depth.rows import followed_both_ways
from adverse.errors import AdverseError
from adverse.study.depth_cache import DepthMap
from adverse.study.depth_maps import MEASURED, ComputedDepth
from adverse.text import counted
from adverse.types import Camera, Dataset, Frame

FRAMES = 5
"""Frames, spread over the data set, whose depth is compared."""
MOST_RATIO = 2.0
"""Depth is wrong that is so many times what else is known of it, or less than its inverse."""
LEAST_PIXELS, LEAST_POINTS, LEAST_BOXES = 200, 20, 3
STEP_M = 0.1, 3.0
"""How far the camera moves between two frames whose points are compared."""
LEAST_PARALLAX_PX, MOST_SPREAD = 1.0, 0.5
"""Points must move so far by it, and the middle half of them must agree to this share."""
PEOPLE = frozenset({"person", "pedestrian", "people", "human"})
PERSON_M, CAMERA_M = (0.4, 4.0), (0.2, 8.0)
"""Between these are the heights of most people's boxes, and of cameras on ground vehicles."""


class _Known(NamedTuple):
    """A frame, the one after it in its log, and its depth by stereo."""

    frame: Frame
    after: Frame | None
    camera: Camera
    depth: DepthMap


def doubtful_scale(dataset: Dataset) -> Iterator[Doubt]:
    """Yield a doubt where depth from stereo contradicts what else the data set says, or is not plausible."""
    known, compared = list(_computed(dataset)), False
    for what, ratio_of in _WITNESSES.items():
        ratios = [(ratio, one) for one in known if (ratio := ratio_of(one)) is not None]
        if not ratios:
            continue
        compared = True
        ratio = float(np.median([ratio for ratio, _ in ratios]))
        if not 1 / MOST_RATIO <= ratio <= MOST_RATIO:
            one = ratios[0][1]
            times = f"{ratio:.2g} times" if ratio > 1 else f"1/{1 / ratio:.2g} of"
            yield Doubt(
                f"depth from stereo does not fit {what}",
                f"frame {one.frame.id!r}",
                f"{times} the depth by {what} (median of {counted(len(ratios), 'frame')}), with a "
                f"baseline of {one.camera.baseline_m:g} m",
                f"Correct baseline_m and fx of the calibration, or {what}: all are in metres.",
                len(ratios),
                certain=True,
            )
            return
    if not compared:
        yield from _implausible(dataset, known)


def _implausible(dataset: Dataset, known: Sequence[_Known]) -> Iterator[Doubt]:
    people = [number for number, name in enumerate(dataset.categories) if name.lower() in PEOPLE]
    heights = [height for one in known for height in _heights(one, people)]
    cameras = [height for one in known if (height := _camera_height(one)) is not None]
    for what, found, (least, most), count in (
        ("people are", heights, PERSON_M, LEAST_BOXES),
        ("the camera above the ground is", cameras, CAMERA_M, 1),
    ):
        middle = float(np.median(found)) if len(found) >= count else math.nan
        if middle < least or middle > most:
            yield Doubt(
                "depth from stereo is hardly of the right scale",
                f"frame {known[0].frame.id!r}",
                f"by it {what} {middle:.2g} m high (median of {len(found)}), with a baseline of "
                f"{known[0].camera.baseline_m:g} m",
                "Check that baseline_m and fx of the calibration are right, baseline_m in metres.",
                len(found),
            )
            return


def _computed(dataset: Dataset) -> Iterator[_Known]:
    pairs = [
        (frame, after, frame.depth_m, frame.depth_m.camera)
        for log in dataset.logs
        for frame, after in zip(log.frames, (*log.frames[1:], None), strict=True)
        if isinstance(frame.depth_m, ComputedDepth) and frame.depth_m.kind == "stereo"
    ]
    for frame, after, source, camera in spread(pairs, FRAMES):
        if isinstance(camera, Camera):  # with a rig images are not rectified, and points not of a pinhole
            try:
                yield _Known(frame, after, camera, source.map())
            except AdverseError:
                continue  # said of the frame when it is used


def _by_recorded_depth(known: _Known) -> float | None:
    source = known.frame.depth_m
    recorded = source.recorded if isinstance(source, ComputedDepth) else None
    if recorded is None:
        return None
    try:
        other = np.asarray(recorded(), np.float64)
    except AdverseError:
        return None
    if other.shape != known.depth.depth_m.shape:
        return None
    both = (known.depth.origin == MEASURED) & np.isfinite(other) & (other > 0)
    if both.sum() < LEAST_PIXELS:
        return None
    return float(np.median(known.depth.depth_m[both] / other[both]))


def _by_positions(known: _Known) -> float | None:
    truth, pose = known.frame.truth, known.frame.world_from_camera
    if truth.positions_m is None or pose is None:
        return None
    there = truth.positions_m - pose[:3, 3]
    away = there @ pose[:3, 2]
    found = box_depths_m(known.depth.depth_m, truth.boxes)
    good = np.isfinite(away) & (away > 0) & np.isfinite(found) & ~truth.ignore
    return float(np.median(found[good] / away[good])) if good.any() else None


def _by_poses(known: _Known) -> float | None:
    """Return the depth by stereo over that by which points move from one frame to the next."""
    frame, after, camera = known.frame, known.after, known.camera
    if after is None or frame.world_from_camera is None or after.world_from_camera is None:
        return None
    motion = np.linalg.inv(after.world_from_camera) @ frame.world_from_camera
    if not STEP_M[0] <= float(np.linalg.norm(motion[:3, 3])) <= STEP_M[1]:
        return None
    try:
        before, later = gray(frame.image()), gray(after.image())
    except AdverseError:
        return None
    if before.shape != later.shape:
        return None
    start, end = followed_both_ways(before, later, known.depth.origin == MEASURED)
    return scale_by_motion(start, end, known.depth.depth_m, camera, motion) if len(start) else None


def scale_by_motion(
    start: NDArray[np.float32],
    end: NDArray[np.float32],
    depth_m: NDArray[np.float32],
    camera: Camera,
    motion: NDArray[np.float64],
) -> float | None:
    """Return how many times too large a map (H,W) is by points (N,2) that moved, or None: it cannot be told.

    `motion` (4,4) takes points from the camera's frame at the start to that at the end. Were all depth and
    the motion in one unit, a point X would be seen at R X + t. If depth is s times too large, s is where the
    points are seen that R X + s t says: linear in s for each of them.
    """
    column, row = np.rint(start).astype(np.int64).T
    away = depth_m[row, column].astype(np.float64)
    rays = np.column_stack([(start - (camera.cx, camera.cy)) / (camera.fx, camera.fy), np.ones(len(start))])
    turned = (rays * away[:, None]) @ motion[:3, :3].T
    seen = (end - (camera.cx, camera.cy)) / (camera.fx, camera.fy)
    step = motion[:3, 3]
    pull = seen * step[2] - step[:2]
    off = turned[:, :2] - seen * turned[:, 2:]
    strength = np.linalg.norm(pull, axis=1) / np.maximum(turned[:, 2], 1e-9)
    clear = strength >= np.median(strength)
    if clear.sum() < LEAST_POINTS:
        return None
    scales = (off[clear] * pull[clear]).sum(axis=1) / (pull[clear] ** 2).sum(axis=1)
    low, scale, high = np.percentile(scales, (25, 50, 75))
    parallax = camera.fx * float(np.median(strength[clear])) * scale
    if scale <= 0 or high - low > MOST_SPREAD * scale or parallax < LEAST_PARALLAX_PX:
        return None
    return float(scale)


def _heights(known: _Known, people: Sequence[int]) -> list[float]:
    """Return the heights in metres of people's boxes that end inside the image."""
    truth, camera = known.frame.truth, known.camera
    inside = (truth.boxes[:, 1] > 1) & (truth.boxes[:, 3] < camera.height - 1)
    chosen = np.isin(truth.labels, people) & ~truth.ignore & inside
    boxes = truth.boxes[chosen]
    heights = box_depths_m(known.depth.depth_m, boxes) * (boxes[:, 3] - boxes[:, 1]) / camera.fy
    return [float(height) for height in heights if math.isfinite(height)]


def _camera_height(known: _Known) -> float | None:
    """Return how high the camera is above flat ground: the baseline over how disparity grows with the row."""
    scale = known.camera.fx * (known.camera.baseline_m or 0.0)
    shift = np.where(np.isfinite(known.depth.depth_m), scale / known.depth.depth_m, 0).astype(np.float32)
    line = ground_line(shift, known.depth.origin == MEASURED)
    if line is None:
        return None
    return (known.camera.baseline_m or 0.0) * known.camera.fx / (known.camera.fy * line.slope)


_WITNESSES: Mapping[str, Callable[[_Known], float | None]] = {
    "the recorded depth": _by_recorded_depth,
    "the annotated positions": _by_positions,
    "the poses": _by_poses,
}
"""What depth is compared with, the strongest first."""

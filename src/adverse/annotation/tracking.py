"""Carrying a point and its partner from one frame to the next: by local matching, there and back.

Where the camera's poses are known, the point is looked for where a person who stands still would be; how far
around that depends on how fast people move. The partner in the right image is carried on its own and, as a
check, found again from the left one. Where one of these disagrees the tracker stops and says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.annotation.geometry import (
    disparity_px,
    in_camera_m,
    in_world_m,
    mapped_depth_m,
    seen_at,
    stereo_depth_m,
)
from adverse.annotation.matching import (
    RETURN_PX,
    Fine,
    Gray,
    Half,
    Match,
    Point,
    at_point,
    correlation,
    match_in_row,
    match_near,
    piece,
)
from adverse.types import Camera, Depth

HALF_M = 0.12, 0.25
"""Half the width and height of the piece that is compared: on a person's trunk."""
LEAST_HALF_PX, MOST_HALF_PX = 4, 24
HALF_PX = 7, 7
"""The same where nothing tells how large a person appears."""
UNKNOWN_PX_PER_M = 50.0
PERSON_M = 1.75
"""Height of a person, for the piece to start with."""
PERSON_SPEED = 3.0
"""Metres per second: what people do between two frames."""
CAMERA_REACH = 0.05
"""How far a camera whose pose is not known may turn between two frames, as a share of its image's width."""
VIBRATION_PX = 4.0
FRAME_S = 0.15
"""Time between frames that do not tell theirs."""
LONGEST_S = 3.0
"""Over a longer time nobody is followed from one frame to the next."""
AGREE_PX = 1.0
"""The partner carried by itself and the one found from the left image may differ by this."""
AGREE_M = 0.01
"""Where a body appears large, ways back and partners may differ by so much on it instead."""
UNPOSED = 0.15
"""How far a camera whose pose is not known may move between two frames, as a share of the depth."""
DISPARITY_ERROR_PX = 0.3
"""What is allowed for the error of a match where depth is checked for jumps."""
SMALL_M, LEAST_SMALL_PX = 0.055, 2
"""Half the side of a small piece, right at the point, and how large it must appear."""
BODY_M, LEAST_BODY_PX = 0.25, 1.5
"""How much nearer or farther than the piece around it a point of a body can be; at least so many pixels."""
NEAREST_M = 0.5
LEAST_SEARCH_PX, SEARCH = 3.0, 0.15
"""How far from the disparity that is expected the partner is looked for: at least so much, or this share."""


@dataclass(frozen=True, eq=False)
class View:
    """A frame as the tracker sees it: gray images, depth map, camera, pose and time, where there are any."""

    left: Gray
    right: Gray | None = None
    depth_m: Depth | None = None
    camera: Camera | None = None
    world_from_camera: NDArray[np.float64] | None = None
    time_s: float | None = None

    @property
    def stereo(self) -> tuple[Gray, Camera] | None:
        """The right image and the camera, where they give depth."""
        if self.right is None or self.camera is None or self.camera.baseline_m is None:
            return None
        return self.right, self.camera


class Located(NamedTuple):
    """A point in the left image, its partner's x in the right one, depth, score, and what is unsure."""

    point: Point
    right_x: float | None
    depth_m: float
    score: float
    why: str = ""
    fine: Fine | None = None
    """The partner by the pixels right at the point; None: they are too few or too plain to tell."""


def locate(
    view: View, point: Point, *, box_height_px: float | None = None, near_m: float | None = None
) -> Located:
    """Return the depth of a point: from its best partner in the right image, else from the depth map.

    `box_height_px` tells how large the person appears, `near_m` the depth that is expected.
    """
    width, height = view.left.shape[1], view.left.shape[0]
    if not (0 <= point[0] < width and 0 <= point[1] < height):
        return Located(point, None, math.nan, 0.0, "the point is outside the image")
    if view.stereo is None:
        return _from_map(view, point)
    _, camera = view.stereo
    size = camera.fx / near_m if near_m else _px_per_m(box_height_px)
    match = Match(point, 0.0)
    for _ in range(2):  # the second time with a piece of the right size
        match = _partner(view.left, view.stereo, point, size, near_m)
        depth = stereo_depth_m(camera, point[0] - match.point[0])
        if match.why or near_m or not depth > 0:
            break
        size, near_m = camera.fx / depth, depth
    depth = stereo_depth_m(camera, point[0] - match.point[0])
    why = match.why
    if not why and not depth > 0:
        why = "its partner is not to the left enough: it is farther than can be measured"
    return Located(point, match.point[0], depth, match.score, why, fine(view, point, match.point[0]))


def score(view: View, point: Point, right_x: float, *, box_height_px: float | None = None) -> float:
    """Return how well a given partner matches: the correlation of both pieces; 0 without a right image."""
    if view.stereo is None:
        return 0.0
    half = _half_px(_px_per_m(box_height_px))
    return correlation(piece(view.left, point, half), piece(view.stereo[0], (right_x, point[1]), half))


def fine(view: View, point: Point, right_x: float) -> Fine | None:
    """Return the partner by 11 by 11 cm right at the point, near the one by the piece around it.

    Within the large piece an arm, a leaf, the roundness of the body or, on plain clothes, the silhouette is
    nearer or farther than the point itself.
    """
    if view.stereo is None:
        return None
    right, camera = view.stereo
    depth = stereo_depth_m(camera, point[0] - right_x)
    half = round(SMALL_M * camera.fx / depth) if depth > 0 else 0
    if half < LEAST_SMALL_PX:
        return None
    reach = max(LEAST_BODY_PX, BODY_M * camera.fx * (camera.baseline_m or 0.0) / depth**2)
    return at_point(view.left, right, point, right_x, half, reach)


def carry(before: View, after: View, known: Located, *, velocity_px: Point = (0.0, 0.0)) -> Located:
    """Return a located point of one frame in the next one, or where it is lost, with why.

    `velocity_px` is how it moved in the image lately; it counts where poses are not known.
    """
    if _seconds(before, after) > LONGEST_S:
        words = f"{_seconds(before, after):.1f} s have passed, {LONGEST_S:g} s is the most"
        return Located(known.point, None, math.nan, 0.0, words)
    guess, depth, reach = _expected(before, after, known, velocity_px)
    scale = known.depth_m / depth if known.depth_m > 0 and depth > 0 else 1.0
    half = HALF_PX
    if after.camera is not None and depth > 0:
        half = _half_px(after.camera.fx / depth)
    apart_px = max(RETURN_PX, _on_body_px(before, known.depth_m))
    point, likeness, why = _there_and_back(
        before.left, after.left, known.point, guess, half, scale, reach, apart_px
    )
    if not why and not _inside(after.left, point, half[0] // 2):
        why = "it leaves the image"
    if why:
        return Located(point, None, math.nan, likeness, why)
    if known.right_x is None or before.stereo is None or after.stereo is None:
        mapped = _from_map(after, point)
        return mapped._replace(score=likeness, why=mapped.why or _jump(before, after, known, mapped))
    found = locate(after, point, near_m=depth)
    if found.why:
        return found._replace(why=f"right image: {found.why}")
    partner = known.right_x, known.point[1]
    expected = found.right_x or 0.0, point[1]
    carried = match_near(
        before.stereo[0], after.stereo[0], partner, expected, half_px=half, scale=scale, reach_px=4
    )
    apart = math.hypot(carried.point[0] - expected[0], carried.point[1] - expected[1])
    worst = min(likeness, found.score, carried.score)
    if apart > max(AGREE_PX, _on_body_px(after, depth)):
        return found._replace(
            score=worst, why=f"left and right image disagree: the partner is {apart:.1f} px off"
        )
    return found._replace(score=worst, why=_jump(before, after, known, found))


def motion_limit_m(camera: Camera | None, seconds: float, depth_m: float, *, posed: bool) -> float:
    """Return how far apart the places of one person can be after some time, errors of matching included.

    Where the poses of the camera are not known (`posed`), places are in its own frame, and it moves too.
    """
    error = 0.0
    if camera is not None and camera.baseline_m is not None:
        error = DISPARITY_ERROR_PX * depth_m**2 / (camera.fx * camera.baseline_m)
    return PERSON_SPEED * seconds + 2 * error + (0.0 if posed else UNPOSED * depth_m)


def place_m(view: View, located: Located, *, world: bool = True) -> NDArray[np.float64] | None:
    """Return where a located point is: in the world, or in the camera's frame where there is no pose.

    Without `world` it is in the camera's frame, to be compared with one of a frame without a pose.
    """
    if view.camera is None or not located.depth_m > 0:
        return None
    place = in_camera_m(view.camera, located.point, located.depth_m)
    pose = view.world_from_camera if world else None
    return place if pose is None else in_world_m(pose, place)


def _expected(before: View, after: View, known: Located, velocity_px: Point) -> tuple[Point, float, float]:
    """Return where the point should be in the next frame, how far away, and how wide to look."""
    moved_m = PERSON_SPEED * _seconds(before, after)
    place = place_m(before, known)
    if place is None or before.camera is None or after.camera is None:
        reach = CAMERA_REACH * before.left.shape[1]
        return (known.point[0] + velocity_px[0], known.point[1] + velocity_px[1]), known.depth_m, reach
    depth = known.depth_m
    if before.world_from_camera is None or after.world_from_camera is None:
        guess = known.point[0] + velocity_px[0], known.point[1] + velocity_px[1]
        reach = CAMERA_REACH * before.left.shape[1]
    else:
        guess, depth = seen_at(after.camera, after.world_from_camera, place)
        reach = VIBRATION_PX
        if not depth > NEAREST_M:
            depth = known.depth_m
    reach += after.camera.fx * moved_m / max(depth, NEAREST_M)
    return guess, depth, min(reach, float(max(after.left.shape)))


def _there_and_back(
    before: Gray,
    after: Gray,
    point: Point,
    guess: Point,
    half: Half,
    scale: float,
    reach: float,
    apart_px: float,
) -> Match:
    there = match_near(before, after, point, guess, half_px=half, scale=scale, reach_px=reach)
    if there.why:
        return there
    back = match_near(after, before, there.point, point, half_px=half, scale=1 / scale, reach_px=reach)
    apart = math.hypot(back.point[0] - point[0], back.point[1] - point[1])
    if apart > apart_px:
        return there._replace(why=f"the way back ends {apart:.1f} px beside where it began")
    return there


def _jump(before: View, after: View, known: Located, found: Located) -> str:
    """Say where two places are farther apart than anybody moves."""
    posed = before.world_from_camera is not None and after.world_from_camera is not None
    one, other = place_m(before, known, world=posed), place_m(after, found, world=posed)
    if one is None or other is None:
        return ""
    limit = motion_limit_m(after.camera, _seconds(before, after), found.depth_m, posed=posed)
    apart = float(np.linalg.norm(one - other))
    return "" if apart <= limit else f"the place jumps by {apart:.2f} m, {limit:.2f} m is possible"


def _partner(
    left: Gray, stereo: tuple[Gray, Camera], point: Point, px_per_m: float, near_m: float | None
) -> Match:
    """Return the partner of a point, found there and back."""
    right, camera = stereo
    width = left.shape[1]
    least = -camera.offset_px
    most = min(disparity_px(camera, NEAREST_M), width / 2)
    if near_m:
        wanted = disparity_px(camera, near_m)
        search = max(LEAST_SEARCH_PX, SEARCH * (wanted - least))
        least, most = max(wanted - search, least), wanted + search
    half = _half_px(px_per_m)
    there = match_in_row(left, right, point, half_px=half, disparity_px=(least, most))
    if there.why:
        return there
    mirrored, other = (np.ascontiguousarray(image[:, ::-1]) for image in (right, left))
    start = width - there.point[0], point[1]
    back = match_in_row(mirrored, other, start, half_px=half, disparity_px=(least, most))
    apart = abs(width - back.point[0] - point[0])
    if apart > max(RETURN_PX, AGREE_M * px_per_m):
        return there._replace(why=f"the right image leads back to a place {apart:.1f} px beside the point")
    return there


def _from_map(view: View, point: Point) -> Located:
    if view.depth_m is None:
        return Located(point, None, math.nan, 0.0, "this frame has neither a right image nor a depth map")
    depth = mapped_depth_m(view.depth_m, point)
    why = "" if depth > 0 else "the depth map has no depth at this point"
    return Located(point, None, depth, 1.0, why)


def _px_per_m(box_height_px: float | None) -> float:
    """Return how large a metre appears, by the height of a person's box."""
    return UNKNOWN_PX_PER_M if box_height_px is None else box_height_px / PERSON_M


def _half_px(px_per_m: float) -> Half:
    across, down = (int(np.clip(round(half * px_per_m), LEAST_HALF_PX, MOST_HALF_PX)) for half in HALF_M)
    return across, down


def _seconds(before: View, after: View) -> float:
    if before.time_s is None or after.time_s is None:
        return FRAME_S
    return abs(after.time_s - before.time_s)


def _on_body_px(view: View, depth_m: float) -> float:
    """Return how many pixels AGREE_M is at a depth; 0 where that is not known."""
    return AGREE_M * view.camera.fx / depth_m if view.camera is not None and depth_m > 0 else 0.0


def _inside(image: Gray, point: Point, margin: int) -> bool:
    height, width = image.shape
    return margin <= point[0] < float(width) - margin and margin <= point[1] < float(height) - margin

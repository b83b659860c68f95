"""A data set while it is annotated: its frames as images, where points are, and what the tracker adds."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.annotation.changes import Annotation, Edit, LogState, State
from adverse.annotation.geometry import in_camera_m, in_world_m, seen_at, stereo_depth_m
from adverse.annotation.matching import Fine, gray
from adverse.annotation.tracking import FRAME_S, Located, View, carry, fine, locate, motion_limit_m, score
from adverse.annotation.trajectory import Sighting, fitted_path
from adverse.depth.calibration import check_camera
from adverse.depth.stereo import check_pair
from adverse.errors import AdverseError, DataError
from adverse.types import Dataset, Image, Log

UNSURE_M = 0.1
"""A place that may be off by more than this is marked as unsure."""
VIEWS = 24
"""Decoded frames that are kept."""
OVERLAP = 0.5
"""A box of the data set with an id of its own is the carried one's if they overlap (IoU) by this."""
LEAST_VISIBLE = 0.2
"""The tracker stops where less than this share of a carried box is in the image."""


class Tracking(NamedTuple):
    """What the tracker added, where it stopped (or would go on), and why it stopped (empty: it can go on)."""

    edits: tuple[Edit, ...]
    frame: int
    why: str


class Placed(NamedTuple):
    """A place in the world, and how far off it may be in metres (two standard deviations; None: unknown)."""

    place_m: NDArray[np.float64]
    error_m: float | None


class AnnotatedLog:
    """One log: decodes its frames and turns points into places."""

    def __init__(self, log: Log, state: LogState) -> None:
        self.log = log
        self.state = state
        self.frames = log.frames
        self._lock = threading.Lock()
        self._view = functools.lru_cache(VIEWS)(self._read_view)
        self._paired: set[int] = set()
        """Frames whose two images are known to be a rectified pair."""

    def image(self, at: int, side: str) -> Image:
        """Return the left or the right image of a frame."""
        frame = self.frames[at]
        source = frame.image if side == "left" else frame.right
        if source is None:
            raise DataError("the frame has no right image", where=f"frame {frame.id!r}")
        return np.asarray(source(), np.uint8)

    def view(self, at: int) -> View:
        """Return a frame as the tracker sees it, or raise where it cannot be read."""
        with self._lock:
            return self._view(at)

    def no_depth(self, at: int) -> str:
        """Say why a frame has no depth; empty where it has."""
        frame = self.frames[at]
        if frame.camera is None:
            return "There is no camera: add a camera.json (fx, fy, cx, cy, width, height, baseline_m)."
        if frame.right is not None and frame.camera.baseline_m is not None:
            return ""
        if frame.depth_m is not None:
            return ""
        if frame.right is None:
            return "The frame has neither a right image nor a depth map."
        return "The camera has no baseline_m and the frame no depth map: add one of them."

    def locate(self, at: int, point: tuple[float, float], box_height_px: float | None) -> Located:
        """Return where a point is, or raise where this frame tells no depth."""
        missing = self.no_depth(at)
        if missing:
            raise DataError(missing.removesuffix("."), where=f"frame {self.frames[at].id!r}")
        return locate(self.view(at), point, box_height_px=box_height_px)

    def score(
        self, at: int, point: tuple[float, float], right_x: float, box_height_px: float
    ) -> tuple[float, Fine | None]:
        """Return how well a partner set by hand matches, and where the pixels at the point put it."""
        view = self.view(at)
        matched = score(view, point, right_x, box_height_px=box_height_px)
        return round(matched, 4), fine(view, point, right_x)

    def known(self, at: int, what: Annotation) -> Located | None:
        """Return an annotation's point with its depth, if it has one."""
        camera = self.frames[at].camera
        if what.point is None or camera is None:
            return None
        depth = what.depth_m
        if what.right_x is not None:
            depth = stereo_depth_m(camera, what.point[0] - what.right_x)
        return None if depth is None else Located(what.point, what.right_x, depth, what.score or 0.0)

    def position_m(self, at: int, what: Annotation) -> NDArray[np.float64] | None:
        """Return where an object is in the world: by its point, else as the data set says."""
        frame = self.frames[at]
        located = self.known(at, what)
        if located is not None and frame.camera is not None and frame.world_from_camera is not None:
            return in_world_m(
                frame.world_from_camera, in_camera_m(frame.camera, located.point, located.depth_m)
            )
        given = frame.truth.positions_m
        if (
            located is None
            and what.row is not None
            and given is not None
            and np.isfinite(given[what.row]).all()
        ):
            return np.array(given[what.row])
        return None

    def depth_m(self, at: int, what: Annotation) -> float | None:
        """Return how far away an object is along the optical axis."""
        located = self.known(at, what)
        if located is not None:
            return located.depth_m
        frame, place = self.frames[at], self.position_m(at, what)
        if place is None or frame.camera is None or frame.world_from_camera is None:
            return None
        return seen_at(frame.camera, frame.world_from_camera, place)[1]

    def fitted(self, number: int) -> dict[int, Placed]:
        """Return where an object was by frame, as all its points and partners together tell.

        Frames without a partner, a pose or a time are not among them.
        """
        at, sightings = [], []
        for frame, what in self.state.of_object(number).items():
            seen = self._sighting(frame, what)
            if seen is not None:
                at.append(frame)
                sightings.append(seen)
        if any(after.time_s <= before.time_s for before, after in pairwise(sightings)):
            return {}
        path = fitted_path(sightings)
        return {
            frame: Placed(place, float(error))
            for frame, place, error in zip(at, path.places_m, path.errors_m, strict=True)
        }

    def unsure(self, number: int) -> dict[int, float]:
        """Return the frames in which an object may be off by more than UNSURE_M, and by how much."""
        errors = {frame: placed.error_m for frame, placed in self.fitted(number).items()}
        return {
            frame: round(error, 3)
            for frame, error in errors.items()
            if error is not None and error > UNSURE_M
        }

    def jumps(self, number: int) -> list[tuple[int, str]]:
        """Return the frames in which an object is farther from where it was than anybody moves, and words."""
        found = []
        before: tuple[int, float] | None = None
        for at, what in self.state.of_object(number).items():
            depth = self.depth_m(at, what)
            if depth is None:
                continue
            if before is not None and (words := self._jump(before[0], at, number, depth)):
                found.append((at, words))
            before = at, depth
        return found

    def track(self, at: int, number: int, step: int, most: int) -> Tracking:
        """Carry an object's point and box on, forward (1) or backward (-1), over at most so many frames."""
        what = self.state.annotations[at, number]
        known = self.known(at, what)
        if known is None:
            raise DataError(f"object {number} has no point in frame {at + 1}", fix="Put one on it first.")
        edits: list[Edit] = []
        velocity = (0.0, 0.0)
        for _ in range(most):
            after = at + step
            if not 0 <= after < len(self.frames):
                return Tracking(tuple(edits), at, f"the {'last' if step > 0 else 'first'} frame is reached")
            there = self.state.annotations.get((after, number))
            if there is not None and there.located and there.point_by == "hand":
                return Tracking(tuple(edits), at, f"frame {after + 1} has a point set by hand")
            try:
                found = carry(self.view(at), self.view(after), known, velocity_px=velocity)
            except AdverseError as error:
                return Tracking(tuple(edits), at, f"frame {after + 1} cannot be used: {error.what}")
            if found.why:
                return Tracking(tuple(edits), at, f"frame {after + 1}: {found.why}")
            made = self._carried(after, number, what, known, found)
            if isinstance(made, str):
                return Tracking(tuple(edits), at, f"frame {after + 1}: {made}")
            edits += made
            what = next(edit.after for edit in made if edit.id == number and edit.after is not None)
            velocity = found.point[0] - known.point[0], found.point[1] - known.point[1]
            at, known = after, found
        return Tracking(tuple(edits), at, "")

    def _carried(
        self, at: int, number: int, what: Annotation, known: Located, found: Located
    ) -> list[Edit] | str:
        """Return the edits that put a carried object into a frame, or why it cannot be put there."""
        scale = known.depth_m / found.depth_m
        box = carried_box(what.box, known.point, found.point, scale)
        height, width = self.view(at).left.shape
        clipped = max(box[0], 0.0), max(box[1], 0.0), min(box[2], float(width)), min(box[3], float(height))
        if _area(clipped) < LEAST_VISIBLE * _area(box):
            return "the box leaves the image"
        there = self.state.annotations.get((at, number))
        edits = []
        if there is None:
            adopted = self._same_object(at, number, what.label, clipped)
            if adopted is not None:
                there = self.state.annotations[at, adopted]
                edits.append(Edit(at, adopted, None))
        if there is None or there.box_by == "tracker":
            there = Annotation(clipped, what.label, what.ignore, box_by="tracker")
        depth = None if found.right_x is not None else found.depth_m
        located = replace(
            there,
            point=found.point,
            right_x=found.right_x,
            depth_m=depth,
            score=round(found.score, 4),
            fine=None if found.fine is None else (found.fine.x, found.fine.error_px),
            point_by="tracker",
        )
        return [*edits, Edit(at, number, located)]

    def _same_object(self, at: int, number: int, label: str, box: tuple[float, ...]) -> int | None:
        """Return the data set's object, seen in this frame alone, whose box the carried one fits best."""
        best, overlap = None, OVERLAP
        for (frame, other), what in list(self.state.annotations.items()):  # other windows may add to it
            if frame != at or other == number or what.label != label or what.box_by != "data":
                continue
            if _iou(what.box, box) >= overlap and len(self.state.of_object(other)) == 1:
                best, overlap = other, _iou(what.box, box)
        return best

    def _jump(self, before: int, at: int, number: int, depth_m: float) -> str:
        first, last = self.frames[before], self.frames[at]
        posed = first.world_from_camera is not None and last.world_from_camera is not None
        one, other = (
            self._place(frame, self.state.annotations[frame, number], world=posed) for frame in (before, at)
        )
        if one is None or other is None:
            return ""
        seconds = FRAME_S * (at - before)
        if first.time_s is not None and last.time_s is not None:
            seconds = last.time_s - first.time_s
        limit = motion_limit_m(last.camera, seconds, depth_m, posed=posed)
        apart = float(np.linalg.norm(one - other))
        return f"{apart:.1f} m from frame {before + 1}, {limit:.1f} m is possible" if apart > limit else ""

    def _place(self, at: int, what: Annotation, *, world: bool) -> NDArray[np.float64] | None:
        """Return where an object is in the world, or in the camera's frame; None: it is not known there."""
        located, camera = self.known(at, what), self.frames[at].camera
        if world:
            return self.position_m(at, what)
        return (
            None if located is None or camera is None else in_camera_m(camera, located.point, located.depth_m)
        )

    def _sighting(self, at: int, what: Annotation) -> Sighting | None:
        frame, located = self.frames[at], self.known(at, what)
        if located is None or located.right_x is None or not located.depth_m > 0:
            return None
        if frame.camera is None or frame.world_from_camera is None or frame.time_s is None:
            return None
        return Sighting(
            frame.time_s,
            frame.camera,
            frame.world_from_camera,
            located.point,
            located.point[0] - located.right_x,
            what.point_by == "hand",
            None if what.fine is None else (located.point[0] - what.fine[0], what.fine[1]),
        )

    def _read_view(self, at: int) -> View:
        frame = self.frames[at]
        left = self.image(at, "left")
        where = f"frame {frame.id!r}"
        right = None
        if frame.right is not None and frame.camera is not None and frame.camera.baseline_m is not None:
            right = self.image(at, "right")
            if at not in self._paired:
                check_pair(left, right, frame.camera, where=where)
                self._paired.add(at)
        elif frame.camera is not None:
            check_camera(frame.camera, (left.shape[1], left.shape[0]), where)
        depth = None
        if right is None and frame.depth_m is not None:
            depth = np.asarray(frame.depth_m(), np.float32)
        return View(
            gray(left),
            None if right is None else gray(right),
            depth,
            frame.camera,
            frame.world_from_camera,
            frame.time_s,
        )


def with_offset(dataset: Dataset, offset_px: float) -> Dataset:
    """Return the data set with another offset of the principal points of its stereo cameras."""
    if not math.isfinite(offset_px):
        raise DataError("offset_px is not a number", where="--offset-px", got=f"{offset_px}", wanted="pixels")
    logs = []
    for log in dataset.logs:
        frames = (
            replace(frame, camera=frame.camera and replace(frame.camera, offset_px=offset_px))
            for frame in log.frames
        )
        logs.append(replace(log, frames=tuple(frames)))
    return replace(dataset, logs=tuple(logs))


def first_pair_problem(dataset: Dataset, state: State) -> str:
    """Say why the first stereo pair of a data set gives no depth; empty where it does, or there is none."""
    for log in dataset.logs:
        for at, frame in enumerate(log.frames):
            if frame.right is None or frame.camera is None or frame.camera.baseline_m is None:
                continue
            try:
                AnnotatedLog(log, state.logs[log.id]).view(at)
            except AdverseError as error:
                return str(error)
            return ""
    return ""


def carried_box(
    box: tuple[float, ...], point: tuple[float, float], to: tuple[float, float], scale: float
) -> tuple[float, float, float, float]:
    """Return a box moved with its point, and enlarged about it.

    >>> carried_box((0, 0, 10, 20), (5, 5), (25, 5), 2.0)
    (15.0, -5.0, 35.0, 35.0)
    """
    x0, y0, x1, y1 = box
    return (
        to[0] + scale * (x0 - point[0]),
        to[1] + scale * (y0 - point[1]),
        to[0] + scale * (x1 - point[0]),
        to[1] + scale * (y1 - point[1]),
    )


def _area(box: Sequence[float]) -> float:
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)


def _iou(one: Sequence[float], other: Sequence[float]) -> float:
    inner = max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])
    shared = _area(inner)
    return shared / (_area(one) + _area(other) - shared)

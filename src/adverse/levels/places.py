"""Where detections and true objects are: on the ground of the world, seen from their frame, along its path.

The rest of the context levels needs no boxes any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.robot.localizer import localize
from adverse.robot.obstacles import pathified_distance_m
from adverse.robot.trajectory import NoPathError, Trajectory, trajectory
from adverse.store.tables import Answers, Frames

ROUNDING_M = 1e-4
"""Depth is kept in float32; places that differ by less than this are the same."""
FORWARD = np.array([0.0, 0.0, 1.0])
"""Where a camera looks, in its own frame."""
NO_POSE = "no pose"


@dataclass(frozen=True, eq=False)
class Places:
    """N things on the ground: which frame saw each, where it is (NaN: not known), how far from the camera."""

    frame: NDArray[np.int64]
    points_m: NDArray[np.float64]
    range_m: NDArray[np.float64]


def by_depth(
    frames: Frames, frame: NDArray[np.int64], boxes: NDArray[np.floating], depth_m: NDArray[np.floating]
) -> Places:
    """Place boxes by the Localizer."""
    world = localize(boxes, depth_m, frames.cameras[frame], frames.poses[frame])
    return by_position(frames, frame, world)


def by_answer(frames: Frames, frame: NDArray[np.int64], answers: Answers) -> Places:
    """Place detections where their SUT says they are, else by the Localizer."""
    world = localize(answers.boxes, answers.depths_m, frames.cameras[frame], frames.poses[frame])
    if answers.positions_m is not None:
        poses = frames.poses[frame]
        turned = np.einsum("nij,nj->ni", poses[:, :3, :3], answers.positions_m.astype(np.float64))
        reported = np.isfinite(answers.positions_m).all(axis=1)
        world[reported] = (turned + poses[:, :3, 3])[reported]
    return by_position(frames, frame, world)


def by_position(frames: Frames, frame: NDArray[np.int64], positions_m: NDArray[np.float64]) -> Places:
    """Place things whose world position (N,3) is known."""
    points = positions_m[:, :2]
    away = points - frames.poses[frame, :2, 3]
    return Places(frame, points, np.hypot(away[:, 0], away[:, 1]))


@dataclass(frozen=True, eq=False)
class LogPath:
    """The frames of one log (rows of Frames, in order) and the path they were taken on."""

    rows: NDArray[np.int64]
    path: Trajectory


class LogPaths(NamedTuple):
    """The paths of some logs by their number, and of the other logs why there is none."""

    found: Mapping[int, LogPath]
    refused: Mapping[int, str]


def log_paths(frames: Frames, logs: Iterable[int] | None = None) -> LogPaths:
    """Return the path of every log, or of some: of those whose poses are all known and make a path.

    The rotation of a pose is what places detections in the world; it is good enough for a heading, too.
    """
    found: dict[int, LogPath] = {}
    refused: dict[int, str] = {}
    for log in range(len(frames.logs)) if logs is None else logs:
        rows = np.flatnonzero(frames.log == log)
        poses = frames.poses[rows]
        if not len(rows) or not np.isfinite(poses).all():
            refused[log] = NO_POSE
            continue
        try:
            path = trajectory(
                poses[:, :2, 3], (poses[:, :3, :3] @ FORWARD)[:, :2], time_s=frames.time_s[rows]
            )
        except NoPathError as error:
            refused[log] = str(error)
        else:
            found[log] = LogPath(rows, path)
    return LogPaths(found, refused)


def path_distances_m(frames: Frames, paths: LogPaths, places: Places, radius_m: float) -> NDArray[np.float64]:
    """Return how far along its own path each thing comes within a radius: inf never, NaN no path."""
    found = np.full(len(places.frame), np.nan)
    log = frames.log[places.frame]
    by_log = np.argsort(log, kind="stable")
    ends = np.searchsorted(log[by_log], np.arange(len(frames.logs) + 1))
    stations = stations_m(frames, paths)[places.frame]
    for number, one in paths.found.items():
        mine = by_log[ends[number] : ends[number + 1]]
        if len(mine):
            found[mine] = pathified_distance_m(one.path, stations[mine], places.points_m[mine], radius_m)
    return found


def stations_m(frames: Frames, paths: LogPaths) -> NDArray[np.float64]:
    """Return how far along its log's path each frame was taken; NaN where there is no path."""
    found = np.full(len(frames.ids), np.nan)
    for one in paths.found.values():
        found[one.rows] = one.path.stations
    return found

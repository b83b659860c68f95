"""Trajectory: where the vehicle went, and would have gone on (Pezzementi et al. 2021, section 6.2.1).

The polyline of the camera's positions on the ground plane, extended 10 m in the direction of travel at its
end. Later steps lock the vehicle to this path and vary only its speed. Recorded positions are noisy, and a
log with a person ends in a stop, where noise is all there is. So positions are smoothed at the scale of
their own noise, frames at a standstill are one place (`pose_noise`), the direction is that of the last
metres, weighed against where the camera looks, and where they cannot be made to agree there is no path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.robot.pose_noise import STILL_M, DistinctPlaces, distinct_places, noise_m, usable_times_s

EXTENSION_M = 10.0

ASSUMED_NOISE_M = 0.05
"""Of a satellite receiver at its worst, where the positions are too few to tell theirs."""
LEAST_NOISE_M = 1e-4
"""Positions are never trusted more than this."""
WINDOWS_M = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Lengths of path that the direction at its end may be taken from: the first that is good enough."""
WINDOW_POINTS = 4
GOOD_ENOUGH = math.radians(1.0)
"""Standard deviation of a direction that more path need not improve."""
CIRCLE_MISFIT = 0.062
"""Error at its end of a parabola fitted to an arc, over the cube of the arc's angle: 1.486 / 24, by
expanding the arc in Legendre polynomials."""
CURVATURE = 0.2
"""How strongly a vehicle turns, 1/m: the standard deviation that is assumed before looking."""
HEADING_ERROR = math.radians(10)
"""Between where the camera looks and where the vehicle goes: mounting, sideslip, and noise."""
HEADING_SIGMAS = 3.0
"""A heading that differs from the motion by more than so many standard deviations is not the vehicle's."""
TOO_VAGUE = math.radians(20)
"""A direction known no better than this is not known."""
LARGEST_TURN = math.radians(60)
"""An extension may differ from the last metres of the drive, or from its heading, by no more than this."""
LAST_METRES = 2.0
LOOKING_M = 0.3
"""Path over which the camera's last directions are averaged."""
STANDING_SIGMAS = 6.0
"""A drive shorter than so many standard deviations of its noise is a standstill."""
DRIFT_M = 0.4
"""So far noisy positions may drift at a standstill: 50 mm of noise that is slower than the log is long hides
from its estimate, and no motion within this reach tells a direction."""
FACING_LENGTH_M = 0.5
"""Path over which a vehicle's facing follows its motion, where no camera tells it."""
SIDEWAYS = math.radians(60)
"""A camera that looks further to the side than this does not tell forwards from backwards."""
STEADY = 0.6
"""How alike the angles between camera and motion must be: a resultant length, 1 for all the same."""
BACKWARDS_SHARE = 1 / 3
"""A drive of which less than this went the way it set out was a drive the other way."""
BACKWARDS_CAMERA_SHARE = 0.1
"""A drive of which less than this went where the camera looks had the camera looking back."""
OFF_TRACK_M = 1.0
"""Backing up further than this from the path driven is a manoeuvre of its own."""

UNCLEAR = "direction at the end unclear"
BACK_AND_FORTH = "drive back and forth"
ENDS_IN_REVERSE = "ends in reverse, off its track"
CONTRADICTED = "end of the path contradicts the drive"
NO_DIRECTION = "stood still, and the camera looks up or down"


class NoPathError(ValueError):
    """Positions that no path can be made of; its text is the reason."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A path on the ground: corners (M,2) with their distance along it (M,), and where the frames are on it.

    `stations` (N,) are the frames' distances along the path, none before that of an earlier frame; it was
    really driven up to `recorded_m`.
    """

    corners: NDArray[np.float64]
    along_m: NDArray[np.float64]
    stations: NDArray[np.float64]
    recorded_m: float

    @property
    def length_m(self) -> float:
        """The length of the path with its extension."""
        return float(self.along_m[-1])


class _Travel(NamedTuple):
    """Which way a vehicle faced on each piece of its path (P,2).

    `mount` is the angle from where the camera looks to the line the vehicle drives on; None where the camera
    does not follow the drive.
    """

    facing: NDArray[np.float64]
    mount: float | None


def trajectory(
    positions_m: NDArray[np.float64],
    forward: NDArray[np.float64],
    *,
    time_s: NDArray[np.float64] | None = None,
) -> Trajectory:
    """Return the path through the frames' ground positions (N,2), N >= 1, taken at times (N,).

    `forward` is where the camera looks, on the ground, at every frame (N,2); or (2,) where only the end is
    known, which gives the direction of a vehicle that never moved. A vehicle that backs up at the end leaves
    the path at the furthest point, and its frames from there on at that point. Raises NoPathError.
    """
    times = usable_times_s(time_s, len(positions_m))
    estimate = noise_m(times, positions_m)
    places = distinct_places(times, positions_m, estimate or 0.0)
    sigma = max(ASSUMED_NOISE_M if estimate is None else estimate, places.wander_m, LEAST_NOISE_M)
    looks = _looks(np.broadcast_to(forward, positions_m.shape), places)
    corners = places.smooth
    if np.hypot(*(corners - corners[0]).T).max() < _standing_m(sigma):
        direction = _units(looks.sum(axis=0, keepdims=True))[0]
        if not direction.any():
            raise NoPathError(NO_DIRECTION)
        corners = positions_m.mean(axis=0, keepdims=True)
        last = 0
    else:
        travel = _travel(corners, looks if np.ndim(forward) > 1 else None, places.radius_m)
        first, last = _last_run(corners, travel.facing, places.radius_m)
        direction = _end_direction(places, sigma, slice(first, last + 1), travel, looks)
        corners = corners[: last + 1]
    along = _along(corners)
    return Trajectory(
        corners=np.vstack([corners, corners[-1] + EXTENSION_M * direction]),
        along_m=np.append(along, along[-1] + EXTENSION_M),
        stations=along[np.minimum(places.place, last)],
        recorded_m=float(along[-1]),
    )


def _standing_m(sigma_m: float) -> float:
    """Return how far apart positions may be that were all taken at a standstill."""
    return STANDING_SIGMAS * sigma_m if sigma_m <= STILL_M else max(STANDING_SIGMAS * sigma_m, DRIFT_M)


def _looks(forward: NDArray[np.float64], places: DistinctPlaces) -> NDArray[np.float64]:
    """Return where the camera looked at each place, as a unit vector; zero where it looked up or down."""
    starts = np.concatenate([[0], np.cumsum(places.frames)[:-1]])
    return _units(np.add.reduceat(_units(forward), starts, axis=0))


def _travel(corners: NDArray[np.float64], looks: NDArray[np.float64] | None, radius_m: float) -> _Travel:
    """Return where the vehicle faced on each piece; the way most of the drive went is forwards."""
    chosen = _apart(corners, 2 * radius_m)
    chords = np.diff(corners[chosen], axis=0)
    mount = None if looks is None else _mount(chords, _between(looks[chosen]))
    if looks is not None and mount is not None:
        facing, of_chords = _between(looks), _between(looks[chosen])
        turned_below = BACKWARDS_CAMERA_SHARE
    else:
        of_chords = _followed(chords)
        piece = np.searchsorted(chosen[1:-1], np.arange(len(corners) - 1), side="right")
        facing = of_chords[piece]
        turned_below = BACKWARDS_SHARE
    gained = (chords * of_chords).sum(axis=1)
    share = float(gained.clip(0).sum() / np.abs(gained).sum())
    if share < turned_below:
        return _Travel(-facing, mount)
    if share < 1 / 2:
        raise NoPathError(BACK_AND_FORTH)
    return _Travel(facing, mount)


def _mount(chords: NDArray[np.float64], looks: NDArray[np.float64]) -> float | None:
    """Return the angle from camera to motion, if the camera looks along the drive and turns with it."""
    if not looks.any(axis=1).all():
        return None
    angle = (chords * looks).sum(axis=1) + 1j * _cross(looks, chords)
    length = np.abs(angle)
    mean = (angle**2 / length).sum() / length.sum()  # of twice the angle, so that backing up is the same
    half = float(np.angle(mean)) / 2
    return half if abs(mean) > STEADY and abs(half) < SIDEWAYS else None


def _followed(chords: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where a vehicle faces that sets out forwards, cannot turn on the spot, and may back up."""
    facing = np.empty_like(chords)
    fx, fy = (chords[0] / np.hypot(*chords[0])).tolist()
    for index, (dx, dy) in enumerate(chords.tolist()):
        sign = math.copysign(1.0, fx * dx + fy * dy)
        fx, fy = fx + sign * dx / FACING_LENGTH_M, fy + sign * dy / FACING_LENGTH_M
        length = math.hypot(fx, fy)
        fx, fy = fx / length, fy / length
        facing[index] = fx, fy
    return facing


def _last_run(corners: NDArray[np.float64], facing: NDArray[np.float64], radius_m: float) -> tuple[int, int]:
    """Return the corners between which the vehicle last drove forwards, up to the furthest it got."""
    got_on = np.concatenate([[0.0], np.cumsum((np.diff(corners, axis=0) * facing).sum(axis=1))])
    last = len(got_on) - 1 - int(np.argmax(got_on[::-1]))
    noise = 2 * radius_m
    if got_on[last] - got_on[-1] > noise and _off_track_m(corners, last) > OFF_TRACK_M + noise:
        if got_on[-1] - got_on[last:].min() <= OFF_TRACK_M + noise:
            raise NoPathError(ENDS_IN_REVERSE)
        last = len(got_on) - 1
    back = got_on[last::-1]
    backed = np.flatnonzero(back - np.minimum.accumulate(back) > noise)
    first = last - int(np.argmin(back[: backed[0]] if len(backed) else back))
    if first == last:
        raise NoPathError(BACK_AND_FORTH)
    return first if len(backed) else 0, last


def _off_track_m(corners: NDArray[np.float64], last: int) -> float:
    """Return how far the corners after one lie from the path up to it, at most."""
    start, piece = corners[:last], np.diff(corners[: last + 1], axis=0)
    if not len(piece):
        return 0.0
    to = corners[last + 1 :, None] - start
    part = ((to * piece).sum(axis=2) / (piece**2).sum(axis=1)).clip(0, 1)
    away = np.hypot(*np.moveaxis(to - part[..., None] * piece, 2, 0))
    return float(away.min(axis=1).max())


def _end_direction(
    places: DistinctPlaces, sigma_m: float, run: slice, travel: _Travel, looks: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the direction of travel at the end of a run of places, from motion and camera together."""
    before = _along(places.smooth[run])
    before -= before[-1]
    motion, error = _tangent(before, places.measured[run], places.weight[run], sigma_m)
    if travel.mount is not None:
        near = before > -LOOKING_M
        seen = (looks[run][near] * places.frames[run][near, None]).sum(axis=0)
        seen *= math.copysign(1.0, float(seen @ travel.facing[run.stop - 2]))
        turn = _angle(motion, seen)
        if abs(turn) < HEADING_SIGMAS * math.hypot(error, HEADING_ERROR):
            weight = error**2 / (error**2 + HEADING_ERROR**2)
            motion, error = _turned(motion, weight * turn), error * math.sqrt(1 - weight)
        if abs(math.remainder(turn + travel.mount, math.tau)) > LARGEST_TURN:
            raise NoPathError(CONTRADICTED)
    if error > TOO_VAGUE:
        raise NoPathError(UNCLEAR)
    back = int(np.searchsorted(before, -LAST_METRES, side="right")) - 1
    chord = places.smooth[run][-1] - places.smooth[run][max(back, 0)]
    if abs(_angle(chord, motion)) > LARGEST_TURN:
        raise NoPathError(CONTRADICTED)
    return motion


def _tangent(
    along: NDArray[np.float64], points: NDArray[np.float64], frames: NDArray[np.float64], sigma_m: float
) -> tuple[NDArray[np.float64], float]:
    """Return the unit tangent of a path at its end (along = 0), and its standard error in radians.

    A parabola along the path is fitted to the last metres, as few as make the error small. That of a circle
    which a parabola cannot follow is part of it.
    """
    weight = frames / sigma_m**2
    terms = np.stack([np.ones_like(along), along, along**2 / 2], axis=1)
    best, least = np.zeros(2), math.inf
    for length in WINDOWS_M:
        begin = min(int(np.searchsorted(along, -length)), max(len(along) - WINDOW_POINTS, 0))
        part = terms[begin:] * weight[begin:, None]
        normal = part.T @ terms[begin:]
        normal[2, 2] += 1 / CURVATURE**2
        covariance = np.linalg.inv(normal)
        _, slope, bend = covariance @ (part.T @ (points[begin:] - points[-1]))
        speed = float(np.hypot(*slope))
        error = math.hypot(
            math.sqrt(covariance[1, 1]) / speed, CIRCLE_MISFIT * (along[begin] * np.hypot(*bend)) ** 3
        )
        if error < least:
            best, least = slope / speed, error
        if error < GOOD_ENOUGH or begin == 0:
            break
    return best, least


def _apart(corners: NDArray[np.float64], least_m: float) -> list[int]:
    """Return corners that are each so far from the one before; at least two."""
    points = corners.tolist()
    kept = [0]
    for index in range(1, len(points)):
        if math.dist(points[index], points[kept[-1]]) > least_m:
            kept.append(index)
    return kept if len(kept) > 1 else [0, int(np.argmax(np.hypot(*(corners - corners[0]).T)))]


def _between(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return _units(vectors[:-1] + vectors[1:])


def _units(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.hypot(*vectors.T)[:, None]
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 1e-9))


def _along(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])


def _cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _angle(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the angle from one vector to another, in radians, to the left."""
    return math.atan2(float(_cross(a, b)), float(a @ b))


def _turned(vector: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]])

"""Where a person was over a log: one path through the world that fits all points and partners at once.

A match is off by a fraction of a pixel, often to the same side in many frames (a round body, an arm before
the trunk, plain clothes whose only edge is the silhouette), so an average over neighbours keeps the error.
But 0.3 pixels are 24 cm at 10 m and 2 cm at 3 m where the cameras are 0.24 m apart: the path as a whole is
known much better than any place on it. A Kalman filter goes there and back over all frames, with the camera's
poses as given, for somebody who stands, one who walks straight and some who turn more and more; these are
averaged by how well each explains the points. What is left open is the error of every place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.annotation.geometry import disparity_px, in_camera_m, in_world_m, seen_at
from adverse.annotation.matching import Point
from adverse.types import Camera

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MOTIONS = ((1e-6, 0.003), (1e-6, 1.0), (1e-4, 1.0), (1e-3, 1.0), (1e-2, 1.0), (1e-1, 1.0), (1.0, 1.0))
"""How people move: strength of changes of velocity (m2/s3) and standard deviation of velocity (m/s)."""
CHANCES = (0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)
UPWARD = 0.3
"""Standard deviation of velocity upwards, m/s."""
POINT_PX = 0.5
"""Standard deviation of a point in the left image."""
MATCH_PX = 0.12
"""Standard deviation of disparity, as it differs from frame to frame."""
BIAS_PX = 0.4
"""Standard deviation of what many frames share of the error of disparity; it fades as the view changes."""
VIEW = 0.5
"""How much the view must change for that: a change of the logarithm of depth."""
SLIP_PX = 0.3
"""How far a tracked point slips over the body from frame to frame."""
SLIPPED_M = 0.1
"""How far it has slipped where no click tells."""
CLICK_M = 0.003
ANOTHER_M = 0.08
"""How far apart in depth two points are that were clicked on one body."""
BEHIND_M = 0.15
"""How far behind the point the surface is that a large piece matches, the same in all frames: on plain
clothes it is the silhouette, or the trunk behind an arm."""
FINE_PX, FINE_TIMES = 0.1, 1.5
"""Standard deviation of disparity by the pixels right at the point: at least the first, and so many times
what the likelihood says."""
SURFACE_M = 0.03
"""How far from the point even the surface is that these pixels show."""
ERRORS = 2.0
"""The error that is told is so many standard deviations."""
PASSES = 2
"""Each goes through all frames, linear about the places of the last one."""
NEAREST_M = 0.2
"""Nearer places, and those behind the camera, are none to be linear about."""
FAR_M = 100.0
STATE = 11
"""Place (3), velocity (3), bias of disparity (1), slip to the right, down and away over the body (3), how far
behind the point the matched surface is (1)."""


class Sighting(NamedTuple):
    """One frame: its time, camera and pose, the point, its disparity, and whether it was clicked."""

    time_s: float
    camera: Camera
    world_from_camera: Matrix
    point: Point
    disparity_px: float
    clicked: bool = False
    fine: tuple[float, float] | None = None
    """The disparity by the pixels right at the point, and its standard deviation; None: they do not tell."""


class Path(NamedTuple):
    """Places (N,3) in the world, and how far off each may be in metres (N,), two standard deviations."""

    places_m: NDArray[np.float64]
    errors_m: NDArray[np.float64]


def fitted_path(sightings: Sequence[Sighting]) -> Path:
    """Return the path that fits sightings in order of time best; none: an empty path."""
    single = np.array([_triangulated(sighting) for sighting in sightings]).reshape(-1, 3)
    path = Path(single, np.zeros(0))
    for _ in range(PASSES if sightings else 0):
        depths = [
            seen_at(sighting.camera, sighting.world_from_camera, place)[1]
            for sighting, place in zip(sightings, path.places_m, strict=True)
        ]
        about = np.where(np.array(depths)[:, None] > NEAREST_M, path.places_m, single)
        path = _back(*_there(sightings, about))
    return path


class _Step(NamedTuple):
    """A frame on the way there, for all motions: what the one before makes expect, and what is seen then."""

    change: Matrix
    expected: Matrix
    expected_covariance: Matrix
    mean: Matrix
    covariance: Matrix


def _there(sightings: Sequence[Sighting], about: Matrix) -> tuple[list[_Step], Vector]:
    """Filter all motions side by side, linear about given places; return how likely each is, too."""
    steps: list[_Step] = []
    fits = np.log(CHANCES)
    mean, covariance = _start(about[0])
    change = np.eye(STATE)
    clicks = 0
    for at, sighting in enumerate(sightings):
        seen, slopes, depth = _projected(sighting, about[at])
        if at:
            before = sightings[at - 1]
            depth_before = _projected(before, about[at - 1])[2]
            change, noise = _motion(sighting.time_s - before.time_s, depth_before, depth)
            for axis in (7, 8, 9):
                noise[:, axis, axis] = (SLIP_PX * depth / sighting.camera.fx) ** 2
            if sighting.clicked and clicks:
                noise[:, :3, :3] += ANOTHER_M**2 * np.eye(3)
            mean, covariance = mean @ change.T, change @ covariance @ change.T + noise
        clicks += sighting.clicked
        expected, expected_covariance = mean, covariance
        rows = np.zeros((3, STATE))
        rows[:, :3] = slopes
        rows[2, 6] = 1.0
        rows[0, 7] = rows[1, 8] = sighting.camera.fx / depth
        rows[2, 9] = rows[2, 10] = -sighting.camera.fx * (sighting.camera.baseline_m or 0.0) / depth**2
        measured = np.array([*sighting.point, sighting.disparity_px]) - seen + slopes @ about[at]
        noises = np.array([POINT_PX, POINT_PX, MATCH_PX]) ** 2
        if sighting.fine is not None:
            disparity, error_px = sighting.fine
            rows = np.vstack([rows, rows[2]])
            rows[3, [6, 10]] = 0.0  # these pixels are of the point itself
            measured = np.append(measured, measured[2] + disparity - sighting.disparity_px)
            noises = np.append(noises, FINE_PX**2 + (FINE_TIMES * error_px) ** 2)
        if sighting.clicked:  # here the point is where it was meant to be: it has not slipped
            rows = np.vstack([rows, np.eye(STATE)[7:10]])
            measured, noises = np.append(measured, [0.0] * 3), np.append(noises, [CLICK_M**2] * 3)
        missed = measured - mean @ rows.T
        scatter = rows @ covariance @ rows.T + np.diag(noises)
        gain = np.linalg.solve(scatter, rows @ covariance).transpose(0, 2, 1)
        fits = fits - 0.5 * np.einsum("mi,mi->m", missed, np.linalg.solve(scatter, missed[..., None])[..., 0])
        fits = fits - 0.5 * np.linalg.slogdet(scatter)[1]
        mean = mean + np.einsum("mij,mj->mi", gain, missed)
        covariance = covariance - gain @ scatter @ gain.transpose(0, 2, 1)
        covariance = (covariance + covariance.transpose(0, 2, 1)) / 2
        steps.append(_Step(change, expected, expected_covariance, mean, covariance))
    chances = np.exp(fits - fits.max())
    return steps, chances / chances.sum()


def _back(steps: Sequence[_Step], chances: Vector) -> Path:
    """Smooth: later frames tell of earlier ones."""
    places, errors = np.zeros((len(steps), 3)), np.zeros(len(steps))
    mean, covariance = steps[-1].mean, steps[-1].covariance
    for at in range(len(steps) - 1, -1, -1):
        step = steps[at]
        if at < len(steps) - 1:
            after = steps[at + 1]
            back = np.linalg.solve(after.expected_covariance, after.change @ step.covariance)
            back = back.transpose(0, 2, 1)
            covariance = step.covariance + back @ (covariance - after.expected_covariance) @ back.transpose(
                0, 2, 1
            )
            mean = step.mean + np.einsum("mij,mj->mi", back, mean - after.expected)
        places[at] = chances @ mean[:, :3]
        away = mean[:, :3] - places[at]
        spread = covariance[:, :3, :3] + away[:, :, None] * away[:, None, :]
        widest = np.linalg.eigvalsh(np.einsum("m,mij->ij", chances, spread))[-1]
        errors[at] = ERRORS * math.sqrt(widest + SURFACE_M**2)
    return Path(places, errors)


def _start(place: Vector) -> tuple[Matrix, Matrix]:
    """Return means and covariances before anything is seen: somewhere, at a speed that each motion allows."""
    mean = np.zeros((len(MOTIONS), STATE))
    mean[:, :3] = place
    covariance = np.zeros((len(MOTIONS), STATE, STATE))
    for number, (_, speed) in enumerate(MOTIONS):
        spread = [FAR_M] * 3 + [speed, speed, min(speed, UPWARD), BIAS_PX] + [SLIPPED_M] * 3 + [BEHIND_M]
        covariance[number] = np.diag(np.square(spread))
    return mean, covariance


def _motion(seconds: float, depth_before_m: float, depth_m: float) -> tuple[Matrix, Matrix]:
    """Return how the state goes on from one frame to the next, and the covariance of what is not known."""
    change, noise = np.eye(STATE), np.zeros((len(MOTIONS), STATE, STATE))
    change[:3, 3:6] = seconds * np.eye(3)
    kept = math.exp(-abs(math.log(depth_m / depth_before_m)) / VIEW)
    change[6, 6] = kept
    turning = np.array([turning for turning, _ in MOTIONS])
    for axis in range(3):
        noise[:, axis, axis] = turning * seconds**3 / 3
        noise[:, axis, axis + 3] = noise[:, axis + 3, axis] = turning * seconds**2 / 2
        noise[:, axis + 3, axis + 3] = turning * seconds
    noise[:, 6, 6] = BIAS_PX**2 * (1 - kept**2)
    return change, noise


def _triangulated(sighting: Sighting) -> Vector:
    camera = sighting.camera
    depth = camera.fx * (camera.baseline_m or 0.0) / (sighting.disparity_px + camera.offset_px)
    return in_world_m(sighting.world_from_camera, in_camera_m(camera, sighting.point, depth))


def _projected(sighting: Sighting, place: Vector) -> tuple[Vector, Matrix, float]:
    """Return point and disparity of a place, how they change with it (3,3), and its depth."""
    camera, pose = sighting.camera, sighting.world_from_camera
    point, depth = seen_at(camera, pose, place)
    x, y, _ = pose[:3, :3].T @ (place - pose[:3, 3])
    slopes = np.array(
        [
            [camera.fx, 0.0, -camera.fx * x / depth],
            [0.0, camera.fy, -camera.fy * y / depth],
            [0.0, 0.0, -camera.fx * (camera.baseline_m or 0.0) / depth],
        ]
    )
    seen = np.array([*point, disparity_px(camera, depth)])
    return seen, slopes @ pose[:3, :3].T / depth, depth

"""What happens in a log: the scene, the drive through it, and the people who move in it.

How the camera moves: at constant speed, then braking smoothly, on a path that wanders a little.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.people import Person, Posture, Stance, body, joints_of, lowest, stance
from adverse.data.worlds.rendering import Scene
from adverse.data.worlds.shading import Light
from adverse.data.worlds.solids import Solids, joined
from adverse.types import Camera

FRAME_RATE_HZ = 7.5
BASELINE_M = 0.24
FOCAL_PER_WIDTH = 0.8
"""Focal length over image width: a horizontal view of 64 degrees."""
VIBRATION = 0.004
"""Amplitude of the vehicle's pitching and rolling in radians."""


def stereo_camera(width: int, height: int) -> Camera:
    """Return the worlds' left camera; pixel centres lie at whole coordinates."""
    focal = FOCAL_PER_WIDTH * width
    return Camera(focal, focal, (width - 1) / 2, (height - 1) / 2, width, height, BASELINE_M)


@dataclass(frozen=True)
class Drive:
    """A drive along world x: `cruise_m` at full speed, then braking for `brake_s` (0: no stop).

    The path lies `lane_m` to the left of x; `phase` shifts the wandering and vibration, so that
    no two drives are alike.
    """

    speed: float
    cruise_m: float
    brake_s: float
    eye_m: float
    pitch: float
    wander_m: float
    phase: float
    lane_m: float = 0.0

    @property
    def length_m(self) -> float:
        """How far it goes in all."""
        return self.cruise_m + self.speed * self.brake_s / 2

    @property
    def duration_s(self) -> float:
        """When it ends, standing still if it brakes."""
        return self.cruise_m / self.speed + self.brake_s

    def times_s(self) -> list[float]:
        """Return when the frames are taken; the last is the first one at or after the end."""
        return [number / FRAME_RATE_HZ for number in range(math.ceil(self.duration_s * FRAME_RATE_HZ) + 1)]

    def travelled_m(self, time_s: float) -> float:
        """Return the way along x after a time; speed falls by a smooth step, so no jolt is felt.

        >>> Drive(3, 6, 4, 2, 0, 0, 0).travelled_m(99)
        12.0
        """
        after = time_s - self.cruise_m / self.speed
        if after <= 0 or self.brake_s == 0:
            return self.speed * min(time_s, self.duration_s)
        part = min(after / self.brake_s, 1.0)
        return self.cruise_m + self.speed * self.brake_s * (part - part**3 + part**4 / 2)

    def aside_m(self, x: float) -> float:
        """Return where the path lies, to the left, at a way x."""
        return self.lane_m + self.wander_m * math.sin(0.35 * x + self.phase)

    def pose(self, time_s: float) -> NDArray[np.float64]:
        """Return world_from_camera (4, 4) of the left camera."""
        x = self.travelled_m(time_s)
        yaw = math.atan(0.35 * self.wander_m * math.cos(0.35 * x + self.phase))
        pitch = self.pitch + VIBRATION * math.sin(2.3 * x + self.phase)
        roll = VIBRATION * math.sin(1.7 * x + 2 * self.phase)
        matrix = np.eye(4)
        matrix[:3, :3] = _turn(yaw, pitch, roll)
        matrix[:3, 3] = x, self.aside_m(x), self.eye_m
        return matrix


def quaternion(turn: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Return the unit quaternion (w, x, y, z) of a rotation (3, 3) whose trace is not near -1.

    >>> quaternion(np.eye(3))
    (1.0, 0.0, 0.0, 0.0)
    """
    w = math.sqrt(1 + turn[0, 0] + turn[1, 1] + turn[2, 2]) / 2
    x, y, z = turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]
    return w, float(x / (4 * w)), float(y / (4 * w)), float(z / (4 * w))


def _turn(yaw: float, pitch: float, roll: float) -> NDArray[np.float64]:
    """Return the rotation of a camera that looks along x, turned left by yaw and down by pitch."""
    forward = np.array([math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), -math.sin(pitch)])
    level = np.array([math.sin(yaw), -math.cos(yaw), 0.0])
    down = np.cross(forward, level)
    right = math.cos(roll) * level + math.sin(roll) * down
    return np.stack([right, np.cross(forward, right), forward], axis=1)


class Actor(Protocol):
    """Something with an identity: a person, a car."""

    @property
    def instance(self) -> int:
        """Its number in the log, from 1."""

    def centre_m(self, time_s: float) -> tuple[float, float, float]:
        """Return where its middle is."""

    def solids(self, time_s: float) -> Solids:
        """Return what it is made of, where it is at a time."""


@dataclass(frozen=True)
class Walker:
    """A person at `at_m` when `time_s` is 0, moving at `velocity` in m/s, or still."""

    person: Person
    posture: Posture
    at_m: tuple[float, float]
    velocity: tuple[float, float]
    heading: float
    instance: int

    def ground_m(self, time_s: float) -> tuple[float, float]:
        """Return where the person stands."""
        return self.at_m[0] + self.velocity[0] * time_s, self.at_m[1] + self.velocity[1] * time_s

    def centre_m(self, time_s: float) -> tuple[float, float, float]:
        """Return the middle of the body: over the ground point, at half its height in its posture."""
        joints = joints_of(self._stance(time_s))
        top = max(joints.head[2] + 0.07, *(wrist[2] for wrist in joints.wrist))
        return (*self.ground_m(time_s), float(top - lowest(joints)) / 2 * self.person.height_m)

    def solids(self, time_s: float) -> Solids:
        """Return the body at a time."""
        return self._body(time_s) if any(self.velocity) else self._still

    @functools.cached_property
    def _still(self) -> Solids:
        """The body of somebody who does not move: made once."""
        return self._body(0.0)

    def _body(self, time_s: float) -> Solids:
        return body(self.person, self._stance(time_s), self.ground_m(time_s), self.heading, self.instance)

    def _stance(self, time_s: float) -> Stance:
        speed = float(np.hypot(*self.velocity))
        return stance(self.posture, self.person.seed * 0.01 + speed * time_s, self.person)


@dataclass(frozen=True)
class Script:
    """A log before it is rendered; things move on straight lines, and instance numbers are theirs alone."""

    still: Solids
    actors: tuple[Actor, ...]
    drive: Drive
    sun: NDArray[np.float64]
    light: Light
    exposure: float

    def scene(self) -> Scene:
        """Return the scene, with all that moves put in its place at the time asked for."""
        return Scene(functools.partial(_solids_at, self), self.sun, self.light, self.exposure)


def _solids_at(script: Script, time_s: float) -> Solids:
    return joined([script.still, *(actor.solids(time_s) for actor in script.actors)])

"""What happens in a log: the scene, the drive through it, and the people who move in it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.bodies import body, joints_of, lowest
from adverse.data.worlds.driving import Drive
from adverse.data.worlds.people import Person, Posture, Stance, stance
from adverse.data.worlds.rendering import Scene
from adverse.data.worlds.shading import Light
from adverse.data.worlds.solids import Solids, joined


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

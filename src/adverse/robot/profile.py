"""The robot: how close is too close, how fast it drives, brakes and accelerates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from adverse.errors import StudyError, suggestion
from adverse.text import counted

LATE = ("latency_s", "drop_rate", "coast_frames", "association_m")
"""What stands between the detector and the controller."""
LONGEST_LATENCY_S = 60.0
MOST_COASTED = 1000


@dataclass(frozen=True)
class Robot:
    """What closed-loop control needs to know of a vehicle.

    Nobody within `control_radius_m` of the path may be approached without stopping; `safety_radius_m` is the
    part of it that must never be entered while moving. The vehicle of Pezzementi et al. 2021 (6.3)
    is the default for the rest. `stop_cost_s` is what a needless stop costs beyond the time it takes (nu).
    `stop_tolerance_m` is how much later than the truth a stop may be and still counts as safe; None is the
    buffer between the two radii, which 3.1 gives the robot for errors of estimation and control.
    """

    control_radius_m: float
    safety_radius_m: float
    max_speed_mps: float = 3.0
    max_acceleration_mps2: float = 1.524
    min_acceleration_mps2: float = -4.572
    step_s: float = 0.05
    stop_cost_s: float = 0.0
    stop_tolerance_m: float | None = None
    hold: Literal["obstacle", "speed"] = "obstacle"
    max_gap_m: float = 2.0
    """Frames further apart along the path than this are too sparse to play back."""
    latency_s: float = 0.0
    """Time from an image to the moment at which the controller knows what the SUT found in it."""
    drop_rate: float = 0.0
    """Share of images that are lost before the controller knows of them."""
    coast_frames: float = 0
    """Frames for which a tracker keeps an object that is no longer detected; 0: there is no tracker."""
    association_m: float = 1.0
    """Distance up to which the tracker takes a detection for an object that it knows."""

    def __post_init__(self) -> None:
        if not 0 < self.safety_radius_m <= self.control_radius_m:
            raise _wrong("safety_radius_m", self.safety_radius_m, "0 < safety_radius_m <= control_radius_m")
        for name in ("max_speed_mps", "max_acceleration_mps2", "step_s", "max_gap_m"):
            if not getattr(self, name) > 0:
                raise _wrong(name, getattr(self, name), "a number > 0")
        if not self.min_acceleration_mps2 < 0:
            raise _wrong("min_acceleration_mps2", self.min_acceleration_mps2, "a number < 0: it brakes")
        for name in ("stop_cost_s", "stop_tolerance_m"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise _wrong(name, value, "a number >= 0")
        self._check_lateness()
        if self.hold not in ("obstacle", "speed"):
            raise _wrong("hold", self.hold, "obstacle or speed")

    def _check_lateness(self) -> None:
        if not 0 <= self.latency_s <= LONGEST_LATENCY_S:
            raise _wrong("latency_s", self.latency_s, f"seconds from 0 to {LONGEST_LATENCY_S:g}")
        if not 0 <= self.drop_rate < 1:
            raise _wrong("drop_rate", self.drop_rate, "a share from 0 to less than 1")
        if not 0 <= self.coast_frames <= MOST_COASTED or self.coast_frames % 1:
            raise _wrong("coast_frames", self.coast_frames, f"a whole number from 0 to {MOST_COASTED}")
        if not 0 < self.association_m < math.inf:
            raise _wrong("association_m", self.association_m, "a number > 0")

    @property
    def at_once(self) -> bool:
        """Whether the controller knows at once of every image."""
        return self.latency_s == 0 and self.drop_rate == 0

    def plain(self) -> dict[str, Any]:
        """Return its numbers as a run keeps them; of what it learns late, only what it has."""
        late = {name: value for name, value in asdict(self).items() if name in LATE}
        rest = {name: value for name, value in asdict(self).items() if name not in LATE}
        known = {field.name: field.default for field in fields(self)}
        return rest | {name: value for name, value in late.items() if value != known[name]}

    @property
    def late_words(self) -> str:
        """What stands between the detector and the controller, in words; empty where nothing does.

        >>> Robot(2.0, 1.5, latency_s=0.3, drop_rate=0.1, coast_frames=5).late_words
        'it knows of an image 0.3 s later, 10% of images are lost, a tracker keeps objects for 5 frames'
        """
        parts = (
            f"it knows of an image {self.latency_s:g} s later" if self.latency_s else "",
            f"{100 * self.drop_rate:.3g}% of images are lost" if self.drop_rate else "",
            f"a tracker keeps objects for {counted(int(self.coast_frames), 'frame')}"
            if self.coast_frames
            else "",
        )
        return ", ".join(filter(None, parts))

    @property
    def words(self) -> str:
        """The robot in a sentence, with what it is told late."""
        late = f"; {self.late_words}" if self.late_words else ""
        return (
            f"The robot drives at up to {self.max_speed_mps:g} m/s, brakes with "
            f"{-self.min_acceleration_mps2:.3g} m/s2, and keeps {self.control_radius_m:g} m from people, "
            f"{self.safety_radius_m:g} m at the least{late}."
        )

    @property
    def buffer_m(self) -> float:
        """How far behind the border of the control radius that of the safety radius is."""
        return self.control_radius_m - self.safety_radius_m

    @property
    def tolerance_m(self) -> float:
        """How much later than the truth a stop may be: the buffer, unless the study says another number.

        >>> Robot(2.0, 1.5).tolerance_m, Robot(2.0, 1.5, stop_tolerance_m=0.2).tolerance_m
        (0.5, 0.2)
        """
        return self.buffer_m if self.stop_tolerance_m is None else self.stop_tolerance_m


PROFILES: Mapping[str, Mapping[str, float]] = {
    "orchard-tractor": {
        "max_speed_mps": 3.0,
        "max_acceleration_mps2": 1.524,
        "min_acceleration_mps2": -4.572,
        "step_s": 0.05,
    }
}
"""Vehicles by name (Pezzementi et al. 2021, 6.3: 15 ft/s^2 of required braking, 5 ft/s^2 of acceleration)."""


def read_robot(section: Mapping[str, Any], *, where: str = "robot") -> Robot:
    """Make a robot of what a study says, over the profile it names.

    >>> read_robot({"profile": "orchard-tractor", "control_radius_m": 2, "safety_radius_m": 1}).step_s
    0.05
    """
    profile = section.get("profile")
    if profile is not None and profile not in PROFILES:
        raise StudyError(
            f"there is no robot profile {profile!r}", where=where, fix=suggestion(str(profile), PROFILES)
        )
    told = {key: value for key, value in section.items() if key != "profile"}
    known = {field.name for field in fields(Robot)}
    for key, value in told.items():
        if key not in known:
            raise StudyError(
                f"a robot has no {key!r}", where=f"{where}.{key}", fix=suggestion(key, {*known, "profile"})
            )
        if key != "hold" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise _wrong(key, value, "a number", where)
    whole: dict[str, Any] = {**(PROFILES[profile] if profile else {}), **told}
    for key in ("control_radius_m", "safety_radius_m"):
        if key not in whole:
            raise StudyError(
                f"the robot needs {key}",
                where=where,
                wanted="how near a person may come to the path, in metres",
                fix="Write robot: {control_radius_m: 2.0, safety_radius_m: 1.0}; it is yours to decide.",
            )
    return Robot(**whole)


def _wrong(name: str, got: Any, wanted: str, where: str = "robot") -> StudyError:
    return StudyError(
        f"{name} has a value it cannot take",
        where=f"{where}.{name}",
        got=repr(got),
        wanted=wanted,
        fix="Correct it in the study's robot section.",
    )

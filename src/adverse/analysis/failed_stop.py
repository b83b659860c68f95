"""One stop that fails: a log in which a SUT stops in time on clean frames and, under a mutation, does not.

Of all such logs the one to look at is of the SUT that stops most often on clean frames, under a mild mutation
before a severe one, and the one in which the robot is fastest inside somebody's safety radius. What happens
in it is given at evenly spaced moments, for a film: `moments` only picks from the steps of the two runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adverse.analysis.headline import setting_words
from adverse.analysis.loop import EXAMPLE_SENSITIVITY, Driven, drive_log, stops_at
from adverse.errors import AdverseError
from adverse.levels.places import ROUNDING_M
from adverse.robot.clearance import distances_m, images_passed
from adverse.robot.playback import Trace
from adverse.robot.profile import Robot
from adverse.store.read import Store

TRIALS = 12
"""So many logs are driven at most to find one; the first as a rule will do."""
MOMENTS_HZ = 6
LEAD_S, TAIL_S, LONGEST_S = 5.0, 1.0, 9.0
"""A film begins so long before the truth's stop, and ends so long after that and after the SUT was nearest to
somebody; it lasts no longer than the third."""


@dataclass(frozen=True)
class FailedStop:
    """A log as driven under a mutation, and on clean frames, by the same SUT."""

    driven: Driven
    clean: Driven
    setting_words: str
    control_radius_m: float
    safety_radius_m: float
    of: int
    """How many stops this SUT makes in time on clean frames and not under a mutation, over all mutations."""


class State(NamedTuple):
    """A robot at one moment.

    `image` is the last one passed (-1: none yet), `distance_m` that to the nearest person (inf: nobody in
    sight), `danger_m` the place on the path where somebody's safety radius begins (inf: nowhere); `violated`
    says that it has moved beyond that by now, `recorded` that the log was driven this far.
    """

    image: int
    position_m: float
    speed_mps: float
    distance_m: float
    danger_m: float
    stopped: bool
    violated: bool
    recorded: bool


class Moment(NamedTuple):
    """Both runs at a time since the start; one that has ended stays where it ended."""

    time_s: float
    truth: State
    sut: State


def failed_stop(store: Store) -> FailedStop | None:
    """Return the failed stop to look at; None where no robot drives, or every clean stop stays one."""
    if not store.run.robot:
        return None
    robot = Robot(**store.run.robot)
    by_id = {setting.id: setting for setting in store.run.mutations}
    known = _candidates(store, robot.tolerance_m)
    for row in known[:TRIALS]:
        try:
            clean, driven = (
                drive_log(
                    store, log=row["log"], sut=row["sut"], sensitivity=EXAMPLE_SENSITIVITY, setting=setting
                )
                for setting in (store.run.baseline.id, row["setting"])
            )
        except AdverseError:
            continue
        if clean.safe and driven.safe is False:
            words = setting_words(by_id[row["setting"]])
            lost = sum(other["sut"] == row["sut"] for other in known)
            return FailedStop(driven, clean, words, robot.control_radius_m, robot.safety_radius_m, lost)
    return None


def _candidates(store: Store, tolerance_m: float) -> list[dict[str, Any]]:
    """Return failed stops by the summary, the one to look at first."""
    table = stops_at(store)
    levels = table["level"].unique().to_pylist()
    rows = [row for row in table.to_pylist() if row["level"] == levels[0]] if levels else []
    baseline = store.run.baseline.id
    safe = {
        (row["sut"], row["log"])
        for row in rows
        if row["setting"] == baseline and row["lateness_m"] <= tolerance_m + ROUNDING_M
    }
    count = {sut: sum(name == sut for name, _ in safe) for sut in store.suts}
    order = {setting.id: number for number, setting in enumerate(store.run.mutations)}
    group = {setting.id: setting.group for setting in store.run.mutations}
    failed = [
        row
        for row in rows
        if row["setting"] in order
        and (row["sut"], row["log"]) in safe
        and not row["lateness_m"] <= tolerance_m + ROUNDING_M
    ]
    failed.sort(
        key=lambda row: (
            -count[row["sut"]],
            store.suts.index(row["sut"]),
            group[row["setting"]] != "mild",
            -row["speed_at_safety_radius_mps"],
            order[row["setting"]],
            row["log"],
        )
    )
    return failed


def moments(driven: Driven) -> list[Moment]:
    """Return both runs at evenly spaced times around the truth's stop and what the SUT makes of it."""
    stop_s, end_s = (float(run.time_s[-1]) for run in (driven.by_truth, driven.by_sut))
    start = max(stop_s - LEAD_S, 0.0)
    end = max(stop_s, min(_nearest_s(driven), end_s)) + TAIL_S
    length = min(end - start, LONGEST_S)
    times = start + np.arange(math.ceil(length * MOMENTS_HZ - 1e-9) + 1) / MOMENTS_HZ
    states = [_states(driven, run, times) for run in (driven.by_truth, driven.by_sut)]
    return [Moment(float(time), *both) for time, *both in zip(times, *states, strict=True)]


def _nearest_s(driven: Driven) -> float:
    """Return when the SUT's robot is nearest to anybody; at its end where nobody is in sight."""
    run, playback = driven.by_sut, driven.playback
    away = distances_m(playback.path, playback.stations, *playback.people, run.position_m)
    return float(run.time_s[np.argmin(away)] if np.isfinite(away).any() else run.time_s[-1])


def _states(driven: Driven, run: Trace, times: Any) -> list[State]:
    playback = driven.playback
    steps = np.maximum(np.searchsorted(run.time_s, times + 1e-9, side="right") - 1, 0)
    position = run.position_m[steps]
    image = images_passed(playback.stations, position)
    away = distances_m(playback.path, playback.stations, *playback.people, position)
    states = []
    for at, step in enumerate(steps.tolist()):
        danger = float(playback.too_close_m[image[at]]) if image[at] >= 0 else math.inf
        states.append(
            State(
                int(image[at]),
                float(position[at]),
                float(run.speed_mps[step]),
                float(away[at]),
                danger,
                bool(run.stopped[step]),
                bool(run.violating[: step + 1].any()),
                bool(position[at] <= playback.path.recorded_m + ROUNDING_M),
            )
        )
    return states

"""How far a SUT sees, and from which speed a robot still stops; never further than people were found.

People are read at the SUT's operating point, by steps of `STEP_M` of distance. The range starts with the
first step that holds `LEAST_PEOPLE` and goes on while each step holds as many, of whom `WANTED` at least are
found; it is the distance of the furthest person found in its last step. A step without people shows nothing,
so it ends the range, and a resample of the logs that drew nobody from a step does not pass it.

The speed that is called safe is that of the lower end of the range's interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import SutDetections
from adverse.analysis.score import Status
from adverse.analysis.slices import distances_m, found_people
from adverse.curves.bootstrap import Resamples
from adverse.curves.interval import Interval, given, korn_graubard, refused
from adverse.robot.profile import Robot
from adverse.store.read import Store

WANTED, STEP_M = 0.95, 2.5
"""Recall that a range is about, and the steps of distance."""
LEAST_PEOPLE = 2
"""In a step; one with fewer does not show that the range holds there."""

Floats = NDArray[np.float64]
End = Literal["missed", "too few people", "nobody further"]


@dataclass(frozen=True, eq=False)
class Steps:
    """People of one setting by step of distance, over all logs."""

    tested: tuple[int, ...]
    """Neighbouring steps with enough people, from the nearest on."""
    nearer: tuple[int, ...]
    """Steps before them with too few people: whoever is missed there ends the range at 0."""
    furthest_m: Floats
    """Of those found in each step (D,)."""
    end: End
    """Why the range ends if nobody is missed."""


def range_rows(
    store: Store, detections: SutDetections, statuses: Mapping[str, Status], resamples: Resamples | None
) -> list[dict[str, Any]]:
    """Return how far a SUT sees under every setting, and how fast the robot may drive then.

    Nothing where no distance is known. None: too few people to tell. 0: the nearest people are already
    found too seldom. `ends` says why the range is not larger.
    """
    distance = distances_m(store)
    known_m = np.isfinite(distance) & ~store.truth.ignore
    if not known_m.any():
        return []
    count = int(distance[known_m].max() // STEP_M) + 1
    step = np.zeros(len(distance), np.int64)
    step[known_m] = (distance[known_m] // STEP_M).astype(np.int64)
    log, logs = store.frames.log[store.truth.frame], len(store.frames.logs)
    robot = Robot(**store.run.robot) if store.run.robot else None
    gap_s = longest_gap_s(store.frames.log, store.frames.time_s)
    rows = []
    for setting, known in found_people(store, detections).items():
        both = known.counted & known_m

        def by_step(mask: NDArray[np.bool_]) -> Floats:
            counts = np.bincount(log[mask] * count + step[mask], minlength=logs * count)
            return counts.reshape(logs, count).astype(np.float64)

        seen = both & known.found
        people, found = by_step(both), by_step(seen)
        furthest = np.zeros(count)
        np.maximum.at(furthest, step[seen], distance[seen])
        steps = _steps(people.sum(axis=0), furthest)
        interval = _range(found, people, steps, resamples)
        whole = bool(interval.value) and interval.value == furthest[steps.tested[-1]]
        ends = steps.end if whole else "missed"
        status = statuses.get(setting, "ok")
        rows.append(
            {
                "sut": detections.sut,
                "setting": setting,
                "group": store.groups[setting],
                "status": "insufficient" if interval.value is None else status,
                "logs": int(np.count_nonzero(people.sum(axis=1))),
                "people": int(people.sum()),
                "range_m": interval.value,
                "nearest_m": float(distance[both].min()) if both.any() else None,
                "ends": None if interval.value is None else ends,
                "beyond": interval.value is not None and ends == "nobody further",
                "range_m_interval": interval.plain(),
                **_speeds(robot, gap_s, interval, status),
            }
        )
    return rows


def _steps(people: Floats, furthest_m: Floats) -> Steps:
    """Return which steps can be told about, from the people (D,) of each."""
    enough = people >= LEAST_PEOPLE
    if not enough.any():
        return Steps((), (), furthest_m, "too few people")
    first = int(np.argmax(enough))
    stop = first + int(np.argmin(np.append(enough[first:], False)))
    nearer = tuple(np.flatnonzero(people[:first]).tolist())
    end: End = "too few people" if people[stop:].any() else "nobody further"
    return Steps(tuple(range(first, stop)), nearer, furthest_m, end)


def _ranges_m(found: Floats, people: Floats, steps: Steps) -> Floats:
    """Return the range (B,) from counts by distance (B, D); 0 where the first step fails already."""
    nearer = list(steps.nearer)
    going = (found[:, nearer] >= people[:, nearer]).all(axis=1)
    reach = np.zeros(len(found))
    for step in steps.tested:
        going &= (people[:, step] > 0) & (found[:, step] >= WANTED * people[:, step] - 1e-9)
        reach = np.where(going, steps.furthest_m[step], reach)
    return reach


def _range(found: Floats, people: Floats, steps: Steps, resamples: Resamples | None) -> Interval:
    """Return the range, and where 95 % (their confidence) of the ranges of resampled logs lie.

    Where they all agree, that nothing differs between these logs does not make it certain: the range is then
    at least the distance up to which the recall of all people together is sure to be what is wanted, refused
    where it is sure for none.
    """
    logs = int(np.count_nonzero(people.sum(axis=1)))
    sure = 0.95 if resamples is None else resamples.confidence
    how: Any = {"confidence": sure, "method": "bootstrap", "logs": logs}
    if not steps.tested:
        return refused(math.nan, f"no distance with {LEAST_PEOPLE} people", **how)
    reach = float(_ranges_m(found.sum(axis=0)[None], people.sum(axis=0)[None], steps)[0])
    if resamples is None:
        return refused(reach, "logs were not resampled", **how)
    if logs < 2:
        return refused(reach, "one log cannot say how logs differ", **how)
    weights = resamples.counts.astype(np.float64)
    drawn = _ranges_m(weights @ found[resamples.order], weights @ people[resamples.order], steps)
    low = float(np.quantile(drawn, (1 - sure) / 2, method="lower"))
    high = float(np.quantile(drawn, (1 + sure) / 2, method="higher"))
    if low == high == reach:
        if (least := _surely_m(found, people, steps, reach, sure)) > 0:
            return given(reach, least, reach, **{**how, "method": "Korn-Graubard"})
        return refused(reach, f"all resamples agree, but {int(people.sum())} people are too few", **how)
    return given(reach, low, high, **how)


def _surely_m(found: Floats, people: Floats, steps: Steps, reach_m: float, sure: float) -> float:
    """Return the largest range up to which all people (L, D) are surely found as wanted; 0: none."""
    for step in reversed(steps.tested):
        near = slice(None, step + 1)
        if steps.furthest_m[step] <= reach_m:
            counts = found[:, near].sum(axis=1), people[:, near].sum(axis=1)
            low = korn_graubard(*counts, confidence=sure).low
            if low is not None and low >= WANTED:
                return float(steps.furthest_m[step])
    return 0.0


def _speeds(robot: Robot | None, gap_s: float | None, reach: Interval, status: Status) -> dict[str, Any]:
    """Return the speed that belongs to the range, its interval, and what of it is safe to say.

    None with the reason in `no_speed`. A range of 0 needs no interval: no speed is safe.
    """
    nothing = {"speed_mps": None, "safe_speed_mps": None}
    if robot is None or reach.value is None:
        return nothing | {"no_speed": "no robot" if robot is None else reach.why}
    if gap_s is None:
        return nothing | {"no_speed": "no frame rate"}
    value = stopping_speed_mps(robot, gap_s, reach.value)
    low, high = (
        None if end is None else stopping_speed_mps(robot, gap_s, end) for end in (reach.low, reach.high)
    )
    plain = reach.plain() | {"low": low, "high": high}
    safe, why = (0.0, "") if value == 0 else (low, f"no interval: {reach.why}" if low is None else "")
    if status == "incomplete" and safe:
        safe, why = None, "frames that could not be used are not in the range"
    return {"speed_mps": value, "speed_mps_interval": plain, "safe_speed_mps": safe, "no_speed": why}


def longest_gap_s(log: NDArray[np.int64], time_s: Floats) -> float | None:
    """Return the longest time between two frames of a log; None where no log has two with times.

    >>> longest_gap_s(np.array([0, 0, 0, 1, 1]), np.array([0.0, 0.1, 0.2, 0.0, 0.5]))
    0.5
    """
    gaps = np.diff(time_s)[np.diff(log) == 0]
    gaps = gaps[np.isfinite(gaps) & (gaps > 0)]
    return float(gaps.max()) if len(gaps) else None


def stopping_speed_mps(robot: Robot, gap_s: float, range_m: float) -> float:
    """Return the speed from which the robot still stops before whoever appears at the range.

    It has driven on for the time between two frames and a step of its control when it brakes, and must come
    to a halt outside of the safety radius.
    """
    delay_s = robot.step_s + gap_s
    room, brake = max(range_m - robot.safety_radius_m, 0.0), -robot.min_acceleration_mps2
    return brake * (math.sqrt(delay_s**2 + 2 * room / brake) - delay_s)

"""Closed-loop control by log playback (Pezzementi et al. 2021, section 6.3), one-dimensional along the path.

An image becomes visible when the vehicle passes the place where it was taken. The nearest obstacle of the
last image passed sets the safe speed, from which full braking stops in time; it stays where it is on the
path, so the remaining distance shrinks as the vehicle moves on (`hold: obstacle`), or the safe speed of the
moment the image was taken is kept (`hold: speed`, the paper's words). Both speeds zero is a stop. It ends a
positive run; on a negative log the image's obstacles are cleared, and the vehicle goes on. True people, too,
are where the last image passed shows them: up to the place of the next image.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.robot.delayed import drive_delayed, drive_delayed_all
from adverse.robot.profile import Robot
from adverse.robot.vehicle import (
    MOST_STOPS,
    TOUCHING_M,
    at_rest,
    drive_for,
    note_state,
    safe_speed,
    whole_steps,
)

MARKS = 6
"""What is kept of the moment an image is met: position, speed, time, last image, stops, speed inside."""


class Drives(NamedTuple):
    """How K runs over one log went: where each stopped for good (NaN: never), its time and stops.

    `speed_inside_mps` is the highest speed inside the safety radius of somebody, 0 if it never moved there;
    of a robot that brakes, the speed at which it came in.
    """

    stop_m: NDArray[np.float64]
    time_s: NDArray[np.float64]
    stops: NDArray[np.int64]
    speed_inside_mps: NDArray[np.float64]

    @property
    def violated(self) -> NDArray[np.bool_]:
        """Whether it moved inside the safety radius of somebody."""
        return self.speed_inside_mps > 0


class Trace(NamedTuple):
    """The state of one run at every step, (T,) each; `obstacle_m` is what is left to the nearest one.

    `violating` says that it moved inside the safety radius of somebody in the step that ends here; a run that
    reaches the end of its path does so in the step that begins at its last state.
    """

    time_s: NDArray[np.float64]
    position_m: NDArray[np.float64]
    speed_mps: NDArray[np.float64]
    safe_speed_mps: NDArray[np.float64]
    obstacle_m: NDArray[np.float64]
    stopped: NDArray[np.bool_]
    violating: NDArray[np.bool_]


def drive(
    stations: NDArray[np.float64],
    obstacles_m: NDArray[np.float64],
    too_close_m: NDArray[np.float64],
    end_m: float,
    robot: Robot,
    *,
    positive: bool,
    arrives: NDArray[np.bool_] | None = None,
) -> Drives:
    """Play a log back K times.

    `stations` (N,) is where the N images were taken; `obstacles_m` (N,K) the place on the path of the nearest
    obstacle of each image at each of K sensitivities (inf: none); `too_close_m` (N,) the place at which the
    safety radius of a true person of each image is entered (inf: none). A positive run ends at a stop or at
    `end_m`, a negative one at `end_m`. With `arrives` (N,), which images the controller ever knows of, the
    robot has its latency; without, it knows of every image at once.
    """
    if arrives is not None:
        columns = np.ascontiguousarray(np.asarray(obstacles_m, np.float64).T)
        late = drive_delayed_all(
            np.asarray(stations, np.float64),
            np.asarray(arrives, np.bool_),
            columns,
            np.asarray(too_close_m, np.float64),
            end_m,
            positive,
            robot.latency_s,
            *_numbers(robot),
        )
        return Drives(*late)
    columns = np.ascontiguousarray(np.asarray(obstacles_m, np.float64).T)
    result = _drive_all(
        np.asarray(stations, np.float64),
        columns,
        np.asarray(too_close_m, np.float64),
        end_m,
        positive,
        *_numbers(robot),
    )
    return Drives(*result)


def trace(
    stations: NDArray[np.float64],
    obstacle_m: NDArray[np.float64],
    too_close_m: NDArray[np.float64],
    end_m: float,
    robot: Robot,
    *,
    positive: bool,
    arrives: NDArray[np.bool_] | None = None,
) -> Trace:
    """Play a log back once, for one sensitivity, keeping the state at every step; `arrives` as in `drive`."""
    steps = 1024
    while True:
        record = np.full((steps, 7), np.nan)
        if arrives is not None:
            done = drive_delayed(
                np.asarray(stations, np.float64),
                np.asarray(arrives, np.bool_),
                np.asarray(obstacle_m, np.float64),
                np.asarray(too_close_m, np.float64),
                end_m,
                positive,
                robot.latency_s,
                *_numbers(robot),
                record,
            )[4]
        else:
            done = _drive(
                np.asarray(stations, np.float64),
                np.asarray(obstacle_m, np.float64),
                np.asarray(too_close_m, np.float64),
                end_m,
                positive,
                *_numbers(robot),
                record,
                np.empty((0, MARKS)),
                -1,
            )[4]
        if done <= steps:
            break
        steps = 2 * done
    time, position, speed, safe, obstacle, stopped, violating = record[:done].T
    return Trace(time, position, speed, safe, obstacle, stopped > 0, violating > 0)


def _numbers(robot: Robot) -> tuple[float, float, float, float, bool]:
    return (
        robot.max_speed_mps,
        robot.max_acceleration_mps2,
        robot.min_acceleration_mps2,
        robot.step_s,
        robot.hold == "obstacle",
    )


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _drive_all(
    stations: Any,
    columns: Any,
    too_close: Any,
    end: float,
    positive: bool,  # noqa: FBT001
    top: float,
    up: float,
    down: float,
    step: float,
    shrink: bool,  # noqa: FBT001
) -> Any:  # pragma: no cover - compiled
    """Drive every column; a run is the one before it up to the first image that shows something else."""
    count, images = columns.shape
    stop = np.empty(count)
    time = np.empty(count)
    stops = np.empty(count, np.int64)
    inside = np.empty(count)
    unrecorded = np.empty((0, 7))
    marks = np.empty((images, MARKS))
    seen = -1
    for k in range(count):
        change = 0
        if k > 0:
            while change < images and columns[k, change] == columns[k - 1, change]:
                change += 1
            if change > seen:  # what is new is never looked at
                stop[k], time[k], stops[k] = stop[k - 1], time[k - 1], stops[k - 1]
                inside[k] = inside[k - 1]
                continue
        stop[k], time[k], stops[k], inside[k], _, seen = _drive(
            stations,
            columns[k],
            too_close,
            end,
            positive,
            top,
            up,
            down,
            step,
            shrink,
            unrecorded,
            marks,
            change if k > 0 else -1,
        )
    return stop, time, stops, inside


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _drive(  # noqa: C901, PLR0912 - one loop, as it happens in time; compiled functions are best kept whole
    stations: Any,
    obstacles: Any,
    too_close: Any,
    end: float,
    positive: bool,  # noqa: FBT001
    top: float,
    up: float,
    down: float,
    step: float,
    shrink: bool,  # noqa: FBT001
    record: Any,
    marks: Any,
    since: int,
) -> Any:  # pragma: no cover - compiled
    """Drive once; return where it stopped, time, stops, speed inside, steps, and the last image passed.

    `marks` keeps the state in which each image was met; `since` >= 0 goes on from that of an earlier run.
    """
    position, speed, time = 0.0, top, 0.0
    image, stops, steps, inside = -1, 0, 0, 0.0
    if since >= 0:
        position, speed, time = marks[since, 0], marks[since, 1], marks[since, 2]
        image, stops, inside = int(marks[since, 3]), int(marks[since, 4]), marks[since, 5]
    obstacle, held, person, within = np.inf, top, np.inf, 0.0
    ahead = stations[image + 1] if image + 1 < len(stations) else np.inf
    while stops < MOST_STOPS:
        if ahead <= position + TOUCHING_M:
            before = image
            while ahead <= position + TOUCHING_M:
                image += 1
                if len(marks):
                    marks[image, 0], marks[image, 1], marks[image, 2] = position, speed, time
                    marks[image, 3], marks[image, 4], marks[image, 5] = before, stops, inside
                ahead = stations[image + 1] if image + 1 < len(stations) else np.inf
            obstacle, person = obstacles[image], too_close[image]
            if not shrink:
                held = safe_speed(obstacle - stations[image], down, top)
        if steps < len(record):
            note_state(record, steps, position, speed, time, obstacle, held, within, down, top, shrink)
        steps += 1
        if at_rest(speed, position, obstacle, held, shrink):
            stops += 1
            if positive:
                return position, time, stops, inside, steps, image
            obstacle, held, within = np.inf, top, 0.0
            continue
        if shrink and len(record) == 0:
            moved, position, speed, time, inside = whole_steps(
                position, speed, time, inside, obstacle, person, ahead, end, up, down, top, step
            )
            if moved:
                continue
        ended, position, speed, time, within = drive_for(
            step, position, speed, time, obstacle, held, person, ahead, end, up, down, top, shrink
        )
        inside = max(inside, within)
        if ended:
            if within > 0.0 and steps <= len(record):
                record[steps - 1, 6] = within
            return np.nan, time, stops, inside, steps, image
    return np.nan, time, stops, inside, steps, image

"""Closed-loop playback of a robot that learns late: latency, and images that never arrive.

The same vehicle and controller as in `playback`, in which what an image shows is known at once. Here it is
known `latency_s` after the vehicle passed the place where the image was taken, and what some images show
never becomes known. Until then the robot drives by the last image it knows of. True people are where the last
image *passed* shows them: the world does not wait. After a needless stop the images under way are forgotten
with the obstacle: they show what was just cleared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from adverse.robot.vehicle import MOST_STOPS, TOUCHING_M, at_rest, drive_for, note_state, safe_speed

SOON_S = 1e-9
"""What arrives sooner than this is there."""


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def drive_delayed_all(
    stations: Any,
    arrives: Any,
    columns: Any,
    too_close: Any,
    end: float,
    positive: bool,  # noqa: FBT001
    latency: float,
    top: float,
    up: float,
    down: float,
    step: float,
    shrink: bool,  # noqa: FBT001
) -> Any:  # pragma: no cover - compiled
    """Drive every column of obstacles; return stops, times, numbers of stops and speeds inside, (K,) each."""
    count = columns.shape[0]
    stop = np.empty(count)
    time = np.empty(count)
    stops = np.empty(count, np.int64)
    inside = np.empty(count)
    unrecorded = np.empty((0, 7))
    for k in range(count):
        stop[k], time[k], stops[k], inside[k], _ = drive_delayed(
            stations,
            arrives,
            columns[k],
            too_close,
            end,
            positive,
            latency,
            top,
            up,
            down,
            step,
            shrink,
            unrecorded,
        )
    return stop, time, stops, inside


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def drive_delayed(  # noqa: C901 - one loop, as it happens in time
    stations: Any,
    arrives: Any,
    obstacles: Any,
    too_close: Any,
    end: float,
    positive: bool,  # noqa: FBT001
    latency: float,
    top: float,
    up: float,
    down: float,
    step: float,
    shrink: bool,  # noqa: FBT001
    record: Any,
) -> Any:  # pragma: no cover - compiled
    """Drive once; return where it stopped, time, stops, speed inside, and steps. `record` is as in `trace`.

    `arrives` (N,) says of each image whether it ever becomes known.
    """
    images = len(stations)
    due, who = np.empty(images), np.empty(images, np.int64)
    first, last = 0, 0  # of the images under way
    position, speed, time = 0.0, top, 0.0
    image, stops, steps, inside, remaining = -1, 0, 0, 0.0, 0.0
    obstacle, held, person, within = np.inf, top, np.inf, 0.0
    ahead = stations[0] if images else np.inf
    while stops < MOST_STOPS:
        while ahead <= position + TOUCHING_M:
            image += 1
            person = too_close[image]
            if arrives[image]:
                due[last], who[last] = time + latency, image
                last += 1
            ahead = stations[image + 1] if image + 1 < images else np.inf
        while first < last and due[first] <= time + SOON_S:
            obstacle = obstacles[who[first]]
            held = safe_speed(obstacle - stations[who[first]], down, top)
            first += 1
        if steps < len(record):
            note_state(record, steps, position, speed, time, obstacle, held, within, down, top, shrink)
        steps += 1
        if at_rest(speed, position, obstacle, held, shrink):
            stops += 1
            if positive:
                return position, time, stops, inside, steps
            obstacle, held, within, first = np.inf, top, 0.0, last
            continue
        if remaining <= SOON_S:
            remaining = step
        left = remaining if first == last else min(remaining, due[first] - time)
        remaining -= left  # what arrives within a step does not shift those after it
        ended, position, speed, time, within = drive_for(
            left, position, speed, time, obstacle, held, person, ahead, end, up, down, top, shrink
        )
        inside = max(inside, within)
        if ended:
            if within > 0.0 and steps <= len(record):
                record[steps - 1, 6] = within
            return np.nan, time, stops, inside, steps
        if at_rest(speed, position, obstacle, held, shrink):
            remaining = 0.0
    return np.nan, time, stops, inside, steps

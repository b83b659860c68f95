"""Log playback as a plain Python loop: the witness of the compiled one, and what it is measured against."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adverse.robot.profile import Robot

NEAR = 1e-6
SLACK = 1 - 1e-12


def random_log(
    seed: int, *, levels: int, frames: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return stations (N,), obstacles (N,K) that only grow in number with the level, and people (N,)."""
    rng = np.random.default_rng(seed)
    count = frames or int(rng.integers(1, 25))
    stations = np.concatenate([[0.0], np.cumsum(rng.uniform(0, 0.8, count - 1))])
    seen = rng.random((count, levels)) < 0.3
    each = np.where(seen, stations[:, None] + rng.uniform(0, 6, (count, levels)), np.inf)
    person = np.where(rng.random(count) < 0.3, stations + rng.uniform(0, 4, count), np.inf)
    return stations, np.minimum.accumulate(each, axis=1), person


def plain_loop(  # noqa: C901 - one loop, as it happens in time
    stations: list[float],
    obstacles: list[float],
    person: list[float],
    end: float,
    robot: Robot,
    *,
    positive: bool,
) -> tuple[float, float, int, float]:
    """Return where it stopped (NaN: not), the time, the stops, and the highest speed in a safety radius."""
    top, up, down = robot.max_speed_mps, robot.max_acceleration_mps2, robot.min_acceleration_mps2
    x, v, t, image, stops, inside = 0.0, top, 0.0, -1, 0, 0.0
    obstacle = close = math.inf
    held = top
    while True:
        while image + 1 < len(stations) and stations[image + 1] <= x + NEAR:
            image += 1
            obstacle, close = obstacles[image], person[image]
            held = _safe(obstacle - stations[image], down, top)
        following = stations[image + 1] if image + 1 < len(stations) else math.inf
        wanted = _safe(obstacle - x, down, top) if robot.hold == "obstacle" else held
        if wanted == 0 and v == 0:
            stops += 1
            if positive:
                return x, t, stops, inside
            obstacle, held = math.inf, top
            continue
        left = robot.step_s
        while left > 0:
            if robot.hold == "obstacle":
                spent, rate = _piece(v, obstacle - x, left, up, down, top)
            elif v == held:
                spent, rate = left, 0.0
            else:
                rate = up if held > v else down
                spent = min((held - v) / rate, left)
            driven = (v + 0.5 * rate * spent) * spent
            if x + driven >= end:
                gap = end - x
                after = math.sqrt(max(v * v + 2 * rate * gap, 0.0))
                inside = max(inside, _between(x, v, rate, gap, close, following))
                return math.nan, t + 2 * gap / (v + after), stops, inside
            inside = max(inside, _between(x, v, rate, driven, close, following))
            x, t, left = x + driven, t + spent, left - spent
            v = max(v + rate * spent, 0.0)
            if rate < 0 and left > 0:
                v = 0.0 if robot.hold == "obstacle" else held
            if v == 0 and (robot.hold == "speed" or obstacle - x <= NEAR):
                break


def plain_clearance(
    corners: NDArray[np.float64],
    stations: list[float],
    people: list[list[tuple[float, float]]],
    reached: float,
    *,
    step: float = 1e-3,
) -> float:
    """Return the least distance to the people of the last image passed, looked at step by step."""
    away = math.inf
    last, turn = 0.0, 0
    places = {*np.arange(0.0, reached, step).tolist(), reached, *stations}
    for place in sorted(place for place in places if place <= reached):
        shown = [image for image, station in enumerate(stations) if station <= place + NEAR]
        if not shown:
            continue
        while turn + 2 < len(corners) and last + math.dist(corners[turn], corners[turn + 1]) < place:
            last, turn = last + math.dist(corners[turn], corners[turn + 1]), turn + 1
        part = (place - last) / math.dist(corners[turn], corners[turn + 1])
        here = corners[turn] + part * (corners[turn + 1] - corners[turn])
        away = min([away, *(math.dist(here, person) for person in people[shown[-1]])])
    return away


def _between(x: float, v: float, rate: float, driven: float, low: float, high: float) -> float:
    """Return the highest speed of a piece between two places; it is highest where it comes in or goes out."""
    first, last = max(low, x), min(x + driven, high)
    if last <= x or last - low <= NEAR:
        return 0.0
    return max(math.sqrt(max(v * v + 2 * rate * (at - x), 0.0)) for at in (first, last))


def _safe(distance: float, down: float, top: float) -> float:
    return 0.0 if distance <= NEAR else min(math.sqrt(-2 * down * distance), top)


def _piece(v: float, distance: float, left: float, up: float, down: float, top: float) -> tuple[float, float]:
    curve = math.sqrt(-2 * down * max(distance, 0.0))
    if v >= curve * SLACK:
        return min(-v / down, left), down
    if v < top * SLACK:
        reach = (top - v) / up
        if distance < math.inf:
            lack = (v * v + 2 * down * distance) / (up - down)
            reach = min(reach, (math.sqrt(v * v - up * lack) - v) / up)
        return min(reach, left), up
    return min((distance + top * top / (2 * down)) / top, left), 0.0

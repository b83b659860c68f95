"""Vehicle and controller in one dimension, solved exactly over a piece of time.

The controller drives towards the safe speed at the full rate. Before an obstacle the safe speed itself falls
as the vehicle moves on, along the very curve of full braking; so the vehicle speeds up, holds its top speed,
meets the curve and brakes down it to a stop at the obstacle. Every such piece has a closed form, which makes
the place of a stop independent of the step.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

TOUCHING_M = 1e-6
"""An obstacle nearer than this is reached."""
ON_CURVE = 1e-12
"""Relative slack in telling that a speed is the safe one."""
MOST_STOPS = 100_000
"""Guards against a profile with which the vehicle never gets anywhere."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def safe_speed(distance: float, down: float, top: float) -> float:
    """Return the fastest speed from which full braking (`down` < 0) stops within a distance.

    Pezzementi et al. 2021, equation 7.
    """
    if distance <= TOUCHING_M:
        return 0.0
    return min(math.sqrt(-2.0 * down * distance), top)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def piece(
    speed: float, distance: float, left: float, up: float, down: float, top: float
) -> tuple[float, float]:
    """Return (time, acceleration) of the next piece of constant acceleration, at most `left` seconds long.

    `distance` is what is left to the obstacle (inf: none).
    """
    room = -2.0 * down * max(distance, 0.0)  # the square of the speed on the braking curve
    if speed * speed >= room * (1 - ON_CURVE) ** 2:  # on the curve, or too fast to get back to it
        return (left if speed + down * left > 0.0 else min(-speed / down, left)), down
    if speed < top * (1 - ON_CURVE):
        after = speed + up * left
        if after < top and after * after < (room + 2.0 * down * (speed + after) * 0.5 * left) * (
            1 - ON_CURVE
        ):
            return left, up  # neither the top speed nor the curve is met in this piece
        reach = (top - speed) / up
        if distance < math.inf:
            lack = (speed * speed + 2.0 * down * distance) / (up - down)
            reach = min(reach, (math.sqrt(speed * speed - up * lack) - speed) / up)
        return min(reach, left), up
    cruise = distance + top * top / (2.0 * down)
    return (left if cruise >= top * left else cruise / top), 0.0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def speed_between(
    position: float, speed: float, rate: float, driven: float, low: float, high: float
) -> float:
    """Return the highest speed between two places in a piece of constant acceleration; 0: not there."""
    until = min(position + driven, high)
    if until <= low + TOUCHING_M or until <= position:
        return 0.0
    entering = speed * speed + 2.0 * rate * max(low - position, 0.0)
    leaving = speed * speed + 2.0 * rate * (until - position)
    return math.sqrt(max(entering, leaving, 0.0))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def whole_steps(
    position: float,
    speed: float,
    time: float,
    inside: float,
    obstacle: float,
    person: float,
    ahead: float,
    end: float,
    up: float,
    down: float,
    top: float,
    step: float,
) -> tuple[bool, float, float, float, float]:
    """Take as many whole steps as are one `piece` each, until the next image (`ahead`) or the end is near.

    Most steps are of this kind. Return whether any was taken, and the state after them: to the bit what
    `piece` by `piece` would come to. `inside` is the highest speed so far between the
    place of a `person` and the next image.
    """
    moved = False
    gain, half = up * step, 0.5 * up * step
    while True:  # speeding up
        after = speed + gain
        room = -2.0 * down * (obstacle - position)
        if after >= top or after * after >= (room + 2.0 * down * (speed + after) * 0.5 * step) * (
            1 - ON_CURVE
        ):
            break
        driven = (speed + half) * step
        if position + driven >= end:
            return moved, position, speed, time, inside
        inside = max(inside, speed_between(position, speed, up, driven, person, ahead))
        position, speed, time, moved = position + driven, after, time + step, True
        if ahead <= position + TOUCHING_M:
            return moved, position, speed, time, inside
    gain, half = down * step, 0.5 * down * step
    while True:  # braking
        after = speed + gain
        room = -2.0 * down * max(obstacle - position, 0.0)
        if after <= 0.0 or speed * speed < room * (1 - ON_CURVE) ** 2:
            break
        driven = (speed + half) * step
        if position + driven >= end:
            break
        inside = max(inside, speed_between(position, speed, down, driven, person, ahead))
        position, speed, time, moved = position + driven, after, time + step, True
        if ahead <= position + TOUCHING_M:
            break
    return moved, position, speed, time, inside


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def towards(speed: float, wanted: float, left: float, up: float, down: float) -> tuple[float, float]:
    """Return (time, acceleration) of the next piece towards a speed that does not change."""
    if speed == wanted:
        return left, 0.0
    rate = up if wanted > speed else down
    return min((wanted - speed) / rate, left), rate


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def at_rest(
    speed: float,
    position: float,
    obstacle: float,
    held: float,
    shrink: bool,  # noqa: FBT001
) -> bool:
    """Return whether the vehicle stands and has to: before its obstacle, or because 0 is the held speed."""
    return speed == 0.0 and (obstacle - position <= TOUCHING_M if shrink else held == 0.0)


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def drive_for(
    left: float,
    position: float,
    speed: float,
    time: float,
    obstacle: float,
    held: float,
    person: float,
    ahead: float,
    end: float,
    up: float,
    down: float,
    top: float,
    shrink: bool,  # noqa: FBT001
) -> tuple[bool, float, float, float, float]:
    """Drive for `left` seconds, piece by piece: towards the obstacle, or towards the speed that is held.

    Return whether the end of the path was reached, position, speed and time, and the highest speed between
    the place of a `person` and the next image (`ahead`). It takes less time where the end is reached, or the
    vehicle comes to rest where it has to.
    """
    within = 0.0
    while left > 0.0:
        if shrink:
            spent, rate = piece(speed, obstacle - position, left, up, down, top)
        else:
            spent, rate = towards(speed, held, left, up, down)
        driven = (speed + 0.5 * rate * spent) * spent
        if position + driven >= end:
            gap = end - position
            after = math.sqrt(max(speed * speed + 2.0 * rate * gap, 0.0))
            within = max(within, speed_between(position, speed, rate, gap, person, ahead))
            return True, end, after, time + 2.0 * gap / (speed + after), within
        within = max(within, speed_between(position, speed, rate, driven, person, ahead))
        position += driven
        time += spent
        left -= spent
        speed = max(speed + rate * spent, 0.0)
        if rate < 0.0 and left > 0.0:  # the braking is over: at rest, or at the speed that is held
            speed = 0.0 if shrink else held
        if at_rest(speed, position, obstacle, held, shrink):
            break
    return False, position, speed, time, within


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def note_state(
    record: Any,
    row: int,
    position: float,
    speed: float,
    time: float,
    obstacle: float,
    held: float,
    within: float,
    down: float,
    top: float,
    shrink: bool,  # noqa: FBT001
) -> None:
    """Write the state at the beginning of a step into a row of `record`.

    Columns: time, position, speed, safe speed, distance to the obstacle, whether it is stopped, and the
    highest speed inside a safety radius in the step before.
    """
    wanted = safe_speed(obstacle - position, down, top) if shrink else held
    record[row, 0], record[row, 1], record[row, 2] = time, position, speed
    record[row, 3], record[row, 4] = wanted, max(obstacle - position, 0.0)
    record[row, 5] = at_rest(speed, position, obstacle, held, shrink)
    record[row, 6] = within

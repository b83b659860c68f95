"""Vehicle and controller in one dimension, solved exactly over a piece of time.

The controller drives towards the safe speed at the full rate. Before an obstacle the safe speed itself falls
as the vehicle moves on, along the very curve of full braking; so the vehicle speeds up, holds its top speed,
meets the curve and brakes down it to a stop at the obstacle. Every such piece has a closed form, which makes
the place of a stop independent of the step.
"""

from __future__ import annotations

import math

from numba import njit

TOUCHING_M = 1e-6
"""An obstacle nearer than this is reached."""
ON_CURVE = 1e-12
"""Relative slack in telling that a speed is the safe one."""


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

"""Noise of recorded positions: how large it is, and positions without it.

Everything is over time, not along the path: noise adds length to a path, most of all where the vehicle
stands, but no time. Positions without noise come back as they were.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STILL_M = 1e-3
"""Positions nearer to each other than this are one: the vehicle stood."""
STILL_SIGMAS = 4.0
"""So many standard deviations of the smoothed positions may lie between two places that are one."""
ACCELERATION_DENSITY = 0.5
"""How restless a drive is, m^2/s^3: about 1 m/s^2 that changes twice in a second."""
WINDOW = 5
"""Frames in one look at the noise: what is left of them beside any cubic motion."""
LONGEST_WINDOW_S = 2.0
"""Frames that are further apart show how the vehicle drives, not how its positions scatter."""
MEDIAN_OF_NORMAL = 0.6745
"""Median of the absolute value of a standard normal variable."""
KERNEL_POWER = 0.265
"""Integral of the squared kernel of a cubic smoothing spline, over its width."""
ASSUMED_STEP_S = 0.1
"""Between frames that have no time."""


WANDER_S = 2.0
"""Over so long, positions at a standstill wander more than they get on, however slow the noise is."""
WANDER_M = 0.15
"""How far they may wander, as a standard deviation."""
WANDER_SIGMAS = 2.5
"""How far from their middle positions are that still belong to it, in standard deviations."""
WANDER_RATIO = 2.0
"""How much longer the way is that they wander than what they get on."""
MOST_FRAMES = 25.0
"""As so many frames counts a place at most: noise is not independent for ever."""


class DistinctPlaces(NamedTuple):
    """Distinct places (M,2), how many frames were taken at each (M,), and the place of each frame (N,).

    `measured` (M,2) are the same places without smoothing, as good as `weight` (M,) independent frames each;
    `radius_m` is how near two places would be one; `wander_m` the noise seen at standstills (0: none seen).
    """

    smooth: NDArray[np.float64]
    measured: NDArray[np.float64]
    frames: NDArray[np.int64]
    weight: NDArray[np.float64]
    place: NDArray[np.int64]
    radius_m: float
    wander_m: float


def usable_times_s(time_s: NDArray[np.float64] | None, count: int) -> NDArray[np.float64]:
    """Return times that increase: as they are, or evenly spaced where some are missing or out of order."""
    even = np.arange(count, dtype=np.float64)
    if time_s is None or not np.isfinite(time_s).all():
        return even * ASSUMED_STEP_S
    if (np.diff(time_s) > 0).all():
        return time_s - time_s[:1]
    span = float(time_s.max() - time_s.min())
    return even * (span / (count - 1) if span > 0 else ASSUMED_STEP_S)


def noise_m(time_s: NDArray[np.float64], positions_m: NDArray[np.float64]) -> float | None:
    """Return the standard deviation of the noise in positions (N,2); None where there is no telling.

    Of five frames in a row, the fourth divided difference is free of any smooth motion. Its part across the
    direction of travel is also free of how evenly the vehicle drove. The median holds against jolts.
    """
    if len(time_s) <= WINDOW:
        return None
    times = np.lib.stride_tricks.sliding_window_view(time_s, WINDOW)
    gaps = times[:, :, None] - times[:, None, :] + np.eye(WINDOW)
    weights = 1.0 / gaps.prod(axis=2)
    weights /= np.sqrt((weights**2).sum(axis=1, keepdims=True))
    windows = np.lib.stride_tricks.sliding_window_view(positions_m, WINDOW, axis=0)
    left = np.einsum("nak,nk->na", windows - windows[:, :, :1], weights)
    chord = windows[:, :, -1] - windows[:, :, 0]
    length = np.hypot(*chord.T)
    across = np.abs(left[:, 0] * chord[:, 1] - left[:, 1] * chord[:, 0])
    told = (length > 0) & (times[:, -1] - times[:, 0] <= LONGEST_WINDOW_S)
    if not told.any():
        return None if length.any() else 0.0
    return float(np.median(across[told] / length[told])) / MEDIAN_OF_NORMAL


def distinct_places(
    time_s: NDArray[np.float64], positions_m: NDArray[np.float64], sigma_m: float
) -> DistinctPlaces:
    """Smooth positions (N,2) at the scale of their noise, and make one place of frames at a standstill."""
    smooth, left_m = positions_m, sigma_m
    if sigma_m > STILL_M and len(positions_m) >= 3:
        penalty = sigma_m**2 / ACCELERATION_DENSITY
        smooth = smoothed(time_s, positions_m, penalty)
        step_s = float(np.median(np.diff(time_s)))
        width_s = (penalty * step_s) ** 0.25
        left_m = sigma_m * math.sqrt(min(1.0, KERNEL_POWER * step_s / width_s))
    radius = max(STILL_M, STILL_SIGMAS * left_m)
    wanders = _wanders(time_s, smooth)
    starts = _places(smooth, radius, wanders)
    frames = np.diff([*starts, len(smooth)])
    places = _means(smooth, starts, frames)
    while (same := np.flatnonzero(np.hypot(*np.diff(places, axis=0).T) == 0)).size:
        starts = [start for number, start in enumerate(starts) if number - 1 not in same]
        frames = np.diff([*starts, len(smooth)])
        places = _means(smooth, starts, frames)
    place = np.repeat(np.arange(len(starts)), frames)
    measured = _means(positions_m, starts, frames)
    wander = 0.0
    if wanders.any():
        wander = float(np.sqrt(((positions_m - measured[place])[wanders] ** 2).mean()))
    slow = min(sigma_m / wander, 1.0) if wander else 1.0  # noise that wanders is not new with every frame
    weight = np.clip(frames * slow**2, 1.0, MOST_FRAMES)
    radius = max(radius, WANDER_SIGMAS * wander)
    return DistinctPlaces(places, measured, frames, weight, place, radius, wander)


def smoothed(time_s: NDArray[np.float64], values: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """Return the f (N,2) that minimises sum |values - f|^2 + penalty * integral |f''|^2: a cubic spline.

    By Reinsch's equations for its second derivatives, in a time that grows with N.
    """
    from scipy.linalg import solveh_banded  # noqa: PLC0415 - slow to import, and exact poses need none of it

    step = np.diff(time_s)
    before, after = 1 / step[:-1], 1 / step[1:]
    middle = -(before + after)
    bands = np.zeros((3, len(step) - 1))
    bands[2] = (step[:-1] + step[1:]) / 3 + penalty * (before**2 + middle**2 + after**2)
    bands[1, 1:] = step[1:-1] / 6 + penalty * (middle[:-1] * before[1:] + after[:-1] * middle[1:])
    bands[0, 2:] = penalty * after[:-2] * before[2:]
    bent = values[:-2] * before[:, None] + values[1:-1] * middle[:, None] + values[2:] * after[:, None]
    curvature = solveh_banded(bands, bent)
    pull = np.zeros_like(values)
    pull[:-2] += before[:, None] * curvature
    pull[1:-1] += middle[:, None] * curvature
    pull[2:] += after[:, None] * curvature
    return np.asarray(values - penalty * pull)


def _wanders(time_s: NDArray[np.float64], positions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell of each frame whether positions around it go here and there within a small circle."""
    first = np.searchsorted(time_s, time_s - WANDER_S / 2 - 1e-9)
    last = np.searchsorted(time_s, time_s + WANDER_S / 2 + 1e-9) - 1
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(positions, axis=0).T))])
    length = way[last] - way[first]
    got_on = np.hypot(*(positions[last] - positions[first]).T)
    local = positions - positions.mean(axis=0)
    sums = np.vstack([np.zeros(3), np.cumsum(np.column_stack([local, (local**2).sum(axis=1)]), axis=0)])
    x, y, square = ((sums[last + 1] - sums[first]) / (last + 1 - first)[:, None]).T
    spread = np.sqrt(np.maximum(square - x * x - y * y, 0.0))
    wanders = (last - first + 1 >= WINDOW) & (length > np.maximum(WANDER_RATIO * got_on, STILL_M))
    wanders &= spread < WANDER_M
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wanders, [False]]).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2).tolist():
        # with what comes before and after, as far as it is in the same circle
        centre = positions[begin:end].mean(axis=0)
        away = np.hypot(*(positions - centre).T)
        outside = away > WANDER_SIGMAS * math.sqrt(float((away[begin:end] ** 2).mean()))
        later, earlier = np.flatnonzero(outside[end:]), np.flatnonzero(outside[:begin])
        wanders[(earlier[-1] + 1 if len(earlier) else 0) : (end + later[0] if len(later) else None)] = True
    return np.asarray(wanders)


def _places(positions: NDArray[np.float64], radius: float, wanders: NDArray[np.bool_]) -> list[int]:
    """Return where each place begins: frames that stay within a radius of their mean are one place.

    But where such frames get on by more than the radius from their first to their last, the vehicle moved,
    and each is a place of its own. Frames that wander are one place in a wider circle.
    """
    points: list[list[float]] = positions.tolist()
    still: list[bool] = wanders.tolist()
    wide = max(radius, 2 * WANDER_M)
    starts: list[int] = []
    begin, x, y, count = 0, 0.0, 0.0, 0
    for index in range(len(points) + 1):
        px, py = points[index] if index < len(points) else (math.inf, math.inf)
        within = wide if still[begin] else radius
        if count and (math.hypot(px - x, py - y) > within or still[index] != still[begin]):
            starts.append(begin)
            if not still[begin] and not _stood(points, begin, index, radius):
                for moving in range(begin + 1, index):
                    if math.dist(points[moving], points[starts[-1]]) > STILL_M:
                        starts.append(moving)
            begin, x, y, count = index, 0.0, 0.0, 0
        count += 1
        x += (px - x) / count
        y += (py - y) / count
    return starts


def _stood(points: list[list[float]], begin: int, end: int, radius: float) -> bool:
    """Tell whether the straight line fitted to some positions is shorter than a radius."""
    count = end - begin
    if count < 3:
        return math.dist(points[begin], points[end - 1]) <= radius
    middle = (count - 1) / 2
    scale = 12 * (count - 1) / (count * (count * count - 1))
    dx = sum((k - middle) * points[begin + k][0] for k in range(count)) * scale
    dy = sum((k - middle) * points[begin + k][1] for k in range(count)) * scale
    return math.hypot(dx, dy) <= radius


def _means(values: NDArray[np.float64], starts: list[int], frames: NDArray[np.int64]) -> NDArray[np.float64]:
    means = np.add.reduceat(values, starts, axis=0) / frames[:, None]
    alone = frames == 1
    means[alone] = values[np.asarray(starts)[alone]]
    return np.asarray(means)

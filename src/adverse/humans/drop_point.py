"""The interval of the point from which on people begin to fail.

The rate is flat up to a drop point d and then falls as a power of the distance from it: at once, steeply,
evenly or gently (POWERS). Only the onset is fitted, up to where half of the fall is done or the evidence is
overwhelming, since nothing is known about how the fall goes on. For every d the best such curve is fitted;
the interval holds all d whose curve fits nearly as well as the best one. How nearly, the participants decide:
drawn anew many times, the loss of fit at the best d stays below that bound in 90% of the draws (for an
interval of 90%). The draws are made around the best curve. Where that is steep although the true one is
gentle, they show too small a loss, so the bound is never below that of the joint region of the two things
that are searched for, place and shape, of so many people (Hotelling's T squared): the interval is its shadow.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from adverse.humans.answers import BINS, CENTRES, EDGES, AnswerCounts, Array
from adverse.humans.participants import effective_people

POWERS = (0.0, 0.5, 1.0, 2.0)
"""How the drop sets in: at once, steeply, evenly, gently."""
HALF = 0.5
ENOUGH = 50.0
"""Squared distance, in standard errors, at which a drop is beyond doubt; what comes after is not fitted."""
SURE = 0.02
"""Rates are taken to be at least this far from 0 and 1 when their noise is judged."""
AFTER = 3
"""Populated bins that are fitted beyond that, lest a sudden drop be cut off where it happens."""
FLAT = 1e-9
SEARCHED = 2
"""What is searched for: the place of the drop and its shape."""


def drop_interval(
    counted: AnswerCounts,
    draws: Array,
    fitted: Array,
    number: NDArray[np.int64],
    threshold_bin: int,
    confidence: float,
) -> tuple[float, float]:
    """Return the interval of the drop point; an infinite upper end is beyond the data.

    `draws` (R, P) says how often each participant is drawn in each resample; `fitted` is the spline at every
    bin, NaN where a bin is not populated; `number` counts the populated bins along, pooled ones as one.
    """
    draws = np.vstack([np.ones(len(counted.answers)), draws])
    populated = np.isfinite(fitted)
    rate = np.clip(np.where(populated, fitted, 0.5), SURE, 1 - SURE)
    noise = rate * (1 - rate)
    base = min(max(counted.base_rate, SURE), 1 - SURE)
    used = _onset(counted.answers.sum(axis=0), rate, noise, populated, number, base, threshold_bin)
    weight = used / noise
    base_weight = float(counted.base_apart) / (base * (1 - base))
    loss = _losses(
        (draws @ counted.answers) * weight,
        (draws @ counted.successes) * weight,
        (draws @ counted.base_answers) * base_weight,
        (draws @ counted.base_successes) * base_weight,
    )
    best = int(loss[0].argmin())
    lost = loss[1:, best] - loss[1:].min(axis=1)
    people = float(effective_people(counted.answers.sum(axis=1)))
    bound = max(float(np.quantile(lost, confidence)), joint_bound(people, confidence))
    inside = np.flatnonzero(loss[0] - loss[0].min() <= bound)
    low, high = int(inside[0]), int(inside[-1])
    beyond = high >= np.flatnonzero(used)[-1]
    return float(EDGES[max(low - 1, 0)]), math.inf if beyond else float(EDGES[high + 1])


def joint_bound(people: float, confidence: float) -> float:
    """Return how much fit the true place and shape may lose together, in answers of so many people.

    Hotelling's T squared for two parameters; with very many people chi-squared of two degrees of freedom.

    >>> round(joint_bound(1e9, 0.9), 3), round(joint_bound(30, 0.9), 3)
    (4.605, 5.184)
    """
    rest = people - SEARCHED
    return SEARCHED * (people - 1) / rest * float(fdtri(SEARCHED, rest, confidence))


def _onset(
    answers: Array,
    rate: Array,
    noise: Array,
    populated: NDArray[np.bool_],
    number: NDArray[np.int64],
    base: float,
    start: int,
) -> Array:
    """Return which bins to fit (1 or 0): up to where, from the threshold on, the drop is beyond doubt."""
    fall = np.where(populated, np.clip(base - rate, 0, None), 0)
    evidence = np.cumsum(np.where(populated, answers * fall**2 / noise, 0))
    done = populated & ((evidence >= ENOUGH) | (fall >= HALF * fall.max())) & (np.arange(BINS) >= start)
    if not done.any():
        return populated.astype(np.float64)
    near: Array = (populated & (number <= number[int(np.argmax(done))] + AFTER)).astype(np.float64)
    return near


def _losses(weight: Array, weighted: Array, base_weight: Array, base_weighted: Array) -> Array:
    """Return minus the gain in fit of a drop at each edge over none at all, for each resample.

    Least squares of rate = top - depth * onset(d, power), depth not negative, in closed form; the best
    power counts.
    """
    end = int(np.flatnonzero(weight[0])[-1]) + 1  # nothing is fitted from there on, so no drop gains by it
    shapes = _onsets()[:end, :, :end]
    flat = shapes.reshape(-1, end)
    weight, weighted = weight[:, :end], weighted[:, :end]
    total = weight.sum(axis=1) + base_weight
    top = (weighted.sum(axis=1) + base_weighted) / total
    first = weight @ flat.T
    spread = weight @ (flat**2).T - first**2 / total[:, None]
    slope = weighted @ flat.T - first * top[:, None]
    falls = (slope < 0) & (spread > FLAT)
    gain = np.where(falls, slope**2 / np.where(falls, spread, 1), 0)
    losses = np.zeros((len(weight), BINS + 1))
    losses[:, :end] = -gain.reshape(len(weight), *shapes.shape[:2]).max(axis=2)
    return losses


@functools.cache
def _onsets() -> Array:
    """Return every onset (edge, power, bin), 1 in the last bin; at the last edge nothing is left to fall."""
    beyond = np.clip((CENTRES - EDGES[:-1, None]) / (CENTRES[-1] - EDGES[:-1, None]), 0, None)
    shapes = np.stack([np.where(beyond > 0, beyond**power, 0.0) for power in POWERS], axis=1)
    return np.concatenate([shapes, np.zeros((1, len(POWERS), BINS))])

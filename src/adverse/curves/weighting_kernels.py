"""The loops behind `weighting`, compiled: what a thousand resamples of every figure cost is decided here.

Sums run in a fixed order on one thread, so results do not depend on the machine's number of cores. Rows are
weightings (C), columns sensitivities (K) or logs (L).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def weighted_sums(weights: Any, logs: Any, parts: Any) -> Any:  # pragma: no cover - compiled
    """Return sums (C, K) over logs of weights (C, L) times parts (M, K), part m being of log `logs[m]`."""
    found = np.zeros((len(weights), parts.shape[1]))
    for c in range(len(weights)):
        row = found[c]
        for m in range(len(logs)):
            weight = weights[c, logs[m]]
            if weight != 0.0:
                part = parts[m]
                for k in range(len(row)):
                    row[k] += weight * part[k]
    return found


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def weighted_counts(  # pragma: no cover - compiled
    weights: Any, logs: Any, starts: Any, counts: Any, size: int
) -> Any:
    """Return sums (C, K) over logs of weights (C, L) times counts that only grow from one column to the next.

    Entry n says that the count of log `logs[n]` grows by `counts[n]` at column `starts[n]`.
    """
    found = np.zeros((len(weights), size))
    for c in range(len(weights)):
        row, weight = found[c], weights[c]
        for n in range(len(logs)):
            row[starts[n]] += weight[logs[n]] * counts[n]
        for k in range(1, size):
            row[k] += row[k - 1]
    return found


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def lower(lowest: Any, equals: Any, other: Any) -> None:  # pragma: no cover - compiled
    """Take in one more curve (C, K): the minimum so far, and how many curves are that low."""
    for c in range(lowest.shape[0]):
        for k in range(lowest.shape[1]):
            if other[c, k] < lowest[c, k]:
                lowest[c, k] = other[c, k]
                equals[c, k] = 1
            elif other[c, k] == lowest[c, k]:
                equals[c, k] += 1
            elif np.isnan(other[c, k]):
                lowest[c, k] = np.nan


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def area_and_slopes(  # pragma: no cover - compiled
    safety: Any, efficiency: Any, clipped: Any
) -> Any:
    """Return areas (C,) and their derivatives by safety and by efficiency (C, K); NaN where undefined.

    The points are taken from high efficiency to low; step j is as wide as efficiency falls after it, and as
    high as the best safety so far, which belongs to the point that reached it first. Where efficiency is
    `clipped`, nothing moves it from 0.
    """
    count, size = safety.shape
    value = np.zeros(count)
    by_safety, by_efficiency = np.zeros((count, size)), np.zeros((count, size))
    order = np.arange(size)
    for c in range(count):
        undefined = False
        falling = True
        for k in range(size):
            undefined |= np.isnan(safety[c, k]) or np.isnan(efficiency[c, k])
            falling &= k == 0 or efficiency[c, k] <= efficiency[c, k - 1]
        if undefined:
            value[c] = np.nan
            by_safety[c] = np.nan
            by_efficiency[c] = np.nan
            continue
        if falling:
            order[:] = np.arange(size)
        else:
            for j in range(size):  # by insertion: nearly sorted as a rule, and equals stay in order
                i = j
                while i > 0 and efficiency[c, order[i - 1]] < efficiency[c, j]:
                    order[i] = order[i - 1]
                    i -= 1
                order[i] = j
        best, holder = 0.0, order[0]
        for j in range(size):
            point = order[j]
            here = efficiency[c, point]
            if clipped and here <= 0.0:
                break
            if safety[c, point] > best:
                by_efficiency[c, point] = safety[c, point] - best
                best, holder = safety[c, point], point
            after = efficiency[c, order[j + 1]] if j + 1 < size else 0.0
            width = here - after
            value[c] += best * width
            by_safety[c, holder] += width
    return value, by_safety, by_efficiency


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def add_influence(  # pragma: no cover - compiled
    influence: Any,
    slopes: Any,
    scale: float,
    own: Any,
    lowest: Any,
    equals: Any,
    ratio: Any,
    below: Any,
    logs: Any,
    numerators: Any,
    denominators: Any,
) -> None:
    """Add to influences (C, L) what the ratios of one curve contribute, where it is the lowest of several.

    Curves that are equally low (`equals` (C, K) of them) share the slope: their order does not matter.

    The ratio (C, K) is a sum of numerators over `below` (C, K or 1), a sum of denominators; both are by
    sensitivity (K or 1) and by log (M), log m being `logs[m]`. `slopes` (C, K) times `scale` are derivatives
    by the ratio.
    """
    size = slopes.shape[1]
    many = below.shape[1] > 1
    gain = np.empty(len(logs))
    up, down = np.empty(len(numerators)), np.empty(len(denominators))
    for c in range(len(slopes)):
        up[:] = 0.0
        down[:] = 0.0
        for k in range(size):
            if slopes[c, k] != 0.0 and own[c, k] == lowest[c, k]:
                slope = scale * slopes[c, k] / equals[c, k] / below[c, k if many else 0]
                up[k if len(up) > 1 else 0] += slope
                down[k if len(down) > 1 else 0] -= slope * ratio[c, k]
        gain[:] = 0.0
        _add_rows(gain, up, numerators)
        _add_rows(gain, down, denominators)
        for m in range(len(logs)):
            influence[c, logs[m]] += gain[m]


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _add_rows(total: Any, factors: Any, rows: Any) -> None:  # pragma: no cover - compiled
    for k in range(len(factors)):
        factor = factors[k]
        if factor != 0.0:
            row = rows[k]
            for m in range(len(total)):
                total[m] += factor * row[m]


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def add_influence_of_counts(  # pragma: no cover - compiled
    influence: Any,
    slopes: Any,
    scale: float,
    own: Any,
    lowest: Any,
    equals: Any,
    ratio: Any,
    below: Any,
    logs: Any,
    starts: Any,
    counts: Any,
    trials: Any,
) -> None:
    """Do the same for counts that only grow (see `weighted_counts`) over `trials` (L,); `below` is (C, 1)."""
    size = slopes.shape[1]
    up = np.empty(size)
    for c in range(len(slopes)):
        down, later, last = 0.0, 0.0, -1
        for k in range(size - 1, -1, -1):  # what a count that starts at k adds, at k and ever after
            if slopes[c, k] != 0.0 and own[c, k] == lowest[c, k]:
                last = max(last, k)
                slope = scale * slopes[c, k] / equals[c, k] / below[c, 0]
                down -= slope * ratio[c, k]
                later += slope
            up[k] = later
        row = influence[c]
        if last >= 0:
            for n in range(len(logs)):  # they come by start
                if starts[n] > last:
                    break
                row[logs[n]] += up[starts[n]] * counts[n]
        if down != 0.0:
            for m in range(len(trials)):
                row[m] += down * trials[m]


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def standard_errors(influence: Any, weights: Any, stratum: Any, sizes: Any) -> Any:  # pragma: no cover
    """Return the standard errors (C,) that influences (C, L) give, spread being taken within strata."""
    found = np.empty(len(weights))
    mean, squares = np.empty(len(sizes)), np.empty(len(sizes))
    for c in range(len(weights)):
        mean[:] = 0.0
        squares[:] = 0.0
        for m in range(len(stratum)):
            mean[stratum[m]] += weights[c, m] * influence[c, m]
        for h in range(len(sizes)):
            mean[h] /= sizes[h]
        for m in range(len(stratum)):
            apart = influence[c, m] - mean[stratum[m]]
            squares[stratum[m]] += weights[c, m] * apart * apart
        variance = 0.0
        for h in range(len(sizes)):
            if sizes[h] > 1:
                variance += squares[h] * sizes[h] / (sizes[h] - 1)
        found[c] = np.sqrt(variance)
    return found

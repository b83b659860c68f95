"""Compiled loops behind weighted average precision: COCO's matching of boxes, and weighted averages.

Nothing here checks its input; that is done in `boxes`.
"""
# Loops are compiled: one pass each, with nothing allocated inside.
# ruff: noqa: C901, PLR0912

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
I8 = NDArray[np.int8]
Bool = NDArray[np.bool_]
FALSE, HIT, IGNORED = 0, 1, 2


@njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def coco_match(  # pragma: no cover - compiled
    boxes: F64,
    first: I64,
    last: I64,
    starts: I64,
    truths: F64,
    ignore: Bool,
    crowd: Bool,
    overlaps: F64,
    most: int,
) -> I8:
    """Return (overlap, detection) -> FALSE, HIT or IGNORED.

    Detections lie in groups of one class and image (`starts` (G+1,)), the surest first; those beyond `most`
    are IGNORED. Group g has the true objects first[g]:last[g], those that are not ignored first.
    """
    outcome = np.zeros((len(overlaps), len(boxes)), np.int8)
    taken = np.zeros(len(truths), np.bool_)
    for g in range(len(first)):
        begin, end = starts[g], starts[g + 1]
        counted = min(end, begin + most)
        outcome[:, counted:end] = 2
        count = last[g] - first[g]
        if count == 0:
            continue
        shares = np.zeros((counted - begin, count))
        for d in range(begin, counted):
            area = (boxes[d, 2] - boxes[d, 0]) * (boxes[d, 3] - boxes[d, 1])
            for i in range(count):
                t = first[g] + i
                width = min(boxes[d, 2], truths[t, 2]) - max(boxes[d, 0], truths[t, 0])
                height = min(boxes[d, 3], truths[t, 3]) - max(boxes[d, 1], truths[t, 1])
                if width > 0 and height > 0:
                    both = width * height
                    true_area = (truths[t, 2] - truths[t, 0]) * (truths[t, 3] - truths[t, 1])
                    shares[d - begin, i] = both / (area if crowd[t] else area + true_area - both)
        for k in range(len(overlaps)):
            taken[first[g] : last[g]] = False
            for d in range(begin, counted):
                best = -1
                least = min(overlaps[k], 1 - 1e-10)
                for i in range(count):
                    t = first[g] + i
                    if taken[t] and not crowd[t]:
                        continue
                    if best >= 0 and not ignore[best] and ignore[t]:
                        break
                    if shares[d - begin, i] < least:
                        continue
                    best = t
                    least = shares[d - begin, i]
                if best >= 0:
                    taken[best] = True
                    outcome[k, d] = 2 if ignore[best] else 1
    return outcome


@njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def weighted_precision(  # pragma: no cover - compiled
    outcome: I8, image: I64, starts: I64, positives: F64, weights: F64, recalls: F64
) -> F64:
    """Return the mean average precision (B,) under B weightings of the images; NaN without positives.

    `outcome` (overlap, detection) with the detections of class c at starts[c]:starts[c+1], the surest first;
    `positives` (class, B) weighted true objects; `weights` (B, image). `recalls` are the levels at which the
    best precision is averaged; none of them: the area under the curve.
    """
    found = np.full(len(weights), np.nan)
    longest = 0
    for c in range(len(starts) - 1):
        longest = max(longest, starts[c + 1] - starts[c])
    seen = np.empty(longest + 1)
    reached = np.empty(longest + 1)
    precision = np.empty(longest + 1)
    # What is FALSE at every overlap only adds to how much was seen: one running sum serves all overlaps.
    marked = np.empty((len(outcome), longest), np.int64)
    counts = np.empty(len(outcome), np.int64)
    total = np.zeros(len(weights))
    known = np.zeros(len(weights))
    for c in range(len(starts) - 1):
        begin, end = starts[c], starts[c + 1]
        for k in range(len(outcome)):
            counts[k] = 0
            for d in range(begin, end):
                if outcome[k, d] != 0:
                    marked[k, counts[k]] = d
                    counts[k] += 1
        for b in range(len(weights)):
            if positives[c, b] <= 0:
                continue
            known[b] += 1
            running = 0.0
            for d in range(begin, end):
                running += weights[b, image[d]]
                seen[d - begin] = running
            for k in range(len(outcome)):
                hits, ignored, n = 0.0, 0.0, 0
                for i in range(counts[k]):
                    d = marked[k, i]
                    weight = weights[b, image[d]]
                    if weight == 0:
                        continue
                    if outcome[k, d] == 2:
                        ignored += weight
                        continue
                    hits += weight
                    reached[n] = hits / positives[c, b]
                    precision[n] = hits / (seen[d - begin] - ignored)
                    n += 1
                total[b] += _average(reached, precision, n, recalls) / len(outcome)
    for b in range(len(weights)):
        if known[b] > 0:
            found[b] = total[b] / known[b]
    return found


@njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _average(reached: F64, precision: F64, n: int, recalls: F64) -> float:  # pragma: no cover - compiled
    best, added = 0.0, 0.0
    level = len(recalls) - 1
    while level >= 0 and (n == 0 or recalls[level] > reached[n - 1]):
        level -= 1
    for i in range(n - 1, -1, -1):
        best = max(best, precision[i])
        before = reached[i - 1] if i > 0 else 0.0
        if len(recalls) == 0:
            added += (reached[i] - before) * best
        while level >= 0 and (i == 0 or recalls[level] > before):
            added += best
            level -= 1
    return float(added if len(recalls) == 0 else added / len(recalls))

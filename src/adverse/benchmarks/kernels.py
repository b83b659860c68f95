"""Compiled loops behind the average precision of boxes: COCO's matching, and averages of precision.

Nothing here checks its input; that is done in `boxes`.
"""
# Loops are compiled: one pass each, with nothing allocated inside.
# ruff: noqa: C901, PLR0912, PLR0915

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Bits = NDArray[np.uint16]
Bool = NDArray[np.bool_]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def counting_order(keys: I64, bins: int) -> I64:  # pragma: no cover - compiled
    """Return the stable order of keys from 0 to bins - 1."""
    places = np.zeros(bins + 1, np.int64)
    for key in keys:
        places[key + 1] += 1
    for key in range(bins):
        places[key + 1] += places[key]
    order = np.empty(len(keys), np.int64)
    for row in range(len(keys)):
        order[places[keys[row]]] = row
        places[keys[row]] += 1
    return order


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def coco_match(  # pragma: no cover - compiled
    boxes: F64,
    members: I64,
    starts: I64,
    first: I64,
    last: I64,
    truths: F64,
    truth_area: F64,
    ignore: Bool,
    crowd: Bool,
    overlaps: F64,
    ranges: F64,
    most: int,
    areas: F64,
    given: F64,
    at: I64,
) -> tuple[Bits, Bits]:
    """Return which detections hit, and which are ignored, by (area range, detection): a bit for each overlap.

    Boxes are x, y, width, height. Group g - one class in one image - has the detections members[starts[g]:
    starts[g+1]], the surest first, and the true objects first[g]:last[g]. Detections beyond `most` are
    ignored, and those outside an area range that match nothing; so are true objects outside it. Real objects
    come before ignored ones; of equal overlaps the last counts. `areas` are those of the detections. Where
    overlaps are `given`, those of the detections of group g with its true objects begin at at[g], row by row.
    """
    every = np.uint16((1 << len(overlaps)) - 1)
    hits = np.zeros((len(ranges), len(boxes)), np.uint16)
    ignored = np.zeros((len(ranges), len(boxes)), np.uint16)
    taken = np.zeros(len(truths), np.bool_)
    aside = np.zeros(len(truths), np.bool_)
    widest, fullest = 0, 0
    for g in range(len(first)):
        widest = max(widest, last[g] - first[g])
        fullest = max(fullest, min(most, starts[g + 1] - starts[g]))
    shares = np.zeros((fullest, widest))
    highest = np.zeros(fullest)
    for g in range(len(first)):
        begin, end = first[g], last[g]
        counted = min(most, starts[g + 1] - starts[g])
        for i in range(starts[g] + counted, starts[g + 1]):
            ignored[:, members[i]] = every
        possible = 0.0
        for i in range(counted):
            d = members[starts[g] + i]
            area = areas[d]
            if len(at) > 0:
                highest[i] = 0.0
                for t in range(end - begin):
                    shares[i, t] = given[at[g] + i * (end - begin) + t]
                    highest[i] = max(highest[i], shares[i, t])
            else:
                highest[i] = _overlaps(boxes[d], truths[begin:end], crowd[begin:end], shares[i])
            possible = max(possible, highest[i])
            for a in range(len(ranges)):
                if area < ranges[a, 0] or area > ranges[a, 1]:
                    ignored[a, d] = every
        if possible < overlaps[0]:
            continue
        for a in range(len(ranges)):
            for t in range(begin, end):
                aside[t] = ignore[t] or truth_area[t] < ranges[a, 0] or truth_area[t] > ranges[a, 1]
            for k in range(len(overlaps)):
                least = min(overlaps[k], 1 - 1e-10)
                if possible < least:
                    break
                taken[begin:end] = False
                for i in range(counted):
                    if highest[i] < least:
                        continue
                    best, most_shared = -1, least
                    for t in range(begin, end):
                        if aside[t] or shares[i, t - begin] < most_shared or taken[t]:
                            continue
                        best, most_shared = t, shares[i, t - begin]
                    if best < 0:
                        for t in range(begin, end):
                            if (
                                not aside[t]
                                or shares[i, t - begin] < most_shared
                                or (taken[t] and not crowd[t])
                            ):
                                continue
                            best, most_shared = t, shares[i, t - begin]
                    if best < 0:
                        continue
                    taken[best] = True
                    d, bit = members[starts[g] + i], np.uint16(1 << k)
                    if aside[best]:
                        ignored[a, d] |= bit
                    else:
                        hits[a, d] |= bit
                        ignored[a, d] &= ~bit
    return hits, ignored


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _overlaps(box: F64, truths: F64, crowd: Bool, shares: F64) -> float:  # pragma: no cover - compiled
    """Write the overlap of a box with each true one, of a crowd the share of the box; return the highest."""
    right, bottom, area = box[0] + box[2], box[1] + box[3], box[2] * box[3]
    highest = 0.0
    for t in range(len(truths)):
        width = min(right, truths[t, 0] + truths[t, 2]) - max(box[0], truths[t, 0])
        height = min(bottom, truths[t, 1] + truths[t, 3]) - max(box[1], truths[t, 1])
        shares[t] = 0.0
        if width > 0 and height > 0:
            both = width * height
            shares[t] = both / (area if crowd[t] else area + truths[t, 2] * truths[t, 3] - both)
        highest = max(highest, shares[t])
    return highest


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def averages(  # pragma: no cover - compiled
    hits: Bits, ignored: Bits, overlaps: int, rank: I64, starts: I64, positives: F64, most: I64, recalls: F64
) -> tuple[F64, F64]:
    """Return average precision (overlap, class) and recall (overlap, class, most); NaN without positives.

    The detections of class c lie at starts[c]:starts[c+1], the surest first; `rank` tells how many surer ones
    of the same class there are in the same image.
    """
    precisions = np.full((overlaps, len(positives)), np.nan)
    reached = np.full((overlaps, len(positives), len(most)), np.nan)
    recall, precision = np.empty(len(rank) + 1), np.empty(len(rank) + 1)
    for c in range(len(positives)):
        if positives[c] <= 0:
            continue
        for k in range(overlaps):
            bit = np.uint16(1 << k)
            counts = np.zeros(len(most))
            seen, n = 0, 0
            for d in range(starts[c], starts[c + 1]):
                if ignored[d] & bit:
                    continue
                seen += 1
                if hits[d] & bit:
                    recall[n] = (n + 1) / positives[c]
                    precision[n] = (n + 1) / seen
                    n += 1
                    for m in range(len(most)):
                        counts[m] += rank[d] < most[m]
            reached[k, c] = counts / positives[c]
            precisions[k, c] = _average(recall, precision, n, recalls)
    return precisions, reached


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def weighted_precision(  # pragma: no cover - compiled
    hits: Bits,
    ignored: Bits,
    overlaps: int,
    image: I64,
    starts: I64,
    positives: F64,
    weights: F64,
    recalls: F64,
) -> F64:
    """Return average precision (B, overlap) under B weightings of the images; NaN without positives.

    The detections of class c lie at starts[c]:starts[c+1], the surest first; `positives` (class, B) are
    weighted true objects, `weights` (B, image). `recalls` are the levels at which the best precision is
    averaged; none of them: the area under the curve.
    """
    longest = 0
    for c in range(len(starts) - 1):
        longest = max(longest, starts[c + 1] - starts[c])
    seen, reached, precision = np.empty(longest + 1), np.empty(longest + 1), np.empty(longest + 1)
    # What is a false alarm at every overlap only adds to how much was seen: one running sum serves them all.
    marked = np.empty((overlaps, longest), np.int64)
    counts = np.empty(overlaps, np.int64)
    total, defined = np.zeros((len(weights), overlaps)), np.zeros((len(weights), 1))
    for c in range(len(starts) - 1):
        begin, end = starts[c], starts[c + 1]
        counts[:] = 0
        for d in range(begin, end):
            for k in range(overlaps):
                if (hits[d] | ignored[d]) & np.uint16(1 << k):
                    marked[k, counts[k]] = d
                    counts[k] += 1
        for b in range(len(weights)):
            if positives[c, b] <= 0:
                continue
            defined[b, 0] += 1
            running = 0.0
            for d in range(begin, end):
                running += weights[b, image[d]]
                seen[d - begin] = running
            for k in range(overlaps):
                true_positives, left_out, n = 0.0, 0.0, 0
                for i in range(counts[k]):
                    d = marked[k, i]
                    weight = weights[b, image[d]]
                    if weight == 0:
                        continue
                    if ignored[d] & np.uint16(1 << k):
                        left_out += weight
                        continue
                    true_positives += weight
                    reached[n] = true_positives / positives[c, b]
                    precision[n] = true_positives / (seen[d - begin] - left_out)
                    n += 1
                total[b, k] += _average(reached, precision, n, recalls)
    return np.where(defined > 0, total / np.maximum(defined, 1), np.nan)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
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

"""Who is lost: recall and losses by distance, size, place and class.

All of it is read at the SUT's operating point. A person is lost who is found un-mutated and not under the
mutation; losses are shares of those found. A slice stands out where its people are lost more often than all
others, or missed more often un-mutated: the lower end of its share above the upper end of theirs, at a
confidence that holds for all slices and settings of a SUT together (Holm). The intervals of those that stand
out hold together too (Bonferroni).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adverse.analysis.detection_rates import best_scores
from adverse.analysis.detections import SutDetections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.analysis.score import Status
from adverse.curves.interval import Interval, holm, korn_graubard
from adverse.store.read import Store

DISTANCES_M = (0.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, math.inf)
HEIGHTS_PX = (0.0, 25.0, 50.0, 100.0, 200.0, math.inf)
KINDS = ("distance", "height", "place", "class", "log")
"""What people are sliced by besides what is annotated of them."""
PLACES = ("left third", "middle third", "right third")
MOST_LOGS = 30
"""With more of them, logs are no slices."""
MOST_VALUES = 12
"""Of an attribute; numbers with more are cut into quarters, texts with more are no slices."""
RISK = 0.05
BISECTIONS = 24

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Slice:
    """Some of the true objects: of which kind, which part of it, and who belongs to it (T,)."""

    by: str
    part: str
    members: Mask


def slices_of(store: Store) -> list[Slice]:
    """Return the slices that the data tell; whoever's distance is unknown is in no slice by distance."""
    truth, frames = store.truth, store.frames
    height = truth.boxes[:, 3] - truth.boxes[:, 1]
    found = [
        *_between("distance", distances_m(store), DISTANCES_M, "m"),
        *_between("height", height, HEIGHTS_PX, "px"),
    ]
    width = frames.cameras[truth.frame, 4]
    middle = (truth.boxes[:, 0] + truth.boxes[:, 2]) / 2
    found += [
        Slice("place", words, (3 * middle >= number * width) & (3 * middle < (number + 1) * width))
        for number, words in enumerate(PLACES)
    ]
    found += [Slice("class", name, truth.labels == number) for number, name in enumerate(store.targets)]
    taken = {*KINDS, *store.truth_attributes}
    for name, values in store.truth_attributes.items():
        by = name
        while by in KINDS or (by != name and by in taken):
            by += " (annotated)"
        taken.add(by)
        found += _by_attribute(by, np.array(values, np.str_))
    if len(frames.logs) <= MOST_LOGS:
        log = frames.log[truth.frame]
        found += [Slice("log", name, log == number) for number, name in enumerate(frames.logs)]
    return _telling(found)


MEMBERS = pa.schema(
    [
        ("frame", pa.dictionary(pa.int32(), pa.string())),
        ("object", pa.int32()),  # which of the frame's true objects, in the order of the data set
        *((name, pa.dictionary(pa.int32(), pa.string())) for name in ("slice", "part")),
    ]
)


def slice_members(store: Store) -> pa.Table:
    """Return who is in which slice; of a classifier's or segmenter's data, which images."""
    if store.task == "detection":
        frame, place, slices = store.truth.frame, store.truth.place, slices_of(store)
    else:
        frame = np.flatnonzero(store.frames.test)
        place, slices = np.zeros(len(frame), np.int64), _image_slices(store, frame)
    ids = pa.array(store.frames.ids, pa.string())
    tables = [MEMBERS.empty_table()]
    for one in slices:
        rows = np.flatnonzero(one.members)
        named = (pa.array([name] * len(rows), pa.string()).dictionary_encode() for name in (one.by, one.part))
        frames = pa.DictionaryArray.from_arrays(pa.array(frame[rows].astype(np.int32)), ids)
        tables.append(pa.table([frames, place[rows].astype(np.int32), *named], schema=MEMBERS))
    return pa.concat_tables(tables)


def _image_slices(store: Store, frame: NDArray[np.int64]) -> list[Slice]:
    """Return images by what they show and by log, where that tells them apart."""
    shown = np.array([store.categories_shown[row] or "" for row in frame.tolist()], np.str_)
    found = [Slice("class", str(name), shown == name) for name in np.unique(shown) if name]
    if len(store.frames.logs) <= MOST_LOGS:
        log = store.frames.log[frame]
        found += [Slice("log", name, log == number) for number, name in enumerate(store.frames.logs)]
    return _telling(found)


def _telling(slices: Iterable[Slice]) -> list[Slice]:
    """Return the slices that hold anybody, of the kinds that have more than one."""
    used = [one for one in slices if one.members.any()]
    counts = Counter(one.by for one in used)
    return [one for one in used if counts[one.by] > 1]


def distances_m(store: Store) -> NDArray[np.float64]:
    """Return how far each true object is from the camera on the ground, where a robot stops.

    Where that is not annotated: its depth, or NaN. Seen from a mast, the straight line would be longer, and a
    speed that rests on it too high.
    """
    truth, frames = store.truth, store.frames
    away = np.linalg.norm(truth.positions_m[:, :2] - frames.poses[truth.frame, :2, 3], axis=1)
    return np.where(np.isnan(away), store.truth_depths_m(), away)


def _by_attribute(by: str, values: NDArray[np.str_]) -> Iterator[Slice]:
    """Yield a slice for each value; for numbers of many values their quarters; nothing for many texts.

    Whoever has no value is in none of them.
    """
    parts = sorted(set(values.tolist()) - {""}, key=_numbers_first)
    if len(parts) <= MOST_VALUES:
        yield from (Slice(by, part, values == part) for part in parts)
        return
    numbers = np.array([_number(value) for value in values.tolist()])
    if np.isnan(numbers[values != ""]).any():
        return
    edges = np.nanquantile(numbers, (0, 0.25, 0.5, 0.75, 1))
    known = numbers[np.isfinite(numbers)]
    edges = np.unique(np.ceil(edges) if (known == np.floor(known)).all() else edges)
    words = _edge_words(edges, numbers)
    for (low, high), (lowest, highest) in zip(pairwise(edges.tolist()), pairwise(words), strict=True):
        last = high == edges[-1]
        members = (numbers >= low) & ((numbers <= high) if last else (numbers < high))
        yield Slice(by, f"{lowest} to {highest}", members)


def _edge_words(edges: NDArray[np.float64], numbers: NDArray[np.float64]) -> list[str]:
    """Return edges in as few digits as leave them apart and every number on its side of them."""
    words: list[str] = []
    for digits in range(3, 18):
        words = [f"{edge:.{digits}g}" for edge in edges.tolist()]
        read = np.array(words, np.float64)
        inner = numbers[:, None] >= edges[1:-1]
        if len(set(words)) == len(words) and ((numbers[:, None] >= read[1:-1]) == inner).all():
            break
    return [str(int(float(word))) if "e+" in word and abs(float(word)) < 1e15 else word for word in words]


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _numbers_first(value: str) -> tuple[float, str]:
    number = _number(value)
    return (math.inf if math.isnan(number) else number), value


def _between(by: str, values: NDArray[np.float64], edges: tuple[float, ...], unit: str) -> Iterator[Slice]:
    for low, high in pairwise(edges):
        words = f"{low:g} {unit} and more" if math.isinf(high) else f"{low:g} to {high:g} {unit}"
        yield Slice(by, words, (values >= low) & (values < high))


@dataclass(frozen=True, eq=False)
class FoundPeople:
    """Which true objects (T,) count under a setting, which are found, which were found un-mutated."""

    counted: Mask
    found: Mask
    before: Mask


def found_people(store: Store, detections: SutDetections) -> dict[str, FoundPeople]:
    """Return who is found under every setting at the SUT's operating point."""
    truth = store.truth
    score = operating_threshold(store, detections).score
    usable = {
        setting: detections.counted(setting)[truth.frame] & ~truth.ignore for setting in detections.settings
    }
    best = {
        setting: best_scores(matched, len(truth.frame)) for setting, matched in detections.settings.items()
    }
    seen = {setting: ~np.isnan(scores) & (scores >= score) for setting, scores in best.items()}
    baseline = detections.baseline
    return {
        setting: FoundPeople(mask, mask & seen[setting], mask & usable[baseline] & seen[baseline])
        for setting, mask in usable.items()
    }


def slice_rows(
    store: Store, detections: SutDetections, statuses: Mapping[str, Status]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return recall and losses of every slice under every setting, and the slices that stand out.

    Those that stand out come with the largest difference from all others first: under a mutation by who is
    lost, un-mutated by who is missed, as nobody can be lost who is never found.
    """
    slices, sure = slices_of(store), store.confidence
    log, logs = store.frames.log[store.truth.frame], len(store.frames.logs)
    rows: list[dict[str, Any]] = []
    compared: list[tuple[Counts, Counts, str, dict[str, Any]]] = []

    def by_log(mask: Mask) -> NDArray[np.int64]:
        return np.bincount(log[mask], minlength=logs)

    for setting, known in found_people(store, detections).items():
        lost = known.before & ~known.found
        for one in slices:
            people = by_log(known.counted & one.members)
            if not people.any():
                continue
            recall = korn_graubard(by_log(known.found & one.members), people, confidence=sure)
            heads = {"sut": detections.sut, "setting": setting, "group": store.groups[setting]}
            row = {
                **heads,
                "slice": one.by,
                "part": one.part,
                "status": statuses.get(setting, "ok"),
                "logs": int(np.count_nonzero(people)),
                "people": int(people.sum()),
                "recall": recall.value,
                "recall_interval": recall.plain(),
                "found_before": int((known.before & one.members).sum()),
                "lost": None,
            }
            if setting == detections.baseline:
                missed, rest = known.counted & ~known.found, known.counted & ~one.members
                inside = (by_log(missed & one.members), people)
                outside = (by_log(missed & rest), by_log(rest))
                compared.append((inside, outside, "missed", row | {"missed": korn_graubard(*inside).value}))
            elif row["found_before"]:
                inside = (by_log(lost & one.members), by_log(known.before & one.members))
                share = korn_graubard(*inside, confidence=sure)
                row |= {"lost": share.value, "lost_interval": share.plain()}
                outside = (by_log(lost & ~one.members), by_log(known.before & ~one.members))
                compared.append((inside, outside, "lost", row))
            rows.append(row)
    named = stand_out([pair[:2] for pair in compared], risk=1 - sure)
    outstanding = [
        {
            **row,
            "by": kind,
            f"{kind}_interval": found.inside.plain(),
            f"{kind}_elsewhere": found.outside.value,
            f"{kind}_elsewhere_interval": found.outside.plain(),
            "p": found.p,
        }
        for found, (*_, kind, row) in zip(named, compared, strict=True)
        if found is not None
    ]
    return rows, sorted(outstanding, key=lambda row: row[f"{row['by']}_elsewhere"] - row[row["by"]])


Counts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Hits and trials (L,), by log."""


class Outstanding(NamedTuple):
    """A rate above that of all others: both with intervals that hold among many, and the p of the claim."""

    p: float
    inside: Interval
    outside: Interval


def stand_out(pairs: Sequence[tuple[Counts, Counts]], *, risk: float = RISK) -> list[Outstanding | None]:
    """Tell for each rate (inside, outside) whether it is above that of all others, among all given together.

    The risk that any that is not is named is `risk` at most (Holm), and so is the risk that any interval, of
    those that were compared, misses its rate (Bonferroni).
    """
    doubts = [_doubt(*pair) for pair in pairs]
    some = [doubt for doubt in doubts if doubt is not None]
    named = iter(holm(some, alpha=risk))
    confidence = 1 - risk / max(2 * len(some), 1)
    return [
        Outstanding(doubt, *(korn_graubard(*counts, confidence=confidence) for counts in pair))
        if doubt is not None and next(named)
        else None
        for doubt, pair in zip(doubts, pairs, strict=True)
    ]


def _doubt(inside: Counts, outside: Counts) -> float | None:
    """Return the least risk at which the interval of one rate lies above that of another.

    1 where it never does; None where either has none.
    """
    if not all(np.count_nonzero(trials) > 1 for _, trials in (inside, outside)):
        return None
    if inside[0].sum() * outside[1].sum() <= outside[0].sum() * inside[1].sum():
        return 1.0

    def apart(risk: float) -> bool:
        low = korn_graubard(*inside, confidence=1 - risk).low
        high = korn_graubard(*outside, confidence=1 - risk).high
        return low is not None and high is not None and low > high

    if not apart(0.5):
        return 1.0
    least, most = -12.0, math.log10(0.5)  # powers of ten
    for _ in range(BISECTIONS):
        middle = (least + most) / 2
        least, most = (least, middle) if apart(10.0**middle) else (middle, most)
    return float(10.0**most)

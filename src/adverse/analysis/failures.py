"""Which failures and frames of a run are worth a look.

They are decided here and not on a page, so that every page and every script has the same ones.

A failure is a person whom a SUT finds on the clean image at `fpr_max` or less, and no more under a mutation.
The gallery has each person once - of a track only one frame, where the data tell who is who - and each log
twice at most, however many people, SUTs and mutations fail there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adverse.analysis.detection_rates import best_scores
from adverse.analysis.detections import SutDetections
from adverse.analysis.plain_metrics import threshold_at
from adverse.analysis.strengths import RECORDED, visual_changes
from adverse.store.read import Store
from adverse.types import Image

IMAGE_COLUMNS = ["sut", "setting", "frame", "score", "score_before", "found", "found_before"]
MOST_FAILURES = 60
PER_LOG = 2
UNDETECTABLE = 100.0
"""False positives per image that a person counts as costing whom no threshold detects any more. So of these,
too, the one who was found more easily before comes first."""
LEAST_CHANGE = 1.0
"""Grey levels; a change below this is as good as none."""
LEAST_VISUAL_CHANGE = 0.01
"""The same where visual change was measured."""
SURELY = 0.5
"""A score, or a share of all people with lower ones, from which a person was surely found."""
NEAR = 0.2
"""From this overlap on a detection points at a person, though it is no match."""


def sut_failures(store: Store, detections: SutDetections, required: pa.Table) -> list[dict[str, Any]]:
    """Return the people that a mutation costs a SUT, of each (mutation, log) the two worst, worst first.

    `required` is the table of this SUT: false positives per image that a person costs, before and after.
    `orders` is by how many powers of ten that rises; `after` is None where no threshold detects the person.
    `surer_than` is the share of all people found un-mutated whose scores were lower, `threshold` the score
    from which detections count at `fpr_max` (None: all do), `log_frame` the frame's place in its log.
    `overlap_after` is the most that such a detection overlaps the person (IoU): above 0 something is seen
    there, but the box is too far off. People at whom nothing points any more come first. `distance_m` is
    that from the camera on the ground, None where positions or poses are not known. Frames on which the SUT
    gave no answer show nothing of what it sees, and are none of these.
    """
    frames, truth, fpr_max = store.frames, store.truth, store.run.fpr_max
    rates = [required[name].to_numpy() for name in ("before", "after")]
    failed = np.flatnonzero((rates[0] <= fpr_max) & (rates[1] > fpr_max))
    failed = failed[_answered(store, detections, required.take(pa.array(failed)))]
    table, before, after = required.take(pa.array(failed)), rates[0][failed], rates[1][failed]
    images = max(1, int((~frames.test).sum()) or int(frames.test.sum()))
    orders = np.log10(np.clip(after, 1 / images, UNDETECTABLE)) - np.log10(np.maximum(before, 1 / images))
    person = _truth_rows(store, table)
    scores, surer = _scores_before(store, detections, person)
    log, who = frames.log[truth.frame[person]], store.truth_ids[person]
    names = {name: table[name].to_pylist() for name in table.column_names if name not in ("before", "after")}
    setting = np.unique(np.array(names["setting"], np.str_), return_inverse=True)[1]
    threshold = threshold_at(store, detections, fpr_max).plain()["score"]
    log_frame = places_in_logs(store)
    overlap = _overlaps_after(store, detections, names["setting"], person, threshold)
    camera = frames.poses[truth.frame[person], :2, 3]
    distance = np.linalg.norm(truth.positions_m[person, :2] - camera, axis=1)
    rank = np.lexsort((person, -surer, -orders, overlap >= NEAR))
    rank = rank[_first_of_each([setting[rank], log[rank], who[rank]], 1)]
    rank = rank[_first_of_each([setting[rank], log[rank]], PER_LOG)]
    return [
        {
            **{name: values[row] for name, values in names.items()},
            "log": frames.logs[log[row]],
            "log_frame": int(log_frame[truth.frame[person[row]]]),
            "person": int(who[row]),
            "before": float(before[row]),
            "after": _known(after[row]),
            "orders": float(orders[row]),
            "score_before": float(scores[row]),
            "surer_than": float(surer[row]),
            "threshold": threshold,
            "overlap_after": float(overlap[row]),
            "distance_m": _known(distance[row]),
            "height_px": float(truth.boxes[person[row], 3] - truth.boxes[person[row], 1]),
        }
        for row in rank.tolist()
    ]


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _truth_rows(store: Store, table: pa.Table) -> NDArray[np.int64]:
    """Return which true object each row (frame, object) is about."""
    truth = store.truth
    most = int(truth.place.max(initial=0)) + 1
    frame = pc.index_in(table["frame"], value_set=pa.array(store.frames.ids, pa.string())).to_numpy()
    known = truth.frame * most + truth.place
    order = np.argsort(known, kind="stable")
    wanted = frame.astype(np.int64) * most + table["object"].to_numpy()
    rows: NDArray[np.int64] = order[np.searchsorted(known[order], wanted)]
    return rows


def _answered(store: Store, detections: SutDetections, table: pa.Table) -> NDArray[np.bool_]:
    """Tell of each row (setting, frame) whether the SUT answered there, and did not fail."""
    frame = pc.index_in(table["frame"], value_set=pa.array(store.frames.ids, pa.string())).to_numpy()
    names = np.array(table["setting"].to_pylist(), np.str_)
    answered = np.zeros(len(names), np.bool_)
    for setting in dict.fromkeys(names.tolist()):
        mine = names == setting
        answered[mine] = detections.fault_free(setting)[frame[mine]]
    return answered


def _scores_before(
    store: Store, detections: SutDetections, person: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the un-mutated scores of people, and the share of all people found whose scores are lower."""
    truth = store.truth
    scores = best_scores(detections.settings[detections.baseline], len(truth.frame))
    counted = detections.counted(detections.baseline)[truth.frame] & ~truth.ignore
    found = np.sort(scores[counted & ~np.isnan(scores)])
    return scores[person], np.searchsorted(found, scores[person]) / max(1, len(found))


def _overlaps_after(
    store: Store,
    detections: SutDetections,
    settings: Sequence[str],
    person: NDArray[np.int64],
    threshold: float | None,
) -> NDArray[np.float64]:
    """Return the largest IoU of each person with a detection that counts, under its setting."""
    truth, most = store.truth, np.zeros(len(person))
    names = np.array(settings, np.str_)
    for setting in dict.fromkeys(settings):
        mine = np.flatnonzero(names == setting)
        answers = detections.settings[setting].answers
        row = np.searchsorted(answers.frame, truth.frame[person[mine]])
        count = answers.offsets[row + 1] - answers.offsets[row]
        of = np.repeat(np.arange(len(mine)), count)
        at = np.arange(count.sum()) + np.repeat(answers.offsets[row] - np.cumsum(count) + count, count)
        kept = answers.scores[at] >= (-np.inf if threshold is None else np.float32(threshold))
        kept &= answers.labels[at] == truth.labels[person[mine]][of]
        of, at = of[kept], at[kept]
        np.maximum.at(
            most, mine[of], _iou(answers.boxes[at].astype(np.float64), truth.boxes[person[mine[of]]])
        )
    return most


def _iou(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the overlap over the union of pairs of boxes (N,4)."""
    low, high = np.maximum(first[:, :2], second[:, :2]), np.minimum(first[:, 2:], second[:, 2:])
    shared = np.maximum(high - low, 0).prod(axis=1)
    areas = [(box[:, 2:] - box[:, :2]).prod(axis=1) for box in (first, second)]
    overlap: NDArray[np.float64] = shared / np.maximum(
        areas[0] + areas[1] - shared, np.finfo(np.float64).tiny
    )
    return overlap


def places_in_logs(store: Store) -> NDArray[np.int64]:
    """Return the place of every test frame among those of its log; -1 for other frames."""
    frames = store.frames
    rows = np.flatnonzero(frames.test)
    place = np.full(len(frames.ids), -1, np.int64)
    order = rows[np.argsort(frames.log[rows], kind="stable")]
    first = np.searchsorted(frames.log[order], frames.log[order], side="left")
    place[order] = np.arange(len(order)) - first
    return place


def _first_of_each(keys: Sequence[NDArray[np.int64]], most: int) -> NDArray[np.int64]:
    """Return where, in order, the first rows of each combination of keys stand, `most` of them each.

    >>> _first_of_each([np.array([7, 7, 3, 7, 3])], 2)
    array([0, 1, 2, 4])
    """
    order = np.lexsort(tuple(keys))
    changes = [np.diff(key[order], prepend=key[order][:1]) != 0 for key in keys]
    group = np.cumsum(np.any(changes, axis=0))
    within = np.arange(len(order)) - np.searchsorted(group, group, side="left")
    return np.sort(order[within < most])


def failure_rows(store: Store, failures: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the failures to show: every (SUT, mutation) in turn has its worst one, a person comes once.

    People at whom no detection points any more come before those whose box is too far off. Worst is the
    largest fall for the least visible change. Where the study did not have that measured, mild
    mutations come before severe ones, then the largest fall; of equals, who was found more surely before.
    """
    measured = visual_changes(store)
    queues: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in failures:
        numbers = measured.get((row["setting"], row["frame"]), {})
        change = next((value for name, value in numbers.items() if name.startswith(RECORDED)), None)
        more = {"group": store.groups[row["setting"]], "visual_change": change}
        queues.setdefault((row["sut"], row["setting"]), []).append({**row, **more})
    for queue in queues.values():
        queue.sort(key=_rank, reverse=True)  # the worst last: it is taken from there
    rows: list[dict[str, Any]] = []
    shown: set[tuple[str, int]] = set()
    of_log: dict[str, int] = {}
    while queues and len(rows) < MOST_FAILURES:
        for key in sorted(queues, key=lambda key: _rank(queues[key][-1])):
            queue = queues[key]
            while queue:
                row = queue.pop()
                who = (row["log"], row["person"])
                if who not in shown and of_log.get(row["log"], 0) < PER_LOG:
                    shown.add(who)
                    of_log[row["log"]] = of_log.get(row["log"], 0) + 1
                    rows.append(row)
                    break
        queues = {key: queue for key, queue in queues.items() if queue}
    return rows[:MOST_FAILURES]


def _rank(row: Mapping[str, Any]) -> tuple[bool, bool, float, float, str, int]:
    """Return what failures are sorted by, the worst first."""
    change = row["visual_change"]
    fall = row["orders"] if change is None else row["orders"] / max(change, LEAST_VISUAL_CHANGE)
    severe = change is None and row["group"] != "mild"
    return row["overlap_after"] >= NEAR, severe, -fall, -row["surer_than"], row["frame"], row["object"]


def most_telling(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the failure that needs no explanation: the largest person of those who were surely found.

    At whom no detection points any more, under a mild mutation where there is such; None without failures.
    """

    def plainness(row: Mapping[str, Any]) -> tuple[bool, bool, bool, float]:
        surely = row["score_before"] >= SURELY or row["surer_than"] >= SURELY
        return row["overlap_after"] < NEAR, surely, row["group"] == "mild", row["height_px"]

    return max(rows, key=plainness, default=None)


def most_telling_image(
    objects: pa.Table, mild: Sequence[str], *, unanswered: Collection[tuple[str, str, str]] = ()
) -> dict[str, Any] | None:
    """Return the image whose score falls most under a mutation, of those whose class is lost where any is.

    `objects` holds images of a classifier or segmenter, `mild` names the mild settings, which come first: a
    failure under little change says most. Images (sut, setting, frame) on which the SUT failed come last, as
    they do not show what it sees. None where no score falls.
    """
    rows = objects.filter(pc.is_valid(objects["score_before"]))
    found = [] if not len(rows) else rows.select(IMAGE_COLUMNS).to_pylist()
    kept = [row for row in found if row["found_before"] is not False and row["found"] is not True]

    falls = [row["score_before"] - (row["score"] or 0.0) for row in kept]
    largest: dict[str, float] = {}
    for row, fall in zip(kept, falls, strict=True):  # scores of two SUTs need not be of one kind
        largest[row["sut"]] = max(fall, largest.get(row["sut"], 0.0))
    order = [
        (_image(row) not in unanswered, row["setting"] in mild, fall / largest[row["sut"]], -number)
        for number, (row, fall) in enumerate(zip(kept, falls, strict=True))
        if fall > 0
    ]
    return kept[-max(order)[-1]] if order else None


def _image(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["sut"], row["setting"], row["frame"]


def by_visible_change(rows: Sequence[Mapping[str, Any]], moved: Sequence[float]) -> list[int]:
    """Return the order of failures by their fall over what can be seen of the mutation, the largest first.

    People at whom a detection still points come last. `moved` is how far pixels moved (`pixels_moved`), which
    decides where visual change was not measured.
    """

    def fall(number: int) -> float:
        row, change = rows[number], rows[number]["visual_change"]
        least = max(moved[number], LEAST_CHANGE) / 255 if change is None else max(change, LEAST_VISUAL_CHANGE)
        return float(row["orders"]) / least

    return sorted(
        range(len(rows)), key=lambda number: (rows[number]["overlap_after"] >= NEAR, -fall(number), number)
    )


def pixels_moved(before: Image, after: Image) -> float:
    """Return how far pixels moved, in grey levels: the root of the mean square.

    >>> pixels_moved(np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 5, np.uint8))
    5.0
    """
    difference = before.astype(np.float32) - after.astype(np.float32)
    return float(np.sqrt(np.mean(difference**2)))


def typical_frame(store: Store) -> str:
    """Return the test frame with the true object at the upper quartile of heights, or the first one."""
    truth = store.truth
    mine = np.flatnonzero(store.frames.test[truth.frame] & ~truth.ignore)
    if not len(mine):
        return store.frames.ids[int(np.flatnonzero(store.frames.test)[0])]
    height = (truth.boxes[:, 3] - truth.boxes[:, 1])[mine]
    return store.frames.ids[int(truth.frame[mine[np.argsort(height, kind="stable")[len(mine) * 3 // 4]]])]

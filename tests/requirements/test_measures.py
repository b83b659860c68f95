"""What is measured of answers, against slow counts of the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from adverse.benchmarks.ap import coco_family
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from adverse.levels.outcomes import standardize
from adverse.requirements.measures import (
    ClassifierAnswers,
    DetectorAnswers,
    MeasureTally,
    Rows,
    SegmenterAnswers,
)
from adverse.store.tables import Answers, PixelCounts, RankedClasses
from levels.scenes import random_scene

BASELINE, CHANGED = "identity", "changed"
ROWS = Rows(np.array([0, 1, 1, 3, 7, 11]), np.array([0, 0, 1, 1, 1, 0]), (CHANGED, BASELINE))


UNCHANGED = SimpleNamespace(baseline=SimpleNamespace(id=BASELINE))


def one_by_one(tally: MeasureTally, rows: int) -> np.ndarray[Any, Any]:
    return tally.under(np.eye(rows))


def detected(seed: int, **level: float | None) -> tuple[DetectorAnswers, Any]:
    answers, truth, frames = random_scene(seed, ties=False)
    others, _, _ = random_scene(seed + 1000, ties=False)
    area = (truth.boxes[:, 2:] - truth.boxes[:, :2]).prod(axis=1)
    store: Any = SimpleNamespace(
        answers=lambda _sut: {BASELINE: answers, CHANGED: others},
        truth=type(truth)(**{**vars(truth), "area": area, "crowd": truth.ignore}),
        frames=frames,
        targets=("person",),
        run=UNCHANGED,
    )
    given = {"sensitivity": None, "score": None, **level}
    return DetectorAnswers(store, "sut", **given), store


def boxes_of(answers: Answers, frame: int, threshold: float) -> list[tuple[float, list[float]]]:
    mine = slice(*answers.offsets[frame : frame + 2])
    rows = zip(answers.scores[mine].tolist(), answers.boxes[mine].tolist(), strict=True)
    return sorted((row for row in rows if row[0] >= threshold), key=lambda row: -row[0])


def overlap(one: list[float], other: list[float]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return width * height / (areas - width * height)


def paired(found: list[tuple[float, list[float]]], known: list[list[float]]) -> int:
    """Count matches: the surest box first takes the one it overlaps most, from one half up."""
    free, pairs = list(range(len(known))), 0
    for _, box in found:
        best = max(free, key=lambda place: overlap(box, known[place]), default=None)
        if best is not None and overlap(box, known[best]) >= 0.5:
            free.remove(best)
            pairs += 1
    return pairs


@pytest.mark.parametrize("seed", range(8))
def test_alike_is_the_f1_between_two_answers(seed: int) -> None:
    sut, store = detected(seed, score=0.3)
    answers = store.answers("sut")
    values = one_by_one(sut.alike(ROWS), len(ROWS.frame))
    for row, (frame, number) in enumerate(zip(ROWS.frame.tolist(), ROWS.setting.tolist(), strict=True)):
        plain = boxes_of(answers[BASELINE], frame, 0.3)
        found = boxes_of(answers[ROWS.settings[number]], frame, 0.3)
        whole = len(plain) + len(found)
        if not whole:
            assert np.isnan(values[row])
            continue
        wanted = 2 * paired(found, [box for _, box in plain]) / whole
        assert values[row] == pytest.approx(wanted)
        if number == 1 and all(box[2] > box[0] for _, box in plain):
            assert values[row] == 1  # an answer is like itself


@pytest.mark.parametrize("seed", range(8))
def test_recall_and_f1_are_counted_object_by_object(seed: int) -> None:
    sut, store = detected(seed, score=0.3)
    truth = store.truth
    recall, f1 = (one_by_one(sut.correct(name, ROWS), len(ROWS.frame)) for name in ("recall", "f1"))
    for row, (frame, number) in enumerate(zip(ROWS.frame.tolist(), ROWS.setting.tolist(), strict=True)):
        mine = truth.frame == frame
        if truth.ignore[mine].any():
            continue  # what ignored objects do is tested with the matching
        found = boxes_of(store.answers("sut")[ROWS.settings[number]], frame, 0.3)
        hits = paired(found, truth.boxes[mine].tolist())
        if mine.any():
            assert recall[row] == pytest.approx(hits / mine.sum())
        else:
            assert np.isnan(recall[row])
        if mine.any() or found:
            assert f1[row] == pytest.approx(2 * hits / (mine.sum() + len(found)))


@pytest.mark.parametrize(("measure", "variant"), [("ap", "AP"), ("ap50", "AP50")])
@pytest.mark.parametrize("seed", range(4))
def test_average_precision_is_that_of_the_rows_as_images(seed: int, measure: str, variant: str) -> None:
    sut, store = detected(seed)
    truth = store.truth
    true, found = [], []
    for row, (frame, number) in enumerate(zip(ROWS.frame.tolist(), ROWS.setting.tolist(), strict=True)):
        true += [(row, place) for place in np.flatnonzero(truth.frame == frame)]
        answers = store.answers("sut")[ROWS.settings[number]]
        found += [(row, score, box) for score, box in boxes_of(answers, frame, -np.inf)]
    rows, places = np.array(true, np.int64).reshape(-1, 2).T
    objects = TrueObjects(
        rows,
        truth.boxes[places],
        truth.labels[places],
        truth.area[places],
        truth.ignore[places],
        truth.crowd[places],
    )
    boxes = np.array([box for _, _, box in found]).reshape(-1, 4)
    scores = np.array([score for _, score, _ in found])
    answer = DetectedObjects(
        np.array([row for row, _, _ in found], np.int64), boxes, np.zeros(len(found), np.int64), scores
    )
    wanted = coco_family(objects, answer, images=len(ROWS.frame), classes=1).value(variant)
    value = sut.correct(measure, ROWS).under(np.ones((1, len(ROWS.frame))))[0]
    assert value == pytest.approx(wanted, nan_ok=True)


def test_a_sensitivity_is_a_rate_of_false_alarms() -> None:
    sut, _ = detected(3, sensitivity=0.5)
    everything, _ = detected(3)
    rows = Rows(np.arange(12), np.zeros(12, np.int64), (BASELINE,))
    assert everything.threshold == -np.inf
    strict, _ = detected(3, sensitivity=1e-9)
    assert strict.threshold > sut.threshold > everything.threshold
    assert sut.source == "test"
    assert standardize(np.array([0.9], np.float32), 10, np.array([0.05])).thresholds[0] > np.float32(0.9)
    found = [one.correct("recall", rows).under(np.ones((1, 12)))[0] for one in (strict, sut, everything)]
    assert found == sorted(found)


def test_a_classifier_is_right_alike_or_silent() -> None:
    frames = SimpleNamespace(ids=tuple("abcd"))
    answers = {
        BASELINE: [["cat", "dog"], ["dog", "cat"], [], ["cow"]],
        CHANGED: [["cat"], ["cat", "dog"], ["cat"], []],
    }
    ranked = {
        name: RankedClasses(np.arange(4), np.zeros(4, np.int8), best, [[0.5] * len(row) for row in best])
        for name, best in answers.items()
    }
    store: Any = SimpleNamespace(
        ranked=lambda _sut: ranked,
        run=UNCHANGED,
        categories_shown=("cat", "dog", "cat", "cow"),
        frames=frames,
    )
    sut = ClassifierAnswers(store, "sut")
    rows = Rows(np.arange(4), np.zeros(4, np.int64), (CHANGED,))
    assert one_by_one(sut.correct("top1", rows), 4).tolist() == [1, 0, 1, 0]
    assert one_by_one(sut.correct("top5", rows), 4).tolist() == [1, 1, 1, 0]
    assert one_by_one(sut.alike(rows), 4).tolist() == [1, 0, 0, 0]


def test_a_segmenter_is_counted_pixel_by_pixel() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (3, 4, 5))
    said = {name: rng.integers(0, 3, (3, 4, 5)).astype(np.uint8) for name in (BASELINE, CHANGED)}
    counts = {}
    for name, labels in said.items():
        table = np.zeros((3, 2, 3), np.int64)
        for frame, t, s in zip(
            np.repeat(np.arange(3), 20), truth.ravel(), labels.reshape(3, -1).ravel(), strict=True
        ):
            table[frame, t, s] += 1
        counts[name] = PixelCounts(np.array([2, 0, 1]), np.zeros(3, np.int8), table[[2, 0, 1]])
    maps: dict[str, dict[str, bytes | None]] = {
        name: {str(n): cv2.imencode(".png", one)[1].tobytes() for n, one in enumerate(labels)}
        for name, labels in said.items()
    }
    maps[CHANGED]["2"] = None  # it failed there
    store: Any = SimpleNamespace(
        statuses=lambda _sut: {},
        pixel_counts=lambda _sut: counts,
        label_maps=lambda _sut: maps,
        run=UNCHANGED,
        pixel_classes=("dark", "light"),
        frames=SimpleNamespace(ids=("0", "1", "2")),
    )
    sut = SegmenterAnswers(store, "sut")
    rows = Rows(np.arange(3), np.zeros(3, np.int64), (CHANGED,))
    right = (truth == said[CHANGED]).reshape(3, -1).mean(axis=1)
    assert one_by_one(sut.correct("pixel_accuracy", rows), 3) == pytest.approx(right)
    same = (said[BASELINE] == said[CHANGED]).reshape(3, -1).mean(axis=1)
    assert one_by_one(sut.alike(rows), 3) == pytest.approx([same[0], same[1], 0])
    unions = [
        ((truth == c) & (said[CHANGED] == c)).sum() / ((truth == c) | (said[CHANGED] == c)).sum()
        for c in (0, 1)
    ]
    assert sut.correct("mean_iou", rows).under(np.ones((1, 3)))[0] == pytest.approx(np.mean(unions))

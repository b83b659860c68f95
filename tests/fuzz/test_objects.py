"""Verdicts about objects: each kind by a case made for it, what is forgiven, and overlaps by a slow loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.fuzz.objects import (
    ObjectVerdict,
    Sightings,
    View,
    seen_by_detector,
    seen_by_segmenter,
    verdicts_on,
    view_of,
)
from adverse.fuzz.scoring import Judge, judge_of
from adverse.semantic import Mutated, Recipe, Scene, apply
from adverse.types import Detections, LabelMap
from drawn_scenes import BUILDING, CAR, CLASSES, PERSON, ROAD, resources_of, street, with_object

FIRST, SECOND, ADDED = CAR * 1000 + 1, CAR * 1000 + 2, CAR * 1000 + 3
SOLID = np.ones((40, 60), np.bool_)
BOX = {FIRST: (20, 90, 80, 130), SECOND: (200, 90, 260, 130)}
JUDGE = judge_of(CLASSES, CLASSES)


def base() -> Scene:
    scene = with_object(street(), SOLID, (20, 90), instance=FIRST)
    return with_object(scene, SOLID, (200, 90), instance=SECOND)


def added(tmp_path: Path, x: int) -> tuple[Scene, Mutated]:
    """Add a car 60 pixels wide at x, 100: how much of the second one is hidden depends on x."""
    donor = with_object(street("donor"), SOLID, (x, 100), instance=CAR * 1000 + 1)
    before = base()
    resources = resources_of([donor], tmp_path)
    return before, apply(Recipe("add_car", before.id, f"donor#{FIRST}"), before, resources)


def boxes(*given: tuple[int, int, int, int], score: float = 0.9) -> Detections:
    return Detections(np.array(given, np.float64).reshape(-1, 4), [score] * len(given))


def detected(view: View, answer: Detections, threshold: float = 0.5) -> Sightings:
    return seen_by_detector(view, answer, ["car"] * len(answer), ["car"], threshold)


def judged(before: Scene, made: Mutated, was: Detections, now: Detections) -> list[tuple[str, int | None]]:
    view = view_of(made, before, remnant_share=0.25)
    seen = detected(View(before), was), detected(view, now)
    verdicts = verdicts_on(made, before, *seen, visible_share=0.5, task="detection")
    assert all(ObjectVerdict.read(verdict.plain()) == verdict for verdict in verdicts)
    return [(verdict.kind, verdict.instance) for verdict in verdicts]


BOTH = (BOX[FIRST], BOX[SECOND])
NEW = (100, 100, 160, 140)


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        ((*BOTH, NEW), []),
        (BOTH, [("missed", ADDED)]),
        ((*BOTH, (100, 100, 160, 118)), [("missed", ADDED)]),  # less than half of it
        ((BOX[FIRST], NEW), [("lost", SECOND)]),
        ((*BOTH, NEW, (290, 10, 310, 50)), [("phantom", None)]),
        ((*BOTH, NEW, (110, 105, 150, 135)), []),  # a second box on the car: wrong, but something is there
        ((*BOTH, NEW, (0, 150, 20, 160)), []),  # was there before
        ((BOX[FIRST],), [("missed", ADDED), ("lost", SECOND)]),
    ],
)
def test_each_verdict_of_a_detector(
    tmp_path: Path, now: tuple[tuple[int, int, int, int], ...], wanted: list[tuple[str, int | None]]
) -> None:
    before, made = added(tmp_path, 100)
    assert judged(before, made, boxes(*BOTH, (2, 148, 22, 160)), boxes(*now)) == wanted


def test_what_was_not_found_before_cannot_be_lost_and_scores_below_the_threshold_find_nothing(
    tmp_path: Path,
) -> None:
    before, made = added(tmp_path, 100)
    assert judged(before, made, boxes(BOX[FIRST]), boxes(BOX[FIRST], NEW)) == []
    faint = boxes(*BOTH, NEW, score=0.4)
    wanted = [("missed", ADDED), ("lost", FIRST), ("lost", SECOND)]
    assert judged(before, made, boxes(*BOTH), faint) == wanted


def test_one_box_finds_one_object_and_another_class_none(tmp_path: Path) -> None:
    twin = with_object(base(), SOLID, (30, 90), instance=ADDED)  # over most of the first
    seen = detected(View(twin), boxes((20, 90, 90, 130)))
    assert sum(value >= 0.5 for value in seen.overlap.values()) == 1
    before, _ = added(tmp_path, 100)
    other = seen_by_detector(View(before), boxes(BOX[FIRST]), ["person"], ["car", "person"], 0.5)
    assert other.overlap[FIRST] == 0
    assert other.phantoms == (), "something is there, though no person"


@pytest.mark.parametrize(
    ("x", "visible", "lost"),
    [(245, 0.8125, True), (221, 0.5125, True), (212, 0.4, False), (201, 0.2625, False)],
)
def test_what_is_mostly_hidden_may_be_lost(
    tmp_path: Path,
    x: int,
    visible: float,
    lost: bool,  # noqa: FBT001
) -> None:
    """The added car covers 30 of the 40 rows of the second one, from column x on."""
    before, made = added(tmp_path, x)
    share = made.scene.things[SECOND].pixels / before.things[SECOND].pixels
    assert share == pytest.approx(visible)
    verdicts = judged(before, made, boxes(*BOTH), boxes(BOX[FIRST], (x, 100, x + 60, 140)))
    assert (("lost", SECOND) in verdicts) == lost
    view = view_of(made, before, remnant_share=0.3)
    assert (SECOND in view.ignored) == (share < 0.3)
    truth = made.scene.truth(["car"], ignored=view.ignored)
    assert truth.ignore.sum() == len(view.ignored)
    assert SECOND in view.extents, "a box around all of it finds it too"
    whole = judged(before, made, boxes(*BOTH), boxes(*BOTH, (x, 100, x + 60, 140)))
    assert whole == []


def answer_of(scene: Scene) -> NDArray[np.uint8]:
    """What a segmenter says that is right everywhere."""
    return scene.labels.astype(np.uint8).copy()


def segmented(view: View, labels: NDArray[np.uint8], judge: Judge = JUDGE) -> Sightings:
    return seen_by_segmenter(view, LabelMap(labels), judge)


def test_overlaps_of_a_segmenter_are_those_of_a_slow_loop(tmp_path: Path) -> None:
    before, made = added(tmp_path, 221)
    view = view_of(made, before, remnant_share=0.25)
    rng = np.random.default_rng(4)
    said = answer_of(made.scene)
    said[rng.random(said.shape) < 0.3] = CAR
    said[rng.random(said.shape) < 0.2] = ROAD
    seen = segmented(view, said)
    for instance, thing in made.scene.things.items():
        right = beside = 0
        x0, y0, x1, y1 = thing.box
        for row in range(said.shape[0]):
            for column in range(said.shape[1]):
                own = made.scene.instances[row, column] == instance
                right += own and said[row, column] == CAR
                near = y0 - 5 <= row < y1 + 5 and x0 - 7 <= column < x1 + 7
                if near and said[row, column] == CAR and made.scene.labels[row, column] != CAR:
                    beside += 1
        area = thing.pixels + (beside if instance == ADDED else 0)
        assert seen.overlap[instance] == pytest.approx(right / area)
    assert segmented(view, answer_of(made.scene)).overlap == dict.fromkeys(made.scene.things, 1.0)


@pytest.mark.parametrize(
    ("left", "kinds"), [(0.6, []), (0.3, []), (0.2, ["missed", "lost"]), (0.0, ["missed", "lost"])]
)
def test_verdicts_of_a_segmenter_and_the_doubt_it_is_given(
    tmp_path: Path, left: float, kinds: list[str]
) -> None:
    """It labels a share of the rows of the added and of the first car right."""
    before, made = added(tmp_path, 100)
    said = answer_of(made.scene)
    for box in (BOX[FIRST], NEW):
        said[box[1] + round(left * 40) : box[3], box[0] : box[2]] = ROAD
    view = view_of(made, before, remnant_share=0.25)
    seen = segmented(View(before), answer_of(before)), segmented(view, said)
    verdicts = verdicts_on(made, before, *seen, visible_share=0.5, task="segmentation")
    assert [verdict.kind for verdict in verdicts] == kinds


def test_phantoms_of_a_segmenter(tmp_path: Path) -> None:
    before, made = added(tmp_path, 100)
    said = answer_of(made.scene)
    said[20:30, 280:300] = PERSON  # of buildings: one that appeared
    said[85:95, 80:90] = CAR  # touches the first car: its edge
    said[140:143, 30:33] = CAR  # too small
    view = view_of(made, before, remnant_share=0.25)
    seen = segmented(view, said)
    assert seen.phantoms == (("person", (280, 20, 300, 30)),)
    clean = segmented(View(before), answer_of(before))
    (verdict,) = verdicts_on(made, before, clean, seen, visible_share=0.5, task="segmentation")
    assert (verdict.kind, verdict.words) == ("phantom", "a person appeared where there is none")
    assert verdicts_on(made, before, seen, seen, visible_share=0.5, task="segmentation") == ()
    assert Sightings.read(seen.plain()) == seen


def test_a_phantom_of_the_original_is_none_of_its_mirror(tmp_path: Path) -> None:
    before = base()
    made = apply(Recipe("mirror_scene", before.id), before, resources_of([before], tmp_path))
    said = answer_of(before)
    said[20:30, 280:300] = PERSON
    was, now = segmented(View(before), said), segmented(View(made.scene), said[:, ::-1].copy())
    assert verdicts_on(made, before, was, now, visible_share=0.5, task="segmentation") == ()
    assert len(verdicts_on(made, before, now, now, visible_share=0.5, task="segmentation")) == 1


def test_objects_judged_as_background_are_no_objects(tmp_path: Path) -> None:
    before, made = added(tmp_path, 100)
    judge = judge_of({**CLASSES, BUILDING: "background", CAR: "background"}, {0: "background", 1: "road"})
    said = np.where(made.scene.labels == ROAD, 1, 0).astype(np.uint8)
    assert segmented(view_of(made, before, remnant_share=0.25), said, judge) == Sightings()

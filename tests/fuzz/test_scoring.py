"""Scores against slow counting, bins at their edges, and the published scorer's flaw."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adverse.data.cityscapes_truth import PIXEL_CLASSES
from adverse.fuzz.scoring import BINS, COMPAT_IGNORED, EVALUATION, Score, bin_of, drop_of, judge_of

FACTS = Path(__file__).parents[3] / "shared" / "data" / "cityscapes_label_facts" / "labels.json"
NAMES = {0: "road", 1: "car", 2: "sky", 3: "person"}


@given(
    arrays(np.uint8, (5, 7), elements=st.sampled_from([0, 7, 23, 24, 26, 29])),
    arrays(np.uint8, (5, 7), elements=st.integers(0, 5)),
    st.booleans(),
)
def test_scores_are_counts(true: np.ndarray, said: np.ndarray, compat: bool) -> None:  # noqa: FBT001
    ignored = COMPAT_IGNORED if compat else frozenset()
    right = judged = 0
    for number, label in zip(true.ravel().tolist(), said.ravel().tolist(), strict=True):
        name = PIXEL_CLASSES.get(number)
        if name is None or name in ignored:
            continue
        judged += 1
        right += NAMES.get(label) == name
    assert judge_of(PIXEL_CLASSES, NAMES, ignored=ignored).score(true, said) == Score(right, judged)


def test_the_published_scorer_never_looks_at_cars() -> None:
    # Their maps hold trainIds; pixels whose trainId equals the labelId of an evaluation class are left out.
    assert {"traffic sign", "vegetation", "person", "rider", "car", "motorcycle"} == COMPAT_IGNORED
    judge = judge_of(PIXEL_CLASSES, NAMES, ignored=COMPAT_IGNORED)
    road_seen_as_car = judge.score(np.full((2, 2), 7), np.full((2, 2), 1))
    car_not_seen = judge.score(np.full((2, 2), 26), np.full((2, 2), 0))
    assert (road_seen_as_car, car_not_seen) == (Score(0, 4), Score(0, 0))
    assert car_not_seen.percent is None


@pytest.mark.skipif(not FACTS.exists(), reason="the label facts are not on this machine")
def test_the_evaluation_classes_are_those_of_cityscapes() -> None:
    facts = [row for row in json.loads(FACTS.read_text()) if not row["ignoreInEval"]]
    facts.sort(key=lambda row: row["trainId"])
    assert {row["name"]: row["id"] for row in facts} == EVALUATION
    assert [row["trainId"] for row in facts] == list(range(19))


@given(st.floats(-100, 100))
def test_every_inconsistency_is_in_one_bin(drop: float) -> None:
    paper = {"moderate": (1, 5), "significant": (5, 10), "extreme": (10, 101)}
    assert list(paper) == list(BINS)
    holding = [name for name, (low, high) in paper.items() if low <= drop < high]
    assert ([bin_of(drop)] if drop >= 1 else []) == holding


def test_a_drop_needs_both_scores() -> None:
    assert drop_of(Score(0, 0), Score(1, 2)) is None
    assert drop_of(Score(1, 2), Score(3, 4)) == -25.0

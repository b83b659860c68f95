"""Flicker, gaps and first sights: closed forms on drawn tracks, and a slow linker as the witness of ours."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.levels import contract
from adverse.levels.context import Context, LevelInput, level_input
from adverse.levels.match import match_detections
from adverse.levels.tracks import (
    LINK_IOU,
    distance_at_first,
    ever_found,
    flicker,
    identities,
    linked,
    longest_gap,
    stable_range,
    time_to_first,
)
from adverse.plugins import built_in
from adverse.store.tables import Answers, Frames, TruthTable

STEP_S = 0.5
PEOPLE = {
    "steady": "1111111111",
    "flickers": "1011010111",
    "late": "0000111111",
    "lost": "1100000000",
    "never": "0000000000",
}
"""Whether each of five people is found, frame by frame."""


def _given(*, ids: bool, shuffle: bool = False, placed: bool = False) -> LevelInput:
    """Return two logs, equal but for their names, in which five people walk to the right.

    With `placed` the camera drives at 1 m a frame towards all of them, who stand 20 m from its first place.
    """
    frames, logs = 10, 2
    boxes, frame, who, found_boxes, counts = [], [], [], [], []
    for at in range(frames * logs):
        place, seen = at % frames, []
        order = list(enumerate(PEOPLE.values()))
        for number, pattern in reversed(order) if shuffle and at % 2 else order:
            box = [10 + 60 * number + 2 * place, 10, 40 + 60 * number + 2 * place, 60]
            boxes.append(box)
            frame.append(at)
            who.append(7 + number)
            if pattern[place] == "1":
                seen.append(box)
        found_boxes += seen
        counts.append(len(seen))
    n, found = len(boxes), len(found_boxes)
    truth = TruthTable(
        np.array(frame, np.int64),
        np.array(boxes, np.float64),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        np.tile([20.0, 0, 0] if placed else [np.nan] * 3, (n, 1)),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.zeros(n, np.bool_),
        ids=np.array(who, np.int64) if ids else np.arange(n),
    )
    answers = Answers(
        np.arange(frames * logs),
        np.zeros(frames * logs, np.int8),
        np.concatenate([[0], np.cumsum(counts)]),
        np.array(found_boxes, np.float32),
        np.full(found, 0.9, np.float32),
        np.zeros(found, np.int64),
        np.full(found, np.nan, np.float32),
    )
    times = np.tile(np.arange(frames) * STEP_S, logs)
    names = tuple(map(str, range(frames * logs)))
    log = np.repeat(np.arange(logs), frames)
    poses = np.full((len(names), 4, 4), np.nan)
    if placed:
        poses[:] = np.eye(4)
        poses[:, 0, 3] = np.tile(np.arange(frames), logs)
    table = Frames(
        names,
        ("a", "b"),
        log,
        np.ones(len(names), np.bool_),
        poses,
        np.full((len(names), 7), np.nan),
        times,
    )
    context = Context(table, truth, np.full(n, np.nan))
    counted = np.ones(len(names), np.bool_)
    return level_input(context, match_detections(answers, truth), np.array([0.5], np.float32), counted)


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "linked"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_steady_flickering_late_lost_and_never(ids: bool, shuffle: bool) -> None:  # noqa: FBT001
    given = _given(ids=ids, shuffle=shuffle)
    assert len(np.unique(identities(given.truth, given.frames))) == 10
    # of five people four are found; one is lost and found again three times
    assert flicker(given).total.tolist() == [3, 3]
    assert flicker(given).weight.tolist() == [4, 4]
    # steady 0, flickers two frames from sight to sight, late 0, lost from frame 1 to the end, frame 9
    assert longest_gap(given).total.tolist() == pytest.approx([(2 + 8) * STEP_S] * 2)
    # late: 4 frames; never: all 9 steps that it is there
    assert time_to_first(given).total.tolist() == pytest.approx([(4 + 9) * STEP_S] * 2)
    assert (ever_found(given).total / ever_found(given).weight).tolist() == pytest.approx([0.8, 0.8])


def test_a_log_without_ids_is_linked_beside_one_that_has_them() -> None:
    given, without = _given(ids=True), _given(ids=False)
    second = given.frames.log[given.truth.frame] == 1
    assert given.truth.ids is not None
    assert without.truth.ids is not None
    ids = np.where(second, 1000 + without.truth.ids, given.truth.ids)
    context = Context(given.frames, replace(given.truth, ids=ids), np.full(len(ids), np.nan))
    mixed = replace(given, context=context)
    assert len(np.unique(identities(mixed.truth, mixed.frames))) == 10
    for metric in (flicker, longest_gap, time_to_first, ever_found):
        assert metric(mixed).total.tolist() == pytest.approx(metric(given).total.tolist())


def test_distances_at_first_sight_and_of_stable_sight() -> None:
    given = _given(ids=True, placed=True)
    # 20 m in frame 0, 11 m in frame 9; steady, flickers and lost are found at 20 m, late at 16
    assert distance_at_first(given).total.tolist() == pytest.approx([20 + 20 + 16 + 20] * 2)
    assert distance_at_first(given).weight.tolist() == [4, 4]
    # steady from 20 m on, flickers (found in frames 7 to 9) from 13, late from 16, the others never
    assert stable_range(given).total.tolist() == pytest.approx([20 + 13 + 16 + 0 + 0] * 2)
    assert stable_range(given).weight.tolist() == [5, 5]
    nowhere = _given(ids=True)
    assert not distance_at_first(nowhere).weight.any()
    assert not stable_range(nowhere).weight.any()


def _overlap(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if (sides <= 0).any():
        return 0.0
    shared = float(sides.prod())
    return shared / float((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - shared)


def test_linking_is_the_best_of_all_pairings_of_two_frames() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        first, second = (rng.integers(0, 40, (rng.integers(1, 5), 2)).astype(float) for _ in range(2))
        boxes = np.array([[x, y, x + 25, y + 25] for x, y in (*first, *second)])
        frame = np.array([0] * len(first) + [1] * len(second))
        zeros = np.zeros(len(boxes), np.int64)
        who = linked(frame, boxes, zeros, zeros)
        a, b = range(len(first)), range(len(second))
        worth = [[_overlap(boxes[i], boxes[len(first) + j]) for j in b] for i in a]
        worth = [[value if value >= LINK_IOU else 0.0 for value in row] for row in worth]
        short, long = (a, b) if len(a) <= len(b) else (b, a)
        totals = []
        for chosen in itertools.permutations(long, len(short)):
            pairs = zip(short, chosen, strict=True)
            totals.append(sum(worth[i][j] if short is a else worth[j][i] for i, j in pairs))
        mine = sum(worth[i][j] for i in a for j in b if who[i] == who[len(first) + j])
        assert mine == pytest.approx(max(totals))
        assert len(set(who[: len(first)])) == len(first)


def test_an_object_may_be_away_for_two_frames_and_no_longer() -> None:
    box = np.array([[0.0, 0, 9, 9]] * 3)
    zeros = np.zeros(3, np.int64)
    assert linked(np.array([0, 3, 7]), box, zeros, zeros).tolist() == [0, 0, 1]
    assert linked(np.array([0, 1, 2]), box, np.array([0, 1, -1]), zeros).tolist() == [0, 1, -1]
    assert linked(np.array([0, 1, 2]), box, zeros, np.array([0, 0, 1])).tolist() == [0, 0, 1]


def test_the_metrics_keep_their_contract() -> None:
    ours = built_in("metric")
    assert [plugin.name for plugin in ours] == [
        *("distance_at_first", "ever_found", "flicker", "longest_gap", "stable_range", "time_to_first")
    ]
    for plugin in ours:
        assert [finding.error for finding in contract.check_metric(plugin) if not finding.ok] == []

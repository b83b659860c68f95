"""Changes survive cuts, can be undone, and never overwrite what another window has changed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from adverse.annotation import session
from adverse.annotation.changes import Annotation, Change, Changes, Edit, StaleError, State
from adverse.annotation.session import AnnotatedLog
from adverse.annotation.smoothing import smoothed_m
from adverse.data.images import ImageFile
from adverse.errors import StoreError
from adverse.store import journal
from adverse.types import Dataset, Frame, Log, Truth

BOX = (1.0, 2.0, 9.0, 30.5)


def dataset(frames: int = 3) -> Dataset:
    truth = Truth(
        np.array([[0.0, 0, 4, 4], [5, 5, 9, 9]]),
        np.zeros(2, np.int64),
        np.array([False, True]),
        np.array([7, 7]),
    )
    image = ImageFile(Path("none.png"))
    log = Log(
        "log",
        tuple(
            Frame(f"log/{n}", "log", n, image, truth if n == 0 else Truth.none(), n) for n in range(frames)
        ),
    )
    return Dataset("data", ("person",), (log,))


def change(frame: int, number: int, x: float, group: str = "", kind: str = "edit") -> Change:
    edit = Edit(frame, number, Annotation((x, 2.0, 9.0, 30.5), "person"))
    return Change("log", f"box {x}", (edit,), kind, group)  # type: ignore[arg-type]


def test_the_state_begins_with_what_the_data_say(tmp_path: Path) -> None:
    given = State(dataset(), Changes(tmp_path / "changes")).logs["log"].annotations
    assert [(key, what.box_by, what.ignore, what.row) for key, what in given.items()] == [
        ((0, 7), "data", False, 0),
        ((0, 8), "data", True, 1),  # a second object of one id gets one of its own
    ]


def test_a_journal_cut_at_any_byte_keeps_every_whole_change(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    state = State(dataset(), Changes(path))
    ends = [0]
    for number in range(4):
        state.make(change(number % 3, 7, float(number)))
        ends.append(path.stat().st_size)
    state.undo("log", 4)
    ends.append(path.stat().st_size)
    data, entries = path.read_bytes(), list(state.journal.entries)
    for cut in range(len(data), -1, -1):  # cut shorter and shorter: nothing has to be written
        os.truncate(path, cut)
        again = Changes(path)
        acknowledged = sum(end <= cut for end in ends[1:])
        assert again.entries == entries[:acknowledged]
        assert again.torn == (cut not in ends)
    for acknowledged, (start, end) in enumerate(itertools.pairwise(ends)):
        path.write_bytes(data[: (start + end) // 2])
        Changes(path).mend()
        assert path.read_bytes() == data[:start]
        assert len(Changes(path).entries) == acknowledged
    path.write_bytes(data[:30] + b"x" + data[31:])
    with pytest.raises(StoreError, match="changed or is damaged"):
        Changes(path)


def test_undo_and_redo_follow_groups_and_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    state = State(dataset(), Changes(path))
    start = dict(state.logs["log"].annotations)
    state.make(change(1, 3, 1.0))
    after_one = dict(state.logs["log"].annotations)
    for number in (1, 2):
        state.make(change(number, 3, 5.0, group="track 1"))
    everything = dict(state.logs["log"].annotations)
    state = State(dataset(), Changes(path))
    assert state.logs["log"].annotations == everything
    state.undo("log", 3)
    assert state.logs["log"].annotations == after_one
    with pytest.raises(StaleError):
        state.undo("log", 3)
    state = State(dataset(), Changes(path))
    state.undo("log", state.logs["log"].undone[-1][0], again=True)
    assert state.logs["log"].annotations == everything
    for _ in range(2):
        state.undo("log", state.logs["log"].done[-1][0])
    assert state.logs["log"].annotations == start
    with pytest.raises(StaleError, match="nothing to undo"):
        state.undo("log", 0)
    state.make(change(2, 9, 1.0))
    assert state.logs["log"].undone == []
    assert state.logs["log"].next_id() == 10


def test_undo_of_a_group_is_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "changes"
    state = State(dataset(), Changes(path))
    before_group = dict(state.logs["log"].annotations)
    for number, x in ((1, 1.0), (2, 1.0), (1, 5.0)):
        state.make(change(number, 3, x, group="track 1"))
    tracked, start = dict(state.logs["log"].annotations), path.stat().st_size

    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(journal, "append_line", full)
        with pytest.raises(StoreError):
            state.undo("log", 3)
    assert state.logs["log"].annotations == tracked
    state.undo("log", 3)
    end = path.stat().st_size
    state.undo("log", 4, again=True)
    whole = path.read_bytes()
    for cut in sorted({*range(start, len(whole), 20), end - 1, end, len(whole) - 1, len(whole)}):  # killed
        path.write_bytes(whole[:cut])
        found = State(dataset(), Changes(path)).logs["log"].annotations
        assert found == (before_group if end <= cut < len(whole) else tracked)


def test_a_journal_with_one_line_for_each_undone_change_of_a_group_is_read(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    state = State(dataset(), Changes(path))
    for number in (1, 2):
        state.make(change(number, 3, 1.0, group="track 1"))
    tracked = dict(state.logs["log"].annotations)
    for number in (2, 1):
        state.make(Change("log", "", (Edit(number, 3, None),), "undo", "track 1"))
    assert b"count" not in path.read_bytes()
    state = State(dataset(), Changes(path))
    state.undo("log", state.logs["log"].undone[-1][0], again=True)
    assert state.logs["log"].annotations == tracked
    assert state.version == 5


def test_what_another_window_changed_is_not_overwritten(tmp_path: Path) -> None:
    state = State(dataset(), Changes(tmp_path / "changes"))
    state.make(change(0, 7, 1.0), {(0, 7): 0})
    state.make(change(1, 7, 1.0), {(1, 7): 0})  # another annotation: nobody is in the way
    with pytest.raises(StaleError, match="object 7 in frame 1 was changed"):
        state.make(change(0, 7, 2.0), {(0, 7): 0})
    assert state.logs["log"].annotations[0, 7].box[0] == 1.0
    assert state.version == 2


def test_a_box_is_looked_for_while_another_window_adds_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, numbers = dataset(), itertools.count(100)
    log = AnnotatedLog(data.logs[0], State(data, Changes(tmp_path / "changes")).logs["log"])
    overlap = session._iou

    def meanwhile(one: Sequence[float], other: Sequence[float]) -> float:
        log.state.take(change(0, next(numbers), 1.0), 1)
        return overlap(one, other)

    monkeypatch.setattr(session, "_iou", meanwhile)
    assert log._same_object(0, 3, "person", (0.0, 0.0, 4.0, 3.0)) == 7
    assert log._same_object(0, 3, "person", (0.0, 0.0, 4.0, 1.9)) is None  # IoU below one half
    assert next(numbers) > 101


def test_straight_motion_stays_and_noise_shrinks() -> None:
    times = np.arange(30) / 7.5
    straight = np.stack([3 + 1.2 * times, -0.4 * times, np.full(30, 1.1)], axis=1)
    depth = np.linspace(15, 5, 30)
    assert np.allclose(smoothed_m(times, straight, depth, 0.5), straight)
    noise = np.random.default_rng(1).normal(scale=1e-3, size=(30, 1)) * depth[:, None] ** 2 * [1, 0, 0]
    smooth = smoothed_m(times, straight + noise, depth, 0.5)
    assert np.abs(smooth - straight).mean() < 0.5 * np.abs(noise).sum() / 90
    assert np.array_equal(smoothed_m(times, straight + noise, depth, 0.0), straight + noise)

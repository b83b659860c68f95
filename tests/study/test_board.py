"""The board tells what was written last, whole or not at all."""

from __future__ import annotations

import tempfile
from types import SimpleNamespace

import pytest

from adverse.study.stages import HEADER, LOAD_LIMIT_S, SIZE_BYTES, Board, Stage


def test_what_is_written_is_read_by_another_mapping() -> None:
    with tempfile.TemporaryFile() as page:
        page.truncate(SIZE_BYTES)
        writer, reader = Board(page.fileno()), Board(page.fileno())
        assert reader.read() is None
        for stage in (Stage("decoding", "frame"), Stage("asking", "frame", "blur", 2, 60.0)):
            writer.write(stage)
            found = reader.read()
            assert found is not None
            assert found[1] == stage


def test_a_page_in_the_middle_of_writing_says_nothing() -> None:
    with tempfile.TemporaryFile() as page:
        page.truncate(SIZE_BYTES)
        board = Board(page.fileno())
        board.write(Stage("decoding", "frame"))
        page.seek(HEADER.size + 20)
        page.write(b"?")
        page.flush()
        assert board.read() is None


def test_names_too_long_for_the_page_are_left_out() -> None:
    with tempfile.TemporaryFile() as page:
        page.truncate(SIZE_BYTES)
        board = Board(page.fileno())
        board.write(Stage("asking", "f" * 9000, "blur", 3, 5.0))
        found = board.read()
        assert found is not None
        assert (found[1].sut, found[1].limit_s) == (3, 5.0)


def test_answers_of_the_unit_under_way_are_counted() -> None:
    with tempfile.TemporaryFile() as page:
        page.truncate(SIZE_BYTES)
        writer, reader = Board(page.fileno()), Board(page.fileno())
        for answered in (0, 4, 3):
            writer.write(Stage("done with SUT", "f" * 9000, answered=answered))
        assert reader.answered == 7
        writer.begin()
        assert reader.answered == 0


def test_the_clock_stands_while_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was spent before counts, what was compiled meanwhile does not; a new step has its own clock."""
    now = [100.0]
    monkeypatch.setattr("adverse.study.stages.time", SimpleNamespace(monotonic=lambda: now[0]))
    stage = Stage("mutating", "frame", "blur", limit_s=5.0, answered=2)
    with tempfile.TemporaryFile() as page:
        page.truncate(SIZE_BYTES)
        board = Board(page.fileno())
        board.hold()  # nothing is under way yet
        board.go_on()
        assert board.read() is None
        board.write(stage)
        now[0] = 103.0
        board.hold()
        found = board.read()
        assert found is not None
        assert (found[1].frame, found[1].limit_s) == ("frame", LOAD_LIMIT_S)
        now[0] = 150.0
        board.go_on()
        assert board.read() == (147.0, stage)
        assert board.answered == 2
        board.hold()
        board.write(Stage("asking SUT", "frame", sut=0))
        board.go_on()
        assert board.read() == (150.0, Stage("asking SUT", "frame", sut=0))

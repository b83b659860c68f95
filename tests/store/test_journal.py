"""The journal: whole lines count, a torn last one does not, damage before it is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.errors import StoreError
from adverse.store.journal import RunEntry, RunJournal


def entry(number: int) -> RunEntry:
    return RunEntry(
        f"{number}.parquet", f"hash {number}", ((f"key {number}", "haze(visibility_m=50)", "Füße"),)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    journal = RunJournal(tmp_path / "journal")
    for number in range(3):
        journal.append(entry(number))
    return journal.path


def test_what_was_appended_is_read(path: Path) -> None:
    journal = RunJournal(path)
    assert journal.entries == [entry(0), entry(1), entry(2)]
    assert not journal.torn


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path / "journal")
    assert journal.entries == []
    assert not journal.torn


@pytest.mark.fault(45)
@given(cut=st.integers(1, 10_000))
def test_a_cut_anywhere_costs_only_what_was_not_whole(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "journal"
    whole = RunJournal(path)
    for number in range(3):
        whole.append(entry(number))
    raw = path.read_bytes()
    cut = cut % len(raw)
    path.write_bytes(raw[:cut])
    journal = RunJournal(path)
    complete = raw[:cut].count(b"\n")
    assert journal.entries == [entry(number) for number in range(complete)]
    assert journal.torn == (cut > 0 and not raw[:cut].endswith(b"\n"))
    assert path.read_bytes() == raw[:cut]  # reading changes nothing
    journal.mend()
    journal.append(entry(7))
    assert RunJournal(path).entries == [*journal.entries]
    assert len(journal.entries) == complete + 1


@pytest.mark.fault(45)
def test_a_last_line_that_a_power_cut_filled_with_zeros(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + b"\0" * (len(lines[2]) - 1) + b"\n")
    journal = RunJournal(path)
    assert journal.torn
    assert journal.entries == [entry(0), entry(1)]


@pytest.mark.parametrize("line", [0, 1])
def test_damage_before_the_last_line_is_never_guessed_away(path: Path, line: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"haze", b"maze")
    path.write_bytes(b"".join(lines))
    with pytest.raises(StoreError) as caught:
        RunJournal(path)
    assert caught.value.where == f"{path}, line {line + 1}"
    assert "--fresh" in str(caught.value)


def test_the_latest_entry_of_a_cell_wins(path: Path) -> None:
    journal = RunJournal(path)
    newer = RunEntry("again.parquet", "another", (("key 1", "haze(visibility_m=50)", "Füße"),))
    journal.append(newer)
    finished = RunJournal(path).finished()
    assert [finished.get(f"key {number}") for number in range(4)] == [entry(0), newer, entry(2), None]
    assert finished.in_use() == [entry(0), entry(2), newer]


def test_a_forgotten_file_is_gone_after_mending(path: Path) -> None:
    journal = RunJournal(path)
    assert journal.forget(lambda unit: unit.file == "1.parquet") == 1
    assert RunJournal(path).entries == [entry(0), entry(1), entry(2)]  # nothing is written yet
    journal.mend()
    journal.append(entry(3))
    assert RunJournal(path).entries == journal.entries == [entry(0), entry(2), entry(3)]

"""One process at a time on a folder; a lock ends with its process."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from adverse.errors import LockedError
from adverse.store.owned_folder import locked


@pytest.mark.fault(47)
def test_the_second_is_refused_and_told_who_is_first(tmp_path: Path) -> None:
    with locked(tmp_path) as note:
        assert note is None
        with pytest.raises(LockedError) as caught, locked(tmp_path):
            pass
    assert caught.value.got == f"process {os.getpid()} on {socket.gethostname()}"
    assert caught.value.where == str(tmp_path)
    assert caught.value.fix is not None


def test_it_is_free_again_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path) as note:
            assert note is None


def test_it_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), locked(tmp_path):
        raise RuntimeError
    with locked(tmp_path) as note:
        assert note is None


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"pid": 1}'])
def test_a_lock_file_of_no_meaning_locks_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "lock").write_text(text)
    with locked(tmp_path) as note:
        assert note is None


@pytest.mark.fault(47)
def test_a_lock_left_by_a_dead_process_is_taken_over_and_said(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(json.dumps({"pid": 123, "host": "farm"}))
    with locked(tmp_path) as note:
        assert note == "took over the lock of process 123 on farm, which is gone"

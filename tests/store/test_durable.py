"""Files are there whole or not at all, and a disk's refusals become errors with a fix."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from adverse.errors import EXIT_CANNOT_RUN, EXIT_INCOMPLETE, AdverseError
from adverse.store.durable import append_line, write_file


def refuse(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fsync(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.fault(42, 43)
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, EXIT_INCOMPLETE),
        (errno.EDQUOT, EXIT_INCOMPLETE),
        (errno.EFBIG, EXIT_INCOMPLETE),
        (errno.EROFS, EXIT_CANNOT_RUN),
        (errno.EACCES, EXIT_CANNOT_RUN),
        (errno.EIO, EXIT_CANNOT_RUN),
    ],
)
def test_a_refusal_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    path = tmp_path / "file"
    write_file(path, b"old")
    refuse(monkeypatch, number)
    with pytest.raises(AdverseError) as caught:
        write_file(path, b"new")
    assert (caught.value.exit_code, caught.value.where) == (code, str(path))
    assert caught.value.got == os.strerror(number)
    assert caught.value.fix
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_keeps_the_old_file_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_file(path, b"old")

    def interrupted(_handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_lines_are_added_in_order(tmp_path: Path) -> None:
    for line in (b"a\n", b"b\n"):
        append_line(tmp_path / "file", line)
    assert (tmp_path / "file").read_bytes() == b"a\nb\n"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AdverseError, match="cannot be written"):
        append_line(tmp_path / "no" / "file", b"a\n")

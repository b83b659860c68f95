"""What is read is what was planned, byte by byte, whoever reads it."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.content import (
    MISSING,
    SOURCES,
    ChangedError,
    HeldFiles,
    PlannedFiles,
    content_hash,
    file_sha256,
    stamp,
)
from adverse.data.depth import DepthFile
from adverse.data.files import read_bytes
from adverse.data.images import ImageFile, ImagePolicy, write_image
from adverse.data.maps import InstanceFile, LabelFile
from adverse.errors import AdverseError, DataError
from adverse.file_access import FileAccess
from adverse.types import Frame, Source, Truth


class Foreign:
    """A source of a plug-in, which opens its file by itself."""

    recipe = "numbers"

    def __init__(self, path: Path, during: Callable[[], object] = lambda: None) -> None:
        self.path = path
        self.during = during

    def __call__(self) -> NDArray[Any]:
        text = self.path.read_text()
        self.during()
        return np.array([int(text)])


def a_frame(**sources: Source) -> Frame:
    image = sources.pop("image", None) or Foreign(Path("none"))
    return Frame("f", "log", 0, image, Truth.none(), 0, **sources)  # type: ignore[arg-type]


def planned(frame: Frame) -> tuple[Frame, PlannedFiles]:
    paths = [getattr(frame, name).path for name in SOURCES if getattr(frame, name) is not None]
    files = PlannedFiles({path: content_hash(path) for path in paths})
    return files.of(frame), files


@pytest.fixture
def whole(tmp_path: Path) -> Frame:
    """A frame with everything that can be read of one."""
    shape = (6, 8)
    for name in ("image", "right"):
        write_image(tmp_path / f"{name}.png", np.full((*shape, 3), len(name), np.uint8))
    for name in ("labels", "instances", "behind"):
        write_image(tmp_path / f"{name}.png", np.zeros(shape, np.uint8))
    for name in ("depth", "right_depth"):
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float32))
    image = ImageFile(tmp_path / "image.png")
    return a_frame(
        image=image,
        right=ImageFile(tmp_path / "right.png"),
        depth_m=DepthFile(tmp_path / "depth.npy", image),
        labels=LabelFile(tmp_path / "labels.png", image),
        instances=InstanceFile(tmp_path / "instances.png", image),
        behind=InstanceFile(tmp_path / "behind.png", image),
        right_depth_m=DepthFile(tmp_path / "right_depth.npy", image),
    )


@pytest.mark.parametrize("name", SOURCES)
def test_everything_of_a_frame_is_compared(whole: Frame, name: str) -> None:
    frame, files = planned(whole)
    assert np.array_equal(getattr(frame, name)(), getattr(whole, name)())
    path: Path = getattr(whole, name).path
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"!")
    with pytest.raises(DataError, match=path.name):
        getattr(frame, name)()
    assert files.changed == {path: file_sha256(path)}
    path.unlink()
    with pytest.raises(DataError, match=path.name):
        getattr(frame, name)()
    assert files.changed == {path: MISSING}
    path.write_bytes(data)
    getattr(frame, name)()


def test_the_bytes_that_are_compared_are_those_that_are_decoded(
    whole: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is read once: nothing can come between what is hashed and what is decoded."""
    frame, files = planned(whole)
    reads: list[Path] = []

    def counted(opened: Any) -> Any:
        def open_once(path: Path, *how: Any, **more: Any) -> Any:
            reads.append(path)
            return opened(path, *how, **more)

        return open_once

    monkeypatch.setattr(Path, "open", counted(Path.open))
    monkeypatch.setattr(os, "open", counted(os.open))
    frame.image.read_with_notes()  # type: ignore[attr-defined]
    assert reads == [whole.image.path]
    assert not files.changed


def test_a_file_that_was_missing_and_one_that_is_too_large_are_as_planned(tmp_path: Path) -> None:
    large, gone = tmp_path / "large.png", tmp_path / "gone.png"
    large.write_bytes(bytes(2**24 + 9))
    policy = ImagePolicy(max_megapixels=0.000001)
    frame, files = planned(a_frame(image=ImageFile(large, policy), right=ImageFile(gone)))
    with pytest.raises(DataError, match="too large"):
        frame.image()
    assert frame.right is not None
    with pytest.raises(DataError, match="missing"):
        frame.right()
    assert not files.changed
    write_image(gone, np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(DataError, match="after the run was planned"):
        frame.right()
    large.write_bytes(bytes(2**24 + 8))
    with pytest.raises(DataError, match="after the run was planned"):
        frame.image()
    assert files.changed == {gone: file_sha256(gone), large: file_sha256(large)}


def test_a_reader_that_opens_files_itself_is_compared_from_outside(tmp_path: Path) -> None:
    path = tmp_path / "7.txt"
    path.write_text("7")
    frame, files = planned(a_frame(image=Foreign(path)))
    assert not hasattr(frame.image, "read_with_notes")
    assert frame.image() == [7]
    path.write_text("8")
    with pytest.raises(DataError, match="was changed"):
        frame.image()
    path.write_text("no number")
    with pytest.raises(DataError, match="was changed"):  # not the reader's own ValueError
        frame.image()
    path.write_text("7")
    assert frame.image() == [7]
    frame, files = planned(a_frame(image=Foreign(path, during=lambda: path.write_text("8"))))
    with pytest.raises(DataError, match="was changed"):
        frame.image()
    assert files.changed == {path: file_sha256(path)}


def test_a_reader_must_name_the_file_that_it_opens(tmp_path: Path) -> None:
    path, other = tmp_path / "7.txt", tmp_path / "other"
    for file in (path, other):
        file.write_text("7")
    frame, files = planned(a_frame(image=Foreign(path, during=lambda: read_bytes(other, what="other"))))
    with pytest.raises(DataError, match="does not name"):
        frame.image()
    assert not files.changed


def test_files_of_a_system_must_be_as_planned_and_stay_untouched(tmp_path: Path) -> None:
    path, more = tmp_path / "w.bin", tmp_path / "more.bin"
    path.write_text("1")

    def now() -> dict[Path, str]:
        return {file: file_sha256(file) for file in tmp_path.iterdir()}

    plan = now()
    held = HeldFiles(plan, now)
    assert held.written_to() == []
    path.write_text("1")  # the same bytes, but who knows what was there in between
    assert held.written_to() == [path]
    more.write_text("2")
    with pytest.raises(ChangedError) as added:
        HeldFiles(plan, now)
    assert added.value.files == {more: file_sha256(more)}
    more.unlink()
    path.unlink()
    with pytest.raises(ChangedError) as gone:
        HeldFiles(plan, now)
    assert gone.value.files == {path: MISSING}
    error = pickle.loads(pickle.dumps(gone.value)).placed("here")
    assert isinstance(error, AdverseError)
    assert (error.where, error.exit_code) == ("here", 3)
    assert f"{path} is gone" in str(error)


def link(path: Path) -> None:
    os.link(path, path.with_suffix(".link"))


def change_mode(path: Path) -> None:
    path.chmod(0o600)


def forge(path: Path) -> None:
    """Put other bytes in place, of the same size and with the same time."""
    before = path.stat()
    path.write_text("8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(("touch", "changes"), [(link, False), (change_mode, False), (forge, True)])
def test_where_a_stamp_leaves_it_open_the_bytes_decide(
    tmp_path: Path,
    touch: Callable[[Path], None],
    changes: bool,  # noqa: FBT001
) -> None:
    held, read, data = (tmp_path / name for name in ("held.txt", "read.txt", "7.txt"))
    for path in (held, read, data):
        path.write_text("7")
        os.utime(path, (1e9, 1e9))
    while stamp(data)[-1] >= time.clock_gettime_ns(5) - 20_000_000:  # type: ignore[index]
        time.sleep(0.005)  # the clock of files ticks a hundred times a second or more
    files = HeldFiles({held: file_sha256(held)}, lambda: {held: file_sha256(held)})
    access = FileAccess()
    with access.noted():
        read.read_text()
    assert access.settle() == set()
    frame, _ = planned(a_frame(image=Foreign(data, during=lambda: touch(data))))
    touch(held)
    touch(read)
    assert files.written_to() == ([held] if changes else [])
    assert access.settle() == ({read} if changes else set())
    with pytest.raises(DataError, match="was changed") if changes else contextlib.nullcontext():
        frame.image()


def test_many_changed_files_are_counted_and_some_named() -> None:
    error = ChangedError({Path(f"{number:03}.png"): "0" for number in range(25)})
    assert error.what.startswith("25 files are")
    assert str(error.got).endswith("019.png was changed; and 5 more")


def test_a_write_through_memory_is_seen(tmp_path: Path) -> None:
    """A page that is dirty already is written to without a trace in the entry of its file."""
    path = tmp_path / "weights.bin"
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        shared[0] = 1
        planned = {path: content_hash(path)}
        held = HeldFiles(planned, lambda: planned)
        assert held.written_to() == []
        shared[0] = 2
        assert held.written_to() == [path]

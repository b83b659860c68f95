"""A folder that adverse made, whatever it holds: a run, a fuzz campaign, mutated images.

The mark is the first file written into a new folder, and says which folder that is. A folder without it, or
with the mark of another one, belongs to somebody else: nothing is written into it, and nothing in it is
deleted. Runs and campaigns, which are resumed, share the rest: a lock, a manifest that carries its own hash,
and a fresh start. A copy of a whole one is known by its manifest.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from adverse.content import MISSING, content_hash, digest
from adverse.errors import LockedError, StoreError
from adverse.remote_files import is_url, named_path
from adverse.store.durable import flush_folder, storage_errors, twin_of, write_file
from adverse.store.seal_list import digest_of

MARK = ".adverse"
PARTIAL = re.compile(r"\..+\.\d+\.partial")
"""What a write that was cut short leaves behind (`durable.write_file`)."""
MARK_PARTIAL = re.compile(rf"\.{re.escape(MARK)}\.\d+\.partial")
"""The same of the mark: all there is in a folder whose first moment was its last."""


class OwnedFolder(ABC):
    """A folder that is filled bit by bit and resumed; one class for each kind of content."""

    kind: ClassVar[str]
    """What the folder is, as its mark and errors call it."""
    command: ClassVar[str]
    """The command that makes such folders."""
    guest: ClassVar[str | None] = None
    """The one thing that may lie in the folder before it is marked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = path / "manifest.json"
        self.study = path / "study.yaml"
        self.results = path / "results"
        self.logs = path / "logs"
        self.seals = path / "seals.json"

    @property
    def recomputed_by(self) -> str:
        """The command that computes results again from what the folder holds."""
        return f"{self.command} {self.path}"

    def subfolders(self) -> tuple[Path, ...]:
        """Return the folders that are there from the start."""
        return self.results, self.logs

    @abstractmethod
    def own_files(self) -> dict[str, str]:
        """Return the names of the files that adverse writes, as a pattern for each sub-folder."""

    def create(self) -> None:
        """Make the folder, refusing to mix into one that holds something else."""
        self._claim()
        self._make_subfolders()

    def _claim(self) -> None:
        claim(self.path, self.kind, besides=self.guest, is_copy=self._is_copy)

    def _is_copy(self) -> bool:
        """Tell whether this is a copy of a whole folder of ours: its manifest fits, and what that lists."""
        try:
            files: Mapping[str, str] = self.read_manifest().get("files", {})
        except StoreError:
            return False
        hashes = {name: content_hash(self.path / name) for name in files}
        return all(hashes[name] in (sha256, MISSING) for name, sha256 in files.items())

    def _make_subfolders(self) -> None:
        with storage_errors(self.path):
            for folder in self.subfolders():
                folder.mkdir(exist_ok=True)

    def clear(self) -> None:
        """Delete what adverse wrote, and nothing that others put beside it; mark and lock stay."""
        delete_ours(self.path, self.kind, self.own_files())
        if (twin := twin_of(self.path)) is not None:
            twin.settle()
        self.create()

    @contextlib.contextmanager
    def in_use(self, *, fresh: bool, note: Callable[[str], None]) -> Iterator[None]:
        """Mark and lock the folder, emptying it first if `fresh`; refuse one that holds files of others."""
        self._claim()
        with locked(self.path) as left_over:
            if left_over:
                note(left_over)
            self.refuse_files_of_others()
            if fresh:
                self.clear()
            self._make_subfolders()
            yield

    def files_of_others(self) -> list[Path]:
        """Return what others put into the sub-folders, into which only adverse writes."""
        return files_of_others(self.path, self.own_files())

    def refuse_files_of_others(self) -> None:
        """Raise where a sub-folder of ours holds a file of others: no command would accept the outcome."""
        others = self.files_of_others() if is_marked(self.path, self.kind) else []
        if others:
            more = f", and {len(others) - 1} more in the folder" if others[1:] else ""
            raise StoreError(
                "the file was not written by adverse",
                where=f"{others[0]}{more}",
                got=f"a file in a place of the {self.kind} that is only for files of adverse",
                fix="Move it elsewhere, or give another folder (--out). Nothing was run or deleted.",
            )

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest with a hash of itself."""
        body = {key: value for key, value in manifest.items() if key != "digest"}
        body["digest"] = digest_of(body)
        write_file(self.manifest, _manifest_bytes(body))

    def read_manifest(self) -> dict[str, Any]:
        """Return the manifest of a folder that must have one, as it was written."""
        if not self.manifest.exists():
            raise StoreError(
                f"this is not a {self.kind}",
                where=str(self.path),
                got="no manifest.json in it" if self.path.exists() else "no such folder",
                fix=f"Give the folder that {self.command} printed.",
            )
        if not is_marked(self.path, self.kind):
            raise StoreError(
                f"the folder is not marked as a {self.kind}",
                where=str(self.path / MARK),
                got="no mark as adverse writes it" if (self.path / MARK).exists() else "no such file",
                fix=f"Give the folder that {self.command} printed, or restore the mark from a copy.",
            )
        try:
            raw = self.manifest.read_bytes()
            if _is_as_written(raw) and not self.manifest.is_symlink():
                return dict(json.loads(raw))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        raise StoreError(
            "the manifest was changed after it was written",
            where=str(self.manifest),
            fix=f"Restore it from a copy, or give the same {self.command} command again with "
            + (
                "--fresh." if is_ours(self.path, self.kind) else "--out and a new folder: this one is a copy."
            ),
        )


@lru_cache(maxsize=2)
def _is_as_written(raw: bytes) -> bool:
    """Tell whether a manifest fits its own hash; one command reads the same one many times."""
    manifest = dict(json.loads(raw))
    body = {key: value for key, value in manifest.items() if key != "digest"}
    return bool(manifest["digest"] == digest_of(body)) and raw == _manifest_bytes(manifest)


def _manifest_bytes(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, indent=2, default=str).encode() + b"\n"


def claim(
    folder: Path, kind: str, *, besides: str | None = None, is_copy: Callable[[], bool] = lambda: False
) -> None:
    """Make a folder ours, or raise where it holds something else; nothing else is written into it first.

    `besides` is the one thing that an unmarked folder may hold. A folder with the mark of another one becomes
    ours if it is a copy of that.
    """
    if is_url(folder):
        raise StoreError(
            f"a {kind} of this command is a folder of this machine",
            where=str(named_path(folder)),
            wanted="a path; by URL only adverse run can write (--out s3://BUCKET/FOLDER)",
            fix="Give another folder (--out).",
        )
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"the {kind} is a file", where=str(folder), fix="Give another folder (--out).")
    if is_ours(folder, kind):
        return
    if is_marked(folder, kind):
        if not is_copy():
            raise _not_its_own(folder, kind)
    elif folder.is_dir() and any(
        path.name != besides and not MARK_PARTIAL.fullmatch(path.name) for path in folder.iterdir()
    ):
        raise StoreError(
            f"the folder holds something that is not a {kind}",
            where=str(folder),
            got=f"other files, and no {MARK} file as adverse writes it",
            fix="Give an empty or a new folder (--out).",
        )
    with storage_errors(folder):
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            flush_folder(folder.parent)
        write_file(folder / MARK, _mark(kind, folder.stat().st_ino))


def is_marked(folder: Path, kind: str) -> bool:
    """Return whether a folder has a mark for this kind of content, be it a copy from another folder."""
    return _marked_inode(folder, kind) is not None


def is_ours(folder: Path, kind: str) -> bool:
    """Return whether we made this very folder, for this kind of content."""
    return folder.is_dir() and _marked_inode(folder, kind) == folder.stat().st_ino


def _marked_inode(folder: Path, kind: str) -> int | None:
    path = folder / MARK
    try:
        text = b"" if path.is_symlink() or not path.is_file() else path.read_bytes()[:1000]
    except OSError:
        return None
    if text == _mark_of_earlier_versions(kind):
        return 0
    number = re.search(rb"folder (\d{1,20}),", text)
    return int(number[1]) if number is not None and text == _mark(kind, int(number[1])) else None


def _not_its_own(folder: Path, kind: str) -> StoreError:
    return StoreError(
        f"the mark in the folder was made for another {kind}",
        where=str(folder / MARK),
        got="a mark that was copied or moved here",
        wanted="the mark that adverse wrote into this folder",
        fix="Give an empty or a new folder (--out).",
    )


def delete_ours(folder: Path, kind: str, files: Mapping[str, str]) -> None:
    """Delete the files we wrote: by sub-folder (`.`: the folder itself), those whose whole name matches.

    Other files stay, and so do folders that still hold some. Nothing is followed: where one of the folders
    is a symbolic link, nothing at all is deleted.
    """
    if is_marked(folder, kind) and not is_ours(folder, kind):
        raise _not_its_own(folder, kind)
    if not is_marked(folder, kind):
        raise StoreError(
            f"the folder is not marked as a {kind} of ours, so nothing in it is deleted",
            where=str(folder),
            got=f"no {MARK} file as adverse writes it",
            fix="Give an empty or a new folder (--out).",
        )
    for place in (folder, *(folder / name for name in files)):
        if place.is_symlink():
            raise StoreError(
                "nothing is deleted through a symbolic link",
                where=str(place),
                got=f"a link to {place.resolve()}",
                fix="Name the folder itself with --out, or another one.",
            )
    with storage_errors(folder):
        for name, pattern in files.items():
            place = folder / name
            for path in sorted(place.iterdir()) if place.is_dir() else ():
                if _is_our_name(pattern, path.name) and path.is_file() and not path.is_symlink():
                    path.unlink()
        for name in sorted(files, key=len, reverse=True):
            place = folder / name
            if place != folder and place.is_dir() and not any(place.iterdir()):
                place.rmdir()


def files_of_others(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Return what lies in sub-folders of ours under a name that is none of ours, or is no plain file.

    `files` are our names by sub-folder, as for `delete_ours`. Beside our sub-folders others may keep what
    they like. A sub-folder that is a link is not followed.
    """
    found: list[Path] = []
    for name, pattern in files.items():
        place = folder / name
        if place == folder or place.is_symlink() or not place.is_dir():
            continue
        for path in sorted(place.iterdir()):
            if path.is_dir() and not path.is_symlink():
                below = () if path.relative_to(folder).as_posix() in files else sorted(path.rglob("*"))
                found += [other for other in below if other.is_symlink() or not other.is_dir()]
            elif path.is_symlink() or not path.is_file() or not _is_our_name(pattern, path.name):
                found.append(path)
    return found


def _is_our_name(pattern: str, name: str) -> bool:
    return bool(re.fullmatch(pattern, name) or PARTIAL.fullmatch(name))


def mark_on_a_store(kind: str) -> bytes:
    """Return the mark of a folder on an object store, with which the mark of any folder begins."""
    return _mark_of_earlier_versions(kind)


def _mark_of_earlier_versions(kind: str) -> bytes:
    return (
        f"This folder is a {kind} of adverse, 5d1c0f6e-7b0b-4c39-9f0a-3e6f1f5c2a84. While this file is here, "
        "--fresh deletes what adverse wrote into the folder.\n"
    ).encode()


def _mark(kind: str, inode: int) -> bytes:
    check = digest(kind, str(inode), size=8)
    owner = f"It belongs to folder {inode}, {check}, and means nothing in another.\n"
    return _mark_of_earlier_versions(kind) + owner.encode()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[str | None]:
    """Hold the folder's lock; yield a note when a dead process had left one behind.

    The lock is the operating system's own on an open file: it ends with its process, so a lock left behind by
    a crash is stale by itself and simply taken over. The file's text only says who holds it.
    """
    path = folder / "lock"
    with storage_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(handle)
            raise LockedError(
                "another process is using this folder",
                where=str(folder),
                got=f"process {holder.get('pid', '?')} on {holder.get('host', '?')}",
                fix="Wait for it or stop it, or give another folder with --out.",
            ) from None
        left = _holder(handle)
        text = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        with storage_errors(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, text, 0)
        try:
            yield (
                f"took over the lock of process {left['pid']} on {left['host']}, which is gone"
                if left
                else None
            )
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _holder(handle: int) -> dict[str, object]:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) and {"pid", "host"} <= holder.keys() else {}

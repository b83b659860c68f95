"""A folder that adverse made, whatever it holds: a run, a fuzz campaign, mutated images.

The mark is the first file written into a new folder. A folder without it belongs to somebody else: nothing
is written into it, and nothing in it is deleted. Runs and campaigns, which are resumed, share the rest: a
lock, a manifest that carries its own hash, a memory of the hashes of input files, and a fresh start.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from adverse.content import MISSING, Stamp, digest, file_sha256, stamp
from adverse.errors import LockedError, StoreError
from adverse.store.durable import storage_errors, write_file

MARK = ".adverse"
PARTIAL = re.compile(r"\..+\.\d+\.partial")
"""What a write that was cut short leaves behind (`durable.write_file`)."""


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
        self.file_hashes = path / "file-hashes.json"

    def subfolders(self) -> tuple[Path, ...]:
        """Return the folders that are there from the start."""
        return self.results, self.logs

    @abstractmethod
    def own_files(self) -> dict[str, str]:
        """Return the names of the files that adverse writes, as a pattern for each sub-folder."""

    def create(self) -> None:
        """Make the folder, refusing to mix into one that holds something else."""
        claim(self.path, self.kind, besides=self.guest)
        with storage_errors(self.path):
            for folder in self.subfolders():
                folder.mkdir(exist_ok=True)

    def clear(self) -> None:
        """Delete what adverse wrote, and nothing that others put beside it; mark and lock stay."""
        delete_ours(self.path, self.kind, self.own_files())
        self.create()

    @contextlib.contextmanager
    def in_use(self, *, fresh: bool, note: Callable[[str], None]) -> Iterator[FileHashes]:
        """Create and lock the folder, emptying it first if `fresh`; yield the hashes of its input files."""
        self.create()
        with locked(self.path) as left_over:
            if left_over:
                note(left_over)
            if fresh:
                self.clear()
            yield FileHashes(self.file_hashes)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest with a hash of itself."""
        body = {key: value for key, value in manifest.items() if key != "digest"}
        body["digest"] = digest_of(body)
        write_file(self.manifest, json.dumps(body, indent=2, default=str).encode() + b"\n")

    def read_manifest(self) -> dict[str, Any]:
        """Return the manifest of a folder that must have one, as it was written."""
        if not self.manifest.exists():
            raise StoreError(
                f"this is not a {self.kind}",
                where=str(self.path),
                got="no manifest.json in it" if self.path.exists() else "no such folder",
                fix=f"Give the folder that {self.command} printed.",
            )
        try:
            manifest = dict(json.loads(self.manifest.read_bytes()))
            if manifest["digest"] == digest_of({k: v for k, v in manifest.items() if k != "digest"}):
                return manifest
        except (ValueError, KeyError, TypeError):
            pass
        raise StoreError(
            "the manifest was changed after it was written",
            where=str(self.manifest),
            fix=f"Restore it from a copy, or give the same {self.command} command again with --fresh.",
        )


def digest_of(body: Mapping[str, Any]) -> str:
    """Return the hash by which a JSON file shows that it was changed."""
    return digest(json.dumps(body, sort_keys=True, default=str))


def claim(folder: Path, kind: str, *, besides: str | None = None) -> None:
    """Make a folder ours, or raise where it holds something else; nothing else is written into it first.

    `besides` is the one thing that an unmarked folder may hold.
    """
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"the {kind} is a file", where=str(folder), fix="Give another folder (--out).")
    if is_marked(folder, kind):
        return
    if folder.is_dir() and any(path.name != besides for path in folder.iterdir()):
        raise StoreError(
            f"the folder holds something that is not a {kind}",
            where=str(folder),
            got=f"other files, and no {MARK} file as adverse writes it",
            fix="Give an empty or a new folder (--out).",
        )
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / MARK, _mark(kind))


def is_marked(folder: Path, kind: str) -> bool:
    """Return whether we made a folder, for this kind of content."""
    path = folder / MARK
    try:
        return not path.is_symlink() and path.read_bytes() == _mark(kind)
    except OSError:
        return False


def delete_ours(folder: Path, kind: str, files: Mapping[str, str]) -> None:
    """Delete the files we wrote: by sub-folder (`.`: the folder itself), those whose whole name matches.

    Other files stay, and so do folders that still hold some. Nothing is followed: where one of the folders
    is a symbolic link, nothing at all is deleted.
    """
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
                ours = re.fullmatch(pattern, path.name) or PARTIAL.fullmatch(path.name)
                if ours and path.is_file() and not path.is_symlink():
                    path.unlink()
        for name in sorted(files, key=len, reverse=True):
            place = folder / name
            if place != folder and place.is_dir() and not any(place.iterdir()):
                place.rmdir()


def _mark(kind: str) -> bytes:
    return (
        f"This folder is a {kind} of adverse, 5d1c0f6e-7b0b-4c39-9f0a-3e6f1f5c2a84. While this file is here, "
        "--fresh deletes what adverse wrote into the folder.\n"
    ).encode()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[str | None]:
    """Hold the folder's lock; yield a note when a dead process had left one behind.

    The lock is the operating system's own on an open file: it ends with its process, so a lock left behind by
    a crash is stale by itself and simply taken over. The file's text only says who holds it.
    """
    path = folder / "lock"
    with storage_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(handle)
            raise LockedError(
                "another run is using this folder",
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


class FileHashes:
    """The sha256 of input files, remembered by size and time so that a resume is quick.

    A memory can be wrong, so a plan made with it is only a claim: workers compare every file with it.
    `memory` is where the hashes are remembered; None remembers nothing.
    """

    def __init__(self, memory: Path | None = None) -> None:
        self.memory = memory
        self.remembered: dict[str, tuple[Stamp, str]] = {}
        if memory is not None and memory.exists():
            try:
                stored = json.loads(memory.read_text())
                self.remembered = {
                    path: ((int(a), int(b), int(c), int(d)), str(sha256))
                    for path, ((a, b, c, d), sha256) in stored.items()
                }
            except (ValueError, TypeError, AttributeError):
                self.remembered = {}  # only a memory: what cannot be read is hashed again

    def of(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the hash of each file; files that cannot be read are `missing`."""
        wanted = sorted(set(paths))
        with ThreadPoolExecutor() as pool:
            return dict(zip(wanted, pool.map(self._hash, wanted), strict=True))

    def forget(self, paths: Iterable[Path]) -> None:
        """Hash some files again next time, whatever they look like."""
        for path in paths:
            self.remembered.pop(str(path), None)

    def remember(self) -> None:
        """Write the hashes down."""
        if self.memory is not None:
            write_file(self.memory, json.dumps(self.remembered, indent=0, sort_keys=True).encode())

    def _hash(self, path: Path) -> str:
        now = stamp(path)
        before = self.remembered.get(str(path))
        if now is not None and before is not None and before[0] == now:
            return before[1]
        try:
            sha256 = file_sha256(path)
        except OSError:
            return MISSING
        self.remembered[str(path)] = (now, sha256)
        return sha256

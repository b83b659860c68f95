"""A run folder on an object store, worked on through a copy on this machine.

The store holds the run; the copy can be thrown away. While a run writes, every file is on the store before
it counts: a unit's detections are created there (never written over while they count), then its line of the
journal. A store cannot append to a file, so the lines of a run under way are files of their own in
`journal.d`, named by where they belong in the journal; each can be created once, so that of two writers one
fails. At the end they are put together. Other commands read the copy, and bring back what they wrote.

Nothing is written into a folder that holds something else, and no file is deleted that was not ours.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from adverse.content import user_cache
from adverse.errors import LockedError, StoreError
from adverse.remote_files import RemotePath, fetch, filesystem, named_path, tried
from adverse.store.durable import replicated, write_file
from adverse.store.folder import RunFolder
from adverse.store.owned_folder import MARK, PARTIAL, locked, mark_on_a_store
from adverse.store.store_lock import LOCKS, StoreLock

STORES = ("s3", "gs", "az")
JOURNAL, PARTS, MANIFEST = "journal", "journal.d", "manifest.json"
OF_THIS_MACHINE = re.compile(rf"lock|{re.escape(MARK)}|{LOCKS}/.*|{PARTS}/.*")
"""What is not the same on the store and in the copy."""
AT_ONCE = 16
"""Files that are fetched or sent at the same time."""
Version = tuple[int, int, str]
"""Size and time of a file of the copy, and the tag that the store has for its content."""


@contextlib.contextmanager
def working_copy(
    place: Path,
    *,
    writing: bool = False,
    new: bool = False,
    only: Collection[str] = (),
    anew: bool = False,
    note: Callable[[str], None],
) -> Iterator[Path]:
    """Yield a copy of a run folder that is on a store; what was written into it goes back.

    `writing`: at once, and nobody else may write meanwhile; without it, at the end. `new`: there need not be
    a run yet. `only`: the files that are needed, and nothing goes back. `anew`: fetch all of it, whatever an
    earlier copy holds.
    """
    url = named_path(place)
    if not isinstance(url, RemotePath) or url.scheme not in STORES:
        raise StoreError(
            "a run folder cannot be there",
            where=str(url),
            wanted="a folder of this machine, or s3://, gs:// or az:// with a bucket and a path in it",
            fix="Give another folder.",
        )
    with contextlib.ExitStack() as stack:
        replica = Replica(url, _copy_folder(url, stack, temporary=bool(only) or anew))
        replica.claim(new=new and writing, missing_ok=new)
        if writing:
            replica.lock = StoreLock(url, note=note)
            replica.lock.acquire()
            stack.callback(replica.lock.release)
        replica.fetch(only)
        if only:
            yield replica.copy
            return
        if writing:
            with replicated(replica.copy, replica):
                try:
                    yield replica.copy
                finally:
                    replica.settle()
                    replica.fold()
            return
        before = replica.tag_of_manifest()
        try:
            yield replica.copy
        finally:
            if replica.changed() or replica.deleted():
                replica.lock = StoreLock(url, note=note)
                replica.lock.acquire()
                stack.callback(replica.lock.release)
                if replica.tag_on_store(MANIFEST) != before:
                    raise LockedError(
                        "the run was changed by another process meanwhile; nothing was written",
                        where=url.url,
                        fix="Give the same command again.",
                    )
                replica.settle()


def _copy_folder(url: RemotePath, stack: contextlib.ExitStack, *, temporary: bool) -> Path:
    """Return the folder for a copy: the one of earlier commands, unless another process has it."""
    name = re.sub(r"[^\w.-]+", "-", url.url)[-80:] + "-" + hashlib.sha256(url.url.encode()).hexdigest()[:8]
    place = user_cache("runs")
    place.mkdir(parents=True, exist_ok=True)
    if not temporary:
        beside = place / f"{name}.in-use"
        beside.mkdir(exist_ok=True)
        with contextlib.suppress(LockedError):
            stack.enter_context(locked(beside))
            return place / name
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=place))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder / name


class Replica:
    """A folder on a store and its copy; `index` says of each file what both have."""

    def __init__(self, url: RemotePath, copy: Path) -> None:
        self.url = url
        self.copy = copy
        self.lock: StoreLock | None = None
        self.index_file = copy.with_name(f"{copy.name}.json")
        self.index: dict[str, Version] = {}
        self.parts: list[str] = []
        with contextlib.suppress(OSError, ValueError, TypeError):
            entries = json.loads(self.index_file.read_text())
            self.index = {
                name: (int(size), int(time), str(tag)) for name, (size, time, tag) in entries.items()
            }

    def claim(self, *, new: bool, missing_ok: bool) -> None:
        """Mark the folder as one of a run if `new`; refuse one that holds other files."""
        mark, text = self.url / MARK, mark_on_a_store(RunFolder.kind)
        try:
            found = self._cat(mark)
        except FileNotFoundError:
            found = b""
        if not found.startswith(text):
            held = self._find()
            if found or held:
                raise StoreError(
                    f"the folder holds something that is not a {RunFolder.kind}",
                    where=self.url.url,
                    got=f"other files, and no {MARK} file as adverse writes it",
                    fix="Give an empty or a new folder (--out).",
                )
            if not missing_ok:
                raise StoreError(
                    f"this is not a {RunFolder.kind}",
                    where=self.url.url,
                    got="no such folder",
                    fix="Give the folder that adverse run printed.",
                )
            if new:
                self._create(MARK, text)
        RunFolder(self.copy).create()

    def fetch(self, only: Collection[str]) -> None:
        """Make the copy what the store has; what is as it was is not fetched again."""
        found = self._find()
        names = [
            name
            for name in found
            if (not OF_THIS_MACHINE.fullmatch(name)) and (not only or name in only) and _is_plain(name)
        ]
        if not only:
            for name in self._local():
                if name not in found:
                    (self.copy / name).unlink()
        old = [name for name in names if self._stale(name, found[name])]
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(lambda name: self._fetch(name, found[name]), old))
        for name in names:
            self.index[name] = self._version(name, _tag(found[name]))
        self.index = {name: self.index[name] for name in names}
        self.parts = sorted(name for name in found if re.fullmatch(rf"{PARTS}/\d{{16}}", name))
        if not only:
            self._add_parts()
            self._save()

    def _add_parts(self) -> None:
        """Put the lines behind the journal that a run has written one by one."""
        journal = self.copy / JOURNAL
        whole = journal.read_bytes() if journal.exists() else b""
        size = len(whole)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            lines = list(threads.map(lambda name: self._cat(self.url / name), self.parts))
        for name, line in zip(self.parts, lines, strict=True):
            if int(name.rpartition("/")[2]) == len(whole):
                whole += line
        if len(whole) > size:
            write_file(journal, whole)
        if self.parts and self.lock is not None:
            self._overwrite(JOURNAL)
            self._drop_parts()
        elif self.parts:
            self.index[JOURNAL] = self._version(JOURNAL, "")

    def put(self, path: Path, data: bytes) -> None:
        """Have a file of the copy on the store, too, before this returns; a manifest after all others."""
        name = path.relative_to(self.copy).as_posix()
        if OF_THIS_MACHINE.fullmatch(name):
            return
        self._check()
        if name == MANIFEST:
            self._send(sorted(self.changed() - {MANIFEST, JOURNAL}))
        if name == JOURNAL:
            self.fold(earlier=True)
        if name.startswith("detections/"):
            self._create_detections(name, data)
        else:
            self._overwrite(name, data)

    def append(self, path: Path, at: int, line: bytes) -> None:
        """Have a line of a file on the store before this returns; raise where another has written there."""
        if path != self.copy / JOURNAL:
            return  # logs go with the rest
        self._check()
        name = f"{PARTS}/{at:016d}"
        self._create(name, line)
        self.parts.append(name)

    def settle(self) -> None:
        """Bring to the store whatever is not as there, and delete there what was deleted here."""
        self._check()
        gone = self.deleted()
        first = sorted(gone & {MANIFEST, JOURNAL})  # without them, the rest means nothing
        for name in first:
            self._delete(name)
        if JOURNAL in gone:
            self._drop_parts()
        skipped = {JOURNAL} if self.parts else set[str]()
        self._send(sorted(self.changed() - skipped - {MANIFEST}))
        self._send(sorted(self.changed() & {MANIFEST}))
        for name in sorted(gone - {*first}):
            self._delete(name)
        self._save()

    def fold(self, *, earlier: bool = False) -> None:
        """Put the lines of the journal together; `earlier`: as they are on the store, not in the copy."""
        if not self.parts:
            return
        if earlier:
            whole = self._cat(self.url / JOURNAL) if self.tag_on_store(JOURNAL) else b""
            for name in self.parts:
                if int(name.rpartition("/")[2]) == len(whole):
                    whole += self._cat(self.url / name)
            self._overwrite(JOURNAL, whole)
        else:
            self._overwrite(JOURNAL)
        self._drop_parts()
        self._save()

    def offer(self, path: Path) -> None:
        """Have a file on the store that is worth no failure."""
        with contextlib.suppress(Exception):
            filesystem(self.url.scheme).pipe_file(f"{self.url.url}/{path.name}", path.read_bytes())
            self.index[path.name] = self._version(path.name, "")

    def changed(self) -> set[str]:
        """Return the files of the copy that are not on the store as they are here."""
        return {name for name in self._local() if self._version(name, "")[:2] != self.index.get(name, ())[:2]}

    def deleted(self) -> set[str]:
        """Return the files of the store that were in the copy, and are no longer."""
        return set(self.index) - set(self._local())

    def tag_of_manifest(self) -> str:
        """Return the tag of the manifest that was fetched."""
        return self.index[MANIFEST][2] if MANIFEST in self.index else ""

    def tag_on_store(self, name: str) -> str:
        """Return the tag that a file has on the store now; nothing where there is none."""
        path = self.url / name
        try:
            return _tag(tried(path, lambda: filesystem(path.scheme).info(path.url)))
        except FileNotFoundError:
            return ""

    def _check(self) -> None:
        if self.lock is not None:
            self.lock.check()

    def _find(self) -> dict[str, dict[str, Any]]:
        """Return what the store says of each file below the folder, by its name there."""
        root = f"{self.url.url.partition('://')[2]}/"
        try:
            found = tried(self.url, lambda: filesystem(self.url.scheme).find(self.url.url + "/", detail=True))
        except FileNotFoundError as error:
            raise StoreError(
                "there is no such bucket",
                where=self.url.url,
                got=str(error),
                fix="Make it with the tools of the store, or correct the name.",
            ) from None
        return {name.removeprefix(root): dict(facts) for name, facts in sorted(found.items()) if name != root}

    def _local(self) -> list[str]:
        names = []
        for folder, _, files in os.walk(self.copy):
            inside = Path(folder).relative_to(self.copy)
            names += [(inside / file).as_posix() for file in files if not PARTIAL.fullmatch(file)]
        return sorted(name for name in names if not OF_THIS_MACHINE.fullmatch(name))

    def _version(self, name: str, tag: str) -> Version:
        try:
            facts = (self.copy / name).stat()
        except FileNotFoundError:
            return 0, 0, ""
        return (facts.st_size, facts.st_mtime_ns, tag) if stat.S_ISREG(facts.st_mode) else (0, 0, "")

    def _stale(self, name: str, facts: dict[str, Any]) -> bool:
        tag = _tag(facts)
        return not tag or self.index.get(name) != self._version(name, tag)

    def _fetch(self, name: str, facts: dict[str, Any]) -> None:
        path, first = self.url / name, [facts]

        def task() -> None:
            known = first.pop() if first else filesystem(path.scheme).info(path.url)
            facts.update(known)
            fetch(path, self.copy / name, facts)

        try:
            tried(path, task)
        except FileNotFoundError:
            raise LockedError(
                "another process is changing this run",
                where=path.url,
                got="a file that went away while it was fetched",
                fix="Give the same command again.",
            ) from None

    def _cat(self, path: RemotePath) -> bytes:
        """Return a small file, whole: a body that ends early is fetched again."""

        def task() -> bytes:
            facts = filesystem(path.scheme).info(path.url)
            data = bytes(filesystem(path.scheme).cat_file(path.url))
            if facts["size"] is not None and len(data) != facts["size"]:
                raise EOFError(f"{len(data)} of {facts['size']} bytes")
            return data

        return tried(path, task)

    def _create(self, name: str, data: bytes) -> None:
        """Create a file that may not be there, or be the same."""
        path = self.url / name
        try:
            tried(path, lambda: filesystem(path.scheme).pipe_file(path.url, data, mode="create"), writes=True)
        except FileExistsError:
            if self._cat(path) != data:  # else it is ours, and the answer was lost
                raise LockedError(
                    "another process is writing into this folder",
                    where=path.url,
                    fix="Stop one of them, and give the same command again: finished work is kept.",
                ) from None

    def _create_detections(self, name: str, data: bytes) -> None:
        """Create the file of a unit; one that is there was never acknowledged: its name would be another."""
        path = self.url / name
        try:
            tried(path, lambda: filesystem(path.scheme).pipe_file(path.url, data, mode="create"), writes=True)
        except FileExistsError:
            if self._cat(path) != data:
                self._overwrite(name, data)
        self.index[name] = self._version(name, _tag_of(data))

    def _overwrite(self, name: str, data: bytes | None = None) -> None:
        path = self.url / name
        content = (self.copy / name).read_bytes() if data is None else data
        version = self._version(name, _tag_of(content))
        try:
            tried(path, lambda: filesystem(path.scheme).pipe_file(path.url, content), writes=True)
        except FileNotFoundError as error:
            raise StoreError(
                "there is no such bucket", where=path.url, got=str(error), fix="Make it again."
            ) from None
        self.index[name] = version

    def _send(self, names: list[str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(self._overwrite, names))

    def _delete(self, name: str) -> None:
        path = self.url / name
        with contextlib.suppress(FileNotFoundError):
            tried(path, lambda: filesystem(path.scheme).rm_file(path.url), writes=True)
        self.index.pop(name, None)

    def _drop_parts(self) -> None:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(self._delete, self.parts))
        self.parts = []

    def _save(self) -> None:
        write_file(self.index_file, json.dumps(self.index).encode(), flush=False)


def _is_plain(name: str) -> bool:
    """Return whether a name of a store can be one of a file below the copy."""
    parts = name.split("/")
    return not {"", ".", ".."} & set(parts) and "\\" not in name and "\0" not in name


def _tag(facts: dict[str, Any]) -> str:
    """Return what changes with the content of a file; empty where the store does not say."""
    return str(facts.get("ETag") or facts.get("etag") or facts.get("md5Hash") or "").strip('"')


def _tag_of(data: bytes) -> str:
    """Return the tag that S3 has for a file that was sent in one piece."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()

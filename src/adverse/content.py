"""Files as they were when the work was planned: whatever is read is compared with the plan.

A result is kept under the hashes of the files it was planned on, so it must come from those bytes and no
others. The bytes of a frame are hashed where they are read, once, between disk and decoder. The files of a
SUT are read by code that is not ours, maybe late or mapped into memory: they are hashed before it is loaded,
and whenever a result is handed over they must not have been written to since. Whoever has mapped a file to
write to it may do so without a trace in its entry, so small files are hashed again each time.

Content hashes: what a result is known by.

Where things are kept between runs that can be made or fetched again at any time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from numpy.typing import NDArray

from adverse.errors import DataError, IncompleteError
from adverse.plain_files import open_plain
from adverse.types import Frame, Source

CHUNK_BYTES = 1 << 20
SMALL_BYTES = 64 << 20
"""Files of a SUT that are no larger together are hashed again with every result."""
MISSING = "missing"
VARIABLE = "$"
"""Before the name of a variable of the environment, where otherwise the path of a file stands."""
WRITTEN = "written:"
"""Before the hash of a file that the code which reads it also writes: as it was left."""
NOT_NOTICED = (
    "files that a SUT only looks for, or that its compiled code or other programs read, are not noticed "
    "unless the study names them (files:)"
)
"""What a reader of results must know about the hashes of files that code opens by itself."""
MASKED: dict[str, str | None] = {}
"""Variables that code which is not ours has set in this process, as they were before."""


def digest(*parts: str | bytes | memoryview, size: int = 16) -> str:
    """Return the blake2b hash of the parts as hex; the borders between parts count.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    hasher = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hasher.update(memoryview(data).nbytes.to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file, read piece by piece."""
    hasher = hashlib.sha256()
    with open_plain(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()


def content_hash(path: Path) -> str:
    """Return the sha256 of a file, or of the value of $NAME; `missing` where it cannot be read.

    >>> content_hash(Path("$NO_SUCH_VARIABLE"))
    'missing'
    """
    name = str(path)
    if name.startswith(VARIABLE):
        value = MASKED.get(name[1:], os.environ.get(name[1:]))
        return MISSING if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()
    try:
        return file_sha256(path)
    except OSError:
        return MISSING


def content_hashes(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the sha256 of each file as it is now, several at a time; `missing` where one cannot be read.

    Nothing is remembered from one call to the next: equal size and times do not make equal bytes.
    """
    wanted = sorted(set(paths))
    with ThreadPoolExecutor() as pool:
        return dict(zip(wanted, pool.map(content_hash, wanted), strict=True))


T = TypeVar("T")
Stamp = tuple[str, int, int, int, int] | None
NAMED = 20
"""Files that are named when many changed."""
SOURCES = ("image", "right", "depth_m", "labels", "instances", "behind", "right_depth_m")
"""All of a frame that is read when asked for."""


@dataclass(frozen=True)
class Changed:
    """What a unit comes to when files are not what was planned: their hashes now, by path."""

    files: Mapping[Path, str]


class ChangedError(IncompleteError):
    """Files are not what was planned: `files` has their hashes now. What needs them comes to nothing."""

    def __init__(self, files: Mapping[Path, str], *, where: Path | str | None = None) -> None:
        self.files = dict(files)
        listed = [f"{path} {what_happened(found)}" for path, found in sorted(self.files.items())]
        many = len(listed) > 1
        super().__init__(
            f"{len(listed)} file{'s are' if many else ' is'} not what the run was planned with; "
            f"results that need {'them' if many else 'it'} were not kept",
            where=None if where is None else str(where),
            got="; ".join(listed[:NAMED])
            + (f"; and {len(listed) - NAMED} more" if len(listed) > NAMED else ""),
            wanted="data and models that stay as they are while they are used",
            fix="Put back what changed, or leave it as it is now, and run again: it does what is left.",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.files,))

    def placed(self, place: str) -> Self:
        """Return the same error, found at a place that is named before its own."""
        return type(self)(self.files, where=f"{place}, {self.where}" if self.where else place)


class PlannedFiles:
    """The files of some frames by their planned sha256, `missing` for those that could not be read.

    `changed` holds what was found where that was something else. To be used by one thread at a time.
    """

    def __init__(self, expected: Mapping[Path, str]) -> None:
        self.expected = expected
        self.changed: dict[Path, str] = {}
        self._compared: set[Path] = set()

    def of(self, frame: Frame) -> Frame:
        """Return a frame that can only be read as planned: everything else is a DataError."""
        sources = {name: getattr(frame, name) for name in SOURCES}
        planned: dict[str, Any] = {
            name: PlannedSource(found, self) for name, found in sources.items() if found is not None
        }
        return replace(frame, **planned)

    def read(self, path: Path, reader: Callable[[], T]) -> T:
        """Call the reader of a file; one that does not read through `data.files` is checked from outside."""
        before = stamp(path)
        self._compared.discard(path)
        token = _READING.set(self)
        try:
            return reader()
        finally:
            _READING.reset(token)
            if path not in self._compared:
                after = stamp(path)
                found = _hash_at(path, after)
                untouched = after == before or may_be_same(before, after)
                self._compare(path, found, same=found == self._planned(path) and untouched)

    def took(self, path: Path, data: bytes) -> None:
        """Compare the bytes that were read from a file, or raise DataError."""
        found = hashlib.sha256(data).hexdigest()
        self._compare(path, found, same=found == self._planned(path))

    def failed(self, path: Path, limit: int | None) -> None:
        """Raise DataError unless a file that could not be read is one that was planned so."""
        size, found = _measured(path)
        too_large = limit is not None and size > limit
        same = found == self._planned(path) and (found == MISSING or too_large)
        self._compare(path, MISSING if not same and found == self._planned(path) else found, same=same)

    def _planned(self, path: Path) -> str:
        if path not in self.expected:
            raise DataError(
                "the reader of a frame opens a file that it does not name",
                where=str(path),
                wanted="the path of its source, whose content is part of what a result is known by",
                fix="Read one file in each source of the data format.",
            )
        return self.expected[path]

    def _compare(self, path: Path, found: str, *, same: bool) -> None:
        self._compared.add(path)
        if not same:
            self.changed[path] = found
            raise DataError(
                f"the file {what_happened(found)} after the run was planned",
                where=str(path),
                fix="Put it back, or leave it as it is now, and run again.",
            )


class PlannedSource:
    """A source that is compared with the plan when it is read."""

    def __init__(self, source: Source, files: PlannedFiles) -> None:
        self._source = source
        self._files = files

    @property
    def path(self) -> Path:
        """The file whose bytes decide what is read."""
        return self._source.path

    @property
    def recipe(self) -> str:
        """How bytes become the array."""
        return self._source.recipe

    def __call__(self) -> NDArray[Any]:
        """Read it, or raise DataError."""
        return self._files.read(self.path, self._source)

    def __getattr__(self, name: str) -> Any:
        if name in ("of_pair", "baseline_m"):  # depth of images that are at hand: nothing is read
            return getattr(self._source, name)  # only computed depth has it
        if name != "read_with_notes":
            raise AttributeError(name)
        reader = self._source.read_with_notes  # type: ignore[attr-defined] # only images have it
        return lambda: self._files.read(self.path, reader)


class HeldFiles:
    """The files of something that is about to be loaded and then used; raises ChangedError if they differ."""

    def __init__(self, expected: Mapping[Path, str], found: Callable[[], Mapping[Path, str]]) -> None:
        self._expected = dict(expected)
        self._stamps = {path: stamp(path) for path in expected}
        now = found()
        differ = {path: now.get(path, MISSING) for path in expected if now.get(path) != expected[path]}
        differ |= {path: hashed for path, hashed in now.items() if path not in expected}
        if differ:
            raise ChangedError(differ)

    def written_to(self) -> list[Path]:
        """Return the files that somebody has written to, or replaced, since just before they were hashed."""
        written = []
        small = sum(before[2] for before in self._stamps.values() if before is not None) <= SMALL_BYTES
        for path, before in self._stamps.items():
            now = stamp(path)
            if now == before and (not small or content_hash(path) == self._expected[path]):
                continue
            if may_be_same(before, now) and content_hash(path) == self._expected[path]:
                self._stamps[path] = now  # of before the hash: what is written meanwhile is seen next time
            else:
                written.append(path)
        return written


def reading() -> PlannedFiles | None:
    """Return the plan that what is read here and now is compared with, if there is one."""
    return _READING.get()


def stamp(path: Path) -> Stamp:
    """Return what changes when a file is written to or replaced; None where there is none.

    Not enough to say that a file is the same as days ago, but that nobody touched it a moment ago, nor a
    symbolic link on the way to it.
    """
    try:
        found = path.stat()
        links = [place.lstat() for place in (path, *path.parents) if place.is_symlink()]
    except OSError:
        return None
    led = digest(*(f"{link.st_ino} {link.st_ctime_ns}" for link in links)) if links else ""
    return led, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def may_be_same(before: Stamp, now: Stamp) -> bool:
    """Return whether only the time of the last change of a file's entry differs; its hash then decides.

    So it does when somebody makes a hard link to it, as for a copy of an environment, or changes its mode.
    """
    return before is not None and now is not None and before[:-1] == now[:-1]


def what_happened(found: str) -> str:
    """Say in words what became of a file, by its hash now."""
    return "is gone" if found == MISSING else "was changed"


def _hash_at(path: Path, now: Stamp) -> str:
    """Hash a file, which may hold all frames of a log, once for as long as nobody writes to it."""
    known = _HASHED.get(path)
    if known is None or known[0] != now:
        known = _HASHED[path] = now, content_hash(path)
    return known[1]


def _measured(path: Path) -> tuple[int, str]:
    try:
        with open_plain(path) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            return file.tell(), found
    except OSError:
        return 0, MISSING


_HASHED: dict[Path, tuple[Stamp, str]] = {}
_READING: ContextVar[PlannedFiles | None] = ContextVar("reading", default=None)


def user_cache(kind: str) -> Path:
    """Return the folder of one kind of thing: adverse/KIND in $XDG_CACHE_HOME, ~/.cache by default."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "adverse" / kind

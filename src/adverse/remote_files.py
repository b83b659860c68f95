"""Files by URL: a path whose bytes lie on an object store or a web server, read through fsspec.

`RemotePath` is a path like any other: it has names and parents, can be listed, asked for its size, opened.
Whoever opens it gets a copy on the local disk, fetched the first time, whole and once for all processes of
the machine; `os.fspath` gives the place of the copy to code that takes nothing else. Copies that nobody used
for a while are deleted once they are more than the bound. A URL never holds credentials: they come from the
environment, where the libraries of each store look for them, and nothing here writes them anywhere.

An outage is no missing file: what cannot be fetched raises `IncompleteError` after some tries, which ends a
run without losing anything, while a file that is not there raises FileNotFoundError as on a disk.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Generator, Sequence
from importlib.util import find_spec
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, Self, TypeVar

from adverse.content import user_cache
from adverse.errors import AdverseError, IncompleteError, StudyError

SCHEMES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "http": "aiohttp", "https": "aiohttp"}
"""The kinds of URL, and the package that fsspec needs for each."""
EXTRAS = {"https": "http"}
"""The extra of this package that brings it, where that is not called like the kind of URL."""
URL = re.compile(r"(s3|gs|az|https?|file):/+(.*)", re.DOTALL)
TRIES = 5
FIRST_PAUSE_S = 0.2
"""Before the second try; twice as long before each further one."""
BOUND = "ADVERSE_REMOTE_CACHE_GB"
DEFAULT_BOUND_GB = 20.0
YOUNG_S = 600.0
"""Copies that were used in this time are never deleted: somebody may be about to open one."""
FULL_CHECK_S = 30.0
"""How often a process looks whether the copies are more than the bound."""
TAGS = ("ETag", "etag", "md5Hash", "generation", "LastModified", "last_modified", "mtime", "updated")
"""What stores call that which changes with a file."""
NO_ACCESS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "DefaultCredentialsError")
"""What the libraries of stores raise where they find no credentials."""
T = TypeVar("T")
_PROCESS = secrets.token_hex(8)


def named_path(text: str | Path) -> Path:
    """Return the path that a text names: a file of this machine, or with s3://, https:// ... a remote one.

    >>> named_path("data/images"), named_path("file:///data/images")
    (PosixPath('data/images'), PosixPath('/data/images'))
    >>> str(named_path("s3://bucket/data") / "a.png")
    's3://bucket/data/a.png'
    """
    found = URL.fullmatch(str(text))
    if isinstance(text, RemotePath) or found is None:
        return text if isinstance(text, Path) else Path(text)
    scheme, rest = found.groups()
    if scheme == "file":
        return Path("/" + rest)
    _refuse_secrets(scheme, rest)
    return RemotePath("/", f"{scheme}:", rest)


def is_url(text: object) -> bool:
    """Return whether a text, or a path that was made of one, is a URL of files that are elsewhere.

    >>> is_url("s3://bucket/data"), is_url(Path("s3://bucket/data")), is_url("file:///data"), is_url("data")
    (True, True, False, False)
    """
    found = URL.fullmatch(str(text))
    return found is not None and found[1] != "file"


def remote_cache() -> Path:
    """Return the folder of the copies."""
    return user_cache("remote")


def scan(folder: Path) -> list[tuple[str, bool]]:
    """Return the names in a folder, in order, each with whether it is a symbolic link."""
    if isinstance(folder, RemotePath):
        return [(path.name, False) for path in folder.iterdir()]
    with os.scandir(folder) as entries:
        return sorted((entry.name, entry.is_symlink()) for entry in entries)


class RemotePath(PosixPath):
    """A file or folder by its URL; kept as /SCHEME:/BUCKET/KEY, so that all that is said of paths holds."""

    __slots__ = ()

    @property
    def url(self) -> str:
        """The URL."""
        _, scheme, *rest = self.parts
        return f"{scheme}//{'/'.join(rest)}"

    @property
    def scheme(self) -> str:
        """The kind of URL."""
        return self.parts[1].rstrip(":")

    def __str__(self) -> str:
        """Return the URL."""
        return self.url

    def __repr__(self) -> str:
        """Return how it can be made again."""
        return f"named_path({self.url!r})"

    def __fspath__(self) -> str:
        """Return the local copy of the file."""
        return str(local_copy(self))

    def as_posix(self) -> str:
        """Return the URL."""
        return self.url

    @property
    def parents(self) -> tuple[Self, ...]:  # type: ignore[override, unused-ignore]
        """The folders that it is in, the last of them the bucket or server."""
        return tuple(folder for folder in super().parents if len(folder.parts) > 2)

    def relative_to(self, *other: str | os.PathLike[str], **options: Any) -> Path:  # type: ignore[override, unused-ignore]
        """Return the way from a folder to here, which is no URL."""
        return Path(*super().relative_to(*other, **options).parts)

    def absolute(self) -> Self:
        """Return itself."""
        return self

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002, FBT001, FBT002 - as of any path
        """Return itself: there are no links."""
        return self

    def expanduser(self) -> Self:
        """Return itself."""
        return self

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002 - there are no links
        """Return kind, size and version (as the inode); the time is not that of the file."""
        facts = _facts(self)
        if facts is None:
            raise FileNotFoundError(errno.ENOENT, "no such file on the store", self.url)
        if facts["type"] == "directory":
            return os.stat_result((stat.S_IFDIR | 0o755, 0, 0, 1, 0, 0, 0, 0, 0, 0))
        version = int(hashlib.sha256(_version(facts).encode()).hexdigest()[:12], 16)
        size = int(facts["size"] or 0)
        return os.stat_result((stat.S_IFREG | 0o444, version, 0, 1, 0, 0, size, 0, 0, 0))

    def lstat(self) -> os.stat_result:
        """Return the same: there are no links."""
        return self.stat()

    def exists(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - there are no links
        """Return whether there is a file or folder."""
        return _facts(self) is not None

    def is_file(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - there are no links
        """Return whether there is a file."""
        return (_facts(self) or {}).get("type") == "file"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - there are no links
        """Return whether there is a folder, that is, a file below it."""
        return (_facts(self) or {}).get("type") == "directory"

    def is_symlink(self) -> bool:
        """Return False."""
        return False

    def iterdir(self) -> Generator[Self, None, None]:
        """Yield what is in the folder, in order."""
        for name in _listed(self):
            yield self / name

    def glob(self, pattern: str, **_: Any) -> Generator[Self, None, None]:  # type: ignore[override, unused-ignore]
        """Yield what fits a pattern without **."""
        found = [self]
        for part in PurePosixPath(pattern).parts:
            inner = [child for path in found if path.is_dir() for child in path.iterdir()]
            found = [child for child in inner if PurePosixPath(child.name).match(part)]
        yield from found

    def rglob(self, pattern: str, **_: Any) -> Generator[Self, None, None]:  # type: ignore[override, unused-ignore]
        """Yield what is anywhere below the folder and fits a pattern of names."""
        for child in self.iterdir():
            if PurePosixPath(child.name).match(pattern):
                yield child
            if child.is_dir():
                yield from child.rglob(pattern)


_KNOWN: dict[RemotePath, dict[str, Any] | None] = {}
"""What a store said of a file, asked once by each process: what is read is compared with the plan anyway."""
_LISTS: dict[RemotePath, list[str]] = {}
_LOCKS: dict[RemotePath, threading.Lock] = {}
_LOCK = threading.Lock()
_CHECKED = [0.0]


def forget() -> None:
    """Ask the stores again from now on."""
    for known in (_KNOWN, _LISTS, _LOCKS):
        known.clear()
    filesystem.cache_clear()


def local_copy(path: RemotePath) -> Path:
    """Return the copy of a file on the local disk, fetched if it is not there or is of another version."""
    with _LOCK:
        lock = _LOCKS.setdefault(path, threading.Lock())
    with lock:
        facts = _facts(path)
        if facts is None:
            raise FileNotFoundError(errno.ENOENT, "no such file on the store", path.url)
        if facts["type"] == "directory":
            raise IsADirectoryError(errno.EISDIR, "it is a folder on a store, not a file", path.url)
        version = hashlib.sha256(f"{path.url} {_version(facts)}".encode()).hexdigest()
        copy = remote_cache() / version[:2] / version[2:] / path.name
        with contextlib.suppress(FileNotFoundError):
            os.utime(copy)  # used now
            return copy
        _trim()
        tried(path, lambda: fetch(path, copy, facts))
        return copy


def local_copies(path: Path, beside: Sequence[Path]) -> str:
    """Return the place of a file on this machine where those `beside` it are beside it too."""
    if not isinstance(path, RemotePath) or not beside:
        return os.fspath(path)
    places = {one: local_copy(one) for one in (path, *beside) if isinstance(one, RemotePath)}
    name = hashlib.sha256("\n".join(map(str, places.values())).encode()).hexdigest()
    folder = remote_cache() / name[:2] / name[2:]
    for one, copy in places.items():
        place = folder / one.relative_to(path.parent)
        place.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.link(copy, place)
    return str(folder / path.name)


def fetch(path: RemotePath, copy: Path, facts: dict[str, Any]) -> None:
    """Fetch a file whole, or raise; a body that ended early is no file."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(f".{copy.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        filesystem(path.scheme).get_file(path.url, str(part))
        size = part.stat().st_size
        if facts["size"] is not None and size != facts["size"]:
            raise EOFError(f"{size} of {facts['size']} bytes")
        tag = str(facts.get("ETag", "")).strip('"')
        if path.scheme == "s3" and re.fullmatch(r"[0-9a-f]{32}", tag):
            with part.open("rb") as file:
                found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
            if found != tag and "SSEKMSKeyId" not in facts:
                raise EOFError("another content than the store has")
        part.replace(copy)
    finally:
        part.unlink(missing_ok=True)


def _trim() -> None:
    """Delete the copies that were not used for longest, until they are no more than the bound."""
    now = time.monotonic()
    if now - _CHECKED[0] < FULL_CHECK_S and _CHECKED[0]:
        return
    _CHECKED[0] = now
    bound = _bound_bytes()
    files = []
    for file in remote_cache().rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            facts = file.stat()
            if stat.S_ISREG(facts.st_mode):
                files.append((facts.st_mtime, facts.st_size, file))
    total = sum(size for _, size, _ in files)
    newest = max((used for used, _, _ in files), default=0.0)  # no clock, which may be set anew meanwhile
    for used, size, file in sorted(files):
        if total <= bound or newest - used < YOUNG_S:
            return
        with contextlib.suppress(OSError):
            file.unlink()
            file.parent.rmdir()
        total -= size


def _bound_bytes() -> float:
    text = os.environ.get(BOUND, "")
    try:
        bound = float(text) if text else DEFAULT_BOUND_GB
    except ValueError:
        bound = -1.0
    if not bound >= 0:
        raise StudyError(
            f"{BOUND} is no size", got=repr(text), wanted="gigabytes, such as 50", fix="Correct it."
        )
    return bound * 1e9


def _facts(path: RemotePath) -> dict[str, Any] | None:
    """Return what a store says of a file or folder; None: there is none."""
    if path not in _KNOWN:
        if len(path.parts) <= 3 and path.scheme in ("s3", "gs", "az"):
            return {"type": "directory", "size": 0}  # a bucket; whether it is there, its list says
        _KNOWN[path] = tried(path, lambda: _asked(path))
    return _KNOWN[path]


def _asked(path: RemotePath) -> dict[str, Any] | None:
    try:
        facts = dict(filesystem(path.scheme).info(path.url))
    except FileNotFoundError:
        return None
    page = path.scheme in ("http", "https") and facts.get("mimetype") == "text/html"
    return {**facts, "type": "directory"} if page else facts  # the list of a folder


def _version(facts: dict[str, Any]) -> str:
    """Return what changes when a file does: its tag or time, and its size; without either, this process."""
    said = [f"{name} {facts[name]}" for name in TAGS if facts.get(name) is not None]
    return " ".join([f"size {facts.get('size')}", *(said or [f"fetched by {_PROCESS}"])])


def _listed(folder: RemotePath) -> list[str]:
    if folder not in _LISTS:
        names: list[str] = []
        entries = tried(folder, lambda: filesystem(folder.scheme).ls(folder.url, detail=True))
        own = folder.url.partition("://")[2]
        for entry in entries:
            place, _, name = str(entry["name"]).rstrip("/").rpartition("://")[2].rpartition("/")
            if place == own:  # not the folder itself, which some stores list too
                names.append(name)
                if folder.scheme not in ("http", "https"):  # whose lists are names only
                    _KNOWN[folder / name] = dict(entry)
        _LISTS[folder] = sorted(set(names))
    return _LISTS[folder]


def tried(path: RemotePath, task: Callable[[], T], *, writes: bool = False) -> T:
    """Do something with a store, again if it fails; what is there, not there or not allowed fails at once."""
    pause = FIRST_PAUSE_S
    for number in range(1, TRIES + 1):
        try:
            return task()
        except (AdverseError, FileNotFoundError, FileExistsError):
            raise
        except PermissionError as error:
            raise _refused(path, error, writes=writes) from None
        except Exception as error:  # noqa: BLE001 - each store has its own
            if type(error).__name__ in NO_ACCESS:
                raise _refused(path, error, writes=writes) from None
            if number == TRIES:
                raise IncompleteError(
                    f"a file cannot be {'written to the store' if writes else 'fetched'}; "
                    "finished work is kept",
                    where=path.url,
                    got=f"{_words(error)}, {TRIES} times",
                    fix="See whether the store can be reached, and run the same command again: it resumes.",
                ) from None
            time.sleep(pause)
            pause *= 2
    raise AssertionError


def _refused(path: RemotePath, error: Exception, *, writes: bool) -> IncompleteError:
    verb = "write" if writes else "read"
    return IncompleteError(
        f"the store does not let us {verb} this",
        where=path.url,
        got=_words(error),
        wanted=f"credentials that may {verb} it, in the environment or where the store's own tools keep them",
        fix="Set them for this user, on every worker too, and run the same command again.",
    )


def _words(error: Exception) -> str:
    """Return an error in one line; no more, as a library might quote the whole request."""
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]


@functools.cache
def filesystem(scheme: str) -> Any:
    """Return what fsspec has for a kind of URL, with the credentials of the environment."""
    package = SCHEMES[scheme]
    if find_spec("fsspec") is None or find_spec(package) is None:
        raise StudyError(
            f"files by {scheme}:// need a package that is not installed",
            got=f"no package named {package}",
            fix=f"pip install 'adverse[{EXTRAS.get(scheme, scheme)}]'",
        )
    import fsspec  # noqa: PLC0415 - only where files are elsewhere

    caching = {"use_listings_cache": False} if scheme != "az" else {}
    return fsspec.filesystem("abfs" if scheme == "az" else scheme, skip_instance_cache=True, **caching)


def _refuse_secrets(scheme: str, rest: str) -> None:
    """Raise for a URL that holds, or may hold, what lets somebody in: it would be written down."""
    host = rest.partition("/")[0]
    if "@" in host or "?" in rest or "#" in rest:
        raise StudyError(
            "a URL must not hold credentials or a query",
            got=f"{scheme}://{'...@' if '@' in host else ''}{host.rpartition('@')[2]}/...",
            wanted="the plain URL of a file or folder: it is written into the manifest and the report",
            fix="Give credentials in the environment, such as AWS_ACCESS_KEY_ID or AWS_PROFILE.",
        )

"""A run that is stopped at each of its file operations, in six ways; then resumed, and compared.

Kill, half write and power cut are states of the disk: they are recorded before every operation of one run.
For ENOSPC, EIO and EACCES the run is forked before the operation, which then fails in the fork. What each of
these leaves behind is put back into the folder and resumed; what is the same is resumed once. What partial
files hold makes no difference as long as no run opens them to read, which is watched. It all runs in one warm
process and forks of it; `python every_operation.py FOLDER 0 2` does a half of it.

A power cut keeps what was flushed: the content that a file had when it was flushed, under the names that its
folder had when that was. All names may have been kept too; then what was not flushed is empty.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import gc
import hashlib
import io
import json
import os
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import duckdb

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bad_input.command import Said
from bad_input.good_study import GoodStudy

KILLED = re.compile(rb"<li>the whole run was killed [^<]*</li>")
WHEN = re.compile(rb'"(finished|digest)": "[^"]*"')
"""What differs between manifests of runs that went alike: when, and the hash over that."""
ERRORS = {errno.ENOSPC: 3, errno.EIO: 2, errno.EACCES: 2}
"""What is injected, and the exit code that it must lead to."""
STATUS = "status.json"
"""Says how far a run is. No run reads it, and one that cannot write it goes on, so it is left out here."""
HALF = "half of "
PARTIAL = ".partial"
"""How the name of a file ends that is being written."""
Content = dict[str, bytes | None]
"""What lies below a folder: the bytes of files by path, None for folders."""


def content(folder: Path) -> Content:
    """Return all that lies below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if STATUS not in path.name
    }


def put_back(folder: Path, wanted: Content) -> None:
    """Make a folder hold this and nothing else; the folder itself stays the same one."""
    there = content(folder)
    kept = {name for name, data in there.items() if name in wanted and wanted[name] == data}
    for name, data in sorted(there.items(), reverse=True):
        if name not in kept:
            (folder / name).rmdir() if data is None else (folder / name).unlink()
    for name, data in sorted(wanted.items()):
        path = folder / name
        if name in kept:
            continue
        if data is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def hash_of(state: Content) -> str:
    """Return one hash for states that are the same but for what cut writes left, and of which process."""
    whole = hashlib.sha256()
    for name, data in sorted(state.items()):
        if name.endswith(PARTIAL):
            whole.update(re.sub(rf"\.\d+{PARTIAL}$", PARTIAL, name).encode() + b"\0")
            continue
        whole.update(f"{name}\0{'folder' if data is None else len(data)}\0".encode())
        whole.update(data or b"")
    return whole.hexdigest()


def path_of(handle: int) -> Path:
    """Return the path of an open file; a fork may have deleted it, but then it is back by now."""
    return Path(str(Path(f"/proc/self/fd/{handle}").readlink()).removesuffix(" (deleted)"))


@dataclass
class Flushed:
    """What a power cut would leave: by inode, the content of files and the names in folders when flushed."""

    files: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    folders: set[int] = field(default_factory=set)

    def flush(self, handle: int) -> None:
        path = path_of(handle)
        inode = os.fstat(handle).st_ino
        if path.is_dir():
            self.names[inode] = {entry.name: entry.inode() for entry in os.scandir(path)}
            self.folders |= {entry.inode() for entry in os.scandir(path) if entry.is_dir()}
        else:
            self.files[inode] = path.read_bytes()

    def only(self, inode: int, below: str = "") -> Content:
        """Return what is left if nothing but what was flushed is."""
        left: Content = {}
        for name, child in self.names.get(inode, {}).items():
            if STATUS in name:
                continue
            if child in self.folders:
                left |= {below + name: None, **self.only(child, f"{below}{name}/")}
            else:
                left[below + name] = self.files.get(child, b"")
        return left

    def with_all_names(self, folder: Path) -> Content:
        """Return what is left if all names are, but of files only what was flushed."""
        left: Content = {}
        for path in sorted(folder.rglob("*")):
            if STATUS in path.name:
                continue
            data = None if path.is_dir() else self.files.get(path.stat().st_ino, b"")
            left[str(path.relative_to(folder))] = data
        return left


@dataclass
class Recorder:
    """Stands in for the file operations of a run, and keeps what each way of stopping would leave."""

    folder: Path
    part: int
    parts: int
    states: dict[str, tuple[str, Content]] = field(default_factory=dict)
    """By their hash: how each comes about, and the disk."""
    flushed: Flushed = field(default_factory=Flushed)
    operations: int = 0
    wrong: list[str] = field(default_factory=list)
    before_all: list[Content] = field(default_factory=list)
    """The disk before each operation."""
    sites: set[tuple[Any, ...]] = field(default_factory=set)
    failing: int | None = None
    """The error that the operation is to raise, in a fork."""

    def keep(self, name: str, state: Content, *, ours: bool = False) -> None:
        """Keep a state that was not seen yet, if it is `ours` or in our part; best with half a file."""
        key = hash_of(state)
        if (ours or int(key, 16) % self.parts == self.part) and (key not in self.states or HALF in name):
            self.states[key] = (name, state)

    def before(self, what: str, path: Path, data: bytes = b"") -> None:
        """Take note of the disk before an operation, and let it fail in forks."""
        name = f"operation {self.operations}, {what} {path.name}"
        self.operations += 1
        now = content(self.folder)
        self.keep(f"kill before {name}", now)
        self.before_all.append(now)
        self.keep(f"power cut before {name}", self.flushed.only(self.folder.stat().st_ino))
        self.keep(f"power cut before {name}, names kept", self.flushed.with_all_names(self.folder))
        if data:
            relative = str(path.relative_to(self.folder))
            half = (now.get(relative) or b"") + data[: len(data) // 2]
            self.keep(f"{HALF}{name}", {**now, relative: half})
        if what == "ftruncate":
            return  # the lock says that nobody holds it; where that fails, nobody does all the same
        if self.operations % self.parts != self.part:
            return
        for number in self.errors(what):
            self.fail(name, number)

    def errors(self, what: str) -> list[int]:
        """Return what to inject: all errors where a line of ours comes first, else one of them in turn."""
        stack = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None)]
        site = (what, *(line for file, line in stack if "/adverse/" in file))
        every = list(ERRORS)
        chosen = [every[self.operations % len(every)]] if site in self.sites else every
        self.sites.add(site)
        return chosen

    def fail(self, name: str, number: int) -> None:
        """Let the operation raise in a fork, see how that ends, and undo what it did to the folder."""
        with _undone(self.folder):
            child = os.fork()
            if not child:
                self.failing = number
                raise OSError(number, os.strerror(number))
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said = Said(code, (self.folder.parent / "said.txt").read_text())
            try:
                said.expect(ERRORS[number], os.strerror(number))
                partial = [str(path) for path in self.folder.rglob(f"*{PARTIAL}")]
                assert not partial, partial
            except AssertionError as error:
                self.wrong.append(f"{errno.errorcode[number]} at {name}: {error}")
            after = content(self.folder)
            if after not in self.before_all:
                self.keep(f"{errno.errorcode[number]} at {name}", after, ours=True)


@contextlib.contextmanager
def _undone(folder: Path) -> Iterator[None]:
    """Put the very files back that a folder held: who has them open goes on with them."""
    kept = {path: path.stat() for path in folder.rglob("*")}
    files = {path: status for path, status in kept.items() if not path.is_dir()}
    data = {path: path.read_bytes() for path in files}
    aside = folder.with_name("aside")
    aside.mkdir(exist_ok=True)
    for path, status in files.items():
        os.link(path, aside / str(status.st_ino))
    yield  # in a fork it raises, and nothing is undone
    for path in sorted(folder.rglob("*"), reverse=True):
        if path not in kept:
            path.rmdir() if path.is_dir() else path.unlink()
    for path, status in sorted(files.items()):
        if not path.exists() or path.stat().st_ino != status.st_ino:
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            os.link(aside / str(status.st_ino), path)
        elif path.name != "lock" and path.read_bytes() != data[path]:
            with real["open"](path, "r+b") as file:
                file.write(data[path])
                file.truncate()
    for link in aside.iterdir():
        link.unlink()


real: dict[str, Callable[..., Any]] = {
    name: getattr(os, name)
    for name in ("fsync", "replace", "unlink", "mkdir", "rmdir", "truncate", "ftruncate")
} | {"open": io.open, "os_open": os.open, "pwrite": os.pwrite, "rename": os.rename}


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:  # noqa: C901 - one stand-in for each kind of call
    """Let every operation below the folder pass the recorder first."""

    def ours(path: Any) -> bool:
        if recorder.failing is not None or busy:
            return False
        if isinstance(path, int) or STATUS in Path(path).name:
            return False
        return Path(path).is_relative_to(recorder.folder)

    busy: list[bool] = []

    def tell(what: str, path: Any, data: bytes = b"") -> None:
        busy.append(True)
        try:
            recorder.before(what, Path(path), data)
        finally:
            busy.clear()

    def of_path(name: str) -> Callable[..., Any]:
        def operation(path: Any, *args: Any, **more: Any) -> Any:
            if ours(path) and not (name == "mkdir" and Path(path).exists()):
                tell(name, path)
            return real[name](path, *args, **more)

        return operation

    def of_handle(name: str) -> Callable[..., Any]:
        def operation(handle: int, *args: Any) -> Any:
            path = path_of(handle)
            if ours(path):
                tell(name, path)
                if name == "fsync":
                    recorder.flushed.flush(handle)
                    return None
            return real[name](handle, *args)

        return operation

    def opened(path: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        written = not isinstance(path, int) and set(mode) & set("wax+") and ours(path)
        if written:
            tell("open", path)
        file = real["open"](path, mode, *args, **more)
        if written:
            if "w" in mode:
                recorder.flushed.files.pop(os.fstat(file.fileno()).st_ino, None)
            return _Written(file, lambda data: tell("write", path, data))
        return file

    def os_opened(path: Any, flags: int, *args: Any, **more: Any) -> int:
        if ours(path) and flags & os.O_CREAT:
            tell("open", path)
        return int(real["os_open"](path, flags, *args, **more))

    stand_ins: dict[str, Any] = {
        **{name: of_path(name) for name in ("replace", "rename", "unlink", "mkdir", "rmdir", "truncate")},
        **{name: of_handle(name) for name in ("fsync", "ftruncate", "pwrite")},
        "open": os_opened,
    }
    patched: list[tuple[Any, str, Any]] = [(os, name, stand_in) for name, stand_in in stand_ins.items()]
    patched += [(io, "open", opened), (builtins, "open", opened)]
    before = [(module, name, getattr(module, name)) for module, name, _ in patched]
    for module, name, stand_in in patched:
        setattr(module, name, stand_in)
    try:
        yield
    finally:
        for module, name, original in before:
            setattr(module, name, original)


class _Written:
    """A file whose writes are told first, and reach the disk one by one."""

    def __init__(self, file: Any, told: Callable[[bytes], None]) -> None:
        self.file = file
        self.told = told

    def write(self, data: Any) -> int:
        self.told(data if isinstance(data, bytes) else str(data).encode())
        written = int(self.file.write(data))
        self.file.flush()
        return written

    def __enter__(self) -> Self:
        self.file.__enter__()
        return self

    def __exit__(self, *ended: object) -> None:
        self.file.__exit__(*ended)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def partial_files_read() -> list[str]:
    """Return a list of the partial files that Python opens to read from now on; no library can read half."""
    opened: list[str] = []

    def hook(event: str, values: tuple[Any, ...]) -> None:
        if event == "open" and str(values[0]).endswith(PARTIAL) and values[2] & os.O_ACCMODE != os.O_WRONLY:
            opened.append(str(values[0]))

    sys.addaudithook(hook)
    return opened


def results(run: Path) -> dict[str, bytes]:
    """Return what must not depend on how the run went. That it was killed is said in the report alone."""
    places = [*run.glob("detections/*.parquet"), *run.glob("results/*"), run / "report.html"]
    places += [run / name for name in ("cells.parquet", "frames.parquet", "truth.parquet", "study.yaml")]
    found = {path.name: path.read_bytes() for path in places if not path.name.startswith(".")}
    return {**found, "report.html": KILLED.sub(b"", found["report.html"])}


def in_a_fork(work: Callable[[], None], said: Path) -> int:
    """Do something in a fork of this process; all it prints goes to a file."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code: object = 1
    gc.disable()  # a collection touches all pages, each of which would be copied
    try:
        handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        work()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 - nothing may leave a fork
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def keep_databases_open(connect: Callable[..., duckdb.DuckDBPyConnection]) -> None:
    """Close no database before the end of the process: a fork cannot close one that was opened before it."""
    kept: list[duckdb.DuckDBPyConnection] = []

    def opened() -> duckdb.DuckDBPyConnection:
        kept.append(connect(config={"threads": 1}))
        return kept[-1]

    duckdb.connect = opened  # type: ignore[assignment]


def main() -> None:
    """Sweep, and print what was found as JSON."""
    os.fsync = lambda fd: None  # noqa: ARG005 - what a power cut leaves is made up here, none is waited for
    home, part, parts = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    study = GoodStudy(home / "study", "coco")
    said = study.adverse()
    assert said.code == 0, said.text
    study.adverse("verify").expect(0)  # so that all is imported before the first fork
    straight = results(study.run)
    study.run = study.folder / "swept"
    recorder = Recorder(study.run, part, parts)
    study.run.mkdir()
    told = study.folder / "said.txt"
    record = study.folder / "recorded"

    def recorded() -> None:
        keep_databases_open(duckdb.connect)
        with recording(recorder):
            said = study.adverse()
        if recorder.failing is None:
            assert results(study.run) == straight
            record.write_bytes(pickle.dumps((recorder.operations, recorder.wrong, recorder.states)))
        else:
            told.write_text(said.text)
        sys.exit(said.code)

    gc.freeze()
    code = in_a_fork(recorded, study.folder / "recording.txt")
    assert code == 0, (study.folder / "recording.txt").read_text()
    operations, wrong, states = pickle.loads(record.read_bytes())
    verified: set[str] = set()
    read = partial_files_read()
    for name, state in states.values():
        put_back(study.run, state)
        done = (state.get("journal") or b"").count(b"\n")
        read.clear()
        try:
            said = study.adverse()
            assert not read, f"read what may be half a file: {read}"
            said.expect(0, f"{8 * done} of 16 images were done before" if done else "results:")
            found = results(study.run)
            assert found == straight, sorted(n for n in found | straight if found.get(n) != straight.get(n))
            end = content(study.run)
            key = hash_of({**end, "manifest.json": WHEN.sub(b"", end["manifest.json"] or b"")})
            if key not in verified:  # a folder that holds the same passes the same
                study.adverse("verify").expect(0)
                verified.add(key)
        except AssertionError as error:
            wrong.append(f"{name}: {str(error)[-1500:]}")
    gc.unfreeze()
    sys.stdout.write(
        json.dumps({"operations": operations, "resumed": len(states), "ends": len(verified), "wrong": wrong})
    )


if __name__ == "__main__":
    main()

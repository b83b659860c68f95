"""What a run is doing right now: a small file beside it, for `adverse status`, gone when all is done.

It is written every few seconds, is no part of what results are made from, and may fail to be written without
harm. After a stop or a kill it stays behind and shows how far the run was; the next one writes it anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from adverse.errors import StoreError
from adverse.remote_files import is_url
from adverse.store.durable import twin_of
from adverse.store.folder import RunFolder
from adverse.store.replica import working_copy

STATUS = "status.json"
EVERY_S = 2.0
"""How often it is written; a run that is over before leaves none."""
SILENT_S = 60.0
"""A run on another machine that wrote nothing for so long is taken for dead."""
NOTES_KEPT = 8
OVER = "over"
"""The state in a file whose run ended before all was done."""


class _Watcher(Protocol):
    """Hears how a run goes on."""

    def note(self, text: str) -> None: ...
    def under_way(self, answered: int) -> None: ...
    def begin(self, total: int, done: int) -> None: ...
    def advance(self, statuses: Counter[str]) -> None: ...
    def end(self) -> None: ...


@dataclass
class RunStatus:
    """How far a run is; times in seconds since 1970, counts in (frame, mutation, SUT)."""

    state: str = "running"
    """running; or what became of it: complete, interrupted, incomplete, killed."""
    host: str = ""
    pid: int = 0
    engine: str = ""
    started: float = 0.0
    written: float = 0.0
    total: int = 0
    before: int = 0
    """Done by earlier runs in the folder."""
    done: int = 0
    answered: int = 0
    """Of units under way."""
    warm: tuple[float, int] | None = None
    """When the first answers were there, and how many: what is loaded before them is done once."""
    statuses: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """The last of what was worth a line: workers lost, SUTs isolated."""
    noted: int = 0
    workers: dict[str, str] = field(default_factory=dict)
    """What each worker does."""

    @property
    def rate(self) -> float | None:
        """Images a second since the first answers; None: not known yet."""
        if self.warm is None or self.written <= self.warm[0] or self.done + self.answered <= self.warm[1]:
            return None
        return (self.done + self.answered - self.warm[1]) / (self.written - self.warm[0])

    @property
    def left_s(self) -> float | None:
        """About how long it takes from when this was written; None: not known."""
        rate = self.rate
        return None if rate is None else max(self.total - self.done - self.answered, 0) / rate


class StatusFile:
    """Writes the file while it passes on what it hears; `activity` tells what each worker does."""

    def __init__(
        self, folder: RunFolder, watch: _Watcher, engine: str, activity: Callable[[], Mapping[str, str]]
    ) -> None:
        self.path = folder.path / STATUS
        self.watch = watch
        self.activity = activity
        now = time.time()
        self.status = RunStatus(
            host=platform.node(), pid=os.getpid(), engine=engine, started=now, written=now
        )
        self.counted = Counter[str]()
        self.notes: deque[str] = deque(maxlen=NOTES_KEPT)

    def note(self, text: str) -> None:
        """Keep a line, and pass it on."""
        self.notes.append(text)
        self.status.noted += 1
        self.watch.note(text)

    def begin(self, total: int, done: int) -> None:
        """Start to count."""
        self.status.total, self.status.done, self.status.before = total, done, done
        self.watch.begin(total, done)

    def advance(self, statuses: Counter[str]) -> None:
        """Count what was finished."""
        self.counted += statuses
        self.status.done += statuses.total()
        self.watch.advance(statuses)
        self.under_way(0, tell=False)

    def under_way(self, answered: int, *, tell: bool = True) -> None:
        """Write the file if that was not done for a while."""
        status, now = self.status, time.time()
        status.answered = answered
        if status.warm is None and status.done + answered > status.before:
            status.warm = now, status.done + answered
        if now - status.written >= EVERY_S:
            status.written = now
            status.statuses, status.notes = dict(self.counted), list(self.notes)
            status.workers = dict(self.activity())
            self._write()
        if tell:
            self.watch.under_way(answered)

    def end(self) -> None:
        """Take the file away if all is done; else it stays, and says how far the run came.

        How it ended says the manifest.
        """
        status = self.status
        if status.done < status.total:
            status.state, status.answered, status.workers = OVER, 0, {}
            status.statuses, status.notes = dict(self.counted), list(self.notes)
            self._write()
        else:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        self.watch.end()

    def _write(self) -> None:
        """Put the file in its place, whole; not on the disk at once, and not at any price."""
        part = self.path.with_name(f".{STATUS}.{os.getpid()}.partial")
        with contextlib.suppress(OSError):
            try:
                part.write_text(json.dumps(asdict(self.status)))
                part.replace(self.path)
                if (twin := twin_of(self.path)) is not None:
                    twin.offer(self.path)
            finally:
                part.unlink(missing_ok=True)


def run_status(path: Path) -> RunStatus:
    """Return how far the run in a folder is, or how it ended; the folder may be a URL."""
    if is_url(path):
        with working_copy(path, only=("manifest.json", STATUS), note=lambda _text: None) as copy:
            return run_status(copy)
    folder = RunFolder(path)
    manifest = folder.read_manifest()
    status = _written(folder)
    if status is not None and status.state != OVER and _alive(status):
        return status
    ended = str(manifest["status"])
    if status is None or ended == "complete":
        status = RunStatus()
    status.state = "killed" if ended == "running" else ended  # nobody wrote how it ended
    return status


def _written(folder: RunFolder) -> RunStatus | None:
    try:
        data: dict[str, Any] = json.loads((folder.path / STATUS).read_text())
        warm = data.pop("warm")
        return RunStatus(**data, warm=None if warm is None else (float(warm[0]), int(warm[1])))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(
            "the status of the run cannot be read",
            where=str(folder.path / STATUS),
            got=f"{type(error).__name__}: {error}",
            fix="Delete it: a run that goes on writes it again in seconds.",
        ) from error


def _alive(status: RunStatus) -> bool:
    if status.host != platform.node():
        return time.time() - status.written < SILENT_S
    try:
        os.kill(status.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True

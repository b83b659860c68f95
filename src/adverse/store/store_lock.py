"""The lock of a folder on an object store: a file that only one can create, and that its holder keeps alive.

Locks are numbered files. Whoever creates the next number holds the folder: a store lets one of many do so
(`If-None-Match: *`). The holder writes its file anew every few seconds. A lock whose file did not change for
a minute, by the watch of whoever looks, is of a process that is gone; the clocks of two machines are never
compared. A holder that was away for so long looks whether it still is one before it writes anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from adverse.errors import LockedError
from adverse.remote_files import RemotePath, filesystem, tried

LOCKS = "lock.d"
BEAT_S = 5.0
"""How often a holder writes its file anew."""
LEASE_S = 60.0
"""A lock whose file did not change for so long is of nobody."""
POLL_S = 1.0
STALE = "took over the lock of process {pid} on {host}, which is gone"


class StoreLock:
    """The lock of one folder; `acquire` it, `check` it before each write, `release` it."""

    def __init__(self, folder: RemotePath, *, note: Callable[[str], None]) -> None:
        self.folder = folder
        self.note = note
        self.number = 0
        self.token = secrets.token_hex(8)
        self.beats = 0
        self.renewed = 0.0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._keep_alive, daemon=True)

    def acquire(self) -> None:
        """Hold the lock, or raise where another process does."""
        while True:
            number = max(self._numbers(), default=0)
            held = self._read(number)
            if held is not None and not held.get("released"):
                self._wait_for(number, held)
            if self._create(number + 1):
                break
        self.number, self.renewed = number + 1, time.monotonic()
        for old in self._numbers():
            if old < self.number:
                self._delete(old)
        self._thread.start()

    def check(self) -> None:
        """Raise where the lock may be of another by now; quick, unless it was not renewed for long."""
        if time.monotonic() - self.renewed > LEASE_S / 2:
            self._renew()

    def release(self) -> None:
        """Let others have it."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(Exception):  # then it ends by itself
            self._write(released=True)

    def _wait_for(self, number: int, held: dict[str, Any]) -> None:
        """Return once a lock is of a process that is gone; raise once its file changes."""
        if held["host"] == socket.gethostname() and not _running(held["pid"]):
            self.note(STALE.format(**held))
            return
        self.note(
            f"the folder is locked by process {held['pid']} on {held['host']}: "
            f"looking for up to {LEASE_S:.0f} s whether that is still there"
        )
        until = time.monotonic() + LEASE_S
        while time.monotonic() < until:
            time.sleep(POLL_S)
            now = self._read(number)
            if now is None or now.get("released"):
                return
            if now["beats"] != held["beats"]:
                raise self._locked(held)
        self.note(STALE.format(**held))

    def _locked(self, held: dict[str, Any]) -> LockedError:
        return LockedError(
            "another process is using this folder",
            where=self.folder.url,
            got=f"process {held.get('pid', '?')} on {held.get('host', '?')}",
            fix="Wait for it or stop it, or give another folder with --out.",
        )

    def _keep_alive(self) -> None:
        while not self._ended.wait(BEAT_S):
            with contextlib.suppress(Exception):  # `check` says it where something is to be written
                self._renew()

    def _renew(self) -> None:
        with self._lock:
            newest = max(self._numbers(), default=0)
            held = self._read(newest) or {}
            if newest != self.number or held.get("token") != self.token:
                self.renewed = -LEASE_S  # every further check looks again
                raise self._locked(held)
            self.beats += 1
            self._write()
            self.renewed = time.monotonic()

    def _numbers(self) -> list[int]:
        place = self.folder / LOCKS
        found = tried(place, lambda: filesystem(place.scheme).find(place.url))
        return sorted(int(name) for name in (key.rpartition("/")[2] for key in found) if name.isdigit())

    def _path(self, number: int) -> RemotePath:
        return self.folder / LOCKS / f"{number:08d}"

    def _text(self, *, released: bool = False) -> bytes:
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "token": self.token, "beats": self.beats}
        return json.dumps({**holder, **({"released": True} if released else {})}).encode()

    def _read(self, number: int) -> dict[str, Any] | None:
        if number == 0:
            return None
        path = self._path(number)
        try:
            holder = json.loads(tried(path, lambda: filesystem(path.scheme).cat_file(path.url)))
        except FileNotFoundError:
            return None
        except ValueError:
            return {"pid": -1, "host": "?", "beats": -1}
        return dict(holder)

    def _create(self, number: int) -> bool:
        path = self._path(number)
        try:
            tried(
                path,
                lambda: filesystem(path.scheme).pipe_file(path.url, self._text(), mode="create"),
                writes=True,
            )
        except FileExistsError:  # by another; or by us, and the answer was lost
            return (self._read(number) or {}).get("token") == self.token
        return True

    def _write(self, *, released: bool = False) -> None:
        path, text = self._path(self.number), self._text(released=released)
        tried(path, lambda: filesystem(path.scheme).pipe_file(path.url, text), writes=True)

    def _delete(self, number: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            path = self._path(number)
            tried(path, lambda: filesystem(path.scheme).rm_file(path.url), writes=True)


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True

"""One process at a time on a run folder.

The lock is the operating system's own on an open file: it ends with its process, so a lock left behind by
a crash is stale by itself and simply taken over. The file's text only says who holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from adverse.errors import LockedError
from adverse.store.durable import storage_errors


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[str | None]:
    """Hold the folder's lock; yield a note when a dead process had left one behind."""
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

"""Content hashes of the input files, remembered by size and time, so that a resume is quick.

A memory can be wrong, so a plan that was made with it is only a claim: workers compare every file with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from adverse.content import MISSING, Stamp, file_sha256, stamp
from adverse.store.durable import write_file


class FileHashes:
    """sha256 by path. `memory` is where they are remembered; None remembers nothing."""

    def __init__(self, memory: Path | None = None) -> None:
        self.memory = memory
        self.known: dict[str, tuple[Stamp, str]] = {}
        if memory is not None and memory.exists():
            try:
                stored = json.loads(memory.read_text())
                self.known = {
                    path: ((int(a), int(b), int(c), int(d)), str(sha256))
                    for path, ((a, b, c, d), sha256) in stored.items()
                }
            except (ValueError, TypeError, AttributeError):
                self.known = {}  # only a memory: what cannot be read is worked out again

    def of(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the hash of each file; files that cannot be read are `missing`."""
        wanted = sorted(set(paths))
        with ThreadPoolExecutor() as pool:
            return dict(zip(wanted, pool.map(self._one, wanted), strict=True))

    def forget(self, paths: Iterable[Path]) -> None:
        """Read some files again next time, whatever they look like."""
        for path in paths:
            self.known.pop(str(path), None)

    def remember(self) -> None:
        """Write down what is known."""
        if self.memory is not None:
            write_file(self.memory, json.dumps(self.known, indent=0, sort_keys=True).encode())

    def _one(self, path: Path) -> str:
        now = stamp(path)
        known = self.known.get(str(path))
        if now is not None and known is not None and known[0] == now:
            return known[1]
        try:
            found = file_sha256(path)
        except OSError:
            return MISSING
        self.known[str(path)] = (now, found)
        return found

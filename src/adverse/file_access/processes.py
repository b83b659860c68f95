"""The files that a process and those it has started map into memory or hold open; Linux tells, in /proc."""

from __future__ import annotations

import os
import re
from pathlib import Path

MAPPED = re.compile(r"^\S+ \S+ \S+ \S+ [1-9]\d* +(/.*)$", re.MULTILINE)
WRITES = os.O_WRONLY | os.O_RDWR
DELETED = " (deleted)"


def files_of_process(pid: int) -> set[str]:
    """Return the files that a process has mapped, or open to read them; none where that cannot be seen."""
    found: set[str] = set()
    place = Path(f"/proc/{pid}")
    try:
        found.update(MAPPED.findall((place / "maps").read_text(errors="surrogateescape")))
        for handle in (place / "fd").iterdir():
            target = os.readlink(handle)  # noqa: PTH115 - as it is, resolved to nothing else
            if target.startswith("/") and not _may_write(place / "fdinfo" / handle.name):
                found.add(target)
    except OSError:  # it ended, or is not ours
        pass
    return {path for path in found if not path.endswith(DELETED)}


def files_of_program(pid: int) -> set[str]:
    """Return the files of a process and of all it has started."""
    found = files_of_process(pid)
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found.update(*(files_of_program(int(child)) for child in children.read_text().split()))
        except OSError:
            continue
    return found


def _may_write(facts: Path) -> bool:
    flags = re.search(r"flags:\s*([0-7]+)", facts.read_text())
    return flags is None or bool(int(flags[1], 8) & WRITES)

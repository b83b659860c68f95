"""Whether memory is short here and now: by it a system's own MemoryError is told from the machine's.

A MemoryError while much memory is free is the system's own: it raised it, or asked for more at once than it
could ever get here. It is a fault then, and counts. Where little is free, or somebody has limited this
process, it may be the machine's.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import psutil

SHORT_SHARE = 0.1
"""Share of the memory that must be free, or it is short."""
SHORT_BYTES = 1 << 30
"""And so many bytes."""
CGROUPS = Path("/sys/fs/cgroup")
VMSTAT = Path("/proc/vmstat")


def memory_is_short() -> bool:
    """Return whether the machine, a container around us or this process may have no memory left."""
    if any(
        resource.getrlimit(kind)[0] != resource.RLIM_INFINITY
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    ):
        return True
    machine = psutil.virtual_memory()
    pairs = [(machine.available, machine.total), *_container()]
    return any(free < max(SHORT_BYTES, SHORT_SHARE * total) for free, total in pairs)


def oom_kills() -> int:
    """Return how often the system has killed a process for want of memory, as far as it counts that."""
    return sum(_counted(path) for path in (VMSTAT, *(place / "memory.events" for place in _control_groups())))


def _counted(path: Path) -> int:
    with contextlib.suppress(OSError, ValueError):  # another version, or another system
        return int(dict(line.split() for line in path.read_text().splitlines()).get("oom_kill", 0))
    return 0


def _container() -> Iterator[tuple[int, int]]:
    """Yield what is free, and the limit, of each control group (version 2) around us that has one."""
    for place in _control_groups():
        with contextlib.suppress(OSError, ValueError):  # no limit, or another version
            limit = int((place / "memory.max").read_text())
            facts = dict(line.split() for line in (place / "memory.stat").read_text().splitlines())
            used = int((place / "memory.current").read_text()) - int(facts.get("file", 0))
            yield limit - used, limit


def _control_groups() -> Iterator[Path]:
    """Yield the folders of the control groups (version 2) around us, ours first."""
    with contextlib.suppress(OSError):
        name = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip().strip("/")
        group = CGROUPS / name
        yield from (place for place in (group, *group.parents) if place.is_relative_to(CGROUPS))

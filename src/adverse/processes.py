"""Processes that we start: they find the package that runs here, and do not outlive us."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import adverse

ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
    "VECLIB_MAXIMUM_THREADS",
)
"""Variables that keep numeric libraries to one thread, so that N workers use N cores."""
PARENT_POLL_S = 1.0
PR_SET_PDEATHSIG = 1
_LAUNCH = f"""import ctypes, os, sys
ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, {int(signal.SIGKILL)}, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def all_cores() -> int:
    """Return how many processors we may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def python_path() -> str:
    """Return a search path by which a child finds the very package that runs here."""
    ours = str(Path(adverse.__file__).absolute().parent.parent)
    return os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))


def not_outliving_us(argv: Sequence[str]) -> list[str]:
    """Return the command that runs any program so that the kernel ends it when we end, even while it hangs.

    Only Linux can, and only for programs that the main thread starts, since the signal comes when the
    thread ends that started them; otherwise the program is run as it is.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return list(argv)
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *argv]


def die_with_parent(*, by_signal: bool = True) -> None:
    """End this process when the one that started it ends, however that ends.

    On Linux the kernel sees to it, even while this process hangs; that works only if the parent's main
    thread started us (`by_signal`). A thread that looks now and then does the rest.
    """
    parent = os.getppid()
    if by_signal and sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(1)

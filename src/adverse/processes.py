"""Processes that we start: they run this very package, import nothing by accident, and do not outlive us.

Python puts the current folder at the front of the search path of `-m` and `-c`, where a user's `json.py` or
`psutil.py` would take the place of the real one. Ours start without it (`-P`) and are told where this package
lies, so that nothing has to be put in front of the standard library to find it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
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
SAFE_PATH = "PYTHONSAFEPATH"
"""The variable that does what `-P` does, for processes whose command line is not ours."""
PARENT_POLL_S = 1.0
PR_SET_PDEATHSIG = 1
_LAUNCH = f"""import ctypes, os, sys
ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, {int(signal.SIGKILL)}, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
_RUN_MODULE = """import importlib.util, sys
home, module = sys.argv.pop(1), sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("adverse", home + "/__init__.py")
sys.modules["adverse"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["adverse"])
importlib.import_module(module).main()
"""


def all_cores() -> int:
    """Return how many processors we may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def our_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs `main` of a module of the package that runs here.

    The current folder is not on its search path; `.pth` files and PYTHONPATH are heeded.
    """
    home = str(Path(adverse.__file__).absolute().parent)
    return [sys.executable, "-P", "-c", _RUN_MODULE, home, module, *arguments]


def our_environment() -> Mapping[str, str]:
    """Return the environment for `our_module`: as it is, but for what would bring the current folder back.

    An empty entry of PYTHONPATH stands for the current folder, and is there by accident.
    """
    told = os.environ.get("PYTHONPATH")
    if told is None:
        return dict(os.environ)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, told.split(os.pathsep)))}


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

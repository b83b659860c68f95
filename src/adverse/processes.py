"""Processes that we start: they run this very package, import nothing by accident, and do not outlive us.

Neither does what they start in turn, in a session of its own or orphaned: each bears a tie, a variable of
its environment that is inherited. A guardian, a process that does nothing else, ends what bears our tie once
we have ended, however that was; on Linux, where environments can be read.

Python puts the current folder at the front of the search path of `-m` and `-c`, where a user's `json.py` or
`psutil.py` would take the place of the real one. Ours start without it (`-P`) and are told where this package
lies, so that nothing has to be put in front of the standard library to find it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import inspect
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
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
GUARDIAN_S = 5.0
"""How long our end waits for the guardian."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TIE = "ADVERSE_TIE"
"""The variable by which all that a process started can be found."""
_GUARD = """import contextlib, os, signal, sys, time
from pathlib import Path
sys.stdin.buffer.read()
exec(sys.argv[2])
_end(sys.argv[1].encode())
"""
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


def use_one_thread() -> None:
    """Keep numeric libraries that are still to be imported to one thread, unless the user says otherwise.

    For many small products, threads that wait for each other cost more than they save.
    """
    for variable in ONE_THREAD:
        os.environ.setdefault(variable, "1")


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


def tied(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with a tie of its own, by which `end_tied` finds what was started in it.

    So does the guardian, which is started unless we bear the tie of a process that has one.
    """
    above = os.environ.get(TIE) or _guarded_tie()
    return {**environment, TIE: f"{above}/{secrets.token_hex(8)}"}


def end_tied(environment: Mapping[str, str]) -> None:
    """Kill all that was started in an environment from `tied`, and what that started, wherever it went."""
    if sys.platform == "linux":
        _end(f"{TIE}={environment[TIE]}".encode())


def adopt_orphans() -> None:
    """Become the parent of what our children leave behind, so that whoever ends us finds it below us."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end(tie: bytes) -> None:
    alone = 0
    for _ in range(100):  # what it starts while we look is found the next time
        found = False
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if tie in (folder / "environ").read_bytes():
                        os.kill(int(folder.name), signal.SIGKILL)
                        found = True
        alone = 0 if found else alone + 1
        if alone == 3:  # in the midst of exec, a process shows no environment for a moment
            return
        time.sleep(0.01)


_GUARDED: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
"""The tie of this process and its guardian; after a fork, another process makes its own."""


def _guarded_tie() -> str:
    """Return the tie that all of ours begin with; its guardian is started with the first."""
    if os.getpid() not in _GUARDED:
        tie = secrets.token_hex(16)
        guardian = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", "-c", _GUARD, f"{TIE}={tie}", inspect.getsource(_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        _GUARDED[os.getpid()] = tie, guardian
        atexit.register(_dismiss, os.getpid(), guardian)
    return _GUARDED[os.getpid()][0]


def _dismiss(owner: int, guardian: subprocess.Popen[bytes]) -> None:
    """At our end, let the guardian end what is left, and wait for it."""
    if os.getpid() == owner and guardian.stdin is not None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            guardian.stdin.close()
            guardian.wait(GUARDIAN_S)


@contextlib.contextmanager
def one_process() -> Iterator[None]:
    """Call code that is not ours, and let only this process come back from it.

    Code that forks may have the copy return or raise too, such as by `sys.exit`. The copy would go on with
    our work, and answer in our name: it ends here instead, and what it has not written is not written twice.
    """
    ours = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != ours:
            os._exit(0)


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


def run_side_by_side(commands: Sequence[Sequence[str]], environments: Sequence[Mapping[str, str]]) -> int:
    """Run programs, each on its own share of the cores, until all have ended; return the largest exit code.

    Each has variables of its own besides ours. SIGINT and SIGTERM are passed on to them.
    """
    running: list[subprocess.Popen[bytes]] = []

    def end(number: int, _: object) -> None:
        for process in running:
            process.send_signal(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    try:
        for place, (command, own) in enumerate(zip(commands, environments, strict=True)):
            if len(cores) >= len(commands):
                os.sched_setaffinity(0, cores[place :: len(commands)])  # who is started now inherits it
            running.append(subprocess.Popen(not_outliving_us(command), env={**our_environment(), **own}))  # noqa: S603 - our own
        return max(abs(process.wait()) for process in running)
    finally:
        if cores:
            os.sched_setaffinity(0, cores)
        for process in running:
            if process.poll() is None:
                process.terminate()
        for number, handler in before.items():
            signal.signal(number, handler)

"""Settings of the whole process: code that is not ours has its own, and ours are as if it had never run.

One line in a plug-in (`np.seterr(all="raise")`, `warnings.simplefilter("error")`, `os.chdir`) changes what
our own decoding and mutations do afterwards, and what other systems under test answer. So the settings are
changed over whenever such code is called, and changed back when it returns. What a system has set itself it
finds again when it is called the next time.

Not here: what code keeps for itself, and the switches of Pillow, which `data.codecs` sets where it decodes.
"""

from __future__ import annotations

import contextlib
import functools
import locale
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)
"""Whose handlers decide how we are stopped, and what we hear of processes that we started."""
Settings = Mapping[str, Any]
Switches = Mapping[str, tuple[Callable[[], Any], Callable[[Any], Any]]]

_OF_OWNER: dict[str, Settings] = {}
"""The settings as the code of each owner left them."""
_LOCK = threading.RLock()
_UNDER_WAY: list[str] = []
"""The owners whose code runs at the moment, the outermost first."""


@contextlib.contextmanager
def settings_of(owner: str, *, begin: str | None = None) -> Iterator[None]:
    """Run code that is not ours with the settings that it made before, and come back to ours.

    `begin`: the code begins anew, with the settings of another owner (ours where that one has made none).
    Inside such code nothing changes: whoever it calls has the same settings.
    """
    with _LOCK:
        nested = bool(_UNDER_WAY)
        _UNDER_WAY.append(owner)
        ours = {} if nested else _read()
        if not nested:
            _write(_OF_OWNER.get(owner if begin is None else begin, {}), ours)
    try:
        yield
    finally:
        with _LOCK:
            _UNDER_WAY.remove(owner)
            if ours:
                theirs = _read()
                changed = {name: value for name, value in theirs.items() if value != ours.get(name)}
                changed.pop("folder", None)  # the paths that users give begin where they are
                _OF_OWNER[owner] = changed
                _write({**_FRESH, **ours}, theirs)


def _read() -> dict[str, Any]:
    found = {}
    for name, (get, _) in _switches().items():
        with contextlib.suppress(OSError, ValueError):  # such as a folder that was deleted
            found[name] = get()
    return found


def _write(wanted: Settings, now: Settings) -> None:
    """Set what is wanted where it differs from what was read just now, or could not be read."""
    switches = _switches()
    for name, value in wanted.items():
        if name in switches and (name not in now or now[name] != value):
            with contextlib.suppress(OSError, ValueError, locale.Error):
                switches[name][1](value)


def _switches() -> Switches:
    """Return how each setting is read and written, those of OpenCV only once it is imported."""
    cv2 = sys.modules.get("cv2")
    imported = hasattr(cv2, "setNumThreads")  # not while it is being imported
    return _all_switches(
        signals=threading.current_thread() is threading.main_thread(), cv2=cv2 if imported else None
    )


@functools.cache
def _all_switches(*, signals: bool, cv2: Any) -> Switches:
    found: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
        "folder": (os.getcwd, os.chdir),
        "numpy errors": (np.geterr, lambda value: np.seterr(**value)),
        "numpy error call": (np.geterrcall, np.seterrcall),
        "warnings": (lambda: list(warnings.filters), _filter_warnings),
        "recursion": (sys.getrecursionlimit, sys.setrecursionlimit),
        "locale": (
            lambda: locale.setlocale(locale.LC_ALL),
            lambda value: locale.setlocale(locale.LC_ALL, value),
        ),
        "socket timeout": (socket.getdefaulttimeout, socket.setdefaulttimeout),
        "umask": (_umask, os.umask),
    }
    if signals:
        for number in SIGNALS:
            found[number.name] = (_handler_of(number), _handle(number))
    if cv2 is not None:
        found["OpenCV optimized"] = (cv2.useOptimized, cv2.setUseOptimized)
        found["OpenCV threads"] = (cv2.getNumThreads, cv2.setNumThreads)
        if hasattr(cv2, "ipp"):
            found["IPP"] = (cv2.ipp.useIPP, cv2.ipp.setUseIPP)
            found["IPP not exact"] = (cv2.ipp.useIPP_NotExact, cv2.ipp.setUseIPP_NotExact)
    return found


def _filter_warnings(filters: Iterable[Any]) -> None:
    warnings.resetwarnings()  # so that what was silent once is looked at again
    warnings.filters[:] = filters  # type: ignore[index]


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _handler_of(number: signal.Signals) -> Callable[[], Any]:
    return lambda: signal.getsignal(number)


def _handle(number: signal.Signals) -> Callable[[Any], Any]:
    return lambda handler: None if handler is None else signal.signal(number, handler)


_FRESH: Settings = {"OpenCV optimized": True, "IPP not exact": False}
"""Ours where the code that is not ours was the first to import a library."""

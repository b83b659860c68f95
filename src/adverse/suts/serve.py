"""The other end of the command protocol: a system that answers over pipes.

`serve(system)` makes a Python program a system under test for the `command` adapter. `main` hosts one of our
adapters, which is how `isolated` keeps a dangerous one out of the worker.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from adverse import file_access, plugins
from adverse.errors import AdverseError, SutError
from adverse.processes import die_with_parent
from adverse.suts import wire
from adverse.suts.ask import ask, task_of
from adverse.suts.build import build
from adverse.types import System


def serve(system: System, *, name: str = "SUT") -> None:
    """Answer requests on stdin until it ends.

    Anything else printed to stdout is sent to stderr, and nothing else can read stdin, so that no library
    can disturb the protocol.
    """
    with _pipes() as (requests, replies):
        _answer(system, name, requests, replies)


def main() -> NoReturn:
    """Host the adapter described by the first argument, as `isolated` writes it."""
    description = json.loads(sys.argv[1])
    file_access.hook.install()
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # so that a KeyboardInterrupt is always the adapter's own
    die_with_parent(by_signal=False)  # on Linux, the signal was asked for when we were started
    with _pipes() as (requests, replies):
        try:
            system = _built(description)
        except AdverseError as error:
            _send(replies, wire.error_line(None, error))
            sys.exit(1)
        _answer(system, description["name"], requests, replies)
    sys.exit(0)


def _built(description: Mapping[str, Any]) -> System:
    registry = plugins.load([Path(path) for path in description["plugins"]])
    plugin = registry.get("sut", description["adapter"])
    options = plugins.bind(plugin, description["options"], where=description["name"])
    built = build(plugin, options, name=description["name"], default_class=description["default_class"])
    if hasattr(built, "recall"):
        raise SutError("recorded answers need no process of their own", where=description["name"])
    return built


def _answer(system: System, name: str, requests: BinaryIO, replies: int) -> None:
    task = task_of(system) or "detection"
    _send(replies, wire.ready_line(system.classes, task))
    while (request := wire.read_request(requests)) is not None:
        number, images = request
        try:
            reply = wire.answer_line(number, ask(system, images, name=name), task)
        except SutError as error:
            reply = wire.error_line(number, error)
        _send(replies, reply)


@contextlib.contextmanager
def _pipes() -> Iterator[tuple[BinaryIO, int]]:
    """Take the two pipes for the protocol alone: stdin becomes empty, stdout becomes stderr."""
    sys.stdout.flush()
    requests = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    replies = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    with requests:
        try:
            yield requests, replies
        finally:
            os.close(replies)


def _send(replies: int, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[os.write(replies, left) :]

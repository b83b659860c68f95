"""What a worker says is heard only if it is the worker's own, about the unit that it is at."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from multiprocessing.connection import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adverse.study.engines import Stop, Work
from adverse.study.engines import local as engine
from adverse.study.stages import SIZE_BYTES, Board, Stage
from watching import Quiet

PID = 4711
SAYS: dict[str, list[object]] = {
    "a copy": [(PID + 1, 1, "done", "wrong")],
    "twice": [(PID, 1, "done", "first"), (PID, 1, "done", "wrong")],
    "another unit": [(PID, 2, "done", "wrong")],
    "a copy fails": [(PID + 1, 1, "failed", ValueError())],
    "no message": ["wrong"],
}


class Worker(engine._Process):
    """A worker without a process, which says what a test wants; the second one does its work."""

    says: list[object] | None

    def __init__(self, number: int, local: engine.LocalEngine, _work: object) -> None:
        self.connection, self.theirs = Pipe()
        self.units = deque()
        self.given, self.busy_since = 0, 0.0
        self.attempts = tempfile.TemporaryFile()  # noqa: SIM115
        page = os.memfd_create("page")
        os.ftruncate(page, SIZE_BYTES)
        self.board = Board(page)
        self.board.write(Stage("asking SUT 'a'", "frame", "identity", 0))
        self.log = local.log_folder / "log"
        self.says = None if number else list(type(self).says or ())
        self.process = cast("Any", SimpleNamespace(pid=PID))

    def give(self, unit: object, *_: object) -> None:
        self.given += 1
        self.units.append((self.given, unit))
        for message in [(PID, self.given, "done", unit)] if self.says is None else self.says:
            self.theirs.send(message)
        self.says = None if self.says is None else []

    def memory_mb(self) -> float:
        return 0.0

    def end(self) -> int:
        return -9


@pytest.mark.parametrize("kind", SAYS)
def test_what_is_foreign_is_refused_and_the_unit_done_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "says", SAYS[kind], raising=False)
    monkeypatch.setattr(engine, "_Process", Worker)
    suts = [SimpleNamespace(name="a", memory_limit_mb=None)]
    work, watch = cast("Work", SimpleNamespace(suts=suts)), Quiet()
    ran = engine.LocalEngine(1, tmp_path).run(work, ["one", "two"], watch=watch, stop=Stop())
    assert dict(ran) == {"one": "first" if kind == "twice" else "one", "two": "two"}
    assert "'a' runs in a process of its own" in watch.notes[0]

"""What a worker is about to do, written down before it does it on a page of memory that outlives it.

A process that dies or hangs cannot say why; its last stage tells which SUT, frame or mutation to suspect. To
write a stage costs microseconds. It is read only when the worker has died, or to see whether it has been at
one step for too long.
"""

from __future__ import annotations

import mmap
import pickle
import struct
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from adverse.text import setting_text

LOAD_LIMIT_S = 900.0
"""Longest time that loading a SUT, or compiling a function, may take."""
STEP_LIMIT_S = 300.0
"""Longest time that decoding or mutating one frame may take, unless the study says otherwise."""
MUTATING = "mutating"
"""The text of the step in which the code of a mutation runs."""


@dataclass(frozen=True)
class Stage:
    """One step; `sut` is the index of the SUT whose code runs in it, if one's does.

    `answered` counts the images that the step before it brought answers about.
    """

    text: str
    frame: str | None = None
    setting: str | None = None
    sut: int | None = None
    limit_s: float | None = STEP_LIMIT_S
    answered: int = 0

    def __str__(self) -> str:
        parts = [
            self.text,
            f"frame {self.frame!r}" if self.frame else "",
            f"under {setting_text(self.setting)}" if self.setting else "",
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class Avoid:
    """Steps that ended a worker and are not tried again.

    `steps` holds why, by frame id and setting id (None: all of them); `late` the limit, in seconds, of those
    that took too long.
    """

    steps: Mapping[tuple[str, str | None], str] = field(default_factory=dict)
    late: Mapping[tuple[str, str | None], float] = field(default_factory=dict)

    def reason(self, frame: str, setting: str) -> str | None:
        """Return why a frame under a setting is to be left alone, if it is."""
        return self.steps.get((frame, None)) or self.steps.get((frame, setting))


NOTHING_TO_AVOID = Avoid()


SIZE_BYTES = 8192
HEADER = struct.Struct("<II")
"""Length and checksum of the text behind it; a page caught in the middle of writing does not match."""


COUNT = struct.Struct("<Q")
"""At the end of the page: the images answered so far, of the unit under way."""
COUNT_AT = SIZE_BYTES - COUNT.size


class Board:
    """A page of memory shared by file descriptor: the worker writes, its watcher reads."""

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, SIZE_BYTES)
        self._held: tuple[object, Stage, float] | None = None

    @property
    def answered(self) -> int:
        """Images of the unit under way that SUTs have answered."""
        return int(COUNT.unpack_from(self._page, COUNT_AT)[0])

    def begin(self) -> None:
        """Begin a unit."""
        COUNT.pack_into(self._page, COUNT_AT, 0)

    def hold(self) -> None:
        """Have the clock of the step under way stand, as the machine compiles; not for ever, though."""
        entry = self.read()
        if entry is not None:
            since, stage = entry
            self._write(replace(stage, limit_s=LOAD_LIMIT_S), time.monotonic())
            self._held = self.read(), stage, time.monotonic() - since

    def go_on(self) -> None:
        """Have the clock go on from where it was held, unless another step has begun meanwhile."""
        if self._held is not None and self.read() == self._held[0]:
            _, stage, spent_s = self._held
            self._write(stage, time.monotonic() - spent_s)
        self._held = None

    def write(self, stage: Stage) -> None:
        """Say what is about to be done."""
        if stage.answered:
            COUNT.pack_into(self._page, COUNT_AT, self.answered + stage.answered)
        self._write(stage, time.monotonic())

    def _write(self, stage: Stage, since: float) -> None:
        data = pickle.dumps((since, stage))
        if len(data) > COUNT_AT - HEADER.size:  # names of thousands of characters
            short = Stage(stage.text[:200], sut=stage.sut, limit_s=stage.limit_s)
            data = pickle.dumps((since, short))
        self._page[: HEADER.size] = bytes(HEADER.size)
        self._page[HEADER.size : HEADER.size + len(data)] = data
        self._page[: HEADER.size] = HEADER.pack(len(data), zlib.crc32(data))

    def read(self) -> tuple[float, Stage] | None:
        """Return since when (monotonic seconds) and what; None if nothing is to be read there now."""
        length, check = HEADER.unpack(self._page[: HEADER.size])
        data = self._page[HEADER.size : HEADER.size + length]
        if not length or zlib.crc32(data) != check:
            return None
        since, stage = pickle.loads(data)  # noqa: S301 - written by our own worker
        return float(since), stage

    def close(self) -> None:
        """Let go of the page."""
        self._page.close()

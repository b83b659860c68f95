"""Attempts: every request to a SUT, written down as it happens in a file that outlives the worker.

When a worker dies, or is ended for another SUT or a slow mutation, its unit is done again from the start.
What its SUTs had been asked before is then not asked again: the attempts are replayed, so that each is
counted once, as the SUT itself would count it, and none is lost.

Which SUT took a worker down that held several cannot always be told. Then the death counts as a failed
attempt of each of them, of the kind "unattributed": no SUT looks faultless because another may have done it.
"""

from __future__ import annotations

import os
import pickle
import struct
import zlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from adverse.errors import (
    BadAnswerError,
    CrashError,
    InfrastructureError,
    LateError,
    OutOfMemoryError,
    SutError,
)
from adverse.types import Answer

HEADER = struct.Struct("<II")
"""Length and checksum of an entry; the last one may have been cut off by the death of its writer."""
PACKED_FROM = 1 << 16
"""Bytes from which an entry is compressed: label maps, mostly."""
KINDS: tuple[tuple[type[SutError], str], ...] = (
    (OutOfMemoryError, "machine"),
    (InfrastructureError, "connection"),
    (CrashError, "crash"),
    (LateError, "time-out"),
    (BadAnswerError, "bad answer"),
)


@dataclass(frozen=True)
class Attempt:
    """One call of a SUT with a batch of images: its answers, or the error, and what it took.

    `frame` and `setting` are those of the first image. `requests` reached the SUT, one unless it sends
    several for a batch; `outages` tells why others did not. `unsure` is an attempt during which a worker died
    that held other SUTs too: a `WorkerDeath` stands for it.
    """

    sut: int
    frame: str | None
    setting: str | None
    answers: list[Answer] | None = None
    error: SutError | None = None
    requests: int = 1
    outages: tuple[str, ...] = ()
    output: str | None = None
    unsure: bool = False


def kind_of_fault(error: SutError) -> str:
    """Return what kind of fault an error is.

    >>> kind_of_fault(SutError("no CUDA device")), kind_of_fault(OutOfMemoryError("no memory"))
    ('exception', 'machine')
    """
    return next((word for kind, word in KINDS if isinstance(error, kind)), "exception")


@dataclass(frozen=True)
class WorkerDeath:
    """A worker that died at a unit, by itself; `frame` and `setting` are those of its last step.

    `sut` was asked or loaded in that step, if one was. `isolated` had a process of their own then, so they
    cannot have done it.
    """

    sut: int | None
    frame: str | None
    setting: str | None
    how: str
    isolated: frozenset[int]


class AttemptLog:
    """The attempts of the unit under way; without a file they are not kept.

    `deaths` are those of workers that had the unit before, as far as nothing explains them yet.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.deaths: tuple[WorkerDeath, ...] = ()
        self._descriptor = descriptor
        self._earlier: dict[int, deque[Attempt]] = defaultdict(deque)

    def begin(self, unit: int, earlier: Iterable[Attempt] = (), deaths: Iterable[WorkerDeath] = ()) -> None:
        """Begin a unit, known by its number; `earlier` are the attempts of workers that did not finish it."""
        self.deaths = tuple(deaths)
        self._earlier.clear()
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._write(unit)
        for attempt in earlier:
            self._earlier[attempt.sut].append(attempt)
            self._write(attempt)

    def restart(self) -> None:
        """Forget what is left to replay: the files of a SUT were written to, so it has to be asked anew."""
        self._earlier.clear()

    def replayed(self, sut: int, frame: str | None, setting: str | None, images: int) -> Attempt | None:
        """Return the attempt of a SUT that was made before with the same images, if it is the next one."""
        left = self._earlier[sut]
        if left and (left[0].frame, left[0].setting) == (frame, setting):
            answers = left[0].answers
            if answers is None or len(answers) == images:
                return left.popleft()
        left.clear()  # never an answer about other images
        return None

    def add(self, attempt: Attempt) -> None:
        """Write down an attempt that was made."""
        self._write(attempt)

    def _write(self, entry: object) -> None:
        if self._descriptor is None:
            return
        data = pickle.dumps(entry, protocol=pickle.HIGHEST_PROTOCOL)
        packed = zlib.compress(data, 1) if len(data) >= PACKED_FROM else b""
        body = b"z" + packed if packed else b"-" + data
        left = memoryview(HEADER.pack(len(body), zlib.crc32(body)) + body)
        while left:
            left = left[os.write(self._descriptor, left) :]


def read_attempts(descriptor: int) -> tuple[int | None, list[Attempt]]:
    """Return the number of the unit that a worker was at, and the attempts that it has written down."""
    entries = list(_entries(descriptor))
    if not entries:
        return None, []
    return entries[0], entries[1:]


def _entries(descriptor: int) -> Iterator[Any]:
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    place = 0
    while place + HEADER.size <= len(data):
        length, check = HEADER.unpack_from(data, place)
        body = data[place + HEADER.size : place + HEADER.size + length]
        if len(body) < length or zlib.crc32(body) != check:
            return
        packed, body = body[:1] == b"z", body[1:]
        yield pickle.loads(zlib.decompress(body) if packed else body)  # noqa: S301 - our own worker's
        place += HEADER.size + length

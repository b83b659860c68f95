"""What the workers of a campaign are told, and the units that they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adverse.fuzz.bandit import Arm
from adverse.fuzz.scoring import Score, Scorer
from adverse.semantic import Options
from adverse.study.plan import Job, SutTask
from adverse.study.stages import Stage
from adverse.types import Dataset, Frame

if TYPE_CHECKING:
    from adverse.fuzz.work import FuzzWorker


Before = tuple[Score, Score | None]
"""The score of a base un-mutated, and the published scorer's."""


@dataclass(frozen=True)
class FuzzJob:
    """What all units of a campaign share; sent to every worker once.

    `study` says which SUTs there are and what pixels are judged as; `meaning` is the data set without its
    frames, whose own names of pixels mutations go by. `resources` and `before` are known once the base frames
    were shown un-mutated: `before` has each SUT's score on each base, None where it failed. `inputs` has the
    hash of each file that the frames are read from.
    """

    study: Job
    meaning: Dataset
    frames: tuple[Frame, ...]
    scorer: Scorer
    threshold: float
    options: Options
    inputs: Mapping[Path, str]
    resources: Path | None = None
    before: Mapping[str, Sequence[Before | None]] | None = None

    @property
    def plugin_files(self) -> tuple[Path, ...]:
        """Loaded before anything else is unpacked."""
        return self.study.plugin_files

    @property
    def suts(self) -> tuple[SutTask, ...]:
        """The SUTs of the study."""
        return self.study.suts

    def worker(self, tell: Callable[[Stage], None], *, memory_limit_mb: int | None = None) -> FuzzWorker:
        """Return what does units in the process that this is called in."""
        from adverse.fuzz.work import FuzzWorker  # noqa: PLC0415 - which needs the job

        return FuzzWorker(self, tell, memory_limit_mb=memory_limit_mb)


@dataclass(frozen=True)
class BaseUnit:
    """Frames, by their place in the job, to be shown un-mutated."""

    id: str
    frames: tuple[int, ...]


@dataclass(frozen=True)
class TestUnit:
    """Draws, from `first` on, each with its arm; `bases` are the frames (by place) that they may change.

    `known` are the recipes and the pictures of earlier rounds, packed: what is among them is a duplicate.
    """

    id: str
    seed: int
    first: int
    arms: tuple[Arm, ...]
    bases: tuple[int, ...]
    known: bytes


def packed_keys(keys: Sequence[str]) -> bytes:
    """Return the first 64 bits of each key, in order; enough to tell all tests of a campaign apart."""
    return np.sort(np.array([int(key[:16], 16) for key in keys], np.uint64)).tobytes()


def unpacked_keys(packed: bytes) -> frozenset[int]:
    """Return the numbers that `packed_keys` wrote.

    >>> unpacked_keys(packed_keys(["000000000000000affff", "0000000000000001"])) == {1, 10}
    True
    """
    return frozenset(np.frombuffer(packed, np.uint64).tolist())


def key_number(key: str) -> int:
    """Return a key as `unpacked_keys` knows it."""
    return int(key[:16], 16)

"""What the workers of a campaign are told, and what they give back: the job, the units, their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adverse.fuzz.guide import Arm, Guide
from adverse.fuzz.objects import Sightings
from adverse.fuzz.scoring import Bins, Score, Scorer
from adverse.semantic import Options
from adverse.study.job import StudyJob, SutTask
from adverse.types import Dataset, Frame

DUPLICATE = "duplicate"
"""Why a draw is no test: the same picture was drawn before."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Before:
    """What a SUT makes of a base un-mutated: its score and the published scorer's, and what it sees.

    `without` has the score that it would have without one of its objects, by instance: what an image without
    that object is compared with.
    """

    score: Score
    compat: Score | None
    sightings: Sightings
    without: Mapping[int, Score] = field(default_factory=dict)


@dataclass(frozen=True)
class FuzzJob:
    """What all units of a campaign share; sent to every worker once.

    `study` says which SUTs there are and what pixels are judged as; `meaning` is the data set without its
    frames, whose own names of pixels mutations go by. `resources` and `before` are known once the base frames
    were shown un-mutated: `before` has each SUT's score on each base, None where it failed. `inputs` has the
    hash of each file that the frames are read from.
    """

    study: StudyJob
    meaning: Dataset
    frames: tuple[Frame, ...]
    scorer: Scorer
    threshold: float
    bins: Bins
    visible_share: float
    """Of what shows less than this of what it showed before, nobody is told that it is lost."""
    remnant_share: float
    """What shows less than this of what it showed before is ignored in the truth."""
    removable: tuple[str, ...]
    """The classes of objects that are removed."""
    options: Options
    inputs: Mapping[Path, str]
    resources: Path | None = None
    before: Mapping[str, Sequence[Before | None]] | None = None

    @property
    def suts(self) -> tuple[SutTask, ...]:
        """The SUTs of the study."""
        return self.study.suts


@dataclass(frozen=True)
class BaseUnit:
    """Frames, by their place in the job, to be shown un-mutated."""

    id: str
    frames: tuple[int, ...]


@dataclass(frozen=True)
class TestUnit:
    """Draws of a stream, from `first` on, each with its arm; `bases`: the frames (by place) they may change.

    `drawn_before` are the recipes and pictures of earlier rounds, packed: what is among them is a duplicate.
    """

    id: str
    seed: int
    stream: str
    first: int
    arms: tuple[Arm, ...]
    bases: tuple[int, ...]
    drawn_before: bytes
    guide: Guide | None = None
    """What a guided search knows when the round begins."""


class ReplayedTest(NamedTuple):
    """A test of an earlier campaign: what was asked for, its recipe and picture, the place of its base."""

    arm: Arm
    recipe: str
    picture: str
    place: int


@dataclass(frozen=True)
class ReplayUnit:
    """Tests of an earlier campaign that are made again, numbered from `first` on."""

    id: str
    first: int
    tests: tuple[ReplayedTest, ...]


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


@dataclass(frozen=True)
class FuzzRecords:
    """What a unit came to. Rows and files decide results and are the same wherever they are made."""

    rows: Sequence[Row]
    files: Mapping[str, bytes]
    """What is worth keeping, by path below the campaign's folder."""
    times: Sequence[Row] = field(default_factory=list)
    files_read: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The hash of each file that code has read by itself, by its path, by whose code it was."""

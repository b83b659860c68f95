"""What the workers of a run get, and what they return: the shared job, the units, their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from adverse.depth import Policy
from adverse.plugins import Kind
from adverse.study.stages import STEP_LIMIT_S
from adverse.types import Frame, LocalizeOn, Localizer, Noise, Setting, Task
from adverse.visual import Backend


@dataclass(frozen=True)
class SutTask:
    """What a worker needs to know to run one SUT."""

    name: str
    adapter: str
    options: Mapping[str, Any]
    fingerprint: str
    made_of: Mapping[str, Any]
    """What the fingerprint is a hash of: the adapter, its options and files, with the hash of each."""
    batch: int
    timeout_s: float
    memory_limit_mb: int | None
    class_map: Mapping[str, str]
    positions: Literal["reported", "localized"] | None = None
    """Where detections are placed: as the SUT reports (and must), by depth alone, or (None) as it comes."""
    files: tuple[Path, ...] = ()
    """What the study names besides the options that decides the answers."""
    trained_on: tuple[str, ...] = ()
    """The names of the mutations that it was trained with; they decide no answer."""
    gpu: bool = False
    """Whether it runs on a GPU; what it computes there is up to its options."""


@dataclass(frozen=True)
class StudyJob:
    """What all units of a run share; sent to every worker once."""

    seed: int
    plugin_files: tuple[Path, ...]
    settings: tuple[Setting, ...]
    suts: tuple[SutTask, ...]
    categories: tuple[str, ...]
    targets: tuple[str, ...]
    invalid_depth: Policy
    locate: bool = False
    """Whether the depth of every detection is wanted, for the levels that know of context."""
    localizer: Localizer = "foreground"
    localize_on: LocalizeOn = "clean"
    task: Task = "detection"
    masks: bool = False
    """Whether every detection needs a mask, which is kept."""
    pixel_classes: Mapping[int, str] = field(default_factory=dict)
    keep_label_maps: bool = False
    visual_change: Backend | None = None
    """How the visual change of mutated frames is measured, if it is; no part of what decides an answer."""
    noise: Noise = "own"
    """Whether random mutations draw anew at every strength, or the same numbers at all of them."""
    mutation_timeout_s: float = STEP_LIMIT_S
    """Longest time that one mutation of one frame may take."""
    code: Mapping[tuple[Kind, str], str] = field(default_factory=dict)
    """The hash of the code of each plug-in that decides an answer, as planned."""

    @property
    def localizes_on_mutated(self) -> bool:
        """Whether depth is computed again from mutated pairs: where some SUT may not place what it sees."""
        asked = self.locate and self.localize_on == "mutated"
        return asked and any(task.positions != "reported" for task in self.suts)


@dataclass(frozen=True)
class PlannedCell:
    """One setting and one SUT (as indexes into the job) for the frames of a unit."""

    key: str
    setting: int
    sut: int


@dataclass(frozen=True, eq=False)
class WorkUnit:
    """Frames that are decoded together, the cells to do on them, and the frames to run twice.

    `inputs` holds the hash of each file that the frames are read from.
    """

    id: str
    frames: tuple[Frame, ...]
    cells: Sequence[PlannedCell]
    twice: frozenset[str]
    inputs: Mapping[Path, str]


@dataclass(frozen=True)
class SutFault:
    """What a failed attempt left behind: a traceback, or the end of the SUT's stderr."""

    sut: str
    where: str
    message: str
    output: str


@dataclass(frozen=True)
class UnitRecords:
    """The result of a unit: the records of its finished cells as Parquet, and what the run must know of them.

    `statuses` counts the images of these cells; `retried` are ok, but only on a retry. `unreachable`
    holds why cells, by setting id and SUT name, are not finished: their SUT could not be reached. `faulty`
    are finished ones with an image that failed; `late` those with a frame whose mutation was ended, and after
    how many seconds. `crashed` are the SUTs whose own process died.
    """

    parquet: bytes
    statuses: Counter[str]
    unreachable: Mapping[tuple[str, str], str]
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The hash of each file that was read on the way, by its path, by whose code has read it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The machine and the libraries that it was done with."""
    faulty: frozenset[tuple[str, str]] = frozenset()
    late: Mapping[tuple[str, str], float] = field(default_factory=dict)
    crashed: frozenset[int] = frozenset()
    unfinished: bytes = b""
    """What was asked in cells that are not finished, as Parquet: these requests count all the same, also
    those that reached nobody."""
    faults: tuple[SutFault, ...] = ()

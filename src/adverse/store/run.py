"""A run as one typed value: what was run, on what, and how it is to be evaluated.

The manifest is plain JSON, for people and other programs. Above the store no code reads it key by key: it
takes this value, which is made and checked here, once, or asks what changed between two manifests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from adverse.errors import StoreError, StudyError, suggestion
from adverse.types import Drift, Group, LocalizeOn, Localizer, Setting, Step, Task

Backend = Literal["vif", "vifp", "vif2"]
NAMED = 3
"""Files that are named when many changed."""


@dataclass(frozen=True)
class RunSut:
    """A system under test as it ran."""

    name: str
    fingerprint: str
    options: Mapping[str, Any]
    trained_on: tuple[str, ...] = ()
    """The names of the mutations that it was trained with."""


@dataclass(frozen=True)
class SensitivityGrid:
    """The shared levels of sensitivity: false positives per image, evenly spaced in their logarithm."""

    levels: int
    lowest: float
    highest: float


@dataclass(frozen=True)
class OperatingPoint:
    """Where plain metrics of a SUT are read: at a sensitivity, or from a score on; the other one is None."""

    sensitivity: float | None
    score: float | None

    def __str__(self) -> str:
        """Say it as a study file does."""
        if self.sensitivity is None:
            return f"score {self.score:g}"
        return f"sensitivity {self.sensitivity:g}"


PIECES = "(data: cut) and alike"
"""What the warning of a run says whose logs are pieces of few recordings."""


@dataclass(frozen=True)
class TruthSource:
    """Whose answers to clean frames stand in for a truth that nobody annotated, and from which score on."""

    sut: str
    score: float

    @property
    def name(self) -> str:
        """What the answers are called where figures say what they rest on."""
        return f"the answers of {self.sut} to clean frames with a score of {self.score:g} or more"


@dataclass(frozen=True)
class RunSelection:
    """Why a run is only a part of all frames, settings and SUTs, and what its search says of itself."""

    kind: Literal["margins", "until"]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class RunData:
    """The data set of a run."""

    format: str
    fingerprint: str
    annotations: Mapping[str, str]
    """The SHA-256 of each annotation file by its path."""
    categories: tuple[str, ...]
    pixel_classes: Mapping[int, str]
    frames: Mapping[str, int]
    """Number of frames of each split."""
    logs: int
    notes: Mapping[str, int]


@dataclass(frozen=True)
class Provenance:
    """What a run was made with."""

    version: str
    commit: str | None
    python: str
    system: str
    cpu: str
    libraries: Mapping[str, str]
    engine: str
    workers: int
    finished: str | None
    """When its last unit was done, in UTC (ISO 8601); None: the run does not say."""
    commits: Mapping[str, str]
    """By SUT: the commit of the git repository that tracks its files, where there is one."""


@dataclass(frozen=True)
class Run:
    """What was run, on what, and how it is to be evaluated. The first setting is the baseline."""

    name: str
    task: Task
    masks: bool
    """Whether detections and true objects have masks."""
    seed: int
    folder: Path
    """Where the study file lies; the study's paths are relative to it."""
    settings: tuple[Setting, ...]
    suts: tuple[RunSut, ...]
    levels: tuple[str, ...]
    metrics: tuple[str, ...]
    relations: tuple[str, ...]
    targets: tuple[str, ...]
    localizer: Localizer | None
    """How the depth of boxes was read; None: it was not."""
    localize_on: LocalizeOn | None
    """Which pair that depth is of."""
    robot: Mapping[str, Any] | None
    sensitivity: SensitivityGrid
    fpr_max: float
    operating_points: Mapping[str, OperatingPoint]
    """By SUT."""
    bootstrap: int
    conditions: Mapping[str, float]
    quarantine_budget: float
    visual_change: Backend | None
    warnings: tuple[str, ...]
    data: RunData
    provenance: Provenance
    kills: Mapping[str, int] = field(default_factory=dict)
    """How often the whole run was killed while a SUT had work left, by SUT."""
    selection: RunSelection | None = None
    """Which part of the frames, settings and SUTs was run; None: all of them."""
    truth: TruthSource | None = None
    """What stands in for annotations in a label-free run: figures are then agreement, not recall."""

    @property
    def baseline(self) -> Setting:
        """The setting that changes nothing."""
        return self.settings[0]

    @property
    def mutations(self) -> tuple[Setting, ...]:
        """The settings besides the baseline."""
        return self.settings[1:]

    @property
    def families(self) -> dict[str, list[str]]:
        """The ids of mutated settings by the mutations they are made of, whatever their strength."""
        found: dict[str, list[str]] = {}
        for setting in self.mutations:
            found.setdefault(setting.family, []).append(setting.id)
        return found

    @property
    def alike_logs(self) -> str | None:
        """What to know of logs that were cut out of few recordings; None where they were not."""
        return next((line for line in self.warnings if PIECES in line), None)

    def part(self, settings: Collection[str], suts: Collection[str]) -> Run:
        """Return the run as if it had some settings and SUTs only; chances of others are forgotten."""
        known = set(self.conditions) <= set(settings)
        return replace(
            self,
            settings=tuple(setting for setting in self.settings if setting.id in settings),
            suts=tuple(sut for sut in self.suts if sut.name in suts),
            conditions=self.conditions if known else {},
        )

    def sut(self, name: str) -> RunSut:
        """Return a SUT by its name."""
        for sut in self.suts:
            if sut.name == name:
                return sut
        names = [sut.name for sut in self.suts]
        raise StudyError(f"the run has no SUT called {name!r}", fix=suggestion(name, names))


def setting_entry(setting: Setting) -> dict[str, Any]:
    """Return a setting as the manifest keeps it, under its id."""
    return {
        "group": setting.group,
        "steps": [{"mutation": step.mutation, "options": dict(step.options)} for step in setting.steps],
        "needs": sorted(setting.needs),
        "coherent": setting.coherent,
        **({} if setting.drift is None else {"drift": setting.drift._asdict()}),
    }


def run_of(manifest: Mapping[str, Any], *, where: str) -> Run:
    """Make the typed value of a manifest, or say that the manifest lacks something."""
    try:
        return _run(manifest)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            "the manifest does not describe a run",
            where=where,
            got=f"{type(error).__name__}: {error}",
            fix="Run the study again in the same folder: what is still valid is reused.",
        ) from error


def _run(manifest: Mapping[str, Any]) -> Run:
    study, data, statistics = manifest["study"], manifest["data"], manifest["statistics"]
    grid = statistics["sensitivity"]
    return Run(
        name=str(study["name"]),
        task=study["task"],
        masks=bool(study.get("masks", False)),
        seed=int(study["seed"]),
        folder=Path(study["folder"]),
        settings=tuple(_setting(name, entry) for name, entry in manifest["settings"].items()),
        suts=tuple(
            RunSut(name, entry["fingerprint"], entry.get("options", {}), tuple(entry.get("trained_on", ())))
            for name, entry in manifest["suts"].items()
        ),
        levels=tuple(statistics["levels"]),
        metrics=tuple(statistics["metrics"]),
        relations=tuple(statistics.get("relations", ())),
        targets=tuple(statistics["targets"]),
        localizer=statistics["localizer"],
        localize_on=statistics.get("localize_on", statistics["localizer"] and "clean"),
        robot=statistics["robot"],
        sensitivity=SensitivityGrid(grid["levels"], grid["lowest"], grid["highest"]),
        fpr_max=float(statistics["fpr_max"]),
        operating_points={
            name: OperatingPoint(point["sensitivity"], point["score"])
            for name, point in statistics["operating_points"].items()
        },
        bootstrap=int(statistics["bootstrap"]),
        conditions=dict(statistics["conditions"]),
        quarantine_budget=float(statistics["quarantine_budget"]),
        visual_change=statistics["visual_change"],
        warnings=tuple(manifest["warnings"]),
        data=RunData(
            format=data["format"],
            fingerprint=data["fingerprint"],
            annotations=dict(data["annotations"]),
            categories=tuple(data["categories"]),
            pixel_classes={int(number): name for number, name in data["pixel_classes"].items()},
            frames=dict(data["frames"]),
            logs=int(data["logs"]),
            notes=dict(data["notes"]),
        ),
        provenance=_provenance(manifest),
        selection=None
        if (part := manifest.get("selection")) is None
        else RunSelection(part["kind"], part["facts"]),
        truth=None if (told := statistics.get("truth")) is None else TruthSource(told["sut"], told["score"]),
        kills={str(sut): int(count) for sut, count in manifest.get("kills", {}).items()},
    )


def kill_remarks(kills: Mapping[str, int]) -> list[str]:
    """Say what it means that a run was killed: no more is known than that a SUT may have done it.

    >>> kill_remarks({"a": 1})
    ['the whole run was killed once while a had work left: counted in its fault_rate as a failed attempt']
    """
    return [
        f"the whole run was killed {'once' if count == 1 else f'{count} times'} while {sut} had work left: "
        f"counted in its fault_rate as {'a failed attempt' if count == 1 else f'{count} failed attempts'}"
        for sut, count in kills.items()
    ]


def _setting(name: str, entry: Mapping[str, Any]) -> Setting:
    group: Group = entry["group"]
    steps = tuple(Step(step["mutation"], step["options"]) for step in entry["steps"])
    drift = Drift(**entry["drift"]) if "drift" in entry else None
    return Setting(name, steps, group, frozenset(entry["needs"]), coherent=entry["coherent"], drift=drift)


def _provenance(manifest: Mapping[str, Any]) -> Provenance:
    ours, environment, engine = manifest["adverse"], manifest["environment"], manifest["engine"]
    return Provenance(
        version=ours["version"],
        commit=ours["commit"],
        python=environment["python"],
        system=environment["system"],
        cpu=environment["cpu"],
        libraries=dict(environment["libraries"]),
        engine=engine["name"],
        workers=engine["workers"],
        finished=manifest.get("finished"),
        commits=dict(manifest.get("commits", {})),
    )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words what changed between two runs in one folder; what did not run is not in it."""
    changes = []
    if _annotations(old) != _annotations(new):
        changes.append("the annotations changed")
    for what, path in (
        ("the seed", ("study", "seed")),
        ("the noise of random mutations", ("study", "noise")),
        ("the data options", ("data", "options")),
        ("the statistics settings", ("statistics",)),
        ("library versions", ("environment", "libraries")),
    ):
        if _at(old, path) != _at(new, path):
            changes.append(f"{what} changed")
    for noun, key in (("SUT", "suts"), ("mutation", "settings")):
        before, after = old.get(key, {}), new.get(key, {})
        changes += [f"{noun} {name} is new" for name in after if name not in before]
        changes += [f"{noun} {name} is gone" for name in before if name not in after]
        changes += [
            f"{noun} {name} changed"
            for name in after
            if name in before and _without_names(before[name]) != _without_names(after[name])
        ]
    return changes


def _annotations(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return name and hash of each annotation file: in which folder it lies is no change."""
    return sorted(
        (Path(path).name, sha256) for path, sha256 in _at(manifest, ("data", "annotations")).items()
    )


def input_differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Say which input files are not what they were, by the hash of each path.

    >>> input_differences({"a.png": "1", "b.png": "2"}, {"a.png": "3", "c.png": "4"})
    ['1 input file changed: a.png', '1 input file is new: c.png', '1 input file is gone: b.png']
    """
    groups = (
        ("changed", sorted(path for path in new if path in old and old[path] != new[path])),
        ("new", sorted(new.keys() - old.keys())),
        ("gone", sorted(old.keys() - new.keys())),
    )
    lines = []
    for what, paths in groups:
        if paths:
            many = len(paths) > 1
            verb = "" if what == "changed" else "are " if many else "is "
            listed = ", ".join(paths[:NAMED]) + (", ..." if len(paths) > NAMED else "")
            lines.append(f"{len(paths)} input file{'s' if many else ''} {verb}{what}: {listed}")
    return lines


def _without_names(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what the files of a SUT are called: their content decides, and it is in the fingerprint.

    How its batch size was found decides nothing either; the size does.
    """
    return {key: value for key, value in entry.items() if key not in {"files", "batch_trial"}}


def _at(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree.get(key, {})
    return tree

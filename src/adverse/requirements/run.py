"""Check a requirements file: run the SUTs on changed versions of the frames, then evaluate the answers.

The run is a run like any other, in a folder of its own: frames are decoded once, each version is made once
and shown to every SUT, faults are isolated, and it can be resumed. Evaluation is a pure function of that
folder. Only images that could be used as they are and in at least one version count, the same on both sides;
a SUT that failed on a version answered wrongly there, or detected nothing.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse import plugins
from adverse.errors import StudyError, suggestion
from adverse.humans.thresholds import Threshold
from adverse.plugins import Registry
from adverse.requirements.decision import Decision, SamplingPlan, decisions
from adverse.requirements.file import (
    AT_A_SCORE,
    MEASURES,
    SIMILARITY,
    Requirements,
    RequirementsFile,
)
from adverse.requirements.measures import (
    DetectorAnswers,
    Evidence,
    MeasureTally,
    Rows,
    Side,
    TaskAnswers,
    task_answers,
)
from adverse.requirements.versions import PLUGIN, Versions, versions_of
from adverse.store.read import Store, finished
from adverse.store.seals import EVERYTHING
from adverse.store.tables import QUARANTINED
from adverse.study.engines import Engine, Stop
from adverse.study.run import RunWatcher, run_study
from adverse.study.spec import StudyFile


@dataclass(frozen=True, eq=False)
class VersionStats:
    """How making versions went: how many there are, their visual change, and what was refused and why."""

    versions: int
    tries: int
    visual_change: NDArray[np.float64]
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def rejections(self) -> int:
        """Versions that could not be made."""
        return self.refused.total()


class SutEvidence:
    """The evidence of one SUT in the run of a check: its answers by setting."""

    def __init__(self, store: Store, sut: str, answers: TaskAnswers) -> None:
        self.store = store
        self.sut = sut
        self.answers = answers
        self.baseline = store.run.baseline.id

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """The test frames (a mask over all) that could be used as they are."""
        return self.store.frames.test & self._ran(self.baseline)

    def family(self, setting: str) -> str:
        """Return the mutation of a setting of the run."""
        return next(entry.family for entry in self.store.run.settings if entry.id == setting)

    def evidence(self, kind: str, measure: str, versions: Versions) -> Evidence:
        """Return what is required and what is measured, row by row."""
        within = self._rows(versions.within)
        if kind == "correctness":
            measured = self.answers.correct(measure, within)
            originals = np.unique(within.frame)
            plain = Rows(originals, np.zeros(len(originals), np.int64), (self.baseline,))
            return self._paired(self.answers.correct(measure, plain), plain, measured, within)
        barely = self._rows(versions.barely)
        return self._paired(self.answers.alike(barely), barely, self.answers.alike(within), within)

    def mean(self, measure: str, settings: tuple[str, ...]) -> float | None:
        """Return the mean of a measure over settings, each over all usable frames; None: not defined."""
        values = []
        for setting in settings:
            rows = self._rows((setting,))
            tally = self.answers.correct(measure, rows)
            values.append(float(tally.under(np.ones((1, len(rows.frame))))[0]))
        return float(np.mean(values)) if values and np.isfinite(values).all() else None

    def version_stats(self, settings: tuple[str, ...]) -> VersionStats:
        """Return how making the versions went."""
        table = self.store.mutation_details(self.sut, settings).to_pylist()
        frames = set(np.array(self.store.frames.ids)[self.usable].tolist())
        rows = [row for row in table if row["frame"] in frames]
        records = [dict(row["details"] or ()) for row in rows]
        refused = Counter(_kind_of(str(row["reason"])) for row in rows if row["status"] == "quarantined")
        reached = [record["visual_change"] for record in records if "visual_change" in record]
        tries = sum(int(record.get("tries", 0)) for record in records)
        return VersionStats(len(rows) - refused.total(), tries, np.array(reached, np.float64), refused)

    def _rows(self, settings: tuple[str, ...]) -> Rows:
        """Return a row for every usable frame and setting that could be had, frame by frame."""
        ran = np.array([self.usable & self._ran(setting) for setting in settings])
        frame, setting = np.nonzero(ran.T)
        return Rows(frame, setting, settings)

    def _paired(self, required: MeasureTally, first: Rows, measured: MeasureTally, second: Rows) -> Evidence:
        """Number the frames that take part from 0."""
        frames = np.unique(np.concatenate([first.frame, second.frame]))
        return Evidence(
            Side(required, np.searchsorted(frames, first.frame)),
            Side(measured, np.searchsorted(frames, second.frame)),
            self.store.frames.log[frames],
        )

    def _ran(self, setting: str) -> NDArray[np.bool_]:
        frame, status = self.answers.status(setting)
        mask = np.zeros(len(self.store.frames.ids), np.bool_)
        mask[frame[status != QUARANTINED]] = True
        return mask


def _kind_of(reason: str) -> str:
    """Return why a version was refused without what differs from frame to frame.

    >>> _kind_of("the visual change cannot be reached; got: 0.31; wanted: 0.4 to 0.5. Fix: Raise tries:.")
    'the visual change cannot be reached'
    >>> _kind_of("the mutation up_to failed; where: frame 'a'; got: ValueError: no. Fix: Mend it.")
    'the mutation up_to failed: ValueError: no'
    """
    summary, *details = reason.partition(". Fix: ")[0].split("; ")
    got = next((text.removeprefix("got: ") for text in details if text.startswith("got: ")), "")
    return f"{summary}: {got}" if "failed" in summary else summary


SENSITIVITY = 0.1
"""False positives per un-mutated image at which detections count, by default."""


@dataclass(frozen=True, eq=False)
class RequirementResult:
    """One requirement of one SUT: what it demands, the decision, and how its versions were made."""

    name: str
    sut: str
    kind: str
    measure: str
    transformation: str
    threshold: Threshold
    plan: SamplingPlan
    decision: Decision
    within: VersionStats
    barely: VersionStats | None
    battery: str | None
    battery_mean: float | None
    words: str


@dataclass(frozen=True, eq=False)
class RequirementsCheck:
    """The results of a check, and what they rest on."""

    file: RequirementsFile
    store: Store
    versions: list[Versions]
    results: tuple[RequirementResult, ...]
    faults: dict[str, int]
    score_thresholds: dict[str, tuple[float, str]]


def run_check(
    file: RequirementsFile, out: Path, engine: Engine, *, watch: RunWatcher, stop: Stop, fresh: bool = False
) -> RequirementsCheck | None:
    """Run what is left of a check and evaluate it; None when it was interrupted."""
    study, versions = derived(file)
    ran = run_study(study, out, engine, watch=watch, stop=stop, fresh=fresh)
    if ran.problem is not None:
        raise ran.problem
    if ran.status != "complete":
        return None
    return evaluate(file, finished(out, rewrites=EVERYTHING), versions)


def derived(file: RequirementsFile) -> tuple[StudyFile, list[Versions]]:
    """Return the study that a requirements check runs, and the versions of each requirement."""
    study, requirements = file.study.study, file.requirements
    names = [sut.name for sut in study.suts]
    for number, name in enumerate(requirements.suts):
        if name not in names:
            raise StudyError(
                f"the study has no SUT {name!r}",
                where=file.where("suts", number),
                fix=suggestion(name, names),
            )
    made = copy.copy(file.study)
    made.study = study.model_copy(update={"plugins": (*study.plugins, str(PLUGIN))})
    registry = plugins.load(made.plugin_files)
    versions = _versions(file, registry)
    settings = [(*group.within, *group.barely, *group.battery) for group in versions]
    segmented = study.task == "segmentation" and any(group.barely for group in versions)
    made.study = made.study.model_copy(
        update={
            "suts": tuple(
                sut for sut in study.suts if not requirements.suts or sut.name in requirements.suts
            ),
            "mutations": tuple(dict.fromkeys(name for group in settings for name in group)),
            "levels": ("image",),
            "robot": None,
            "robustness": study.robustness.model_copy(update={"conditions": {}}),
            "keep_label_maps": study.keep_label_maps or segmented,
            "data": study.data.model_copy(
                update={"test_frames": requirements.frames or study.data.test_frames}
            ),
            "requirements": None,
        }
    )
    return made, versions


def evaluate(file: RequirementsFile, store: Store, versions: list[Versions]) -> RequirementsCheck:
    """Evaluate every SUT of a finished run on all requirements."""
    numbers = range(len(file.requirements.require))
    plans = [file.plan(number) for number in numbers]
    measures = [file.measure(number) for number in numbers]
    results: list[RequirementResult] = []
    thresholds: dict[str, tuple[float, str]] = {}
    for sut in store.suts:
        answers = task_answers(
            store, sut, sensitivity=_sensitivity(file.requirements), score=file.requirements.score
        )
        if isinstance(answers, DetectorAnswers):
            thresholds[sut] = (float(answers.threshold), answers.source)
        collected = SutEvidence(store, sut, answers)
        kinds = [requirement.kind for requirement in file.requirements.require]
        evidence = [collected.evidence(*row) for row in zip(kinds, measures, versions, strict=True)]
        for number, decision in enumerate(decisions(evidence, plans)):
            results.append(_result(file, number, collected, versions[number], decision))
    return RequirementsCheck(file, store, versions, tuple(results), _faults(store), thresholds)


def _result(
    file: RequirementsFile, number: int, evidence: SutEvidence, versions: Versions, decision: Decision
) -> RequirementResult:
    requirement, measure, plan = file.requirements.require[number], file.measure(number), file.plan(number)
    first = next(iter(MEASURES[file.study.study.task]))
    accuracy = measure if requirement.kind == "correctness" else first
    return RequirementResult(
        name=file.names()[number],
        sut=evidence.sut,
        kind=requirement.kind,
        measure=measure,
        transformation=requirement.transformation,
        threshold=versions.threshold,
        plan=plan,
        decision=decision,
        within=evidence.version_stats(versions.within),
        barely=evidence.version_stats(versions.barely) if versions.barely else None,
        battery=evidence.family(versions.battery[0]) if versions.battery else None,
        battery_mean=evidence.mean(accuracy, versions.battery),
        words=_words(file, number, versions, evidence.sut),
    )


def _words(file: RequirementsFile, number: int, versions: Versions, sut: str) -> str:
    """Return a requirement as a sentence that a reviewer reads."""
    requirement, plan, task = file.requirements.require[number], file.plan(number), file.study.study.task
    threshold = versions.threshold
    limit = threshold.tolerated_to
    measure = file.measure(number)
    drawn = " drawn from its distribution" if requirement.parameters else ""
    change = f"{requirement.transformation}{drawn} up to visual change {limit:g} by {threshold.backend}"
    change += f" ({threshold.words})"
    fall = "does not fall" if plan.margin == 0 else f"falls by at most {plan.margin:g}"
    sure = f"with {100 * plan.confidence:g} % confidence"
    if requirement.kind == "correctness":
        at = _at(file.requirements, measure)
        return f"{measure}{at} of {sut} {fall} under {change}, {sure}"
    alike = SIMILARITY[task][1]
    barely = f"for barely changed images (up to {file.requirements.barely * limit:.3g})"
    return f"{alike} of {sut} {fall} under {change} from what it is {barely}, {sure}"


def _at(requirements: Requirements, measure: str) -> str:
    if measure not in AT_A_SCORE:
        return ""
    return (
        f" from score {requirements.score:g}"
        if requirements.score is not None
        else f" at {_sensitivity(requirements):g} false positives per image"
    )


def _sensitivity(requirements: Requirements) -> float | None:
    if requirements.score is not None:
        return None
    return SENSITIVITY if requirements.sensitivity is None else requirements.sensitivity


def _versions(file: RequirementsFile, registry: Registry) -> list[Versions]:
    for number in range(len(file.requirements.require)):
        file.measure(number)  # raises where there is no such measure
    return [versions_of(file, number, registry) for number in range(len(file.requirements.require))]


def _faults(store: Store) -> dict[str, int]:
    faults: dict[str, int] = dict.fromkeys(store.suts, 0)
    row: dict[str, Any]
    for row in store.counts():
        if row["status"] == "fault":
            faults[row["sut"]] += row["n"]
    return faults

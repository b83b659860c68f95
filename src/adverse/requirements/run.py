"""Check a requirements file: run the SUTs on changed versions of the frames, then evaluate the answers.

The run is a run like any other, in a folder of its own: frames are decoded once, each version is made once
and shown to every SUT, faults are isolated, and it can be resumed. Evaluation is a pure function of that
folder. Only images that could be used as they are and in at least one version count, the same on both sides;
a SUT that failed on a version answered wrongly there, or detected nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse import plugins
from adverse.errors import StudyError, suggestion
from adverse.humans.thresholds import Threshold
from adverse.plugins import Registry
from adverse.requirements.basis import on_its_basis
from adverse.requirements.decision import Decision, SamplingPlan, decisions, within_interval, without_interval
from adverse.requirements.evidence import CurvePoint, SutEvidence, VersionStats, WorstVersion, within_reach
from adverse.requirements.file import (
    AT_A_SCORE,
    MEASURES,
    SIMILARITY,
    Requirements,
    RequirementsFile,
)
from adverse.requirements.measures import DetectorAnswers, Evidence, task_answers
from adverse.requirements.ranking import RankingScores
from adverse.requirements.versions import PLUGIN, Versions, versions_of
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.seals import EVERYTHING
from adverse.study.engines import Engine, Stop
from adverse.study.run import RunWatcher, run_study
from adverse.study.spec import StudyFile

SENSITIVITY = 0.1
"""False positives per un-mutated image at which detections count, by default."""


@dataclass(frozen=True, eq=False)
class RequirementResult:
    """One requirement of one SUT: what it demands, the decision, and how its versions were made.

    `lower` is the decision about changes up to the lower end of the threshold's interval; None where there is
    no interval, or it ends at the threshold. `curve` is the measure by visual change.
    """

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
    curve: tuple[CurvePoint, ...]
    worst: tuple[WorstVersion, ...]
    lower: Decision | None
    ranking: RankingScores | None


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
    for number, name in enumerate(requirements.suts or ()):
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
    compared = all(requirement.kind == "prediction" for requirement in requirements.require)
    made.unlabelled = compared and not requirements.ranking
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
        found = decisions(evidence, plans)
        lower = _up_to_lower_ends(collected, file, measures, versions, evidence)
        results += [
            _result(file, number, collected, versions[number], evidence[number], found[number], lower[number])
            for number in numbers
        ]
    return RequirementsCheck(file, store, versions, tuple(results), _faults(store), thresholds)


def _up_to_lower_ends(
    collected: SutEvidence,
    file: RequirementsFile,
    measures: Sequence[str],
    versions: Sequence[Versions],
    whole: Sequence[Evidence],
) -> list[tuple[Decision, float] | None]:
    """Decide each requirement up to the lower end of its threshold's interval; None where that is no less.

    They are one family like the requirements themselves; those without an interval take part as they are.
    Where hardly any version lies below that end (it may be 0), the least change counts that can be decided.
    """
    ends = [_lower_end(collected, group) for group in versions]
    if all(end is None for end in ends):
        return [None] * len(ends)
    evidence = [
        whole[number]
        if end is None
        else collected.evidence(
            file.requirements.require[number].kind, measures[number], versions[number], up_to=end
        )
        for number, end in enumerate(ends)
    ]
    found = decisions(evidence, [file.plan(number) for number in range(len(ends))])
    return [None if end is None else (decision, end) for end, decision in zip(ends, found, strict=True)]


def _lower_end(collected: SutEvidence, versions: Versions) -> float | None:
    limit = versions.threshold
    low = None if limit.interval is None else limit.interval.low
    if low is None or low >= limit.tolerated_to:
        return None
    return collected.least_decidable(versions, low) or low


def _result(
    file: RequirementsFile,
    number: int,
    collected: SutEvidence,
    versions: Versions,
    evidence: Evidence,
    decision: Decision,
    lower: tuple[Decision, float] | None,
) -> RequirementResult:
    requirement, measure, plan = file.requirements.require[number], file.measure(number), file.plan(number)
    first = next(iter(MEASURES[file.study.study.task]))
    accuracy = measure if requirement.kind == "correctness" else first
    mean = collected.battery_mean(accuracy, versions.battery)
    distance = decision.finding.distance
    made = collected.version_stats(versions.within)
    decision = without_interval(decision, versions.threshold)
    if lower is not None:
        decision = within_interval(decision, lower[0], versions.threshold, decided_to=lower[1])
    limit = versions.threshold.tolerated_to
    decision = within_reach(decision, made, limit)
    barely_to = file.requirements.barely * limit
    barely = collected.version_stats(versions.barely, highest=barely_to) if versions.barely else None
    faults = collected.fault_share(versions.barely or (collected.baseline,))
    decision = on_its_basis(decision, barely, barely_to, faults, plan.margin)
    return RequirementResult(
        name=file.names()[number],
        sut=collected.sut,
        kind=requirement.kind,
        measure=measure,
        transformation=requirement.transformation,
        threshold=versions.threshold,
        plan=plan,
        decision=decision,
        within=made,
        barely=barely,
        battery=collected.family(versions.battery[0]) if versions.battery else None,
        battery_mean=mean,
        words=_words(file, number, versions, collected.sut),
        curve=collected.curve(requirement.kind, measure, versions),
        worst=collected.worst(requirement.kind, measure, versions),
        lower=None if lower is None else lower[0],
        ranking=collected.ranking_scores(evidence, distance, (accuracy, versions.battery, mean), plan)
        if mean is not None and distance is not None
        else None,
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

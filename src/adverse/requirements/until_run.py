"""Run a study until its rules are settled: look by look, and no further.

Each look is a run of a part of the study: the logs so far, under the settings and by the SUTs over which a
rule is still open that these logs can change. What a look finds follows from the answers alone, so stopping,
resuming, kills and the number of workers change nothing. Running the whole study in the same folder later
uses all that is there.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adverse import plugins
from adverse.analysis.stopped import people_in, shown_cells, shows_all
from adverse.curves.group_sequential import Spending
from adverse.errors import StudyError
from adverse.plugins import Registry
from adverse.requirements.gate import rule_verdicts
from adverse.requirements.rules import Rule, read_rules, refuse_unevaluated
from adverse.requirements.run_figures import RunFigures
from adverse.requirements.until import (
    LEAST_LOGS,
    LOOKS,
    LookVerdict,
    Question,
    UntilPlan,
    changed_facts,
    make_until_plan,
    settle,
)
from adverse.requirements.verdicts import Verdict
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from adverse.store.read import Store
from adverse.store.seals import EVERYTHING
from adverse.store.selection import Batch, Selection, SelectionKind
from adverse.study.engines import Engine, Stop
from adverse.study.plan import conditions_of, read_dataset, read_settings, sut_tasks
from adverse.study.run import RunWatcher, run_study
from adverse.study.spec import StudyFile
from adverse.types import Dataset

KIND: SelectionKind = "until"
Asked = Sequence[tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]
"""Logs, each with the (setting, SUT) under and to which they are shown."""


@dataclass
class UntilRun:
    """A run that was stopped when its rules were settled, or at its last look."""

    plan: UntilPlan
    store: Store
    verdicts: list[LookVerdict] = field(default_factory=list)
    logs_used: dict[tuple[str, str], int] = field(default_factory=dict)
    """By (SUT, setting)."""
    looks: int = 0
    """How many were taken."""
    images: int = 0
    """Test images that were shown to SUTs, each mutation counted."""
    images_of_all: int = 0

    def count(self, asked: Asked) -> None:
        """Count the logs of a look."""
        for logs, cells in asked:
            for setting, sut in cells:
                self.logs_used[sut, setting] = self.logs_used.get((sut, setting), 0) + len(logs)

    def plain(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        logs = sum(self.plan.counts[-1])
        return {
            "stopped_early": self.images < self.images_of_all,
            "looks_taken": self.looks,
            "images": self.images,
            "images_of_the_whole_study": self.images_of_all,
            "plan": {**self.plan.facts, "boundaries": self.plan.boundaries},
            "verdicts": [verdict_row(one) for one in self.verdicts],
            "cells": [
                {"sut": sut, "setting": setting, "logs": used, "of": logs}
                for (sut, setting), used in self.logs_used.items()
            ],
        }


class _Views:
    """The run as it was at a look, with the logs that a rule rests on."""

    def __init__(self, store: Store, look: int, plan: UntilPlan, first: Batch, registry: Registry) -> None:
        self._store, self._look, self._plan, self._registry = store, look, plan, registry
        self._shown = shown_cells(first)
        self._views: dict[tuple[str, ...], RunFigures] = {}

    def of(self, rule: Rule) -> RunFigures:
        """Return the figures of the logs that a rule rests on."""
        logs = tuple(self._plan.logs(self._look, rule))
        if logs not in self._views:
            sure = self._plan.confidence(self._look)
            part = self._store.of_logs(logs, confidence=sure, shown=self._shown)
            self._views[logs] = RunFigures(part, self._registry)
        return self._views[logs]


def verdict_row(one: LookVerdict) -> dict[str, Any]:
    """Return a verdict with its repeated interval, as CSV and JSON hold it."""
    verdict, interval = one.verdict, one.verdict.interval
    return {
        "name": verdict.name,
        "requirement": verdict.requirement,
        "sut": verdict.sut,
        "outcome": str(verdict.outcome),
        "settled_at_look": one.look,
        "logs_with_people": one.logs[0],
        "logs_without": one.logs[1],
        "required": verdict.required,
        "measured": verdict.measured,
        "repeated_low": None if interval is None else interval.low,
        "repeated_high": None if interval is None else interval.high,
        "look_confidence": None if interval is None else interval.confidence,
        "reason": verdict.reason,
    }


def run_until(
    file: StudyFile,
    rules_file: Path,
    out: Path,
    engine: Engine,
    *,
    looks: int = LOOKS,
    spending: Spending = "obrien-fleming",
    watch: RunWatcher,
    stop: Stop,
    fresh: bool = False,
) -> UntilRun | None:
    """Run a study until the rules are settled; None when it was interrupted."""
    rules = read_rules(rules_file, levels=file.study.levels)
    plan, dataset = _plan(file, rules, str(rules_file), looks, spending)
    if not fresh:
        _refuse_other(RunFolder(out), plan)
    frames = {log.id: tuple(frame.id for frame in log.frames) for log in dataset.logs if log.split == "test"}
    batches: list[Batch] = []
    settled: list[dict[str, LookVerdict]] = [{} for _ in plan.questions]
    is_open = [True] * len(plan.questions)
    run: UntilRun | None = None
    for look in range(len(plan.stages)):
        asked = _asked(plan, look, is_open)
        batches += [
            Batch(tuple(frame for log in logs for frame in frames[log]), cells) for logs, cells in asked
        ]
        ran = run_study(
            _part(file, batches, plan), out, engine, watch=watch, stop=stop, fresh=fresh and not look
        )
        if ran.problem is not None:
            raise ran.problem
        if ran.status != "complete":
            return None
        store = finished(out, rewrites=EVERYTHING, selected=(KIND,))
        run = run or UntilRun(plan, store)
        run.store, run.looks = store, look + 1
        run.count(asked)
        views = _Views(store, look, plan, batches[0], ran.plan.registry)
        for number, question in enumerate(plan.questions):
            if is_open[number]:
                found = [verdict for _, verdict in rule_verdicts(views.of(question.rule), question.rule)]
                settled[number] |= settle(plan, look, (number, question.rule), found, settled[number])
                is_open[number] = any(verdict.name not in settled[number] for verdict in found)
        watch.note(_look_words(look, plan, is_open))
        if not any(is_open):
            break
    if run is None:
        raise AssertionError("a plan without looks")
    run.verdicts = [verdict for one in settled for verdict in one.values()]
    run.images = sum(len(batch.frames) * len(batch.cells) for batch in batches)
    every = len(plan.facts["settings"]) * len(plan.facts["suts"])
    run.images_of_all = sum(map(len, frames.values())) * every
    return run


def _plan(
    file: StudyFile, rules: Sequence[Rule], where: str, looks: int, spending: Spending
) -> tuple[UntilPlan, Dataset]:
    if file.study.task != "detection" or file.study.truth is not None:
        raise StudyError(
            "only studies of detectors with annotations can be stopped early",
            where=file.where("task" if file.study.truth is None else "truth"),
            fix="Run the whole study, without --until.",
        )
    if not file.study.robustness.bootstrap:
        raise StudyError(
            "without intervals nothing can be settled",
            where=file.where("robustness", "bootstrap"),
            got="0",
            fix="Leave bootstrap: out, or give 1000.",
        )
    refuse_unevaluated(rules, file.study.levels, where=where)
    registry = plugins.load(file.plugin_files)
    dataset, settings = read_dataset(file, registry), read_settings(file, registry)
    plan = make_until_plan(
        rules,
        dataset,
        settings,
        {task.name: task.fingerprint for task in sut_tasks(file, registry)},
        targets=file.study.targets,
        conditions=conditions_of(file, settings),
        seed=file.study.seed,
        looks=looks,
        spending=spending,
        where=where,
    )
    return plan, dataset


def _asked(plan: UntilPlan, look: int, is_open: Sequence[bool]) -> Asked:
    """Return the logs that a look adds, with the (setting, SUT) over which a rule is open that needs them."""
    stage, still = plan.stages[look], [q for q, one in zip(plan.questions, is_open, strict=True) if one]
    if shows_all(plan.counts, look, LEAST_LOGS):
        return [(stage, _cells(plan, still))]
    people, both = people_in(plan.counts, look), [q for q in still if not plan.people_only(q.rule)]
    asked = [(stage[:people], _cells(plan, still)), (stage[people:], _cells(plan, both))]
    return [(logs, cells) for logs, cells in asked if cells]


def _cells(plan: UntilPlan, questions: Sequence[Question]) -> tuple[tuple[str, str], ...]:
    """Return the (setting, SUT) that questions are about, in the order of the study."""
    wanted = {(setting, question.sut) for question in questions for setting in question.settings}
    suts, settings = plan.facts["suts"], plan.facts["settings"]
    return tuple((setting, sut) for setting in settings for sut in suts if (setting, sut) in wanted)


def _part(file: StudyFile, batches: Sequence[Batch], plan: UntilPlan) -> StudyFile:
    part = copy.copy(file)
    part.selection, part.log_by_log = Selection(KIND, tuple(batches), plan.facts), True
    return part


def _refuse_other(folder: RunFolder, plan: UntilPlan) -> None:
    """Raise where a folder was begun by another plan or by none: it must stand before the first answer."""
    if not folder.manifest.exists():
        return
    before: Mapping[str, Any] | None = folder.read_manifest().get("selection")
    if before is None or before["kind"] != KIND:
        raise StudyError(
            "the folder holds a run that was begun without a plan to stop early",
            where=str(folder.path),
            wanted="the plan before the first answer: who chooses rules after a look is wrong more often",
            fix="Give another folder with --out, or begin anew with --fresh.",
        )
    changed = changed_facts(before["facts"], json.loads(json.dumps(plan.facts)))
    if changed:
        raise StudyError(
            "the plan to stop early is not the one that the run was begun with",
            where=str(folder.path),
            got=f"other {', '.join(changed)}",
            wanted="the same rules, looks, spending, logs, mutations and SUTs as before the first answer",
            fix="Put them back, give another folder with --out, or begin anew with --fresh.",
        )


def _look_words(look: int, plan: UntilPlan, is_open: Sequence[bool]) -> str:
    positive, negative = plan.counts[look]
    left = sum(is_open)
    return (
        f"look {look + 1} of {len(plan.counts)}, {positive} logs with people and {negative} without: "
        f"{len(is_open) - left} of {len(is_open)} rules are settled"
    )


def until_verdicts(run: UntilRun) -> list[Verdict]:
    """Return the verdicts alone."""
    return [one.verdict for one in run.verdicts]

"""Run a study until its rules are settled: look by look, and no further.

Each look is a run of a part of the study: the logs so far, under the settings and by the SUTs over which a
rule is still open. What a look finds follows from the answers alone, so stopping, resuming, kills and the
number of workers change nothing. Running the whole study in the same folder later uses all that is there.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adverse import plugins
from adverse.analysis.stopped import at_look, shown_cells
from adverse.curves.group_sequential import Spending
from adverse.errors import StudyError
from adverse.requirements.gate import rule_verdicts
from adverse.requirements.rules import Rule, read_rules
from adverse.requirements.run_figures import RunFigures
from adverse.requirements.until import LOOKS, LookVerdict, UntilPlan, changed_facts, make_until_plan, settle
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


@dataclass
class UntilRun:
    """A run that was stopped when its rules were settled, or at its last look."""

    plan: UntilPlan
    store: Store
    verdicts: list[LookVerdict] = field(default_factory=list)
    logs_used: dict[tuple[str, str], int] = field(default_factory=dict)
    """By (SUT, setting)."""
    images: int = 0
    """Test images that were shown to SUTs, each mutation counted."""
    images_of_all: int = 0

    @property
    def looks(self) -> int:
        """How many looks were taken."""
        used = max(self.logs_used.values(), default=0)
        return next(k + 1 for k, count in enumerate(self.plan.counts) if sum(count) >= used)

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
    for look, logs in enumerate(plan.stages):
        cells = _open_cells(plan, is_open)
        batches.append(Batch(tuple(frame for log in logs for frame in frames[log]), tuple(cells)))
        ran = run_study(
            _part(file, batches, plan), out, engine, watch=watch, stop=stop, fresh=fresh and not look
        )
        if ran.problem is not None:
            raise ran.problem
        if ran.status != "complete":
            return None
        store = finished(out, rewrites=EVERYTHING, selected=(KIND,))
        run = run or UntilRun(plan, store)
        run.store = store
        for sut, setting in ((sut, setting) for setting, sut in cells):
            run.logs_used[sut, setting] = run.logs_used.get((sut, setting), 0) + len(logs)
        shown, registry = shown_cells(batches[0]), ran.plan.registry
        view = RunFigures(at_look(store, plan.stages[: look + 1], plan.confidence(look), shown), registry)
        for number, question in enumerate(plan.questions):
            if is_open[number]:
                found = [verdict for _, verdict in rule_verdicts(view, question.rule)]
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


def _open_cells(plan: UntilPlan, is_open: Sequence[bool]) -> list[tuple[str, str]]:
    """Return the (setting, SUT) over which a rule is open, in the order of the study."""
    wanted = {
        (setting, question.sut)
        for question, still in zip(plan.questions, is_open, strict=True)
        if still
        for setting in question.settings
    }
    suts, settings = plan.facts["suts"], plan.facts["settings"]
    return [(setting, sut) for setting in settings for sut in suts if (setting, sut) in wanted]


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

"""The figures of a run that rules are about: each with its interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from adverse.analysis.fault_rates import fault_rate, fault_remarks, mutation_remarks, outage_rate
from adverse.analysis.results import Summary, run_results, unloaded
from adverse.analysis.score import ANY, ANY_MILD
from adverse.benchmarks.table import BenchTable, bench_table
from adverse.curves.interval import Interval
from adverse.errors import AdverseError, StudyError, suggestion
from adverse.mutations.settings import parse
from adverse.plugins import Registry, load
from adverse.requirements.closed_loop import ClosedLoopFigures
from adverse.requirements.conditions import is_strength
from adverse.requirements.limits import ConditionLimit, run_limits
from adverse.requirements.margins import ConditionMargins, RunMargins, step_of
from adverse.requirements.rules import (
    AGREEMENT,
    BY_SETTING,
    CLOSED_LOOP,
    COUNTS,
    LIMIT,
    MARGIN,
    METRIC,
    PERCENT,
    PLAIN,
    RATES,
    RELATION_VIOLATIONS,
    Rule,
)
from adverse.store.read import Store
from adverse.store.run import Run, kill_remarks
from adverse.text import BASELINE as BASELINE_ID
from adverse.text import CLEAN, OVER_ALL, setting_text

BASELINE, ON_CLEAN = "baseline", f" on {CLEAN} images"
TABLES = {
    "mean_area": "means",
    "mean_robustness": "means",
    "expected_area": "expected",
    "adr": "adr",
    **dict.fromkeys((*PLAIN, AGREEMENT), "plain_metrics"),
    RELATION_VIOLATIONS: "relations",
    METRIC: "metrics",
}
"""Where in the summary a measure is, if not among its rows."""
TOO_FEW = "more frames could not be used than quarantine_budget allows"
WITHHELD = "the level, metric or relation is of a plug-in that was not run; give --trust if you trust it"
UNTRUSTED = "a mutation is of a plug-in that was not run; give --trust if you trust it"
SEARCHED = "the run is a search, which chose its frames by what was found on them; run the whole study"
MIXED = "mixed environments"
RECALL = "recall"
SHIFTED = "truth and images may be shifted against each other"
"""How a warning of a run begins that every verdict on it carries."""
PARTS = {"P": "clean", "mPC": "corrupted", "rPC": "relative"}


@dataclass(frozen=True)
class RunFigure:
    """A measured number and its interval; `doubt` says why it must not decide anything, empty if it may."""

    of: str
    value: float | None
    interval: Interval | None = None
    doubt: str = ""
    note: str = ""
    sut: str = ""
    """The SUT that it is about, if it is about one."""


class RunFigures:
    """The figures of a finished run, computed from its detections unless a summary is given.

    A verdict is never made from a summary on disk.
    """

    def __init__(
        self, store: Store, registry: Registry | None = None, *, summary: Summary | None = None
    ) -> None:
        self.store = store
        self.registry = registry
        self.unloaded = unloaded(store, registry, "level", store.run.levels)
        self.unloaded_relations = unloaded(store, registry, "relation", store.run.relations)
        self.benchmark = cache(self._benchmark)
        self._summary = summary

    @cached_property
    def summary(self) -> Summary:
        """The results, computed when a rule first needs them, at all levels whose code may be run."""
        if self._summary is not None:
            return self._summary
        return run_results(self.store, registry=self.registry, partial=True).summary

    @cached_property
    def limits(self) -> list[ConditionLimit]:
        """The condition limits that the run was made to search, worked out again."""
        return run_limits(self.store, self.figures, self.registry or load())

    def withheld(self, rule: Rule) -> bool:
        """Tell whether a rule is about a level, metric, relation or strength of an unloaded plug-in."""
        if rule.measure in (LIMIT, MARGIN):
            return self.no_strength(rule) == UNTRUSTED
        if rule.measure == METRIC:
            return rule.metric in unloaded(self.store, self.registry, "metric", self.store.run.metrics)
        if rule.relation is not None:
            return rule.relation in self.unloaded_relations
        return rule.level is not None and rule.level.partition("/")[0] in self.unloaded

    def no_strength(self, rule: Rule) -> str | None:
        """Return why nobody can say how strong the setting of a rule is; None where that can be said."""
        names = {plugin.name for plugin in (self.registry or load()).all("mutation")}
        used = {step.mutation for setting in self.store.run.mutations for step in setting.steps}
        if not used <= names:
            return UNTRUSTED
        try:
            parse(rule.setting or "", self.registry or load(), where="setting")
        except StudyError as error:
            return error.what
        return None

    def figures(self, rule: Rule) -> Iterator[RunFigure]:
        """Yield one figure for each SUT and level that a rule covers, none left out."""
        for sut in rule.sut or self.store.suts:
            if sut in self.store.suts and rule.measure == MARGIN:
                yield replace(self._margin(rule, sut), sut=sut)
            elif _searched(self.store.run):
                yield RunFigure(self._of(sut, rule.level, rule.setting), None, doubt=SEARCHED, sut=sut)
            elif sut not in self.store.suts:
                why = f"the run has no such SUT. {suggestion(sut, self.store.suts)}"
                yield RunFigure(sut, None, doubt=why)
            elif rule.measure == "quarantined":
                refused = [row for row in self.summary.data["troubles"] if row["status"] == "quarantined"]
                yield RunFigure("", float(len({row["frame"] for row in refused})))
            else:
                yield from (replace(figure, sut=sut) for figure in self._of_sut(rule, sut))

    def remarks(self, sut: str) -> tuple[str, ...]:
        """Return what a reader of any verdict about a SUT must know, and about the run."""
        counts = None if _searched(self.store.run) else self.summary.data["counts"].get(sut)
        doubts = [line for line in self.store.run.warnings if line.startswith((MIXED, SHIFTED))]
        if self.store.run.truth is not None:
            doubts.append(f"label-free: compared with {self.store.run.truth.name}, not with annotations")
        if self.store.run.alike_logs is not None:
            doubts.append(self.store.run.alike_logs)
        killed = kill_remarks({name: n for name, n in self.store.run.kills.items() if name == sut})
        faults = fault_remarks(sut, counts) if counts else ()
        return (*faults, *killed, *doubts, *self._mutation_remarks)

    def _misnamed(self, measure: str) -> str | None:
        """Return why a run has no recall, or no agreement: it has one of the two."""
        free = self.store.run.truth is not None
        if measure == RECALL and free:
            return "the run is label-free, so recall is not known; measure: agreement is"
        if measure == AGREEMENT and not free:
            return "the run has annotations, so it has measure: recall; agreement is for label-free runs"
        return None

    @cached_property
    def _mutation_remarks(self) -> tuple[str, ...]:
        return tuple(mutation_remarks(self.store))

    def _of_sut(self, rule: Rule, sut: str) -> Iterator[RunFigure]:
        if rule.measure in (*COUNTS, *RATES):
            yield self._count(rule, sut)
        elif (doubt := self._misnamed(rule.measure)) is not None:
            yield RunFigure(self._of(sut, rule.level, rule.setting), None, doubt=doubt)
        elif sut in self.summary.failed_everywhere:
            yield RunFigure(
                sut, None, doubt=f"it failed on every image: {self.summary.failed_everywhere[sut]}"
            )
        elif rule.measure in PERCENT:
            yield self._benchmarked(rule, sut)
        elif (doubt := self._no_worst_case(rule.setting)) is not None:
            yield RunFigure(self._of(sut, rule.level, rule.setting), None, doubt=doubt)
        elif self.summary.data["task"] != "detection":
            yield self._score(rule, sut)
        elif rule.measure in CLOSED_LOOP:
            yield from self._driven(rule, sut)
        else:
            yield from self._levels(rule, sut)

    def _margin(self, rule: Rule, sut: str) -> RunFigure:
        """Return the share of those found on clean images that are found at all strengths up to a setting."""
        of = f"{sut} up to {rule.setting}"
        if (doubt := self.no_strength(rule)) is not None:
            return RunFigure(of, None, doubt=doubt)
        if self.store.task != "detection" or self.store.run.truth is not None:
            return RunFigure(of, None, doubt="margins are of annotated objects of detectors")
        setting = parse(rule.setting or "", self.registry or load(), where="setting")
        mine = [one for one in self._margins(sut) if is_strength(one.condition, setting)]
        step = step_of(mine[0].condition, setting) if mine else None
        if not mine:
            why = "the run does not have this mutation in several strengths; adverse margins searches them"
            return RunFigure(of, None, doubt=why)
        if step is None:
            furthest = mine[0].condition.words(len(mine[0].condition.values))
            return RunFigure(of, None, doubt=f"the run goes no further than {furthest}")
        point = mine[0].survival[step]
        if point.share is None:
            return RunFigure(of, None, doubt="insufficient: nobody is found on clean images")
        note = "the run has no intervals" if point.interval is None else _care(point.interval)
        return RunFigure(of, point.share, point.interval, note=note)

    @cached_property
    def _margins(self) -> Callable[[str], list[ConditionMargins]]:
        return cache(RunMargins(self.store, self.registry or load()).of_sut)

    def _driven(self, rule: Rule, sut: str) -> Iterator[RunFigure]:
        for level, setting, interval, doubt in self._closed_loop.figures(rule, sut):
            of = self._of(sut, level, setting) + ("" if setting else " under its conditions")
            value, note = (None, "") if interval is None else (interval.value, _care(interval))
            yield RunFigure(of, value, interval, doubt or ("" if value is not None else note), note)

    @cached_property
    def _closed_loop(self) -> ClosedLoopFigures:
        return ClosedLoopFigures(self.store)

    def _levels(self, rule: Rule, sut: str) -> Iterator[RunFigure]:
        if self.withheld(rule):
            yield RunFigure(self._of(sut, rule.level, rule.setting), None, doubt=WITHHELD)
            return
        rows, doubt = self._named(rule, self._rows(rule.measure, sut))
        if doubt:
            yield RunFigure(self._of(sut, None, rule.setting), None, doubt=doubt)
            return
        if rows and rule.setting is not None:
            settings = self._settings(rule, sut)
            rows = [row for row in rows if row["setting"] in settings]
            if not rows:
                of = self._of(sut, rule.level, rule.setting)
                yield RunFigure(of, None, doubt=self._no_setting(rule.setting))
                return
        if rule.level is not None:
            rows = [row for row in rows if rule.level in (row["level"], row["level"].split("/")[0])]
        if not rows:
            why = f"the run did not evaluate {'level ' + rule.level if rule.level else rule.words}"
            yield RunFigure(self._of(sut, rule.level, rule.setting), None, doubt=why)
        for row in rows:
            of = self._of(sut, row.get("level"), row.get("setting"))
            yield _figure(row, _column(rule.measure), of, self._lacking)

    @cached_property
    def _lacking(self) -> str:
        """Why figures of safety are not defined, where the reason is that there is nobody to find."""
        truth, frames = self.store.truth, self.store.frames
        if (frames.test[truth.frame] & ~truth.ignore).any():
            return ""
        return f"insufficient: no {' or '.join(self.store.targets)} is annotated on the test images"

    def _rows(self, measure: str, sut: str) -> list[Mapping[str, Any]]:
        rows = self.summary.data.get(TABLES.get(measure, "rows"), ())
        column = _column(measure)
        return [row for row in rows if row["sut"] == sut and column in row]

    def _score(self, rule: Rule, sut: str) -> RunFigure:
        """Return a score of a segmenter or classifier."""
        of = self._of(sut, None, rule.setting)
        rows = [row for row in self.summary.rows if row["sut"] == sut]
        if rule.setting is None or rule.level is not None:
            return RunFigure(of, None, doubt=f"a run of {self.store.task} has no {rule.measure}")
        setting = self._setting(rule.setting)
        row = next((row for row in rows if row["setting"] == setting), None)
        if row is None:
            return RunFigure(of, None, doubt=self._no_setting(rule.setting))
        flat = {**row, **row["scores"]}
        if rule.measure not in flat:
            return RunFigure(of, None, doubt=f"a run of {self.store.task} has no {rule.words}")
        return _figure(flat, rule.measure, of)

    def _count(self, rule: Rule, sut: str) -> RunFigure:
        counts = self.summary.data["counts"][sut]
        if rule.measure == "faults":
            return RunFigure(sut, float(counts["fault"]))
        if rule.measure == "fault_rate":
            kills = self.store.run.kills.get(sut, 0)
            part, whole = counts["failed_attempts"] + kills, counts["attempts"] + kills
            interval, words = fault_rate(self.store, sut), f"{part} of {whole} attempts failed"
        else:
            interval, part = outage_rate(self.store, sut), counts["outages"]
            whole = counts["attempts"] + part
            words = f"{part} of {whole} requests found no server or memory"
        if not whole:
            return RunFigure(sut, None, doubt="no image was sent to it")
        return RunFigure(sut, part / whole, interval, note=f"{words}; {_care(interval)}".removesuffix("; "))

    def _benchmarked(self, rule: Rule, sut: str) -> RunFigure:
        try:
            table = self.benchmark(rule.metric)
        except AdverseError as error:
            return RunFigure(sut, None, doubt=error.what)
        row = next(row for row in table.rows if row.sut == sut)
        of = f"{sut} by {table.metric.short}"
        value = getattr(row.whole, PARTS[rule.measure])
        interval: Interval | None = getattr(row.intervals, PARTS[rule.measure]) if row.intervals else None
        if value is None:
            return RunFigure(of, None, doubt="P is 0, so nothing can be a share of it")
        doubt = "" if table.status == "ok" else f"{table.status}: {TOO_FEW}"
        if row.trained_on and rule.measure != "P":
            names = ", ".join(row.trained_on)
            doubt = f"it was trained on {names}, so the mean over the corruptions is not {rule.measure}"
        if interval is None:
            return RunFigure(of, 100 * value, None, doubt, "this metric has no interval")
        return RunFigure(of, 100 * value, interval.scaled(100), doubt, interval.why)

    def _benchmark(self, metric: str | None) -> BenchTable:
        return bench_table(self.store, metric=metric)

    def _setting(self, setting: str) -> str:
        return BASELINE_ID if setting in (BASELINE, CLEAN) else setting

    def _settings(self, rule: Rule, sut: str) -> list[str]:
        """Return the settings that a rule covers; for ADR and plain metrics Any means each of them.

        Clean frames are not among them where the SUT would be compared with its own answers to them.
        """
        groups = {ANY_MILD: ("baseline", "mild"), ANY: ("baseline", "mild", "severe")}.get(rule.setting or "")
        if rule.measure in BY_SETTING and groups is not None:
            truth = self.store.run.truth
            if truth is not None and truth.sut == sut and rule.measure != RELATION_VIOLATIONS:
                groups = groups[1:]
            return [name for name, group in self.store.groups.items() if group in groups]
        return [self._setting(rule.setting or BASELINE)]

    def _no_worst_case(self, setting: str | None) -> str | None:
        """Return why there is no worst case to speak of: of no mutation it would be the baseline."""
        groups = {ANY_MILD: {"mild"}, ANY: {"mild", "severe"}}.get(setting or "")
        if groups is None or groups & set(self.store.groups.values()):
            return None
        kind = "mild mutation" if setting == ANY_MILD else "mutation"
        return f"insufficient: no {kind} ran, so there is no worst case"

    def _named(self, rule: Rule, rows: list[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], str]:
        """Return the rows of the relation or metric that a rule names, and why they decide nothing."""
        if rule.relation is not None:
            rows = [row for row in rows if row["relation"] == rule.relation]
            return rows, "" if rows else self._no_relation(rule.relation)
        if rule.measure != METRIC:
            return rows, ""
        rows = [row for row in rows if row["metric"] == rule.metric]
        if not rows:
            return rows, f"the run did not compute it. {suggestion(str(rule.metric), self.store.run.metrics)}"
        wanted, better = ("at_most", "lower") if rows[0]["lower_is_better"] else ("at_least", "higher")
        told = rule.limit is None or getattr(rule, wanted) is not None
        return rows, "" if told else f"write {wanted}: {better} is better"

    def _no_relation(self, relation: str) -> str:
        if relation in self.store.run.relations:
            return "insufficient: no mutation of the run is one that this relation is about"
        return f"the run did not check it. {suggestion(relation, self.store.run.relations)}"

    def _no_setting(self, setting: str) -> str:
        known = [CLEAN, ANY_MILD, ANY, *self.store.groups]
        close = suggestion(setting, known).partition(" Known")[0]
        return "the run has no such mutation" + (f". {close}" if close.startswith("Did") else "")

    @staticmethod
    def _of(sut: str, level: str | None, setting: str | None) -> str:
        return sut + (f" at {level}" if level else "") + (under_words(setting) if setting else "")


def _searched(run: Run) -> bool:
    """Tell whether frames were chosen by what was found on them, so that most figures would be biased."""
    return run.selection is not None and run.selection.kind == "margins"


def _column(measure: str) -> str:
    """Return what a measure is called in the table that has it."""
    if measure == METRIC:
        return "value"
    measure = RECALL if measure == AGREEMENT else measure
    return measure.removeprefix("mean_").removeprefix("expected_") if measure in TABLES else measure


def _figure(row: Mapping[str, Any], name: str, of: str, lacking: str = "") -> RunFigure:
    """Return a figure from a row of the results, and why it may not decide; `lacking`: of the data."""
    plain = row.get(f"{name}_interval")
    interval = None if plain is None else Interval.read(row[name], plain)
    if row[name] is None:
        return RunFigure(of, None, interval, doubt=lacking or "insufficient: too little data for this figure")
    doubt = "" if row["status"] == "ok" else f"{row['status']}: {TOO_FEW}"
    if interval is None:
        return RunFigure(of, row[name], None, doubt, "the run has no intervals")
    return RunFigure(of, row[name], interval, doubt, _care(interval))


def _care(interval: Interval) -> str:
    """Say why there is no interval, or that it is to be read with care."""
    return f"rests on {interval.why}" if interval.status == "few logs" else interval.why


def under_words(setting: str) -> str:
    """Return the end of what a figure is of: under which mutation, in which worst case, or on clean images.

    >>> under_words("clean"), under_words("Any"), under_words("haze(visibility_m=98)")
    (' on clean images', ' in the worst case of all mutations', ' under haze 98 m')
    """
    if setting in OVER_ALL:
        return f" in {OVER_ALL[setting]}"
    clean = setting in (BASELINE, CLEAN, BASELINE_ID)
    return ON_CLEAN if clean else f" under {setting_text(setting, longest=None)}"

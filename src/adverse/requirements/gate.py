"""Hold a run to rules: the figures that each rule is about, and PASS, FAIL or INCONCLUSIVE for each of them.

A figure comes with its interval, or with the reason why there is none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from adverse.analysis.fault_rates import fault_rate, fault_remarks, mutation_remarks, outage_rate
from adverse.analysis.results import Summary, run_results, unloaded
from adverse.analysis.score import ANY, ANY_MILD
from adverse.benchmarks.table import BenchTable, bench_table
from adverse.curves.interval import Interval
from adverse.errors import AdverseError, StoreError, suggestion
from adverse.plugins import Registry, load
from adverse.requirements.closed_loop import ClosedLoopFigures
from adverse.requirements.limit_verdicts import limit_verdicts
from adverse.requirements.limits import ConditionLimit, run_limits
from adverse.requirements.results import recheck
from adverse.requirements.rules import (
    AGREEMENT,
    BY_SETTING,
    CLOSED_LOOP,
    COUNTS,
    LIMIT,
    PERCENT,
    PLAIN,
    RATES,
    RELATION_VIOLATIONS,
    REQUIREMENTS,
    Rule,
    read_rules,
)
from adverse.requirements.verdicts import WORST_FIRST, Outcome, Verdict, numbers, read_verdicts, same, to_json
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.run import kill_remarks
from adverse.store.seals import made_by
from adverse.text import BASELINE as BASELINE_ID
from adverse.text import CLEAN, OVER_ALL

BASELINE, ON_CLEAN = "baseline", f" on {CLEAN} images"
TABLES = {
    "mean_area": "means",
    "mean_robustness": "means",
    "expected_area": "expected",
    "adr": "adr",
    **dict.fromkeys((*PLAIN, AGREEMENT), "plain_metrics"),
    RELATION_VIOLATIONS: "relations",
}
"""Where in the summary a measure is, if not among its rows."""
TOO_FEW = "more frames could not be used than quarantine_budget allows"
WITHHELD = "the level or relation is of a plug-in that was not run; give --trust if you trust it"
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
        """Tell whether a rule is about a level or relation of a plug-in that was not loaded."""
        if rule.relation is not None:
            return rule.relation in self.unloaded_relations
        return rule.level is not None and rule.level.partition("/")[0] in self.unloaded

    def figures(self, rule: Rule) -> Iterator[RunFigure]:
        """Yield one figure for each SUT and level that a rule covers, none left out."""
        for sut in rule.sut or self.store.suts:
            if sut not in self.store.suts:
                why = f"the run has no such SUT. {suggestion(sut, self.store.suts)}"
                yield RunFigure(sut, None, doubt=why)
            elif rule.measure == "quarantined":
                refused = [row for row in self.summary.data["troubles"] if row["status"] == "quarantined"]
                yield RunFigure("", float(len({row["frame"] for row in refused})))
            else:
                yield from (replace(figure, sut=sut) for figure in self._of_sut(rule, sut))

    def remarks(self, sut: str) -> tuple[str, ...]:
        """Return what a reader of any verdict about a SUT must know, and about the run."""
        counts = self.summary.data["counts"].get(sut)
        doubts = [line for line in self.store.run.warnings if line.startswith((MIXED, SHIFTED))]
        if self.store.run.truth is not None:
            doubts.append(f"label-free: compared with {self.store.run.truth.name}, not with annotations")
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
        rows = self._rows(rule.measure, sut)
        if rule.relation is not None:
            rows = [row for row in rows if row["relation"] == rule.relation]
            if not rows:
                yield RunFigure(
                    self._of(sut, None, rule.setting), None, doubt=self._no_relation(rule.relation)
                )
                return
        if rows and rule.setting is not None:
            settings = self._settings(rule)
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

    def _settings(self, rule: Rule) -> list[str]:
        """Return the settings that a rule covers; for ADR and plain metrics Any means each of them."""
        groups = {ANY_MILD: ("baseline", "mild"), ANY: ("baseline", "mild", "severe")}.get(rule.setting or "")
        if rule.measure in BY_SETTING and groups is not None:
            return [name for name, group in self.store.groups.items() if group in groups]
        return [self._setting(rule.setting or BASELINE)]

    def _no_worst_case(self, setting: str | None) -> str | None:
        """Return why there is no worst case to speak of: of no mutation it would be the baseline."""
        groups = {ANY_MILD: {"mild"}, ANY: {"mild", "severe"}}.get(setting or "")
        if groups is None or groups & set(self.store.groups.values()):
            return None
        kind = "mild mutation" if setting == ANY_MILD else "mutation"
        return f"insufficient: no {kind} ran, so there is no worst case"

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


def _column(measure: str) -> str:
    """Return what a measure is called in the table that has it."""
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


RULES = "rules"
"""The name under which a run keeps the verdicts on its rules."""
BOUNDS = {"lower": "the lower bound of ", "upper": "the upper bound of ", "point": ""}


def check_run(run: Path | Store, rules: Path, *, registry: Registry | None = None) -> list[Verdict]:
    """Hold a finished run to a file of rules; a rule has a verdict for each SUT and level it covers.

    Figures and verdicts are computed from the detections of the run, whatever its results say. `registry`
    holds the levels of plug-ins that may be run; a rule about any other is INCONCLUSIVE.
    """
    return [verdict for checked in check_rules(run, rules, registry=registry) for verdict in checked.verdicts]


@dataclass(frozen=True)
class CheckedRule:
    """The verdicts of a rule on one SUT at one level: one, or one for each mutation that it covers."""

    verdicts: tuple[Verdict, ...]

    @property
    def folded(self) -> Verdict:
        """The verdict that decides: the worst outcome, and of these the one furthest from the limit."""
        worst = min(self.verdicts, key=lambda verdict: (WORST_FIRST.index(verdict.outcome), _room(verdict)))
        if len(self.verdicts) == 1:
            return worst
        count = Counter(verdict.outcome for verdict in self.verdicts)
        every = ", ".join(f"{count[outcome]} {outcome}" for outcome in WORST_FIRST if count[outcome])
        reason = f"the worst of {len(self.verdicts)} ({every})"
        return replace(worst, reason=f"{worst.reason}; {reason}" if worst.reason else reason)


def check_rules(run: Path | Store, rules: Path, *, registry: Registry | None = None) -> list[CheckedRule]:
    """Hold a finished run to a file of rules, as `check_run` does; what decides together stands together."""
    store = run if isinstance(run, Store) else finished(run)
    figures = RunFigures(store, registry)
    checked: list[CheckedRule] = []
    for rule in read_rules(rules, levels=store.run.levels):
        by_subject: dict[str, list[Verdict]] = {}
        many = rule.measure in BY_SETTING and rule.setting in (ANY, ANY_MILD)
        for number, (of, verdict) in enumerate(_verdicts(figures, rule)):
            subject = _subject(of) if many else str(number)
            by_subject.setdefault(subject, []).append(verdict)
        checked += [CheckedRule(tuple(verdicts)) for verdicts in by_subject.values()]
    return checked


def under_words(setting: str) -> str:
    """Return the end of what a figure is of: under which mutation, in which worst case, or on clean images.

    >>> under_words("clean"), under_words("Any"), under_words("haze(visibility_m=98)")
    (' on clean images', ' in the worst case of all mutations', ' under haze(visibility_m=98)')
    """
    if setting in OVER_ALL:
        return f" in {OVER_ALL[setting]}"
    return ON_CLEAN if setting in (BASELINE, CLEAN, BASELINE_ID) else f" under {setting}"


def rules_of(verdicts: Sequence[Verdict]) -> list[tuple[str, CheckedRule]]:
    """Return verdicts as rules to be read once: those of one named rule under many mutations together.

    What stands before each is its name without the mutation.
    """
    found: dict[tuple[str, float | None, str], list[Verdict]] = {}
    for verdict in verdicts:
        subject = "" if verdict.name == verdict.requirement else _subject(verdict.name)
        name = subject or verdict.name
        found.setdefault((verdict.sut, verdict.required, name), []).append(verdict)
    return [
        (key[2] if len(mine) > 1 else mine[0].name, CheckedRule(tuple(mine))) for key, mine in found.items()
    ]


def _subject(of: str) -> str:
    """Return what a figure is of, whatever the mutation; empty where it is of none."""
    return of.removesuffix(ON_CLEAN) if of.endswith(ON_CLEAN) else of.rpartition(" under ")[0]


def _room(verdict: Verdict) -> float:
    """Return how far the cautious end of what was measured is within the limit; nothing measured: least."""
    if verdict.measured is None or verdict.required is None:
        return -math.inf
    interval = verdict.interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    if " is at least " in verdict.requirement:
        return (verdict.measured if low is None else low) - verdict.required
    return verdict.required - (verdict.measured if high is None else high)


def save_verdicts(store: Store, rules: Path, verdicts: Sequence[Verdict]) -> bool:
    """Keep the verdicts of `check_run` in the run, with the rules, so that they can be computed again.

    Return whether they are others than before.
    """
    saved = store.folder.verdicts / f"{RULES}.json"
    before = saved.read_bytes() if saved.is_file() else None
    written = to_json(verdicts).encode()
    store.write({f"verdicts/{RULES}.json": written, f"verdicts/{RULES}.yaml": rules.read_bytes()})
    return written != before


def saved_verdicts(
    store: Store, *, registry: Registry | None = None, summary: Summary | None = None
) -> dict[str, list[Verdict]]:
    """Return the verdicts that a run keeps, by the name of their file, each computed again.

    What is returned never comes from the file: who wrote another verdict into it is told so. A rule about a
    level of a plug-in that may not be run is INCONCLUSIVE, whatever was saved. `summary` is for those who
    computed the results from the detections a moment ago.
    """
    saved = read_verdicts(store)
    again: dict[str, list[Verdict]] = {}
    for name, claimed in saved.items():
        if name == RULES:
            again[name] = _recomputed_rules(store, claimed, RunFigures(store, registry, summary=summary))
        else:
            again[name] = recheck(store) if name == REQUIREMENTS else []
            _refuse_other(store, name, claimed, again[name])
    return again


def saved_rules(store: Store) -> tuple[Rule, ...]:
    """Return the rules whose verdicts a run keeps; none where it was not held to any."""
    path = store.folder.verdicts / f"{RULES}.yaml"
    return read_rules(path, levels=store.run.levels) if path.exists() else ()


def _recomputed_rules(store: Store, claimed: Sequence[Verdict], figures: RunFigures) -> list[Verdict]:
    path = store.folder.verdicts / f"{RULES}.yaml"
    if not path.exists():
        raise _not_of_the_run(store, RULES, f"no {path.name}, the rules that were checked")
    verdicts: list[Verdict] = []
    decided: list[Verdict] = []
    for rule in read_rules(path, levels=store.run.levels):
        mine = [verdict for _, verdict in _verdicts(figures, rule)]
        verdicts += mine
        decided += [] if figures.withheld(rule) else mine
    names = {verdict.name for verdict in decided}
    whole = len(decided) == len(verdicts)
    _refuse_other(store, RULES, [one for one in claimed if whole or one.name in names], decided)
    return verdicts


def _refuse_other(store: Store, name: str, claimed: Sequence[Verdict], true: Sequence[Verdict]) -> None:
    if len(claimed) != len(true):
        raise _not_of_the_run(store, name, f"{len(claimed)} verdicts where the run gives {len(true)}")
    for one, other in zip(claimed, true, strict=True):
        if not same(one, other):
            got = f"{one.outcome} for {one.name!r}, {numbers(one)}"
            raise _not_of_the_run(store, name, got, f"{other.outcome}, {numbers(other)}")


def _not_of_the_run(store: Store, name: str, got: str, wanted: str | None = None) -> StoreError:
    return StoreError(
        "the saved verdicts are not what the run gives",
        where=str(store.folder.verdicts / f"{name}.json"),
        got=got,
        wanted=wanted,
        fix=f"Have them made again: {made_by(store.folder, f'verdicts/{name}.json')}.",
    )


def _verdicts(run: RunFigures, rule: Rule) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of a rule, each with what it is of."""
    if rule.measure == REQUIREMENTS:
        for verdict in _requirements(run.store, rule):
            yield "", replace(verdict, remarks=run.remarks(verdict.sut))
        return
    if rule.measure == LIMIT:
        for verdict in limit_verdicts(run.store, rule, run.limits, run.registry):
            yield "", replace(verdict, remarks=run.remarks(verdict.sut))
        return
    figures = list(dict.fromkeys(run.figures(rule)))
    for figure in figures:
        subject = f"{rule.words} of {figure.of}" if figure.of else rule.words
        limit = f"at least {rule.at_least:g}" if rule.at_least is not None else f"at most {rule.at_most:g}"
        words = f"{BOUNDS[rule.judged_by]}{subject} is {limit}"
        name = words
        if rule.name is not None:
            name = rule.name if len(figures) == 1 else f"{rule.name}: {figure.of}"
        outcome = outcome_of(rule, figure)
        about = figure.sut, run.remarks(figure.sut)
        yield figure.of, Verdict(name, words, rule.limit, figure.value, figure.interval, *outcome, *about)


def outcome_of(rule: Rule, figure: RunFigure) -> tuple[Outcome, str]:
    """Decide by the cautious end of the interval, or by the figure itself; doubt makes it INCONCLUSIVE."""
    if figure.doubt or figure.value is None or rule.limit is None:
        return Outcome.INCONCLUSIVE, figure.doubt
    if rule.judged_by == "point":
        return _outcome_at(rule, figure.value), figure.note if rule.measure in RATES else ""
    if figure.interval is None or figure.interval.low is None or figure.interval.high is None:
        return Outcome.INCONCLUSIVE, f"no interval: {figure.note}"
    at_ends = {_outcome_at(rule, figure.interval.low), _outcome_at(rule, figure.interval.high)}
    if len(at_ends) == 1:
        return at_ends.pop(), figure.note
    more = f"; {figure.note}" if figure.note else ""
    return Outcome.INCONCLUSIVE, f"the limit lies within the interval{more}"


def _outcome_at(rule: Rule, value: float) -> Outcome:
    within_limit = value >= rule.at_least if rule.at_least is not None else value <= (rule.at_most or 0.0)
    return Outcome.PASS if within_limit else Outcome.FAIL


def _requirements(store: Store, rule: Rule) -> Sequence[Verdict]:
    """Evaluate the requirements that the run was made for again; no requirement is no evidence."""
    verdicts = recheck(store)
    if verdicts:
        return verdicts
    why = "the run is not of a requirements check; run adverse requirements check first"
    words = "every requirement passes"
    return [Verdict(rule.name or REQUIREMENTS, words, None, None, None, Outcome.INCONCLUSIVE, why)]

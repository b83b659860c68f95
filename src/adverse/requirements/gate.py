"""From rules and a run to verdicts: PASS, FAIL, or INCONCLUSIVE where the run cannot say.

The figures of a run that rules ask for, each with its interval or why there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from adverse.analysis.results import Summary, run_results
from adverse.analysis.score import ANY, ANY_MILD
from adverse.benchmarks.table import BenchTable, bench_table
from adverse.curves.interval import Interval
from adverse.errors import AdverseError, suggestion
from adverse.plugins import Registry
from adverse.requirements.results import rejudged
from adverse.requirements.rules import COUNTS, PERCENT, RATES, VERDICTS, Rule, read_rules
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.store.finished import finished
from adverse.store.read import Store

BASELINE = "baseline"
TABLES = {"mean_area": "means", "mean_robustness": "means", "expected_area": "expected", "adr": "adr"}
"""Where in the summary a measure is, if not among its rows."""
TOO_FEW = "more frames could not be used than quarantine_budget allows"
PARTS = {"P": "clean", "mPC": "corrupted", "rPC": "relative"}


@dataclass(frozen=True)
class Figure:
    """A measured number and its interval; `doubt` says why it must not decide anything, empty if it may."""

    of: str
    value: float | None
    interval: Interval | None = None
    doubt: str = ""
    note: str = ""


class Measured:
    """A finished run, from whose detections figures are worked out: what is written down is not trusted."""

    def __init__(self, store: Store, registry: Registry | None = None) -> None:
        self.store = store
        self.registry = registry
        self.benchmark = cache(self._benchmark)

    @cached_property
    def summary(self) -> Summary:
        """The results, worked out when a rule first asks for them."""
        return run_results(self.store, registry=self.registry).summary

    def figures(self, rule: Rule) -> Iterator[Figure]:
        """Yield what a rule asks about: one figure for each SUT and level it covers, none left out."""
        for sut in rule.sut or self.store.suts:
            if sut not in self.store.suts:
                why = f"the run has no such SUT. {suggestion(sut, self.store.suts)}"
                yield Figure(sut, None, doubt=why)
            elif rule.measure in (*COUNTS, *RATES):
                yield self._count(rule, sut)
            elif sut in self.summary.failed_everywhere:
                yield Figure(
                    sut, None, doubt=f"it failed on every image: {self.summary.failed_everywhere[sut]}"
                )
            elif rule.measure in PERCENT:
                yield self._benchmarked(rule, sut)
            elif self.summary.data["task"] != "detection":
                yield self._score(rule, sut)
            else:
                yield from self._levels(rule, sut)

    def _levels(self, rule: Rule, sut: str) -> Iterator[Figure]:
        rows = self._rows(rule.measure, sut)
        if rows and rule.setting is not None:
            setting = self._setting(rule.setting)
            rows = [row for row in rows if row["setting"] == setting]
            if not rows:
                of = self._of(sut, rule.level, rule.setting)
                yield Figure(of, None, doubt=self._no_setting(rule.setting))
                return
        if rule.level is not None:
            rows = [row for row in rows if rule.level in (row["level"], row["level"].split("/")[0])]
        if not rows:
            why = f"the run did not evaluate {'level ' + rule.level if rule.level else rule.words}"
            yield Figure(self._of(sut, rule.level, rule.setting), None, doubt=why)
        for row in rows:
            yield _figure(row, _column(rule.measure), self._of(sut, row.get("level"), row.get("setting")))

    def _rows(self, measure: str, sut: str) -> list[Mapping[str, Any]]:
        rows = self.summary.data.get(TABLES.get(measure, "rows"), ())
        known = _column(measure)
        return [row for row in rows if row["sut"] == sut and known in row]

    def _score(self, rule: Rule, sut: str) -> Figure:
        """Return a score of a segmenter or classifier."""
        of = self._of(sut, None, rule.setting)
        rows = [row for row in self.summary.rows if row["sut"] == sut]
        if rule.setting is None or rule.level is not None:
            return Figure(of, None, doubt=f"the run is one of {self.store.task}: there is no {rule.measure}")
        setting = self._setting(rule.setting)
        row = next((row for row in rows if row["setting"] == setting), None)
        if row is None:
            return Figure(of, None, doubt=self._no_setting(rule.setting))
        flat = {**row, **row["scores"]}
        if rule.measure not in flat:
            return Figure(of, None, doubt=f"the run is one of {self.store.task}: there is no {rule.words}")
        return _figure(flat, rule.measure, of)

    def _count(self, rule: Rule, sut: str) -> Figure:
        counts = self.summary.data["counts"][sut]
        if rule.measure == "faults":
            retried = f"{counts['retried']} of {counts['attempts']} attempts failed and were retried"
            note = f"flaky: {retried}; a rule of fault_rate counts them" if counts["retried"] else ""
            return Figure(sut, float(counts["fault"]), note=note)
        if rule.measure == "fault_rate":
            if not counts["attempts"]:
                return Figure(sut, None, doubt="it was asked nothing")
            return Figure(sut, counts["failed_attempts"] / counts["attempts"])
        refused = [row for row in self.summary.data["troubles"] if row["status"] == "quarantined"]
        return Figure("", float(len({row["frame"] for row in refused})))

    def _benchmarked(self, rule: Rule, sut: str) -> Figure:
        try:
            table = self.benchmark(rule.metric)
        except AdverseError as error:
            return Figure(sut, None, doubt=error.what)
        row = next(row for row in table.rows if row.sut == sut)
        of = f"{sut} by {table.metric.short}"
        value = getattr(row.whole, PARTS[rule.measure])
        found: Interval | None = getattr(row.intervals, PARTS[rule.measure]) if row.intervals else None
        if value is None:
            return Figure(of, None, doubt="P is 0, so nothing can be a share of it")
        doubt = "" if table.status == "ok" else f"{table.status}: {TOO_FEW}"
        if found is None:
            return Figure(of, 100 * value, None, doubt, "this metric has no interval")
        return Figure(of, 100 * value, found.scaled(100), doubt, found.why)

    def _benchmark(self, metric: str | None) -> BenchTable:
        return bench_table(self.store, metric=metric)

    def _setting(self, setting: str) -> str:
        return self.store.run.baseline.id if setting == BASELINE else setting

    def _no_setting(self, setting: str) -> str:
        close = suggestion(setting, [BASELINE, ANY_MILD, ANY, *self.store.groups]).partition(" Known")[0]
        return "the run has no such mutation" + (f". {close}" if close.startswith("Did") else "")

    @staticmethod
    def _of(sut: str, level: str | None, setting: str | None) -> str:
        return sut + (f" at {level}" if level else "") + (f" under {setting}" if setting else "")


def _column(measure: str) -> str:
    """Return what a measure is called in the table that has it."""
    return measure.removeprefix("mean_").removeprefix("expected_") if measure in TABLES else measure


def _figure(row: Mapping[str, Any], name: str, of: str) -> Figure:
    """Return a figure from a row of the results, and why it may not decide."""
    plain = row.get(f"{name}_interval")
    interval = None if plain is None else Interval.read(row[name], plain)
    if row[name] is None:
        return Figure(of, None, interval, doubt="insufficient: the data cannot answer this")
    doubt = "" if row["status"] == "ok" else f"{row['status']}: {TOO_FEW}"
    if interval is None:
        return Figure(of, row[name], None, doubt, "the run has no intervals")
    few = f"rests on {interval.why}" if interval.status == "few logs" else ""
    return Figure(of, row[name], interval, doubt, interval.why if interval.status == "refused" else few)


OWN = "check"
"""The name under which a run keeps the verdicts of this gate."""
BOUNDS = {"lower": "the lower bound of ", "upper": "the upper bound of ", "point": ""}


def check(run: Path | Store, rules: Path, *, registry: Registry | None = None) -> list[Verdict]:
    """Hold a finished run to a file of rules; a rule has a verdict for each SUT and level it covers.

    Figures and verdicts are computed from the detections of the run, whatever its results say. `registry`
    holds the levels of plug-ins that may be run.
    """
    store = run if isinstance(run, Store) else finished(run)
    measured = Measured(store, registry)
    levels = store.run.levels
    return [verdict for rule in read_rules(rules, levels=levels) for verdict in _verdicts(measured, rule)]


def _verdicts(measured: Measured, rule: Rule) -> Iterator[Verdict]:
    if rule.measure == VERDICTS:
        yield from _others(measured, rule)
        return
    figures = list(dict.fromkeys(measured.figures(rule)))
    for figure in figures:
        what = f"{rule.words} of {figure.of}" if figure.of else rule.words
        limit = f"at least {rule.at_least:g}" if rule.at_least is not None else f"at most {rule.at_most:g}"
        words = f"{BOUNDS[rule.judged_by]}{what} is {limit}"
        name = words
        if rule.name is not None:
            name = rule.name if len(figures) == 1 else f"{rule.name}: {figure.of}"
        yield Verdict(name, words, rule.limit, figure.value, figure.interval, *judge(rule, figure))


def judge(rule: Rule, figure: Figure) -> tuple[Outcome, str]:
    """Decide by the cautious end of the interval, or by the figure itself; what is in doubt is open."""
    if figure.doubt or figure.value is None or rule.limit is None:
        return Outcome.INCONCLUSIVE, figure.doubt
    if rule.judged_by == "point":
        return _kept(rule, figure.value), figure.note if rule.measure in COUNTS else ""
    if figure.interval is None or figure.interval.low is None or figure.interval.high is None:
        return Outcome.INCONCLUSIVE, f"no interval: {figure.note}"
    both = {_kept(rule, figure.interval.low), _kept(rule, figure.interval.high)}
    if len(both) == 1:
        return both.pop(), figure.note
    more = f"; {figure.note}" if figure.note else ""
    return Outcome.INCONCLUSIVE, f"the limit lies within the interval{more}"


def _kept(rule: Rule, value: float) -> Outcome:
    kept = value >= rule.at_least if rule.at_least is not None else value <= (rule.at_most or 0.0)
    return Outcome.PASS if kept else Outcome.FAIL


def _others(measured: Measured, rule: Rule) -> Sequence[Verdict]:
    """Judge the requirements that the run was made for again; no requirement is no evidence."""
    found = rejudged(measured.store)
    if found:
        return found
    why = "the run is not that of a requirements check; run adverse requirements check first"
    words = "every requirement passes"
    return [Verdict(rule.name or VERDICTS, words, None, None, None, Outcome.INCONCLUSIVE, why)]

"""Hold a run to rules: PASS, FAIL or INCONCLUSIVE for each figure that a rule is about."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adverse.analysis.results import Summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.stopped import opened
from adverse.errors import StoreError
from adverse.plugins import Registry
from adverse.requirements.limit_verdicts import limit_verdicts, open_limits
from adverse.requirements.results import recheck
from adverse.requirements.rules import (
    BY_SETTING,
    LIMIT,
    RATES,
    REQUIREMENTS,
    Rule,
    read_rules,
)
from adverse.requirements.run_figures import (
    ON_CLEAN,
    RunFigure,
    RunFigures,
)
from adverse.requirements.stopped import StoppedFigures, figures_of, stopped_verdicts
from adverse.requirements.verdicts import WORST_FIRST, Outcome, Verdict, numbers, read_verdicts, same, to_json
from adverse.store.read import Store
from adverse.store.seals import made_by

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
    def decides(self) -> Verdict:
        """The verdict of the worst outcome, and of these the one furthest from the limit."""
        return min(self.verdicts, key=lambda verdict: (WORST_FIRST.index(verdict.outcome), _room(verdict)))

    @property
    def folded(self) -> Verdict:
        """The verdict that decides, which also says of how many it is the worst."""
        worst = self.decides
        if len(self.verdicts) == 1:
            return worst
        count = Counter(verdict.outcome for verdict in self.verdicts)
        every = ", ".join(f"{count[outcome]} {outcome}" for outcome in WORST_FIRST if count[outcome])
        reason = f"the worst of {len(self.verdicts)} ({every})"
        return replace(worst, reason=f"{worst.reason}; {reason}" if worst.reason else reason)


def check_rules(run: Path | Store, rules: Path, *, registry: Registry | None = None) -> list[CheckedRule]:
    """Hold a finished run to a file of rules, as `check_run` does; what decides together stands together."""
    store = run if isinstance(run, Store) else opened(run, selected=("margins",))
    figures = figures_of(store, registry)
    checked: list[CheckedRule] = []
    for rule in read_rules(rules, levels=store.run.levels, settings=store.groups):
        by_subject: dict[str, list[Verdict]] = {}
        many = rule.measure in BY_SETTING and rule.setting in (ANY, ANY_MILD)
        for number, (of, verdict) in enumerate(rule_verdicts(figures, rule)):
            subject = _subject(of) if many else str(number)
            by_subject.setdefault(subject, []).append(verdict)
        checked += [CheckedRule(tuple(verdicts)) for verdicts in by_subject.values()]
    return checked


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
            again[name] = _recomputed_rules(store, claimed, figures_of(store, registry, summary))
        else:
            again[name] = recheck(store) if name == REQUIREMENTS else []
            _refuse_other(store, name, claimed, again[name])
    return again


def saved_rules(store: Store) -> tuple[Rule, ...]:
    """Return the rules whose verdicts a run keeps; none where it was not held to any."""
    path = store.folder.verdicts / f"{RULES}.yaml"
    return read_rules(path, levels=store.run.levels, settings=store.groups) if path.exists() else ()


def _recomputed_rules(store: Store, claimed: Sequence[Verdict], figures: RunFigures) -> list[Verdict]:
    path = store.folder.verdicts / f"{RULES}.yaml"
    if not path.exists():
        raise _not_of_the_run(store, RULES, f"no {path.name}, the rules that were checked")
    verdicts: list[Verdict] = []
    decided: list[Verdict] = []
    for rule in read_rules(path, levels=store.run.levels, settings=store.groups):
        mine = [verdict for _, verdict in rule_verdicts(figures, rule)]
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


def rule_verdicts(run: RunFigures, rule: Rule) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of a rule, each with what it is of."""
    if isinstance(run, StoppedFigures):
        yield from stopped_verdicts(run, rule, rule_verdicts)
        return
    if rule.measure == REQUIREMENTS:
        for verdict in _requirements(run.store, rule):
            yield "", replace(verdict, remarks=run.remarks(verdict.sut))
        return
    if rule.measure == LIMIT:
        why = run.no_strength(rule)
        found = (
            limit_verdicts(run.store, rule, run.limits, run.registry)
            if why is None
            else open_limits(run.store, rule, why)
        )
        for verdict in found:
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

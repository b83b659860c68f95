"""Hold a run that stopped early to rules: those of its plan as they were settled, others at its last look.

A rule of the plan has the verdict of the look that settled it. Any other is judged with the logs and the
confidence of the last look that all it is about has; PASS takes as many logs as it does while running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adverse.analysis.results import Summary
from adverse.analysis.stopped import looks_of
from adverse.plugins import Registry
from adverse.requirements.rules import Rule
from adverse.requirements.run_figures import RunFigures
from adverse.requirements.until import LEAST_LOGS, MEASURES, UntilPlan, covered_settings, each_setting, settle
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.store.read import Store
from adverse.text import BASELINE

LATER = "cannot be told of a run that stopped early; go on to the whole study: adverse run STUDY --out RUN"
NOT_RUN = "not run under all that the rule is about: no rule of the plan asked for it"
FEW = f"a PASS takes {LEAST_LOGS} logs of either kind"
VerdictsOf = Callable[[RunFigures, Rule], Iterator[tuple[str, Verdict]]]


class StoppedFigures(RunFigures):
    """The figures of a run that stopped early, each look on its own."""

    def __init__(
        self, store: Store, registry: Registry | None = None, *, summary: Summary | None = None
    ) -> None:
        super().__init__(store, registry, summary=summary)
        self.looks = looks_of(store)
        self._at: dict[tuple[int, bool], RunFigures] = {}

    def at(self, look: int, *, people: bool = False) -> RunFigures:
        """Return the figures of the run as it was at a look, from 0; see Looks.at."""
        key = (look, people)
        if key not in self._at:
            self._at[key] = RunFigures(self.looks.at(look, people=people), self.registry)
        return self._at[key]


def figures_of(store: Store, registry: Registry | None, summary: Summary | None = None) -> RunFigures:
    """Return the figures of a run, whether it stopped early or not."""
    kind = StoppedFigures if store.several_looks else RunFigures
    return kind(store, registry, summary=summary)


def stopped_verdicts(
    run: StoppedFigures, rule: Rule, verdicts_of: VerdictsOf
) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of a rule, each with what it is of; `verdicts_of` gives those of a whole run."""
    looks, whole = run.looks, run.store.whole_run
    told = rule.measure in MEASURES and rule.judged_by != "point"
    plan = _plan(run)
    planned = _planned(rule, plan.facts)
    people = planned and plan.people_only(rule)
    for sut in rule.sut or run.store.suts:
        for setting in each_setting(rule, whole.settings) if told else [rule.setting]:
            own = rule.model_copy(update={"sut": (sut,), "setting": setting})
            settings = covered_settings(own, whole.settings, list(whole.conditions))
            look = looks.of(sut, {BASELINE, *settings}, people=people)
            if not told or look is None:
                first = min(looks.reached.values())
                yield from _undecided(verdicts_of(run.at(first), own), NOT_RUN if told else LATER)
            elif planned:
                yield from _replayed(run, plan, own, range(look + 1), verdicts_of)
            else:
                yield from _at_last(run, own, look, verdicts_of)


def _plan(run: StoppedFigures) -> UntilPlan:
    looks, selection = run.looks, run.store.whole_run.selection
    return UntilPlan(looks.stages, looks.counts, looks.spending, (), selection.facts if selection else {})


def _planned(rule: Rule, facts: Mapping[str, Any]) -> bool:
    """Tell whether a rule is one of the plan, whatever it is called."""
    asked = rule.model_dump(mode="json", exclude_none=True, exclude={"name"})
    return any({key: value for key, value in one.items() if key != "name"} == asked for one in facts["rules"])


def _undecided(found: Iterable[tuple[str, Verdict]], why: str) -> Iterator[tuple[str, Verdict]]:
    for of, verdict in found:
        yield of, replace(verdict, outcome=Outcome.INCONCLUSIVE, measured=None, interval=None, reason=why)


def _replayed(
    run: StoppedFigures, plan: UntilPlan, rule: Rule, looks: Sequence[int], verdicts_of: VerdictsOf
) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of a rule of the plan, by the look that settled each."""
    settled: dict[str, tuple[str, Verdict]] = {}
    for look in looks:
        found = {
            verdict.name: (of, verdict)
            for of, verdict in verdicts_of(run.at(look, people=plan.people_only(rule)), rule)
        }
        clear = settle(plan, look, (0, rule), [verdict for _, verdict in found.values()], {})
        for name, one in clear.items():
            settled.setdefault(name, (found[name][0], _said(one.verdict, look, len(plan.counts), one.logs)))
        if found.keys() <= settled.keys():
            break
    yield from settled.values()


def _at_last(
    run: StoppedFigures, rule: Rule, look: int, verdicts_of: VerdictsOf
) -> Iterator[tuple[str, Verdict]]:
    counts = run.looks.counts
    for of, verdict in verdicts_of(run.at(look), rule):
        said = _said(verdict, look, len(counts), counts[look])
        if verdict.outcome is Outcome.PASS and min(counts[look]) < LEAST_LOGS:
            said = replace(said, outcome=Outcome.INCONCLUSIVE, reason=f"{said.reason}; {FEW}")
        yield of, said


def _said(verdict: Verdict, look: int, looks: int, logs: tuple[int, int]) -> Verdict:
    """Add to a verdict at which look it is, and on how many logs it rests."""
    positive, negative = logs
    words = f"look {look + 1} of {looks}, {positive} + {negative} logs, repeated interval"
    return replace(verdict, reason=f"{verdict.reason}; {words}" if verdict.reason else words)

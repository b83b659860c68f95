"""From rules and a run to verdicts: PASS, FAIL, or INCONCLUSIVE where the run cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from adverse.gate.figures import Figure, Measured
from adverse.gate.rules import COUNTS, VERDICTS, Rule, read_rules
from adverse.reliability.written import rejudged
from adverse.study.store.finished import finished
from adverse.study.store.read import Store
from adverse.verdicts import Outcome, Verdict

OWN = "check"
"""The name under which a run keeps the verdicts of this gate."""
BOUNDS = {"lower": "the lower bound of ", "upper": "the upper bound of ", "point": ""}


def check(run: Path | Store, rules: Path) -> list[Verdict]:
    """Hold a finished run to a file of rules; a rule has a verdict for each SUT and level it covers.

    Figures and verdicts are worked out from the detections of the run, whatever its results say.
    """
    told = read_rules(rules)
    measured = Measured(run if isinstance(run, Store) else finished(run))
    return [verdict for rule in told for verdict in _verdicts(measured, rule)]


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
        yield Verdict(name, words, rule.limit, figure.value, figure.ends, *judge(rule, figure))


def judge(rule: Rule, figure: Figure) -> tuple[Outcome, str]:
    """Decide by the cautious end of the interval, or by the figure itself; what is in doubt is open."""
    if figure.doubt or figure.value is None or rule.limit is None:
        return Outcome.INCONCLUSIVE, figure.doubt
    if rule.judged_by == "point":
        return _kept(rule, figure.value), figure.note if rule.measure in COUNTS else ""
    if figure.ends is None:
        return Outcome.INCONCLUSIVE, f"no interval: {figure.note}"
    low, high = figure.ends
    both = {_kept(rule, low), _kept(rule, high)}
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

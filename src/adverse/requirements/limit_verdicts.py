"""Verdicts on condition limits: a rule holds up to a setting at least, it does not, or nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adverse.curves.interval import Interval
from adverse.errors import suggestion
from adverse.mutations.settings import parse
from adverse.plugins import Registry, load
from adverse.requirements.conditions import is_strength
from adverse.requirements.limits import ConditionLimit, reached, rule_name
from adverse.requirements.rules import Rule
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.store.read import Store
from adverse.text import setting_text
from adverse.types import Setting

OUTCOMES = {True: Outcome.PASS, False: Outcome.FAIL, None: Outcome.INCONCLUSIVE}


def open_limits(store: Store, rule: Rule, why: str) -> Iterator[Verdict]:
    """Yield an INCONCLUSIVE verdict for each SUT, as nobody can say how strong the setting is."""
    for sut in rule.sut or store.suts:
        words = _words(rule, sut)
        yield Verdict(rule.name or words, words, None, None, None, Outcome.INCONCLUSIVE, why, sut)


def limit_verdicts(
    store: Store, rule: Rule, limits: Sequence[ConditionLimit], registry: Registry | None
) -> Iterator[Verdict]:
    """Yield one verdict for each SUT: the rule that is named holds up to the setting, for certain."""
    setting = parse(rule.setting or "", registry or load(), where="setting")
    mine = [one for one in limits if rule_name(one.rule) == rule.of and is_strength(one.condition, setting)]
    for sut in rule.sut or store.suts:
        words = _words(rule, sut)
        found = next((one for one in mine if one.sut == sut), None)
        if found is None:
            yield Verdict(
                rule.name or words, words, None, None, None, Outcome.INCONCLUSIVE, _why(rule, limits), sut
            )
        else:
            yield _verdict(rule, words, found, setting)


def _words(rule: Rule, sut: str) -> str:
    return f"{rule.of} of {sut} holds up to {setting_text(rule.setting or '', longest=None)}"


def _verdict(rule: Rule, words: str, found: ConditionLimit, setting: Setting) -> Verdict:
    """Return a verdict whose numbers are values of the option that makes the condition stronger."""
    condition, result = found.condition, found.result
    outcome = OUTCOMES[reached(found, setting)]
    wanted = float(setting.steps[0].options[condition.option])
    limit = None if not result.limit else condition.values[result.limit - 1]
    ends = [
        None if not step else condition.values[step - 1] for step in (result.certain_to, result.fails_from)
    ]
    interval = None
    if limit is not None and None not in ends:
        low, high = sorted(end for end in ends if end is not None)
        interval = Interval(limit, low, high, 0.95, "steps that were run", 0, "ok")
    certain = (
        "not certain anywhere"
        if result.certain_to is None
        else f"certain to {condition.words(result.certain_to)}"
    )
    fails = "" if result.fails_from is None else f", fails from {condition.words(result.fails_from)}"
    reason = f"limit {condition.words(result.limit)}; {certain}{fails}"
    name = rule.name or words
    return Verdict(name, words, wanted, limit, interval, outcome, reason, found.sut)


def _why(rule: Rule, limits: Sequence[ConditionLimit]) -> str:
    if not limits:
        return "the run is not of a search for limits; run adverse limits first"
    names = list(dict.fromkeys(rule_name(one.rule) for one in limits))
    if rule.of not in names:
        return f"no limit was searched for the rule {rule.of!r}. {suggestion(rule.of or '', names)}"
    return "no limit was searched for this mutation with these options"

"""Stop when it is clear: which logs are run when, how often rules are looked at, and what settles them.

Logs come in a seeded order, those with people and those without in equal parts of each kind. After each part
the rules are looked at, each with the confidence that its look may spend (`curves.group_sequential`). FAIL
settles at any look, PASS when there are enough logs of either kind. A SUT is shown a mutation as long as a
rule over both is open; once there are enough logs of either kind for a PASS, it is shown further ones without
people only while a rule is open that they can change. The whole plan stands in the manifest before anything
is run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from adverse.analysis.score import WORST
from adverse.analysis.stopped import logs_until, shows_all
from adverse.curves.group_sequential import Spending, boundaries, look_confidence
from adverse.curves.interval import Interval, korn_graubard
from adverse.errors import StudyError, suggestion
from adverse.requirements.rules import BY_SETTING, CLOSED_LOOP, PLAIN, Rule
from adverse.requirements.run_figures import under_words
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.seeds import generator
from adverse.text import BASELINE, CLEAN
from adverse.types import Dataset, Setting

LOOKS, MOST_LOOKS, LEAST_LOGS = 5, 16, 24
"""How often rules are looked at, at most how often, and how many logs of either kind a PASS takes."""
SHARES = (0.15, 0.3, 0.45, 0.625, 0.8, 1.0)
"""Shares of all logs after 0, 1 ... 5 of five looks. Before 30 % next to nothing may be spent; of 40 + 40
logs the third look has 25 of either kind, the fewest on which at most 20 % violations can pass."""
CERTAIN = "it would stay so whatever the logs that were not run show"
KEY = "order of logs"
_Log = TypeVar("_Log")
MEASURES = (
    *("robust_area", "area", "robustness", "mean_area", "mean_robustness", "expected_area", "adr"),
    *(name for name in PLAIN if not name.startswith("ap")),
    *CLOSED_LOOP,
)
"""What can be settled early: figures whose intervals are known at every confidence."""
PEOPLE_ONLY = ("recall", *CLOSED_LOOP)
"""What logs without people say nothing about, at a threshold that is the same at all looks."""


@dataclass(frozen=True)
class Question:
    """One rule about one SUT, under one mutation where it is about each of several: it is settled alone."""

    rule: Rule
    sut: str
    settings: frozenset[str]
    """Under which the SUT must be run to answer it, the clean images among them."""


@dataclass(frozen=True)
class UntilPlan:
    """What is run when, and how it is looked at; nothing of it may change once it began."""

    stages: tuple[tuple[str, ...], ...]
    """The logs that each look adds."""
    counts: tuple[tuple[int, int], ...]
    """How many logs with people, and without, there are at each look."""
    spending: Spending
    questions: tuple[Question, ...]
    facts: Mapping[str, Any]
    """As the manifest holds it."""

    @cached_property
    def boundaries(self) -> list[float]:
        """The standard normal quantile of each look."""
        whole = sum(self.counts[-1])
        return boundaries([sum(count) / whole for count in self.counts], kind=self.spending)

    def confidence(self, look: int) -> float:
        """Return the confidence of the intervals of a look, counted from 0."""
        return look_confidence(self.boundaries[look])

    def may_pass(self, look: int) -> bool:
        """Tell whether there are enough logs of either kind for a PASS."""
        return min(self.counts[look]) >= LEAST_LOGS

    def people_only(self, rule: Rule) -> bool:
        """Tell whether logs without people say nothing about a rule."""
        return rule.measure in self.facts.get("people_only", ())

    def logs(self, look: int, rule: Rule) -> list[str]:
        """Return the logs that a rule rests on at a look."""
        return logs_until(self.stages, self.counts, look, LEAST_LOGS if self.people_only(rule) else None)

    def log_counts(self, look: int, rule: Rule) -> tuple[int, int]:
        """Return how many logs with people, and without, a rule rests on at a look."""
        enough = LEAST_LOGS if self.people_only(rule) else None
        last = max(k for k in range(look + 1) if shows_all(self.counts, k, enough))
        return self.counts[look][0], self.counts[last][1]


@dataclass(frozen=True)
class LookVerdict:
    """A verdict, and at which look (from 1) it was settled; None: it was still open at the last one."""

    question: int
    verdict: Verdict
    look: int | None
    logs: tuple[int, int]
    """Logs with people and without that it rests on."""


def log_order(dataset: Dataset, targets: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Return the test logs with people and those without, each in an order drawn by the seed."""
    wanted = {number for number, name in enumerate(dataset.categories) if name in targets}
    kinds: tuple[list[str], list[str]] = ([], [])
    for log in dataset.logs:
        if log.split == "test":
            seen = any(wanted & set(frame.truth.labels.tolist()) for frame in log.frames)
            kinds[0 if seen else 1].append(log.id)
    for kind, logs in zip(("positive", "negative"), kinds, strict=True):
        logs.sort()
        order = generator(seed, KEY, kind).permutation(len(logs))
        logs[:] = [logs[number] for number in order.tolist()]
    return kinds


def staged(
    positive: Sequence[_Log], negative: Sequence[_Log], looks: int
) -> list[tuple[list[_Log], list[_Log]]]:
    """Return the logs that each look adds, with people and without, the same share of both.

    >>> [(len(p), len(n)) for p, n in staged(range(40), range(80), 5)]
    [(12, 24), (6, 12), (7, 14), (7, 14), (8, 16)]
    """
    shares = np.interp(np.arange(1, looks + 1) / looks, np.linspace(0, 1, len(SHARES)), SHARES)
    ends = [
        [0, *(math.ceil(round(len(logs) * share, 6)) for share in shares)] for logs in (positive, negative)
    ]
    return [
        (list(positive[ends[0][k] : ends[0][k + 1]]), list(negative[ends[1][k] : ends[1][k + 1]]))
        for k in range(looks)
    ]


def make_until_plan(
    rules: Sequence[Rule],
    dataset: Dataset,
    settings: Sequence[Setting],
    suts: Mapping[str, str],
    *,
    targets: Sequence[str],
    conditions: Iterable[str],
    seed: int,
    looks: int = LOOKS,
    spending: Spending = "obrien-fleming",
    where: str,
) -> UntilPlan:
    """Return the plan for rules on a study; `suts` are their fingerprints by name."""
    positive, negative = log_order(dataset, targets, seed)
    if min(len(positive), len(negative)) < LEAST_LOGS:
        raise StudyError(
            "there are too few logs to stop early",
            where="--until",
            got=f"{len(positive)} test logs with {' or '.join(targets)}, {len(negative)} without",
            wanted=f"at least {LEAST_LOGS} of either kind: a PASS on fewer was not found to be safe",
            fix="Run the whole study, without --until, and hold it to the rules with adverse check.",
        )
    if not 2 <= looks <= MOST_LOOKS:
        raise StudyError(
            "that many looks cannot be taken",
            where="--looks",
            got=str(looks),
            wanted=f"2 to {MOST_LOOKS}",
            fix="Take 5.",
        )
    stages = staged(positive, negative, looks)
    sums = ([sum(len(one[kind]) for one in stages[: k + 1]) for k in range(looks)] for kind in (0, 1))
    counts = tuple(zip(*sums, strict=True))
    questions = tuple(_questions(rules, settings, list(suts), list(conditions), where=where))
    facts: dict[str, Any] = {
        "rules": [rule.model_dump(mode="json", exclude_none=True) for rule in rules],
        "spending": spending,
        "looks": [list(count) for count in counts],
        "least_logs": LEAST_LOGS,
        "logs": [[*with_people, *without] for with_people, without in stages],
        "fixed_thresholds": any(log.split != "test" for log in dataset.logs),
        "settings": [setting.id for setting in settings],
        "suts": dict(suts),
    }
    facts["people_only"] = list(PEOPLE_ONLY) if facts["fixed_thresholds"] else []
    return UntilPlan(tuple(tuple(one) for one in facts["logs"]), counts, spending, questions, facts)


def _questions(
    rules: Sequence[Rule],
    settings: Sequence[Setting],
    suts: Sequence[str],
    conditions: Sequence[str],
    *,
    where: str,
) -> Iterable[Question]:
    for number, rule in enumerate(rules):
        at = f"{where}, rule {number + 1}"
        _refuse_unsettled(rule, suts, at)
        for sut in rule.sut or suts:
            for setting in each_setting(rule, settings):
                own = rule.model_copy(update={"sut": (sut,), "setting": setting})
                if rule.name is not None and setting != rule.setting:
                    own = own.model_copy(update={"name": f"{rule.name}: {sut}{under_words(setting or '')}"})
                covered = _covered(own, settings, conditions, at)
                yield Question(own, sut, frozenset({BASELINE, *covered}))


def each_setting(rule: Rule, settings: Sequence[Setting]) -> list[str | None]:
    """Return the settings that a rule is about one by one."""
    groups = WORST.get(rule.setting or "")
    if groups is None or rule.measure not in BY_SETTING:
        return [rule.setting]
    return [setting.id for setting in settings if setting.group in groups]


def _covered(rule: Rule, settings: Sequence[Setting], conditions: Sequence[str], where: str) -> list[str]:
    """Return the settings that decide a rule, or raise where the study lacks one."""
    ids = [setting.id for setting in settings]
    named = covered_settings(rule, settings, conditions)
    for name in named:
        if name not in ids:
            raise StudyError(
                f"the study has no mutation {name}", where=where, fix=suggestion(name, [CLEAN, *ids[1:]])
            )
    return named


def covered_settings(rule: Rule, settings: Sequence[Setting], conditions: Sequence[str]) -> list[str]:
    """Return the settings that decide a rule, be they of the study or not."""
    ids = [setting.id for setting in settings]
    groups = WORST.get(rule.setting or "")
    if groups is not None:
        return [setting.id for setting in settings if setting.group in groups]
    if rule.conditions is not None:
        named = [
            BASELINE if name in (CLEAN, "baseline") else name for name, p in rule.conditions.items() if p
        ]
    elif rule.setting is not None:
        named = [BASELINE if rule.setting in (CLEAN, "baseline") else rule.setting]
    else:
        named = list(conditions) if rule.measure == "expected_area" else ids
    return named


def _refuse_unsettled(rule: Rule, suts: Sequence[str], where: str) -> None:
    if rule.measure not in MEASURES:
        raise StudyError(
            f"{rule.measure} cannot be settled early",
            where=where,
            wanted=f"one of {', '.join(MEASURES)}",
            fix="Take the rule out; hold the finished run to it with adverse check.",
        )
    if rule.judged_by == "point":
        raise StudyError(
            "a rule that goes by the figure itself cannot be settled early: it allows for no error",
            where=where,
            got="bound: point",
            fix="Leave bound: out.",
        )
    for sut in rule.sut:
        if sut not in suts:
            raise StudyError(f"the study has no SUT {sut!r}", where=where, fix=suggestion(sut, suts))


def settle(
    plan: UntilPlan,
    look: int,
    question: tuple[int, Rule],
    verdicts: Sequence[Verdict],
    settled: Mapping[str, LookVerdict],
) -> dict[str, LookVerdict]:
    """Return what a look (from 0) settles of a question, by the name of each figure; what was settled stays.

    A question is given by its number and rule. At the last look everything is over: what is not settled then
    is INCONCLUSIVE, and so it is before where no later look could settle it.
    """
    last = look == len(plan.counts) - 1
    number, rule = question
    found, logs = {}, plan.log_counts(look, rule)
    for verdict in verdicts:
        if verdict.name in settled:
            continue
        clear = verdict.outcome is Outcome.FAIL or (verdict.outcome is Outcome.PASS and plan.may_pass(look))
        if clear:
            found[verdict.name] = LookVerdict(number, verdict, look + 1, logs)
        elif last:
            undecided = replace(verdict, outcome=Outcome.INCONCLUSIVE)
            found[verdict.name] = LookVerdict(number, undecided, None, logs)
        elif verdict.outcome is Outcome.INCONCLUSIVE and stays_open(plan, look, rule, verdict.interval):
            undecided = replace(verdict, reason=f"{verdict.reason}; {CERTAIN}")
            found[verdict.name] = LookVerdict(number, undecided, look + 1, logs)
    return found


def stays_open(plan: UntilPlan, look: int, rule: Rule, interval: Interval | None) -> bool:
    """Tell whether no later look (from 0) can settle a rule, whatever the logs that follow show.

    That can be told of shares of logs: if all that follow end well, or all badly, and still the interval of
    no look lies on one side of the limit, nothing in between does. Thresholds must be the same at all looks.
    """
    if rule.measure not in CLOSED_LOOP or rule.conditions is not None:
        return False
    if interval is None or interval.value is None or not plan.facts["fixed_thresholds"]:
        return False
    hits = round(interval.value * interval.logs)
    for later in range(look + 1, len(plan.counts)):
        more = plan.counts[later][0] - plan.counts[look][0]
        for added in (0, more):
            share = np.zeros(interval.logs + more)
            share[: hits + added] = 1.0
            ends = korn_graubard(share, np.ones_like(share), confidence=plan.confidence(later))
            if ends.low is None or ends.high is None or not within(rule, ends.low, ends.high):
                return False
    return True


def within(rule: Rule, low: float, high: float) -> bool:
    """Tell whether the limit of a rule lies within an interval: one end keeps it, the other does not."""
    if rule.at_least is not None:
        return low < rule.at_least <= high
    return low <= (rule.at_most or 0.0) < high


def changed_facts(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say which parts of a plan are others than when it began."""
    return [name for name in now if before.get(name) != now[name]]

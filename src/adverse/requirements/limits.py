"""Condition limits: up to which strength of a condition each rule holds, by the figures of a run.

A study's `limits:` section names conditions, weakest first, and rules. Each probe of a search is a setting of
an ordinary run; what a search asks for next follows from what was measured before and from the study's seed
alone. So the limits of a finished run can be worked out again from it, by the gate too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adverse.curves.interval import Interval
from adverse.curves.limit_search import Evaluation, LimitSearch, SearchResult
from adverse.errors import StudyError, suggestion
from adverse.plugins import Registry
from adverse.requirements.conditions import STEPS, Condition, conditions_of
from adverse.requirements.rules import LIMIT, MARGIN, NEEDS, Rule
from adverse.store.read import Store
from adverse.study.spec import written_study
from adverse.text import BASELINE
from adverse.types import Setting

PAGE = "docs/operation.md"
MEASURES = tuple(name for name, needs in NEEDS.items() if "setting" in needs and name not in (LIMIT, MARGIN))
"""What a rule of a limit may measure: whatever is of one setting."""


SHARES = ("robustness", "share")
"""What is left of a clean figure."""


class LimitsSection(BaseModel):
    """The `limits:` section of a study."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rules: Annotated[list[dict[str, Any]], Field(min_length=1)]
    conditions: list[Any] = []
    together: list[Any] = []
    steps: Annotated[int, Field(ge=2, le=100)] = STEPS


class Figure(Protocol):
    """A measured number as rules see it; `doubt` says why it must not decide anything."""

    @property
    def value(self) -> float | None: ...  # noqa: D102
    @property
    def interval(self) -> Interval | None: ...  # noqa: D102
    @property
    def doubt(self) -> str: ...  # noqa: D102


Measure = Callable[[Rule], Iterable[Figure]]


@dataclass(frozen=True)
class ConditionLimit:
    """The limit of one rule under one condition, of one SUT."""

    sut: str
    condition: Condition
    rule: Rule
    result: SearchResult
    values: Mapping[int, float | None]
    """What was measured at each step that was evaluated."""

    def plain(self) -> dict[str, Any]:
        """Return it as CSV and JSON hold it."""
        found, condition = self.result, self.condition
        return {
            "sut": self.sut,
            "condition": condition.name,
            "option": condition.option,
            "rule": rule_name(self.rule),
            "limit": _value(condition, found.limit),
            "limit_step": found.limit,
            "certain_to": _value(condition, found.certain_to),
            "certain_to_step": found.certain_to,
            "fails_from": _value(condition, found.fails_from),
            "fails_from_step": found.fails_from,
            "steps": len(condition.values),
            "evaluations": found.evaluations,
            "reversals": len(found.reversals),
            "swept": found.swept,
        }


def read_limits(data: Mapping[str, Any] | None, *, where: str) -> LimitsSection:
    """Check the limits: section of a study."""
    if data is None:
        raise StudyError(
            "the study has no limits: section",
            where=where,
            wanted="rules, and conditions if not all mutations of the study",
            fix=f"Add limits: {{rules: [{{measure: recall, at_least: 0.8}}]}}; see {PAGE}.",
        )
    try:
        return LimitsSection.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise StudyError(
            "the limits: section cannot be read",
            where=f"{where}.{place}",
            got=f"{first['input']!r}"[:200],
            wanted=f"{first['msg']}; keys are {', '.join(LimitsSection.model_fields)}",
            fix=f"Correct it; {PAGE} shows one.",
        ) from None


def limit_rules(section: LimitsSection, *, where: str) -> list[Rule]:
    """Return the rules of a section, each of a setting that is left open."""
    rules = []
    for number, entry in enumerate(section.rules):
        at = f"{where}.rules.{number}"
        measure = entry.get("measure")
        if measure not in MEASURES or "setting" in entry or "conditions" in entry:
            raise StudyError(
                "this is not a rule that a condition can be searched by",
                where=at,
                got=str(entry)[:200],
                wanted="a measure that depends on the mutation, without setting: and conditions:",
                fix=suggestion(str(measure), MEASURES) if measure not in MEASURES else "Take it out.",
            )
        try:
            rule = Rule.model_validate({**entry, "setting": BASELINE})
        except ValidationError as error:
            first = error.errors()[0]
            raise StudyError(
                "a rule of limits: cannot be read",
                where=at,
                got=f"{'.'.join(map(str, first['loc']))}: {first['input']!r}"[:200],
                wanted=first["msg"],
                fix="Write it as docs/gate.md shows, without setting:.",
            ) from None
        if (rule.at_least is None) == (rule.at_most is None):
            raise StudyError(
                "a rule has one limit", where=at, wanted="at_least: or at_most:", fix="Give one."
            )
        if "level" in NEEDS[rule.measure] and rule.level is None:
            raise StudyError(f"{rule.measure} needs level:", where=at, fix="Add level: path, for example.")
        rules.append(rule)
    return rules


class Search:
    """The search for one limit, by the figures of whatever settings have been run."""

    def __init__(self, condition: Condition, rule: Rule, sut: str, seed: int) -> None:
        self.condition, self.rule, self.sut = condition, rule, sut
        key = f"{condition.name}, {sut}"  # the same for all rules, so that they ask for the same random steps
        self.search = LimitSearch(len(condition.settings), seed, key)
        self.values: dict[int, float | None] = {}
        self.every = [setting.id for setting in condition.settings]
        self.first = self.every[-1]

    def advance(self, measure: Measure, ran: Iterable[str]) -> list[str]:
        """Take what was run, and return the ids of the settings that are wanted next; none: it is over.

        Steps that other rules asked for serve too, and count as evaluations.
        """
        there = set(ran)
        if 0 not in self.search.known:
            self._take(0, measure)
        for step in range(1, len(self.condition.settings) + 1):
            if step not in self.search.known and self._id(step) in there:
                self._take(step, measure)
        return [self._id(step) for step in self.search.next_steps()]

    def limit(self) -> ConditionLimit:
        """Return what was found."""
        return ConditionLimit(self.sut, self.condition, self.rule, self.search.result(), self.values)

    def _id(self, step: int) -> str:
        return BASELINE if step == 0 else self.condition.settings[step - 1].id

    def _take(self, step: int, measure: Measure) -> None:
        rule = self.rule.model_copy(update={"setting": self._id(step), "sut": (self.sut,)})
        figure = next(iter(measure(rule)))
        self.values[step] = figure.value
        self.search.add(step, evaluation(rule, figure))


def evaluation(rule: Rule, figure: Figure) -> Evaluation:
    """Return whether a figure keeps a rule, and for certain; what is not defined does not hold."""
    if figure.value is None or rule.limit is None or figure.doubt:
        return Evaluation(holds=False, room=-1.0)
    sign = 1.0 if rule.at_least is not None else -1.0
    room = sign * (figure.value - rule.limit)
    interval = figure.interval
    if rule.measure in SHARES and rule.setting == BASELINE:  # 1 by definition, whatever the logs
        return Evaluation(room >= 0, room, (room, room))
    if interval is None or interval.low is None or interval.high is None:
        return Evaluation(room >= 0, room)
    ends = sorted(sign * (end - rule.limit) for end in (interval.low, interval.high))
    return Evaluation(room >= 0, room, (ends[0], ends[1]))


def searches(
    conditions: Sequence[Condition], rules: Sequence[Rule], suts: Sequence[str], seed: int
) -> Iterator[Search]:
    """Yield the searches of a study: every condition and rule, of every SUT that a rule is about."""
    for sut in suts:
        for condition in conditions:
            for rule in rules:
                if not rule.sut or sut in rule.sut:
                    yield Search(condition, rule, sut, seed)


def run_limits(store: Store, measure: Measure, registry: Registry) -> list[ConditionLimit]:
    """Return the limits of a finished run, worked out again from its figures; none where it has no search.

    A search that would ask for a setting that was not run is left out: it is not over.
    """
    study = written_study(store.folder.study)
    if study.limits is None:
        return []
    where = str(store.folder.study)
    section = read_limits(study.limits, where=where)
    conditions = conditions_of(section, store.run.mutations, registry, where=where)
    mine = list(searches(conditions, limit_rules(section, where=where), store.suts, store.run.seed))
    return [one.limit() for one in mine if not one.advance(measure, store.groups)]


def reached(limit: ConditionLimit, setting: Setting) -> bool | None:
    """Tell whether a limit lies at a setting or beyond it for certain; None: it cannot be told.

    A setting between two steps is reached where the stronger one is.
    """
    condition, found = limit.condition, limit.result
    value = float(setting.steps[0].options[condition.option])
    rising = condition.values[-1] > condition.values[0]
    as_strong = [one >= value if rising else one <= value for one in condition.values]
    needed = as_strong.index(True) + 1 if any(as_strong) else len(as_strong) + 1
    if found.certain_to is not None and found.certain_to >= needed:
        return True
    weaker = needed if needed <= len(as_strong) and condition.values[needed - 1] == value else needed - 1
    return False if found.fails_from is not None and found.fails_from <= weaker else None


def rule_name(rule: Rule) -> str:
    """Return what a rule is called: its name, or its measure and limit.

    >>> rule_name(Rule(measure="recall", setting="clean", at_least=0.8))
    'recall >= 0.8'
    """
    if rule.name is not None:
        return rule.name
    level = f" at {rule.level}" if rule.level else ""
    sign, limit = (">=", rule.at_least) if rule.at_least is not None else ("<=", rule.at_most)
    return f"{rule.measure}{level} {sign} {limit:g}"


def _value(condition: Condition, step: int | None) -> float | None:
    return None if step is None or step == 0 else condition.values[step - 1]

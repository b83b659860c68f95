"""Two conditions together: up to where a rule holds in haze and dusk at once, as a boundary curve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adverse.curves.boundary_search import BoundarySearch, Point
from adverse.errors import StudyError
from adverse.mutations.settings import parse
from adverse.plugins import Registry
from adverse.requirements.conditions import Condition, ConditionsSection, conditions_of
from adverse.requirements.limits import LimitsSection, Measure, evaluation, rule_name
from adverse.requirements.rules import Rule
from adverse.text import BASELINE


@dataclass(frozen=True)
class ConditionPair:
    """Two conditions that prevail together; `ids` are the settings of all points but the clean one."""

    first: Condition
    second: Condition
    ids: Mapping[Point, str]

    @property
    def name(self) -> str:
        """What both are called."""
        return f"{self.first.name} and {self.second.name}"


@dataclass(frozen=True)
class Boundary:
    """The boundary of one rule under two conditions, of one SUT.

    `limits` are steps of the first condition, one for each step of the second from 0 on; None: the rule does
    not hold there whatever the first is. From step `unmeasured` of the second on that is not known, as the
    figure is not defined.
    """

    sut: str
    pair: ConditionPair
    rule: Rule
    limits: tuple[int | None, ...]
    evaluations: int
    reversals: int
    unmeasured: int | None = None

    def measured(self, step: int) -> bool:
        """Tell whether it is known up to where the rule holds at a step of the second condition."""
        return self.unmeasured is None or step < self.unmeasured

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield it as CSV and JSON hold it, a row for each step of the second condition."""
        first, second = self.pair.first, self.pair.second
        for step, limit in enumerate(self.limits):
            yield {
                "sut": self.sut,
                "conditions": self.pair.name,
                "rule": rule_name(self.rule),
                "second_option": second.option,
                "second": second.values[step - 1] if step else None,
                "second_step": step,
                "first_option": first.option,
                "first_limit": first.values[limit - 1] if limit else None,
                "first_limit_step": limit,
                "measured": self.measured(step),
                "evaluations": self.evaluations,
                "reversals": self.reversals,
            }


@dataclass(frozen=True)
class _Alone:
    """The conditions of one pair, as a section that names them."""

    conditions: list[Any]
    steps: int


def pairs_of(section: LimitsSection, registry: Registry, *, where: str) -> list[ConditionPair]:
    """Return the pairs of conditions that a section wants together."""
    found = []
    for number, entry in enumerate(section.together):
        at = f"{where}.together.{number}"
        if not isinstance(entry, list | tuple) or len(entry) != 2:
            raise StudyError(
                "two conditions are searched together",
                where=at,
                got=str(entry)[:200],
                wanted="a list of two conditions",
                fix="Write [{haze: {visibility_m: [200, 100, 50]}}, {brightness: {scale: [0.7, 0.4]}}].",
            )
        alone: ConditionsSection = _Alone(list(entry), section.steps)
        first, second = conditions_of(alone, (), registry, where=at)
        ids = {}
        for i in range(len(first.values) + 1):
            for j in range(len(second.values) + 1):
                parts = [first.settings[i - 1].id] * (i > 0) + [second.settings[j - 1].id] * (j > 0)
                if parts:
                    ids[i, j] = parse(" + ".join(parts), registry, where=at).id
        found.append(ConditionPair(first, second, ids))
    return found


class PairSearch:
    """The search for one boundary, by the figures of whatever settings have been run."""

    def __init__(self, pair: ConditionPair, rule: Rule, sut: str) -> None:
        self.pair, self.rule, self.sut = pair, rule, sut
        self.search = BoundarySearch((len(pair.first.values), len(pair.second.values)))
        self.every = list(pair.ids.values())
        self.first = pair.ids[len(pair.first.values), 0]
        self._undefined: set[Point] = set()

    def advance(self, measure: Measure, ran: Iterable[str]) -> list[str]:
        """Take what was run, and return the ids of the settings that are wanted next; none: it is over."""
        there = set(ran)
        while (point := self.search.next_point()) is not None:
            setting = self.pair.ids.get(point, BASELINE)
            if setting != BASELINE and setting not in there:
                return [setting]
            rule = self.rule.model_copy(update={"setting": setting, "sut": (self.sut,)})
            figure = next(iter(measure(rule)))
            self.search.known[point] = evaluation(rule, figure).holds
            if figure.value is None:
                self._undefined.add(point)
        return []

    def boundary(self) -> Boundary:
        """Return what was found."""
        known = self.search.known
        looked_at = sum(point != (0, 0) for point in known)
        limits = tuple(self.search.limits())
        ends = next((step for step, limit in enumerate(limits) if limit is None), None)
        unmeasured = ends if ends is not None and (0, ends) in self._undefined else None
        reversals = self.search.reversals()
        return Boundary(self.sut, self.pair, self.rule, limits, looked_at, reversals, unmeasured)


def pair_searches(pairs: Sequence[ConditionPair], rules: Sequence[Rule], sut: str) -> list[PairSearch]:
    """Return the searches of a SUT: every pair and rule that is about it."""
    mine = [rule for rule in rules if not rule.sut or sut in rule.sut]
    return [PairSearch(pair, rule, sut) for pair in pairs for rule in mine]

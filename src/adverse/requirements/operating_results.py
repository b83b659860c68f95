"""What is known of the operating points of a run, as the page shows it and as JSON holds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from adverse.analysis.closed_loop import Operation
from adverse.curves.interval import Interval
from adverse.requirements.rules import Rule
from adverse.requirements.verdicts import Outcome


@dataclass(frozen=True)
class RateAtPoint:
    """The share of logs that end badly, of the condition where it is highest, and its limit."""

    words: str
    setting: str
    """Empty: to be expected of the rule's conditions."""
    at_most: float
    rate: Interval
    outcome: Outcome


@dataclass(frozen=True)
class PointFigures:
    """A threshold, and what it comes to on the logs that check."""

    threshold: float
    sensitivity: float
    operation: Operation
    rates: tuple[RateAtPoint, ...]
    efficiency: Interval
    efficiency_setting: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class ConditionPoint:
    """One condition: its own threshold, and what the threshold for all conditions comes to under it."""

    setting: str
    own: PointFigures
    shared: PointFigures


@dataclass(frozen=True)
class LogCounts:
    """How many logs choose and check, with somebody in them and without."""

    choice_positive: int
    choice_negative: int
    check_positive: int
    check_negative: int


@dataclass(frozen=True)
class Curve:
    """Every threshold of the chosen operation on the logs that check, the worst rate with its upper end."""

    threshold: tuple[float, ...]
    sensitivity: tuple[float, ...]
    rate: tuple[float, ...]
    high: tuple[float, ...]
    efficiency: tuple[float, ...]


@dataclass(frozen=True)
class ParetoPoint:
    """A point that no other beats in both: the worst safety and the worst efficiency over the conditions."""

    operation: Operation
    threshold: float
    safety: float
    efficiency: float


@dataclass(frozen=True)
class ParetoSet:
    """What all operations and thresholds come to on the logs that check, point by point.

    `hypervolume` is the area that the points dominate, `threshold_alone` that of the study's own operation.
    """

    points: tuple[ParetoPoint, ...]
    hypervolume: float | None
    threshold_alone: float | None


@dataclass(frozen=True)
class SutOperatingPoint:
    """The operating point of a SUT at one level.

    `chance` is how likely it seemed to pass, by the logs that chose it. `gain` is its efficiency less that of
    the present threshold, paired by log. `needed` is how many logs with people a check would need to pass
    where the worst rate stays as it is; None: no number of logs is enough. `swapped` is the threshold that
    the other half would have chosen.
    """

    sut: str
    level: str
    chosen: PointFigures
    chance: float
    present: PointFigures
    gain: Interval | None
    conditions: tuple[ConditionPoint, ...]
    logs: LogCounts
    needed: int | None
    swapped: float
    curve: Curve
    pareto: ParetoSet

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "sut": self.sut,
            "level": self.level,
            "chosen": _plain_point(self.chosen),
            "chance_to_pass": self.chance,
            "present": _plain_point(self.present),
            "efficiency_gain": None if self.gain is None else _plain_interval(self.gain),
            "conditions": [
                {"setting": one.setting, "own": _plain_point(one.own), "shared": _plain_point(one.shared)}
                for one in self.conditions
            ],
            "logs": vars(self.logs),
            "positive_check_logs_needed": self.needed,
            "threshold_of_the_other_half": _finite(self.swapped),
            "pareto": {
                "hypervolume": self.pareto.hypervolume,
                "hypervolume_of_the_threshold_alone": self.pareto.threshold_alone,
                "points": [
                    {
                        **vars(one.operation),
                        "threshold": _finite(one.threshold),
                        "safety": one.safety,
                        "efficiency": one.efficiency,
                    }
                    for one in self.pareto.points
                ],
            },
            "curve": {name: [_finite(one) for one in part] for name, part in vars(self.curve).items()},
        }


@dataclass(frozen=True)
class OperatingPoints:
    """The operating points of a run, its rules, and those of them that have no say in a threshold."""

    study: str
    rules: tuple[Rule, ...]
    unused: tuple[Rule, ...]
    seed: int
    operations: int
    """How many ways to drive were tried."""
    points: tuple[SutOperatingPoint, ...]

    def plain(self) -> dict[str, Any]:
        """Return them as JSON holds them."""
        return {
            "study": self.study,
            "seed": self.seed,
            "rules": [rule.model_dump(exclude_none=True, exclude_defaults=True) for rule in self.rules],
            "not_used": [rule.measure for rule in self.unused],
            "operating_points": [point.plain() for point in self.points],
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain_interval(interval: Interval) -> dict[str, Any]:
    return {"value": interval.value, **interval.plain()}


def _plain_point(point: PointFigures) -> dict[str, Any]:
    return {
        "threshold": _finite(point.threshold),
        "operation": vars(point.operation),
        "sensitivity": _finite(point.sensitivity),
        "outcome": point.outcome.value,
        "reason": point.reason,
        "rates": [
            {
                "rule": one.words,
                "setting": one.setting,
                "at_most": one.at_most,
                "outcome": one.outcome.value,
                **_plain_interval(one.rate),
            }
            for one in point.rates
        ],
        "efficiency": _plain_interval(point.efficiency),
        "efficiency_setting": point.efficiency_setting,
    }

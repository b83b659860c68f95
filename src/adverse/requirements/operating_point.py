"""The operating point of each SUT of a run: the most efficient threshold that keeps rules of the closed loop.

One half of the logs chooses, the other checks (`curves.operating_point` says why). Beside the threshold for
all conditions stand the one that each condition alone would have, and the threshold that the study has now.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.closed_loop import (
    LEVEL,
    STOPS_IN_TIME,
    VIOLATIONS,
    DrivenSettings,
    Operation,
    bad_logs,
    drive_settings,
)
from adverse.analysis.compare_metrics import PairedRatios
from adverse.analysis.detections import SutDetections, sut_detections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.curves.bootstrap import Resamples, draw
from adverse.curves.curve import hypervolume
from adverse.curves.interval import Interval, given
from adverse.curves.operating_point import Choice, Drives, Halves, Limit, choose, halves, logs_needed
from adverse.curves.quantities import Quantity, Ratios, Recall
from adverse.curves.studentized import intervals
from adverse.errors import StudyError, suggestion
from adverse.levels.context import Context, run_context
from adverse.levels.outcomes import Outcomes, positive_logs
from adverse.requirements.closed_loop import TOO_FEW, covered
from adverse.requirements.operating_results import (
    ConditionPoint,
    Curve,
    LogCounts,
    OperatingPoints,
    ParetoPoint,
    ParetoSet,
    PointFigures,
    RateAtPoint,
    SutOperatingPoint,
)
from adverse.requirements.rules import CLOSED_LOOP, Rule, read_rules
from adverse.requirements.verdicts import Outcome
from adverse.store.read import Store

Mask = NDArray[np.bool_]
Times = tuple[NDArray[np.float64], NDArray[np.float64]]
ROUNDING = 1e-12
BAD = {"violations": "violations", STOPS_IN_TIME: "late or no stops"}
"""What the logs that end badly are called, by measure."""
CONFIDENCE, METHOD = 0.95, "studentized"
NO_THRESHOLD = "by the logs that choose, no threshold is likely to pass"
NO_INTERVALS = "the run has no intervals"


def operating_points(
    store: Store,
    rules: Path,
    *,
    seed: int | None = None,
    speeds_mps: Sequence[float] = (),
    radii_m: Sequence[float] = (),
    confirms: Sequence[int] = (),
) -> OperatingPoints:
    """Choose and check the operating point of every SUT; `seed` deals the logs, that of the run by default.

    With top speeds, control radii or numbers of images to believe, each combination of them is tried at every
    threshold, beside the study's own. Efficiency is then relative to perfect perception at the highest speed.

    A rule that does not say by which truth is held against the first kind there is, the annotated one. A pure
    function of the run's detections, the rules and the seed.
    """
    known = read_rules(rules, levels=store.run.levels, settings=store.groups)
    used = tuple(rule for rule in known if rule.measure in CLOSED_LOOP)
    _refuse(store, rules, used)
    dealt = store.run.seed if seed is None else seed
    context = run_context(store)
    points: list[SutOperatingPoint] = []
    for sut in store.suts:
        mine = [rule for rule in used if not rule.sut or sut in rule.sut]
        if mine:
            detections = sut_detections(store, sut)
            tried = _thresholds(store, detections)
            operations = _operations(context, speeds_mps, radii_m, confirms)
            for number, driven in enumerate(_drive_all(store, detections, context, tried, operations)):
                named = (None, LEVEL, driven.level) if number == 0 else (driven.level,)
                if wanted := [rule for rule in mine if rule.level in named]:
                    ways = _Ways(operations, tried)
                    points.append(_Search(store, detections, driven, ways, wanted, dealt).result())
    tried_ways = len(_operations(context, speeds_mps, radii_m, confirms))
    unused = tuple(rule for rule in known if rule not in used)
    return OperatingPoints(store.run.name, used, unused, dealt, tried_ways, tuple(points))


def _refuse(store: Store, path: Path, rules: Sequence[Rule]) -> None:
    """Raise where no operating point can be chosen by these rules."""
    where = str(path)
    if not rules:
        raise StudyError(
            "no rule here depends on a threshold in closed loop",
            where=where,
            wanted=" or ".join(f"measure: {name}" for name in CLOSED_LOOP),
            fix="Add {measure: violations, setting: AnyMild, at_most: 0.1}, for example.",
        )
    if LEVEL not in store.run.levels:
        raise StudyError(
            "the run has no closed loop",
            where=str(store.folder.path),
            got=f"levels {', '.join(store.run.levels)}",
            fix="Add loop to levels: and robot: to the study, and run it again.",
        )
    for rule in rules:
        if rule.bound == "point":
            raise StudyError(
                "an operating point is chosen by the ends of intervals",
                where=where,
                got="bound: point",
                fix="Leave bound: out.",
            )
        for sut in rule.sut:
            if sut not in store.suts:
                raise StudyError(f"the run has no SUT {sut!r}", where=where, fix=suggestion(sut, store.suts))
        conditions = covered(store, rule)
        for name in (name for chances in conditions.values() for name in chances):
            if name not in store.groups:
                raise StudyError(
                    f"the run has no mutation {name!r}", where=where, fix=suggestion(name, store.groups)
                )


def _thresholds(store: Store, detections: SutDetections) -> NDArray[np.float32]:
    """Return the thresholds to try, falling: those of the shared sensitivities, and the present one."""
    present = operating_threshold(store, detections).score
    return np.unique(np.append(detections.sensitivity.thresholds, present))[::-1]


class _Ways(NamedTuple):
    """All that is tried, in this order: each threshold of the first operation, of the second, ...

    The study's own operation comes last.
    """

    operations: tuple[Operation, ...]
    thresholds: NDArray[np.float32]

    def operation(self, k: int) -> Operation:
        return self.operations[k // len(self.thresholds)]

    def threshold(self, k: int) -> float:
        return float(self.thresholds[k % len(self.thresholds)])

    def block(self, operation: Operation) -> slice:
        """Return the places of all thresholds of an operation."""
        first = self.operations.index(operation) * len(self.thresholds)
        return slice(first, first + len(self.thresholds))

    @property
    def size(self) -> int:
        return len(self.operations) * len(self.thresholds)


def _operations(
    context: Context, speeds_mps: Sequence[float], radii_m: Sequence[float], confirms: Sequence[int]
) -> tuple[Operation, ...]:
    """Return every combination, the study's own last."""
    if context.robot is None:
        return ()
    own = Operation.of(context.robot)
    every = [
        Operation(speed, radius, confirm)
        for speed in sorted({*speeds_mps} or {own.max_speed_mps}, reverse=True)
        for radius in sorted({*radii_m} or {own.control_radius_m})
        for confirm in sorted({*confirms} or {own.confirm}, reverse=True)
    ]
    for operation in every:
        operation.robot(context.robot)  # raises where there is no such robot
        if operation.confirm < 1:
            raise StudyError(
                "a robot believes one image at least",
                where="--confirm",
                got=str(operation.confirm),
                fix="Give 1 or more.",
            )
    return (*(one for one in every if one != own), own)


def _drive_all(
    store: Store,
    detections: SutDetections,
    context: Context,
    thresholds: NDArray[np.float32],
    operations: Sequence[Operation],
) -> Iterator[DrivenSettings]:
    """Yield the outcomes of all operations, for each kind of truth, beside each other like thresholds."""
    driven = [drive_settings(store, detections, context, thresholds, operation) for operation in operations]
    for of_kind in zip(*driven, strict=True):
        settings = {name: _beside([one.settings[name] for one in of_kind]) for name in of_kind[0].settings}
        yield DrivenSettings(of_kind[0].level, settings, of_kind[0].incomplete)


def _beside(parts: Sequence[Outcomes]) -> Outcomes:
    """Return outcomes of the same logs as those of one robot with more thresholds.

    A log counts where it was driven by all; the truth's time is the least, that of the highest speed.
    """
    truths = np.min([part.truths for part in parts], axis=0)
    exposure = np.min([part.exposure for part in parts], axis=0)
    hits, violations = (
        np.concatenate(arrays, axis=1) * truths[:, None]
        for arrays in ([part.hits for part in parts], [part.beside[VIOLATIONS] for part in parts])
    )
    cost = np.concatenate([part.cost for part in parts], axis=1) * (exposure > 0)[:, None]
    first = parts[0]
    return Outcomes(
        first.logs, hits, truths, cost, exposure, first.kind, first.left_out, {VIOLATIONS: violations}
    )


class _Demand(NamedTuple):
    """A rule, what it is about (by setting, the chance of each setting; "" for conditions), and its limit."""

    rule: Rule
    wanted: Mapping[str, Mapping[str, float]]
    limit: Limit


class _Search:
    """The operating point of one SUT at one level."""

    def __init__(
        self,
        store: Store,
        detections: SutDetections,
        driven: DrivenSettings,
        ways: _Ways,
        rules: Sequence[Rule],
        seed: int,
    ) -> None:
        self.store = store
        self.sut, self.driven = detections.sut, driven
        self.ways = ways
        self.sensitivity = detections.sensitivity.at(ways.thresholds).levels
        self.seed = seed
        now = operating_threshold(store, detections).score
        own = ways.block(ways.operations[-1])
        self.present = own.start + int(np.flatnonzero(ways.thresholds == now)[0])
        self.demands = [self._demand(rule, covered(store, rule)) for rule in rules]
        self.positive = positive_logs(store.truth, store.frames)
        tested = np.isin(np.arange(len(self.positive)), store.frames.log[store.frames.test])
        names = [log for log, there in zip(store.frames.logs, tested, strict=True) if there]
        dealt = halves(names, self.positive[tested].tolist(), seed=seed)
        self.halves = Halves(*(_spread(part, tested) for part in dealt))
        self.resamples = self._resamples()

    def result(self) -> SutOperatingPoint:
        choice = choose(self._limits, self.halves)
        chosen = self._figures(self.demands, choice.threshold, choice)
        asked = {name for one in self.demands for name in _names(one.wanted)}
        settings = [name for name in self.store.groups if name in asked]
        swapped = choose(self._limits, self.halves.swapped())
        return SutOperatingPoint(
            self.sut,
            self.driven.level,
            chosen,
            choice.chance,
            self._figures(self.demands, self.present),
            self._gain(choice.threshold),
            tuple(self._of_condition(name, choice.threshold) for name in settings),
            self._log_counts(settings),
            self._needed(chosen),
            self.ways.threshold(swapped.threshold),
            self._curve(self.ways.block(chosen.operation)),
            self._pareto(),
        )

    @property
    def _limits(self) -> list[Limit]:
        return [one.limit for one in self.demands]

    def _demand(self, rule: Rule, wanted: Mapping[str, Mapping[str, float]]) -> _Demand:
        at_most = rule.at_most if rule.at_most is not None else 1.0 - (rule.at_least or 0.0) + ROUNDING
        chances = tuple(wanted[""].values()) if "" in wanted else None
        drives = self._drives(list(_names(wanted)), rule.measure)
        return _Demand(rule, wanted, Limit(drives, at_most, chances))

    def _drives(self, names: Sequence[str], measure: str) -> Drives:
        outcomes = [self.driven.settings[name] for name in names]
        return Drives(
            np.array([bad_logs(part, measure) for part in outcomes], np.float64),
            np.array([part.truths > 0 for part in outcomes]),
            np.array([part.cost for part in outcomes]),
            np.array([part.exposure for part in outcomes]),
        )

    def _log_counts(self, settings: Sequence[str]) -> LogCounts:
        """Count the logs that were driven under any setting."""
        driven = [self.driven.settings[name] for name in settings]
        kinds = [np.any([part.truths > 0 for part in driven], axis=0)]
        kinds.append(np.any([part.exposure > 0 for part in driven], axis=0))
        return LogCounts(*(int((kind & half).sum()) for half in self.halves for kind in kinds))

    def _resamples(self) -> Resamples | None:
        """Return resamples of the logs that check, of either kind apart."""
        count, check = self.store.run.bootstrap, self.halves.check
        logs = [log for log, there in zip(self.store.frames.logs, check, strict=True) if there]
        if not count or not logs:
            return None
        return draw(logs, self.positive[check].tolist(), seed=self.seed, count=count)

    def _of_condition(self, setting: str, shared: int) -> ConditionPoint:
        """Return the threshold of one condition alone; rules about several hold under each of them."""
        alone = {setting: {setting: 1.0}}
        demands = [self._demand(one.rule, alone) for one in self.demands if setting in _names(one.wanted)]
        choice = choose([one.limit for one in demands], self.halves)
        own = self._figures(demands, choice.threshold, choice)
        return ConditionPoint(setting, own, self._figures(demands, shared))

    def _figures(self, demands: Sequence[_Demand], k: int, choice: Choice | None = None) -> PointFigures:
        """Return what a threshold comes to on the logs that check."""
        rates = []
        for rule, wanted, limit in demands:
            found = limit.rates(self.halves.check, k)
            highs = [_end(one) for one in found]
            worst = highs.index(max(highs))
            outcome = _outcome(found, limit.at_most)
            setting = list(wanted)[worst]
            rates.append(RateAtPoint(_words(rule, limit), setting, limit.at_most, found[worst], outcome))
        names = {name for one in demands for name in _names(one.wanted)}
        efficiency, setting = self._efficiency(demands[0], k)
        outcome, reason = self._decide(rates, names, choice)
        sensitivity = float(self.sensitivity[k % len(self.sensitivity)])
        return PointFigures(
            self.ways.threshold(k),
            sensitivity,
            self.ways.operation(k),
            tuple(rates),
            efficiency,
            setting,
            outcome,
            reason,
        )

    def _decide(
        self, rates: Sequence[RateAtPoint], names: set[str], choice: Choice | None
    ) -> tuple[Outcome, str]:
        """Return PASS where every rule keeps its limit for certain, FAIL where one does not for certain."""
        if self.driven.incomplete & names:
            return Outcome.INCONCLUSIVE, TOO_FEW
        outcomes = {rate.outcome for rate in rates}
        none = "" if choice is None or choice.likely else NO_THRESHOLD
        if Outcome.FAIL in outcomes:
            return Outcome.FAIL, none
        if Outcome.INCONCLUSIVE in outcomes:
            return Outcome.INCONCLUSIVE, none or "the limit lies within the interval"
        return Outcome.PASS, ""

    def _efficiency(self, demand: _Demand, k: int) -> tuple[Interval, str]:
        """Return the worst or the expected efficiency on the logs that check, and whose it is."""
        names = list(_names(demand.wanted))
        found = [self._efficiency_under(name, k) for name in names]
        if demand.limit.chances is not None:
            return _averaged(found, demand.limit.chances), ""
        worst = min(range(len(found)), key=lambda number: _value(found[number]))
        return found[worst].low_at_most(found), names[worst]

    def _efficiency_under(self, name: str, k: int) -> Interval:
        truth, took = (part[self.halves.check] for part in self._times(name, k))
        if not took.any():
            why = "no log without anybody was driven"
            return Interval(None, None, None, CONFIDENCE, METHOD, 0, "refused", why)
        if self.resamples is None:
            value, logs = float(truth.sum() / took.sum()), int((took > 0).sum())
            return Interval(value, None, None, CONFIDENCE, METHOD, logs, "refused", NO_INTERVALS)
        wanted: dict[str, Quantity] = {name: Recall(Ratios(truth[:, None], took, truth[:, None], took))}
        return intervals(wanted, self.resamples)[name]

    def _gain(self, k: int) -> Interval:
        """Return by how much more efficient a threshold is than the present one, under its worst condition.

        Of expected efficiencies it is the average over the conditions, ends and all.
        """
        first = self.demands[0]
        if first.limit.chances is None:
            return self._gain_under(self._efficiency(first, k)[1], k)
        return _averaged([self._gain_under(name, k) for name in first.wanted[""]], first.limit.chances)

    def _gain_under(self, name: str, k: int) -> Interval:
        there = self.halves.check & (self.driven.settings[name].exposure > 0)
        logs = [log for log, is_there in zip(self.store.frames.logs, there, strict=True) if is_there]
        now, then = (self._times(name, at) for at in (self.present, k))
        parts = [(truth[there], took[there]) for truth, took in (now, then)]
        return PairedRatios(logs, parts, seed=self.seed).interval()

    def _times(self, name: str, k: int) -> Times:
        """Return the truth's time and the SUT's by log, in units of the mean log.

        Where nothing is lost in any log, intervals count trials; each log is then one.
        """
        truth_s, time_s = self.driven.settings[name].exposure, self.driven.settings[name].cost[:, k]
        driven = truth_s > 0
        unit = float(time_s[driven].mean()) if driven.any() else 1.0
        return np.where(driven, truth_s / unit, 0.0), np.where(driven, time_s / unit, 0.0)

    def _needed(self, chosen: PointFigures) -> int | None:
        """Return how many positive logs a check needs; the rule that needs most decides."""
        needed = [logs_needed(one.rate.value or 0.0, one.at_most) for one in chosen.rates]
        known = [count for count in needed if count is not None]
        return max(known) if len(known) == len(needed) else None

    def _curve(self, block: slice) -> Curve:
        check, first = self.halves.check, self.demands[0].limit
        worst = [max(first.rates(check, k), key=_end) for k in range(block.start, block.stop)]
        return Curve(
            tuple(self.ways.thresholds.tolist()),
            tuple(self.sensitivity.tolist()),
            tuple(_value(one) for one in worst),
            tuple(_end(one) for one in worst),
            tuple(first.efficiency(check)[block].tolist()),
        )

    def _pareto(self) -> ParetoSet:
        """Return the Robustness ROC of all that was tried, point by point, and what it dominates."""
        check, first = self.halves.check, self.demands[0].limit
        rates = [first.rates(check, k) for k in range(self.ways.size)]
        safety = 1.0 - np.array([max(_value(one) for one in found) for found in rates])
        efficiency = first.efficiency(check)
        if not np.isfinite([safety, efficiency]).all():
            return ParetoSet((), None, None)
        points = tuple(
            ParetoPoint(
                self.ways.operation(k), self.ways.threshold(k), float(safety[k]), float(efficiency[k])
            )
            for k in unbeaten(safety, efficiency)
        )
        pairs = np.stack([safety, efficiency], axis=1)
        alone = pairs[self.ways.block(self.ways.operations[-1])]
        return ParetoSet(points, hypervolume(pairs), hypervolume(alone))


def unbeaten(safety: NDArray[np.float64], efficiency: NDArray[np.float64]) -> list[int]:
    """Return the points that no other beats: as good in both and better in one; of equals the first.

    By rising safety.

    >>> unbeaten(np.array([0.5, 0.9, 0.4, 0.9]), np.array([0.9, 0.3, 0.8, 0.3]))
    [0, 1]
    """
    order = sorted(range(len(safety)), key=lambda k: (-efficiency[k], -safety[k], k))
    kept: list[int] = []
    for k in order:
        if not kept or safety[k] > safety[kept[-1]]:
            kept.append(k)
    return kept


def _names(wanted: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    return (name for chances in wanted.values() for name in chances)


def _spread(part: Mask, tested: Mask) -> Mask:
    whole = np.zeros(len(tested), np.bool_)
    whole[tested] = part
    return whole


def _averaged(parts: Sequence[Interval], chances: Sequence[float]) -> Interval:
    """Return the interval of a weighted mean from those of its parts, as if all erred the same way."""
    ends = [(one.value, one.low, one.high) for one in parts]
    value, low, high = (
        None
        if any(end[place] is None for end in ends)
        else float(sum(chance * (end[place] or 0.0) for chance, end in zip(chances, ends, strict=True)))
        for place in range(3)
    )
    logs = min(one.logs for one in parts)
    if value is None or low is None or high is None:
        why = next((one.why for one in parts if one.why), "")
        return Interval(value, None, None, parts[0].confidence, parts[0].method, logs, "refused", why)
    return given(value, low, high, confidence=parts[0].confidence, method=parts[0].method, logs=logs)


def _value(interval: Interval) -> float:
    return math.nan if interval.value is None else interval.value


def _end(interval: Interval) -> float:
    return 1.0 if interval.high is None else interval.high


def _outcome(rates: Sequence[Interval], at_most: float) -> Outcome:
    if any(rate.low is not None and rate.low > at_most for rate in rates):
        return Outcome.FAIL
    return Outcome.PASS if all(_end(rate) <= at_most for rate in rates) else Outcome.INCONCLUSIVE


def _words(rule: Rule, limit: Limit) -> str:
    return f"{BAD[rule.measure]} at most {limit.at_most:.4g}"

"""From detections to the curves of every SUT, level and setting, with their area and robustness."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import Source, SutDetections
from adverse.analysis.thresholds import chosen_thresholds, every_threshold, shown_thresholds
from adverse.curves.curve import area
from adverse.curves.robustness import Points
from adverse.levels.context import Context, PlacedDetections, evaluate, level_input
from adverse.levels.outcomes import AT_0, Events, Outcomes, Sensitivity, positive_logs
from adverse.plugins import Plugin
from adverse.store.read import Store
from adverse.store.tables import FAULT, OK, QUARANTINED

Status = Literal["ok", "incomplete", "insufficient"]
ANY, ANY_MILD = "Any", "AnyMild"
WORST = {ANY_MILD: ("baseline", "mild"), ANY: ("baseline", "mild", "severe")}
"""The worst cases, and the groups of settings that each covers."""


@dataclass(frozen=True)
class Row:
    """One figure; `area` and `robustness` are None where they are not defined.

    `robust_area` is that of the worst of the baseline and the setting, and `robustness` its share of the
    baseline's area. A curve ends at `least_safety` on one side and at `least_efficiency` on the other.
    Status ok; incomplete: more frames were quarantined than the study allows; insufficient: the data cannot
    answer (no truth, no negative images).
    """

    sut: str
    level: str
    setting: str
    group: str
    area: float | None
    robustness: float | None
    status: Status
    robust_area: float | None = None
    area_at_0: float | None = None
    """At tolerance 0, where the level has one: path and loop; `area` is at the robot's tolerance."""
    robust_area_at_0: float | None = None
    least_safety: float | None = None
    least_efficiency: float | None = None
    area_without_faults: float | None = None
    logs: int = 0
    frames: int = 0
    truths: int = 0
    negative_frames: int = 0
    quarantined: int = 0
    faults: int = 0
    logs_left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ScoredCurve:
    """A row with its curve, the thresholds of that, and the outcomes per log behind it.

    No outcomes for worst cases over settings; no curve where it is not defined.
    """

    row: Row
    sensitivity: Sensitivity
    curve: Points | None
    outcomes: Outcomes | None


@dataclass(frozen=True, eq=False)
class SutScores:
    """All figures of one SUT, and the sensitivity they are read at."""

    sut: str
    sensitivity: Sensitivity
    source: Source
    scored: tuple[ScoredCurve, ...]


def score_sut(
    store: Store, detections: SutDetections, context: Context, levels: Sequence[Plugin]
) -> SutScores:
    """Score every setting of a SUT at its thresholds."""
    rows = tuple(_Scoring(store, detections, context, levels).rows())
    return SutScores(detections.sut, detections.sensitivity, detections.source, rows)


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """One setting at all levels, also without its faults, and the baseline on the same frames."""

    setting: str
    group: str
    outcomes: Mapping[str, Events | Outcomes]
    unfaulted: Mapping[str, Events | Outcomes]
    baseline: Mapping[str, Events | Outcomes]
    counted: NDArray[np.bool_]
    quarantined: int
    faults: int
    tested: int


class _Scoring:
    """The figures of one SUT."""

    def __init__(
        self, store: Store, detections: SutDetections, context: Context, levels: Sequence[Plugin]
    ) -> None:
        self.store = store
        self.detections = detections
        self.sut = detections.sut
        self.exact = [level for level in levels if level.level is not None and level.level.exact]
        self.gridded = [level for level in levels if level not in self.exact]
        self.every = every_threshold(detections)
        self.sensitivity = detections.sensitivity
        self.shared = shown_thresholds(detections.sensitivity)
        self.fpr_max = store.run.fpr_max
        self.budget = store.run.quarantine_budget
        self.baseline = detections.baseline
        self.context = context
        self.positive = positive_logs(store.truth, store.frames)
        self.failed = not any((found.answers.status == OK).any() for found in detections.settings.values())
        self._placed: tuple[str, PlacedDetections] | None = None
        self._baselines: dict[bytes, dict[str, Events | Outcomes]] = {}

    def rows(self) -> Iterator[ScoredCurve]:
        evaluated = [self._evaluated(setting, group) for setting, group in self.store.groups.items()]
        for level in evaluated[0].outcomes:
            chosen = self._chosen(level, evaluated)
            scored = [self._scored(level, one, chosen) for one in evaluated]
            yield from scored
            for name, groups in WORST.items():
                yield self._worst(level, name, scored, groups)

    def _evaluated(self, setting: str, group: str) -> _Evaluated:
        answers = self.detections.settings[setting].answers
        tested = answers.status[self.store.frames.test[answers.frame]]
        counted = self.detections.counted(setting)
        faults = int((tested == FAULT).sum())
        outcomes = self._outcomes(setting, counted)
        fault_free = counted & self.detections.fault_free(setting)
        return _Evaluated(
            setting,
            group,
            outcomes,
            self._outcomes(setting, fault_free) if faults else outcomes,
            self._baseline(counted & self.detections.counted(self.baseline)),
            counted,
            quarantined=int((tested == QUARANTINED).sum()),
            faults=faults,
            tested=len(tested),
        )

    def _chosen(self, level: str, evaluated: Sequence[_Evaluated]) -> NDArray[np.int64] | None:
        """Return which of all thresholds the curves of a level need; None where it has the shared ones."""
        pairs = [(one.baseline[level], one.outcomes[level]) for one in evaluated]
        own = [(mutated,) for _, mutated in pairs]
        worst = [
            tuple(one.outcomes[level] for one in evaluated if one.group in groups)
            for groups in WORST.values()
        ]
        compared = [_events(group) for group in (*own, *pairs, *worst)]
        if any(group is None for group in compared):
            return None
        compared += _at_0([group for group in compared if group is not None])
        shared = len(self.every) - np.searchsorted(self.every[::-1], self.shared, side="left") - 1
        return chosen_thresholds(
            len(self.every),
            [group for group in compared if group is not None],
            self.fpr_max,
            keep=np.unique(np.maximum(shared, 0)),
        )

    def _scored(self, level: str, one: _Evaluated, chosen: NDArray[np.int64] | None) -> ScoredCurve:
        sensitivity = self.sensitivity if chosen is None else self.sensitivity.at(self.every[chosen])
        outcome, unfaulted, plain = (
            _counted(part[level], chosen) for part in (one.outcomes, one.unfaulted, one.baseline)
        )
        if self.failed:  # nothing is known of a SUT that never answered
            outcome, unfaulted, plain = (_unknown(part) for part in (outcome, unfaulted, plain))
        curve = self._curve(outcome, sensitivity)
        value = _area(curve)
        status: Status = "insufficient" if value is None else "ok"
        if one.quarantined > self.budget * one.tested:
            status = "incomplete"
        base = self._curve(plain, sensitivity)
        robust = _worst_area([base, curve])
        row = Row(
            self.sut,
            level,
            one.setting,
            one.group,
            value,
            _share(robust, _area(base)),
            status,
            robust_area=robust,
            area_at_0=self._area_at_0(sensitivity, outcome),
            robust_area_at_0=self._area_at_0(sensitivity, plain, outcome),
            least_safety=_least(curve.safety),
            least_efficiency=_least(curve.efficiency),
            area_without_faults=_area(self._curve(unfaulted, sensitivity)),
            logs=int(np.count_nonzero(outcome.exposure + outcome.truths)),
            frames=int(one.counted.sum()),
            truths=int(outcome.truths.sum()),
            negative_frames=int((one.counted & ~self.positive[self.store.frames.log]).sum()),
            quarantined=one.quarantined,
            faults=one.faults,
            logs_left_out=dict(outcome.left_out),
        )
        return ScoredCurve(row, sensitivity, curve, outcome)

    def _worst(
        self, level: str, name: str, scored: Sequence[ScoredCurve], groups: Collection[str]
    ) -> ScoredCurve:
        chosen = [one for one in scored if one.row.group in groups]
        group = "mild" if name == ANY_MILD else "any"
        statuses = {one.row.status for one in chosen}
        status: Status = next((s for s in ("insufficient", "incomplete") if s in statuses), "ok")
        curves = [one.curve for one in chosen if one.curve is not None]
        sensitivity = scored[0].sensitivity
        if any(one.row.area is None for one in chosen):
            row = Row(self.sut, level, name, group, None, None, status)
            return ScoredCurve(row, sensitivity, None, None)
        worst = _worst_curve(curves)
        value = _area(worst)
        outcomes = [one.outcomes for one in chosen if one.outcomes is not None]
        at_0 = self._area_at_0(sensitivity, *outcomes)
        row = replace(
            scored[0].row,  # its counts: logs, frames, truths
            setting=name,
            group=group,
            area=value,
            robustness=_share(value, scored[0].row.area),
            status=status,
            robust_area=value,
            least_safety=_least(worst.safety),
            least_efficiency=_least(worst.efficiency),
            area_at_0=at_0,
            robust_area_at_0=at_0,
            area_without_faults=None,
            quarantined=max(one.row.quarantined for one in chosen),
            faults=sum(one.row.faults for one in chosen),
        )
        return ScoredCurve(row, sensitivity, worst, None)

    def _baseline(self, counted: NDArray[np.bool_]) -> dict[str, Events | Outcomes]:
        """Return the baseline on the frames that count, for all settings that share them."""
        key = counted.tobytes()
        if key not in self._baselines:
            self._baselines[key] = self._outcomes(self.baseline, counted)
        return self._baselines[key]

    def _outcomes(self, setting: str, counted: NDArray[np.bool_]) -> dict[str, Events | Outcomes]:
        """Evaluate all levels on the frames that count: at every threshold, or at the shared ones."""
        found: dict[str, Events | Outcomes] = {}
        matched = self.detections.settings[setting]
        for levels, thresholds in ((self.exact, self.every), (self.gridded, self.sensitivity.thresholds)):
            given = level_input(
                self.context, matched, thresholds, counted, place=lambda: self._place(setting)
            )
            for level in levels:
                found |= evaluate(level, given)
        return found

    def _place(self, setting: str) -> PlacedDetections:
        """Return the places of a setting's detections, those of the last setting asked for at no cost."""
        if self._placed is None or self._placed[0] != setting:
            self._placed = (setting, self.context.place(self.detections.settings[setting].answers))
        return self._placed[1]

    def _area_at_0(self, sensitivity: Sensitivity, *outcomes: Outcomes) -> float | None:
        """Return the worst-case area over outcomes at tolerance 0; None where the level has no tolerance."""
        if not all(AT_0 in one.beside for one in outcomes):
            return None
        return _worst_area([self._curve(one.with_hits(AT_0), sensitivity) for one in outcomes])

    def _curve(self, outcomes: Outcomes, sensitivity: Sensitivity) -> Points:
        return Points(sensitivity.levels, outcomes.safety(), outcomes.efficiency(self.fpr_max))


def _events(group: Sequence[Events | Outcomes]) -> tuple[Events, ...] | None:
    """Return what can be evaluated at every threshold; None where any of it cannot."""
    events = tuple(one for one in group if isinstance(one, Events))
    return events if len(events) == len(group) else None


def _at_0(compared: Sequence[Sequence[Events]]) -> list[tuple[Events, ...]]:
    """Return the same events at tolerance 0, where they have one."""
    events = {id(one): one for group in compared for one in group}
    strict = {key: one.with_hits(AT_0) for key, one in events.items() if AT_0 in one.beside}
    return [tuple(strict[id(one)] for one in group) for group in compared if strict]


def _counted(part: Events | Outcomes, chosen: NDArray[np.int64] | None) -> Outcomes:
    if isinstance(part, Outcomes):
        return part
    if chosen is None:
        raise TypeError("events need thresholds to be counted at")
    return part.at(chosen).outcomes(len(chosen))


def _unknown(outcomes: Outcomes) -> Outcomes:
    """Return outcomes of the same logs that say nothing."""
    return replace(
        outcomes,
        hits=np.zeros_like(outcomes.hits),
        truths=np.zeros_like(outcomes.truths),
        cost=np.zeros_like(outcomes.cost),
        exposure=np.zeros_like(outcomes.exposure),
        beside={},
        measured={},
    )


def _area(curve: Points) -> float | None:
    if np.isnan(curve.safety).any() or np.isnan(curve.efficiency).any():
        return None
    return area(curve.safety, curve.efficiency)


def _least(values: NDArray[np.float64]) -> float | None:
    least = float(values.min())
    return None if math.isnan(least) else least


def _worst_curve(curves: Sequence[Points]) -> Points:
    """Return the Robustness ROC of curves that share their thresholds: the least at each of them."""
    safety, efficiency = (np.min([curve[axis] for curve in curves], axis=0) for axis in (1, 2))
    return Points(curves[0].sensitivity, safety, efficiency)


def _worst_area(curves: Sequence[Points]) -> float | None:
    if any(_area(curve) is None for curve in curves):
        return None
    return _area(_worst_curve(curves))


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None or whole == 0:
        return None
    share = part / whole
    return share if math.isfinite(share) else None

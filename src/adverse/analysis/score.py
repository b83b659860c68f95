"""From detections to the curves of every SUT, level and setting, with their area and robustness."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import Source, SutDetections
from adverse.analysis.thresholds import chosen_thresholds, every_threshold, shown_thresholds
from adverse.curves.curve import area
from adverse.curves.robustness import Points
from adverse.levels.context import Context, PlacedDetections, evaluate, level_input
from adverse.levels.image import ROC_B
from adverse.levels.outcomes import AT_0, Events, Outcomes, Sensitivity, positive_logs
from adverse.plugins import Plugin
from adverse.store.read import Store
from adverse.store.tables import FAULT, QUARANTINED
from adverse.text import WORST_CASES

Status = Literal["ok", "incomplete", "insufficient"]
ANY_MILD, ANY = WORST_CASES
WORST = {ANY_MILD: ("baseline", "mild"), ANY: ("baseline", "mild", "severe")}
"""The worst cases, and the groups of settings that each covers."""
FAMILY = "family"
"""The group of rows over all strengths of one mutation."""


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

    No outcomes for worst cases over settings; no curve where it is not defined. `compared` are the outcomes
    whose worst case the row holds, all over the same frames, the baseline first; `settings` are their names.
    """

    row: Row
    sensitivity: Sensitivity
    curve: Points | None
    outcomes: Outcomes | None
    compared: tuple[Outcomes, ...] = ()
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SutScores:
    """All figures of one SUT, and the sensitivity they are read at.

    `families` are the worst cases over all strengths of a mutation, where it has more than one.
    """

    sut: str
    sensitivity: Sensitivity
    source: Source
    scored: tuple[ScoredCurve, ...]
    families: tuple[ScoredCurve, ...]


def score_sut(
    store: Store, detections: SutDetections, context: Context, levels: Sequence[Plugin]
) -> SutScores:
    """Score every setting of a SUT at its thresholds."""
    rows = tuple(_Scoring(store, detections, context, levels).rows())
    scored = tuple(one for one in rows if one.row.group != FAMILY)
    families = tuple(one for one in rows if one.row.group == FAMILY)
    return SutScores(detections.sut, detections.sensitivity, detections.source, scored, families)


def family_name(family: str) -> str:
    """Return what the worst case over a family is called in place of a setting; no setting is called so.

    >>> family_name("haze")
    'Any haze'
    """
    return f"{ANY} {family}"


AtLevels = Mapping[str, Events | Outcomes]


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """One setting at all levels: on its own frames, without faults, and beside the baseline."""

    setting: str
    group: str
    outcomes: AtLevels
    unfaulted: AtLevels
    compared: tuple[AtLevels, ...]
    counted: NDArray[np.bool_]
    quarantined: int
    faults: int
    tested: int


@dataclass(frozen=True, eq=False)
class _WorstCase:
    """Several settings, the baseline first, at all levels on the frames that could be used under each."""

    name: str
    group: str
    settings: tuple[str, ...]
    compared: tuple[AtLevels, ...]
    counted: NDArray[np.bool_]


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
        self._placed: tuple[str, PlacedDetections] | None = None
        self._evaluated_at: dict[tuple[str, bytes], AtLevels] = {}

    def rows(self) -> Iterator[ScoredCurve]:
        evaluated = [self._evaluated(setting, group) for setting, group in self.store.groups.items()]
        worst = list(self._worst_cases())
        for level in evaluated[0].outcomes:
            counts = _Counts(level, self._chosen(level, evaluated, worst))
            sensitivity = self.sensitivity
            if counts.chosen is not None:
                sensitivity = self.sensitivity.at(self.every[counts.chosen])
            scored = [self._scored(one, counts, sensitivity) for one in evaluated]
            yield from scored
            for case in worst:
                yield self._worst(case, scored, counts, sensitivity)

    def _evaluated(self, setting: str, group: str) -> _Evaluated:
        answers = self.detections.settings[setting].answers
        tested = answers.status[self.store.frames.test[answers.frame]]
        counted = self.detections.counted(setting)
        both = counted & self.detections.counted(self.baseline)
        return _Evaluated(
            setting,
            group,
            self._outcomes(setting, counted),
            self._outcomes(setting, counted & self.detections.fault_free(setting)),
            (self._outcomes(self.baseline, both), self._outcomes(setting, both)),
            counted,
            quarantined=int((tested == QUARANTINED).sum()),
            faults=int((tested == FAULT).sum()),
            tested=len(tested),
        )

    def _worst_cases(self) -> Iterator[_WorstCase]:
        groups = self.store.groups
        for name, covered in WORST.items():
            settings = [setting for setting, group in groups.items() if group in covered]
            if settings != [self.baseline]:  # the worst case of nothing is no figure
                yield self._worst_case(name, "mild" if name == ANY_MILD else "any", settings)
        for family, settings in self.store.run.families.items():
            if len(settings) > 1:
                yield self._worst_case(family_name(family), FAMILY, [self.baseline, *settings])

    def _worst_case(self, name: str, group: str, settings: Sequence[str]) -> _WorstCase:
        common = np.logical_and.reduce([self.detections.counted(setting) for setting in settings])
        compared = tuple(self._outcomes(setting, common) for setting in settings)
        return _WorstCase(name, group, tuple(settings), compared, common)

    def _chosen(
        self, level: str, evaluated: Sequence[_Evaluated], worst: Sequence[_WorstCase]
    ) -> NDArray[np.int64] | None:
        """Return which of all thresholds the curves of a level need; None where it has the shared ones."""
        groups = [
            *((one.outcomes,) for one in evaluated),
            *(one.compared for one in evaluated),
            *((case.compared[0],) for case in worst),
            *(case.compared for case in worst),
        ]
        compared = [events for group in groups if (events := _events([part[level] for part in group]))]
        if len(compared) < len(groups):
            return None
        shared = len(self.every) - np.searchsorted(self.every[::-1], self.shared, side="left") - 1
        return chosen_thresholds(
            len(self.every),
            [*compared, *_at_0(compared)],
            self.fpr_max,
            keep=np.unique(np.maximum(shared, 0)),
        )

    def _scored(self, one: _Evaluated, counts: _Counts, sensitivity: Sensitivity) -> ScoredCurve:
        outcome, unfaulted = counts.of(one.outcomes), counts.of(one.unfaulted)
        compared = tuple(counts.of(part) for part in one.compared)
        curve = self._curve(outcome, sensitivity)
        value = _area(curve)
        status: Status = "insufficient" if value is None else "ok"
        if one.quarantined > self.budget * one.tested:
            status = "incomplete"
        curves = [self._curve(part, sensitivity) for part in compared]
        robust = _worst_area(curves)
        row = Row(
            self.sut,
            counts.level,
            one.setting,
            one.group,
            value,
            _share(robust, _area(curves[0])),
            status,
            robust_area=robust,
            area_at_0=self._area_at_0(sensitivity, outcome),
            robust_area_at_0=self._area_at_0(sensitivity, *compared),
            least_safety=_least(curve.safety),
            least_efficiency=_least(curve.efficiency),
            area_without_faults=_area(self._curve(unfaulted, sensitivity)),
            **self._rests_on(outcome, one.counted),
            quarantined=one.quarantined,
            faults=one.faults,
        )
        return ScoredCurve(row, sensitivity, curve, outcome, compared, (one.setting,))

    def _worst(
        self, case: _WorstCase, scored: Sequence[ScoredCurve], counts: _Counts, sensitivity: Sensitivity
    ) -> ScoredCurve:
        members = [one.row for one in scored if one.row.setting in case.settings]
        statuses = {row.status for row in members}
        status: Status = next((s for s in ("insufficient", "incomplete") if s in statuses), "ok")
        compared = tuple(counts.of(part) for part in case.compared)
        curves = [self._curve(part, sensitivity) for part in compared]
        value = _worst_area(curves)
        if value is None or any(row.area is None for row in members):
            row = Row(self.sut, counts.level, case.name, case.group, None, None, status)
            return ScoredCurve(row, sensitivity, None, None)
        worst = _worst_curve(curves)
        at_0 = self._area_at_0(sensitivity, *compared)
        row = Row(
            self.sut,
            counts.level,
            case.name,
            case.group,
            value,
            _share(value, _area(curves[0])),
            status,
            robust_area=value,
            area_at_0=at_0,
            robust_area_at_0=at_0,
            least_safety=_least(worst.safety),
            least_efficiency=_least(worst.efficiency),
            **self._rests_on(compared[0], case.counted),
            quarantined=int((self.store.frames.test & ~case.counted).sum()),
            faults=sum(row.faults for row in members),
        )
        return ScoredCurve(row, sensitivity, worst, None, compared, case.settings)

    def _rests_on(self, outcomes: Outcomes, counted: NDArray[np.bool_]) -> dict[str, Any]:
        """Return how much there is behind a figure."""
        return {
            "logs": int(np.count_nonzero(outcomes.exposure + outcomes.truths)),
            "frames": int(counted.sum()),
            "truths": int(outcomes.truths.sum()),
            "negative_frames": int((counted & ~self.positive[self.store.frames.log]).sum()),
            "logs_left_out": dict(outcomes.left_out),
        }

    def _outcomes(self, setting: str, counted: NDArray[np.bool_]) -> AtLevels:
        """Return all levels on the frames that count, worked out once for all that share them."""
        key = (setting, counted.tobytes())
        if key not in self._evaluated_at:
            self._evaluated_at[key] = self._evaluate(setting, counted)
        return self._evaluated_at[key]

    def _evaluate(self, setting: str, counted: NDArray[np.bool_]) -> AtLevels:
        """Evaluate all levels on the frames that count: at every threshold, or at the shared ones."""
        found: dict[str, Events | Outcomes] = {}
        matched = self.detections.settings[setting]
        for levels, thresholds in ((self.exact, self.every), (self.gridded, self.sensitivity.thresholds)):
            given = level_input(
                self.context, matched, thresholds, counted, place=lambda: self._place(setting)
            )
            for level in levels:
                found |= evaluate(level, given)
        if self.store.run.truth is not None and self.positive.all():
            found.pop(f"image/{ROC_B}", None)  # without labels nobody says that a log is free of targets
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


def _events(group: Sequence[Events | Outcomes]) -> tuple[Events, ...]:
    """Return what can be evaluated at every threshold; nothing where any of it cannot."""
    events = tuple(one for one in group if isinstance(one, Events))
    return events if len(events) == len(group) else ()


def _at_0(compared: Sequence[Sequence[Events]]) -> list[tuple[Events, ...]]:
    """Return the same events at tolerance 0, where they have one."""
    events = {id(one): one for group in compared for one in group}
    strict = {key: one.with_hits(AT_0) for key, one in events.items() if AT_0 in one.beside}
    return [tuple(strict[id(one)] for one in group) for group in compared if strict]


class _Counts:
    """Outcomes of one level at the thresholds that were chosen for it (None: they have the shared ones)."""

    def __init__(self, level: str, chosen: NDArray[np.int64] | None) -> None:
        self.level = level
        self.chosen = chosen
        self._outcomes: dict[int, Outcomes] = {}

    def of(self, at_levels: AtLevels) -> Outcomes:
        """Return the outcomes of this level; the same object for the same events."""
        part = at_levels[self.level]
        if id(part) not in self._outcomes:
            self._outcomes[id(part)] = part if isinstance(part, Outcomes) else self._count(part)
        return self._outcomes[id(part)]

    def _count(self, events: Events) -> Outcomes:
        if self.chosen is None:
            raise TypeError("events need thresholds to be counted at")
        return events.at(self.chosen).outcomes(len(self.chosen))


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
    return min(share, 1.0) if math.isfinite(share) else None

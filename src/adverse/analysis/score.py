"""From detections to the curves of every SUT, level and setting, with their area and robustness."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import Source, SutDetections
from adverse.curves.curve import area
from adverse.curves.robustness import Points, robustness_roc
from adverse.levels.context import Context, PlacedDetections, evaluate_all, level_input
from adverse.levels.outcomes import Outcomes, Sensitivity, positive_logs
from adverse.plugins import Plugin
from adverse.store.read import Store
from adverse.store.tables import FAULT, QUARANTINED

Status = Literal["ok", "incomplete", "insufficient"]
ANY, ANY_MILD = "Any", "AnyMild"


@dataclass(frozen=True)
class Row:
    """One figure; `area` and `robustness` are None where they are not defined.

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
    area_exact: float | None = None
    robustness_exact: float | None = None
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
    """A row with the curve and the per-log outcomes behind it; None for worst cases over settings."""

    row: Row
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


class _Scoring:
    """The figures of one SUT."""

    def __init__(
        self, store: Store, detections: SutDetections, context: Context, levels: Sequence[Plugin]
    ) -> None:
        self.store = store
        self.detections = detections
        self.sut = detections.sut
        self.levels = levels
        self.sensitivity = detections.sensitivity
        self.fpr_max = store.run.fpr_max
        self.budget = store.run.quarantine_budget
        self.baseline = detections.baseline
        self.context = context
        self.positive = positive_logs(store.truth, store.frames)
        self._placed: tuple[str, PlacedDetections] | None = None
        self._baselines: dict[bytes, dict[str, Outcomes]] = {}

    def rows(self) -> Iterator[ScoredCurve]:
        by_level: dict[str, list[ScoredCurve]] = {}
        for setting, group in self.store.groups.items():
            for scored in self._setting(setting, group):
                by_level.setdefault(scored.row.level, []).append(scored)
        for level, found in by_level.items():
            yield from found
            for name, groups in ((ANY_MILD, ("mild",)), (ANY, ("mild", "severe"))):
                yield self._worst(level, name, found, groups)

    def _setting(self, setting: str, group: str) -> Iterator[ScoredCurve]:
        answers = self.detections.settings[setting].answers
        tested = answers.status[self.store.frames.test[answers.frame]]
        quarantined = int((tested == QUARANTINED).sum())
        faults = int((tested == FAULT).sum())
        counted = self.detections.counted(setting)
        outcomes = self._outcomes(setting, counted)
        unfaulted = (
            self._outcomes(setting, counted & self.detections.fault_free(setting)) if faults else outcomes
        )
        base = self._baseline(counted & self.detections.counted(self.baseline))
        for level, outcome in outcomes.items():
            curve, plain = self._curve(outcome), self._curve(base[level])
            value = _area(curve)
            status: Status = "insufficient" if value is None else "ok"
            if quarantined > self.budget * len(tested):
                status = "incomplete"
            robust = _worst_area([plain, curve])
            row = Row(
                self.sut,
                level,
                setting,
                group,
                value,
                _share(robust, _area(plain)),
                status,
                robust_area=robust,
                area_without_faults=_area(self._curve(unfaulted[level])),
                logs=int(np.count_nonzero(outcome.exposure + outcome.truths)),
                frames=int(counted.sum()),
                truths=int(outcome.truths.sum()),
                negative_frames=int((counted & ~self.positive[self.store.frames.log]).sum()),
                quarantined=quarantined,
                faults=faults,
                logs_left_out=dict(outcome.left_out),
            )
            yield ScoredCurve(row, curve, outcome)

    def _worst(self, level: str, name: str, found: list[ScoredCurve], groups: tuple[str, ...]) -> ScoredCurve:
        chosen = [scored for scored in found if scored.row.group in ("baseline", *groups)]
        group = "mild" if groups == ("mild",) else "any"
        statuses = {scored.row.status for scored in chosen}
        status: Status = next((s for s in ("insufficient", "incomplete") if s in statuses), "ok")
        curves = [scored.curve for scored in chosen if scored.curve is not None]
        if any(scored.row.area is None for scored in chosen):
            return ScoredCurve(Row(self.sut, level, name, group, None, None, status), None, None)
        worst = robustness_roc(curves)
        value = _area(worst)
        whole = found[0].row.area
        row = replace(
            found[0].row,  # its counts: logs, frames, truths
            setting=name,
            group=group,
            area=value,
            robustness=_share(value, whole),
            status=status,
            robust_area=value,
            area_without_faults=None,
            quarantined=max(scored.row.quarantined for scored in chosen),
            faults=sum(scored.row.faults for scored in chosen),
        )
        return ScoredCurve(row, worst, None)

    def _baseline(self, counted: NDArray[np.bool_]) -> dict[str, Outcomes]:
        """Return the baseline's outcomes on the frames that count, for all settings that share them."""
        key = counted.tobytes()
        if key not in self._baselines:
            self._baselines[key] = self._outcomes(self.baseline, counted)
        return self._baselines[key]

    def _outcomes(self, setting: str, counted: NDArray[np.bool_]) -> dict[str, Outcomes]:
        """Return the outcomes of all levels on the frames that count."""
        matched = self.detections.settings[setting]
        given = level_input(
            self.context,
            matched,
            self.sensitivity.thresholds,
            counted,
            place=lambda: self._place(setting),
        )
        return evaluate_all(self.levels, given)

    def _place(self, setting: str) -> PlacedDetections:
        """Return the places of a setting's detections, those of the last setting asked for at no cost."""
        if self._placed is None or self._placed[0] != setting:
            self._placed = (setting, self.context.place(self.detections.settings[setting].answers))
        return self._placed[1]

    def _curve(self, outcomes: Outcomes) -> Points:
        return Points(self.sensitivity.levels, outcomes.safety(), outcomes.efficiency(self.fpr_max))


def _area(curve: Points) -> float | None:
    if np.isnan(curve.safety).any() or np.isnan(curve.efficiency).any():
        return None
    return area(curve.safety, curve.efficiency)


def _worst_area(curves: list[Points]) -> float | None:
    if any(_area(curve) is None for curve in curves):
        return None
    return _area(robustness_roc(curves))


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None or whole == 0:
        return None
    share = part / whole
    return share if math.isfinite(share) else None

"""Margins: how far each annotated object is from being lost, along every condition.

An object has a margin where the SUT finds it on the clean image, at its operating point: the weakest strength
at which it is lost, and how much of the change there can be seen. From margins follows a survival curve: the
share of those found on clean images that are still found at every strength up to this one (Kaplan and Meier,
J. Am. Stat. Assoc. 53, 1958, where frames could not be had at some strength).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adverse.analysis.confidence import resamples_of
from adverse.analysis.detection_rates import best_scores
from adverse.analysis.detections import SutDetections, sut_detections
from adverse.analysis.objects import Changes, measured_changes
from adverse.analysis.plain_metrics import operating_threshold
from adverse.analysis.slices import DISTANCES_M, HEIGHTS_PX, distances_m
from adverse.curves.bootstrap import Resamples
from adverse.curves.interval import Interval
from adverse.curves.margin_search import (
    FOUND,
    LOST,
    UNKNOWN,
    UNUSABLE,
    Known,
    Margins,
    Method,
    bisected_margins,
    margins,
)
from adverse.curves.quantities import Quantity, Ratios, Recall
from adverse.curves.studentized import intervals
from adverse.errors import StudyError
from adverse.levels.outcomes import positive_logs
from adverse.plugins import Registry
from adverse.requirements.conditions import STEPS, Condition, conditions_of, swept_conditions
from adverse.store.read import Store
from adverse.store.selection import SelectionKind
from adverse.store.tables import QUARANTINED
from adverse.study.spec import written_study
from adverse.types import Setting

PAGE = "docs/operation.md"
KIND: SelectionKind = "margins"


class MarginsSection(BaseModel):
    """The `margins:` section of a study."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    conditions: list[Any] = []
    steps: Annotated[int, Field(ge=2, le=100)] = STEPS
    method: Method = "ascend"


def read_margins(data: Mapping[str, Any] | None, *, where: str) -> MarginsSection:
    """Check the margins: section of a study; without one, all mutations that have a strength are ascended."""
    try:
        return MarginsSection.model_validate(dict(data or {}))
    except ValidationError as error:
        first = error.errors()[0]
        raise StudyError(
            "the margins: section cannot be read",
            where=f"{where}.{'.'.join(map(str, first['loc']))}",
            got=f"{first['input']!r}"[:200],
            wanted=f"{first['msg']}; keys are {', '.join(MarginsSection.model_fields)}",
            fix=f"Correct it; {PAGE} shows one.",
        ) from None


@dataclass(frozen=True)
class SurvivalPoint:
    """Of those found on clean images, the share still found at every step up to this one."""

    step: int
    at_risk: int
    """How many were still found before this step, and could be looked at here."""
    lost: int
    """How many are lost at this step."""
    share: float | None
    interval: Interval | None


@dataclass(frozen=True, eq=False)
class ConditionMargins:
    """The margins of one SUT under one condition: of the true objects `people` (P,), rows of the truth."""

    sut: str
    condition: Condition
    people: NDArray[np.int64]
    margins: Margins
    visual_change: NDArray[np.float64]
    """What can be seen of the change at which each is lost (P,); NaN: it was not lost, or not measured."""
    survival: tuple[SurvivalPoint, ...]
    looked_at: int
    """Frames that were shown to the SUT under the condition, each strength counted."""
    sweep: int
    """What a sweep of all strengths on the frames with anybody takes."""

    def of(self, inside: NDArray[np.bool_]) -> ConditionMargins:
        """Return the margins of a part of the people (a mask (P,)), without intervals."""
        part = self.margins._replace(at_risk=self.margins.at_risk & inside, lost=self.margins.lost & inside)
        log = np.zeros(len(self.people), np.int64)
        curve = survival_curve(part, len(self.condition.values), log, 1, None)
        return replace(self, margins=part, survival=tuple(curve))

    def quantile(self, share: float) -> int | None:
        """Return the first step at which no more than a share is still found; None: at no step."""
        return next((p.step for p in self.survival if p.share is not None and p.share <= share), None)


class RunMargins:
    """The margins of a run: of a search for them, or of one that has several strengths of a mutation."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store, self._registry = store, registry
        truth, frames = store.truth, store.frames
        usable = (frames.test & store.truth_known)[truth.frame] & ~truth.ignore
        self.people: NDArray[np.int64] = np.flatnonzero(usable)

    @cached_property
    def section(self) -> MarginsSection:
        """How margins were searched for; of a run of everything they are exact."""
        if self.store.run.selection is None:
            return MarginsSection()
        study = written_study(self.store.folder.study)
        return read_margins(study.margins, where=str(self.store.folder.study))

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions that were searched; of a run of everything, mutations in several strengths."""
        if self.store.run.selection is None:
            return swept_conditions(self.store.run.mutations, self._registry)
        where = str(self.store.folder.study)
        return conditions_of(self.section, self.store.run.mutations, self._registry, where=where)

    @cached_property
    def _changes(self) -> Changes:
        return measured_changes(self.store)

    @cached_property
    def distance_m(self) -> NDArray[np.float64]:
        """How far away each of the people is (P,); NaN where that is not known."""
        return distances_m(self.store)[self.people].astype(np.float64)

    @cached_property
    def height_px(self) -> NDArray[np.float64]:
        """How high each of the people is in the image (P,)."""
        boxes = self.store.truth.boxes[self.people]
        height: NDArray[np.float64] = boxes[:, 3] - boxes[:, 1]
        return height

    @cached_property
    def names(self) -> list[str]:
        """What tells the people apart, whatever else is in the data: frame and place in it."""
        truth, ids = self.store.truth, self.store.frames.ids
        places = zip(truth.frame[self.people].tolist(), truth.place[self.people].tolist(), strict=True)
        return [f"{ids[frame]} {place}" for frame, place in places]

    def known(self, detections: SutDetections, condition: Condition) -> Known:
        """Return what is known of the people at every step of a condition (P, K + 1)."""
        settings = [detections.baseline, *(setting.id for setting in condition.settings)]
        threshold = operating_threshold(self.store, detections).score
        truth, known = self.store.truth, np.full((len(self.people), len(settings)), UNKNOWN, np.int8)
        for step, setting in enumerate(settings):
            matched = detections.settings.get(setting)
            if matched is None:
                continue
            status = np.full(len(self.store.frames.ids), -1, np.int8)
            status[matched.answers.frame] = matched.answers.status
            status = status[truth.frame[self.people]]
            found = best_scores(matched, len(truth.frame))[self.people] >= threshold  # NaN: not found
            seen = np.where(status == QUARANTINED, UNUSABLE, np.where(found, FOUND, LOST))
            known[:, step] = np.where(status >= 0, seen, UNKNOWN)
        return known

    def of_sut(self, sut: str) -> list[ConditionMargins]:
        """Return the margins of a SUT under every condition."""
        detections = sut_detections(self.store, sut)
        return [self._of_condition(detections, condition) for condition in self.conditions]

    def _of_condition(self, detections: SutDetections, condition: Condition) -> ConditionMargins:
        known = self.known(detections, condition)
        found = margins(known) if self.section.method == "ascend" else bisected_margins(known)
        truth, ids = self.store.truth, self.store.frames.ids
        seen = np.full(len(self.people), np.nan)
        for row in np.flatnonzero(found.lost).tolist():
            setting = condition.settings[int(found.step[row]) - 1].id
            seen[row] = self._changes.get((setting, ids[int(truth.frame[self.people[row]])]), np.nan)
        log = self.store.frames.log[truth.frame[self.people]]
        steps = len(condition.settings)
        survival = survival_curve(found, steps, log, len(self.store.frames.logs), self._resamples)
        answered = [detections.settings.get(setting.id) for setting in condition.settings]
        looked_at = sum(len(one.answers.frame) for one in answered if one is not None)
        shown = len(np.unique(truth.frame[self.people]))
        return ConditionMargins(
            detections.sut, condition, self.people, found, seen, tuple(survival), looked_at, steps * shown
        )

    @cached_property
    def _resamples(self) -> Resamples | None:
        count = self.store.run.bootstrap
        if not count:
            return None
        return resamples_of(self.store, positive_logs(self.store.truth, self.store.frames).tolist(), count)

    def rows(self, found: Sequence[ConditionMargins]) -> list[dict[str, Any]]:
        """Return a row for each person and condition, as CSV and JSON hold it."""
        truth, frames = self.store.truth, self.store.frames
        rows = []
        for one in found:
            for number, person in enumerate(self.people.tolist()):
                frame, step = int(truth.frame[person]), int(one.margins.step[number])
                lost = bool(one.margins.lost[number])
                rows.append(
                    {
                        "sut": one.sut,
                        "condition": one.condition.name,
                        "option": one.condition.option,
                        "log": frames.logs[int(frames.log[frame])],
                        "frame": frames.ids[frame],
                        "object": int(truth.place[person]),
                        "label": self.store.targets[int(truth.labels[person])],
                        "distance_m": _number(self.distance_m[number]),
                        "height_px": _number(self.height_px[number]),
                        "found_clean": bool(one.margins.at_risk[number]),
                        "lost": lost,
                        "lost_at_step": step if lost else None,
                        "lost_at": one.condition.values[step - 1] if lost else None,
                        "visual_change": _number(one.visual_change[number]),
                        "found_to_step": step - 1 if one.margins.at_risk[number] else None,
                    }
                )
        return rows


def survival_curve(
    found: Margins, steps: int, log: NDArray[np.int64], logs: int, resamples: Resamples | None
) -> list[SurvivalPoint]:
    """Return the share still found up to every step, from 0 on; intervals from resampled logs.

    `log` (P,) is that of each object. Where somebody was not seen as far as a step, the ends of the interval
    are those of the two extremes: all of these are lost by then, and none.
    """

    def by_log(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(log[mask], minlength=logs).astype(np.float64)

    risk = by_log(found.at_risk)
    wanted: dict[str, Quantity] = {}
    shares: list[tuple[int, int, float | None]] = []
    share: float | None = 1.0 if risk.any() else None
    for step in range(steps + 1):
        lost = int((found.lost & (found.step == step)).sum()) if step else 0
        there = found.at_risk & (found.lost & (found.step >= step) | ~found.lost & (found.step > step))
        number = int(there.sum())
        if share is not None and step:
            share = share * (1 - lost / number) if number else 0.0 if share == 0 else None
        shares.append((number, lost, share))
        if share is not None and step:
            known = by_log(found.at_risk & (found.step > step))
            at_most = by_log(found.at_risk & ~(found.lost & (found.step <= step)))
            for name, alive in (("low", known), ("high", at_most)):
                wanted[f"{name} {step}"] = Recall(Ratios(alive[:, None], risk, alive[:, None], risk))
    ends = intervals(wanted, resamples) if resamples is not None and wanted else {}
    return [
        SurvivalPoint(step, number, lost, share, _between(share, ends, step))
        for step, (number, lost, share) in enumerate(shares)
    ]


def _between(share: float | None, ends: Mapping[str, Interval], step: int) -> Interval | None:
    if share is None or f"low {step}" not in ends:
        return None
    low, high = ends[f"low {step}"], ends[f"high {step}"]
    least, most = (None, None) if low.low is None or high.high is None else (low.low, high.high)
    return Interval(share, least, most, low.confidence, low.method, low.logs, low.status, low.why)


def step_of(condition: Condition, setting: Setting) -> int | None:
    """Return the first step at least as strong as a setting of a condition; None: it is beyond all steps."""
    value = float(setting.steps[0].options[condition.option])
    rising = condition.values[-1] > condition.values[0]
    as_strong = (one >= value if rising else one <= value for one in condition.values)
    return next((step for step, reached in enumerate(as_strong, start=1) if reached), None)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


PARTS: Mapping[str, tuple[float, ...]] = {"distance_m": DISTANCES_M, "height_px": HEIGHTS_PX}
"""What people are told apart by, and its edges."""

"""What the robot does at the operating point, as rules ask for it: violations, and stops in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from adverse.analysis.closed_loop import LEVEL, DrivenSettings, closed_loop_rate, drive_settings
from adverse.analysis.detections import sut_detections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.analysis.score import WORST
from adverse.curves.interval import Interval
from adverse.errors import suggestion
from adverse.levels.context import Context, run_context
from adverse.requirements.rules import Rule
from adverse.store.read import Store
from adverse.text import setting_id

BASELINE = "baseline"
TOO_FEW = "more frames could not be used than quarantine_budget allows"


class ClosedLoopFigure(NamedTuple):
    """A share of logs: at which level, under which setting ("": given conditions), and any doubt about it."""

    level: str
    setting: str
    interval: Interval | None
    doubt: str = ""


class ClosedLoopFigures:
    """The closed loop of a run at the operating points of its SUTs; each is driven once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._driven = cache(self._drive)

    @cached_property
    def _context(self) -> Context:
        return run_context(self.store)

    def _drive(self, sut: str) -> list[DrivenSettings]:
        detections = sut_detections(self.store, sut)
        threshold = np.array([operating_threshold(self.store, detections).score], np.float32)
        return drive_settings(self.store, detections, self._context, threshold)

    def figures(self, rule: Rule, sut: str) -> Iterator[ClosedLoopFigure]:
        """Yield the figures of a rule on one SUT: for each level, and each setting that it covers."""
        wanted, level = covered(self.store, rule), rule.level or LEVEL
        unknown = [name for chances in wanted.values() for name in chances if name not in self.store.groups]
        if LEVEL not in self.store.run.levels:
            yield ClosedLoopFigure(level, rule.setting or "", None, f"the run did not evaluate level {LEVEL}")
        elif unknown:
            close = suggestion(unknown[0], list(self.store.groups)).partition(" Known")[0]
            why = f"the run has no mutation {unknown[0]}" + (f". {close}" if close.startswith("Did") else "")
            yield ClosedLoopFigure(level, rule.setting or "", None, why)
        else:
            yield from self._of_levels(rule, sut, wanted)

    def _of_levels(
        self, rule: Rule, sut: str, wanted: Mapping[str, Mapping[str, float]]
    ) -> Iterator[ClosedLoopFigure]:
        found = [one for one in self._driven(sut) if rule.level in (None, LEVEL, one.level)]
        if not found:
            yield ClosedLoopFigure(rule.level or LEVEL, rule.setting or "", None, "the run has no such truth")
        for driven in found:
            for setting, chances in wanted.items():
                interval = closed_loop_rate(
                    driven.settings, rule.measure, chances, confidence=self.store.confidence
                )
                lost = TOO_FEW if driven.incomplete & chances.keys() else ""
                yield ClosedLoopFigure(driven.level, setting, interval, lost)


def covered(store: Store, rule: Rule) -> dict[str, dict[str, float]]:
    """Return what a rule is about, by setting: the chance of each setting; "" for its conditions."""
    if rule.conditions is not None:
        return {"": {_id(name): chance for name, chance in rule.conditions.items() if chance > 0}}
    groups = WORST.get(rule.setting or "")
    names = (
        [_id(rule.setting or BASELINE)]
        if groups is None
        else [name for name, group in store.groups.items() if group in groups]
    )
    return {name: {name: 1.0} for name in names}


def _id(name: str) -> str:
    return setting_id("clean" if name == BASELINE else name)

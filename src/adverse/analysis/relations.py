"""Metamorphic relations of a run: how often each is violated by each SUT and setting, and where.

The rate of violations is a rate over logs and has the interval of rates, so that none seen in few logs is not
none at all. Thresholds are those of `plain_metrics`: the study's operating point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adverse.analysis.confidence import plain_interval
from adverse.analysis.detections import SutDetections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.analysis.score import Status
from adverse.curves.bootstrap import Resamples
from adverse.curves.interval import korn_graubard
from adverse.levels.context import Context, LevelInput, level_input
from adverse.plugins import Plugin, Registry
from adverse.relations.relation import Checks, RelationInput, evaluate_relation
from adverse.store.read import Store
from adverse.store.run import Run
from adverse.types import Setting

SHOWN = 3
"""Violations of a relation by a SUT under a setting that are kept to be shown, each of another log."""
STRONGER: Mapping[str, int] = {"severity": 1, "visibility_m": -1}
"""Options that order the settings of a mutation although its strength is another or none, and which way."""
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class RunRelations:
    """The relations that a run names, and for each of its settings those that are weaker, weakest first."""

    relations: tuple[Plugin, ...]
    weaker: Mapping[str, tuple[str, ...]]


def run_relations(run: Run, relations: Sequence[Plugin], registry: Registry) -> RunRelations:
    """Return the relations of a run, with the order of its settings by strength."""
    return RunRelations(tuple(relations), weaker_settings(run.mutations, registry) if relations else {})


def weaker_settings(settings: Sequence[Setting], registry: Registry) -> dict[str, tuple[str, ...]]:
    """Return the settings that differ from each one in being weaker alone, weakest first.

    Brighter and darker are two ways to be stronger, so neither is weaker than the other.
    """
    series: dict[tuple[Any, ...], list[tuple[float, str]]] = {}
    places: dict[str, tuple[tuple[Any, ...], float]] = {}
    known = {plugin.name: plugin for plugin in registry.all("mutation")}
    for setting in settings:
        plugin = known.get(setting.family)
        ordered = None if plugin is None else _strength(setting, plugin)
        if ordered is None:
            continue
        option, side, amount = ordered
        rest = tuple(
            (name, repr(value)) for name, value in setting.steps[0].options.items() if name != option
        )
        key = (setting.family, setting.coherent, setting.drift, option, side, rest)
        series.setdefault(key, []).append((amount, setting.id))
        places[setting.id] = key, amount
    return {
        name: tuple(other for less, other in sorted(series[key]) if less < amount)
        for name, (key, amount) in places.items()
    }


def _strength(setting: Setting, plugin: Plugin) -> tuple[str, int, float] | None:
    """Return the option that orders a setting of one step, on which side of no change it is, and how far."""
    options, declared = setting.steps[0].options, plugin.searchable
    if declared is not None and declared.option in options:
        off = float(options[declared.option]) - declared.none
        return declared.option, int(np.sign(off)), abs(off)
    for option, way in STRONGER.items():
        if option in options:
            return option, 1, way * float(options[option])
    return None


def relation_rows(
    store: Store,
    detections: SutDetections,
    context: Context,
    named: RunRelations,
    statuses: Mapping[str, Status],
    resamples: Resamples | None,
) -> tuple[Rows, Rows]:
    """Return how often each relation is violated under the settings it is about, and violations to show."""
    threshold = np.array([operating_threshold(store, detections).score], np.float32)
    inputs = {
        setting: level_input(context, matched, threshold, detections.counted(setting))
        for setting, matched in detections.settings.items()
    }
    rows: Rows = []
    shown: Rows = []
    for relation in named.relations:
        every = {
            setting.id: evaluate_relation(relation, _input(inputs, detections.baseline, setting.id, named))
            for setting in _about(store.run, relation)
        }
        checks = {setting: found for setting, found in every.items() if found is not None}
        rows += _rates(store, detections, relation, checks, statuses, resamples)
        for setting, found in checks.items():
            beside = _beside(relation, setting, detections.baseline, named)
            shown += _violations(store, detections, relation, setting, found, beside, float(threshold[0]))
    return rows, shown


def _about(run: Run, relation: Plugin) -> list[Setting]:
    """Return the settings that a relation is checked under."""
    mark = relation.relation
    names, clean = (mark.mutations, mark.clean) if mark else ((), False)
    mutated = [setting for setting in run.mutations if not names or setting.family in names]
    return [*([run.baseline] if clean else []), *mutated]


def _input(inputs: Mapping[str, LevelInput], clean: str, setting: str, named: RunRelations) -> RelationInput:
    weaker = tuple(inputs[name] for name in named.weaker.get(setting, ()) if name in inputs)
    return RelationInput(inputs[clean], inputs[setting], weaker)


def _rates(
    store: Store,
    detections: SutDetections,
    relation: Plugin,
    checks: Mapping[str, Checks],
    statuses: Mapping[str, Status],
    resamples: Resamples | None,
) -> Rows:
    frames = store.frames
    totals: dict[str, tuple[Any, Any]] = {}
    for setting, found in checks.items():
        log = frames.log[found.frame]
        logs = len(frames.logs)
        violated = np.bincount(log, ~found.holds, minlength=logs).astype(np.float64)
        totals[setting] = violated, np.bincount(log, minlength=logs).astype(np.float64)
    rows = []
    for setting, (part, whole) in totals.items():
        rate = float(part.sum() / whole.sum()) if whole.any() else None
        row: dict[str, Any] = {
            "sut": detections.sut,
            "relation": relation.name,
            "setting": setting,
            "group": store.groups[setting],
            "relation_violations": rate,
            "violated": int(part.sum()),
            "checks": int(whole.sum()),
            "logs": int(np.count_nonzero(whole)),
            "status": "insufficient" if rate is None else statuses.get(setting, "ok"),
        }
        if resamples is not None:
            sure = korn_graubard(part, whole, confidence=store.confidence) if whole.any() else None
            row["relation_violations_interval"] = plain_interval(sure)
        rows.append(row)
    return rows


def _beside(relation: Plugin, setting: str, clean: str, named: RunRelations) -> tuple[str, int]:
    """Return under which setting, and how many frames earlier, a violation is shown for comparison."""
    kind = relation.relation.beside if relation.relation else "clean"
    if kind == "before":
        return setting, 1
    weaker = named.weaker.get(setting, ())
    return (weaker[-1] if kind == "weaker" and weaker else clean), 0


def _violations(
    store: Store,
    detections: SutDetections,
    relation: Plugin,
    setting: str,
    checks: Checks,
    beside: tuple[str, int],
    threshold: float,
) -> Rows:
    """Return the violations that are worth a picture: the surest, each of another log."""
    frames = store.frames
    wrong = np.flatnonzero(~checks.holds)
    ties = [checks.boxes[wrong, column] for column in (3, 2, 1, 0)]
    order = wrong[np.lexsort((*ties, checks.frame[wrong], -checks.weight[wrong]))]
    first = set(np.unique(frames.log, return_index=True)[1].tolist())
    rows: Rows = []
    seen: set[int] = set()
    for at in order.tolist():
        frame = int(checks.frame[at])
        log = int(frames.log[frame])
        if log in seen:
            continue
        seen.add(log)
        rows.append(
            {
                "sut": detections.sut,
                "relation": relation.name,
                "setting": setting,
                "log": frames.logs[log],
                "frame": frames.ids[frame],
                "beside_setting": beside[0],
                "beside_frame": frames.ids[frame if frame in first else frame - beside[1]],
                "box": [round(float(value), 3) for value in checks.boxes[at]],
                "weight": float(checks.weight[at]),
                "threshold": threshold if np.isfinite(threshold) else None,
            }
        )
        if len(rows) == SHOWN:
            break
    return rows

"""Exact curves: every distinct score is a threshold, for the levels that say they can be evaluated so.

The shared grid of sensitivities makes SUTs comparable; the exact curve shows what lies between its points.
The closed loop is left to the grid: it would have to be driven once for every score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adverse.analysis.detections import SutDetections
from adverse.curves.curve import area
from adverse.errors import PluginError
from adverse.levels.context import Context, evaluate, level_input
from adverse.levels.match import MatchedDetections
from adverse.levels.outcomes import Events
from adverse.plugins import Plugin
from adverse.store.read import Store

EXACT = pa.schema(
    [
        *((name, pa.string()) for name in ("sut", "level", "setting")),
        *((name, pa.float64()) for name in ("threshold", "safety", "efficiency")),
    ]
)

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class ExactAreas:
    """The area of an exact curve and what is left of the baseline's; None where they are not defined."""

    area: float | None
    robustness: float | None


@dataclass(frozen=True)
class Exact:
    """The areas by (level, setting), and the points of the curves."""

    areas: dict[tuple[str, str], ExactAreas]
    points: pa.Table


def exact_curves(
    store: Store, detections: SutDetections, context: Context, levels: Sequence[Plugin]
) -> Exact:
    """Return the exact curves of a SUT at the levels that can be evaluated at every score."""
    fpr_max = store.run.fpr_max
    chosen = [level for level in levels if level.level is not None and level.level.exact]
    baseline = detections.settings[detections.baseline]
    areas: dict[tuple[str, str], ExactAreas] = {}
    tables = [EXACT.empty_table()]
    for setting, matched in detections.settings.items():
        counted = detections.counted(setting)
        own = thresholds_of(counted, matched)
        for level, curve in _curves(chosen, matched, context, own, counted, fpr_max).items():
            areas[level, setting] = ExactAreas(_area(curve), None)
            tables.append(_points(detections.sut, level, setting, own, curve))
        both = counted & detections.counted(detections.baseline)
        shared = thresholds_of(both, baseline, matched)
        plain = _curves(chosen, baseline, context, shared, both, fpr_max)
        for level, curve in _curves(chosen, matched, context, shared, both, fpr_max).items():
            worst = np.minimum(plain[level], curve)
            whole, part = _area(plain[level]), _area((worst[0], worst[1]))
            share = part / whole if part is not None and whole else None
            areas[level, setting] = ExactAreas(areas[level, setting].area, share)
    return Exact(areas, pa.concat_tables(tables))


def thresholds_of(counted: NDArray[np.bool_], *settings: MatchedDetections) -> NDArray[np.float32]:
    """Return infinity, where nothing is detected, and every score on the frames that count, falling."""
    scores = [matched.answers.scores[counted[matched.frame]] for matched in settings]
    return np.unique(np.concatenate([*scores, np.array([np.inf], np.float32)]))[::-1]


def _curves(
    levels: Sequence[Plugin],
    matched: MatchedDetections,
    context: Context,
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
    fpr_max: float,
) -> dict[str, Curve]:
    given = level_input(context, matched, thresholds, counted)
    curves = {}
    for level in levels:
        for name, events in evaluate(level, given).items():
            if not isinstance(events, Events):
                raise PluginError(
                    f"the level {level.name} is said to be exact, but returns no Events",
                    fix="Return Events, or take exact=True out of its decorator.",
                )
            curves[name] = events.curve(len(thresholds), fpr_max)
    return curves


def _area(curve: Curve) -> float | None:
    return None if np.isnan(curve).any() else area(*curve)


def _points(sut: str, level: str, setting: str, thresholds: NDArray[np.float32], curve: Curve) -> pa.Table:
    """Return the points at which the curve moves; between two of them it stays where it was."""
    safety, efficiency = curve
    moves = np.ones(len(thresholds), np.bool_)
    moves[1:] = (np.diff(safety) != 0) | (np.diff(efficiency) != 0)
    names = [pa.repeat(value, int(moves.sum())) for value in (sut, level, setting)]
    numbers = (thresholds.astype(np.float64), safety, efficiency)
    return pa.table([*names, *(column[moves] for column in numbers)], schema=EXACT)

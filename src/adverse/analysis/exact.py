"""Exact curves: every distinct score is a threshold, for the levels that judge images.

The shared grid of sensitivities makes SUTs comparable; the exact curve shows what lies between its points.
The closed loop is left to the grid: it would have to be driven once for every score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adverse.analysis.context import Context
from adverse.analysis.matched import JudgedSut
from adverse.curves.curve import area
from adverse.levels.image import Judged, image_events
from adverse.levels.outcomes import Events
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


def exact_curves(store: Store, one: JudgedSut, context: Context) -> Exact:
    """Return the exact curves of a SUT at the levels image, located and path."""
    fpr_max = store.run.fpr_max
    areas: dict[tuple[str, str], ExactAreas] = {}
    tables = [EXACT.empty_table()]
    for setting, judged in one.settings.items():
        counted = one.counted(setting)
        own = thresholds_of(counted, judged)
        for level, curve in _curves(store, judged, context, own, counted, fpr_max).items():
            areas[level, setting] = ExactAreas(_area(curve), None)
            tables.append(_points(one.sut, level, setting, own, curve))
        both = counted & one.counted(one.baseline)
        shared = thresholds_of(both, one.settings[one.baseline], judged)
        plain = _curves(store, one.settings[one.baseline], context, shared, both, fpr_max)
        for level, curve in _curves(store, judged, context, shared, both, fpr_max).items():
            worst = np.minimum(plain[level], curve)
            whole, part = _area(plain[level]), _area((worst[0], worst[1]))
            share = part / whole if part is not None and whole else None
            areas[level, setting] = ExactAreas(areas[level, setting].area, share)
    return Exact(areas, pa.concat_tables(tables))


def thresholds_of(counted: NDArray[np.bool_], *settings: Judged) -> NDArray[np.float32]:
    """Return infinity, where nothing is detected, and every score on the frames that count, falling."""
    scores = [one.answers.scores[counted[one.answers.frame[one.row]]] for one in settings]
    return np.unique(np.concatenate([*scores, np.array([np.inf], np.float32)]))[::-1]


def _curves(
    store: Store,
    judged: Judged,
    context: Context,
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
    fpr_max: float,
) -> dict[str, Curve]:
    events: dict[str, Events] = {}
    if "image" in store.run.levels:
        events |= image_events(judged, store.truth, store.frames, thresholds, counted)
    if context.levels:
        events |= context.events(context.seen(judged.answers), thresholds, counted)
    return {level: one.curve(len(thresholds), fpr_max) for level, one in events.items()}


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

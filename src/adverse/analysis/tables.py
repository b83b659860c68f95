"""The tables behind the figures: curves point by point, and the outcomes of every log."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adverse.analysis.score import ScoredCurve, SutScores
from adverse.curves.interval import interval_cells

CURVES = pa.schema(
    [
        *((name, pa.string()) for name in ("sut", "level", "setting", "group")),
        *((name, pa.float64()) for name in ("sensitivity", "threshold", "safety", "efficiency")),
        ("resolved", pa.bool_()),
    ]
)
SENSITIVITY = pa.schema(
    [
        ("sut", pa.string()),
        *((name, pa.float64()) for name in ("sensitivity", "threshold")),
        ("resolved", pa.bool_()),
    ]
)
OUTCOMES = pa.schema(
    [
        *((name, pa.string()) for name in ("sut", "level", "setting", "log")),
        ("truths", pa.int64()),
        ("hits", pa.list_(pa.int64())),
        ("exposure", pa.float64()),  # images, or at the loop level the truth's seconds
        ("cost", pa.list_(pa.float64())),  # false alarms, or the SUT's seconds
    ]
)


def curves_table(scores: SutScores) -> pa.Table:
    """Return the points of all curves of a SUT."""
    tables = [_curve(scored) for scored in scores.scored if scored.curve is not None]
    return pa.concat_tables(tables) if tables else CURVES.empty_table()


def sensitivity_table(scores: SutScores) -> pa.Table:
    """Return the shared sensitivities, and the threshold of each for a SUT."""
    shared = scores.sensitivity
    names = pa.repeat(scores.sut, len(shared.levels))
    columns = [names, shared.levels, shared.thresholds.astype(np.float64), shared.resolved]
    return pa.table(columns, schema=SENSITIVITY)


def outcomes_table(scores: SutScores) -> pa.Table:
    """Return what each log came to, at every threshold of the curve, where it says anything."""
    tables = [_outcomes(scored) for scored in scores.scored if scored.outcomes is not None]
    return pa.concat_tables(tables) if tables else OUTCOMES.empty_table()


RECALL, AGREEMENT = "recall", "agreement"


def names_of_agreement(rows: Sequence[Any]) -> list[Any]:
    """Return rows of a label-free run as its files have them: what is agreement is not called recall."""
    return [_named(row, RECALL, AGREEMENT) for row in rows]


def names_of_recall(rows: Sequence[Any]) -> list[Any]:
    """Return rows of a label-free run's files in the names that code has for them."""
    return [_named(row, AGREEMENT, RECALL) for row in rows]


def _named(row: Any, old: str, new: str) -> Any:
    """Return a row whose columns of one name, and their intervals, have another."""
    if not isinstance(row, Mapping):
        return row
    return {
        new + name.removeprefix(old) if name == old or name.startswith(f"{old}_") else name: value
        for name, value in row.items()
    }


def csv_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as CSV: intervals in cells of their own, other lists and dicts are left to summary.json."""
    rows = [flat_row(row) for row in rows]
    names = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(names), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def flat_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as the cells of a CSV file: intervals in cells of their own, lists and dicts left out."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith("_interval"):
            cells |= interval_cells(name.removesuffix("_interval"), value)
        elif not isinstance(value, list | dict):
            cells[name] = value
    return cells


def _curve(scored: ScoredCurve) -> pa.Table:
    curve, row = scored.curve, scored.row
    if curve is None:
        return CURVES.empty_table()
    size = len(curve.sensitivity)
    columns = [pa.repeat(value, size) for value in (row.sut, row.level, row.setting, row.group)]
    numbers = [curve.sensitivity, scored.sensitivity.thresholds, curve.safety, curve.efficiency]
    return pa.table([*columns, *numbers, scored.sensitivity.resolved], schema=CURVES)


def _outcomes(scored: ScoredCurve) -> pa.Table:
    row, found = scored.row, scored.outcomes
    if found is None:
        return OUTCOMES.empty_table()
    said = np.flatnonzero((found.truths > 0) | (found.exposure > 0))
    columns = [
        *(pa.repeat(value, len(said)) for value in (row.sut, row.level, row.setting)),
        pa.array([found.logs[index] for index in said], pa.string()),
        pa.array(found.truths[said], pa.int64()),
        _lists(found.hits[said].astype(np.int64)),
        pa.array(found.exposure[said], pa.float64()),
        _lists(found.cost[said]),
    ]
    return pa.table(columns, schema=OUTCOMES)


def _lists(values: NDArray[np.int64] | NDArray[np.float64]) -> pa.Array:
    """Return (N, K) numbers as N lists."""
    count, size = values.shape
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * size)
    return pa.ListArray.from_arrays(offsets, pa.array(values.ravel()))

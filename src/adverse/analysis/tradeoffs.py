"""Trade-off curves as results hold them: read back, compared at shared thresholds, and what they dominate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.thresholds import ROUNDING
from adverse.curves.curve import area
from adverse.store.read import Store
from adverse.store.tables import QUARANTINED, STATUSES

Array = NDArray[np.float64]
POINT = ("threshold", "sensitivity", "safety", "efficiency")
"""The columns of a curve's points."""


@dataclass(frozen=True, eq=False)
class TradeOff:
    """One curve: thresholds, falling, with the sensitivity, safety and efficiency of each, all (K,)."""

    name: str
    threshold: Array
    sensitivity: Array
    safety: Array
    efficiency: Array

    @property
    def defined(self) -> bool:
        """Whether the data could answer at every threshold."""
        return bool(np.isfinite([self.safety, self.efficiency]).all())

    def at(self, sensitivity: float) -> tuple[float, float] | None:
        """Return (efficiency, safety) at a sensitivity; None where it has none as low as that."""
        k = self.reached(sensitivity)
        return None if k is None else (float(self.efficiency[k]), float(self.safety[k]))

    def reached(self, sensitivity: float) -> int | None:
        """Return the lowest threshold that is no more sensitive; None if there is none."""
        within = np.flatnonzero(self.sensitivity <= sensitivity * (1 + ROUNDING))
        return int(within[-1]) if len(within) else None

    def places(self, thresholds: Array) -> NDArray[np.int64]:
        """Return the points at which the curve is at other thresholds (they must be among its own)."""
        above = np.searchsorted(-self.threshold, -thresholds, side="right") - 1
        return np.maximum(above, 0)

    def area(self) -> float:
        """Return the area of all that the curve dominates."""
        return area(self.safety, self.efficiency)

    def dominated(self) -> tuple[Array, Array]:
        """Return the corners of the staircase over all that the curve dominates: efficiency, safety.

        The area below it is the area of the curve.

        >>> falling = np.array([0.9, 0.4])
        >>> curve = TradeOff("", falling, falling, np.array([0.5, 1.0]), np.array([1.0, 0.25]))
        >>> [corners.tolist() for corners in curve.dominated()]
        [[0.0, 0.25, 0.25, 1.0], [1.0, 1.0, 0.5, 0.5]]
        """
        order = np.argsort(-self.efficiency, kind="stable")
        highest = np.maximum.accumulate(self.safety[order])
        efficiency, last = np.unique(self.efficiency[order][::-1], return_index=True)
        safety = highest[::-1][last]
        return np.concatenate([[0.0], np.repeat(efficiency, 2)[:-1]]), np.repeat(safety, 2)


def robust_curve(first: TradeOff, second: TradeOff) -> TradeOff:
    """Return the Robustness ROC of two curves of one SUT and the same frames.

    It is the worse of both at each shared threshold.
    """
    worst = (np.minimum(getattr(first, axis), getattr(second, axis)) for axis in ("safety", "efficiency"))
    return TradeOff("Robustness ROC", first.threshold, first.sensitivity, *worst)


def left_out_frames(store: Store) -> dict[tuple[str, str], frozenset[str]]:
    """Return the test frames that could not be used, by SUT and setting; those with none are not there.

    Curves of settings that left out different frames are about different people, and have no Robustness ROC.
    """
    path = store.result("frames.parquet")
    if path is None:
        return {}
    rows = pq.read_table(
        path, columns=["sut", "setting", "frame"], filters=[("status", "=", STATUSES[QUARANTINED])]
    )
    found: dict[tuple[str, str], set[str]] = {}
    for sut, setting, frame in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True):
        found.setdefault((sut, setting), set()).add(frame)
    return {key: frozenset(frames) for key, frames in found.items()}


class RunCurves(NamedTuple):
    """The curves of one SUT at one level that the data could answer, by setting, AnyMild and Any too."""

    level: str
    sut: str
    curves: dict[str, TradeOff]


def read_curves(store: Store) -> Iterator[RunCurves]:
    """Yield the curves of every level and SUT, level by level; nothing where there are no results."""
    path = store.result("curves.parquet")
    if path is None:
        return
    table = pq.read_table(path)
    levels, suts, settings = (_coded(table, name) for name in ("level", "sut", "setting"))
    numbers = [table[name].to_numpy() for name in POINT]
    for level, level_name in enumerate(levels.names):
        for sut, sut_name in enumerate(suts.names):
            mine = np.flatnonzero((levels.codes == level) & (suts.codes == sut))
            curves = {}
            for code in dict.fromkeys(settings.codes[mine].tolist()):
                rows = mine[settings.codes[mine] == code]
                curve = TradeOff(settings.names[code], *(column[rows] for column in numbers))
                if curve.defined:
                    curves[curve.name] = curve
            yield RunCurves(level_name, sut_name, curves)


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column of names as numbers (N,), in the order in which names first stand there."""

    names: list[str]
    codes: NDArray[np.int64]


def _coded(table: pa.Table, column: str) -> _Coded:
    coded = table[column].combine_chunks().dictionary_encode()
    return _Coded(coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64))

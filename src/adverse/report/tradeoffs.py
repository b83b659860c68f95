"""Which trade-off curves a report draws: for every level and SUT the baseline and the worst that happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.score import ANY, ANY_MILD
from adverse.report.figures import MARKED, Curve, curves_svg, style_of
from adverse.report.tables import Cell, Table
from adverse.report.words import shown
from adverse.study.store.read import Store


@dataclass(frozen=True)
class Figure:
    """The curves of one SUT at one level, and a legend that says what each line is."""

    level: str
    sut: str
    svg: str
    legend: tuple[tuple[str, str, str], ...]
    """Name, colour and dashes of each line."""
    numbers: Table


def figures(store: Store) -> Iterator[Figure]:
    """Yield for every level and SUT: the baseline, the worst cases, the worst mild and severe mutation."""
    path = store.result("curves.parquet")
    if path is None:
        return
    table = pq.read_table(path)
    levels, suts, settings = (_coded(table, name) for name in ("level", "sut", "setting"))
    numbers = [table[name].to_numpy() for name in ("sensitivity", "safety", "efficiency")]
    for level, level_name in enumerate(levels.names):
        for sut, sut_name in enumerate(suts.names):
            mine = np.flatnonzero((levels.codes == level) & (suts.codes == sut))
            drawn = {}
            for code in dict.fromkeys(settings.codes[mine].tolist()):
                rows = mine[settings.codes[mine] == code]
                curve = Curve(settings.names[code], *(column[rows] for column in numbers))
                if np.isfinite(curve.safety).all() and np.isfinite(curve.efficiency).all():
                    drawn[curve.name] = curve
            curves = list(_chosen(drawn, store.groups))
            if curves:
                legend = tuple((shown(curve.name), *style_of(n)[:2]) for n, curve in enumerate(curves))
                title = f"{sut_name} at level {level_name}"
                svg = curves_svg(title, curves)
                yield Figure(level_name, sut_name, svg, legend, _marked_table(title, curves))


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column of names as numbers (N,), in the order in which names first stand there."""

    names: list[str]
    codes: NDArray[np.int64]


def _coded(table: pa.Table, column: str) -> _Coded:
    found = table[column].combine_chunks().dictionary_encode()
    return _Coded(found.dictionary.to_pylist(), found.indices.to_numpy().astype(np.int64))


def _chosen(drawn: dict[str, Curve], settings: dict[str, str]) -> Iterator[Curve]:
    yield from (drawn[name] for name in (next(iter(settings)), ANY_MILD, ANY) if name in drawn)
    for group in ("mild", "severe"):
        mine = [drawn[name] for name, of in settings.items() if of == group and name in drawn]
        if mine:
            yield min(mine, key=lambda curve: float(np.mean(curve.safety * curve.efficiency)))


def _marked_table(title: str, curves: list[Curve]) -> Table:
    """Return safety and efficiency of each line at the marked sensitivities, for those who cannot see it."""
    data = [
        {"line": curve.name, "sensitivity": level, "efficiency": at[0], "safety": at[1]}
        for curve in curves
        for level in MARKED
        if (at := curve.at(level)) is not None
    ]
    rows = tuple(
        (
            Cell(shown(row["line"])),
            Cell(f"{row['sensitivity']:g}"),
            Cell(f"{row['safety']:.3f}"),
            Cell(f"{row['efficiency']:.3f}"),
        )
        for row in data
    )
    return Table(f"curves {title}", title, ("line", "sensitivity", "safety", "efficiency"), rows, tuple(data))

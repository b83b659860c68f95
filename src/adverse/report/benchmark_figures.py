"""The corruption benchmark as figures: performance over severity, and what is left over how far pixels move.

After figures 5 to 10 of Michaelis et al. (2019). Everything is drawn from the saved benchmark; how far a
corruption moves the pixels is measured on images of the run, which is the only thing that opens them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.mpc import GROUPS, SEVERITIES, Cell
from adverse.benchmarks.table import BenchTable, as_data, bench_table, cells_of
from adverse.errors import AdverseError, StudyError
from adverse.report.chart import Arrow, Axis, Chart, Dots, Line, Panel, PanelSize, round_ticks
from adverse.report.pictures import Looker
from adverse.report.tradeoffs import sut_style
from adverse.store.durable import storage_errors, write_file
from adverse.store.read import Store
from adverse.text import shown

TRAINED = "†"
"""Marks what a SUT was trained with."""
RMSE_IMAGES = 20
"""Images that the change of pixels is measured on, evenly spaced over those of the test split."""
SMALL = PanelSize(300, 200, 46, 10, 26, 40)
WIDE = PanelSize(640, 420, 54, 90, 26, 44)
ABREAST = 4
GROUP_COLOURS = {"noise": "#d55e00", "blur": "#0072b2", "weather": "#009e73", "digital": "#cc79a7"}
OTHERS = "#777777"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class PixelChange:
    """The root mean square error of each corruption and severity, in levels of 255, mean over some images."""

    images: int
    cells: Mapping[Cell, float]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        cells = [{"corruption": c, "severity": s, "value": value} for (c, s), value in self.cells.items()]
        return {"images": self.images, "cells": cells}


def rmse(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> float:
    """Return the root mean square difference of two images over all pixels and channels.

    >>> rmse(np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 7, np.uint8))
    7.0
    """
    difference = after.astype(np.float64) - before.astype(np.float64)
    return float(np.sqrt(np.mean(difference**2)))


def pixel_change(looker: Looker, *, images: int = RMSE_IMAGES) -> PixelChange:
    """Measure how far each corruption of a run moves the pixels of its images, as the SUTs saw them."""
    store = looker.store
    frames = np.flatnonzero(store.frames.test)
    chosen = frames[np.linspace(0, len(frames) - 1, min(images, len(frames))).astype(int)]
    cells = cells_of(store)
    values: dict[Cell, list[float]] = {cell: [] for cell in cells}
    for row in chosen.tolist():
        frame = store.frames.ids[row]
        clean = looker.image(frame, store.run.baseline.id)
        for cell, setting in cells.items():
            values[cell].append(rmse(clean, looker.image(frame, setting)))
    return PixelChange(len(chosen), {cell: float(np.mean(of)) for cell, of in values.items()})


class Measured(NamedTuple):
    """What figures need besides a table: the change of pixels, an earlier benchmark, and what is missing."""

    change: dict[str, Any] | None = None
    before: dict[str, Any] | None = None
    remarks: tuple[str, ...] = ()


NOTHING = Measured()


def measured(store: Store, table: BenchTable, before: Path | None, *, partial: bool) -> Measured:
    """Measure how far corruptions move pixels, and work out the same table of an earlier run."""
    earlier = None
    if before is not None:
        old = bench_table(before, metric=table.metric.name, partial=partial, with_intervals=False)
        earlier = as_data(old)
    try:
        return Measured(pixel_change(Looker(store)).data(), earlier)
    except AdverseError as error:
        return Measured(None, earlier, (f"- no figure over the RMSE of the corruptions: {error}",))


def write_figures(data: Row, change: Row | None, folder: Path, before: Row | None = None) -> list[Path]:
    """Write the figures of a benchmark as SVG files; the second one where the change of pixels is known."""
    charts = {"severity.svg": severity_chart(data)}
    if change is not None:
        charts["rpc-over-rmse.svg"] = rmse_chart(data, change, before)
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts.items():
        write_file(folder / name, chart.svg().encode(), flush=False)
    return [folder / name for name in charts]


def page_figures(data: Row | None) -> list[str]:
    """Return the figures of a saved benchmark as SVG for a page; none without one."""
    if data is None or not any(sut.get("cells") for sut in data["suts"]):
        return []
    charts = [severity_chart(data)]
    if data.get("rmse"):
        charts.append(rmse_chart(data, data["rmse"]))
    return [chart.svg() for chart in charts]


def severity_chart(data: Row) -> Chart:
    """Return the metric over severity, 0 being clean data: the mean of all corruptions, then each."""
    names = list(dict.fromkeys(name for sut in data["suts"] for name in sut["by_corruption"]))
    highest = max((100 * sut["P"] for sut in data["suts"]), default=1.0)
    highest = max(highest, *(100 * cell["value"] for sut in data["suts"] for cell in sut["cells"]), 1.0)
    ticks = tuple(round_ticks(0.0, highest))
    y = Axis(f"{data['metric']['short']}, %", (0.0, ticks[-1]), ticks)
    x = Axis("severity", (0.0, 5.0), (0.0, *map(float, SEVERITIES)))
    panels = [Panel("mean of all corruptions", x, y, _severity_lines(data, names), size=SMALL)]
    panels += [
        Panel(name.replace("_", " "), x, y, _severity_lines(data, [name]), size=SMALL) for name in names
    ]
    title = f"{data['study']}: {data['metric']['full']} over severity{_trained(data['suts'])}"
    return Chart(title, panels, across=min(ABREAST, len(panels)), one_legend=True)


def rmse_chart(data: Row, change: Row, before: Row | None = None) -> Chart:
    """Return what is left of P under each corruption over its root mean square error, a panel for each SUT.

    With an earlier benchmark, arrows lead from its values to those of this one, SUT by SUT of the same name.
    """
    earlier = {} if before is None else _paired(data, before)
    size = _mean_change(change)
    shares = [
        100 * value / sut["P"]
        for sut in (*data["suts"], *earlier.values())
        if sut["P"]
        for value in sut["by_corruption"].values()
    ]
    x_ticks = round_ticks(0.0, max(size.values()))
    y_ticks = round_ticks(0.0, max(shares)) if max(shares, default=0) > 100 else [0.0, 20, 40, 60, 80, 100]
    words = f"RMSE of the corruption, of 255 levels, mean over {change['images']} images"
    x = Axis(words, (0.0, x_ticks[-1]), tuple(x_ticks))
    y = Axis("rPC, %", (0.0, y_ticks[-1]), tuple(y_ticks))
    panels = [
        Panel(
            _named(sut) + ("; arrows: from the earlier run to this one" if earlier else ""),
            x,
            y,
            (),
            dots=_dots(earlier.get(sut["sut"], sut), size),
            arrows=_arrows(earlier[sut["sut"]], sut, size) if sut["sut"] in earlier else (),
            size=WIDE,
        )
        for sut in data["suts"]
        if sut["P"]
    ]
    title = f"{data['study']}: rPC over RMSE{_trained(data['suts'])}"
    return Chart(title, panels, across=min(2, max(len(panels), 1)), one_legend=True)


def _severity_lines(data: Row, names: Sequence[str]) -> list[Line]:
    lines = []
    for number, sut in enumerate(data["suts"]):
        cells = {(cell["corruption"], cell["severity"]): 100 * cell["value"] for cell in sut["cells"]}
        values = [100 * sut["P"]]
        for severity in SEVERITIES:  # a mean over fewer than all is none
            mine = [cells.get((name, severity), np.nan) for name in names]
            values.append(float(np.mean(mine)))
        colour, dashes, width = sut_style(number)
        lines.append(Line(_named(sut), (0.0, *map(float, SEVERITIES)), values, colour, dashes, width))
    return lines


def _mean_change(change: Row) -> dict[str, float]:
    """Return the root mean square error of each corruption, mean over severities."""
    values: dict[str, list[float]] = {}
    for cell in change["cells"]:
        values.setdefault(cell["corruption"], []).append(float(cell["value"]))
    return {name: float(np.mean(of)) for name, of in values.items()}


def _dots(sut: Row, size: Mapping[str, float]) -> list[Dots]:
    groups = [*GROUPS.items(), ("other", tuple(n for n in sut["by_corruption"] if not _group(n)))]
    made = []
    for number, (group, members) in enumerate(groups):
        names = [name for name in members if name in sut["by_corruption"] and name in size]
        if names:
            made.append(
                Dots(
                    group,
                    [size[name] for name in names],
                    [100 * sut["by_corruption"][name] / sut["P"] for name in names],
                    [4.0] * len(names),
                    GROUP_COLOURS.get(group, OTHERS),
                    number % 3,
                    labels=tuple(_label(sut, name) for name in names),
                )
            )
    return made


def _named(sut: Row) -> str:
    """Return the name of a SUT, marked if it was trained with some of the corruptions."""
    return f"{shown(sut['sut'])} {TRAINED}" if sut.get("trained_on") else shown(sut["sut"])


def _label(sut: Row, name: str) -> str:
    words = name.replace("_", " ")
    return f"{words} {TRAINED}" if name in sut.get("trained_on", ()) else words


def _trained(suts: Sequence[Row]) -> str:
    """Return what the mark means, for a title; nothing where no SUT has it."""
    told = [f"{shown(sut['sut'])} {', '.join(sut['trained_on'])}" for sut in suts if sut.get("trained_on")]
    return f" ({TRAINED} trained on: {'; '.join(told)})" if told else ""


def _arrows(before: Row, after: Row, size: Mapping[str, float]) -> list[Arrow]:
    return [
        Arrow(
            (size[name], 100 * before["by_corruption"][name] / before["P"]),
            (size[name], 100 * after["by_corruption"][name] / after["P"]),
            GROUP_COLOURS.get(_group(name) or "", OTHERS),
        )
        for name in before["by_corruption"]
        if name in after["by_corruption"] and name in size
    ]


def _group(corruption: str) -> str | None:
    return next((group for group, members in GROUPS.items() if corruption in members), None)


def _paired(data: Row, before: Row) -> dict[str, Row]:
    """Return the SUTs of an earlier benchmark by those of this one: of the same name, or the only ones."""
    if before["metric"]["name"] != data["metric"]["name"]:
        raise StudyError(
            "the two runs are compared by one metric",
            where="--before",
            got=f"{before['metric']['name']} and {data['metric']['name']}",
        )
    known = {sut["sut"]: sut for sut in before["suts"] if sut["P"]}
    if len(before["suts"]) == len(data["suts"]) == 1:
        return dict(zip((data["suts"][0]["sut"],), known.values(), strict=False))
    paired = {sut["sut"]: known[sut["sut"]] for sut in data["suts"] if sut["sut"] in known}
    if not paired:
        raise StudyError(
            "the two runs have no SUT of the same name",
            where="--before",
            got=f"{', '.join(known)} before, {', '.join(sut['sut'] for sut in data['suts'])} now",
            fix="Name them alike in both studies.",
        )
    return paired

"""Single logs of the closed loop: speed and position over time, by the SUT and by the ground truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adverse.analysis.loop import Driven, example_drives
from adverse.analysis.results import read_summary
from adverse.report.chart import Chart, Line, Mark, time_panel
from adverse.report.table import Cell, Column, Table, columns
from adverse.store.read import Store
from adverse.text import setting_text, shown

DASHES = "6 4"


def verdict(driven: Driven) -> str:
    """Say whether a log was safe, and how late the stop was."""
    late = driven.lateness_m
    if late is None:
        return "nothing to stop for"
    if math.isinf(late):
        return "NOT SAFE: never stops"
    words = f"stops {abs(late):.3f} m {'later' if late > 0 else 'earlier'} than the truth"
    return f"safe: {words}" if driven.safe else f"NOT SAFE: {words}"


def steps_table(driven: Driven) -> Table:
    """Return every step of both runs."""
    headings = ("time_s", "position_m", "speed_mps", "safe_speed_mps", "obstacle_m")
    rows = tuple(
        (
            Cell(name),
            *(Cell(float(f"{value:.6g}")) for value in step[:5]),
            *(Cell(int(flag)) for flag in step[5:7]),
        )
        for name, run in ((driven.sut, driven.by_sut), ("truth", driven.by_truth))
        for step in zip(*run, strict=True)
    )
    return Table("drive", _title(driven), columns("by", *headings, "stopped", "violating"), rows)


def drive_chart(driven: Driven) -> Chart:
    """Return speed and position of both runs; stops and violations of the safety radius are marked."""
    sut, truth = driven.by_sut, driven.by_truth
    stops = [Mark("stop", float(time)) for time in sut.time_s[sut.stopped]]
    violations = np.flatnonzero(sut.violating)
    if len(violations):
        stops.append(Mark("inside the safety radius", float(sut.time_s[violations[0]])))
    speeds = [
        Line(driven.sut, sut.time_s, sut.speed_mps),
        Line("truth", truth.time_s, truth.speed_mps, dashes=DASHES),
        Line(f"safe speed by {driven.sut}", sut.time_s, sut.safe_speed_mps, dashes=DASHES),
    ]
    positions = [
        Line(driven.sut, sut.time_s, sut.position_m),
        Line("truth", truth.time_s, truth.position_m, dashes=DASHES),
    ]
    panels = (
        time_panel("speed, m/s", "time, s", speeds, stops),
        time_panel("position along the path, m", "time, s", positions),
    )
    return Chart(f"{_title(driven)}: {verdict(driven)}", panels)


STEPS = 9
"""Steps of a run that its table shows."""


@dataclass(frozen=True)
class DrivenLog:
    """One log as a picture, its story in words, and some of its steps for those who cannot see it."""

    words: str
    svg: str
    steps: Table


def drives(store: Store) -> list[DrivenLog]:
    """Return a safe and an unsafe log of the run, as far as it has them."""
    levels = [name for name, level in read_summary(store).data["levels"].items() if level["drives"]]
    return [_driven_log(driven) for driven in example_drives(store, levels)]


def _driven_log(driven: Driven) -> DrivenLog:
    text = f"{driven.sut} under {setting_text(driven.setting)} on {driven.log}: {verdict(driven)}"
    story = (
        f"{text}; up to {driven.tolerance_m:g} m later is in time "
        f"(at {driven.level:.2g} false positives per image)."
    )
    return DrivenLog(story, drive_chart(driven).svg(), _steps(driven))


def _steps(driven: Driven) -> Table:
    """Return where both runs are, and how fast, at evenly spaced times."""
    runs = ((driven.sut, driven.by_sut), ("truth", driven.by_truth))
    records = tuple(
        {
            "by": name,
            "time_s": float(run.time_s[k]),
            "position_m": float(run.position_m[k]),
            "speed_mps": float(run.speed_mps[k]),
            "stopped": bool(run.stopped[k]),
            "inside_safety_radius": bool(run.violating[k]),
        }
        for name, run in runs
        for k in np.unique(np.linspace(0, len(run.time_s) - 1, STEPS).round().astype(int)).tolist()
    )
    rows = tuple(
        (
            Cell(row["by"]),
            *(Cell(row[name]) for name in ("time_s", "position_m", "speed_mps")),
            Cell("stopped" if row["stopped"] else ""),
            Cell("yes" if row["inside_safety_radius"] else ""),
        )
        for row in records
    )
    headings = (
        *columns("by", "time, s", "position, m", "speed, m/s", format=".2f"),
        Column(""),
        Column("inside the safety radius"),
    )
    name = f"drive {driven.log} {driven.sut} {driven.setting}"
    return Table(name, _title(driven), headings, rows, records)


def _title(driven: Driven) -> str:
    return f"{shown(driven.log)}, {shown(driven.sut)}, {setting_text(driven.setting)}"

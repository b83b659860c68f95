"""Closed-loop pictures of a report: a log that stays safe and one that does not.

A closed-loop run for people: speed and position over time, the SUT's against the truth's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adverse.analysis.loop import EXAMPLE_SENSITIVITY, Driven, example_drives
from adverse.analysis.results import read_summary
from adverse.report.chart import Line, Mark, Panel, svg
from adverse.report.tables import Cell, Table
from adverse.store.read import Store
from adverse.text import shown

HEADER = (
    "by",
    "time_s",
    "position_m",
    "speed_mps",
    "safe_speed_mps",
    "obstacle_m",
    "stopped",
    "violating",
)


def rows(driven: Driven) -> Iterator[tuple[object, ...]]:
    """Yield a header and a row for every step of both runs."""
    yield HEADER
    for name, run in ((driven.sut, driven.by_sut), ("truth", driven.by_truth)):
        for step in zip(*run, strict=True):
            numbers = [f"{value:.6g}" for value in step[:5]]
            yield (name, *numbers, int(step[5]), int(step[6]))


def picture(driven: Driven) -> str:
    """Draw both runs; stops and violations of the safety radius are marked."""
    sut, truth = driven.by_sut, driven.by_truth
    words = {True: "safe", False: "NOT SAFE: it stops too late or not at all", None: "nothing to stop for"}
    title = f"{shown(driven.log)}, {driven.sut}, {driven.setting}: {words[driven.safe]}"
    stops = [Mark("stop", float(time)) for time in sut.time_s[sut.stopped]]
    violations = np.flatnonzero(sut.violating)
    if len(violations):
        stops.append(Mark("inside the safety radius", float(sut.time_s[violations[0]])))
    return svg(
        title,
        [
            Panel(
                "speed, m/s",
                "time, s",
                [
                    Line(driven.sut, sut.time_s, sut.speed_mps),
                    Line("truth", truth.time_s, truth.speed_mps, dashed=True),
                    Line(f"safe speed by {driven.sut}", sut.time_s, sut.safe_speed_mps, dashed=True),
                ],
                stops,
            ),
            Panel(
                "position along the path, m",
                "time, s",
                [
                    Line(driven.sut, sut.time_s, sut.position_m),
                    Line("truth", truth.time_s, truth.position_m, dashed=True),
                ],
            ),
        ],
    )


STEPS = 9
"""Steps of a run that its table shows."""


@dataclass(frozen=True)
class Drive:
    """One run as a picture, its story in words, and some of its steps for those who cannot see it."""

    words: str
    svg: str
    steps: Table


def drives(store: Store) -> list[Drive]:
    """Return a safe and an unsafe log of the run, as far as it has them."""
    levels = [name for name, level in read_summary(store).data["levels"].items() if level["drives"]]
    return [_drive(driven) for driven in example_drives(store, levels)]


def _drive(driven: Driven) -> Drive:
    words = "stops in time" if driven.safe else "does NOT stop in time"
    text = f"{driven.sut} under {driven.setting} on {driven.log} {words}"
    story = f"{text} (at {EXAMPLE_SENSITIVITY:g} false positives per image)."
    return Drive(story, picture(driven), _steps(driven))


def _steps(driven: Driven) -> Table:
    """Return where both runs are, and how fast, at evenly spaced times."""
    runs = ((driven.sut, driven.by_sut), ("truth", driven.by_truth))
    data = tuple(
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
            Cell(shown(row["by"])),
            *(Cell(f"{row[name]:.2f}") for name in ("time_s", "position_m", "speed_mps")),
            Cell("stopped" if row["stopped"] else ""),
            Cell("yes" if row["inside_safety_radius"] else ""),
        )
        for row in data
    )
    columns = ("by", "time, s", "position, m", "speed, m/s", "", "inside the safety radius")
    title = f"{shown(driven.log)}, {shown(driven.sut)}, {shown(driven.setting)}"
    return Table(f"drive {driven.log} {driven.sut} {driven.setting}", title, columns, rows, data)

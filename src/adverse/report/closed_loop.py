"""Closed-loop pictures of a report: a log that stays safe and one that does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adverse.analysis.drive import Driven, drive_log
from adverse.errors import AdverseError
from adverse.report.driving import picture
from adverse.report.tables import Cell, Table
from adverse.report.words import shown
from adverse.study.store.read import Store

SENSITIVITY = 0.01
"""Expected false positives per image at which logs are driven."""


STEPS = 9
"""Steps of a run that its table shows."""


@dataclass(frozen=True)
class Drive:
    """One run as a picture, its story in words, and some of its steps for those who cannot see it."""

    words: str
    svg: str
    steps: Table


def drives(store: Store) -> list[Drive]:
    """Return, for the first SUT that has them, a safe and an unsafe log, un-mutated where there is one."""
    path = store.result("outcomes.parquet")
    if "loop" not in store.run.levels or path is None:
        return []
    grid = store.run.sensitivity
    k = _nearest(grid.lowest, grid.highest, grid.levels)
    table = pq.read_table(path, columns=["sut", "level", "setting", "log", "truths", "hits"])
    table = table.filter(pc.and_(pc.starts_with(table["level"], "loop"), pc.greater(table["truths"], 0)))
    safe = pc.equal(pc.list_element(table["hits"], k), table["truths"])
    found = []
    for wanted in (True, False):
        for row in table.filter(pc.equal(safe, wanted)).drop_columns(["hits"]).to_pylist():
            try:
                driven = drive_log(
                    store, log=row["log"], sut=row["sut"], sensitivity=SENSITIVITY, setting=row["setting"]
                )
            except AdverseError:
                continue
            if driven.safe is wanted:
                words = "stops in time" if wanted else "does NOT stop in time"
                text = f"{row['sut']} under {row['setting']} on {row['log']} {words}"
                story = f"{text} (at {SENSITIVITY:g} false positives per image)."
                found.append(Drive(story, picture(driven), _steps(driven)))
                break
    return found


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


def _nearest(lowest: float, highest: float, count: int) -> int:
    levels = np.geomspace(lowest, highest, count)
    return int(np.argmin(np.abs(np.log(levels) - np.log(SENSITIVITY))))

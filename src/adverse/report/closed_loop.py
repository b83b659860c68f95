"""Closed-loop pictures of a report: a log that stays safe and one that does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adverse.analysis.drive import drive_log
from adverse.errors import AdverseError
from adverse.report.driving import picture
from adverse.study.store.read import Store

SENSITIVITY = 0.01
"""Expected false positives per image at which logs are driven."""


@dataclass(frozen=True)
class Drive:
    """One run as a picture, and its story in words."""

    words: str
    svg: str


def drives(store: Store) -> list[Drive]:
    """Return, for the first SUT that has them, a safe and an unsafe log, un-mutated where there is one."""
    path = store.folder.results / "outcomes.parquet"
    levels = store.manifest["statistics"]["levels"]
    if "loop" not in levels or not path.exists():
        return []
    grid = store.manifest["statistics"]["sensitivity"]
    k = _nearest(grid["lowest"], grid["highest"], grid["levels"])
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
                found.append(
                    Drive(f"{text} (at {SENSITIVITY:g} false positives per image).", picture(driven))
                )
                break
    return found


def _nearest(lowest: float, highest: float, count: int) -> int:
    levels = np.geomspace(lowest, highest, count)
    return int(np.argmin(np.abs(np.log(levels) - np.log(SENSITIVITY))))

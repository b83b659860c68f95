"""The published leaderboard of the Robust Detection Benchmark (002), as data that comes with the package."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources

SOURCE = "Robust Detection Benchmark 2019, as published by its authors"
FILE = "robust_detection_2019.csv"


@dataclass(frozen=True)
class Published:
    """One row: a model on a data set, in percent as printed. `raw` names the raw results behind it."""

    dataset: str
    task: str
    metric: str
    model: str
    backbone: str
    clean: float
    corrupted: float
    relative: float
    raw: str
    note: str


def leaderboard() -> list[Published]:
    """Return all published rows, the best mPC of each data set and task first.

    >>> best = leaderboard()[0]
    >>> best.model, best.clean, best.corrupted, best.relative
    ('Hybrid Task Cascade', 50.6, 32.7, 64.7)
    """
    text = resources.files("adverse.benchmarks").joinpath("data", FILE).read_text("utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return [
        Published(
            row["dataset"],
            row["task"],
            row["metric"],
            row["model"],
            row["backbone"],
            float(row["P"]),
            float(row["mPC"]),
            float(row["rPC"]),
            row["raw"],
            row["note"],
        )
        for row in rows
    ]

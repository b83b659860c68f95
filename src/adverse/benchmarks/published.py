"""The leaderboard of the Robust Detection Benchmark (Michaelis et al. 2019), as data of the package."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources

from adverse.errors import StudyError

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


def comparable(metric: str) -> list[Published]:
    """Return the published rows of boxes whose metric is the given one (`ap`, `voc-ap50-11`, ...).

    VOC's rows are shown for either of its averages: the benchmark does not say which it used.
    """
    wanted = {"ap": "AP", "voc-ap50": "AP50", "voc-ap50-11": "AP50"}
    if metric not in wanted:
        raise StudyError(
            f"nothing is published by {metric}",
            where="--with published",
            wanted=f"a metric of {', '.join(wanted)}",
            fix="Leave out --with published, or ask for one of these.",
        )
    return [row for row in leaderboard() if row.task == "bbox" and row.metric == wanted[metric]]


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

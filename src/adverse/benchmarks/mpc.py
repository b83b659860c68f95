"""Performance under corruption: P, mPC and rPC (Michaelis et al. 2019, equations 1 and 2).

mPC is the mean over 15 corruptions of the mean over 5 severities; rPC is mPC over the performance P on clean
data. Any metric will do - AP, AP50, mean IoU, accuracy - but it is always named. A mean over fewer cells is
not mPC: a missing cell is refused, and never counts as 0.

Beside them, the published numbers to compare with: the leaderboard of the Robust Detection Benchmark.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from adverse.errors import IncompleteError, StudyError

CORRUPTIONS = (
    *("gaussian_noise", "shot_noise", "impulse_noise"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness"),
    *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)
SEVERITIES = (1, 2, 3, 4, 5)
GROUPS = {
    "noise": CORRUPTIONS[:3],
    "blur": CORRUPTIONS[3:7],
    "weather": CORRUPTIONS[7:11],
    "digital": CORRUPTIONS[11:],
}
"""The four kinds of corruption that the benchmark tells apart."""
Cell = tuple[str, int]
"""(corruption, severity)"""


@dataclass(frozen=True)
class Robustness:
    """What corruptions do to one system by one metric; numbers are on the metric's own scale.

    `clean` is P, `corrupted` is mPC (or, as `label` then says, the mean over fewer cells), `relative` is rPC,
    None where P is 0. `by_corruption` holds the means over severities.
    """

    metric: str
    label: str
    clean: float
    corrupted: float
    relative: float | None
    by_corruption: Mapping[str, float]
    cells: Mapping[Cell, float]

    @property
    def complete(self) -> bool:
        """Return whether it is mPC."""
        return self.label == "mPC"

    @property
    def by_group(self) -> dict[str, float]:
        """The mean over the corruptions of each group, for groups of which every cell is there."""
        return {
            group: _mean([self.by_corruption[name] for name in members])
            for group, members in GROUPS.items()
            if all((name, severity) in self.cells for name in members for severity in SEVERITIES)
        }


def under_corruption(
    clean: float,
    cells: Mapping[Cell, float],
    *,
    metric: str,
    partial: bool = False,
    trained_on: Collection[str] = (),
) -> Robustness:
    """Return P, mPC and rPC from the performance on clean data and in each (corruption, severity).

    All 15 x 5 cells must be there; others have no part in mPC. With `partial` and some missing, the mean
    is over the corruptions given, each the mean of its cells, and labelled as what it is. So is the mean of a
    system that was `trained_on` some of the corruptions: the benchmark asks not to.

    >>> cells = {(corruption, severity): 0.25 for corruption in CORRUPTIONS for severity in SEVERITIES}
    >>> found = under_corruption(0.5, cells, metric="AP")
    >>> found.label, found.corrupted, found.relative
    ('mPC', 0.25, 0.5)
    >>> under_corruption(0.5, {("fog", 1): 0.5, ("fog", 2): 0.25}, metric="AP", partial=True).label
    'mean over 1 corruption (2 cells), not mPC'
    """
    wanted = [(corruption, severity) for corruption in CORRUPTIONS for severity in SEVERITIES]
    missing = [cell for cell in wanted if cell not in cells]
    if partial and missing:
        if not cells:
            raise IncompleteError(
                "there is no corruption to average over", fix="Run the study with the battery coco-c."
            )
        used = sorted(cells, key=_rank)
        names = list(dict.fromkeys(corruption for corruption, _ in used))
        label = f"mean over {len(names)} corruption{'s' * (len(names) > 1)} ({len(used)} cells), not mPC"
    elif missing:
        raise IncompleteError(
            f"mPC by {metric} needs {len(wanted)} cells, and {len(missing)} are missing",
            got=f"no {_listed(missing)}",
            wanted=f"{len(CORRUPTIONS)} corruptions at severities {SEVERITIES[0]} to {SEVERITIES[-1]}",
            fix="Run the study with the battery coco-c, or ask for a partial mean, which is not mPC.",
        )
    else:
        used, names, label = wanted, list(CORRUPTIONS), "mPC"
    _refuse_undefined({("clean", 0): clean, **{cell: cells[cell] for cell in used}}, metric)
    trained = [name for name in names if name in trained_on]
    if trained:
        label = f"mean over {len(names)} corruptions, trained on {len(trained)} of them: not mPC"
    means = {name: _mean([cells[cell] for cell in used if cell[0] == name]) for name in names}
    corrupted = _mean(list(means.values()))
    relative = corrupted / clean if clean else None
    return Robustness(metric, label, clean, corrupted, relative, means, {cell: cells[cell] for cell in used})


def per_class(
    clean: Mapping[str, float],
    cells: Mapping[Cell, Mapping[str, float]],
    *,
    metric: str,
    partial: bool = False,
    trained_on: Collection[str] = (),
) -> dict[str, Robustness]:
    """Return the same for each class that has a value on clean data; NaN there means that it has no truth."""
    return {
        name: under_corruption(
            value,
            {cell: values[name] for cell, values in cells.items()},
            metric=metric,
            partial=partial,
            trained_on=trained_on,
        )
        for name, value in clean.items()
        if not math.isnan(value)
    }


def _refuse_undefined(values: Mapping[Cell, float], metric: str) -> None:
    unknown = [cell for cell, value in values.items() if not math.isfinite(value)]
    if unknown:
        raise IncompleteError(
            f"{metric} is not defined in {len(unknown)} cell{'s' * (len(unknown) > 1)}",
            got=_listed(unknown),
            wanted="a defined value in each",
            fix="Check that the test images have annotated objects of these classes.",
        )


def _listed(cells: Sequence[Cell]) -> str:
    """Name cells, whole corruptions as such."""
    of: dict[str, list[int]] = {}
    for corruption, severity in cells:
        of.setdefault(corruption, []).append(severity)
    words = [
        name
        if len(severities) == len(SEVERITIES) or name == "clean"
        else f"{name} {' '.join(map(str, severities))}"
        for name, severities in of.items()
    ]
    return ", ".join(words)


def _rank(cell: Cell) -> tuple[int, str, int]:
    corruption, severity = cell
    place = CORRUPTIONS.index(corruption) if corruption in CORRUPTIONS else len(CORRUPTIONS)
    return place, corruption, severity


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


SOURCE = "Robust Detection Benchmark 2019, as published by its authors"
FILE = "robust_detection_2019.csv"
PUBLISHED_ON = {"coco": (5000, 80), "pascal_voc": (4952, 20), "cityscapes": (500, 8)}
"""Images and classes behind the published rows: COCO val2017, VOC2007 test, Cityscapes val."""


@dataclass(frozen=True)
class PublishedRow:
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


def comparable(metric: str) -> list[PublishedRow]:
    """Return the published rows whose metric is the given one (`ap`, `mask-ap`, `voc-ap50-11`, ...).

    VOC's rows are shown for either of its averages, those of Cityscapes masks for either AP: the benchmark
    does not say which it used.
    """
    wanted = {
        "ap": ("bbox", "AP", ()),
        "voc-ap50": ("bbox", "AP50", ()),
        "voc-ap50-11": ("bbox", "AP50", ()),
        "mask-ap": ("segm", "AP", ()),
        "cityscapes-ap": ("segm", "AP", ("cityscapes",)),
    }
    if metric not in wanted:
        raise StudyError(
            f"there are no published results for {metric}",
            where="--with published",
            wanted=f"a metric of {', '.join(wanted)}",
            fix="Leave out --with published, or ask for one of these.",
        )
    task, name, datasets = wanted[metric]
    return [
        row
        for row in leaderboard()
        if (row.task, row.metric) == (task, name) and (not datasets or row.dataset in datasets)
    ]


def leaderboard() -> list[PublishedRow]:
    """Return all published rows, the best mPC of each data set and task first.

    >>> best = leaderboard()[0]
    >>> best.model, best.clean, best.corrupted, best.relative
    ('Hybrid Task Cascade', 50.6, 32.7, 64.7)
    """
    text = resources.files("adverse.benchmarks").joinpath("data", FILE).read_text("utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return [
        PublishedRow(
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

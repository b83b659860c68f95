"""From a finished run to P, mPC and rPC of every SUT.

All numbers of a table rest on the same images: those of the test split that could be used under every setting
of the table. Where a SUT failed on an image it detected nothing. When more images are left out than the
study's quarantine_budget allows, the table is `incomplete`.

A benchmark table as files: JSON for scripts, CSV for spreadsheets, both in the run folder on request.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.intervals import Intervals, LeftOut, Without, intervals, without_groups
from adverse.benchmarks.matching import DetectedObjects, Rle, TrueObjects
from adverse.benchmarks.metrics import Metric, MetricName, Score, metric_of
from adverse.benchmarks.mpc import (
    CORRUPTIONS,
    SOURCE,
    Cell,
    PublishedRow,
    Robustness,
    per_class,
    under_corruption,
)
from adverse.benchmarks.task_table import (
    DEFAULTS,
    MASK_DEFAULT,
    TaskMetric,
    numbers,
    settings_scores,
    task_metric,
)
from adverse.errors import DataError, StudyError, suggestion
from adverse.store.finished_run import finished
from adverse.store.folder import BENCHMARK
from adverse.store.read import Store
from adverse.store.tables import Answers

CORRUPTION = re.compile(r"c\.(?P<name>\w+)\(severity=(?P<severity>[1-5])\)")
"""The settings that are cells of the benchmark."""

AT_ONCE = 100_000
"""Answers (image, setting) that are read at once: a few hundred megabytes at most."""
WITH_MASKS = 10_000
"""The same for answers with masks."""


@dataclass(frozen=True)
class SutRobustness:
    """One SUT: its numbers, those of each class, and how many classes with truth it named on clean images."""

    sut: str
    whole: Robustness
    classes: Mapping[str, Robustness]
    classes_named: int
    faults: int
    intervals: Intervals | None
    trained_on: tuple[str, ...] = ()
    """Corruptions of the table that it was trained with."""
    without: Without | None = field(default=None, compare=False, repr=False)
    """The numbers without each group of logs, used to compare with another run."""


@dataclass(frozen=True)
class BenchTable:
    """P, mPC and rPC of all SUTs of a run by one metric; `classes` are those that have truth."""

    study: str
    metric: MetricName
    rows: tuple[SutRobustness, ...]
    classes: tuple[str, ...]
    images: int
    left_out: int
    status: Literal["ok", "incomplete"]
    not_counted: tuple[str, ...]
    """Corruptions of the run that have no part in mPC."""


def bench_table(
    run: Path | Store,
    *,
    metric: str | None = None,
    classes: Sequence[str] = (),
    partial: bool = False,
    with_intervals: bool = True,
    suts: Sequence[str] | None = None,
    seed: int | None = None,
) -> BenchTable:
    """Work out the table of a run, or of its folder, over the given classes, or over all of the data set.

    The metric is AP (of masks, if the run has them), mean IoU or top-1 accuracy, unless named. Intervals are
    there for the metrics that can be had without some of the images. `seed` deals the groups of logs that are
    left out in turn; None: the study's. `suts` are those wanted; None: all.
    """
    store = run if isinstance(run, Store) else finished(run)
    cells = cells_of(store)
    wanted = store.suts if suts is None else suts
    dealt = store.run.seed if seed is None else seed
    if store.task != "detection":
        chosen_one = task_metric(metric or DEFAULTS[store.task], store.task)
        seed_of_groups = dealt if with_intervals else None
        return _of_task(store, wanted, cells, chosen_one, classes, partial=partial, seed=seed_of_groups)
    chosen = metric_of(metric or (MASK_DEFAULT if store.run.masks else DEFAULTS["detection"]))
    if chosen.masks and not store.run.masks:
        raise StudyError(
            f"{chosen.name} is of masks, and the run has none",
            where="--metric",
            fix="Run the study with task: instance-segmentation, or take a metric of boxes, such as ap.",
        )
    settings = [store.run.baseline.id, *cells.values()]
    scene = _Scene(store, _classes(store, classes), settings, masks=chosen.masks)
    under_corruption(
        0, dict.fromkeys(cells, 0), metric=chosen.short, partial=partial
    )  # refuse before working
    left_out = scene.left_out_logs(dealt) if with_intervals and chosen.match else None
    rows = tuple(_row(scene, sut, cells, chosen, left_out, partial=partial) for sut in wanted)
    used = {cell[0] for cell in rows[0].whole.cells} if rows else set()
    return BenchTable(
        store.run.name,
        chosen,
        rows,
        scene.with_truth,
        scene.images,
        scene.left_out,
        "incomplete" if scene.left_out > scene.budget else "ok",
        tuple(dict.fromkeys(name for name, _ in cells if name not in used)),
    )


def _of_task(
    store: Store,
    suts: Sequence[str],
    cells: Mapping[Cell, str],
    metric: TaskMetric,
    classes: Sequence[str],
    *,
    partial: bool,
    seed: int | None,
) -> BenchTable:
    """Work out the table of a run of segmenters or classifiers; without a seed there are no intervals."""
    if classes:
        raise StudyError(
            "--classes is for detectors", where="--classes", fix="Take it out; --per-class shows every class."
        )
    under_corruption(0, dict.fromkeys(cells, 0), metric=metric.short, partial=partial)
    baseline, test = store.run.baseline.id, store.frames.test
    counted = test & ~_refused(store, [baseline, *cells.values()])
    images, left_out = int(counted.sum()), int((test & ~counted).sum())
    groups = None if seed is None else LeftOut(store.frames.logs, store.frames.log[counted], seed=seed)
    rows = []
    for sut in suts:
        scores = settings_scores(store, sut, metric, counted)
        trained = trained_corruptions(store, sut, cells)
        whole, by_class, without = numbers(
            scores, cells, baseline, metric, groups, images, partial=partial, trained_on=trained
        )
        sure = intervals(whole, without) if without else None
        faults = sum(scores[setting].faults for setting in (baseline, *cells.values()))
        rows.append(SutRobustness(sut, whole, by_class, len(by_class), faults, sure, trained, without))
    used = {cell[0] for cell in rows[0].whole.cells} if rows else set()
    budget = store.run.quarantine_budget * int(test.sum())
    return BenchTable(
        store.run.name,
        metric,
        tuple(rows),
        tuple(rows[0].classes) if rows else (),
        images,
        left_out,
        "incomplete" if left_out > budget else "ok",
        tuple(dict.fromkeys(name for name, _ in cells if name not in used)),
    )


class _Scene:
    """The truth of the images that count, and the SUTs' detections on them."""

    def __init__(
        self, store: Store, classes: tuple[str, ...], settings: Sequence[str], *, masks: bool
    ) -> None:
        self.store = store
        self.masks = masks
        self.classes = classes
        self.baseline = settings[0]
        test = store.frames.test
        counted = test & ~_refused(store, settings)
        self.left_out = int((test & ~counted).sum())
        self.budget = store.run.quarantine_budget * int(test.sum())
        self.images = int(counted.sum())
        self._image = np.where(counted, np.cumsum(counted) - 1, -1)
        self.truth = self._truth()
        labels = np.unique(self.truth.labels[~self.truth.ignore]).tolist()
        self.with_truth = tuple(classes[label] for label in labels)
        if not labels:
            raise DataError(
                "no object of these classes is annotated in the test images that could be used",
                got=f"{self.images} of {int(test.sum())} test images, classes {', '.join(classes[:5])}",
                fix="Check the annotations and --classes.",
            )

    def left_out_logs(self, seed: int) -> LeftOut:
        """Deal the logs of the images that count into groups to leave out."""
        frames = self.store.frames
        return LeftOut(frames.logs, frames.log[self._image >= 0], seed=seed)

    def detections(self, sut: str, settings: Sequence[str]) -> Iterator[tuple[DetectedObjects, int]]:
        """Yield what a SUT found under each setting, and on how many images it failed."""
        step = max(1, (WITH_MASKS if self.masks else AT_ONCE) // len(self._image))
        for start in range(0, len(settings), step):
            some = settings[start : start + step]
            answers = self.store.answers(sut, classes=self.classes, settings=some, masks=self.masks)
            yield from (self._in_scene(answers[setting]) for setting in some)

    def _in_scene(self, answers: Answers) -> tuple[DetectedObjects, int]:
        frame = np.repeat(answers.frame, np.diff(answers.offsets))
        image = self._image[frame]
        in_scene = image >= 0
        detections = DetectedObjects(
            image[in_scene],
            answers.boxes[in_scene].astype(np.float64),
            answers.labels[in_scene],
            answers.scores[in_scene].astype(np.float64),
            self._rle(frame, in_scene, answers.masks),
        )
        return detections.ordered(), int(((answers.status != 0) & (self._image[answers.frame] >= 0)).sum())

    def _truth(self) -> TrueObjects:
        truth = self.store.truth_of(self.classes)
        image = self._image[truth.frame]
        in_scene = image >= 0
        return TrueObjects(
            image[in_scene],
            truth.boxes[in_scene],
            truth.labels[in_scene],
            truth.area[in_scene],
            truth.ignore[in_scene],
            truth.crowd[in_scene],
            self._rle(truth.frame, in_scene, truth.masks),
            self._voids() if self.masks else None,
        )

    def _rle(
        self, frame: NDArray[np.int64], wanted: NDArray[np.bool_], masks: Sequence[bytes] | None
    ) -> list[Rle] | None:
        """Return the masks of the wanted rows; None where the metric is of boxes."""
        if not self.masks or masks is None:
            return None
        sizes = self.store.mask_sizes
        rows = np.flatnonzero(wanted).tolist()
        return [{"size": list(sizes[frame[row]] or ()), "counts": masks[row]} for row in rows]

    def _voids(self) -> list[Rle | None]:
        sizes, voids = self.store.mask_sizes, self.store.voids
        return [
            None if void is None else {"size": list(sizes[row] or ()), "counts": void}
            for row in np.flatnonzero(self._image >= 0).tolist()
            for void in [voids[row]]
        ]


def _row(
    scene: _Scene,
    sut: str,
    cells: Mapping[Cell, str],
    metric: Metric,
    left_out: LeftOut | None,
    *,
    partial: bool,
) -> SutRobustness:
    def look(detections: DetectedObjects) -> _CellScore:
        parts = scene.truth, detections, scene.images, len(scene.classes)
        without = left_out.values(metric.match(*parts)) if left_out and metric.match else np.zeros(0)
        return _CellScore(metric.judge(*parts), without)

    trained = trained_corruptions(scene.store, sut, cells)
    answers = scene.detections(sut, [scene.baseline, *cells.values()])
    plain, faults = next(answers)
    clean = look(plain)
    scores: dict[Cell, _CellScore] = {}
    for cell, (detections, failed) in zip(cells, answers, strict=True):
        scores[cell] = look(detections)
        faults += failed
    whole = under_corruption(
        clean.score.value,
        {cell: cell_score.score.value for cell, cell_score in scores.items()},
        metric=metric.short,
        partial=partial,
        trained_on=trained,
    )
    by_class = per_class(
        dict(zip(scene.classes, clean.score.per_class, strict=True)),
        {
            cell: dict(zip(scene.classes, cell_score.score.per_class, strict=True))
            for cell, cell_score in scores.items()
        },
        metric=metric.short,
        partial=partial,
        trained_on=trained,
    )
    named = {scene.classes[label] for label in np.unique(plain.labels).tolist()}
    without = None
    if left_out:
        cells_without = {cell: cell_score.without for cell, cell_score in scores.items()}
        without = without_groups(whole, clean.without, cells_without, left_out.logs)
    sure = intervals(whole, without) if without else None
    classes_named = len(named & set(scene.with_truth))
    return SutRobustness(sut, whole, by_class, classes_named, faults, sure, trained, without)


def trained_corruptions(store: Store, sut: str, cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return the corruptions of the table that a SUT was trained with."""
    known = store.run.sut(sut).trained_on
    return tuple(dict.fromkeys(name for name, _ in cells if f"c.{name}" in known))


class _CellScore(NamedTuple):
    score: Score
    without: NDArray[np.float64]
    """The same number without each group of logs."""


def cells_of(store: Store) -> dict[Cell, str]:
    """Return the settings of the run that are cells of the benchmark, in the benchmark's order."""
    cells = {
        (match["name"], int(match["severity"])): setting
        for setting in store.groups
        if (match := CORRUPTION.fullmatch(setting))
    }
    return dict(sorted(cells.items(), key=lambda item: (_rank(item[0][0]), item[0])))


def _rank(corruption: str) -> int:
    return CORRUPTIONS.index(corruption) if corruption in CORRUPTIONS else len(CORRUPTIONS)


def _classes(store: Store, wanted: Sequence[str]) -> tuple[str, ...]:
    classes = store.categories or store.targets
    for name in wanted:
        if name not in classes:
            raise StudyError(
                f"the data set has no class {name!r}", where="--classes", fix=suggestion(name, classes)
            )
    return tuple(dict.fromkeys(wanted)) or classes


def _refused(store: Store, settings: Sequence[str]) -> NDArray[np.bool_]:
    """Return which frames could not be used under at least one of the settings."""
    wanted = set(settings)
    bad = {
        row["frame"]
        for row in store.troubles().to_pylist()
        if row["status"] == "quarantined" and row["setting"] in wanted
    }
    return np.array([frame in bad for frame in store.frames.ids], np.bool_)


ALL_CLASSES = "all"
"""What stands for a class in lines about all of them together."""
COLUMNS = ("sut", "metric", "class", "quantity", "corruption", "severity", "value")


def as_data(
    table: BenchTable,
    published: list[PublishedRow] | None = None,
    pixel_change: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the table as plain data; numbers are from 0 to 1, published ones in percent as printed.

    `pixel_change` is how far the corruptions move pixels, where that was measured.
    """
    data: dict[str, Any] = {
        "study": table.study,
        "metric": {"name": table.metric.name, "short": table.metric.short, "full": table.metric.full},
        "status": table.status,
        "images": table.images,
        "images_left_out": table.left_out,
        "classes": list(table.classes),
        "corruptions_not_counted": list(table.not_counted),
        "suts": [
            {
                "sut": row.sut,
                **_numbers(row.whole),
                "intervals": None if row.intervals is None else asdict(row.intervals),
                "trained_on": list(row.trained_on),
                "classes_named": row.classes_named,
                "faults": row.faults,
                "by_class": {
                    name: _numbers(robustness, cells=False) for name, robustness in row.classes.items()
                },
            }
            for row in table.rows
        ],
    }
    if published is not None:
        data["published"] = {"source": SOURCE, "unit": "percent", "rows": [asdict(row) for row in published]}
    if pixel_change is not None:
        data["rmse"] = dict(pixel_change)
    return data


def as_csv(table: BenchTable, pixel_change: Mapping[str, Any] | None = None) -> str:
    """Return the table as CSV, one number in each line; severity 0 and no corruption is clean data.

    The class is "all" in lines about all classes together. A line "trained on" names a corruption that the
    SUT was trained with.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in table.rows:
        for name, robustness in ((ALL_CLASSES, row.whole), *row.classes.items()):
            for quantity, corruption, severity, value in _lines(robustness):
                writer.writerow((row.sut, table.metric.name, name, quantity, corruption, severity, value))
        for corruption in row.trained_on:
            writer.writerow((row.sut, table.metric.name, ALL_CLASSES, "trained on", corruption, "", 1))
    for cell in (pixel_change or {}).get("cells", ()):
        writer.writerow(("", "", "", "rmse", cell["corruption"], cell["severity"], cell["value"]))
    return text.getvalue()


def save(table: BenchTable, store: Store, pixel_change: Mapping[str, Any] | None = None) -> list[Path]:
    """Write the table into the results of its run, and seal it."""
    return store.write(files_of(table, pixel_change))


def files_of(table: BenchTable, pixel_change: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """Return the files that a run keeps of its table, by path below the run folder."""
    data = as_data(table, pixel_change=pixel_change)
    return {
        f"results/{BENCHMARK}.json": (json.dumps(data, indent=1) + "\n").encode(),
        f"results/{BENCHMARK}.csv": as_csv(table, pixel_change).encode(),
    }


def _numbers(robustness: Robustness, *, cells: bool = True) -> dict[str, Any]:
    """Return the three numbers; a mean over fewer cells is not called mPC."""
    names = ("mPC", "rPC") if robustness.complete else ("partial_mean", "partial_relative")
    data: dict[str, Any] = {
        "P": robustness.clean,
        names[0]: robustness.corrupted,
        names[1]: robustness.relative,
    }
    if cells:
        data["label"] = robustness.label
        data["by_group"] = robustness.by_group
        data["by_corruption"] = dict(robustness.by_corruption)
        data["cells"] = [
            {"corruption": name, "severity": severity, "value": value}
            for (name, severity), value in robustness.cells.items()
        ]
    return data


def _lines(robustness: Robustness) -> Iterator[tuple[str, str, int | str, float | str]]:
    numbers = _numbers(robustness, cells=False)
    for quantity, value in numbers.items():
        yield quantity, "", 0 if quantity == "P" else "", "" if value is None else value
    for group, value in robustness.by_group.items():
        yield "group mean", group, "", value
    for name, value in robustness.by_corruption.items():
        yield "mean", name, "", value
    for (name, severity), value in robustness.cells.items():
        yield "cell", name, severity, value

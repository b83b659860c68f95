"""Differences of scores without curves: of segmenters and classifiers, and P, mPC and rPC of any task.

Both runs are worked out without the same groups of logs in turn (a jackknife, as for the scores themselves).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.compare_metrics import paired_change
from adverse.analysis.pairing import Change, Pairing
from adverse.analysis.plain_metrics import Parts
from adverse.analysis.tasks import METRICS
from adverse.benchmarks.intervals import LeftOut, interval, p_value
from adverse.benchmarks.mpc import CORRUPTIONS, SEVERITIES
from adverse.benchmarks.table import bench_table, cells_of
from adverse.benchmarks.task_table import DEFAULTS, ImageScores, settings_scores, task_metric
from adverse.errors import AdverseError
from adverse.store.read import Store

WHOLE = len(CORRUPTIONS) * len(SEVERITIES)


def score_changes(pairing: Pairing) -> Iterator[Change]:
    """Yield the change of the main score of each segmenter or classifier under each setting.

    All rest on the same images: those of the common logs that could be used under every setting.
    """
    task = pairing.first.task
    metric, name = task_metric(DEFAULTS[task], task), METRICS[task]
    stores = (pairing.first, pairing.second)
    masks = [_counted(store, pairing) for store in stores]
    seed = pairing.first.run.seed
    groups = [
        LeftOut(store.frames.logs, store.frames.log[mask], seed=seed)
        for store, mask in zip(stores, masks, strict=True)
    ]
    for suts in pairing.suts:
        sides = [
            settings_scores(store, sut, metric, mask)
            for store, sut, mask in zip(stores, suts, masks, strict=True)
        ]
        for setting in pairing.settings:
            found = [side[setting] for side in sides]
            if task == "classification":
                parts = [
                    _right_by_log(one, store, mask, pairing.logs)
                    for one, store, mask in zip(found, stores, masks, strict=True)
                ]
                yield paired_change((*suts, name, setting, name), pairing.logs, parts, seed=seed)
                continue
            values = [
                one.scores(np.ones((1, group.weights.shape[1])))[0]
                for one, group in zip(found, groups, strict=True)
            ]
            without = [one.scores(group.weights) for one, group in zip(found, groups, strict=True)]
            yield _change(suts, name, setting, (values, without), groups[0].logs)


def benchmark_changes(pairing: Pairing) -> tuple[list[Change], list[str]]:
    """Return the changes of P, mPC and rPC where both runs have the whole battery, or why there are none."""
    stores = (pairing.first, pairing.second)
    if any(len(cells_of(store)) < WHOLE for store in stores):
        return [], []
    if not pairing.whole:
        return [], ["mPC and rPC are not compared: the runs do not rest on the same test logs"]
    seed = pairing.first.run.seed
    try:
        tables = [
            bench_table(store, suts=[one[side] for one in pairing.suts], seed=seed)
            for side, store in enumerate(stores)
        ]
    except AdverseError as error:
        return [], [f"mPC and rPC are not compared: {error}"]
    found, notes = [], []
    for suts, first, second in zip(pairing.suts, tables[0].rows, tables[1].rows, strict=True):
        parts = [("P", "clean"), ("mPC", "corrupted"), ("rPC", "relative")]
        if trained := sorted({*first.trained_on, *second.trained_on}):
            notes.append(f"mPC and rPC of {suts[1]} are not compared: it was trained on {', '.join(trained)}")
            parts = parts[:1]
        for name, part in parts:
            values = [_number(getattr(row.whole, part)) for row in (first, second)]
            without = [getattr(row.without, part) for row in (first, second) if row.without is not None]
            logs = first.without.logs if first.without else 0
            level = f"{name} by {tables[0].metric.short}"
            found.append(_change(suts, level, "coco-c", (values, without), logs, figure=name))
    return found, notes


def _change(
    suts: tuple[str, str],
    level: str,
    setting: str,
    sides: tuple[Sequence[float], Sequence[NDArray[np.float64]]],
    logs: int,
    *,
    figure: str | None = None,
) -> Change:
    """Return the change of a score from its values, and from those without each group of logs."""
    (before, after), without = [float(value) for value in sides[0]], sides[1]
    away = without[1] - without[0] if len(without) == 2 else np.zeros(0)
    difference = after - before
    found = interval(difference, away, logs, lowest=-math.inf, highest=math.inf)
    return Change(
        *suts,
        level,
        setting,
        figure or level,
        _known(before),
        _known(after),
        found,
        None if found.low is None else p_value(difference, away),
        identical=difference == 0 and len(without) == 2 and bool(np.array_equal(without[0], without[1])),
    )


def _right_by_log(found: ImageScores, store: Store, counted: NDArray[np.bool_], logs: Sequence[str]) -> Parts:
    """Return how many images of each log were classified rightly, and of how many."""
    place = {log: number for number, log in enumerate(logs)}
    of_image = np.array([place[store.frames.logs[log]] for log in store.frames.log[counted].tolist()])
    mine = (of_image == np.arange(len(logs))[:, None]).astype(np.float64)
    images = mine.sum(axis=1)
    right = np.zeros(len(logs))
    right[images > 0] = found.scores(mine[images > 0]) * images[images > 0]
    return np.rint(right), images


def _counted(store: Store, pairing: Pairing) -> NDArray[np.bool_]:
    """Return the test frames of the common logs that could be used under all common settings."""
    common = np.isin(store.frames.logs, pairing.logs)[store.frames.log]
    refused = {
        row["frame"]
        for row in store.troubles().to_pylist()
        if row["status"] == "quarantined" and row["setting"] in pairing.settings
    }
    usable = np.array([frame not in refused for frame in store.frames.ids], np.bool_)
    return store.frames.test & common & usable


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

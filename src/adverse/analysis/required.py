"""The false-positive rate one would have to accept to detect each person, before and after (000, fig. 6).

A rate of 0 means less than one in all validation images, infinite that no threshold finds the person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adverse.analysis.confidence import ends
from adverse.analysis.judged import JudgedSut, validation_scores
from adverse.analysis.score import Status
from adverse.curves.rates import korn_graubard
from adverse.curves.required import Required, required_rates
from adverse.levels.image import Judged
from adverse.levels.match import HIT
from adverse.study.store.read import Store

REQUIRED = pa.schema(
    [
        *((name, pa.string()) for name in ("sut", "setting", "frame")),
        ("object", pa.int64()),  # which of the frame's true objects, in the order of the data set
        ("before", pa.float64()),  # false positives per image, un-mutated
        ("after", pa.float64()),  # the same under the setting
    ]
)


def required_of(
    store: Store, one: JudgedSut, statuses: Mapping[str, Status]
) -> tuple[list[dict[str, Any]], pa.Table]:
    """Return for every mutation how many people it costs, and the table of all people."""
    truth = store.truth
    fpr_max = store.run.fpr_max
    false, images, _ = validation_scores(store, one.settings[one.baseline])
    before = best_scores(one.settings[one.baseline], len(truth.frame))
    plain = one.counted(one.baseline)
    rows, tables = [], [REQUIRED.empty_table()]
    for setting, judged in one.settings.items():
        if setting == one.baseline:
            continue
        people = np.flatnonzero((one.counted(setting) & plain)[truth.frame] & ~truth.ignore)
        after = best_scores(judged, len(truth.frame))
        rates = required_rates(before[people], after[people], false, images)
        rows.append(_row(store, one.sut, setting, people, rates, fpr_max, statuses[setting]))
        tables.append(_table(store, one.sut, setting, people, rates))
    return rows, pa.concat_tables(tables)


def best_scores(judged: Judged, truths: int) -> NDArray[np.float64]:
    """Return the score of the detection that is matched with each true object; NaN where there is none."""
    found = np.full(truths, np.nan)
    hit = judged.outcome == HIT
    found[judged.truth[hit]] = judged.answers.scores[hit]
    return found


def _row(
    store: Store,
    sut: str,
    setting: str,
    people: NDArray[np.int64],
    rates: Required,
    fpr_max: float,
    status: Status,
) -> dict[str, Any]:
    """Say how many people that could be had for `fpr_max` cost more now, and by how much rates rise."""
    frames, logs = store.frames, len(store.frames.logs)
    log = frames.log[store.truth.frame[people]]
    affordable = rates.before <= fpr_max
    lost = affordable & (rates.after > fpr_max)
    interval = korn_graubard(
        np.bincount(log[lost], minlength=logs), np.bincount(log[affordable], minlength=logs)
    )
    rise = rates.orders()[affordable] if rates.images else np.zeros(0)
    return {
        "sut": sut,
        "setting": setting,
        "status": status if affordable.any() else "insufficient",
        "logs": len(np.unique(log)),
        "frames": len(np.unique(store.truth.frame[people])),
        "people": len(people),
        "affordable_before": int(affordable.sum()),
        "lost": interval.value,
        **ends(interval, "lost"),
        "median_rise_orders": _plain(float(np.median(rise))) if len(rise) else None,
    }


def _table(store: Store, sut: str, setting: str, people: NDArray[np.int64], rates: Required) -> pa.Table:
    ids, truth = store.frames.ids, store.truth
    columns = [
        *(pa.repeat(name, len(people)) for name in (sut, setting)),
        pa.array([ids[row] for row in truth.frame[people]], pa.string()),
        truth.place[people],
        rates.before,
        rates.after,
    ]
    return pa.table(columns, schema=REQUIRED)


def _plain(value: float) -> float | str:
    """Return a number that JSON can hold."""
    return value if np.isfinite(value) else "infinite"

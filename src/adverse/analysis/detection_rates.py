"""The average detection rate of every setting, and what detecting each person costs (Pezzementi et al. 2018).

ADR is the mean recall at the baseline's reference rates: the thresholds are the lowest that cost no more than
10^-3 ... 10^-1 false positives per un-mutated TEST image, and mutated images are evaluated at the same ones.

The cost of a person is the false-positive rate one would have to accept to detect them, before and after a
mutation (fig. 6). 0 means less than one in all validation images, infinite that no threshold detects them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adverse.analysis.confidence import plain_interval
from adverse.analysis.detections import SutDetections, validation_scores
from adverse.analysis.score import Status
from adverse.curves.bootstrap import Resamples
from adverse.curves.detection_rates import REFERENCES, Required, required_rates
from adverse.curves.interval import korn_graubard
from adverse.curves.quantities import Quantity, Ratios, Recall
from adverse.curves.studentized import intervals
from adverse.levels.image import ROC_A, image_outcomes
from adverse.levels.match import HIT, MatchedDetections, false_scores
from adverse.levels.outcomes import Outcomes, standardize
from adverse.store.read import Store
from adverse.store.tables import FAULT, QUARANTINED


def adr_rows(
    store: Store, detections: SutDetections, statuses: Mapping[str, Status], resamples: Resamples | None
) -> list[dict[str, Any]]:
    """Return the ADR of every setting, with its interval and what it rests on.

    `share` is what is left of the baseline's ADR on the same frames; None where that is 0.
    """
    counted = detections.counted(detections.baseline)
    false = false_scores(detections.settings[detections.baseline], counted)
    thresholds = standardize(false, int(counted.sum()), np.array(REFERENCES)).thresholds

    def outcomes(setting: str, counted: NDArray[np.bool_]) -> Outcomes:
        matched = detections.settings[setting]
        return image_outcomes(matched, store.truth, store.frames, thresholds, counted)[ROC_A]

    found = {setting: outcomes(setting, detections.counted(setting)) for setting in detections.settings}
    whole = {
        setting: _adr(
            found[detections.baseline]
            if np.array_equal(detections.counted(setting), counted)
            else outcomes(detections.baseline, detections.counted(setting) & counted)
        )
        for setting in found
    }
    wanted: dict[str, Quantity] = {
        setting: Recall(Ratios(each.hits, each.truths, each.cost, each.exposure))
        for setting, each in found.items()
        if each.truths.any()
    }
    sure = intervals(wanted, resamples) if resamples is not None and wanted else {}
    rows = []
    for setting, each in found.items():
        answers = detections.settings[setting].answers
        tested = answers.status[store.frames.test[answers.frame]]
        value, before = _adr(each), whole[setting]
        rows.append(
            {
                "sut": detections.sut,
                "setting": setting,
                "group": store.groups[setting],
                "status": "insufficient" if value is None else statuses[setting],
                "logs": int(np.count_nonzero(each.truths)),
                "frames": int(each.exposure.sum()),
                "people": int(each.truths.sum()),
                "quarantined": int((tested == QUARANTINED).sum()),
                "faults": int((tested == FAULT).sum()),
                "adr": value,
                "adr_interval": plain_interval(sure.get(setting)),
                "share": value / before if value is not None and before else None,
            }
        )
    return rows


def _adr(outcomes: Outcomes) -> float | None:
    """Return the mean recall over the reference rates; None where there is nobody."""
    return float(outcomes.safety().mean()) if outcomes.truths.any() else None


REQUIRED = pa.schema(
    [
        *((name, pa.string()) for name in ("sut", "setting", "frame")),
        ("object", pa.int64()),  # which of the frame's true objects, in the order of the data set
        ("before", pa.float64()),  # false positives per image, un-mutated
        ("after", pa.float64()),  # the same under the setting
    ]
)


def required_of(
    store: Store, detections: SutDetections, statuses: Mapping[str, Status]
) -> tuple[list[dict[str, Any]], pa.Table]:
    """Return for every mutation how many people it costs, and the table of all people."""
    truth = store.truth
    fpr_max = store.run.fpr_max
    false, images, _ = validation_scores(store, detections.settings[detections.baseline])
    before = best_scores(detections.settings[detections.baseline], len(truth.frame))
    plain = detections.counted(detections.baseline)
    rows, tables = [], [REQUIRED.empty_table()]
    for setting, matched in detections.settings.items():
        if setting == detections.baseline:
            continue
        people = np.flatnonzero((detections.counted(setting) & plain)[truth.frame] & ~truth.ignore)
        after = best_scores(matched, len(truth.frame))
        rates = required_rates(before[people], after[people], false, images)
        rows.append(_row(store, detections.sut, setting, people, rates, fpr_max, statuses[setting]))
        tables.append(_table(store, detections.sut, setting, people, rates))
    return rows, pa.concat_tables(tables)


def best_scores(matched: MatchedDetections, truths: int) -> NDArray[np.float64]:
    """Return the score of the detection that is matched with each true object; NaN where there is none."""
    found = np.full(truths, np.nan)
    hit = matched.outcome == HIT
    found[matched.truth[hit]] = matched.answers.scores[hit]
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
        np.bincount(log[lost], minlength=logs),
        np.bincount(log[affordable], minlength=logs),
        confidence=store.confidence,
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
        "lost_interval": interval.plain(),
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

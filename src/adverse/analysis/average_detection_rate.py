"""The average detection rate of every setting (000): mean recall at the baseline's reference rates.

The thresholds are the lowest that cost no more than 10^-3 ... 10^-1 false positives per un-mutated TEST
image; mutated images are judged at the same thresholds, whatever false positives they cost there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from adverse.analysis.confidence import ends
from adverse.analysis.judged import JudgedSut
from adverse.analysis.score import Status
from adverse.curves.adr import REFERENCES
from adverse.curves.quantities import Quantity, Ratios, Recall
from adverse.curves.resample import Resamples
from adverse.curves.studentized import intervals
from adverse.levels.image import ROC_A, false_scores, image_outcomes
from adverse.levels.outcomes import Outcomes
from adverse.levels.sensitivity import standardize
from adverse.study.store.read import Store


def adr_rows(
    store: Store, one: JudgedSut, statuses: Mapping[str, Status], resamples: Resamples | None
) -> list[dict[str, Any]]:
    """Return the ADR of every setting, with its interval and what it rests on."""
    counted = one.counted(one.baseline)
    false = false_scores(one.settings[one.baseline], counted)
    thresholds = standardize(false, int(counted.sum()), np.array(REFERENCES)).thresholds
    found: dict[str, Outcomes] = {}
    for setting, judged in one.settings.items():
        outcomes = image_outcomes(judged, store.truth, store.frames, thresholds, one.counted(setting))
        found[setting] = outcomes[ROC_A]
    wanted: dict[str, Quantity] = {
        setting: Recall(Ratios(each.hits, each.truths, each.cost, each.exposure))
        for setting, each in found.items()
        if each.truths.any()
    }
    sure = intervals(wanted, resamples) if resamples is not None and wanted else {}
    return [
        {
            "sut": one.sut,
            "setting": setting,
            "status": statuses[setting] if each.truths.any() else "insufficient",
            "logs": int(np.count_nonzero(each.truths)),
            "frames": int(each.exposure.sum()),
            "people": int(each.truths.sum()),
            "adr": float(each.safety().mean()) if each.truths.any() else None,
            **ends(sure.get(setting), "adr"),
        }
        for setting, each in found.items()
    ]

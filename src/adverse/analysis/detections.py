"""The detections of one SUT, matched with the truth, and the thresholds they are evaluated at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.levels.match import MatchedDetections, false_scores, match_detections
from adverse.levels.outcomes import Sensitivity, grid, standardize
from adverse.store.read import Store
from adverse.store.tables import FAULT, OK, Answers

Source = Literal["validation", "test"]


@dataclass(frozen=True, eq=False)
class SutDetections:
    """The matched detections of one SUT under every setting; `baseline` names the un-mutated setting."""

    sut: str
    settings: Mapping[str, MatchedDetections]
    baseline: str
    sensitivity: Sensitivity
    source: Source
    test: NDArray[np.bool_]

    def counted(self, setting: str) -> NDArray[np.bool_]:
        """Return the test frames that ran under a setting, be it with a fault (a mask over all frames)."""
        return self.test & _with_status(self.settings[setting].answers, len(self.test), (OK, FAULT))

    def fault_free(self, setting: str) -> NDArray[np.bool_]:
        """Return the frames on which the SUT did not fail."""
        return _with_status(self.settings[setting].answers, len(self.test), (OK,))


def sut_detections(store: Store, sut: str) -> SutDetections:
    """Match the detections of a SUT, and choose its thresholds on its un-mutated validation images."""
    matched = {
        setting: match_detections(answers, store.truth) for setting, answers in store.answers(sut).items()
    }
    baseline = store.run.baseline.id
    sensitivity, source = sensitivity_of(store, matched[baseline])
    return SutDetections(sut, matched, baseline, sensitivity, source, store.frames.test & store.truth_known)


def sensitivity_of(store: Store, baseline: MatchedDetections) -> tuple[Sensitivity, Source]:
    """Standardize a SUT on its un-mutated validation images or, where there are none, on the test images."""
    shared = store.run.sensitivity
    levels = grid(shared.levels, shared.lowest, shared.highest)
    false, images, source = validation_scores(store, baseline)
    return standardize(false, images, levels), source


class SharedSensitivity(NamedTuple):
    """The shared sensitivities, the score from which a detection counts at each, and which are resolved."""

    levels: NDArray[np.float64]
    thresholds: NDArray[np.float32]
    resolved: NDArray[np.bool_]


def shared_sensitivity(store: Store, sut: str) -> SharedSensitivity:
    """Return the shared sensitivities of a SUT: from the results or, where there are none, worked out."""
    path = store.result("sensitivity.parquet")
    if path is not None:
        table = pq.read_table(path, filters=[("sut", "==", sut)])
        levels, thresholds, resolved = (
            table[name].to_numpy() for name in ("sensitivity", "threshold", "resolved")
        )
        return SharedSensitivity(levels, thresholds.astype(np.float32), resolved)
    baseline = store.run.baseline.id
    answers = store.answers(sut, settings=[baseline])[baseline]
    shared, _ = sensitivity_of(store, match_detections(answers, store.truth))
    return SharedSensitivity(shared.levels, shared.thresholds, shared.resolved)


def validation_scores(store: Store, baseline: MatchedDetections) -> tuple[NDArray[np.float32], int, Source]:
    """Return the scores of all false positives on un-mutated validation images, and how many images."""
    test = store.frames.test
    source: Source = "test" if test.all() else "validation"
    ran = _with_status(baseline.answers, len(test), (OK, FAULT))
    counted = (test if source == "test" else ~test) & ran & store.truth_known
    return false_scores(baseline, counted), int(counted.sum()), source


def _with_status(answers: Answers, frames: int, statuses: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.zeros(frames, np.bool_)
    mask[answers.frame[np.isin(answers.status, statuses)]] = True
    return mask

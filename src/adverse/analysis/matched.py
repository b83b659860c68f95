"""The answers of one SUT, matched with the truth, and the thresholds it is read at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adverse.levels.image import Judged, false_scores, judge
from adverse.levels.outcomes import Sensitivity, grid, standardize
from adverse.store.read import FAULT, OK, Answers, Store

Source = Literal["validation", "test"]


@dataclass(frozen=True, eq=False)
class JudgedSut:
    """What one SUT said under every setting, judged; `baseline` names the un-mutated setting."""

    sut: str
    settings: Mapping[str, Judged]
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


def judge_sut(store: Store, sut: str) -> JudgedSut:
    """Judge every setting of a SUT, and choose its thresholds on its un-mutated validation images."""
    judged = {setting: judge(answer, store.truth) for setting, answer in store.answers(sut).items()}
    baseline = store.run.baseline.id
    sensitivity, source = sensitivity_of(store, judged[baseline])
    return JudgedSut(sut, judged, baseline, sensitivity, source, store.frames.test)


def sensitivity_of(store: Store, baseline: Judged) -> tuple[Sensitivity, Source]:
    """Standardize a SUT on its un-mutated validation images or, where there are none, on the test images."""
    shared = store.run.sensitivity
    levels = grid(shared.levels, shared.lowest, shared.highest)
    false, images, source = validation_scores(store, baseline)
    return standardize(false, images, levels), source


def validation_scores(store: Store, baseline: Judged) -> tuple[NDArray[np.float32], int, Source]:
    """Return the scores of all false positives on un-mutated validation images, and how many images."""
    test = store.frames.test
    source: Source = "test" if test.all() else "validation"
    ran = _with_status(baseline.answers, len(test), (OK, FAULT))
    counted = (test if source == "test" else ~test) & ran
    return false_scores(baseline, counted), int(counted.sum()), source


def _with_status(answers: Answers, frames: int, statuses: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.zeros(frames, np.bool_)
    mask[answers.frame[np.isin(answers.status, statuses)]] = True
    return mask

"""Small random outcomes for the tests of the bootstrap."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse.curves import Ratios


def outcomes(
    rng: np.random.Generator,
    positive: int = 6,
    negative: int = 5,
    *,
    levels: int = 8,
    skill: float = 0.0,
    efficiency: Literal["rate", "ratio"] = "rate",
) -> Ratios:
    """Return random outcomes: hits and alarms per log, rising with the level."""
    logs = positive + negative
    is_positive = np.arange(logs) < positive
    truths = np.where(is_positive, rng.integers(5, 15, logs), 0)
    images = np.where(is_positive, 0, rng.integers(20, 60, logs))
    chance = np.clip(np.linspace(0.2, 0.9, levels) + skill, 0, 1)
    hits = np.minimum(np.maximum.accumulate(rng.binomial(truths[:, None], chance), axis=1), truths[:, None])
    alarms = np.maximum.accumulate(rng.binomial(images[:, None], np.linspace(0.0, 0.12, levels)), axis=1)
    if efficiency == "ratio":
        time_s = images * 0.1 * rng.uniform(0.8, 1.2, logs)
        return Ratios(hits, truths, time_s, time_s[:, None] + 0.5 * alarms, "ratio")
    return Ratios(hits, truths, alarms, images, fpr_max=0.1)


def repeated(curve: Ratios, counts: NDArray[np.int64]) -> Ratios:
    """Return the outcomes of logs that are really there as often as they count."""

    def again(part: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(part, counts, axis=0)

    return Ratios(
        again(curve.num_s),
        again(curve.den_s),
        again(curve.num_e),
        again(curve.den_e),
        curve.efficiency,
        curve.fpr_max,
    )


NAMES = [f"log {index}" for index in range(200)]

"""The table of the remedy: whose mean, and how sure."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

TRAINING = Path(__file__).parents[2] / "training"


def test_intervals_hold_both_the_draw_of_logs_and_that_of_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TRAINING))
    remedy = importlib.import_module("remedy")
    rng = np.random.default_rng(5)
    logs = rng.normal(0.3, 0.1, (2, 3, 40))  # of a kind, of a seed: the score on each log

    def rows(kind: int) -> list[SimpleNamespace]:
        means = [scores.mean() for scores in logs[kind]]
        left_out = [(scores.sum() - scores) / (len(scores) - 1) for scores in logs[kind]]
        return [
            SimpleNamespace(whole=SimpleNamespace(clean=mean), without=SimpleNamespace(clean=without))
            for mean, without in zip(means, left_out, strict=True)
        ]

    value, reach = remedy.estimate(rows(0), "clean", rows(1))
    # The jackknife of a mean is its classical standard error: of the differences on each log.
    per_log = logs[0].mean(axis=0) - logs[1].mean(axis=0)
    parts = [stats.sem(per_log) ** 2, *(stats.sem(logs[kind].mean(axis=1)) ** 2 for kind in range(2))]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 39 + parts[1] ** 2 / 2 + parts[2] ** 2 / 2)
    assert value == pytest.approx(per_log.mean())
    assert reach == pytest.approx(stats.t.ppf(0.975, freedom) * sum(parts) ** 0.5)
    assert remedy.told(-0.0241, 0.023, sign="+") == "-2.4 ± 2.3"

"""Untested conditions: prediction intervals hold as often as they say, or nothing can be told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adverse.analysis.unseen import ALONE, BESIDE, unseen_rows
from adverse.curves.unseen import CONFIDENCE, left_out, predict_next


def test_the_interval_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(4000):
        shares = np.sin(np.clip(rng.normal(0.8, 0.15, 10), 0, np.pi / 2)) ** 2
        found = predict_next(shares[:-1])
        assert found is not None
        inside += found.low <= shares[-1] <= found.high
    assert inside / 4000 == pytest.approx(CONFIDENCE, abs=0.02)


def test_it_is_the_textbook_interval_on_its_scale() -> None:
    shares = np.array([0.3, 0.5, 0.55, 0.7, 0.8, 0.9])
    found = predict_next(shares)
    scaled = np.arcsin(np.sqrt(shares))
    reach = stats.t.ppf(0.9, 5) * scaled.std(ddof=1) * np.sqrt(1 + 1 / 6)
    assert found == pytest.approx([np.sin(scaled.mean() + k * reach) ** 2 for k in (0, -1, 1)])


def test_other_systems_under_the_condition_make_it_narrower_where_systems_are_alike() -> None:
    rng = np.random.default_rng(2)
    hard = rng.uniform(0.2, 0.9, 9)
    mine, others = (np.clip(hard + rng.normal(0, 0.02, 9), 0, 1) for _ in range(2))
    for alone, beside in zip(left_out(mine), left_out(mine, others), strict=True):
        assert alone is not None
        assert beside is not None
        assert beside.high - beside.low < 0.5 * (alone.high - alone.low)


def test_four_conditions_say_nothing() -> None:
    assert predict_next([0.5, 0.6, 0.7, 0.8]) is None


def rows_of(shares: dict[str, list[float]]) -> list[dict[str, Any]]:
    rows = [{"level": "path", "sut": sut, "setting": "identity", "area": 0.8} for sut in shares]
    families = [
        {"level": "path", "sut": sut, "family": f"f{number}", "robust_area": 0.8 * share}
        for sut, mine in shares.items()
        for number, share in enumerate(mine)
    ]
    return unseen_rows(rows, families, "identity")


def test_rows_say_what_is_to_be_expected_and_how_often_that_held() -> None:
    shares = {"a": [0.5, 0.6, 0.7, 0.65, 0.55, 0.6, 0.62], "b": [0.4, 0.5, 0.6, 0.55, 0.45, 0.5, 0.9]}
    found = rows_of(shares)
    assert [(row["sut"], row["basis"]) for row in found] == [
        ("a", ALONE), ("b", ALONE), ("a", BESIDE), ("b", BESIDE)
    ]  # fmt: skip
    inside = 0
    for mine in shares.values():
        for number, share in enumerate(mine):
            one = predict_next([other for place, other in enumerate(mine) if place != number])
            inside += one is not None and one.low <= share <= one.high
    assert found[0]["inside"] == inside
    assert found[0]["left_out"] == 14
    whole = predict_next(shares["a"])
    assert whole is not None
    assert found[0]["expected_low"] == pytest.approx(0.8 * whole.low)
    assert found[0]["told"]


def test_where_conditions_have_nothing_in_common_it_cannot_be_told() -> None:
    (row,) = rows_of({"a": [0.0, 1.0, 0.02, 0.98, 0.5, 0.01, 0.99]})
    assert not row["told"]
    assert rows_of({"a": [0.5] * 5}) == []  # each would be predicted from four

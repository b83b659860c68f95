"""Failures in the order they are shown in, and predictions of contextual mutations, against the plain way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from adverse.analysis.detection_rates import REQUIRED
from adverse.analysis.failures import NEVER, failure_rows, prediction_rows, sut_failures
from adverse.curves.predict import ScoreTable, predict_contextual
from adverse.store.read import Store

LOGS = np.array([0, 0, 1, 1])
FRAMES = SimpleNamespace(ids=("a0", "a1", "b0", "b1"), log=LOGS, test=np.ones(4, np.bool_))
STORE = cast(Store, SimpleNamespace(frames=FRAMES, run=SimpleNamespace(fpr_max=0.1, visual_change=None)))


def required(sut: str, *rows: tuple[str, str, float, float]) -> pa.Table:
    columns = [[sut] * len(rows), *zip(*((s, f, 0, b, a) for s, f, b, a in rows), strict=True)]
    return pa.table([list(column) for column in columns], schema=REQUIRED)


def test_one_failure_of_each_mutation_and_log_worst_first() -> None:
    table = required(
        "x",
        ("blur", "a0", 0.0, 1.0),
        ("blur", "a1", 0.0, 2.0),
        ("blur", "b0", 0.01, np.inf),
        ("haze", "a0", 0.2, 1.0),  # too dear before
        ("haze", "b1", 0.05, 0.09),  # still cheap enough
    )
    rows = sut_failures(STORE, table)
    assert [(row["frame"], row["after"]) for row in rows] == [("b0", None), ("a1", 2.0)]
    assert [row["orders"] for row in rows] == [NEVER, pytest.approx(np.log10(2.0 / 0.25))]


def test_suts_and_mutations_take_turns() -> None:
    failures = [
        {"sut": sut, "setting": setting, "frame": "a0", "orders": orders}
        for sut, setting, orders in [("x", "blur", 3), ("x", "blur", 2.5), ("x", "haze", 1), ("y", "blur", 2)]
    ]
    rows = failure_rows(STORE, failures)
    assert [(row["sut"], row["setting"], row["orders"]) for row in rows] == [
        ("x", "blur", 3),
        ("y", "blur", 2),
        ("x", "haze", 1),
        ("x", "blur", 2.5),
    ]
    assert {row["visual_change"] for row in rows} == {None}


def test_predictions_are_those_of_the_first_level_that_has_both_families() -> None:
    settings = ("identity", "alpha_blend(alpha=0.1)", "haze(beta=1)", "haze(beta=2)", "haze(beta=3)")
    scores = 0.2 + 0.6 * np.random.default_rng(3).random((5, 4))
    suts = ("a", "b", "c", "d")
    rows: list[dict[str, Any]] = [
        {"sut": sut, "level": level, "setting": setting, "area": None if level == "first" else float(value)}
        for level in ("first", "second", "third")
        for setting, line in zip(settings, scores, strict=True)
        for sut, value in zip(suts, line, strict=True)
    ]
    wanted = predict_contextual(
        ScoreTable(("baseline", *settings[1:]), suts, scores), simple="alpha_blend", contextual="haze"
    )
    found = list(prediction_rows(rows))
    assert {row["level"] for row in found} == {"second"}
    assert {row["sut"]: row["r2"] for row in found} == {sut: one.r2 for sut, one in wanted.suts.items()}

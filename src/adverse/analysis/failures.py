"""Which failures of a run are worth a look, and how well contextual mutations are predicted from simple ones.

Both are decided here and not on a page, so that every page and every script has the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.strengths import RECORDED, visual_changes
from adverse.curves.predict import BASELINE, ScoreTable, family_of, predict_contextual
from adverse.errors import AdverseError
from adverse.store.read import Store

MOST_FAILURES = 60
NEVER = 4.0
"""Powers of ten that a person counts as whom no threshold detects any more."""
PREDICTED = (("gaussian_blur", "defocus"), ("alpha_blend", "haze"))
"""A simple mutation, and the contextual one that is predicted from it."""


def sut_failures(store: Store, required: pa.Table) -> list[dict[str, Any]]:
    """Return the people that a mutation costs a SUT, the worst of each (mutation, log) only, worst first.

    `required` is the table of one SUT: false positives per image that a person costs, before and after.
    `orders` is by how many powers of ten that rises; `after` is None where no threshold detects the person.
    """
    before, after = (required[name].to_numpy() for name in ("before", "after"))
    images = max(1, int((~store.frames.test).sum()) or int(store.frames.test.sum()))
    with np.errstate(divide="ignore", invalid="ignore"):
        orders = np.log10(np.maximum(after, 1 / images)) - np.log10(np.maximum(before, 1 / images))
    orders = np.where(np.isfinite(after), orders, NEVER)
    fpr_max = store.run.fpr_max
    failed = np.flatnonzero((before <= fpr_max) & (after > fpr_max))
    log_of = dict(zip(store.frames.ids, store.frames.log.tolist(), strict=True))
    names = {name: required[name].to_pylist() for name in ("sut", "setting", "frame", "object")}
    seen: set[tuple[str, int]] = set()
    failures = []
    for row in failed[np.argsort(-orders[failed], kind="stable")].tolist():
        key = (names["setting"][row], log_of[names["frame"][row]])
        if key in seen:
            continue
        seen.add(key)
        failures.append(
            {
                **{name: values[row] for name, values in names.items()},
                "before": float(before[row]),
                "after": float(after[row]) if math.isfinite(after[row]) else None,
                "orders": float(orders[row]),
            }
        )
    return failures


def failure_rows(store: Store, failures: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the worst failure of every (SUT, mutation), then the second worst, and so on.

    Each has the visual change of its frame, where the study had it measured.
    """
    measured = visual_changes(store)
    turn_of: dict[tuple[str, str], int] = {}
    keyed = []
    for number, row in enumerate(sorted(failures, key=lambda row: -float(row["orders"]))):
        turn = turn_of.get((row["sut"], row["setting"]), 0)
        turn_of[row["sut"], row["setting"]] = turn + 1
        numbers = measured.get((row["setting"], row["frame"]), {})
        change = next((value for name, value in numbers.items() if name.startswith(RECORDED)), None)
        keyed.append((turn, number, {**row, "visual_change": change}))
    return [row for _, _, row in sorted(keyed, key=lambda entry: entry[:2])[:MOST_FAILURES]]


def prediction_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield how well contextual mutations are predicted from simple ones, at the first level with both."""
    for simple, contextual in PREDICTED:
        for level in dict.fromkeys(str(row["level"]) for row in rows):
            table = _score_table(rows, level)
            if table is None or not {simple, contextual} <= set(map(family_of, table.settings)):
                continue
            try:
                predictions = predict_contextual(table, simple=simple, contextual=contextual)
            except AdverseError:
                continue
            for sut, prediction in predictions.suts.items():
                yield {
                    "sut": sut,
                    "level": level,
                    "simple": simple,
                    "contextual": contextual,
                    "r2": prediction.r2,
                    "squared_correlation": prediction.squared_correlation,
                }
            break


def _score_table(rows: Sequence[Mapping[str, Any]], level: str) -> ScoreTable | None:
    """Return the areas of a level as a table that predictions can be made from; None if one is missing."""
    rows = [row for row in rows if row["level"] == level and row["setting"] not in (ANY, ANY_MILD)]
    suts = tuple(dict.fromkeys(str(row["sut"]) for row in rows))
    settings = tuple(dict.fromkeys(str(row["setting"]) for row in rows))
    values = {(row["setting"], row["sut"]): row["area"] for row in rows}
    scores = [[values.get((setting, sut)) for sut in suts] for setting in settings]
    if any(value is None for line in scores for value in line) or any(not value for value in scores[0]):
        return None
    return ScoreTable((BASELINE, *settings[1:]), suts, np.array(scores, np.float64), where=f"level {level}")

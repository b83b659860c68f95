"""The contract of relations, as checks that can be run on any of them (`adverse check-plugin`).

They are tried on the made-up run of levels and metrics; its changed version lacks some detections, and its
weaker one is clean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from adverse.errors import PluginError
from adverse.levels.context import LevelInput
from adverse.levels.contract import (
    METRIC_THRESHOLD,
    findings,
    made_up_input,
    reversed_detections,
    without_detections,
)
from adverse.plugins import ContractFinding, Plugin
from adverse.relations.relation import Checks, RelationInput, evaluate_relation
from adverse.store.tables import Answers


def check_relation(relation: Plugin) -> list[ContractFinding]:
    """Run every check on a relation; never raises for what the relation does wrong."""
    return findings(relation, _checks)


def _checks() -> Iterator[tuple[str, Callable[[Plugin], object]]]:
    yield (
        "frames, boxes, holds and weights of one length",
        lambda one: evaluate_relation(one, made_up_relation_input()),
    )
    yield (
        "no detections",
        lambda one: evaluate_relation(one, made_up_relation_input(changed=without_detections)),
    )
    yield "no detections at all", lambda one: evaluate_relation(one, _nothing())
    yield (
        "no weaker setting",
        lambda one: evaluate_relation(one, replace(made_up_relation_input(), weaker=())),
    )
    yield "the same twice", _repeats
    yield "the order of detections does not matter", _ignores_order
    yield "frames that do not count do not matter", _leaves_out
    yield "its input is left as it is", _leaves_input


def made_up_relation_input(
    *,
    order: Callable[[Answers], Answers] | None = None,
    changed: Callable[[LevelInput], LevelInput] | None = None,
) -> RelationInput:
    """Return the made-up run clean, changed (fewer detections count) and weaker (fewer still)."""
    clean = replace(made_up_input(order=order), thresholds=METRIC_THRESHOLD)
    weaker = replace(clean, thresholds=METRIC_THRESHOLD + np.float32(0.15))
    other = replace(clean, thresholds=METRIC_THRESHOLD + np.float32(0.05))
    return RelationInput(clean, other if changed is None else changed(clean), (weaker,))


def _nothing() -> RelationInput:
    clean = without_detections(replace(made_up_input(), thresholds=METRIC_THRESHOLD))
    return RelationInput(clean, clean, (clean,))


def _sorted(checks: Checks | None) -> list[tuple[float, ...]]:
    if checks is None:
        return []
    columns = zip(checks.frame, checks.boxes, checks.holds, checks.weight, strict=True)
    return sorted((int(frame), *box.tolist(), bool(holds), float(one)) for frame, box, holds, one in columns)


def _repeats(relation: Plugin) -> None:
    first, second = (_sorted(evaluate_relation(relation, made_up_relation_input())) for _ in range(2))
    if first != second:
        raise PluginError("two calls differ")


def _ignores_order(relation: Plugin) -> None:
    first = _sorted(evaluate_relation(relation, made_up_relation_input()))
    if first != _sorted(evaluate_relation(relation, made_up_relation_input(order=reversed_detections))):
        raise PluginError("the checks depend on the order in which detections are stored")


def _leaves_out(relation: Plugin) -> None:
    given = made_up_relation_input()
    counted = given.counted & (given.frames.log != 0)
    part = replace(given, clean=replace(given.clean, counted=counted))
    evaluate_relation(relation, part)  # raises where a frame is checked that does not count


def _leaves_input(relation: Plugin) -> None:
    given = made_up_relation_input()
    answers = given.clean.answers
    arrays = {"scores": answers.scores, "boxes": answers.boxes, "counted": given.clean.counted}
    before = {name: array.copy() for name, array in arrays.items()}
    evaluate_relation(relation, given)
    for name, array in arrays.items():
        if not np.array_equal(array, before[name]):
            raise PluginError(f"it writes into its input: {name}", fix=f"Start with {name}.copy().")

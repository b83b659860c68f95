"""SUTs that answer wrongly: the image counts as nothing detected, is listed, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .cases import CANNOT_RUN, PASS, Case, case, table
from .good_study import GoodStudy

FAILED = ("probe: failed on 2 of 16 images", "frame '2' under brightness 0.9 and 1 more:", "Fix:")


def sut(mood: str, **options: Any) -> Callable[[GoodStudy], object]:
    """Put the SUT in this mood on the third picture."""
    return lambda study: study.sut(mood=mood, at=2, **options)


@pytest.mark.fault(30, cases=["NaN score", "NaN box"])
@pytest.mark.fault(
    31, cases=["wrong shape", "backwards box", "wrong label", "not an answer", "text", "a class it has not"]
)
@pytest.mark.fault(34, cases=["exception", "exit", "one bad image in a batch"])
@pytest.mark.fault(38, cases=["non-determinism"])
@table(
    case(
        "NaN score", sut("nan score"), PASS, *FAILED, "not finite numbers", "1 of 1 boxes or scores are NaN"
    ),
    case("NaN box", sut("nan box"), PASS, *FAILED, "not finite numbers"),
    case("wrong shape", sut("wrong shape"), PASS, *FAILED, "wrong shape", "boxes (1, 3)"),
    case("backwards box", sut("backwards box"), PASS, *FAILED, "ends before it begins", "(x0, y0, x1, y1)"),
    case("wrong label", sut("wrong label"), PASS, *FAILED, "a label names no class", "label 7"),
    case("not an answer", sut("not an answer"), PASS, *FAILED, "not a set of detections", "int"),
    case("text", sut("text"), PASS, *FAILED, "not numbers"),
    case("exception", sut("exception"), PASS, *FAILED, "RuntimeError: no CUDA device"),
    case("exit", sut("exit"), PASS, *FAILED, "SystemExit: 3"),
    case(
        "one bad image in a batch", sut("exception", batch=3), PASS, *FAILED, "RuntimeError: no CUDA device"
    ),
    case("no model file", sut("good", weights="no.onnx"), CANNOT_RUN, "suts[0], option 'weights'", "no.onnx"),
    case(
        "a model that does not load",
        lambda s: (s.folder / "model.bin").write_text("broken"),
        CANNOT_RUN,
        "cannot be built",
        "probe",
        "version 9",
        "Check the options",
    ),
    case(
        "a class it has not",
        sut("good", classes=["car"]),
        CANNOT_RUN,
        "SUT 'probe' can never answer person",
        "classes car",
        "class_map",
    ),
    case(
        "a class map of nothing",
        sut("good", class_map={"pedestrian": "person"}),
        CANNOT_RUN,
        "got     'pedestrian' as 'person'",
        "Known: person",
    ),
    case(
        "non-determinism",
        lambda s: s.sut(mood="non-determinism"),
        PASS,
        "probe: nondeterministic: gave different answers to the same image",
    ),
)
def test_sut(row: Case, coco: GoodStudy) -> None:
    row.check(coco)


@pytest.mark.fault(30)
def test_a_fault_stays_in_the_denominator(coco: GoodStudy) -> None:
    coco.sut(mood="nan score", at=2)
    coco.adverse()
    for row in coco.rows():
        assert (row["frames"], row["truths"], row["faults"], row["status"]) == (8, 4, 1, "ok")
        assert (row["area"], row["area_without_faults"]) == (0.75, 1.0)
    counts = coco.summary()["counts"]["probe"]
    assert (counts["planned"], counts["ok"], counts["fault"], counts["quarantined"]) == (16, 14, 2, 0)


@pytest.mark.fault(32)
def test_ties_are_one_hit_each_and_the_rest_false(coco: GoodStudy) -> None:
    """Three equal boxes with equal scores: no order among them may matter, two of the three are false."""
    coco.sut(mood="ties")
    coco.adverse().expect(PASS, "results:")
    (roc_a, roc_b) = coco.rows()
    assert (
        roc_a["area"] == 0.0
    )  # a threshold keeps all three or none, and one picture in two has two too many
    assert roc_b["area"] == 0.0 or roc_b["area"] == 1.0
    assert roc_a["faults"] == 0


@pytest.mark.fault(33)
def test_empty_answers_are_no_faults(coco: GoodStudy) -> None:
    coco.sut(mood="empty")
    coco.adverse().expect(PASS, "results:")
    assert {(row["area"], row["faults"], row["status"]) for row in coco.rows()} == {(0.0, 0, "ok")}

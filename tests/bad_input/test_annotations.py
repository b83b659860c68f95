"""Annotations: what makes the file untrustworthy stops the study, what spoils one image costs that image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .cases import CANNOT_RUN, INCOMPLETE, PASS, Case, case, table
from .good_study import GoodStudy

LEFT_OUT = ("1 frame could not be used", "frame '2' under", "Correct the box")


def box(value: object) -> Callable[[GoodStudy], object]:
    """Give the third annotation this box."""
    return lambda study: study.truth["annotations"][2].update(bbox=value)


def entry(table_name: str, number: int, **changed: Any) -> Callable[[GoodStudy], object]:
    """Change an entry of images, annotations or categories."""
    return lambda study: study.truth[table_name][number].update(changed)


def text(content: str) -> Callable[[GoodStudy], object]:
    """Write the whole file oneself."""
    return lambda study: study.annotations.write_text(content)


def without(table_name: str, field: str) -> Callable[[GoodStudy], object]:
    """Take a field out of the second entry of a table."""
    return lambda study: study.truth[table_name][1].pop(field)


@pytest.mark.fault(18, cases=["box partly outside", "box fully outside"])
@pytest.mark.fault(19, cases=["box of no size", "box of negative size", "box with a null", "NaN in the file"])
@pytest.mark.fault(20, cases=["duplicate annotation id"])
@pytest.mark.fault(21, cases=["duplicate image id", "one image twice"])
@pytest.mark.fault(22, cases=["crowd"])
@pytest.mark.fault(23, cases=["unknown category", "no such target"])
@pytest.mark.fault(
    26,
    cases=[
        "NaN in the file",
        "broken JSON",
        "truncated JSON",
        "a key twice",
        "not UTF-8",
        "nested without end",
    ],
)
@table(
    case("box partly outside", box([40, 10, 50, 30]), PASS, "1 x boxes partly outside the image"),
    case(
        "box fully outside",
        box([70, 10, 9, 9]),
        INCOMPLETE,
        *LEFT_OUT,
        "annotation 2",
        "is outside the image",
    ),
    case("box of no size", box([20, 10, 0, 30]), INCOMPLETE, *LEFT_OUT, "annotation 2", "has no size"),
    case("box of negative size", box([20, 10, -4, 30]), INCOMPLETE, *LEFT_OUT, "annotation 2", "has no size"),
    case("box with a null", box([20, None, 4, 30]), INCOMPLETE, *LEFT_OUT, "is not four finite numbers"),
    case("box as text", box("20,10,4,30"), INCOMPLETE, *LEFT_OUT, "is not four finite numbers"),
    case("box of three numbers", box([20, 10, 4]), INCOMPLETE, *LEFT_OUT, "is not four finite numbers"),
    case("box that is not there", without("annotations", "bbox"), INCOMPLETE, "frame '1'", "bbox None"),
    case("NaN in the file", box([20, float("nan"), 4, 30]), CANNOT_RUN, "truth.json", "NaN at line 1 column"),
    case("crowd", entry("annotations", 2, iscrowd=1), PASS, "1 x boxes marked crowd or ignore"),
    case(
        "unknown category",
        entry("annotations", 2, category_id=9),
        CANNOT_RUN,
        "truth.json, field annotations[2].category_id",
        "9 in annotation 2",
    ),
    case("unknown image", entry("annotations", 2, image_id=99), CANNOT_RUN, "annotations[2].image_id", "99"),
    case(
        "duplicate annotation id",
        entry("annotations", 2, id=1),
        CANNOT_RUN,
        "truth.json, field annotations[2].id",
        "already at annotations[1]",
    ),
    case("duplicate image id", entry("images", 2, id=1), CANNOT_RUN, "images[2].id", "already at images[1]"),
    case(
        "one image twice",
        entry("images", 2, file_name="./1.png"),
        CANNOT_RUN,
        "images[2].file_name",
        "'1.png'",
    ),
    case("image without a size", without("images", "width"), CANNOT_RUN, "images[1]", "missing_sizes: read"),
    case(
        "image without a name", without("images", "file_name"), CANNOT_RUN, "images[1].file_name", "missing"
    ),
    case(
        "image id of the wrong type", entry("images", 2, id=1.5), CANNOT_RUN, "truth.json, field images[2].id"
    ),
    case("no table of annotations", lambda s: s.truth.pop("annotations"), CANNOT_RUN, "field annotations"),
    case(
        "no images",
        lambda s: s.truth.update(images=[], annotations=[]),
        CANNOT_RUN,
        "truth.json",
        "no images",
    ),
    case(
        "no such target",
        entry("categories", 0, name="pedestrian"),
        CANNOT_RUN,
        "no category 'person'",
        "study.yaml",
        "Known: pedestrian. Set targets:",
    ),
    case("broken JSON", text('{"images": [}'), CANNOT_RUN, "truth.json", "line 1 column 13"),
    case("truncated JSON", text('{"images": [{"id": 1,'), CANNOT_RUN, "truth.json", "line 1 column"),
    case("a key twice", text('{"images": [], "images": []}'), CANNOT_RUN, "truth.json", "key 'images' twice"),
    case(
        "not UTF-8",
        lambda s: s.annotations.write_bytes(b'{"images": "\xff"}'),
        CANNOT_RUN,
        "truth.json",
        "UTF-8",
    ),
    case("nested without end", text("[" * 100_000), CANNOT_RUN, "truth.json", "nested too deeply"),
    case("a list", text("[]"), CANNOT_RUN, "truth.json"),
    case(
        "no file",
        lambda s: s.study["data"].update(annotations="nowhere.json"),
        CANNOT_RUN,
        "data/nowhere.json",
        "is missing",
    ),
)
def test_annotations(row: Case, coco: GoodStudy) -> None:
    row.check(coco)


@pytest.mark.fault(16)
def test_an_image_nobody_annotated_is_a_negative(coco: GoodStudy) -> None:
    coco.adverse().expect(PASS, "4 x images without annotations")
    assert {row["negative_frames"] for row in coco.rows()} == {4}


@pytest.mark.fault(17)
def test_no_positives_at_all(coco: GoodStudy) -> None:
    coco.truth["annotations"].clear()
    coco.adverse().expect(
        INCOMPLETE, "image/ROC_A is insufficient", "no target is annotated", "Check targets:"
    )
    assert {row["area"] for row in coco.rows()} == {None}


def test_no_negatives_at_all(coco: GoodStudy) -> None:
    for number in range(4, 8):
        annotation = {"id": number, "image_id": number, "category_id": 1, "bbox": [1, 1, 9, 9]}
        coco.truth["annotations"].append(annotation)
    coco.adverse().expect(INCOMPLETE, "image/ROC_B is insufficient", "Add images without targets")
    areas = {row["level"]: row["area"] for row in coco.rows()}
    assert areas == {"image/ROC_A": 0.5, "image/ROC_B": None}


@pytest.mark.fault(20)
def test_truth_with_id_0_counts(coco: GoodStudy) -> None:
    """In COCO's own evaluation an object with id 0 can never be a hit."""
    assert coco.truth["annotations"][0]["id"] == coco.truth["images"][0]["id"] == 0
    coco.adverse().expect(PASS, "results:")
    assert {(row["truths"], row["area"]) for row in coco.rows()} == {(4, 1.0)}


@pytest.mark.fault(20)
def test_category_with_id_0_counts(coco: GoodStudy) -> None:
    coco.truth["categories"][0]["id"] = 0
    for annotation in coco.truth["annotations"]:
        annotation["category_id"] = 0
    coco.adverse().expect(PASS, "results:")
    assert {(row["truths"], row["area"]) for row in coco.rows()} == {(4, 1.0)}


@pytest.mark.fault(22)
def test_a_crowd_is_neither_hit_nor_miss(coco: GoodStudy) -> None:
    coco.truth["annotations"][2]["iscrowd"] = 1
    coco.adverse()
    assert {(row["truths"], row["area"]) for row in coco.rows()} == {(3, 1.0)}

from __future__ import annotations

import pytest

from adverse.errors import StudyError
from adverse.suts.classes import class_names


def test_coco_lists_agree_with_the_numbers_of_coco() -> None:
    by_id = class_names("coco-91")
    # Ids as in COCO's own instances_val2017.json.
    known = {1: "person", 13: "stop sign", 27: "backpack", 44: "bottle", 62: "chair", 67: "dining table"}
    assert {number: by_id[number] for number in known} == known
    assert by_id[90] == "toothbrush"
    assert by_id[0] == "background"
    unused = [number for number, name in enumerate(by_id) if name.startswith("unused")]
    assert unused == [12, 26, 29, 30, 45, 66, 68, 69, 71, 83]
    assert len(class_names("coco-80")) == 80
    assert class_names("coco-80")[79] == "toothbrush"


def test_voc_lists_differ_by_the_background() -> None:
    assert len(class_names("voc-20")) == 20
    assert class_names("voc-21") == ("background", *class_names("voc-20"))
    assert class_names("voc-20")[14] == "person"


def test_own_names_are_kept_in_order() -> None:
    assert class_names(["tractor", "person"]) == ("tractor", "person")


@pytest.mark.parametrize("value", ["coco-8", [], ["a", "a"], ["a", ""]])
def test_names_that_cannot_be_have_a_fix(value: str | list[str]) -> None:
    with pytest.raises(StudyError) as caught:
        class_names(value)
    assert caught.value.fix
    assert caught.value.where == "classes"

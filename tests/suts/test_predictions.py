from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adverse import plugins
from adverse.errors import StudyError, SutError
from adverse.suts.fingerprint import fingerprint
from adverse.suts.predictions import RecordedPredictions, predictions

BLUR = "gaussian_blur(sigma_px=2)"


def entry(image: Any = 1, category: Any = 1, box: Any = (10, 20, 30, 40), score: Any = 0.5) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": box, "score": score}


def recorded(folder: Path, **options: Any) -> RecordedPredictions:
    found = predictions(folder / "{mutation}.json", **(options or {"categories": {7: "car", 1: "person"}}))
    assert isinstance(found, RecordedPredictions)
    return found


def write(folder: Path, setting: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / f"{setting}.json").write_text(text, "utf-8")


def test_answers_are_found_by_image_and_setting(tmp_path: Path) -> None:
    write(tmp_path, "identity", [entry(1), entry("b", 7, (0, 0, 5.5, 5), 1), entry(1, 7, (1, 1, 2, 2), -3)])
    write(tmp_path, BLUR, [entry(1, score=0.25)])
    system = recorded(tmp_path)
    assert system.classes == ("person", "car")
    one = system.recall(1, "identity")
    assert one.boxes.tolist() == [[10, 20, 40, 60], [1, 1, 3, 3]]
    assert one.scores.tolist() == [0.5, -3]
    assert one.labels.tolist() == [0, 1]
    assert system.recall("b", "identity").boxes.tolist() == [[0, 0, 5.5, 5]]
    assert system.recall(1, BLUR).scores.tolist() == [0.25]
    assert len(system.recall(99, "identity")) == 0


def test_a_file_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, "identity", [entry()])
    system = recorded(tmp_path)
    system.recall(1, "identity")
    (tmp_path / "identity.json").unlink()
    assert len(system.recall(1, "identity")) == 1


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (entry(2, score=float("nan")), "not finite"),
        (entry(2, box=(0, 0, float("inf"), 1)), "not finite"),
        (entry(2, score=1e300), "not finite"),
        (entry(2, score=10**400), "entry 1"),
        (entry(2, box=(0, 0, 1)), "bbox is [0, 0, 1]"),
        (entry(2, box="0 0 1 1"), "bbox is '0 0 1 1'"),
        (entry(2, box=(5, 5, -1, 2)), "ends before it begins"),
        (entry(2, score="high"), "score is 'high'"),
        (entry(2, score=None), "score is None"),
        (entry(2, category=3), "category_id 3"),
        ({"image_id": 2, "category_id": 1, "score": 1}, "no bbox"),
        (entry(2, category=True), "category_id True"),
    ],
)
def test_a_bad_entry_spoils_its_own_image_only(tmp_path: Path, bad: dict[str, Any], told: str) -> None:
    write(tmp_path, "identity", [entry(1), bad])
    system = recorded(tmp_path)
    with pytest.raises(SutError) as caught:
        system.recall(2, "identity")
    assert told in str(caught.value)
    assert "identity.json, image 2" in str(caught.value)
    assert len(system.recall(1, "identity")) == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('[{"image_id": 1,', "line 1"),
        ('[{"image_id": 1, "image_id": 2}]', "twice in the object"),
        ({"annotations": []}, "dict"),
        ([{"score": 1}], "entry 0"),
        ([7], "entry 0"),
        ([entry([1])], "entry 0"),
        ([entry(True)], "entry 0"),
    ],
)
def test_a_bad_file_is_told_each_time(tmp_path: Path, content: Any, told: str) -> None:
    write(tmp_path, "identity", content)
    system = recorded(tmp_path)
    for image in (1, 2):
        with pytest.raises(SutError) as caught:
            system.recall(image, "identity")
        assert told in str(caught.value)
        assert "identity.json" in str(caught.value)


def test_missing_files_are_known_before_the_start(tmp_path: Path) -> None:
    write(tmp_path, "identity", [])
    system = recorded(tmp_path)
    assert system.missing(["identity", BLUR]) == [tmp_path / f"{BLUR}.json"]
    with pytest.raises(SutError, match="no recorded answers") as caught:
        system.recall(1, BLUR)
    assert f"{BLUR}.json" in str(caught.value)


def test_categories_can_come_from_a_coco_file(tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    truth.write_text(json.dumps({"categories": [{"id": 3, "name": "cow"}, {"id": 1, "name": "person"}]}))
    write(tmp_path, "identity", [entry(1, 3)])
    system = recorded(tmp_path, annotations=truth)
    assert system.classes == ("person", "cow")
    assert system.recall(1, "identity").labels.tolist() == [1]
    truth.write_text("[]", "utf-8")
    with pytest.raises(StudyError, match="lists no categories"):
        recorded(tmp_path, annotations=truth)
    with pytest.raises(StudyError, match="lists no categories") as caught:
        recorded(tmp_path, annotations=tmp_path / "gone.json")
    assert "gone.json" in str(caught.value)


def test_options_that_cannot_work_have_a_fix(tmp_path: Path) -> None:
    for options in ({"categories": None}, {"categories": {1: "a"}, "annotations": tmp_path / "t.json"}):
        with pytest.raises(StudyError) as caught:
            recorded(tmp_path, **options)
        assert caught.value.fix
    with pytest.raises(StudyError, match="every setting"):
        predictions(tmp_path / "all.json", categories={1: "person"})


def test_a_study_names_it_and_its_files_are_its_fingerprint(tmp_path: Path) -> None:
    plugin = plugins.load().get("sut", "predictions")
    given = {"path": "{mutation}.json", "categories": {1: "person"}}
    options = plugins.bind(plugin, given, where="suts[0]", base=tmp_path)
    write(tmp_path, "identity", [entry()])
    before = fingerprint(plugin, options)
    write(tmp_path, BLUR, [])
    with_blur = fingerprint(plugin, options)
    write(tmp_path, BLUR, [entry()])
    assert len({before, with_blur, fingerprint(plugin, options)}) == 3
    assert len(plugin.function(**options).recall(1, BLUR)) == 1

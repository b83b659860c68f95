from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from adverse import plugins
from adverse.data.coco_panoptic import NO_PIXELS, coco_panoptic, looks_like
from adverse.data.formats import guess
from adverse.errors import DataError
from adverse.types import Dataset, Frame

CATEGORIES = [
    {"id": 1, "name": "person", "isthing": 1},
    {"id": 3, "name": "car", "isthing": 1},
    {"id": 149, "name": "road", "isthing": 0},
]
SEGMENTS: list[dict[str, Any]] = [
    {"id": 70000, "category_id": 3, "bbox": [0, 0, 2, 1], "area": 2, "iscrowd": 0},
    {"id": 300, "category_id": 1, "bbox": [2, 0, 1, 1], "area": 1, "iscrowd": 1},
    {"id": 5, "category_id": 149, "bbox": [0, 1, 2, 1], "area": 2, "iscrowd": 0},
    {"id": 9, "category_id": 3, "bbox": [0, 0, 0, 0], "area": 0, "iscrowd": 0},
]
PIXELS = [[70000, 70000, 300], [5, 5, 0]]
GIVEN = {
    "images": [{"id": 7, "file_name": "a.png", "width": 3, "height": 2}],
    "annotations": [{"image_id": 7, "file_name": "a.png", "segments_info": SEGMENTS}],
    "categories": CATEGORIES,
}


def written(root: Path, given: dict[str, Any], pixels: list[list[int]]) -> Dataset:
    for folder in ("pictures", "panoptic"):
        (root / folder).mkdir()
    cv2.imwrite(str(root / "pictures" / "a.png"), np.zeros((2, 3, 3), np.uint8))
    number = np.array(pixels)
    blue_green_red = np.stack([number >> 16, number >> 8 & 255, number & 255], axis=2).astype(np.uint8)
    cv2.imwrite(str(root / "panoptic" / "a.png"), blue_green_red)
    (root / "panoptic.json").write_text(json.dumps(given))
    return coco_panoptic(root, annotations="panoptic.json", images="pictures")


def only(data: Dataset) -> Frame:
    ((frame,),) = (log.frames for log in data.logs)
    return frame


def test_segments_become_labels_instances_and_boxes(tmp_path: Path) -> None:
    data = written(tmp_path, GIVEN, PIXELS)
    frame = only(data)
    assert frame.labels is not None
    assert frame.instances is not None
    assert frame.labels().tolist() == [[3, 3, 1], [149, 149, 0]]
    assert frame.labels().dtype == np.uint8
    assert frame.instances().tolist() == [[70000, 70000, 0], [0, 0, 0]], "a crowd is no object"
    assert data.categories == ("person", "car")
    assert frame.truth.boxes.tolist() == [[0, 0, 2, 1], [2, 0, 3, 1]]
    assert frame.truth.ignore.tolist() == [False, True]
    assert data.pixel_classes == {1: "person", 3: "car", 149: "road"}
    assert data.notes[NO_PIXELS] == 1
    assert frame.image_id == 7
    assert frame.truth.masks is None
    options = looks_like(tmp_path)
    assert options is not None
    masks = only(coco_panoptic(**{**options, "root": tmp_path}, instance_masks=True)).truth.masks
    assert masks is not None
    assert [masks.array(row).astype(int).tolist() for row in range(2)] == [
        [[1, 1, 0], [0, 0, 0]],
        [[0, 0, 1], [0, 0, 0]],
    ]


def test_a_panoptic_file_is_told_from_one_with_boxes(tmp_path: Path) -> None:
    written(tmp_path, GIVEN, PIXELS)
    told = guess(tmp_path, plugins.load().all("dataset"))
    assert told.format.name == "coco-panoptic"
    assert told.options["images"] == "pictures"
    assert told.options["masks"] == "panoptic"
    (tmp_path / "pictures").rename(tmp_path / "images")  # the same names, and before the maps
    again = looks_like(tmp_path)
    assert again is not None
    assert (again["images"], again["masks"]) == ("images", "panoptic")
    boxes = {**GIVEN, "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [0, 0, 1, 1]}]}
    (tmp_path / "instances.json").write_text(json.dumps(boxes))
    assert looks_like(tmp_path) is None
    assert looks_like(tmp_path / "panoptic.json") is not None


@pytest.mark.parametrize("field", ["image_id", "category_id"])
def test_an_annotation_that_leads_nowhere_is_refused(tmp_path: Path, field: str) -> None:
    given = copy.deepcopy(GIVEN)
    entry: Any = given["annotations"][0]
    (entry if field == "image_id" else entry["segments_info"][0])[field] = 77
    with pytest.raises(DataError, match=rf"does not exist.*{field} 77"):
        written(tmp_path, given, PIXELS)


def test_a_pixel_of_no_segment_is_an_error_of_its_frame(tmp_path: Path) -> None:
    frame = only(written(tmp_path, GIVEN, [[70000, 70001, 300], [5, 5, 0]]))
    assert frame.labels is not None
    with pytest.raises(DataError, match="segment 70001"):
        frame.labels()


def test_a_map_of_another_size_is_an_error_of_its_frame(tmp_path: Path) -> None:
    frame = only(written(tmp_path, GIVEN, [[5, 5], [5, 5]]))
    assert frame.instances is not None
    with pytest.raises(DataError, match="does not fit"):
        frame.instances()


def test_real_panoptic_maps_say_what_their_annotations_say() -> None:
    root = Path(__file__).parents[3] / "shared" / "data" / "coco128_permissive"
    if not root.is_dir():
        pytest.skip("needs ../shared/data/coco128_permissive")
    data = coco_panoptic(
        root, annotations="panoptic_val2017_permissive.json", images="val2017", masks="panoptic_val2017"
    )
    semantic = root / "semantic_val2017"
    for log in data.logs[:6]:
        (frame,) = log.frames
        assert frame.labels is not None
        witness = cv2.imread(str(semantic / f"{frame.id}.png"), cv2.IMREAD_UNCHANGED)
        assert witness is not None
        assert np.array_equal(frame.labels(), witness)

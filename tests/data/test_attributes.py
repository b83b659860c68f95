"""What annotations say besides class and box reaches the run folder and is sliced by."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.analysis.slices import MOST_VALUES, _by_attribute
from adverse.data.attributes import plain_attributes
from adverse.data.coco_file import read_coco
from adverse.data.coco_truth import truth_by_image
from adverse.data.kitti import kitti
from adverse.data.kitti_files import KittiLabel
from adverse.data.voc import voc
from adverse.errors import DataError
from adverse.store.finished_run import finished
from adverse.types import Truth
from formats import write_kitti, write_voc


@pytest.mark.parametrize(
    ("truncation", "occlusion", "wanted"),
    [
        (0.0, 0.0, {"truncated": "no", "occluded": "no"}),
        (0.15, 1.0, {"truncated": "up to 15 %", "occluded": "partly"}),
        (0.151, 2.0, {"truncated": "15 to 30 %", "occluded": "largely"}),
        (0.5, 3.0, {"truncated": "30 to 50 %"}),  # 3: the annotators could not tell
        (0.9, 3.0, {"truncated": "more than 50 %"}),
    ],
)
def test_kitti_says_how_hidden_and_cut_off_objects_are(
    truncation: float, occlusion: float, wanted: dict[str, str]
) -> None:
    label = KittiLabel("here", "Car", truncation, occlusion, (0, 0, 9, 9), (0, 0, 0))
    assert label.attributes == wanted


def test_readers_give_every_object_its_own(tmp_path: Path) -> None:
    data = kitti(write_kitti(tmp_path / "kitti"))
    truth = data.logs[0].frames[0].truth
    assert len(truth.attributes) == len(truth.boxes)
    assert truth.attributes[0]["occluded"] == "no"
    assert truth.attributes[-1] == {}  # of a DontCare region nothing is known
    parsed = voc(write_voc(tmp_path / "voc"))
    told = [value for log in parsed.logs for frame in log.frames for value in frame.truth.attributes]
    assert {name for value in told for name in value} <= {"occluded", "truncated", "pose"}


def test_coco_attributes_are_read_in_both_ways_of_writing_them(tmp_path: Path) -> None:
    annotations = [
        {"attributes": {"occluded": True, "lane": 3, "mask": [1]}, "truncated": 0},
        {"visibility": 0.25, "attributes": "not a table"},
        {},
    ]
    coco = {
        "images": [{"id": 1, "file_name": "a.png", "width": 9, "height": 9}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {"id": n, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], **more}
            for n, more in enumerate(annotations)
        ],
    }
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(coco))
    read = read_coco(path)
    truths = truth_by_image(read, read.images, ["person"], lambda _: (9, 9), Counter())
    assert truths[1].truth.attributes == (
        {"truncated": "0", "occluded": "yes", "lane": "3"},
        {"visibility": "0.25"},
        {},
    )


def test_long_texts_and_tables_are_no_attributes() -> None:
    assert plain_attributes({"note": "n" * 61, "blank": " ", "parts": {}, "none": None}) == {}


def test_attributes_that_do_not_fit_the_objects_are_refused() -> None:
    with pytest.raises(DataError, match="attributes"):
        Truth(
            np.zeros((1, 4)),
            np.zeros(1, np.int64),
            np.zeros(1, np.bool_),
            np.zeros(1, np.int64),
            attributes=({}, {}),
        )


def test_the_run_keeps_them_and_slices_by_them(run: Path) -> None:
    store = finished(run)
    values = store.truth_attributes["occluded"]
    wanted = ["yes" if store.frames.ids[frame].endswith(("1", "3")) else "no" for frame in store.truth.frame]
    assert list(values) == wanted
    summary = json.loads((run / "results" / "summary.json").read_text())
    rows = [row for row in summary["slices"] if row["slice"] == "occluded"]
    assert {row["part"] for row in rows} == {"yes", "no"}
    for row in rows:
        people = sum(value == row["part"] for value in wanted)
        assert row["people"] == people


def test_values_become_slices_and_many_numbers_quarters() -> None:
    few = np.array(["10", "9", "", "9", "b"])
    assert [(one.part, one.members.tolist()) for one in _by_attribute("lane", few)] == [
        ("9", [False, True, False, True, False]),
        ("10", [True, False, False, False, False]),
        ("b", [False, False, False, False, True]),
    ]
    numbers = np.array([str(n) for n in range(101)] + [""])
    quarters = list(_by_attribute("visibility", numbers))
    assert [one.part for one in quarters] == ["0 to 25", "25 to 50", "50 to 75", "75 to 100"]
    assert (np.sum([one.members for one in quarters], axis=0) == [1] * 101 + [0]).all()
    assert list(_by_attribute("name", np.array([f"n{k}" for k in range(MOST_VALUES + 1)]))) == []


@pytest.mark.parametrize(
    ("numbers", "parts"),
    [
        (np.arange(20010, 20030), ["20010 to 20015", "20015 to 20020", "20020 to 20025", "20025 to 20029"]),
        (np.arange(2e7, 2e7 + 17), ["20000000 to 20000004", "20000004 to 20000008"]),
        (np.arange(1, 18) * 1e6, ["1000000 to 5000000", "5000000 to 9000000"]),
        (0.5 + np.arange(17) * 1e-6, ["0.5 to 0.500004", "0.500004 to 0.500008"]),
    ],
)
def test_quarters_of_large_and_close_numbers_are_told_apart(
    numbers: NDArray[np.float64], parts: list[str]
) -> None:
    """And a number lies where its label says."""
    values = np.array([f"{number:.10g}" for number in numbers])
    found = list(_by_attribute("stamp", values))
    assert [one.part for one in found][: len(parts)] == parts
    for one in found:
        low, high = map(float, one.part.split(" to "))
        mine = values[one.members].astype(np.float64)
        assert ((mine >= low) & (mine <= high)).all()
    assert (np.sum([one.members for one in found], axis=0) == 1).all()

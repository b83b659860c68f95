"""A run folder read back: the classes that are asked for, with what the annotations say about each object."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from adverse.data.images import write_image
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.tables import answered_truth
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import study_from
from watching import Quiet

TWO = """
from adverse import Detections, sut

class Two:
    classes = ("person", "car")
    def detect(self, images):
        return [Detections([[0, 0, 9, 9], [1, 1, 5, 5]], [0.9, 0.8], [0, 1]) for _ in images]

@sut
def two():
    \"\"\"Always see a person and a car.\"\"\"
    return Two()
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("two")
    images = [{"id": number, "file_name": f"{number}.png", "width": 32, "height": 24} for number in (1, 2)]
    annotations = [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 50},
        {"id": 2, "image_id": 1, "category_id": 2, "bbox": [1, 1, 4, 4]},
        {"id": 3, "image_id": 2, "category_id": 2, "bbox": [1, 1, 4, 6], "iscrowd": 1},
        {"id": 4, "image_id": 2, "category_id": 2, "bbox": [1, 1, 2, 2], "ignore": 1},
    ]
    categories = [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}]
    (folder / "images").mkdir()
    for image in images:
        write_image(folder / "images" / str(image["file_name"]), np.zeros((24, 32, 3), np.uint8))
    truth = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "two.py").write_text(TWO)
    study = {
        "name": "two",
        "plugins": ["two.py"],
        "data": {"format": "coco", "root": ".", "annotations": "truth.json"},
        "suts": [{"name": "two", "adapter": "two"}],
        "mutations": ["brightness(scale=0.5)"],
    }
    run_study(study_from(study, folder), folder / "run", InlineEngine(), watch=Quiet(), stop=Stop())
    return finished(folder / "run")


def test_targets_are_what_is_read_unless_more_is_asked_for(store: Store) -> None:
    assert store.categories == ("person", "car")
    assert store.truth.labels.tolist() == [0]
    assert store.answers("two")["identity"].labels.tolist() == [0, 0]
    every = store.answers("two", classes=store.categories)
    assert list(every) == ["identity", "brightness(scale=0.5)"]
    assert every["identity"].labels.tolist() == [0, 1, 0, 1]
    assert list(store.answers("two", settings=["identity"])) == ["identity"]


def test_truth_of_all_classes_has_area_and_crowd(store: Store) -> None:
    truth = store.truth_of(store.categories)
    assert truth.frame.tolist() == [0, 0, 1, 1]
    assert truth.labels.tolist() == [0, 1, 1, 1]
    assert truth.area.tolist() == [50, 16, 24, 4]  # the box's own where none is annotated
    assert truth.ignore.tolist() == [False, False, True, True]
    assert truth.crowd.tolist() == [False, False, True, False]


def test_an_answer_whose_score_is_the_limit_reaches_it() -> None:
    """Scores are held in 32 bits, in which 0.7 is a little less than in 64."""
    answers = pa.table(
        {
            "frame": ["a"],
            "boxes": [[[0.0, 0.0, 4.0, 4.0]] * 2],
            "scores": pa.array([[0.7, 0.69]], pa.list_(pa.float32())),
            "labels": [["person"] * 2],
        }
    )
    schema = pa.schema({"frame": pa.string(), "id": pa.int64(), "label": pa.string(), "ignore": pa.bool_()})
    assert answered_truth(answers, 0.7, schema).num_rows == 1

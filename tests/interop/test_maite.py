"""MAITE in both directions, against the real package: its tasks, its runtime checks, and nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from maite.protocols import generic
from maite.protocols import image_classification as ic
from maite.protocols import object_detection as od
from maite.spotcheck import SpotcheckError
from maite.spotcheck import spotcheck_component as spotcheck
from maite.tasks import evaluate, predict

import adverse
from adverse import mutations, plugins
from adverse.data.class_folders import class_folders
from adverse.data.coco import coco
from adverse.data.images import write_image
from adverse.errors import AdverseError, MutationError, StudyError, SutError
from adverse.interop.maite import (
    MaiteAugmentation,
    MaiteClassifier,
    MaiteDataset,
    MaiteDetector,
    MaiteModel,
    Target,
    image_of,
    write_dataset,
)
from adverse.suts.contrast_blobs import contrast_blobs
from adverse.types import ClassScores, Dataset, Detections
from adverse.user_files import load_python
from bad_input.good_study import BOX, PICTURES, GoodStudy

SALT = "salt_pepper(fraction=0.2)"


checked_as: Any = spotcheck  # mypy would have protocols be concrete classes


@pytest.fixture
def study(tmp_path: Path) -> GoodStudy:
    study = GoodStudy(tmp_path / "study", "coco")
    study.truth["categories"].append({"id": 2, "name": "dog"})
    study.truth["annotations"].append(
        {"id": 99, "image_id": 0, "category_id": 2, "bbox": [1.5, 2.25, 10, 9], "iscrowd": 1}
    )
    study.write()
    return study


@pytest.fixture
def ours(study: GoodStudy) -> Dataset:
    return coco(study.data, annotations="truth.json")


class TheirModel:
    """A MAITE model that was written without us: one box at the brightest row, scores for each class."""

    metadata: ClassVar[Any] = {"id": "theirs", "index2label": {0: "person", 2: "dog"}}

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, batch: Any) -> list[Target]:
        self.seen += list(batch)
        answers = []
        for planes in batch:
            row = int(np.asarray(planes).sum(axis=(0, 2)).argmax())
            scores = np.array([[0.75, 0.0, 0.125]], np.float32)
            answers.append(Target(np.array([[0, row, 10, row + 1.0]]), np.array([0]), scores))
        return answers


class HitMetric:
    """A MAITE metric: the share of true boxes that a prediction covers exactly."""

    metadata: Any = None

    def __init__(self) -> None:
        self.metadata = {"id": "hits"}

    def reset(self) -> None:
        self.hits = self.total = 0

    def update(self, pred_batch: Any, target_batch: Any, metadata_batch: Any, /) -> None:
        assert all("id" in one for one in metadata_batch)
        for predicted, true in zip(pred_batch, target_batch, strict=True):
            self.total += len(true.boxes)
            self.hits += sum(any((box == found).all() for found in predicted.boxes) for box in true.boxes)

    def compute(self) -> dict[str, Any]:
        return {"hits": self.hits / self.total}


class Knowing:
    """A detector of ours that finds the red figure."""

    classes = ("person", "dog")

    def detect(self, images: Any) -> list[Detections]:
        x, y, w, h = BOX
        return [
            Detections([[x, y, x + w, y + h]], [0.9])
            if int(image[y + 5, x + 3, 0]) > int(image[y + 5, x + 3, 1]) + 50
            else Detections.none()
            for image in images
        ]


def test_our_parts_keep_their_protocols(ours: Dataset) -> None:
    dataset: od.Dataset = MaiteDataset(ours)  # that mypy accepts these lines is part of the test
    model: od.Model = MaiteModel(Knowing())
    augmentation: od.Augmentation = MaiteAugmentation(SALT)
    assert isinstance(dataset, generic.Dataset)
    assert isinstance(model, generic.Model)
    assert isinstance(augmentation, generic.Augmentation)
    checked: Any = checked_as(od.Dataset)(dataset)
    model_checked: Any = checked_as(od.Model)(model)
    augmentation_checked: Any = checked_as(od.Augmentation)(augmentation)
    image, target, metadata = checked[0]
    images, targets, _ = augmentation_checked(([image], [target], [metadata]))
    assert len(model_checked(images)) == len(targets) == 1
    assert checked.metadata["index2label"] == {0: "person", 1: "dog"}


def test_their_checks_would_notice(ours: Dataset) -> None:
    class Wrong(MaiteDataset):
        def __getitem__(self, index: int, /) -> Any:
            image, target, metadata = super().__getitem__(index)
            return image[0], target, metadata

    with pytest.raises(SpotcheckError):
        checked_as(od.Dataset)(Wrong(ours))[0]


def test_a_maite_program_runs_on_our_parts(ours: Dataset) -> None:
    parts: dict[str, Any] = {"model": MaiteModel(Knowing()), "dataset": MaiteDataset(ours)}
    result, predictions, _ = evaluate(metric=HitMetric(), batch_size=3, return_preds=True, **parts)
    assert result == {"hits": 1.0}
    assert sum(len(batch) for batch in predictions) == PICTURES
    result, _, shown = evaluate(
        metric=HitMetric(),
        augmentation=MaiteAugmentation("brightness(scale=0)"),
        return_augmented_data=True,
        **parts,
    )
    assert result == {"hits": 0.0}
    assert all(not np.any(batch[0][0]) for batch in shown)


@pytest.mark.parametrize("name", [SALT, "lens_mud(coverage=0.3)"])
def test_an_augmentation_gives_the_pixels_of_a_study(ours: Dataset, name: str) -> None:
    theirs = MaiteDataset(ours)
    data: Any = [theirs[number] for number in range(len(theirs))]
    batch: Any = tuple(map(list, zip(*data, strict=True)))
    images, targets, metadata = MaiteAugmentation(name, seed=5)(batch)
    frames = [frame for log in ours.logs for frame in log.frames]
    for frame, image, target, told, before in zip(frames, images, targets, metadata, data, strict=True):
        wanted = mutations.apply(frame.image(), name, seed=5, key=frame.id, log=frame.log_id)
        np.testing.assert_array_equal(image.transpose(1, 2, 0), wanted)
        assert target is before[1]
        assert told == {**before[2], "mutation": name}


def test_depth_travels_in_the_metadata(tmp_path: Path) -> None:
    from adverse.data.folder import folder  # noqa: PLC0415 - only here

    study = GoodStudy(tmp_path / "study", "folder")
    study.write()
    ours = folder(study.data)
    haze = MaiteAugmentation("haze(visibility_m=50)")
    image, target, told = MaiteDataset(ours, depth=True)[0]
    (hazy,), _, _ = haze(([image], [target], [told]))
    assert not np.array_equal(hazy, image)
    image, target, told = MaiteDataset(ours)[0]
    with pytest.raises(MutationError, match="depth"):
        haze(([image], [target], [told]))


def test_a_data_set_comes_back_as_it_went(ours: Dataset, tmp_path: Path) -> None:
    again = write_dataset(MaiteDataset(ours), tmp_path / "again")
    assert again.categories == ours.categories
    assert [log.id for log in again.logs] == [log.id for log in ours.logs]
    for before, after in zip(ours.logs, again.logs, strict=True):
        (one,), (other,) = before.frames, after.frames
        np.testing.assert_array_equal(one.image(), other.image())
        order = np.argsort(one.truth.ignore, kind="stable")
        np.testing.assert_array_equal(one.truth.boxes[order], other.truth.boxes)
        np.testing.assert_array_equal(one.truth.labels[order], other.truth.labels)
        np.testing.assert_array_equal(one.truth.ignore[order], other.truth.ignore)


def test_answers_come_back_as_they_went(ours: Dataset) -> None:
    detector = contrast_blobs()
    images = [frame.image() for log in ours.logs for frame in log.frames]
    there_and_back = MaiteDetector(MaiteModel(detector))
    assert there_and_back.classes == detector.classes
    for one, other in zip(detector.detect(images), there_and_back.detect(images), strict=True):
        assert one.same(other)


def test_their_model_through_our_adapter(tmp_path: Path) -> None:
    source = Path(__file__).read_text()
    start, end = source.index("class TheirModel"), source.index("class HitMetric")
    text = "from typing import Any, ClassVar\nimport numpy as np\nfrom adverse.interop.maite import Target\n"
    (tmp_path / "theirs.py").write_text(text + source[start:end] + "def load():\n    return TheirModel()\n")
    plugin = plugins.load().get("sut", "maite")
    options = plugins.bind(plugin, {"file": "theirs.py", "function": "load"}, where="suts", base=tmp_path)
    detector = plugin.function(**options)
    assert detector.classes == ("person", "unused-1", "dog")
    image = np.zeros((20, 30, 3), np.uint8)
    image[7] = 255
    (answer,) = detector.detect([image])
    assert answer.boxes.tolist() == [[0, 7, 10, 8]]
    assert (answer.scores.tolist(), answer.labels.tolist()) == ([0.75], [0])


def test_their_model_sees_planes_of_bytes_or_scaled_values() -> None:
    image = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)
    plain, scaled = TheirModel(), TheirModel()
    MaiteDetector(plain).detect([image])
    MaiteDetector(scaled, scale=1 / 255).detect([image])
    np.testing.assert_array_equal(plain.seen[0], image.transpose(2, 0, 1))
    np.testing.assert_allclose(scaled.seen[0], image.transpose(2, 0, 1) / 255, rtol=1e-6)
    assert scaled.seen[0].dtype == np.float32


def test_a_study_with_their_model_and_their_data(ours: Dataset, tmp_path: Path) -> None:
    write_dataset(MaiteDataset(ours), tmp_path / "data")
    study = {
        "name": "theirs",
        "data": {"format": "coco", "root": str(tmp_path / "data"), "annotations": "truth.json"},
        "suts": [],
        "mutations": ["brightness(scale=0.9)"],
    }
    detectors = {"theirs": MaiteDetector(MaiteModel(Knowing()))}
    summary = adverse.run(study, tmp_path / "run", detectors=detectors)
    assert summary.trusted
    assert {row["area"] for row in summary.rows if row["setting"] == "identity"} == {1.0}


def test_predict_takes_our_model_and_their_loader(ours: Dataset) -> None:
    theirs = MaiteDataset(ours)
    batches: Any = [([theirs[0][0]], [theirs[0][1]], [theirs[0][2]])]
    predictions, _ = predict(model=MaiteModel(Knowing()), dataloader=batches)
    assert len(predictions[0][0].boxes) == 1


@pytest.mark.parametrize(
    ("planes", "told"),
    [
        (np.zeros((4, 5, 3), np.uint8), "Move the channels to the front"),
        (np.zeros((4, 5), np.uint8), "shape (4, 5)"),
        (np.full((3, 4, 5), 0.5), "not bytes"),
        (np.ones((3, 4, 5)), "Scale the image to 0..255"),
        (np.full((3, 4, 5), 300), "from 300 to 300"),
    ],
)
def test_what_is_no_image_is_told(planes: Any, told: str) -> None:
    with pytest.raises(SutError) as caught:
        image_of(planes)
    assert told in str(caught.value)


def test_gray_and_scaled_images_are_taken() -> None:
    assert image_of(np.full((1, 2, 2), 7)).tolist() == [[[7] * 3] * 2] * 2
    assert image_of(np.full((3, 1, 1), 0.5), scale=255).tolist() == [[[128, 128, 128]]]


def test_bad_models_are_told_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("model = 3\n")
    plugin = plugins.load().get("sut", "maite")
    for given, told in (({}, "no function 'model'"), ({"function": "gone"}, "no function 'gone'")):
        options = plugins.bind(plugin, {"file": "m.py", **given}, where="suts", base=tmp_path)
        with pytest.raises(StudyError, match=told):
            plugin.function(**options)
    (tmp_path / "broken.py").write_text("import nothing_like_it\n")
    options = plugins.bind(plugin, {"file": "broken.py"}, where="suts", base=tmp_path)
    with pytest.raises(AdverseError, match="does not load"):
        plugin.function(**options)
    with pytest.raises(StudyError, match="what its labels mean"):
        MaiteDetector(lambda batch: batch)
    with pytest.raises(SutError, match="boxes, labels and scores"):
        MaiteDetector(list, classes=["person"]).detect([np.zeros((4, 4, 3), np.uint8)])


def test_the_program_of_the_page_runs(study: GoodStudy, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "maite.md").read_text()
    program = tmp_path / "program.py"
    program.write_text(page.split("```python\n")[1].split("```")[0])
    assert load_python(program).boxes_in_noise(study.data) >= 0


class Brightness:
    """A classifier of ours: dark, middle or bright."""

    classes = ("bright", "dark", "middle")

    def classify(self, images: Any) -> list[ClassScores]:
        means = [float(image.mean()) for image in images]
        return [ClassScores([mean / 255, 1 - mean / 255, 0.25]) for mean in means]


@pytest.fixture
def classes(tmp_path: Path) -> Dataset:
    for name, values in {"bright": (250, 251), "dark": (5, 6), "middle": (128,)}.items():
        (tmp_path / "classes" / name).mkdir(parents=True)
        for value in values:
            write_image(tmp_path / "classes" / name / f"{value}.png", np.full((6, 8, 3), value, np.uint8))
    return class_folders(tmp_path / "classes")


def test_classification_keeps_the_protocols_and_comes_back_as_it_went(
    classes: Dataset, tmp_path: Path
) -> None:
    dataset: ic.Dataset = MaiteDataset(classes, task="classification")
    model: ic.Model = MaiteModel(Brightness())
    image, target, _ = checked_as(ic.Dataset)(dataset)[0]
    (answer,) = checked_as(ic.Model)(model)([image])
    assert np.argmax(target) == np.argmax(answer) == 0
    images = [frame.image() for log in classes.logs for frame in log.frames]
    there_and_back = MaiteClassifier(model)
    for one, other in zip(Brightness().classify(images), there_and_back.classify(images), strict=True):
        assert one.same(other)
    again = write_dataset(dataset, tmp_path / "again")
    assert again.categories == classes.categories
    frames = [[frame for log in data.logs for frame in log.frames] for data in (classes, again)]
    for before, after in zip(*frames, strict=True):
        assert before.category == after.category
        np.testing.assert_array_equal(before.image(), after.image())


def test_what_maite_has_no_place_for_is_told(ours: Dataset) -> None:
    class Segments:
        classes = ("road",)

        def segment(self, images: Any) -> Any:
            return images

    with pytest.raises(SutError, match="no protocol"):
        MaiteModel(Segments())
    with pytest.raises(AdverseError, match="no category"):
        MaiteDataset(ours, task="classification")[0]
    wrong: Any = [(np.zeros((3, 4, 4), np.uint8), np.zeros(3), {"id": 0})]

    class Wrong(list[Any]):
        metadata: ClassVar[Any] = {"id": "wrong", "index2label": {0: "a"}}

    with pytest.raises(AdverseError, match="one score for each class"):
        write_dataset(Wrong(wrong), ours.annotations[0].parent / "wrong")

"""Studies of segmenters and classifiers, from files to scores, with every number counted by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy import stats

import adverse
from adverse.analysis.compare import compare
from adverse.data.images import write_image
from adverse.errors import StudyError
from adverse.report.remarks import remarks
from adverse.report.run_tables import level_tables
from adverse.types import Image

CLASSES = ("dark", "light", "sea")
DARKER = "brightness(scale=0.25)"
FRAMES = 6


class Threshold:
    """Calls a pixel light from 128 up; calls blue ones by a name that the data set does not have."""

    classes = ("light", "night", "fish")
    fingerprint = "threshold-1"

    def __init__(self, fails_on: int | None = None) -> None:
        self.fails_on = fails_on
        self.fingerprint = f"threshold-{fails_on}"

    def segment(self, images: Sequence[Image]) -> list[Any]:
        if any(int(image[0, 0, 1]) == self.fails_on for image in images):
            raise ValueError("cannot see")
        return [self.look(image) for image in images]

    @staticmethod
    def look(image: Image) -> NDArray[np.int64]:
        return np.where(image[..., 2] == 255, 2, np.where(image[..., 0] >= 128, 0, 1))


def write_colours(folder: Path, *, each: int, side: int) -> dict[str, str]:
    """Write images for `Colours`, some of each class, and return the study's data section."""
    rng = np.random.default_rng(2)
    for channel, name in enumerate(("red", "green", "blue")):
        for number in range(each):
            image = rng.integers(0, 150, (side, side, 3)).astype(np.uint8)
            image[..., channel] = rng.integers(60, 220, (side, side))
            path = folder / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_image(path, image)
    return {"format": "class-folders", "root": str(folder)}


def write_scenes(root: Path) -> tuple[list[Image], list[NDArray[np.uint8]]]:
    rng = np.random.default_rng(3)
    images, truths = [], []
    for number in range(FRAMES):
        truth = rng.integers(0, 4, (10, 12)).astype(np.uint8)  # 3 has no name
        image = np.zeros((10, 12, 3), np.uint8)
        image[..., 0] = np.where(rng.random((10, 12)) < 0.2, 150, 200 * (truth == 1).astype(np.uint8))
        image[..., 2] = 255 * (rng.random((10, 12)) < 0.1)
        image[0, 0, 1] = 10 * number
        for kind, array in (("images", image), ("labels", truth)):
            path = root / f"log{number % 3}" / kind / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_image(path, array)
        images.append(image)
        truths.append(truth)
    names = {str(number): name for number, name in enumerate(CLASSES)}
    (root / "pixel_classes.json").write_text(json.dumps(names))
    return images, truths


def counted(
    images: list[Image], truths: list[NDArray[np.uint8]], scale: float, missing: int | None
) -> dict[str, float | None]:
    """Return the IoU of each class, one pixel at a time."""
    right, union = dict.fromkeys(CLASSES, 0), dict.fromkeys(CLASSES, 0)
    said_as = {0: "light", 1: "dark", 2: "fish"}
    for number, (image, truth) in enumerate(zip(images, truths, strict=True)):
        said = Threshold.look(np.floor(image * scale + 0.5).astype(np.uint8))
        for t, s in zip(truth.ravel().tolist(), said.ravel().tolist(), strict=True):
            if t == 3:
                continue
            name = "" if number == missing else said_as[s]
            right[CLASSES[t]] += name == CLASSES[t]
            union[CLASSES[t]] += 1
            if name != CLASSES[t] and name in CLASSES:
                union[name] += 1
    return {name: right[name] / union[name] if union[name] else None for name in CLASSES}


def segmentation(root: Path, **more: Any) -> dict[str, Any]:
    return {
        "name": "pixels",
        "task": "segmentation",
        "data": {"format": "folder", "root": str(root)},
        "suts": [],
        "mutations": [DARKER],
        **more,
    }


@pytest.mark.parametrize("fails_on", [None, 20])
def test_a_segmenter_is_scored_pixel_by_pixel(tmp_path: Path, fails_on: int | None) -> None:
    images, truths = write_scenes(tmp_path / "data")
    study = segmentation(tmp_path / "data")
    study["suts"] = []
    detectors = {"threshold": _mapped(Threshold(fails_on))}
    summary = adverse.run(study, tmp_path / "run", detectors=detectors).summary
    rows = {row["setting"]: row for row in summary.rows}
    for setting, scale in (("identity", 1.0), (DARKER, 0.25)):
        missing = None if fails_on is None or setting != "identity" else fails_on // 10
        wanted = counted(images, truths, scale, missing)
        assert rows[setting]["per_class"] == pytest.approx(wanted)
        known = [value for value in wanted.values() if value is not None]
        assert rows[setting]["scores"]["mean_iou"] == pytest.approx(sum(known) / len(known))
        assert rows[setting]["faults"] == (missing is not None)
    share = rows[DARKER]["scores"]["mean_iou"] / rows["identity"]["scores"]["mean_iou"]
    assert rows[DARKER]["share"] == pytest.approx(share)
    assert rows["identity"]["logs"] == 3
    assert level_tables(summary)[0].title.startswith("mean IoU")
    assert any("wrong answers" in line for line in remarks(summary)) == (fails_on is not None)


def _mapped(system: Threshold) -> Threshold:
    system.classes = ("light", "dark", "fish")
    return system


def test_a_class_map_names_pixel_classes(tmp_path: Path) -> None:
    write_scenes(tmp_path / "data")
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from adverse import sut\nimport numpy as np\n"
        "class S:\n    classes = ('light', 'night')\n"
        "    def segment(self, images): return [(i[..., 0] < 128).astype(int) for i in images]\n"
        "@sut\ndef s() -> S: return S()\n"
    )
    study = segmentation(tmp_path / "data", plugins=[str(plugin)], keep_label_maps=True)
    study["suts"] = [{"name": "s", "adapter": "s", "class_map": {"night": "dark"}}]
    summary = adverse.run(study, tmp_path / "run").summary
    assert summary.rows[0]["per_class"]["dark"] > 0
    written = [
        row
        for path in sorted((tmp_path / "run" / "detections").iterdir())
        for row in pq.read_table(io.BytesIO(path.read_bytes())).to_pylist()
    ]
    kept = next(row for row in written if row["setting"] == "identity")
    image = cv2.imread(str(tmp_path / "data" / kept["frame"].replace("/", "/images/")) + ".png")
    stored = cv2.imdecode(np.frombuffer(kept["label_map"], np.uint8), cv2.IMREAD_UNCHANGED)
    assert image is not None
    assert stored is not None
    assert np.array_equal(stored, (image[..., 2] < 128).astype(int))
    again = adverse.run(study, tmp_path / "two", workers=2).summary
    assert again.data == summary.data
    names = tmp_path / "dark.txt"
    names.write_text("# what is dark\nnight  # or dusk\n\n")
    for number, groups in enumerate(({"dark": str(names)}, {"light": ["light"], "dark": "*"})):
        study["suts"] = [{"name": "s", "adapter": "s", "groups": groups}]
        grouped = adverse.run(study, tmp_path / f"groups {number}").summary
        assert [row["per_class"] for row in grouped.rows] == [row["per_class"] for row in summary.rows]
    for wrong, words in (
        ({"dark": ["night"], "light": ["night"]}, "in two groups"),
        ({"dark": [], "light": "*"}, "the group 'dark' has no class"),
        ({"dark": "nowhere.txt"}, "list of classes cannot be read"),
        ({"dark": ["nigth", "dusk"]}, "'nigth' as 'dark', 'dusk' as 'dark'(.|\n)*Did you mean 'night'"),
        ({"dark": ["night"], "ligth": ["light"]}, "no class of the data(.|\n)*Did you mean 'light'"),
    ):
        study["suts"] = [{"name": "s", "adapter": "s", "groups": wrong}]
        with pytest.raises(StudyError, match=words):
            adverse.run(study, tmp_path / "wrong")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "detection", "targets": ["dark"]}, "does not do the task"),
        ({"task": "classification"}, "category"),
        ({"levels": ["located"]}, "levels"),
    ],
)
def test_a_study_for_another_task_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    write_scenes(tmp_path / "data")
    study = {**segmentation(tmp_path / "data"), **change}
    with pytest.raises(StudyError) as caught:
        adverse.run(study, tmp_path / "run", detectors={"s": _mapped(Threshold())})
    assert words in str(caught.value)


def test_pixels_without_names_are_refused(tmp_path: Path) -> None:
    write_scenes(tmp_path / "data")
    (tmp_path / "data" / "pixel_classes.json").unlink()
    with pytest.raises(StudyError, match="pixel classes"):
        adverse.run(segmentation(tmp_path / "data"), tmp_path / "run", detectors={"s": Threshold()})


class Colours:
    classes = ("red", "green", "azure")
    fingerprint = "colours"

    def classify(self, images: Sequence[Image]) -> list[Any]:
        return [image.mean(axis=(0, 1)) for image in images]


def test_a_classifier_is_scored_by_its_best_answers(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    shown = {"red": 0, "green": 1, "n02": 2}
    for name, channel in shown.items():
        for number in range(4):
            image = rng.integers(0, 200, (6, 6, 3)).astype(np.uint8)
            image[..., channel if number else (channel + 1) % 3] = 250
            path = tmp_path / "data" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_image(path, image)
    (tmp_path / "data" / "class_names.json").write_text(json.dumps({"n02": "blue"}))
    study = {
        "name": "colours",
        "task": "classification",
        "data": {"format": "class-folders", "root": str(tmp_path / "data")},
        "mutations": ["channel_dropout(channel=R)"],
    }
    summary = adverse.run(study, tmp_path / "run", detectors={"colours": Colours()}).summary
    rows = {row["setting"]: row for row in summary.rows}
    assert rows["identity"]["scores"] == {"top1": 6 / 12, "top5": 8 / 12}  # it calls blue azure
    assert rows["identity"]["per_class"] == {"blue": 0, "green": 0.75, "red": 0.75}
    assert rows["channel_dropout(channel=R)"]["per_class"]["red"] == 0
    assert level_tables(summary)[0].title.startswith("top-1")


class Blind(Colours):
    fingerprint = "blind"

    def classify(self, images: Sequence[Image]) -> list[Any]:
        return [np.roll(image.mean(axis=(0, 1)), 1) for image in images]


def test_a_classifier_that_is_always_right_has_an_interval_and_always_wrong_is_a_regression(
    tmp_path: Path,
) -> None:
    """From all right to none: no image differs from another, which is no reason to say nothing."""
    for name, channel in (("red", 0), ("green", 1)):
        for number in range(6):
            image = np.full((6, 6, 3), number, np.uint8)
            image[..., channel] = 250
            path = tmp_path / "data" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_image(path, image)
    study = {
        "name": "colours",
        "task": "classification",
        "data": {"format": "class-folders", "root": str(tmp_path / "data")},
    }
    for name, sut in (("right", Colours()), ("wrong", Blind())):
        adverse.run(study, tmp_path / name, detectors={"colours": sut})
    (row,) = adverse.open_run(tmp_path / "right").rows
    unseen = 1 - 0.025 ** (1 / 12)  # the rule of three for 12 images, each a log of its own
    assert (row["top1_interval"]["low"], row["top1_interval"]["high"]) == (pytest.approx(1 - unseen), 1.0)
    (change,) = compare(tmp_path / "right", tmp_path / "wrong").changes
    assert (change.before, change.after, change.outcome) == (1.0, 0.0, "regression")
    assert change.difference is not None
    assert change.difference.low == -1.0
    assert change.p is not None
    assert change.p <= stats.binomtest(0, 12).pvalue / 0.9  # the exact paired test, and surer by the interval

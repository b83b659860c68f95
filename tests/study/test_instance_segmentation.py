"""Instance segmentation from the study file to the table: masks of data, SUTs, store, metrics and pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pycocotools.mask as coco_masks
import pytest
from numpy.typing import NDArray

from adverse import Detections
from adverse.analysis.results import analyze
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from adverse.benchmarks.table import bench_table
from adverse.data.images import write_image
from adverse.errors import StudyError, SutError
from adverse.interop.coco_results import export_coco
from adverse.masks import Masks
from adverse.pages.view.app import Pages
from adverse.pages.view.session import ExploredRun
from adverse.report.page import write_report
from adverse.store.finished_run import finished
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import study_from
from benchmarks.test_masks import pycocotools_of_masks
from watching import Quiet

HEIGHT, WIDTH, IMAGES = 48, 64, 6
DISCS = """
import numpy as np
from adverse import Detections, sut

class Discs:
    classes = ("person", "car", "boat")
    def __init__(self, masks, wrong_size):
        self.masks, self.wrong_size = masks, wrong_size
    def detect(self, images):
        return [self.look(image) for image in images]
    def look(self, image):
        masks, scores, labels = [], [], []
        for label, channel in enumerate((0, 2)):
            inside = image[..., channel].astype(int) - image[..., 2 - channel] > 60
            for shift, score in ((inside.sum() // 20 % 3, 0.9), (4, 0.6)):
                mask = np.roll(inside, shift, 1)
                if mask.any():
                    masks.append(mask)
                    scores.append(score - image[..., 1].mean() / 1000)
                    labels.append(label)
        boxes = [[np.nonzero(m.any(0))[0][0], np.nonzero(m.any(1))[0][0],
                  np.nonzero(m.any(0))[0][-1] + 1, np.nonzero(m.any(1))[0][-1] + 1] for m in masks]
        made = np.array(masks).reshape(-1, *image.shape[:2])
        made = made[:, :-1] if self.wrong_size else made
        return Detections(boxes, scores, labels, masks=made if self.masks else None)

@sut
def discs(masks: bool = True, wrong_size: bool = False):
    \"\"\"Find red and blue discs.\"\"\"
    return Discs(masks, wrong_size)
"""


def disc(number: int, label: int) -> NDArray[np.bool_]:
    """Return the pixels of the disc of a class in an image."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    return np.asarray((rows - 14 - number) ** 2 + (columns - 16 - 30 * label) ** 2 < (5 + number) ** 2)


def write_data(folder: Path) -> None:
    (folder / "images").mkdir(parents=True)
    annotations: list[dict[str, Any]] = []
    for number in range(IMAGES):
        image = np.full((HEIGHT, WIDTH, 3), 100, np.uint8)
        for label, colour in enumerate(((250, 20, 20), (20, 20, 250))):
            mask = disc(number, label)
            image[mask] = colour
            rle = coco_masks.encode(np.asfortranarray(mask.astype(np.uint8)))
            entry: dict[str, Any] = {"id": len(annotations) + 1, "image_id": number, "iscrowd": 0}
            entry["category_id"] = label + 1
            entry["bbox"] = coco_masks.toBbox(rle).tolist()
            if number % 2:  # as polygons, without an area; or as run lengths
                centre, angle = (16 + 30 * label + 0.5, 14 + number + 0.5), np.linspace(0, 2 * np.pi, 24)
                radius = 5 + number
                corners = [[centre[0] + radius * np.cos(a), centre[1] + radius * np.sin(a)] for a in angle]
                entry["segmentation"] = [[float(value) for corner in corners for value in corner]]
            else:
                entry["segmentation"] = {"size": [HEIGHT, WIDTH], "counts": rle["counts"].decode()}
                entry["area"] = float(mask.sum())
            annotations.append(entry)
        write_image(folder / "images" / f"{number}.png", image)
    images = [{"id": n, "file_name": f"{n}.png", "width": WIDTH, "height": HEIGHT} for n in range(IMAGES)]
    names = [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}, {"id": 3, "name": "boat"}]
    truth = {"images": images, "annotations": annotations, "categories": names}
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "discs.py").write_text(DISCS)


def run(folder: Path, out: str = "run", **more: Any) -> Path:
    study = {
        "name": "discs",
        "task": "instance-segmentation",
        "plugins": ["discs.py"],
        "data": {"format": "coco", "root": ".", "annotations": "truth.json"},
        "suts": [{"name": "discs", "adapter": "discs"}],
        "mutations": ["c.contrast(severity=1)", "c.contrast(severity=5)"],
        "robustness": {"bootstrap": 0},
        **more,
    }
    done = run_study(study_from(study, folder), folder / out, InlineEngine(), watch=Quiet(), stop=Stop())
    return done.folder.path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instances")
    write_data(folder)
    return run(folder)


def test_masks_come_back_from_the_store_as_they_were(whole: Path) -> None:
    store = finished(whole)
    assert store.run.masks
    assert store.task == "detection"
    assert store.troubles().num_rows == 0  # an answer without detections has no masks, and is no fault
    answers = store.answers("discs", classes=store.categories, masks=True)["identity"]
    assert answers.masks is not None
    first = Masks((HEIGHT, WIDTH), answers.masks[:1])
    np.testing.assert_array_equal(first.array(0), np.roll(disc(0, 0), disc(0, 0).sum() // 20 % 3, 1))
    truth = store.truth_of(store.categories)
    assert truth.masks is not None
    kept = Masks((HEIGHT, WIDTH), truth.masks)
    np.testing.assert_array_equal(kept.array(0), disc(0, 0))
    told = json.loads((whole.parent / "truth.json").read_text())["annotations"]
    polygon = coco_masks.merge(coco_masks.frPyObjects(told[2]["segmentation"], HEIGHT, WIDTH))
    assert kept.counts[2] == polygon["counts"]
    assert truth.area[2] == coco_masks.area(polygon)  # where none is annotated


def test_the_table_is_pycocotools_on_exported_masks(whole: Path, tmp_path: Path) -> None:
    table = bench_table(whole, partial=True)
    assert table.metric.name == "mask-ap"
    row = table.rows[0]
    assert row.intervals is not None
    assert row.intervals.clean.low is not None
    assert row.intervals.clean.low < row.whole.clean
    export_coco(whole, tmp_path / "coco")
    for setting, value in (
        ("identity", row.whole.clean),
        ("c.contrast(severity=1)", row.whole.cells["contrast", 1]),
    ):
        stats = exported_ap(tmp_path / "coco", setting)
        assert value == pytest.approx(stats, abs=1e-9)
    boxes = bench_table(whole, metric="ap", partial=True, with_intervals=False)
    assert boxes.rows[0].whole.clean != row.whole.clean
    city = bench_table(whole, metric="cityscapes-ap", partial=True)
    assert 0 < city.rows[0].whole.clean <= 1
    assert city.rows[0].intervals is not None


def exported_ap(folder: Path, setting: str) -> float:
    """Return pycocotools' mask AP of files that were exported."""
    truth = json.loads((folder / "annotations.json").read_text())["annotations"]
    found = json.loads((folder / "discs" / f"{setting}.json").read_text())
    no, ones = np.zeros(len(truth), np.bool_), np.ones((len(truth), 4))
    return float(
        pycocotools_of_masks(
            TrueObjects(
                np.array([one["image_id"] for one in truth]),
                ones,
                np.array([one["category_id"] - 1 for one in truth]),
                np.array([one["area"] for one in truth]),
                no,
                no,
                [one["segmentation"] for one in truth],
            ),
            DetectedObjects(
                np.array([one["image_id"] for one in found]),
                np.ones((len(found), 4)),
                np.array([one["category_id"] - 1 for one in found]),
                np.array([one["score"] for one in found]),
                [one["segmentation"] for one in found],
            ),
        )[0]
    )


def test_recorded_masks_give_the_same_numbers_without_boxes(whole: Path) -> None:
    export_coco(whole, whole.parent / "vendor")
    for file in (whole.parent / "vendor" / "discs").glob("*.json"):
        entries = json.loads(file.read_text())
        for entry in entries:
            del entry["bbox"]
        file.write_text(json.dumps(entries))
    recorded = {
        "name": "discs",
        "adapter": "predictions",
        "path": "vendor/discs/{mutation}.json",
        "annotations": "truth.json",
        "missing": "no-detections",
    }
    again = run(whole.parent, "again", suts=[recorded])
    for metric in ("mask-ap", "ap"):
        first, second = (
            bench_table(path, metric=metric, partial=True, with_intervals=False) for path in (whole, again)
        )
        assert first.rows[0].whole == second.rows[0].whole


def test_a_sut_without_masks_or_of_another_size_fails_on_every_image(tmp_path: Path) -> None:
    write_data(tmp_path)
    suts = [
        {"name": "boxes", "adapter": "discs", "masks": False},
        {"name": "small", "adapter": "discs", "wrong_size": True},
    ]
    path = run(tmp_path, suts=suts, mutations=["c.contrast(severity=1)"])
    rows = [row for file in (path / "detections").iterdir() for row in pq.read_table(file).to_pylist()]
    assert {row["status"] for row in rows} == {"fault"}
    reasons = {row["sut"]: row["reason"] for row in rows}
    assert "detections have no masks" in reasons["boxes"]
    assert "a mask is not of the image's size" in reasons["small"]


def test_what_cannot_have_masks_is_said_before_the_run(tmp_path: Path) -> None:
    write_data(tmp_path)
    with pytest.raises(StudyError, match="has no masks of objects"):
        run(tmp_path, data={"format": "folder", "root": "."})
    with pytest.raises(StudyError, match="no masks: they are of detections"):
        run(tmp_path, task="segmentation", masks=True)
    plain = run(tmp_path, task="detection")
    assert pq.read_table(next(iter((plain / "detections").iterdir())))["masks"].null_count > 0
    with pytest.raises(StudyError, match="mask-ap is of masks, and the run has none"):
        bench_table(plain, metric="mask-ap", partial=True)


def test_report_and_explorer_draw_the_masks(whole: Path) -> None:
    analyze(whole)
    page = write_report(whole).read_text("utf-8")
    assert 'class="mask found"' in page
    assert 'class="mask truth"' in page
    side = Pages(ExploredRun(whole)).frame({"log": "0", "sut": "discs"})["sides"]["left"]
    assert side["found"][0]["mask"].startswith("M")
    assert side["true"][0]["mask"].startswith("M")


@pytest.mark.parametrize(
    ("masks", "words"),
    [
        (np.zeros((2, 4, 4), bool), "2 masks for 1"),
        (np.full((1, 4, 4), 3), "other than 0 and 1"),
        (np.zeros((1, 4), bool), "not (N, height, width)"),
        ([{"size": [4, 4], "counts": "#"}], "characters"),
        ([{"size": [4, 4], "counts": "5"}], "do not add up"),
        ([{"size": [4, 4], "counts": "`"}], "cut off"),
        ([{"size": [4], "counts": "5"}], "not [height, width]"),
        ([{"size": [4, 4], "counts": [3, 14]}], "do not add up"),
        ([{"size": [4, 4], "counts": [-3, 19]}], "whole numbers"),
        ([{"size": [4, 4]}], "neither a text"),
    ],
)
def test_masks_that_are_none_are_refused(masks: Any, words: str) -> None:
    with pytest.raises(SutError) as told:
        Detections([[0, 0, 1, 1]], [0.5], masks=masks)
    assert words in str(told.value)

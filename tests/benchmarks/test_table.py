"""bench-table on a whole study, with pycocotools on the stored detections as the witness."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from adverse.benchmarks.metrics import metric_of
from adverse.benchmarks.mpc import CORRUPTIONS, comparable, under_corruption
from adverse.benchmarks.table import BenchTable, SutRobustness, as_csv, as_data, bench_table
from adverse.data.images import write_image
from adverse.errors import IncompleteError, StudyError
from adverse.report.benchmark import benchmark_remarks, benchmark_tables, published_remarks
from adverse.report.benchmark_figures import TRAINED, rmse_chart, severity_chart
from adverse.requirements.rules import Rule
from adverse.requirements.run_figures import RunFigures
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import study_from
from bad_input.command import adverse_here
from benchmarks.coco_witness import pycocotools_says
from watching import Quiet

SQUARES = """
import numpy as np
from adverse import Detections, sut

class Squares:
    def __init__(self, classes, unlucky):
        self.classes = classes
        self.unlucky = unlucky
    def detect(self, images):
        return [self.look(image) for image in images]
    def look(self, image):
        if self.unlucky and image.shape[1] == 61:
            raise RuntimeError("61 is bad luck")
        found = []
        for label, channel in enumerate((0, 2)[: len(self.classes)]):
            rest = image[..., 2 - channel].astype(int)
            ys, xs = np.nonzero(image[..., channel].astype(int) - rest > 60)
            if len(ys):
                x0, x1, y0, y1 = xs.min(), xs.max() + 1, ys.min(), ys.max() + 1
                filled = len(ys) / ((x1 - x0) * (y1 - y0))
                found.append(([x0, y0, x1, y1], filled, label))
                found.append(([x0, y0, x1, y1 + 3], filled / 2, label))
        boxes, scores, labels = zip(*found) if found else ((), (), ())
        return Detections(boxes, scores, labels)

@sut
def squares():
    \"\"\"Find red and blue squares.\"\"\"
    return Squares(("person", "car"), False)

@sut
def shy():
    \"\"\"Find red squares, and fail on images that are 61 wide.\"\"\"
    return Squares(("person",), True)
"""
IMAGES = 6


def write_data(folder: Path) -> None:
    (folder / "images").mkdir(parents=True)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in range(IMAGES):
        width = 61 if number == 1 else 64
        image = np.full((48, width, 3), 100, np.uint8)
        for label, colour in ((1, (250, 20, 20)), (2, (20, 20, 250))):
            if (number + label) % 3:
                x, y, size = 4 + 30 * (label - 1), 5 + number, 12 + 2 * number
                image[y : y + size, x : x + size] = colour
                entry = {"id": len(annotations), "image_id": number, "category_id": label}
                annotations.append({**entry, "bbox": [x, y, size, size], "area": size * size / 2})
        annotations.append(
            {"id": len(annotations), "image_id": number, "category_id": 2, "bbox": [0, 0, 9, 9], "iscrowd": 1}
        )
        write_image(folder / "images" / f"{number}.png", image)
        images.append({"id": number, "file_name": f"{number}.png", "width": width, "height": 48})
    names = [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}, {"id": 3, "name": "boat"}]
    truth = {"images": images, "annotations": annotations, "categories": names}
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "squares.py").write_text(SQUARES)


def run(folder: Path, mutations: list[Any], **more: Any) -> Path:
    study = {
        "name": "squares",
        "plugins": ["squares.py"],
        "data": {"format": "coco", "root": ".", "annotations": "truth.json"},
        "suts": [{"name": "squares", "adapter": "squares"}, {"name": "shy", "adapter": "shy"}],
        **({"mutations": mutations} if mutations else {}),
        "robustness": {"bootstrap": 0},
        **more,
    }
    engine = InlineEngine()
    return run_study(
        study_from(study, folder), folder / "run", engine, watch=Quiet(), stop=Stop()
    ).folder.path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_data(folder)
    return run(folder, ["coco-c", "c.spatter(severity=1)", "gaussian_blur(sigma_px=2)"])


@pytest.fixture
def some(tmp_path: Path) -> Path:
    write_data(tmp_path)
    return run(tmp_path, ["c.fog(severity=1)", "c.fog(severity=2)", "c.contrast(severity=5)"])


def stored(path: Path, sut: str) -> Iterator[tuple[str, DetectedObjects]]:
    """Read the detections of a SUT by setting, without our reader."""
    rows = [
        row for file in sorted((path / "detections").iterdir()) for row in pq.read_table(file).to_pylist()
    ]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        mine = [row for row in rows if row["setting"] == setting and row["sut"] == sut]
        items = [
            (int(row["frame"]), box, ["person", "car", "boat"].index(label), score)
            for row in mine
            for box, label, score in zip(row["boxes"], row["labels"], row["scores"], strict=True)
        ]
        columns = [np.array([item[at] for item in items]) for at in range(4)]
        boxes = columns[1].astype(np.float64).reshape(-1, 4)
        yield (
            setting,
            DetectedObjects(
                columns[0].astype(np.int64), boxes, columns[2].astype(np.int64), columns[3].astype(np.float64)
            ),
        )


def truth_file(path: Path) -> TrueObjects:
    entries = json.loads((path.parent / "truth.json").read_text())["annotations"]
    boxes = np.array([entry["bbox"] for entry in entries], np.float64)
    boxes[:, 2:] += boxes[:, :2]
    crowd = np.array([bool(entry.get("iscrowd")) for entry in entries])
    area = [entry.get("area", entry["bbox"][2] * entry["bbox"][3]) for entry in entries]
    return TrueObjects(
        np.array([entry["image_id"] for entry in entries]),
        boxes,
        np.array([entry["category_id"] - 1 for entry in entries]),
        np.array(area),
        crowd,
        crowd,
    )


@pytest.mark.parametrize("sut", ["squares", "shy"])
def test_pycocotools_on_what_is_stored_comes_to_the_same(whole: Path, sut: str) -> None:
    table = bench_table(whole)
    (row,) = [row for row in table.rows if row.sut == sut]
    truth = truth_file(whole)
    ap = {setting: pycocotools_says(truth, found, IMAGES, 3)[0][0] for setting, found in stored(whole, sut)}
    cells = [ap[f"c.{name}(severity={severity})"] for name in CORRUPTIONS for severity in range(1, 6)]
    assert row.whole.clean == pytest.approx(ap["identity"], abs=1e-9)
    assert row.whole.corrupted == pytest.approx(np.mean(cells), abs=1e-9)
    assert row.whole.relative == pytest.approx(np.mean(cells) / ap["identity"], abs=1e-9)
    assert row.whole.label == "mPC"
    assert 0 < row.whole.corrupted < row.whole.clean
    assert list(row.whole.by_corruption) == list(CORRUPTIONS)
    assert (table.classes, table.images, table.status) == (("person", "car"), IMAGES, "ok")
    assert table.not_counted == ("spatter",)
    assert row.intervals is not None
    assert row.intervals.corrupted.status == "few logs"
    assert row.intervals.corrupted.low is not None
    assert row.intervals.corrupted.low < row.whole.corrupted


def test_faults_count_as_nothing_detected_and_are_told(whole: Path) -> None:
    table = bench_table(whole, classes=["person"])
    squares, shy = table.rows
    assert (squares.faults, shy.faults) == (0, 77)  # one image under the baseline and 76 corruptions
    assert shy.whole.clean < squares.whole.clean
    assert table.classes == ("person",)


def test_classes_average_to_the_whole(whole: Path) -> None:
    for metric in ("ap", "voc-ap50-11"):
        for row in bench_table(whole, metric=metric, with_intervals=False).rows:
            assert row.intervals is None
            assert set(row.classes) == {"person", "car"}
            mean = np.mean([found.corrupted for found in row.classes.values()])
            assert row.whole.corrupted == pytest.approx(mean)
    assert [row.classes_named for row in bench_table(whole).rows] == [2, 1]


def test_a_run_without_all_corruptions_has_no_mpc(some: Path) -> None:
    with pytest.raises(IncompleteError, match=r"72 are missing; got: no gaussian_noise, .*, fog 3 4 5,"):
        bench_table(some)
    table = bench_table(some, partial=True)
    assert table.rows[0].whole.label == "mean over 2 corruptions (3 cells), not mPC"
    assert "mPC" not in json.dumps(as_data(table)).replace("not mPC", "")
    assert "mPC" not in as_csv(table)


def test_what_a_sut_was_trained_with_is_marked_and_its_mean_is_not_mpc(tmp_path: Path) -> None:
    write_data(tmp_path)
    suts: list[dict[str, Any]] = [
        {"name": "squares", "adapter": "squares", "trained_on": ["c.fog(severity=1)", "t.jpeg"]},
        {"name": "shy", "adapter": "shy"},
    ]
    path = run(tmp_path, ["c.fog(severity=1)", "c.contrast(severity=5)"], suts=suts)
    table = bench_table(path, partial=True, with_intervals=False)
    trained, other = table.rows
    assert trained.trained_on == ("fog",)
    assert trained.whole.label == "mean over 2 corruptions, trained on 1 of them: not mPC"
    assert other.trained_on == ()
    data = as_data(table)
    assert [sut["trained_on"] for sut in data["suts"]] == [["fog"], []]
    corruptions = next(one for one in benchmark_tables(data) if one.name == "benchmark corruptions")
    texts = {row[0].value: [str(cell.text) for cell in row[1:]] for row in corruptions.rows}
    assert texts["fog"][0].endswith(TRAINED)
    assert not texts["contrast"][0].endswith(TRAINED)
    assert not texts["fog"][1].endswith(TRAINED)
    assert any("trained on fog" in line for line in benchmark_remarks(table))
    told = [line for line in as_csv(table).splitlines() if "trained on" in line]
    assert told == [f"squares,{table.metric.name},all,trained on,fog,,1"]
    bad = [{**suts[0], "trained_on": ["c.fogg"]}]
    with pytest.raises(StudyError, match=r"c\.fogg"):
        run(tmp_path, ["c.fog(severity=1)"], suts=bad)


def test_a_whole_battery_trained_on_is_not_mpc_and_the_gate_says_so() -> None:
    cells = {(name, severity): 0.25 for name in CORRUPTIONS for severity in range(1, 6)}
    clean = under_corruption(0.5, cells, metric="AP")
    trained = under_corruption(0.5, cells, metric="AP", trained_on=("fog", "snow"))
    assert clean.complete
    assert not trained.complete
    assert trained.label == "mean over 15 corruptions, trained on 2 of them: not mPC"
    rows = (
        SutRobustness("a", trained, {}, 1, 0, None, ("fog", "snow")),
        SutRobustness("b", clean, {}, 1, 0, None),
    )
    table = BenchTable("both", metric_of("ap"), rows, ("person",), 9, 0, "ok", ())
    summary = benchmark_tables(as_data(table))[0]
    assert [column.heading for column in summary.columns] == ["SUT", "P", "mean", "% of P"]
    assert "not mPC" in summary.title
    assert [row[0].value for row in summary.rows] == [f"a {TRAINED}", "b"]
    by_group = benchmark_tables(as_data(table))[1].rows
    texts = {row[0].value: [str(cell.text) for cell in row[1:]] for row in by_group}
    assert (texts["weather"], texts["digital"]) == ([f"25.0 {TRAINED}", "25.0"], ["25.0", "25.0"])
    figure = severity_chart(as_data(table)).svg()
    assert f"a {TRAINED}" in figure
    assert "trained on: a fog, snow" in figure
    change = {"images": 1, "cells": [{"corruption": name, "value": 9.0} for name in CORRUPTIONS]}
    figure = rmse_chart(as_data(table), change).svg()
    assert f"fog {TRAINED}" in figure
    assert f"frost {TRAINED}" not in figure
    gate = RunFigures.__new__(RunFigures)
    gate.benchmark = cache(lambda _: table)
    rule = Rule(measure="mPC", at_least=20.0)
    doubts = {sut: gate._benchmarked(rule, sut).doubt for sut in ("a", "b")}
    assert "trained on fog, snow" in doubts["a"]
    assert doubts["b"] == ""


def test_an_image_that_one_setting_cannot_use_is_left_out_of_all(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "images" / "3.png").write_bytes(b"not a picture")
    path = run(tmp_path, ["c.fog(severity=1)"])
    table = bench_table(path, partial=True)
    assert (table.images, table.left_out, table.status) == (IMAGES - 1, 1, "incomplete")
    path = run(tmp_path, ["c.fog(severity=1)"], quarantine_budget=0.5)
    assert bench_table(path, partial=True).status == "ok"
    adverse_here("bench-table", path, "--partial").expect(0, "1 images could not be used")


def test_what_is_not_there_is_said(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"no metric 'app'.*Did you mean 'ap'"):
        bench_table(whole, metric="app")
    with pytest.raises(StudyError, match=r"no class 'cat'.*Did you mean 'car'"):
        bench_table(whole, classes=["cat"])
    adverse_here("bench-table", whole, "--classes", "boat").expect(
        2, "no object of these classes is annotated"
    )
    adverse_here("bench-table", tmp_path).expect(2, "this is not a run folder")
    adverse_here("bench-table", whole, "--metric", "ap50", "--with", "published").expect(
        2, "no published results for ap50", "ap, voc-ap50, voc-ap50-11"
    )


def test_the_printed_table_fits_80_columns(whole: Path) -> None:
    said = adverse_here("bench-table", whole, "--with", "published", "--per-class")
    said.expect(
        0, "squares: 6 images, person, car", "mPC", "rPC %", "elastic_transform", "PUBLISHED, not of this run"
    )
    said.expect(
        0,
        "Hybrid Task Cascade",
        "50.6",
        "32.7",
        "64.7",
        "as published by its authors",
        "no part of mPC: spatter",
    )
    said.expect(
        0, "shy: never named 1 of the 2 classes", "shy: failed on", "COCO AP of boxes (IoU .50:.05:.95"
    )
    tables = [line for line in said.text.splitlines() if not line.startswith("- ")]
    assert max(map(len, tables)) <= 80


def test_json_csv_and_files_in_the_run(whole: Path, tmp_path: Path) -> None:
    said = adverse_here("bench-table", whole, "--json", "--with", "published", "--csv", tmp_path / "out.csv")
    data = json.loads(said.text)
    assert data["metric"]["full"].startswith("COCO AP of boxes")
    assert len(data["suts"][0]["cells"]) == 75
    assert data["published"]["rows"][0]["clean"] == 50.6
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    (mpc,) = [row for row in rows if (row["sut"], row["class"], row["quantity"]) == ("shy", "all", "mPC")]
    assert float(mpc["value"]) == data["suts"][1]["mPC"]
    adverse_here("bench-table", whole, "--save").expect(0, "benchmark.json", "benchmark.csv")
    assert json.loads((whole / "results" / "benchmark.json").read_text())["suts"] == data["suts"]
    adverse_here("verify", whole).expect(0)


def test_published_rows_of_other_images_or_classes_are_said_not_to_compare() -> None:
    def of(images: int, classes: int) -> list[str]:
        names = tuple(f"class {number}" for number in range(classes))
        table = BenchTable("made up", metric_of("ap"), (), names, images, 0, "ok", ())
        return published_remarks(table, [row for row in comparable("ap") if row.dataset == "coco"])

    assert of(5000, 80) == []
    (line,) = of(60, 1)
    assert line.startswith("- NOT COMPARABLE with the published rows of coco: those are of 5000 images")
    assert line.endswith("this table of 60 images and 1 class")
    assert len(of(5000, 1)) == len(of(4999, 80)) == 1


def test_a_saved_table_does_not_outlive_the_run_it_is_about(some: Path) -> None:
    adverse_here("bench-table", some, "--partial", "--save").expect(0)
    saved = some / "results" / "benchmark.json"
    run(some.parent, ["c.fog(severity=1)", "c.fog(severity=2)", "c.contrast(severity=5)"])
    assert saved.exists()
    run(some.parent, ["c.fog(severity=1)"])
    assert not saved.exists()
    adverse_here("verify", some).expect(0)

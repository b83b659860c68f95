"""What a report says of segmenters, classifiers, mPC and requirements equals what the run says."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow
from playwright.sync_api import Browser
from scipy import stats

import adverse
from adverse.analysis.compare import compare
from adverse.analysis.results import Summary, read_summary
from adverse.benchmarks.segmentation import mean_iou
from adverse.benchmarks.table import bench_table, save
from adverse.curves.interval import Interval
from adverse.report import galleries
from adverse.report.benchmark import class_tables
from adverse.report.page import write_report
from adverse.report.pictures import Looker
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.store.finished_run import finished
from adverse.text import setting_text
from adverse.types import Image
from browsing import barriers
from html_reading import Read, read
from study.test_tasks import Colours, Threshold, _mapped, segmentation, write_colours, write_scenes


class Contrary(Colours):
    """Calls every colour by the name of the weakest."""

    fingerprint = "contrary"

    def classify(self, images: Sequence[Image]) -> list[Any]:
        return [-scores for scores in super().classify(images)]


@pytest.fixture(scope="module")
def classified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run of a classifier with the whole battery, and save its benchmark."""
    folder = tmp_path_factory.mktemp("classified")
    data = write_colours(folder / "data", each=2, side=32)
    study = {"name": "colours", "task": "classification", "data": data, "mutations": ["coco-c"]}
    adverse.run(study, folder / "run", detectors={"colours": Colours(), "contrary": Contrary()})
    return folder / "run"


@pytest.fixture(scope="module")
def segmented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("segmented")
    write_scenes(folder / "data")
    mutations = ["brightness(scale=0.5)", "gaussian_blur(sigma_px=2)"]
    study = segmentation(folder / "data", mutations=mutations, keep_label_maps=True)
    suts = {"low": _mapped(Threshold(20)), "high": _mapped(Threshold(90))}
    adverse.run(study, folder / "run", detectors=suts)
    return folder / "run"


def test_nobody_is_shut_out_of_a_report_on_scores(classified: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(write_report(classified).resolve().as_uri())
    assert barriers(page) == []
    page.close()


def page_of(run: Path) -> tuple[str, Read]:
    text = write_report(run).read_text()
    return text, read(text)


def table_of(page: Read, start: str) -> list[list[str]]:
    (table,) = (rows for caption, rows in page.tables.items() if caption.startswith(start))
    return table


def rows_of(run: Path) -> list[dict[str, Any]]:
    return list(json.loads((run / "results" / "summary.json").read_text())["rows"])


def test_what_a_segmenter_loses_is_drawn_and_named(segmented: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looker = Looker(finished(segmented))
    drawn: list[Image] = []
    monkeypatch.setattr(galleries, "picture", lambda image, **_: drawn.append(image))
    summary = read_summary(looker.store)
    every = pq.read_table(segmented / "results" / "objects.parquet")
    read_table, path = pq.read_table, segmented / "results" / "objects.parquet"
    told = {path: every.filter(pc.equal(every["score"], 0))}
    monkeypatch.setattr(
        "adverse.report.galleries.pq.read_table",
        lambda file, **more: told[file] if file in told else read_table(file, **more),
    )
    unanswered = galleries.telling_image(summary, looker)
    assert unanswered is not None
    assert unanswered.words.startswith("mean IoU 0.33 clean, no answer under brightness 0.5. Colours: its")
    drawn.clear()
    told[path] = every  # an image that the SUT answered comes before those on which it failed
    lost = galleries.telling_image(summary, looker)
    assert lost is not None
    assert lost.words.endswith("Colours: its answer, but for the class that covers most.")
    ((name, before, after),) = re.findall(r"most lost: (\w+), IoU (.{4}) to (.{4})", lost.words)
    assert name in looker.store.pixel_classes
    assert float(before) > float(after)
    frames = looker.store.frames.ids
    (frame,) = [one for one in frames if np.array_equal(laid_over_by_hand(looker, lost.sut, one), drawn[0])]
    monkeypatch.setattr(galleries, "label_map", lambda *_: None)
    drawn.clear()
    plain = galleries.telling_image(summary, looker)
    assert plain is not None
    assert plain.words.endswith(galleries.NOT_DRAWN)
    np.testing.assert_array_equal(drawn[0], looker.image(frame, "identity"))


def laid_over_by_hand(looker: Looker, sut: str, frame: str) -> NDArray[np.uint8]:
    """Return a clean frame with the answer of a segmenter over it, as the palette and the opacity say."""
    image = looker.image(frame, "identity")
    record = looker.store.record(sut, "identity", frame)
    if record is None or record["label_map"] is None:
        return image
    labels = np.asarray(Pillow.open(io.BytesIO(record["label_map"])))
    colours = np.array([[0xE6, 0x9F, 0x00], [0x56, 0xB4, 0xE9], [0x00, 0x9E, 0x73]])[labels]
    drawn = np.rint(0.45 * image + 0.55 * colours)
    bare = labels == np.argmax([np.sum(labels == label) for label in range(3)])
    return np.where(bare[..., None], image, drawn).astype(np.uint8, copy=False)


def test_every_class_of_a_segmenter_is_shown(segmented: Path) -> None:
    _, page = page_of(segmented)
    for sut in ("low", "high"):
        head, *lines = table_of(page, f"{sut}: IoU of each class")
        rows = [row for row in rows_of(segmented) if row["sut"] == sut]
        assert [line[0] for line in lines] == [setting_text(row["setting"]) for row in rows]
        for line, row in zip(lines, rows, strict=True):
            wanted = [row["per_class"][name] for name in head[1:]]
            assert line[1:] == ["-" if value is None else f"{value:.3f}" for value in wanted]
        with (segmented / "report_tables" / f"classes_{sut}.csv").open(newline="") as file:
            written = {(r["setting"], r["class"]): r["mean_iou"] for r in csv.DictReader(file)}
        assert {key: float(value) for key, value in written.items() if value} == {
            (row["setting"], name): value
            for row in rows
            for name, value in row["per_class"].items()
            if value is not None
        }


def test_of_many_classes_each_is_told_at_its_worst_who_loses_most_first() -> None:
    names = [f"class {number}" for number in range(20)]
    clean = {name: number / 20 for number, name in enumerate(names)}
    rows = [
        {"sut": "a", "setting": "identity", "group": "baseline", "per_class": clean},
        {"sut": "a", "setting": "x", "group": "mild", "per_class": {n: 0.9 * v for n, v in clean.items()}},
        {"sut": "a", "setting": "y", "group": "mild", "per_class": {n: v**3 for n, v in clean.items()}},
    ]
    data = {"task": "segmentation", "metric": "mean_iou", "rows": rows}
    (table,) = class_tables(Summary(data))
    losses = {name: value - min(0.9 * value, value**3) for name, value in clean.items() if value}
    shown = [row[0].value for row in table.rows]
    assert shown == sorted(losses, key=lambda name: -losses[name])
    assert len(shown) == 19  # of the first nothing can be lost
    assert "1 class without" in table.caption
    worst = {row[0].value: (row[2].value, row[3].value) for row in table.rows}
    assert worst["class 19"] == (pytest.approx(0.9 * 0.95), "x")
    assert worst["class 1"] == (pytest.approx(0.05**3), "y")
    assert len(table.data()) == 60


def test_scores_stand_in_the_answer_with_their_interval(segmented: Path) -> None:
    text, page = page_of(segmented)
    rows = rows_of(segmented)
    best = max((row for row in rows if row["group"] == "baseline"), key=lambda row: row["scores"]["mean_iou"])
    assert f"{best['sut']} has mean IoU {best['scores']['mean_iou']:.3f}" in text
    table = table_of(page, "mean IoU, and share")
    assert table[0][1:] == ["low", "high"]


def test_the_corruption_benchmark_is_offered_and_then_shown(classified: Path) -> None:
    text, page = page_of(classified)
    assert "adverse bench-table RUN --save" in text
    found = bench_table(classified)
    save(found, finished(classified))
    _, page = page_of(classified)
    row = found.rows[0]
    head, line, _ = table_of(page, "top-1 accuracy, in percent")
    assert head == ["SUT", "P", "mPC", "rPC"]
    numbers = (row.whole.clean, row.whole.corrupted, row.whole.relative)
    assert line[1:] == [f"{100 * (value or 0):.1f}" for value in numbers]
    _, *lines = table_of(page, "top-1 in percent, mean over severities")
    means = {"(clean)": row.whole.clean, **row.whole.by_corruption}
    shown = [[name, f"{100 * value:.1f}"] for name, value in means.items()]
    assert shown == [one[:2] for one in lines]
    _, *lines = table_of(page, "top-1 of each class")
    assert [one[:3] for one in lines] == [
        [name, f"{100 * one.clean:.1f}", f"{100 * one.corrupted:.1f}"] for name, one in row.classes.items()
    ]
    written, _ = json.loads((classified / "report_tables" / "benchmark.json").read_text())
    assert (written["P"], written["mPC"], written["rPC"]) == numbers


def test_requirements_open_the_report_where_there_are_verdicts(
    segmented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _ = page_of(segmented)
    assert "The run was not checked against rules" in text
    judged = tmp_path / "run"
    shutil.copytree(segmented, judged)
    interval = Interval(0.75, 0.25, 0.875, 0.95, "jackknife", 30, "ok")
    verdicts = [
        Verdict("sees sky", "mean IoU of low is at least 0.5", 0.5, 0.75, interval, outcome, "why not")
        for outcome in (Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL)
    ]
    monkeypatch.setattr("adverse.report.page.saved_verdicts", lambda *_, **__: {"rules": verdicts})
    text, page = page_of(judged)
    assert "Rules: 1 FAIL, 1 INCONCLUSIVE, 1 PASS." in text
    assert "The run was not checked against rules" not in text
    head, *lines = table_of(page, "Rules")
    assert [line[0].split()[1] for line in lines] == ["FAIL", "INCONCLUSIVE", "PASS"]
    assert lines[0][2:] == ["0.5", "0.75", "why not"]
    assert head[1] == "rule"


def test_segmenters_are_compared_over_the_same_logs(segmented: Path) -> None:
    """The jackknife by hand: without each log in turn, from the pixels the run counted."""
    store = finished(segmented)
    rows = {(row["sut"], row["setting"]): row["scores"]["mean_iou"] for row in rows_of(segmented)}
    for change in compare(segmented, segmented, suts={"low": "high"}).changes:
        wanted = [rows[sut, change.setting] for sut in ("low", "high")]
        assert (change.before, change.after) == pytest.approx(wanted)
        sides = []
        for sut in ("low", "high"):
            found = store.pixel_counts(sut)[change.setting]
            log = store.frames.log[found.frame]
            test = store.frames.test[found.frame]
            without = [found.counts[test & (log != one)].sum(axis=0) for one in np.unique(log[test])]
            sides.append(np.array([mean_iou(counts) for counts in without]))
        away = sides[1] - sides[0]
        assert change.difference is not None
        assert change.difference.value == pytest.approx(wanted[1] - wanted[0])
        if change.difference.low is not None and change.difference.high is not None:
            count = len(away)
            error = np.sqrt((count - 1) / count * ((away - away.mean()) ** 2).sum())
            reach = stats.t.ppf(0.975, count - 1) * error
            assert change.difference.high - change.difference.low == pytest.approx(2 * reach)


def test_the_benchmark_is_compared_where_both_runs_have_it(classified: Path) -> None:
    first, second = bench_table(classified).rows
    found = compare(classified, classified, suts={"colours": "contrary"})
    changes = {change.figure: change for change in found.changes if change.setting == "coco-c"}
    assert set(changes) == {"P", "mPC", "rPC"}
    assert (changes["mPC"].before, changes["mPC"].after) == (first.whole.corrupted, second.whole.corrupted)
    assert changes["P"].difference is not None
    assert changes["P"].difference.value == second.whole.clean - first.whole.clean
    same = compare(classified, classified)
    assert {change.outcome for change in same.changes} <= {"unchanged", "not told"}
    assert same.of("unchanged")

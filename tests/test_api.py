"""Python programs: studies with detectors that are objects, finished runs, data sets, Pillow images."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image as PillowImage

import adverse
from adverse.analysis.choices import best_sut
from adverse.analysis.compare import compare
from adverse.analysis.headline import FAILED, headline
from adverse.cli import main
from adverse.errors import StudyError
from adverse.report.answer import choices
from adverse.report.comparison import headline as comparison_headline
from adverse.report.page import page_tables
from adverse.report.pictures import Looker
from adverse.report.tradeoffs import figures
from adverse.store.finished_run import finished as read_finished
from adverse.study.engines import Stop
from adverse.types import Detections, Image
from analysis.test_results import run, write_images

DATA = {"format": "coco", "root": "data", "annotations": "truth.json"}


def bright(images: Sequence[Image]) -> list[Any]:
    return [([[10, 5, 31, 25]], [float(image.max()) / 255], [0]) for image in images]


class Counting:
    classes = ("person",)

    def __init__(self, fingerprint: str | None = None) -> None:
        self.asked = 0
        if fingerprint:
            self.fingerprint = fingerprint

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        self.asked += len(images)
        return [Detections.none() for _ in images]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    write_images(tmp_path)
    path = tmp_path / "study.yaml"
    path.write_text(
        json.dumps({"name": "api", "data": DATA, "suts": [], "mutations": ["brightness(scale=0)"]})
    )
    return path


def test_a_function_is_a_detector(study: Path, tmp_path: Path) -> None:
    finished = adverse.run(study, tmp_path / "run", detectors={"bright": bright})
    areas = {row["setting"]: row["area"] for row in finished.rows if row["level"] == "image/ROC_A"}
    assert areas["identity"] == 1
    assert areas["brightness(scale=0)"] == 0


def told_if(unknown: bool) -> contextlib.AbstractContextManager[Any]:  # noqa: FBT001
    """Expect the warning that a detector without a fingerprint was asked again."""
    if unknown:
        return pytest.warns(UserWarning, match="asked about every image again.*give the object or function")
    return contextlib.nullcontext()


@pytest.mark.parametrize(("fingerprint", "asked_again"), [("weights-1", False), (None, True)])
def test_answers_are_used_again_only_if_the_object_says_what_it_is(
    study: Path,
    tmp_path: Path,
    fingerprint: str | None,
    asked_again: bool,  # noqa: FBT001
) -> None:
    for wanted, again in ((True, False), (asked_again, asked_again)):
        detector = Counting(fingerprint)
        with told_if(again):
            adverse.run(study, tmp_path / "run", detectors={"counting": detector})
        assert (detector.asked > 0) == wanted


MODEL = {"score": 1.0}


def with_a_global_model(images: Sequence[Image]) -> list[Any]:
    return [([[10, 5, 31, 25]], [MODEL["score"]]) for _ in images]


def with_a_model_as_default(images: Sequence[Image], model: dict[str, float] = MODEL) -> list[Any]:
    return [([[10, 5, 31, 25]], [model["score"]]) for _ in images]


@pytest.mark.parametrize("detector", [with_a_global_model, with_a_model_as_default])
def test_a_function_is_asked_again_as_its_model_may_be_another(
    detector: Any, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for score, again in ((1.0, False), (0.25, True)):
        monkeypatch.setitem(MODEL, "score", score)
        with told_if(again):
            finished = adverse.run(study, tmp_path / "run", detectors={"mine": detector})
        assert {s for found in finished.detections("mine")["scores"].to_pylist() for s in found} == {score}


def test_something_else_is_refused(study: Path, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="not a detector"):
        adverse.run(study, tmp_path / "run", detectors={"seven": 7})


def test_errors_name_the_study_that_was_given(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = json.loads(study.read_text())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError) as caught:
        adverse.run(
            {**plain, "mutations": ["brigthness(scale=0)"]}, tmp_path / "run", detectors={"bright": bright}
        )
    assert caught.value.where == "the study given to adverse.run, mutations[0]"
    with pytest.raises(StudyError) as caught:
        adverse.run({**plain, "suts": "bright"}, tmp_path / "run", detectors={"bright": bright})
    assert caught.value.where == "the study given to adverse.run, suts"
    other = tmp_path / "other.yaml"
    other.write_text("name: api\nlevls: [image]\n")
    with pytest.raises(StudyError) as caught:
        adverse.run(other, tmp_path / "run")
    assert caught.value.where == f"{other}, line 2, levls"
    other.write_text("- a list")
    with pytest.raises(StudyError, match="a study is a mapping"):
        adverse.run(other, tmp_path / "run", detectors={"bright": bright})


def test_a_study_given_as_data_is_the_study_of_its_file(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    by_file = adverse.run(study, tmp_path / "by-file", detectors={"bright": bright})
    by_data = adverse.run(json.loads(study.read_text()), tmp_path / "by-data", detectors={"bright": bright})
    assert by_data.rows == by_file.rows


def test_a_detector_that_always_fails_is_warned_of(study: Path, tmp_path: Path) -> None:
    def broken(_: Sequence[Image]) -> list[Any]:
        raise RuntimeError("no weights")

    with pytest.warns(UserWarning, match=r"^broken failed on every image.*no weights") as caught:
        failed = adverse.run(study, tmp_path / "run", detectors={"broken": broken, "bright": bright})
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not failed.trusted
    # its 0 is no result: nobody is best beside it, and nothing of it survives or is lost
    assert choices(failed.summary, failed.run) == []
    head = headline(failed.summary, failed.run, "image/ROC_A").conditions
    assert [one.by_sut["broken"] for one in head] == [FAILED]
    assert head[0].by_sut["bright"] != FAILED
    best = best_sut(failed.summary, "image/ROC_A", "identity")
    assert best is None or best.equals == ("bright",)
    tables = page_tables(Looker(read_finished(failed.path)), failed.summary)
    assert tables.adr is not None
    for table in (*tables.levels, tables.adr):
        place = table.headings.index("broken")
        assert {row[place] for row in table.texts()} == {"failed"}, table.name
    mine = next(table for table in tables.plain if table.name.endswith("broken"))
    assert {text for row in mine.texts() for text in row[1:]} == {"failed"}
    numbers = ("robust_area", "adr", "recall", "false_positives_per_image", "robust_area_high")
    twins = [row for table in tables.all() for row in table.data() if row.get("sut") == "broken"]
    assert {row[name] for row in twins for name in numbers if name in row} == {None}
    data = failed.summary.without_failed().data
    rows = [row for row in data["rows"] if row["sut"] == "broken"]
    rows += [
        row for name in ("plain_metrics", "adr", "slices") for row in data[name] if row["sut"] == "broken"
    ]
    assert {row["status"] for row in rows} == {"failed"}
    names = ("area", "robust_area", "recall", "false_positives_per_image", "ap50", "adr", "recall_interval")
    assert {row[name] for row in rows for name in names if name in row} == {None}
    assert all(row["area"] is not None for row in data["rows"] if row["sut"] == "bright")
    drawn = [one for level in figures(read_finished(failed.path), failed.summary) for one in level.figures]
    assert drawn
    assert not any("broken" in one.svg for one in drawn)
    mended = compare(failed.path, failed.path, suts={"broken": "bright"})
    assert mended.notes == ("broken failed on every image of the first run, so nothing of it is compared",)
    assert (mended.changes, mended.worse) == ((), False)
    spoilt = compare(failed.path, failed.path, suts={"bright": "broken"})
    assert (spoilt.changes, spoilt.worse) == ((), True)
    assert comparison_headline(spoilt).startswith(
        "broken answered before and fails on every image now; 0 better"
    )


@pytest.fixture
def finished(study: Path, tmp_path: Path) -> adverse.FinishedRun:
    return adverse.run(study, tmp_path / "run", detectors={"bright": bright})


def test_a_run_opened_again_is_the_run_that_ran(finished: adverse.FinishedRun) -> None:
    opened = adverse.open_run(finished.path)
    assert json.dumps(opened.rows) == json.dumps(finished.rows)
    assert opened.summary.data["study"] == "api"
    assert opened.run == finished.run
    assert [setting.id for setting in opened.run.settings] == ["identity", "brightness(scale=0)"]
    assert opened.trusted
    assert str(finished.path) in repr(opened)


def test_an_unknown_sut_is_named(finished: adverse.FinishedRun) -> None:
    with pytest.raises(StudyError, match=r"no SUT called 'brigt'.*bright"):
        finished.run.sut("brigt")


def test_columns_have_the_same_type_in_every_run(finished: adverse.FinishedRun) -> None:
    schema = finished.to_arrow().schema
    assert str(schema.field("logs_left_out").type) == "map<string, int64>"
    assert str(schema.field("area_at_0").type) == "double"
    assert schema.field("area_interval").type == schema.field("robustness_interval").type


def test_tables_are_arrow_tables(finished: adverse.FinishedRun) -> None:
    assert {"adr", "curves", "outcomes", "required", "troubles"} <= set(finished.tables)
    curves = pq.read_table(finished.path / "results" / "curves.parquet")
    assert finished.table("curves").equals(curves)
    assert finished.table("adr").num_rows == 2
    with pytest.raises(adverse.StoreError, match="Did you mean 'curves'"):
        finished.table("curve")


def test_detections_are_those_of_the_detector(finished: adverse.FinishedRun) -> None:
    scores = finished.detections("bright")["scores"].to_pylist()
    assert scores == [[1.0]] * 4 + [[0.0]] * 4
    assert finished.detections("bright", "brightness(scale=0)")["scores"].to_pylist() == [[0.0]] * 8
    with pytest.raises(adverse.StoreError, match="no SUT 'brigth'"):
        finished.detections("brigth")
    with pytest.raises(adverse.StoreError, match="no setting 'haze'"):
        finished.detections("bright", "haze")


def test_rows_become_an_arrow_table_with_every_key(finished: adverse.FinishedRun) -> None:
    table = finished.to_arrow()
    assert set(table.column_names) == {key for row in finished.rows for key in row}
    assert table["area"].to_pylist() == [row["area"] for row in finished.rows]
    pq.write_table(table, finished.path.with_name("rows.parquet"))
    assert pq.read_table(finished.path.with_name("rows.parquet"))["sut"].to_pylist() == ["bright"] * 8


def test_a_notebook_shows_a_small_escaped_table(finished: adverse.FinishedRun) -> None:
    finished.summary.data["rows"][0] |= {"sut": "<b>", "scores": {"mean_iou": 0.25}}
    page = finished._repr_html_()
    assert "<td>&lt;b&gt;</td>" in page
    assert "<th>mean_iou</th>" in page
    assert "<td>0.250</td>" in page
    assert "<b>" not in page
    assert "brightness(scale=0)" in page
    finished.summary.data["rows"].extend(100 * finished.rows[:1])
    longer = finished._repr_html_()
    assert longer.count("<tr>") == 1 + 20
    assert f"{len(finished.rows) - 20} more rows" in longer


def test_without_pandas_the_error_names_the_command(
    finished: adverse.FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(adverse.AdverseError, match="pip install pandas"):
        finished.to_pandas()


def test_with_pandas_the_rows_are_a_data_frame(
    finished: adverse.FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert finished.to_pandas() == finished.rows


def test_a_changed_run_is_refused_as_on_the_command_line(
    finished: adverse.FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = finished.path / "results" / "summary.json"
    summary.write_text(summary.read_text().replace("1.0", "0.9"))
    with pytest.raises(adverse.StoreError) as refused:
        adverse.open_run(finished.path)
    with pytest.raises(SystemExit) as ended:
        main(["report", str(finished.path)])
    assert ended.value.code == refused.value.exit_code
    assert refused.value.what in capsys.readouterr().err


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    write_images(tmp_path)
    stopped = Stop()
    stopped.soft = True
    folder = run(tmp_path, ["brightness(scale=0)"], stopped).folder
    with pytest.raises(adverse.IncompleteError, match="not finished"):
        adverse.open_run(folder.path)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(adverse.StoreError):
        adverse.open_run(tmp_path)


def test_a_data_set_is_read_by_its_format(study: Path) -> None:
    dataset = adverse.read_dataset(study.parent / "data", format="coco", annotations=Path("truth.json"))
    assert dataset.categories == ("person",)
    assert sum(len(log.frames) for log in dataset.logs) == 8
    assert dataset.logs[0].frames[0].image().shape == (40, 60, 3)


def test_a_data_set_is_recognised(study: Path) -> None:
    dataset = adverse.read_dataset(str(study.parent / "data" / "images"))
    assert sum(len(log.frames) for log in dataset.logs) == 8


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"format": "cocoa"}, "Did you mean 'coco'"), ({"format": "coco", "annotation": "x"}, "'annotations'")],
)
def test_a_wrong_format_or_option_is_named(study: Path, options: dict[str, str], complaint: str) -> None:
    with pytest.raises(StudyError, match=complaint):
        adverse.read_dataset(study.parent / "data", **options)


def test_a_pillow_image_in_gives_a_pillow_image_out() -> None:
    array = np.random.default_rng(1).integers(0, 256, (6, 9, 3), np.uint8)
    pillow = PillowImage.fromarray(array)
    pillow.info["icc_profile"] = b"profile"
    changed = adverse.mutations.apply(pillow, "c.gaussian_noise(severity=3)", seed=7, key="a")
    assert isinstance(changed, PillowImage.Image)
    assert changed.info == {"icc_profile": b"profile"}
    same = adverse.mutations.apply(array, "c.gaussian_noise(severity=3)", seed=7, key="a")
    assert np.array_equal(np.asarray(changed), same)
    assert np.array_equal(np.asarray(pillow), array)


@pytest.mark.parametrize(
    ("image", "complaint"),
    [
        (PillowImage.new("L", (4, 4)), r"mode L.*convert\("),
        ([[0, 0, 0]], r"got: list.*numpy\.asarray"),
    ],
)
def test_what_is_no_rgb_image_is_refused(image: Any, complaint: str) -> None:
    with pytest.raises(adverse.MutationError, match=complaint):
        adverse.mutations.apply(image, "brightness(scale=0.5)")

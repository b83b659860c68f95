"""P, mPC and rPC of segmenters and classifiers, from runs, against means taken by hand."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from typer.testing import CliRunner

import adverse
from adverse.benchmarks.classification import read_reference
from adverse.benchmarks.mpc import CORRUPTIONS, SEVERITIES
from adverse.benchmarks.table import bench_table
from adverse.cli.app import app
from adverse.errors import DataError, IncompleteError, StudyError
from study.test_tasks import Colours, Threshold, _mapped, segmentation, write_colours, write_scenes


@pytest.fixture(scope="module")
def classified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classified")
    data = write_colours(folder / "data", each=3, side=40)
    study = {"name": "colours", "task": "classification", "data": data, "mutations": ["coco-c"]}
    adverse.run(study, folder / "run", detectors={"colours": Colours()})
    return folder / "run"


@pytest.fixture(scope="module")
def segmented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("segmented")
    write_scenes(folder / "data")
    study = segmentation(folder / "data", mutations=["c.brightness(severity=1)", "c.contrast(severity=5)"])
    adverse.run(study, folder / "run", detectors={"threshold": _mapped(Threshold(20))})
    return folder / "run"


def by_hand(run: Path, metric: str) -> tuple[float, dict[str, list[float]]]:
    """Return the clean score and those of each corruption from the run's own results."""
    rows = json.loads((run / "results" / "summary.json").read_text())["rows"]
    values = {row["setting"]: row["scores"][metric] for row in rows}
    cells = {
        name: [values[f"c.{name}(severity={severity})"] for severity in SEVERITIES]
        for name in CORRUPTIONS
        if f"c.{name}(severity=1)" in values and f"c.{name}(severity=5)" in values
    }
    return values["identity"], cells


def test_a_classifier_has_mpc(classified: Path) -> None:
    table = bench_table(classified)
    (row,) = table.rows
    clean, cells = by_hand(classified, "top1")
    assert row.whole.label == "mPC"
    assert row.whole.clean == pytest.approx(clean)
    assert row.whole.corrupted == pytest.approx(fmean(fmean(values) for values in cells.values()))
    assert row.whole.relative == pytest.approx(row.whole.corrupted / clean)
    assert row.intervals is not None
    assert row.intervals.corrupted.low is not None
    assert row.intervals.corrupted.low <= row.whole.corrupted <= (row.intervals.corrupted.high or 0)
    assert bench_table(classified, metric="top5").rows[0].whole.clean == pytest.approx(
        by_hand(classified, "top5")[0]
    )


def test_the_corruption_error_is_relative_to_the_reference(classified: Path, tmp_path: Path) -> None:
    _, cells = by_hand(classified, "top1")
    reference = tmp_path / "reference.csv"
    lines = [f"{name},{severity},0.5" for name in CORRUPTIONS for severity in SEVERITIES]
    reference.write_text("corruption,severity,error\n" + "\n".join(lines))
    wanted = 100 * fmean(fmean(1 - value for value in values) / 0.5 for values in cells.values())
    said = CliRunner().invoke(app, ["bench-table", str(classified), "--reference", str(reference)])
    assert said.exit_code == 0, said.output
    assert f"mCE {wanted:.1f} %" in said.output


@pytest.mark.parametrize(
    "text",
    [
        "",
        "corruption,severity\nfog,1",
        "corruption,severity,error\nfog,1,43",
        "corruption,severity,error\nfog,x,0.4",
    ],
)
def test_a_reference_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "reference.csv"
    path.write_text(text)
    if text:
        with pytest.raises(DataError, match="reference"):
            read_reference(path)
    else:
        assert read_reference(path) == {}


def test_a_segmenter_has_a_partial_mean(segmented: Path) -> None:
    with pytest.raises(IncompleteError, match="mPC by mIoU"):
        bench_table(segmented)
    rows = json.loads((segmented / "results" / "summary.json").read_text())["rows"]
    found = bench_table(segmented, partial=True).rows[0]
    values: dict[str, Any] = {row["setting"]: row["scores"]["mean_iou"] for row in rows}
    assert found.whole.clean == pytest.approx(values["identity"])
    assert found.whole.corrupted == pytest.approx(
        fmean([values["c.brightness(severity=1)"], values["c.contrast(severity=5)"]])
    )
    assert "not mPC" in found.whole.label
    assert found.faults == 1
    assert found.classes["dark"].clean == pytest.approx(rows[0]["per_class"]["dark"])


@pytest.mark.parametrize("options", [{"metric": "ap"}, {"metric": "top1"}, {"classes": ["dark"]}])
def test_what_is_for_other_tasks_is_refused(segmented: Path, options: dict[str, Any]) -> None:
    with pytest.raises(StudyError):
        bench_table(segmented, **options)

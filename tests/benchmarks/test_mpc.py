"""mPC and rPC against the raw results of the 2019 benchmark, and what must be refused."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from adverse.benchmarks.mpc import CORRUPTIONS, SEVERITIES, Cell, leaderboard, per_class, under_corruption
from adverse.errors import IncompleteError
from adverse.mutations import batteries

BENCHMARK = Path(__file__).resolve().parents[2].parent / "shared/data/robust_detection_benchmark"
beside = pytest.mark.skipif(
    not BENCHMARK.is_dir(), reason="the benchmark's results are not beside the repository"
)
FULL: dict[Cell, float] = {(name, severity): severity / 10 for name in CORRUPTIONS for severity in SEVERITIES}


def recomputed() -> list[dict[str, str]]:
    if not BENCHMARK.is_dir():
        return []
    with (BENCHMARK / "recomputed_P_mPC_rPC.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def raw() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BENCHMARK / "per_corruption_severity_results.json").read_text())
    return found


def percent(entry: dict[str, Any], task: str) -> float:
    return 100 * float(entry["mAP50"] if task == "voc" else entry[task]["AP"])


def test_the_corruptions_are_those_of_the_battery() -> None:
    assert CORRUPTIONS == batteries.CORRUPTIONS
    assert len(batteries.BATTERIES["coco-c"]) == len(CORRUPTIONS) * len(SEVERITIES)


@pytest.mark.parametrize(
    "row", recomputed(), ids=lambda row: f"{row['dataset']}/{row['model']}/{row['task']}"
)
def test_the_raw_results_of_2019_give_the_recomputed_numbers(
    row: dict[str, str], raw: dict[str, Any]
) -> None:
    results = raw[f"{row['dataset']}/{row['model']}"]
    cells = {
        (name, severity): percent(results[name][str(severity)], row["task"])
        for name in results  # all 19; mPC takes its 15
        for severity in SEVERITIES
    }
    clean = percent(results["gaussian_noise"]["0"], row["task"])
    found = under_corruption(clean, cells, metric="AP50" if row["task"] == "voc" else "AP")
    assert found.complete
    assert found.relative is not None
    assert found.clean == pytest.approx(float(row["P"]), abs=0.01)
    assert found.corrupted == pytest.approx(float(row["mPC"]), abs=0.01)
    assert 100 * found.relative == pytest.approx(float(row["rPC"]), abs=0.01)


@beside
def test_classes_of_pascal_voc_average_to_the_whole(raw: dict[str, Any]) -> None:
    results = raw["pascal_voc/faster_rcnn_r50_fpn_1x_voc0712"]
    cells = {
        (name, severity): classes_of(results[name][str(severity)])
        for name in CORRUPTIONS
        for severity in SEVERITIES
    }
    found = per_class(classes_of(results["fog"]["0"]), cells, metric="AP50")
    assert len(found) == 20
    mean = sum(one.corrupted for one in found.values()) / len(found)
    assert 100 * mean == pytest.approx(48.61, abs=0.01)


def classes_of(entry: dict[str, Any]) -> dict[str, float]:
    values = entry["per_class_ap50"]
    return dict(values) if isinstance(values, dict) else {str(at): value for at, value in enumerate(values)}


@beside
def test_every_published_row_agrees_with_its_raw_results() -> None:
    known = {(row["dataset"], row["model"], row["task"].replace("voc", "bbox")): row for row in recomputed()}
    rows = leaderboard()
    assert len(rows) == 30
    for row in rows:
        theirs = known[row.dataset, row.raw, row.task]
        if not row.note:
            assert row.clean == pytest.approx(float(theirs["P"]), abs=0.051)
        assert row.corrupted == pytest.approx(float(theirs["mPC"]), abs=0.051)
        assert row.relative == pytest.approx(float(theirs["rPC"]), abs=0.101)
    assert [row.model for row in rows if row.note] == ["Mask R-CNN Stylized"]


@beside
def test_published_rows_are_those_of_the_published_table() -> None:
    text = (BENCHMARK / "TABLE.md").read_text().replace("Stylizes", "Stylized")
    cells = [[part.strip() for part in line.split("|")] for line in text.splitlines() if line.count("|") >= 5]
    printed = {(row[0], row[1], *map(float, row[2:5])) for row in cells if row[2][:1].isdigit()}
    rows = {(row.model, row.backbone, row.clean, row.corrupted, row.relative) for row in leaderboard()}
    assert rows == printed


def test_means_are_taken_over_severities_and_then_corruptions() -> None:
    found = under_corruption(0.6, FULL, metric="AP")
    assert found.corrupted == pytest.approx(0.3)
    assert found.relative == pytest.approx(0.5)
    assert found.by_corruption["fog"] == pytest.approx(0.3)
    assert (found.metric, found.label) == ("AP", "mPC")


def test_other_cells_have_no_part_in_it() -> None:
    more = {**FULL, ("spatter", 1): 1.0, ("fog", 6): 1.0}
    assert under_corruption(0.6, more, metric="AP").corrupted == pytest.approx(0.3)


def test_a_missing_cell_is_refused_by_name() -> None:
    cells = {cell: value for cell, value in FULL.items() if cell[0] != "snow" and cell != ("fog", 3)}
    with pytest.raises(IncompleteError, match=r"6 are missing; got: no snow, fog 3;"):
        under_corruption(0.6, cells, metric="AP")


def test_a_partial_mean_is_never_called_mpc() -> None:
    cells = {("fog", 1): 0.5, ("fog", 3): 0.3, ("spatter", 1): 0.2}
    found = under_corruption(0.6, cells, metric="AP", partial=True)
    assert found.label == "mean over 2 corruptions (3 cells), not mPC"
    assert not found.complete
    assert found.corrupted == pytest.approx((0.4 + 0.2) / 2)
    assert under_corruption(0.6, FULL, metric="AP", partial=True).label == "mPC"
    with pytest.raises(IncompleteError, match="no corruption to average over"):
        under_corruption(0.6, {}, metric="AP", partial=True)


def test_an_undefined_cell_is_refused() -> None:
    with pytest.raises(IncompleteError, match="AP is not defined in 1 cell; got: fog 2"):
        under_corruption(0.6, {**FULL, ("fog", 2): math.nan}, metric="AP")
    with pytest.raises(IncompleteError, match="not defined in 1 cell; got: clean"):
        under_corruption(math.nan, FULL, metric="AP")


def test_nothing_left_of_nothing_is_no_share() -> None:
    assert under_corruption(0.0, FULL, metric="AP").relative is None

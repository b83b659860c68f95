"""Figures of the corruption benchmark: drawn is what the table says, and the RMSE is plain numpy's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adverse
from adverse.benchmarks.mpc import CORRUPTIONS, GROUPS, SEVERITIES, under_corruption
from adverse.benchmarks.table import bench_table
from adverse.errors import StudyError
from adverse.report.benchmark import benchmark_tables, in_terminal
from adverse.report.benchmark_figures import (
    page_figures,
    pixel_change,
    rmse_chart,
    severity_chart,
    write_figures,
)
from adverse.report.pictures import Looker
from adverse.store.finished_run import finished
from benchmarks.test_table import run, write_data


def saved(shift: float = 0.0, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the data of a benchmark whose cells fall with severity, and by corruption."""
    names = [name for name in CORRUPTIONS if name not in without]
    cells = {
        (name, severity): 0.5 + shift - 0.02 * number - 0.03 * severity
        for number, name in enumerate(names)
        for severity in SEVERITIES
    }
    found = under_corruption(0.6, cells, metric="AP", partial=bool(without))
    sut = {
        "sut": "ours",
        "P": found.clean,
        "partial_mean" if without else "mPC": found.corrupted,
        "partial_relative" if without else "rPC": found.relative,
        "label": found.label,
        "by_group": found.by_group,
        "by_corruption": dict(found.by_corruption),
        "cells": [{"corruption": c, "severity": s, "value": value} for (c, s), value in found.cells.items()],
        "intervals": None,
        "by_class": {},
    }
    metric = {"name": "ap", "short": "AP", "full": "COCO AP of boxes"}
    return {
        "study": "five",
        "metric": metric,
        "status": "ok",
        "images": 7,
        "classes": ["person"],
        "suts": [sut],
    }


CHANGE = {
    "images": 20,
    "cells": [
        {"corruption": name, "severity": severity, "value": 2.0 * number + severity}
        for number, name in enumerate(CORRUPTIONS)
        for severity in SEVERITIES
    ],
}


def test_groups_are_means_of_their_corruptions_and_only_whole_ones() -> None:
    data = saved()["suts"][0]
    assert sum(map(len, GROUPS.values())) == len(CORRUPTIONS)
    for group, members in GROUPS.items():
        assert data["by_group"][group] == pytest.approx(np.mean([data["by_corruption"][m] for m in members]))
    assert "blur" not in saved(without=("zoom_blur",))["suts"][0]["by_group"]
    table = next(one for one in benchmark_tables(saved()) if one.name == "benchmark groups")
    assert table.data()[0] == {"sut": "ours", "group": "noise", "mean": data["by_group"]["noise"]}
    printed = [row[0].value for one in in_terminal(saved()) for row in one.rows]
    assert printed[1:5] == list(GROUPS)  # after the one SUT


def test_severity_is_drawn_from_clean_to_worst() -> None:
    chart = severity_chart(saved())
    assert [panel.title for panel in chart.panels[1:]] == [name.replace("_", " ") for name in CORRUPTIONS]
    line = chart.panels[1].lines[0]
    np.testing.assert_allclose(np.asarray(line.y, float), [60, 47, 44, 41, 38, 35])
    whole = np.mean([np.asarray(panel.lines[0].y, float) for panel in chart.panels[1:]], axis=0)
    np.testing.assert_allclose(np.asarray(chart.panels[0].lines[0].y, float), whole)
    assert "ours" in chart.svg()


def test_arrows_lead_from_the_earlier_values_to_these() -> None:
    before, after = saved(-0.1), saved()
    chart = rmse_chart(after, CHANGE, before)
    (panel,) = chart.panels
    assert [dots.name for dots in panel.dots] == list(GROUPS)
    assert len(panel.arrows) == len(CORRUPTIONS)
    for arrow, name in zip(panel.arrows, CORRUPTIONS, strict=True):
        number = CORRUPTIONS.index(name)
        assert arrow.start == pytest.approx((2 * number + 3, 100 * (0.31 - 0.02 * number) / 0.6))
        assert arrow.end == pytest.approx((2 * number + 3, 100 * (0.41 - 0.02 * number) / 0.6))
    other = saved()
    other["suts"] = [{**other["suts"][0], "sut": "theirs"}, {**other["suts"][0], "sut": "others"}]
    with pytest.raises(StudyError, match="no SUT of the same name"):
        rmse_chart(after, CHANGE, other)


def test_pixels_of_a_run_are_measured_as_its_suts_saw_them(tmp_path: Path) -> None:
    write_data(tmp_path)
    path = run(tmp_path, ["c.contrast(severity=5)", "c.brightness(severity=2)"])
    looker = Looker(finished(path))
    change = pixel_change(looker, images=2)
    assert change.images == 2
    values = []
    for number in (0, 5):  # the first and the last
        image = looker.image(str(number), "identity")
        changed = adverse.mutations.apply(image, "c.contrast(severity=5)", seed=0)
        values.append(np.sqrt(((changed.astype(float) - image) ** 2).mean()))
    assert change.cells["contrast", 5] == pytest.approx(np.mean(values), rel=1e-12)
    table = bench_table(path, partial=True, with_intervals=False)
    assert table.rows[0].whole.by_group == {}


def test_files_and_page(tmp_path: Path) -> None:
    files = write_figures(saved(), CHANGE, tmp_path / "figures")
    assert [file.name for file in files] == ["severity.svg", "rpc-over-rmse.svg"]
    assert "impulse noise" in files[1].read_text("utf-8")
    assert [file.name for file in write_figures(saved(), None, tmp_path / "less")] == ["severity.svg"]
    assert page_figures(None) == []
    assert len(page_figures(saved())) == 1
    assert len(page_figures(json.loads(json.dumps({**saved(), "rmse": CHANGE})))) == 2

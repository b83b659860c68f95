"""The charts and tables of how logs end show what the results hold, and say what is in time in metres."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow.parquet as pq
import pytest

from adverse.analysis.loop import read_stops
from adverse.analysis.results import Summary, analyze, read_summary
from adverse.report.answer import answers
from adverse.report.run_tables import level_tables
from adverse.report.stops import stop_figures, stop_tables, tolerance_words
from adverse.store.finished_run import finished
from adverse.store.read import Store
from synthetic_run import Size, write_run

PARTS = {"lateness_m": "lateness, m", "clearance_m": "clearance, m"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("stops") / "run"
    write_run(path, Size(2, 3, 16, 24, 2, bootstrap=0))
    analyze(path, workers=1)
    return finished(path)


@pytest.fixture(scope="module")
def summary(store: Store) -> Summary:
    return read_summary(store)


def ended(store: Store, k: int) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Return the logs of stops.parquet at one level of the grid."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in pq.read_table(store.folder.results / "stops.parquet").to_pylist():
        values = {name: row[name][k] for name in (*PARTS, "speed_at_safety_radius_mps")}
        found.setdefault((row["sut"], row["level"], row["setting"]), []).append(values)
    return found


def test_the_chart_holds_every_log(store: Store, summary: Summary) -> None:
    k = int(np.argmin(np.abs(np.log(np.geomspace(1e-4, 1, 100) / 0.01))))
    logs = ended(store, k)
    figures = list(stop_figures(store, summary, stop_tables(summary)))
    assert {(figure.sut, figure.level) for figure in figures} == {key[:2] for key in logs}
    never = 0
    for figure in figures:
        tree = ET.fromstring(figure.svg)
        (metadata,) = tree.iter("{http://www.w3.org/2000/svg}metadata")
        data = json.loads(metadata.text or "")
        mine = [
            one
            for (sut, level, _), ones in logs.items()
            if (sut, level) == (figure.sut, figure.level)
            for one in ones
        ]
        for name, label in PARTS.items():
            wanted = [one[name] if np.isfinite(one[name]) else None for one in mine]
            never += wanted.count(None)
            got = data["a log"][label]
            assert [None if v is None else round(v, 3) for v in got] == [
                None if v is None else round(v, 3) for v in wanted
            ]
        assert data["in time up to 1 m"]["lateness, m"] == [1.0]
        assert data["truth"]["lateness, m"] == [0.0]
    assert never > 0


def test_the_table_counts_the_logs(store: Store, summary: Summary) -> None:
    logs = ended(store, int(np.argmin(np.abs(np.log(np.geomspace(1e-4, 1, 100) / 0.01)))))
    shown = 0
    for (level, sut), table in stop_tables(summary).items():
        headings = [column.heading for column in table.columns]
        assert "in time: up to 1 m later than the truth" in table.title
        for cells in table.rows:
            row = dict(zip(headings, cells, strict=True))
            mine = logs[sut, level, str(row["mutation"].value)]
            late = np.array([one["lateness_m"] for one in mine])
            fast = np.array([one["speed_at_safety_radius_mps"] for one in mine])
            assert row["logs"].value == len(mine)
            assert row["in time"].value == pytest.approx(np.mean(late <= 1 + 1e-4))
            assert row["in time at 0 m"].value == pytest.approx(np.mean(late <= 1e-4))
            assert row["never stops"].value == pytest.approx(np.mean(np.isinf(late)))
            assert row["moved inside safety radius"].value == pytest.approx(np.mean(fast > 0))
            middle = sorted(late)[(len(late) - 1) // 2]
            assert row["lateness, m"].value == (pytest.approx(middle) if np.isfinite(middle) else None)
            shown += 1
    assert shown == len(logs)


def test_the_buffer_is_told_in_metres(summary: Summary) -> None:
    words = "in time: up to 1 m later than the truth"
    assert tolerance_words(summary, "loop/annotated") == tolerance_words(summary, "path/localized") == words
    assert tolerance_words(summary, "image/ROC_A") == tolerance_words(summary, "located/annotated") == ""
    titles = {table.name: table.title for table in level_tables(summary)}
    assert {name for name, title in titles.items() if words in title} == {
        f"{level}/{kind}" for level in ("path", "loop") for kind in ("annotated", "localized")
    }
    assert any(words in text for text in answers(summary) if "level loop" in text)


def test_the_area_at_0_stands_below_the_area(summary: Summary) -> None:
    rows = {(row["level"], row["setting"], row["sut"]): row for row in summary.rows}
    for table in level_tables(summary):
        for name, *cells in table.rows:
            for column, cell in zip(table.columns[1:], cells, strict=True):
                strict = rows[table.name, str(name.value), column.heading]["robust_area_at_0"]
                assert (strict is None) == (table.name.partition("/")[0] not in ("path", "loop"))
                assert strict is None or f"{strict:.3f} at 0 m" in cell.details


def test_there_is_a_log_for_every_truth(store: Store, summary: Summary) -> None:
    rows = {(row["sut"], row["level"], row["setting"]): row for row in summary.rows}
    for stops in read_stops(store):
        for setting, measured in stops.measured.items():
            assert {len(values) for values in measured} == {rows[stops.sut, stops.level, setting]["truths"]}

"""Plain metrics as people see them: the numbers of the results, in a terminal of 80 columns too."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from adverse.analysis.plain_metrics import PLAIN_METRICS
from adverse.analysis.results import Summary
from adverse.cli.console import Console
from adverse.report.plain_tables import (
    HEADINGS,
    operating_words,
    plain_answer,
    plain_tables,
    terminal_tables,
)
from adverse.text import setting_text
from html_reading import read


def summary(recalls: dict[str, dict[str, float | None]], **point: Any) -> Summary:
    """Return the part of a summary that plain metrics are in: recall by SUT and setting."""
    groups = {"identity": "baseline", "blur(sigma=1)": "mild", "haze(visibility_m=97.8)": "severe"}
    rows = [
        {
            "sut": sut,
            "setting": setting,
            "group": groups[setting],
            "status": "ok",
            "faults": 0,
            "truths": 10,
            "frames": 10,
            "logs": 3,
            "true_positives": 5,
            "false_positives": 1,
            **dict.fromkeys(PLAIN_METRICS, recall),
            "false_positives_per_image": 12.34,
        }
        for sut, settings in recalls.items()
        for setting, recall in settings.items()
    ]
    shared = {"sensitivity": 0.1, "score": 0.5, "resolved": True, **point}
    return Summary(
        {
            "plain_metrics": rows,
            "sensitivity": {sut: {"from": "test", "operating_point": shared} for sut in recalls},
        }
    )


def printed(data: Summary) -> list[str]:
    sink = io.StringIO()
    console = Console(file=sink, width=80)
    for table in terminal_tables(data, plain_tables(data)):
        console.print(table.terminal())
    return sink.getvalue().splitlines()


def test_the_page_shows_every_metric_of_every_sut(run: Path) -> None:
    data = json.loads((run / "results" / "summary.json").read_text())
    page = (run / "report.html").read_text()
    tables = read(page).tables
    for sut in {row["sut"] for row in data["plain_metrics"]}:
        (table,) = (rows for caption, rows in tables.items() if caption.startswith(f"{sut}: "))
        assert table[0][1:] == list(HEADINGS.values())
        shown = {line[0]: line[1:] for line in table[1:] if len(line) > 1}
        for row in (row for row in data["plain_metrics"] if row["sut"] == sut):
            wanted = ["-" if row[name] is None else f"{row[name]:.2f}" for name in PLAIN_METRICS]
            assert shown[setting_text(row["setting"])] == wanted
    assert all(word in page for word in plain_answer(Summary(data)))
    assert (run / "report_tables").is_dir()


def test_a_recall_of_99_percent_in_haze_is_seen() -> None:
    data = summary({"a": {"identity": 1.0, "haze(visibility_m=97.8)": 0.99}, "b": {"identity": 0.5}})
    (line,) = (line for line in printed(data) if "haze" in line)
    assert "0.99 12.34" in line
    (answer,) = plain_answer(data)
    worst = "(at worst 0.99, under haze 97.8 m)"
    assert answer == f"Recall at 0.1 false positives per clean image: a 1.00 {worst}, b 0.50."


@pytest.mark.parametrize("suts", [1, 2, 3, 7])
def test_a_terminal_of_80_columns_holds_whole_lines(suts: int) -> None:
    settings: dict[str, float | None] = {
        "identity": 0.5,
        "blur(sigma=1)": 0.25,
        "haze(visibility_m=97.8)": None,
    }
    data = summary({f"detector{n}": settings for n in range(suts)})
    lines = printed(data)
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for name in map(setting_text, settings):
        assert name in text  # not folded
    assert all(f"detector{n}" in text for n in range(suts))


def test_the_operating_point_in_words() -> None:
    one: dict[str, dict[str, float | None]] = {"a": {"identity": 0.5}, "b": {"identity": 0.5}}
    assert operating_words(summary(one)) == "at 0.1 false positives per clean image"
    assert operating_words(summary(one, sensitivity=None)) == "from score 0.5 on"
    mixed = summary(one)
    mixed.data["sensitivity"]["b"] = {
        "operating_point": {"sensitivity": None, "score": 0.3, "resolved": True},
        "from": "test",
    }
    assert operating_words(mixed) == "at each SUT's operating point"
    titles = [table.title for table in plain_tables(mixed)]
    assert titles == [
        "a: detections from score 0.5 on: 0.1 false positives per clean image",
        "b: detections from score 0.3 on",
    ]
    (table, _) = plain_tables(summary(one, resolved=False, score=None))
    assert table.title.endswith(
        "every detection counts: 0.1 false positives per clean image (too few images to tell that rate)"
    )


def test_nothing_known_is_nothing_said() -> None:
    assert plain_answer(summary({"a": {"identity": None}})) == []
    assert terminal_tables(Summary({}), []) == []
    assert plain_tables(Summary({})) == []

"""What rests on nobody, or on some of the frames only, does not look like a figure of all of them."""

from __future__ import annotations

from typing import Any

import pytest

from adverse.report.slices import _range, _recall

INTERVAL = {"low": 20.0, "high": 25.0, "status": "few logs", "why": "fewer than 20 logs"}
RANGE: dict[str, Any] = {
    "status": "ok",
    "logs": 9,
    "people": 80,
    "range_m": 24.3,
    "nearest_m": 3.5,
    "ends": "nobody further",
    "range_m_interval": INTERVAL,
    "speed_mps": 13.3,
    "safe_speed_mps": 11.9,
    "no_speed": "",
}
LONE = {
    "range_m_interval": {"low": None, "high": None, "status": "refused", "why": "one log"},
    "safe_speed_mps": None,
    "no_speed": "no interval: one log",
}


@pytest.mark.parametrize(
    ("change", "text", "details", "marks"),
    [
        ({}, "24.3 m", ("~20.0 to 25.0 m", "nobody is further away", "~11.9 m/s"), ""),
        (
            {"status": "incomplete", **LONE},
            "24.3 m",
            ("no interval: one log", "nobody is further away", "no speed: no interval: one log"),
            "?",
        ),
        ({"status": "insufficient", "range_m": None, "people": 0}, "insufficient", (), ""),
    ],
)
def test_a_range_shows_its_cautious_speed_and_what_it_lacks(
    change: dict[str, Any], text: str, details: tuple[str, ...], marks: str
) -> None:
    cell = _range(RANGE | change)
    assert (cell.text, cell.details, cell.marks) == (text, details, marks)


def test_recall_of_some_of_the_frames_is_marked() -> None:
    row = {"recall": 1.0, "recall_interval": INTERVAL, "people": 20, "logs": 1, "lost": None}
    assert _recall(row | {"status": "incomplete"}).marks == "?"
    assert _recall(row | {"status": "ok"}).marks == ""
    assert _recall(None).text == "insufficient"

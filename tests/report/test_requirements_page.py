"""The page and the terminal tables of a requirements check, with names that mean harm."""

from __future__ import annotations

import io
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from playwright.sync_api import Browser
from rich.console import Console

from adverse.curves.interval import Interval, given, refused
from adverse.report.requirements import render, requirement_lines, requirement_tables, results_table
from adverse.store.run import Run, RunSut
from browsing import barriers

HOSTILE = "<img src=x onerror=alert(1)>\u202e"
RUN = cast(
    "Run",
    SimpleNamespace(
        seed=3,
        provenance=SimpleNamespace(version="0.1.0"),
        data=SimpleNamespace(format="coco", frames={"test": 90}, fingerprint="0" * 32),
        suts=(RunSut(HOSTILE, "1" * 32, {}), RunSut("steady", "2" * 32, {})),
    ),
)


def bounds(distance: float | None) -> Interval:
    options: dict[str, Any] = {"confidence": 0.95, "method": "two one-sided bounds", "logs": 12}
    if distance is None:
        return refused(math.nan, "too few images", **options)
    return given(distance, distance - 0.02, distance + 0.02, **options)


def row(sut: str, outcome: str, distance: float | None, **more: Any) -> dict[str, Any]:
    known = distance is not None
    return {
        "sut": sut,
        "requirement": f"haze {HOSTILE}",
        "words": f"recall of {sut} falls by at most 0.05 under haze",
        "measure": "recall",
        "threshold": 0.5,
        "backend": "vif",
        "threshold_source": "given",
        "threshold_doubt": "",
        "versions_unreached": 0.0,
        "versions_largest_change": None,
        "threshold_origin": "estimated from human answers: people.json",
        "threshold_interval": {"low": 0.3, "high": None, "confidence": 0.9},
        "people": [[0.1, 0.98], [0.4, 0.9], [0.9, 0.5]],
        "kind": "correctness",
        "curve": [
            {"low": 0.0, "high": 0.05, "value": 0.9, "versions": 30},
            {"low": 0.45, "high": 0.5, "value": 0.7, "versions": 30},
        ],
        "outcome": outcome,
        "reason": "" if known else "too few images: 3 images; at least 20 in 5 logs",
        "required": 0.9 if known else None,
        "measured": 0.9 - distance if distance is not None else None,
        "distance": distance,
        "distance_interval": bounds(distance).plain(),
        "margin": 0.05,
        "detectable": 0.04 if known else None,
        "images": 80,
        "logs": 12,
        "versions": 150,
        "versions_rejected": 30,
        "versions_rejected_why": {"the visual change jumps over the range": 30},
        "versions_visual_change": [0.01, 0.1, 0.2, 0.4, 0.5],
        **more,
    }


def data() -> dict[str, Any]:
    return {
        "study": "orchard",
        "task": "detection",
        "seed": 1,
        "rule": "paired",
        "confidence": 0.95,
        "batches": 1000,
        "images_per_batch": None,
        "faults": {HOSTILE: 2, "steady": 0},
        "score_thresholds": {"steady": {"score": 0.4, "chosen_on": "validation"}},
        "results": [
            row(HOSTILE, "FAIL", 0.2),
            row("steady", "PASS", 0.01),
            row(HOSTILE, "INCONCLUSIVE", None, requirement="blur"),
            row("steady", "INCONCLUSIVE", 0.05, requirement="blur", reason="the bounds hold the margin 0.05"),
        ],
        "rankings": [
            {
                "requirement": "blur",
                "battery": "c.gaussian_blur",
                "tau": -1.0,
                "words": "The orders differ in 1 of 1 pairs.",
                "places": [
                    {
                        "sut": "steady",
                        "battery_mean": 0.4,
                        "by_accuracy": 1,
                        "distance": 0.1,
                        "by_reliability": 2,
                        "less_reliable_than": [HOSTILE],
                        "more_reliable_than": [],
                    },
                    {
                        "sut": HOSTILE,
                        "battery_mean": 0.3,
                        "by_accuracy": 2,
                        "distance": 0.0,
                        "by_reliability": 1,
                        "less_reliable_than": [],
                        "more_reliable_than": [],
                    },
                ],
            }
        ],
    }


def test_the_tables_fit_eighty_columns() -> None:
    sink = io.StringIO()
    console = Console(file=sink, width=80)
    for table in requirement_tables(data()):
        console.print(table.terminal(details=True))
    lines = sink.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert any("INCONCLUSIVE" in line and "0.050" in line for line in lines)
    assert any("+0.030 to +0.070" in line for line in lines)
    assert "\u202e" not in sink.getvalue()


def test_what_a_reader_must_know_is_said() -> None:
    lines = requirement_lines(data())
    assert lines[0] == "1 FAIL, 2 INCONCLUSIVE, 1 PASS: 2 requirements, 2 SUTs"
    assert "Holm over the 2 requirements" in lines[1]
    assert "a miss of 0.04 beyond the margin is found in 9 of 10" in lines[1]
    assert sum("30 of 180 versions were rejected" in line for line in lines) == 2
    assert any("failed on 2 images" in line for line in lines)
    assert any("too few images" in line for line in lines)


def test_a_reason_that_several_share_is_said_once() -> None:
    """Small parts of the range that were not reached have a line of their own; large ones are the reason."""
    missed = "6 % of the range was not reached (12 of 200 versions, meant for 0.01 to 0.09)"
    reasons = [f"for kinds; {missed}", missed, f"{missed}; faults on 5 %", "for kinds"]
    one = data()["results"][0] | {"requirement": "haze"}
    rows = [one | {"sut": f"s{n}", "reason": reason} for n, reason in enumerate(reasons)]
    for share, wanted in ((0.06, ["s0, s3: for kinds", "s2: faults on 5 %"]), (0.6, None)):
        lines = requirement_lines(data() | {"results": [row | {"versions_unreached": share} for row in rows]})
        told = [line.replace(", haze", "") for line in lines if line.startswith("s")]
        assert told == (wanted or [f"s{n}: {reason}" for n, reason in enumerate(reasons)])


def test_the_csv_holds_every_number_and_no_formula() -> None:
    table = results_table("all", [{**row("=cmd()", "PASS", 0.01)}])
    head, line = table.csv().splitlines()
    assert head.startswith("sut,requirement,words")
    assert line.startswith("'=cmd()")


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_opens_without_a_complaint(browser: Browser, tmp_path: Path, width: int) -> None:
    (tmp_path / "requirements.html").write_text(render(data(), RUN))
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto((tmp_path / "requirements.html").as_uri())
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("img").count() == 0
    assert page.locator("section h2").count() == 4
    assert page.locator("td.bad").inner_text() == "FAIL"
    assert page.locator(".drawn svg").count() == 3  # none where there is nothing to draw
    assert page.locator("section > .wide > svg, section > .wide figure").count() == 2  # people and systems
    assert page.get_by_text("people: share right").count() == 4  # drawn, and in the table of the data
    assert page.get_by_text("people.json").count() == 2
    assert page.get_by_text("less reliable than it seems").count() == 1  # and nobody "more", by chance alone
    assert barriers(page) == []
    page.close()

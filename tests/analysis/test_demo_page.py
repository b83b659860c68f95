"""The page of the whole demo: its numbers are those of the results, and a finding agrees only if they do."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from adverse.analysis.results import Summary, read_summary
from adverse.analysis.score import ANY
from adverse.store.finished_run import finished
from adverse.store.read import Store
from demo_page import BEGIN, END, PAGE, Areas, filled, findings, page_text


@pytest.fixture(scope="module")
def store(driven: Path) -> Store:
    return finished(driven)


def test_every_area_of_the_page_is_that_of_the_results(store: Store) -> None:
    summary = read_summary(store)
    text = page_text(summary, store.run)
    words = {store.run.baseline.id: "clean", ANY: "worst case"}
    lines = text.splitlines()
    suts = [sut.name for sut in store.run.suts]
    for level in {row["level"] for row in summary.rows}:
        for setting, name in words.items():
            (line,) = (line for line in lines if line.startswith(f"| {level} | {name} |"))
            areas = [
                row["area"]
                for sut in suts
                for row in summary.rows
                if (row["sut"], row["level"], row["setting"]) == (sut, level, setting)
            ]
            shown = ["insufficient" if area is None else f"{area:.3f}" for area in areas]
            assert line == f"| {level} | {name} | {' | '.join(shown)} |"


def changed(summary: Summary, store: Store, level: str, clean: float, worst: float) -> Summary:
    """Return results in which all SUTs have these areas at a level."""
    data = deepcopy(summary.data)
    for row in data["rows"]:
        if row["level"] == level:
            row["area"] = clean if row["setting"] == store.run.baseline.id else worst
    return Summary(data)


@pytest.mark.parametrize(("clean", "rises"), [(2.0, True), (-1.0, False)])
def test_a_finding_turns_with_the_numbers(store: Store, clean: float, rises: bool) -> None:  # noqa: FBT001
    summary = read_summary(store)
    levels = Areas(summary, store.run).main_levels()
    for number, level in enumerate(levels):
        summary = changed(summary, store, level, 0.5 + number * clean / 10, 0.2)
    by_name = {one.paper: one for one in findings(Areas(summary, store.run))}
    assert by_name["Clean areas rise with context, from image to closed loop"].agrees is rises
    assert by_name["Two-stage detectors are more robust than one-stage detectors"].agrees is None


def test_the_page_has_its_marks_and_is_filled_between_them() -> None:
    page = PAGE.read_text()
    text = filled(page, "new")
    assert text == page.partition(BEGIN)[0] + f"{BEGIN}\nnew\n{END}" + page.partition(END)[2]
    assert filled(text, "new") == text

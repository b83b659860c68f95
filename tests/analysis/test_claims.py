"""Which SUT is best is said only where the logs can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adverse.analysis.results import Summary, analyze
from adverse.report.answer import answers
from adverse.report.remarks import remarks
from adverse.report.run_tables import ranking_table
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import study_from
from analysis.test_results import write_images
from watching import Quiet

FIND_NOTHING = """
from adverse import Detections, sut

class Nothing:
    classes = ("person",)
    def detect(self, images):
        return [Detections.none() for _ in images]

@sut
def nothing():
    \"\"\"Find nothing.\"\"\"
    return Nothing()
"""


def results(folder: Path, adapters: list[str], mutations: list[Any], *, people: int = 4) -> Summary:
    """Run SUTs a, b, ... on 8 images, each a log of its own, and analyze."""
    write_images(folder, people=people)
    (folder / "nothing.py").write_text(FIND_NOTHING)
    study = {
        "name": "claims",
        "plugins": ["square.py", "nothing.py"],
        "data": {"format": "coco", "root": "data", "annotations": "truth.json"},
        "suts": [{"name": "abc"[number], "adapter": one} for number, one in enumerate(adapters)],
        **({"mutations": mutations} if mutations else {}),
    }
    ran = run_study(study_from(study, folder), folder / "run", InlineEngine(), watch=Quiet(), stop=Stop())
    return analyze(ran.folder.path)


def claims(summary: Summary) -> str:
    """Return all that is said about which SUT is best, wherever it is said."""
    table = ranking_table(summary)
    cells = [text for row in table.texts() for text in row] if table else []
    return "\n".join([*answers(summary), *cells, *remarks(summary)])


def test_one_log_cannot_tell_which_sut_is_best(tmp_path: Path) -> None:
    summary = results(tmp_path, ["square", "nothing"], ["brightness(scale=0)"], people=1)
    said = claims(summary)
    why = "a and b: fewer than 3 logs behind safety or efficiency"
    assert f"a has the largest area, 1.000, but no order can be told ({why})" in said
    assert f"no order can be told: {why}" in said
    assert "best choice" not in said
    assert "%)" not in said.replace("0% of it", "")
    ranking = next(one for one in summary.data["rankings"] if one["condition"] == "identity")
    assert (ranking["probability"], ranking["why"]) == (None, why)
    assert {place["best"] for place in ranking["places"]} == {None}


def test_three_zeros_are_no_order(tmp_path: Path) -> None:
    summary = results(tmp_path, ["nothing"] * 3, ["brightness(scale=0)"])
    assert {one["probability"] for one in summary.data["rankings"]} == {None}
    assert {one["why"] for one in summary.data["rankings"]} == {"a, b and c are equal"}
    assert "no SUT is of any use" in claims(summary)
    assert "a 0.000 = b 0.000 = c 0.000" in claims(summary)


def test_equals_that_are_some_use_are_no_order_either(tmp_path: Path) -> None:
    said = claims(results(tmp_path, ["square", "square", "nothing"], ["brightness(scale=0)"]))
    assert "no order can be told: a and b have the same area, 1.000" in said
    assert "best choice" not in said


@pytest.mark.parametrize(
    ("adapters", "words"),
    [
        (["square"], "a has an area of 1.000"),
        (
            ["square", "nothing"],
            "but these logs cannot tell which SUT is best (98%, from fewer than 20 logs)",
        ),
    ],
)
def test_what_can_be_told_is_told(tmp_path: Path, adapters: list[str], words: str) -> None:
    assert words in claims(results(tmp_path, adapters, ["brightness(scale=0)"]))

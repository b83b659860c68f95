"""The checklist holds every combination, once; marks and plug-ins change what they name and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

from adverse import plugins
from adverse.cli.app import app
from adverse.errors import StudyError
from adverse.marks import GUIDE_WORDS, LOCATIONS
from adverse.report.checklist import checklist_lines, checklist_page
from adverse.requirements.checklist import PARAMETERS, WORDS_OF_TIME, NotApplicable, checklist, read_marks
from browsing import barriers_of

REGISTRY = plugins.load()
PLUGIN = """
from adverse import Hazard, mutation

@mutation(hazards=(Hazard("object", "temperature <b>", "more", "it glows"),))
def glow(image, *, heat: float):
    return image
"""


def test_every_combination_is_there_once() -> None:
    entries = checklist(REGISTRY)
    assert len(entries) == sum(map(len, PARAMETERS.values())) * len(GUIDE_WORDS)
    assert len({(entry.location, entry.parameter, entry.guide_word) for entry in entries}) == len(entries)
    assert tuple(dict.fromkeys(entry.location for entry in entries)) == LOCATIONS
    assert (len(LOCATIONS), len(GUIDE_WORDS)) == (
        6,
        20,
    )  # of the published list; optics and electronics as one
    assert {entry.status for entry in entries if entry.location == "algorithm"} == {"no mutation"}
    of_time = [entry for entry in entries if entry.guide_word in WORDS_OF_TIME]
    assert len(of_time) == len(entries) * 6 // 20
    assert {entry.status for entry in of_time} == {"no mutation"}
    declared = {
        (hazard.entry, plugin.name) for plugin in REGISTRY.all("mutation") for hazard in plugin.hazards or ()
    }
    listed = {
        ((entry.location, entry.parameter, entry.guide_word), name)
        for entry in entries
        for name in entry.mutations
    }
    assert listed == declared  # nothing that a mutation says is lost, and nothing is made up
    assert Counter(entry.status for entry in entries).keys() == {"available", "no mutation"}


def test_what_is_exercised_is_and_what_does_not_apply_says_why() -> None:
    marks = [
        NotApplicable(location="object", reason="there are none"),
        NotApplicable(location="medium", parameter="particles", reason="indoors"),
        NotApplicable(location="observer", parameter="focus", guide_word="no", reason="fixed focus"),
    ]
    entries = checklist(REGISTRY, ["haze(visibility_m=97.8)"], marks)
    by_entry = {(entry.location, entry.parameter, entry.guide_word): entry for entry in entries}
    assert all(entry.status == "not applicable" for entry in entries if entry.location == "object")
    assert by_entry["medium", "particles", "more"].status == "exercised"  # whatever the mark says
    assert by_entry["medium", "particles", "more"].reason == ""
    assert by_entry["medium", "particles", "no"].reason == "indoors"
    assert by_entry["observer", "focus", "other than"].status == "available"
    assert by_entry["observer", "focus", "no"].status == "not applicable"
    assert by_entry["observer", "focus", "more"].status == "no mutation"
    lines = checklist_lines(entries)
    count = Counter(entry.status for entry in entries)
    assert lines[0].startswith(f"{len(entries)} entries: 1 exercised, {count['available']} available")
    assert not any("the object's" in line for line in lines)
    assert any("light source's number, size" in line for line in lines)
    one_word = NotApplicable(location="light source", guide_word="reverse", reason="it stays")
    assert [line for line in checklist_lines(checklist(REGISTRY, [], [one_word])) if "source's" in line] == [
        line for line in checklist_lines(checklist(REGISTRY)) if "source's" in line
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "a mapping"),
        ("not_applicable: [{location: object}]", "reason"),
        ("not_applicable: [{location: object, reason: none there, colour: 1}]", "colour"),
    ],
)
def test_marks_are_read_strictly(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "marks.yaml").write_text(text)
    with pytest.raises(StudyError, match=words):
        read_marks(tmp_path / "marks.yaml")


@pytest.mark.parametrize(
    "mark",
    [
        {"location": "objekt"},
        {"location": "object", "parameter": "focus"},
        {"location": "object", "guide_word": "mor"},
    ],
)
def test_a_mark_of_nothing_is_refused(mark: dict[str, str]) -> None:
    with pytest.raises(StudyError, match="a mark names an unknown"):
        checklist(REGISTRY, marks=[NotApplicable(**mark, reason="whatever")])


def test_the_command_and_the_page(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "glow.py").write_text(PLUGIN)
    (tmp_path / "marks.yaml").write_text(
        "not_applicable: [{location: object, parameter: motion, reason: <i>it stands still}]"
    )
    page = tmp_path / "checklist.html"
    command = ["hazards", "--plugin", str(tmp_path / "glow.py"), "--marks", str(tmp_path / "marks.yaml")]
    done = CliRunner().invoke(app, [*command, "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert f"{(sum(map(len, PARAMETERS.values())) + 1) * len(GUIDE_WORDS)} entries" in done.output
    told = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    (glow,) = [entry for entry in told if entry["mutations"] == "glow"]
    assert (glow["parameter"], glow["status"]) == ("temperature <b>", "available")
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.goto(page.as_uri())
    assert complaints == []
    assert tab.locator("section h2").count() == len(LOCATIONS)
    assert tab.get_by_text("temperature <b>").count() == 1
    assert tab.get_by_text("<i>it stands still").count() == len(GUIDE_WORDS)
    assert tab.locator("b, i").count() == 0
    tab.close()
    assert barriers_of(browser, page) == []
    assert checklist_page(checklist(REGISTRY)) == checklist_page(checklist(REGISTRY))

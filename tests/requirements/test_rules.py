"""The file of rules: strict, and every mistake named with its line and what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from adverse.errors import StudyError
from adverse.requirements.rules import read_rules

GOOD = """rules:
  - {name: people in the way, measure: robustness, sut: anchor, level: path, setting: AnyMild, at_least: 0.8}
  - {measure: rPC, at_least: 50, sut: [anchor, centre]}
  - {measure: area, level: image/ROC_B, setting: baseline, at_least: 0.5, bound: point}
  - {measure: faults, at_most: 0}
  - {measure: requirements}
"""


def read(tmp_path: Path, text: str) -> StudyError | None:
    path = tmp_path / "requirements.yaml"
    path.write_text(text)
    try:
        read_rules(path)
    except StudyError as error:
        return error
    return None


def test_rules_are_read(tmp_path: Path) -> None:
    path = tmp_path / "requirements.yaml"
    path.write_text(GOOD)
    first, second, third, fourth, last = read_rules(path)
    assert (first.sut, first.level, first.limit, first.judged_by) == (("anchor",), "path", 0.8, "lower")
    assert (second.sut, second.limit) == (("anchor", "centre"), 50)
    assert third.judged_by == "point"
    assert (fourth.judged_by, fourth.limit) == ("point", 0)
    assert last.measure == "requirements"


@pytest.mark.parametrize(
    ("text", "what", "line", "hint"),
    [
        ("- measure: area", "a rules file is a mapping", "", "Begin with"),
        ("rule: []", "unknown key 'rule'", "line 1", "Did you mean 'rules'?"),
        ("rules: []", "rules has a value", "line 1", "docs/gate.md"),
        ("rules:\n  - {mesure: area}", "unknown key 'mesure'", "line 2", "Did you mean 'measure'?"),
        ("rules:\n  - {measure: faults, at_mots: 0}", "unknown key 'at_mots'", "line 2", "'at_most'?"),
        ("rules:\n  - {level: path}", "the key 'measure' is missing", "line 2", "Add measure:"),
        ("rules:\n  - {measure: aera}", "there is no measure 'aera'", "line 2", "Did you mean 'area'?"),
        ("rules:\n\n  - measure: area\n    level: pth", "there is no level", "line 4", "Did you mean 'path'"),
        ("rules:\n  - {measure: area, level: path}", "area needs setting:", "line 2", "worst mild case"),
        (
            "rules:\n  - {measure: faults, level: path, at_most: 0}",
            "faults takes no level",
            "line 2",
            "Remove",
        ),
        (
            "rules:\n  - {measure: metric, metric: flicker, setting: Any, at_least: 1}",
            "at_least is the wrong way round for flicker",
            "line 2",
            "at_most: 1",
        ),
        ("rules:\n  - {measure: metric, setting: Any}", "metric needs metric:", "line 2", "longest_gap"),
        ("rules:\n  - {measure: faults}", "a rule has one limit", "line 2", "Add at_least"),
        (
            "rules:\n  - {measure: rPC, at_least: 1, at_most: 2}",
            "a rule has one limit",
            "line 2",
            "two rules",
        ),
        (
            "rules:\n  - {measure: rPC, at_least: 0.5}",
            "at_least is not a valid limit",
            "line 2",
            "in percent",
        ),
        ("rules:\n  - {measure: top1, setting: Any, at_least: 50}", "at_least is not", "line 2", "0 to 1"),
        ("rules:\n  - {measure: rPC, at_least: .nan}", "at_least has a value", "line 2", "docs/gate.md"),
        ("rules:\n  - {measure: rPC, at_least: 5, bound: upper}", "bound upper does not", "line 2", "lower"),
        ("rules:\n  - {measure: recall, at_least: 0.9}", "recall needs setting:", "line 2", "clean"),
        (
            "rules:\n  - {measure: adr, setting: Any, at_most: 0.9}",
            "at_most is the wrong way round for adr",
            "line 2",
            "at_least: 0.9",
        ),
        (
            "rules:\n  - {measure: recall, setting: Any, at_most: 0.9}",
            "at_most is the wrong way round for recall",
            "line 2",
            "at_least: 0.9",
        ),
        (
            "rules:\n  - {measure: false_positives_per_image, setting: Any, at_least: 0.1}",
            "at_least is the wrong way round",
            "line 2",
            "at_most: 0.1",
        ),
        ("rules:\n  - {measure: ap, setting: Any, at_least: 40}", "at_least is not", "line 2", "0 to 1"),
        (
            "rules:\n  - {measure: faults, at_most: 0, sut: []}",
            "sut has a value it cannot take",
            "line 2",
            "docs/gate.md",
        ),
        ("rules:\n  - {measure: requirements, at_least: 1}", "requirements has no at_least", "line 2", "out"),
        ("rules:\n  - {measure: rPC, measure: mPC}", "the same key stands twice", "line 2", "Delete"),
        ("rules: !!python/object:os.system []", "the rules file holds plain data", "line 1", "plain"),
        ("rules: [", "the rules file is not valid YAML", "line 1", "brackets"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, what: str, line: str, hint: str) -> None:
    error = read(tmp_path, text)
    assert error is not None
    assert error.what.startswith(what)
    assert line in str(error.where)
    assert hint in str(error.fix) + str(error.wanted)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="the rules file cannot be read"):
        read_rules(tmp_path / "none.yaml")

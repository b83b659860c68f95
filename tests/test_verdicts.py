"""Verdicts, and the files that hold them."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.curves.interval import Interval
from adverse.errors import StoreError
from adverse.report.verdicts import terminal_lines, to_markdown
from adverse.requirements.verdicts import (
    Outcome,
    Verdict,
    exit_code,
    from_json,
    to_json,
    to_junit,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
VERDICTS = st.lists(
    st.builds(
        Verdict,
        name=st.text(),
        requirement=st.text(),
        required=st.none() | FINITE,
        measured=st.none() | FINITE,
        interval=st.none(),
        outcome=st.sampled_from(Outcome),
        reason=st.text(),
    )
)


@given(VERDICTS, st.none() | FINITE, st.none() | FINITE)
def test_verdicts_come_back_from_json(verdicts: list[Verdict], low: float | None, high: float | None) -> None:
    verdicts = [
        replace(verdict, interval=Interval(verdict.measured, low, high, 0.95, "jackknife", 5, "few logs"))
        for verdict in verdicts
    ]
    assert from_json(to_json(verdicts), where="here") == verdicts


@given(VERDICTS)
def test_junit_is_xml_whatever_the_names_hold(verdicts: list[Verdict]) -> None:
    (suite,) = ET.fromstring(to_junit(verdicts, suite="gate"))
    cases = suite.findall("testcase")
    outcome = {"failure": Outcome.FAIL, "error": Outcome.INCONCLUSIVE, "system-out": Outcome.PASS}
    assert [outcome[case[0].tag] for case in cases] == [verdict.outcome for verdict in verdicts]
    assert int(suite.attrib["failures"]) == sum(verdict.outcome is Outcome.FAIL for verdict in verdicts)
    assert int(suite.attrib["tests"]) == len(verdicts)


@given(VERDICTS)
def test_markdown_has_one_row_each_and_no_html(verdicts: list[Verdict]) -> None:
    text = to_markdown(verdicts, title="gate")
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == len(verdicts)
    assert "<" not in text


def test_one_failure_decides_and_nothing_at_all_is_not_a_pass() -> None:
    passed, failed, opened = (Verdict("a", "b", 1.0, 1.0, None, outcome) for outcome in Outcome)
    assert exit_code([passed]) == 0
    assert exit_code([passed, opened, failed]) == 1
    assert exit_code([passed, opened]) == 3
    assert exit_code([]) == 3


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"name": "a"}]', "null"])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(StoreError, match="not a list of verdicts"):
        from_json(text, where="here")


def test_a_verdict_holds_no_nan() -> None:
    with pytest.raises(ValueError, match="finite"):
        Verdict("a", "b", float("nan"), None, None, Outcome.PASS)


def test_a_verdict_takes_two_lines_and_says_why_where_it_does_not_pass() -> None:
    rule = "the lower bound of recall of ours under haze(visibility_m=98) is at least 0.9"
    good = Verdict("people in haze", rule, 0.9, 0.95, None, Outcome.PASS, reason="the worst of 3 (3 PASS)")
    bad = replace(good, outcome=Outcome.FAIL, measured=0.5)
    assert terminal_lines([good], width=80) == ["✓ PASS people in haze: 0.95, wanted at least 0.9"]
    assert terminal_lines([bad], width=80) == [
        "✗ FAIL people in haze: 0.5, wanted at least 0.9",
        "  the worst of 3 (3 PASS)",
    ]
    whole = terminal_lines([good], width=40, details=True)
    assert max(map(len, whole)) <= 40
    assert "lower bound of recall" in " ".join(whole)


def test_of_many_verdicts_the_worst_stand_on_the_screen_and_the_others_are_counted() -> None:
    good = Verdict("people in haze", "recall is at least 0.9", 0.9, 0.95, None, Outcome.PASS)
    bad = Verdict("in rain", "recall is at least 0.9", 0.9, 0.5, None, Outcome.FAIL)
    many = [good] * 9 + [bad] * 3
    lines = terminal_lines(many, width=80, most=5)
    assert [line.partition(":")[0] for line in lines] == [
        *["✗ FAIL in rain"] * 3,
        "✓ PASS people in haze",
        "and 8 more",
    ]
    assert lines[-1] == "and 8 more: 8 PASS; --tables"
    assert terminal_lines(many, width=80, most=12) == terminal_lines(many, width=80)

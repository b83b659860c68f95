"""Every row of the reliability matrix has a test, and the page lists the tests as they are marked."""

from __future__ import annotations

import re

import reliability_matrix
from reliability_matrix import PAGE, ROWS, TESTS, lines, marked_tests


def test_every_row_has_a_test_and_every_case_is_there() -> None:
    shown = marked_tests()
    assert sorted(shown) == list(range(1, len(ROWS) + 1))
    assert len(ROWS) == 58
    for tests in shown.values():
        for test in tests:
            text = (TESTS / test.file).read_text()
            assert [case for case in test.cases if f'"{case}"' not in text] == [], test


def test_the_page_is_not_stale_and_no_row_fails() -> None:
    """Results are those of the last `make matrix`, which fails where a row does not hold."""
    page = PAGE.read_text()
    assert page.startswith(reliability_matrix.HEAD)
    rows = [line.rsplit(" | ", 1) for line in page.splitlines() if re.match(r"\| \d", line)]
    assert [f"{row[0]} |" for row in rows] == lines(marked_tests()), "run make matrix"
    assert [row[1] for row in rows if not re.match(r"holds|not run", row[1])] == []

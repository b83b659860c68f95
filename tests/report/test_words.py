"""Foreign text made harmless."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from adverse.text import HIDDEN, LONGEST, apart, cell, shown


@given(st.text())
def test_nothing_hidden_is_left_and_nothing_is_too_long(text: str) -> None:
    found = shown(text)
    assert len(found) <= LONGEST
    assert not any(unicodedata.category(char) in HIDDEN for char in found)


@given(st.lists(st.text(alphabet="ab-", max_size=30), max_size=12), st.integers(12, 20))
def test_shortened_names_can_be_told_apart(names: list[str], longest: int) -> None:
    short = apart(names, longest=longest)
    assert all(len(text) <= longest for text in short)
    pairs = [(one, other) for one in range(len(names)) for other in range(one)]
    assert all(short[one] != short[other] for one, other in pairs if names[one] != names[other])


@given(st.text(alphabet="=+-@\t\rabc1", min_size=1))
def test_no_cell_is_a_formula(text: str) -> None:
    assert cell(text)[0] not in "=+-@\t\r"


def test_numbers_stay_numbers() -> None:
    assert cell(-0.1) == "-0.1"
    assert cell(1e-17) == "1e-17"
    assert cell(True) == "true"

"""The page about semantic mutations names all that there is."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from adverse.semantic import KINDS, Options
from adverse.semantic.checks import (
    DEPTH_CHECKS,
    INDEX_CHECKS,
    LOG_CHECK,
    MOVED_CHECKS,
    PAPER_CHECKS,
    PLACE_CHECKS,
)
from adverse.semantic.proposing import DARKER, HUE_SHIFT, RICHER

PAGE = (Path(__file__).parents[2] / "docs" / "semantic.md").read_text()


def test_every_mutation_check_and_option_is_on_the_page() -> None:
    assert [name for name in KINDS if f"`{name}`" not in PAGE] == []
    checks = re.findall(
        r"^\| `(\w+)` \|", PAGE.partition("## Conformity checks")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert tuple(checks) == (*INDEX_CHECKS, *PLACE_CHECKS, LOG_CHECK)
    assert set(checks) == {*PAPER_CHECKS, *MOVED_CHECKS, *DEPTH_CHECKS, LOG_CHECK}
    assert [name for name in checks if name in PAPER_CHECKS] == list(PAPER_CHECKS)
    words = re.findall(r"\w+", PAGE)
    assert {field.name for field in fields(Options)} <= set(words)


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    assert (HUE_SHIFT, DARKER, RICHER) == ((45, 135), (20, 50), (10, 40))
    assert Options().min_side_px == {"car": 100, "person": 50}
    assert (Options().vanishing_grid, Options().light_within, Options().tries) == ((2, 2), 5.0, 200)

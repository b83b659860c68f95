"""A table of bad inputs: a name, how to spoil the good study, the exit code, the words the user must see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from .good_study import GoodStudy

PASS, CANNOT_RUN, INCOMPLETE, INTERRUPTED = 0, 2, 3, 130


@dataclass(frozen=True)
class Case:
    """One row; `words` name the file, field or frame and what is wrong with it."""

    name: str
    spoil: Callable[[GoodStudy], object]
    code: int
    words: tuple[str, ...]

    def check(self, study: GoodStudy) -> None:
        """Spoil the study, run it, and compare."""
        self.spoil(study)
        study.adverse().expect(self.code, *self.words)


def case(name: str, spoil: Callable[[GoodStudy], object], code: int, *words: str) -> Case:
    """Write a row."""
    return Case(name, spoil, code, words)


def table(*rows: Case) -> pytest.MarkDecorator:
    """Run the test below for every row."""
    return pytest.mark.parametrize("row", rows, ids=[row.name for row in rows])

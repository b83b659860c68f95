"""Text files whose lines are numbers, or a name and numbers: read strictly, every error with its line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from adverse.data.files import read_text
from adverse.errors import DataError


class Line(NamedTuple):
    """A line that is not blank: where it stands, and its words."""

    where: str
    words: list[str]


def lines_of(path: Path, what: str) -> Iterator[Line]:
    """Yield the lines of a text file that are not blank."""
    for number, line in enumerate(read_text(path, what=what).splitlines(), start=1):
        if line.strip():
            yield Line(f"{path}, line {number}", line.split())


def numbers(words: list[str], count: int | None, where: str, what: str) -> list[float]:
    """Return words as finite numbers, `count` of them."""
    if count is not None and len(words) != count:
        raise wrong_line(where, what, f"{len(words)} numbers", f"{count} numbers")
    found = []
    for word in words:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise wrong_line(where, what, repr(word[:40]), "finite numbers")
        found.append(value)
    return found


def wrong_line(where: str, what: str, got: str, wanted: str) -> DataError:
    """Return the error for a line that says what it must not."""
    return DataError(
        f"the {what} file is wrong",
        where=where,
        got=got,
        wanted=wanted,
        fix="Correct the line; docs/data-formats.md describes it.",
    )

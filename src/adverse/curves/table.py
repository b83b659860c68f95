"""A table of scores from a CSV file: one row per setting, one of them the baseline; one column per SUT."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError

BASELINE = "baseline"
SHAPE = "first column the setting's id, one column per SUT, one row called baseline"
RIOT_2018 = "riot_2018_table_iv.csv"


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores (settings, SUTs); `where` says where they came from, for errors."""

    settings: tuple[str, ...]
    suts: tuple[str, ...]
    scores: NDArray[np.float64]
    where: str = "score table"

    def relative(self, settings: Sequence[str]) -> NDArray[np.float64]:
        """Return the scores of some settings over the baseline's: (SUTs, settings)."""
        rows = [self.settings.index(setting) for setting in settings]
        relative: NDArray[np.float64] = (self.scores[rows] / self.scores[self.settings.index(BASELINE)]).T
        return relative


def read_table(path: Path) -> ScoreTable:
    """Read a score table from a CSV file."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            "the score table cannot be read",
            where=str(path),
            got=str(error),
            wanted=f"a CSV file: {SHAPE}",
            fix="Check the path, and save the table as UTF-8 text.",
        ) from error
    return parse_table(text, where=str(path))


def riot_2018() -> ScoreTable:
    """Return the published scores of 000, Table IV: the ADR of 8 SUTs under 47 settings.

    >>> table = riot_2018()
    >>> len(table.settings), table.suts[0]
    (48, 'MS-CNN')
    """
    text = resources.files("adverse.curves").joinpath("data", RIOT_2018).read_text("utf-8")
    return parse_table(text, where=RIOT_2018)


def parse_table(text: str, *, where: str = "score table") -> ScoreTable:
    r"""Read a score table from CSV text; blank lines are skipped.

    >>> parse_table("setting,a,b\nbaseline,0.5,0.8\nhaze(beta=1),0.4,0.6").suts
    ('a', 'b')
    """
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    try:
        lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise _wrong("the score table is not CSV", where, reader.line_num, got=str(error)) from error
    if len(lines) < 2:
        raise _wrong("the score table is empty", where, None, got=f"{len(lines)} lines")
    suts = _names(lines[0][1][1:], "SUT", where, lines[0][0])
    settings: list[str] = []
    scores = []
    for number, row in lines[1:]:
        if len(row) != len(suts) + 1:
            raise _wrong(
                "a row has not as many cells as the header",
                where,
                number,
                got=f"{len(row)} cells",
                wanted=f"{len(suts) + 1} cells",
                fix="Put ids that hold a comma in double quotes.",
            )
        settings.append(row[0].strip())
        scores.append([_number(cell, sut, where, number) for sut, cell in zip(suts, row[1:], strict=True)])
    _names(settings, "setting", where, None)
    table = ScoreTable(tuple(settings), suts, np.array(scores, np.float64).reshape(len(scores), -1), where)
    _check_baseline(table)
    return table


def _names(names: Sequence[str], noun: str, where: str, line: int | None) -> tuple[str, ...]:
    stripped = tuple(name.strip() for name in names)
    if not stripped or "" in stripped:
        raise _wrong(f"a {noun} has no name", where, line, got=", ".join(map(repr, stripped)) or "no columns")
    double = sorted({name for name in stripped if stripped.count(name) > 1})
    if double:
        raise _wrong(
            f"a {noun} stands in the table twice",
            where,
            line,
            got=repr(double[0]),
            wanted=f"each {noun} once",
            fix="Leave one of them out, or tell them apart by name.",
        )
    return stripped


def _number(cell: str, sut: str, where: str, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _wrong(
            "a score is not a number",
            f"{where}, column {sut!r}",
            line,
            got=repr(cell.strip()),
            wanted="a finite number in every cell",
            fix="Fill it in, or leave out the row or the column: what did not run is not guessed.",
        )
    return value


def _check_baseline(table: ScoreTable) -> None:
    if BASELINE not in table.settings:
        rows = ", ".join(table.settings[:3])
        raise _wrong("the score table has no baseline row", table.where, None, got=f"rows {rows} ...")
    row = table.scores[table.settings.index(BASELINE)]
    if (row <= 0).any():
        index = int(np.flatnonzero(row <= 0)[0])
        raise _wrong(
            "a baseline score is not above zero, and nothing is relative to nothing",
            f"{table.where}, row 'baseline', column {table.suts[index]!r}",
            None,
            got=f"{row[index]:g}",
            wanted="baseline scores > 0",
            fix="Leave out SUTs that detect nothing on un-mutated images.",
        )


def _wrong(
    what: str,
    where: str,
    line: int | None,
    *,
    got: str,
    wanted: str = SHAPE,
    fix: str = "Write the table as: setting,SUT A,SUT B and so on, then a line baseline,0.6,0.7",
) -> DataError:
    place = where if line is None else f"{where}, line {line}"
    return DataError(what, where=place, got=got, wanted=wanted, fix=fix)

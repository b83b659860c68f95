"""Whether a contextual mutation can be predicted from a simple one (Pezzementi et al. 2018, IV-B).

Defocus is blur that depends on depth, haze is blending that does. If what a SUT loses under blur tells what
it will lose under defocus, depth need not be known to test for it. Each contextual setting gets a model of
its own: the score is a sum, with weights >= 0, of the scores under the simple mutation's settings, all
relative to the SUT's baseline. The un-mutated score, 1 in these terms, is the simple mutation at strength 0
and has a weight like the others: where depth leaves a person untouched it is what applies. The weights are
fitted on all SUTs but one and tried on that one.

A table of scores from a CSV file: one row per setting, one of them the baseline; one column per SUT.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from adverse.errors import DataError, suggestion
from adverse.plain_files import read_plain

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
        text = read_plain(path).decode("utf-8-sig")
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
    """Return the scores published by Pezzementi et al. (2018), Table IV: the ADR of 8 SUTs under 47 settings.

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
            fix="Leave out SUTs that detect nothing on clean images.",
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


LEAST_SUTS = 3
"""One to predict and two to learn from."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Observed and predicted scores of one SUT relative to its baseline, one per contextual setting (C,).

    `r2` is 1 - (squared errors) / (squared deviations from this SUT's own mean) over all contextual
    settings: 1 is perfect, 0 no better than the mean, below 0 worse. `squared_correlation` forgives a wrong
    offset or scale. Both are None where the observed scores do not vary (and the second also where the
    predicted do not). `weights` (C, P) of the simple settings were fitted without this SUT.
    """

    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    weights: NDArray[np.float64]
    r2: float | None
    squared_correlation: float | None


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions for every SUT, and the settings they are about.

    `simple` (P) begins with the baseline, which is strength 0; `weights` (C, P) were fitted on all SUTs.
    """

    simple: tuple[str, ...]
    contextual: tuple[str, ...]
    suts: Mapping[str, Prediction]
    weights: NDArray[np.float64]

    def plain(self) -> dict[str, Any]:
        """Return everything as plain lists and numbers, for JSON."""
        return {
            "simple": list(self.simple),
            "contextual": list(self.contextual),
            "weights": self.weights.tolist(),
            "suts": {
                sut: {
                    "r2": one.r2,
                    "squared_correlation": one.squared_correlation,
                    "observed": one.observed.tolist(),
                    "predicted": one.predicted.tolist(),
                    "weights": one.weights.tolist(),
                }
                for sut, one in self.suts.items()
            },
        }


def predict_contextual(table: ScoreTable, *, simple: str, contextual: str) -> Predictions:
    """Predict the settings of one family from those of another, leaving one SUT out at a time."""
    sources = (BASELINE, *_family(table, simple, "simple"))
    targets = _family(table, contextual, "contextual")
    if len(table.suts) < LEAST_SUTS:
        raise DataError(
            "too few SUTs to leave one out",
            where=table.where,
            got=str(len(table.suts)),
            wanted=f"at least {LEAST_SUTS}: one to predict, the others to learn from",
            fix="Add SUTs: to the study and run it, or as columns of the table.",
        )
    known, wanted = table.relative(sources), table.relative(targets)
    return Predictions(
        sources,
        targets,
        {sut: _left_out(known, wanted, index) for index, sut in enumerate(table.suts)},
        _fitted(known, wanted),
    )


def _fitted(known: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights >= 0 (C, P) that come closest to `wanted` (SUTs, C) from `known` (SUTs, P)."""
    return np.array([scipy.optimize.nnls(known, wanted[:, target])[0] for target in range(wanted.shape[1])])


def _left_out(known: NDArray[np.float64], wanted: NDArray[np.float64], sut: int) -> Prediction:
    """Predict row `sut` of `wanted` (SUTs, C) from that of `known` (SUTs, P), learning from all others."""
    others = np.arange(len(known)) != sut
    weights = _fitted(known[others], wanted[others])
    predicted = weights @ known[sut]
    observed = wanted[sut]
    deviation = observed - observed.mean()
    spread = float(deviation @ deviation)
    r2 = 1 - float(np.sum((observed - predicted) ** 2)) / spread if spread > 0 else None
    return Prediction(observed, predicted, weights, r2, _squared_correlation(deviation, predicted))


def _squared_correlation(deviation: NDArray[np.float64], predicted: NDArray[np.float64]) -> float | None:
    other = predicted - predicted.mean()
    scale = float(deviation @ deviation) * float(other @ other)
    return min(float(deviation @ other) ** 2 / scale, 1.0) if scale > 0 else None


def _family(table: ScoreTable, family: str, role: str) -> tuple[str, ...]:
    """Return the settings of a family, in the table's order."""
    found = tuple(setting for setting in table.settings if family_of(setting) == family)
    if found:
        return found
    known = {family_of(setting) for setting in table.settings} - {BASELINE}
    raise DataError(
        f"the table has no settings of the {role} mutation {family!r}",
        where=table.where,
        got=f"families: {', '.join(sorted(known)) or 'none'}",
        wanted=f"rows such as {family}(...)",
        fix=suggestion(family, known),
    )


def family_of(setting: str) -> str:
    """Return a setting's mutation: its id up to the first bracket.

    >>> family_of("defocus(focus_m=10, kappa=2)")
    'defocus'
    """
    return setting.split("(", 1)[0].strip()

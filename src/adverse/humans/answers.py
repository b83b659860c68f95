"""Answers of people, read strictly from a CSV file: one row for each image that somebody judged.

participant       who answered; any word, the same for all answers of one person
image             which original the image was made from
transformation    what was done to it; `original` where nothing was
dv                how much that changed, as visual change from 0 to 1; 0 for an original
backend           by which visual change was measured: vif, vifp or vif2; one for the whole file
answer            what this person answered
truth             what is really there; empty where nobody knows

The estimation only needs them counted by participant and bin of visual change, which keeps the bootstrap
cheap: drawing participants anew is one matrix product.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError, suggestion
from adverse.humans.thresholds import Kind
from adverse.plain_files import read_plain
from adverse.text import plain_number
from adverse.visual import BACKENDS, Backend

COLUMNS = ("participant", "image", "transformation", "dv", "backend", "answer", "truth")
MAY_BE_EMPTY = ("truth",)
ORIGINAL = "original"
"""The transformation of an image that is shown as it is."""
LONGEST_CELL = 1000

Words = NDArray[np.str_]
Row = tuple[str, str, str, float, str, str, str]


@dataclass(frozen=True, eq=False)
class Judgments:
    """N answers, column by column; texts are empty where the column may be."""

    participant: Words
    image: Words
    transformation: Words
    dv: NDArray[np.float64]
    backend: Words
    answer: Words
    truth: Words

    def __len__(self) -> int:
        return len(self.dv)

    def where(self, chosen: NDArray[np.bool_]) -> Judgments:
        """Return the chosen answers."""
        return Judgments(*(getattr(self, name)[chosen] for name in COLUMNS))

    @property
    def transformations(self) -> list[str]:
        """The transformations there are, in order of name; the originals are none."""
        return sorted(set(self.transformation.tolist()) - {ORIGINAL})

    @property
    def originals(self) -> Judgments:
        """The answers on originals."""
        return self.where(self.transformation == ORIGINAL)

    def of(self, transformation: str) -> Judgments:
        """Return the answers on one transformation and all those on originals, which it is compared with."""
        return self.where((self.transformation == transformation) | (self.transformation == ORIGINAL))

    @property
    def measured_by(self) -> Backend:
        """The backend that measured all visual changes; thresholds belong to it."""
        (backend,) = set(self.backend.tolist())
        return cast("Backend", backend)

    @property
    def strangers(self) -> Counter[str]:
        """The answers that are no category of any truth, which all count as wrong; none without truths."""
        truths = set(self.truth.tolist()) - {""}
        return Counter(answer for answer in self.answer.tolist() if truths and answer not in truths)

    @property
    def seen_before(self) -> int:
        """How many answers were given by somebody who had already seen another version of the image."""
        pairs = set(zip(self.participant.tolist(), self.image.tolist(), strict=True))
        return len(self) - len(pairs)


def judgments_of(rows: Iterable[Row]) -> Judgments:
    """Return answers that are at hand as rows, in the order of COLUMNS."""
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    made: dict[str, Any] = {
        name: np.array(column, np.float64 if name == "dv" else np.str_)
        for name, column in zip(COLUMNS, columns, strict=True)
    }
    return Judgments(**made)


def decoded(path: Path) -> str:
    """Return the text of a CSV file, or raise DataError."""
    try:
        return read_plain(path).decode("utf-8-sig")
    except OSError as error:
        raise DataError(
            "the answers cannot be read",
            where=str(path),
            got=error.strerror or str(error),
            fix="Give the file that adverse humans export or simulate wrote.",
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            "the answers are not UTF-8 text",
            where=str(path),
            got=f"byte {error.start}",
            wanted="a CSV file",
            fix="Export it again as CSV, UTF-8.",
        ) from error


def read_judgments(path: Path) -> Judgments:
    """Read a CSV file of answers, or raise DataError naming the row, the column and what is wrong there."""
    lines = _lines(decoded(path), path)
    order = _order(next(lines, (1, []))[1], path)
    numbered = {number: _row(cells, order, path, number) for number, cells in lines if cells}
    rows = list(numbered.values())
    if not rows:
        raise DataError(
            "there are no answers in the file",
            where=str(path),
            got="a header at most",
            wanted="a row for each answer",
            fix="Collect answers first, or simulate some: adverse humans simulate.",
        )
    _refuse_repeats(rows, path)
    _refuse_two_backends(rows, path)
    _refuse_two_truths(numbered, path)
    _refuse_other_case(numbered, path)
    return judgments_of(rows)


def to_csv(judgments: Judgments) -> str:
    """Write answers as the CSV text that `read_judgments` reads."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(COLUMNS)
    columns = (getattr(judgments, name).tolist() for name in COLUMNS)
    writer.writerows(zip(*columns, strict=True))
    return sink.getvalue()


def _lines(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(
            "the answers are not valid CSV",
            where=f"{path}, row {reader.line_num}",
            got=str(error),
            fix="Check the quotes there, or export the file again.",
        ) from error


def _order(header: Sequence[str], path: Path) -> list[int]:
    """Return where in a row each of our columns stands."""
    names = [name.strip() for name in header]
    for number, name in enumerate(names, start=1):
        if name not in COLUMNS or names.count(name) > 1:
            raise DataError(
                "the answers have a duplicate column"
                if name in COLUMNS
                else "the answers have an unknown column",
                where=f"{path}, row 1, column {number}",
                got=repr(name[:LONGEST_CELL]),
                wanted=", ".join(COLUMNS),
                fix="For the tables of Hu et al. (2022) add --compat hu-2022."
                if "IQA" in names
                else suggestion(name, COLUMNS),
            )
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise DataError(
            "the answers lack a column",
            where=f"{path}, row 1",
            got=", ".join(names) or "no header",
            wanted=", ".join(COLUMNS),
            fix=f"Add {missing[0]}; what is unknown may be left empty in {' and '.join(MAY_BE_EMPTY)}.",
        )
    return [names.index(name) for name in COLUMNS]


def _row(cells: Sequence[str], order: Sequence[int], path: Path, number: int) -> Row:
    if len(cells) != len(order):
        raise DataError(
            "a row of the answers is incomplete",
            where=f"{path}, row {number}",
            got=f"{len(cells)} cells",
            wanted=f"{len(order)}, as in the header",
            fix="Correct the row, or remove it.",
        )
    values = [cells[place].strip() for place in order]
    for name, value in zip(COLUMNS, values, strict=True):
        if not value and name not in MAY_BE_EMPTY:
            raise _bad(path, number, name, "an empty cell", "a word" if name != "dv" else "a number")
        if len(value) > LONGEST_CELL or "\0" in value:
            raise _bad(path, number, name, f"{len(value)} characters", f"at most {LONGEST_CELL} of text")
    participant, image, transformation, written, backend, answer, truth = values
    dv = plain_number(written)
    if not 0 <= dv <= 1:
        raise _bad(path, number, "dv", repr(written), "a visual change from 0 to 1")
    if transformation.lower() == ORIGINAL != transformation:
        fix = f"Did you mean {ORIGINAL!r}?"
        raise _bad(path, number, "transformation", repr(transformation), "another name", fix)
    if transformation == ORIGINAL and dv != 0:
        raise _bad(path, number, "dv", repr(written), "0 for an original")
    if backend not in BACKENDS:
        raise _bad(path, number, "backend", repr(backend), " or ".join(BACKENDS))
    return participant, image, transformation, dv, backend, answer, truth


def _bad(path: Path, number: int, column: str, got: str, wanted: str, fix: str = "") -> DataError:
    return DataError(
        "a cell of the answers cannot be read",
        where=f"{path}, row {number}, column {column}",
        got=got,
        wanted=wanted,
        fix=fix or "Correct the cell, or remove the row.",
    )


def _refuse_repeats(rows: Sequence[Row], path: Path) -> None:
    """Refuse an answer that stands there twice: it would count as two people's."""
    seen: dict[tuple[str, str, str, float], int] = {}
    for number, row in enumerate(rows, start=1):
        first = seen.setdefault(row[:4], number)
        if first != number:
            raise DataError(
                "an answer is in the file twice",
                where=f"{path}, answers {first} and {number}",
                got=f"participant {row[0]}, image {row[1]}, {row[2]}, dv {row[3]:g}",
                wanted="one row for each image that a participant judged",
                fix="Delete one of the two.",
            )


def _refuse_two_backends(rows: Sequence[Row], path: Path) -> None:
    """Refuse visual changes by two backends: they cannot stand on one axis."""
    for number, row in enumerate(rows, start=1):
        if row[4] != rows[0][4]:
            raise DataError(
                "visual change was measured with two backends",
                where=f"{path}, answers 1 and {number}",
                got=f"{rows[0][4]} and {row[4]}",
                wanted="one backend for the whole file",
                fix="Put the answers into two files, one for each backend.",
            )


def _refuse_two_truths(rows: Mapping[int, Row], path: Path) -> None:
    """Refuse two truths about one image: one of them would make right answers wrong."""
    seen: dict[str, tuple[int, str]] = {}
    for number, row in rows.items():
        image, truth = row[1], row[6]
        first, before = seen.setdefault(image, (number, truth)) if truth else (number, truth)
        if before != truth:
            raise DataError(
                "an image has two truths",
                where=f"{path}, rows {first} and {number}, column truth",
                got=f"{before!r} and {truth!r} for image {image}",
                wanted="one truth for each image, whatever was done to it",
                fix="Correct one of the two rows, or give different images different names.",
            )


def _refuse_other_case(rows: Mapping[int, Row], path: Path) -> None:
    """Refuse an answer that is a category but for capital letters: it would count as wrong."""
    truths = {row[6] for row in rows.values() if row[6]}
    folded = {truth.casefold(): truth for truth in truths}
    for number, row in rows.items():
        answer = row[5]
        meant = folded.get(answer.casefold())
        if meant is not None and answer not in truths:
            raise _bad(path, number, "answer", repr(answer), f"{meant!r}, as it is written under truth")


Array = NDArray[np.float64]

BINS = 100
WIDTH = 1 / BINS
EDGES: Array = np.arange(BINS + 1) / BINS
CENTRES: Array = (np.arange(BINS) + 0.5) / BINS
ON_THE_EDGE = 1e-9
"""0.29 in binary is a little less than 29 hundredths; it belongs to the bin that begins there."""


@dataclass(frozen=True, eq=False)
class AnswerCounts:
    """Answers and successes of P participants in each bin (P, BINS), and on what they are compared with (P,).

    A success is the right answer, or what most people answered on the original. `base_apart` says whether
    the base is not already among the answers in the bins. Somebody who answered on originals alone is one of
    the P, too. `tied` and `unseen` count answers that were left out: most people agree on nothing about the
    original, or nobody has seen it.
    """

    answers: Array
    successes: Array
    base_answers: Array
    base_successes: Array
    base_apart: bool
    tied: int = 0
    unseen: int = 0
    base_given: float | None = None
    """The rate to compare with where it comes from outside; then nothing on the base was counted."""
    guessing: float = 0.5
    """How often who cannot see anything is right: one of the categories that are in the answers."""
    names: tuple[str, ...] = ()
    """Of the participants, in the order of the rows."""

    @property
    def participants(self) -> int:
        """How many people answered on changed images."""
        return int((self.answers.sum(axis=1) > 0).sum())

    @property
    def base_rate(self) -> float:
        """The share of successes that is compared with: m0 or s0."""
        if self.base_given is not None:
            return self.base_given
        return float(self.base_successes.sum() / self.base_answers.sum())


def bin_of(dv: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bin of each visual change; 1 belongs to the last.

    >>> bin_of(np.array([0, 0.29, 0.999, 1]))
    array([ 0, 29, 99, 99])
    """
    return np.minimum(np.floor(dv * BINS + ON_THE_EDGE), BINS - 1).astype(np.int64)


def majorities(originals: Judgments) -> dict[str, str]:
    """Return what most people answered on each original; empty where two answers are tied for the most.

    More than any other answer is most: 2 of 4 with two single others is. One answer is a majority of one.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for image, answer in zip(originals.image.tolist(), originals.answer.tolist(), strict=True):
        counts[image][answer] += 1
    return {image: _most(answers) for image, answers in counts.items()}


def _most(answers: Counter[str]) -> str:
    top = max(answers.values())
    leaders = [answer for answer, count in answers.items() if count == top]
    return leaders[0] if len(leaders) == 1 else ""


def count_answers(judgments: Judgments, kind: Kind, baseline_quantile: float) -> AnswerCounts:
    """Count the answers on one transformation that say something about a threshold of this kind.

    Correctness is compared with the originals: all answers on them, right or wrong, whichever of them this
    transformation was shown on (m0). Prediction is agreement with what most people answered on the original,
    and is compared with that on barely changed images: those up to the given quantile of visual change (s0).
    """
    originals = judgments.originals
    changed = judgments.where(judgments.transformation != ORIGINAL)
    if kind == "correctness":
        used = changed.where(changed.truth != "")
        base = originals.where(originals.truth != "")
        counts = _counted(used, used.answer == used.truth, base, base.answer == base.truth, base_apart=True)
        return replace(counts, guessing=_guessing(judgments))
    shown = set(changed.image.tolist())
    seen = np.array([image in shown for image in originals.image.tolist()], np.bool_)
    most = majorities(originals.where(seen))
    on_original = np.array([most.get(image, "") for image in changed.image.tolist()], np.str_)
    unseen = sum(image not in most for image in changed.image.tolist())
    has_majority = on_original != ""
    used, on_original = changed.where(has_majority), on_original[has_majority]
    success = used.answer == on_original
    cut = np.quantile(used.dv, baseline_quantile, method="inverted_cdf") if len(used) else 0.0
    barely = used.dv <= cut
    counts = _counted(used, success, used.where(barely), success[barely], base_apart=False)
    tied = len(changed) - len(used) - unseen
    return replace(counts, tied=tied, unseen=unseen, guessing=_guessing(judgments))


def _guessing(judgments: Judgments) -> float:
    categories = np.union1d(judgments.answer, judgments.truth[judgments.truth != ""])
    return 1 / max(len(categories), 2)


def _counted(
    used: Judgments,
    success: NDArray[np.bool_],
    base: Judgments,
    base_success: NDArray[np.bool_],
    *,
    base_apart: bool,
) -> AnswerCounts:
    people = np.unique(np.concatenate([used.participant, base.participant]))
    person, base_person = (np.searchsorted(people, judgments.participant) for judgments in (used, base))
    places = person * BINS + bin_of(used.dv)

    def by_bin(counted: NDArray[np.bool_]) -> Array:
        flat = np.bincount(places, counted, len(people) * BINS).astype(np.float64)
        return flat.reshape(len(people), BINS)

    def by_person(counted: NDArray[np.bool_]) -> Array:
        return np.bincount(base_person, counted, len(people)).astype(np.float64)

    return AnswerCounts(
        by_bin(np.ones(len(used), np.bool_)),
        by_bin(success),
        by_person(np.ones(len(base), np.bool_)),
        by_person(base_success),
        base_apart=base_apart,
        names=tuple(people.tolist()),
    )

"""Thresholds as the published script of Hu et al. (2022) computes them, to compare with the paper's numbers.

It differs from `estimate` in what decides:

- bins hold (k - 0.01, k] and are named by their upper edge; those with 10 answers or fewer are dropped;
- the spline is that of R's `smooth.spline(cv = TRUE)`: for 50 bins and more it has fewer knots than bins, and
  its smoothing parameter is refined by Brent's method instead of taken from a list;
- the test in each bin is two-sided;
- the threshold is the upper edge of the *second* of two significant bins in a row;
- where there are none, the second-to-last bin is printed as if it were a threshold. Here that is named for
  what it is: no drop was found;
- t_p compares with the half of the answers that has the least visual change, and where people are tied on an
  original, the answer that was given first counts.

Nothing here comes with an interval: the script has none.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import interpolate, optimize
from scipy.stats import binomtest

from adverse.errors import DataError
from adverse.humans.answers import ORIGINAL, Judgments, decoded, read_judgments
from adverse.humans.estimate import Bin, Estimate, refuse_another_base
from adverse.humans.pooling import FEW
from adverse.humans.smoothing import LEAST_POINTS
from adverse.humans.thresholds import FOUND, INSUFFICIENT, KINDS, NOT_FOUND, Kind, mutation_of
from adverse.text import plain_number
from adverse.visual import Backend

Array = NDArray[np.float64]
NAME = "hu-2022"
WIDTH = 0.01
IN_A_ROW = 2
BASELINE_SHARE = 0.5
"""Share of the answers, by visual change, whose rate t_p is compared with."""
BACKEND: Backend = "vif"
"""What the authors measured visual change with."""
ALL_KNOTS = 50
"""From so many points on R takes fewer knots than points."""
THIRD = 0.3330
"""R's own value of the integral of u^2 over 0..1; a third would give another smoothing for the same spar."""
BETTER = "people do better here than what they are compared with, not worse: it is no drop"
SPAR = (-1.5, 1.5)
SPAR_TOLERANCE = 1e-4
BINNED: dict[tuple[str, ...], Kind] = {
    ("IQA", "Accuracy", "Count", "Num_Accs"): "correctness",
    ("IQA", "Preserved", "Count", "Num_Pre"): "prediction",
}
"""Columns of the authors' tables of bins; IQA is the upper edge of a bin of visual change there."""
RAW = ("image_link", "transformation", "ground_truth", "human_label", "IQA")
"""Columns of the authors' tables of answers; IQA is the image quality there, 1 less the visual change."""


@dataclass(frozen=True)
class BinCounts:
    """What the script reads: upper edges of the bins of visual change, answers and successes in each."""

    transformation: str
    kind: Kind
    edges: Array
    answers: NDArray[np.int64]
    successes: NDArray[np.int64]
    backend: Backend = BACKEND
    base: tuple[float, int] | None = None
    """The rate on the originals and the number of answers on them, where they are in the file."""
    participants: int = 0

    @property
    def rates(self) -> Array:
        """The share of successes in each bin."""
        return self.successes / self.answers


def estimate_as_hu2022(
    counts: BinCounts, *, base_rate: float | None = None, alpha: float = 0.05, weighted: bool = False
) -> Estimate:
    """Return what the authors' script finds; `base_rate` stands for the rate on originals, for t_c.

    `weighted`: bins count by their answers, as the script does for CIFAR-10 and not for ImageNet. A fallback
    to the second-to-last bin has status `not found`.
    """
    base = _base(counts, base_rate)
    total = int(counts.answers.sum())
    if base is None or len(counts.edges) < LEAST_POINTS:
        why = (
            f"{len(counts.edges)} bins with more than {FEW} answers, where {LEAST_POINTS} are needed"
            if base is not None
            else "the rate on the originals is not in the file; give it with --base-rate"
            if counts.kind == "correctness"
            else f"no bin has more than {FEW} answers on images whose original was judged, too"
        )
        return Estimate(
            counts.transformation, counts.kind, INSUFFICIENT, counts.backend, why, answers=total, compat=NAME
        )
    weights = counts.answers.astype(np.float64) if weighted else None
    spline = smooth_spline(counts.edges, counts.rates, weights=weights)
    hits = np.clip(np.rint(counts.answers * spline.fitted), 0, counts.answers).astype(int)
    p = [binomtest(int(k), int(n), base[0]).pvalue for k, n in zip(hits, counts.answers, strict=True)]
    second = _second_in_a_row([value < alpha for value in p])
    better = second is not None and bool(spline.fitted[second] > base[0])
    edge = float(counts.edges[-2] if second is None else counts.edges[second])
    bins = tuple(
        Bin(
            max(round(float(e) - WIDTH, 2), 0.0),
            float(e),
            int(n),
            float(rate),
            float(fitted),
            None,
            float(value),
            None,
        )
        for e, n, rate, fitted, value in zip(
            counts.edges, counts.answers, counts.rates, spline.fitted, p, strict=True
        )
    )
    fallback = f"no drop was found; {edge:g}, the second-to-last bin, is the fallback of the authors' script"
    return Estimate(
        counts.transformation,
        counts.kind,
        NOT_FOUND if second is None else FOUND,
        counts.backend,
        fallback if second is None else BETTER if better else "",
        None if second is None else edge,
        edge,
        base=base[0],
        base_answers=base[1],
        answers=total,
        participants=counts.participants,
        smoothing=spline.lam,
        bins=bins,
        compat=NAME,
        better=better,
    )


def _base(counts: BinCounts, given: float | None) -> tuple[float, int] | None:
    if given is not None and counts.kind == "correctness":
        return given, 0
    if counts.kind == "correctness" or not len(counts.edges):
        return counts.base
    half = math.ceil(counts.answers.sum() * BASELINE_SHARE)
    last = int(np.searchsorted(np.cumsum(counts.answers), half))
    answers = int(counts.answers[: last + 1].sum())
    return float(counts.successes[: last + 1].sum() / answers), answers


def _second_in_a_row(significant: list[bool]) -> int | None:
    row = 0
    for place, yes in enumerate(significant):
        row = row + 1 if yes else 0
        if row == IN_A_ROW:
            return place
    return None


@dataclass(frozen=True, eq=False)
class SmoothSpline:
    """A smoothing spline at its points: fitted values, leverages, and the smoothing for x scaled to 0..1."""

    fitted: Array
    leverage: Array
    lam: float


def smooth_spline(
    x: Array, y: Array, *, weights: Array | None = None, spar: float | None = None
) -> SmoothSpline:
    """Fit the cubic spline that R's `smooth.spline(x, y, w, cv = TRUE)` fits.

    It minimises sum w (y - f)^2 + lam * integral f''^2, x scaled to 0..1, over the splines of at most `knots`
    knots; lam = ratio * 256^(3 spar - 1). Without `spar` the one in -1.5..1.5 with the least leave-one-out
    error is taken.
    """
    scaled = (x - x[0]) / (x[-1] - x[0])
    weight = np.ones(len(x)) if weights is None else weights * len(x) / weights.sum()
    inner = scaled[np.linspace(0, len(x) - 1, knots(len(x))).astype(int)]
    all_knots = np.concatenate([np.repeat(inner[0], 3), inner, np.repeat(inner[-1], 3)])
    basis = interpolate.BSpline.design_matrix(scaled, all_knots, 3).toarray()
    gram = basis.T @ (weight[:, None] * basis)
    penalty = _penalty(all_knots)
    middle = slice(2, len(penalty) - 3)
    ratio = float(np.diag(gram)[middle].sum() / np.diag(penalty)[middle].sum())

    def at(spar: float) -> tuple[SmoothSpline, float]:
        lam = ratio * 256 ** (3 * spar - 1)
        hat = basis @ np.linalg.solve(gram + lam * penalty, basis.T * weight)
        fitted, leverage = hat @ y, np.diag(hat)
        left_out = (y - fitted) / (1 - leverage)
        return SmoothSpline(fitted, leverage, lam), float((weight * left_out**2).mean())

    if spar is None:
        spar = float(optimize.fminbound(lambda value: at(float(value))[1], *SPAR, xtol=SPAR_TOLERANCE))
    return at(spar)[0]


def knots(points: int) -> int:
    """Return how many knots R's smooth.spline takes for up to 200 points.

    >>> [knots(n) for n in (49, 50, 94, 200)]
    [49, 50, 61, 100]
    """
    if points < ALL_KNOTS:
        return points
    return int(50 * 2 ** ((points - 50) / 150) + 1e-9)


def _penalty(all_knots: Array) -> Array:
    """Return the integrals of products of the second derivatives of the B-splines, as R has them.

    Between two knots these derivatives are straight lines, start + slope * u for u in 0..1.
    """
    second = interpolate.BSpline(all_knots, np.eye(len(all_knots) - 4), 3).derivative(2)
    ends = np.unique(all_knots)
    width = np.diff(ends)[:, None]
    middle, near_end = second(ends[:-1] + 0.5 * width[:, 0]), second(ends[:-1] + 0.75 * width[:, 0])
    slope = 4 * (near_end - middle)
    start = middle - slope / 2
    cross = start.T @ (width * slope)
    product: Array = start.T @ (width * start) + (cross + cross.T) / 2 + THIRD * slope.T @ (width * slope)
    return product


def counts_of(judgments: Judgments) -> list[BinCounts]:
    """Count answers as the script does, for t_c and t_p of every transformation."""
    originals = judgments.originals
    known = originals.where(originals.truth != "")
    base = (float((known.answer == known.truth).mean()), len(known)) if len(known) else None
    first_most: dict[str, str] = {}
    for image in np.unique(originals.image).tolist():
        first_most[image] = Counter(originals.answer[originals.image == image].tolist()).most_common(1)[0][0]
    counted = []
    for name in judgments.transformations:
        changed = judgments.where(judgments.transformation == name)
        before = np.array([first_most.get(image, "") for image in changed.image.tolist()], np.str_)
        for kind in KINDS:
            wanted = changed.truth if kind == "correctness" else before
            used = wanted != ""
            bins = _binned(changed.dv[used], (changed.answer == wanted)[used])
            people = len(np.unique(changed.participant[used]))
            counted.append(
                BinCounts(
                    name,
                    kind,
                    *bins,
                    judgments.measured_by,
                    base if kind == "correctness" else None,
                    people,
                )
            )
    return counted


def _binned(dv: Array, success: NDArray[np.bool_]) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Count into bins (k - 0.01, k]; what is 0 belongs to the bin that ends there."""
    place = np.ceil(dv / WIDTH - 1e-9).astype(np.int64)
    answers = np.bincount(place, minlength=101).astype(np.int64)
    successes = np.bincount(place, success, minlength=101).astype(np.int64)
    kept = np.flatnonzero(answers > FEW)
    edges: Array = np.round(kept * WIDTH, 2)
    return edges, answers[kept], successes[kept]


def estimates_as_hu2022(
    path: Path, *, base_rate: float | None, alpha: float, weighted: bool
) -> tuple[list[Estimate], Judgments | None]:
    """Return what the script finds in a file of answers, or in a table of the authors, without people."""
    judgments = None if is_authors_table(path) else read_judgments(path)
    if judgments is not None:
        refuse_another_base(base_rate, judgments)
    counts = read_authors_table(path) if judgments is None else counts_of(judgments)
    return [
        estimate_as_hu2022(each, base_rate=base_rate, alpha=alpha, weighted=weighted) for each in counts
    ], judgments


def is_authors_table(path: Path) -> bool:
    """Tell by its columns whether a file is one of the authors' tables."""
    header = next(csv.reader(io.StringIO(decoded(path))), [])
    columns = tuple(name.strip() for name in header)
    return columns in BINNED or columns == RAW


def read_authors_table(path: Path) -> list[BinCounts]:
    """Read a table of the authors as it is: of bins (`imagenet_c_p_frost.csv`), or of single answers."""
    table = csv.DictReader(io.StringIO(decoded(path)), skipinitialspace=True)
    columns = tuple(name.strip() for name in table.fieldnames or ())
    rows = [dict(zip(columns, row.values(), strict=False)) for row in table]
    if not rows:
        raise _wrong_table(
            path, "the table has no rows", "a header alone", "a row for each bin, or each answer"
        )
    if columns == RAW:
        return counts_of(_judgments(rows, path))
    kind = BINNED[columns]
    values = np.array([[_number(row, name, path) for name in columns] for row in rows], np.float64)
    _check_bins(values, columns, path)
    name = path.stem.partition("_c_p_" if kind == "correctness" else "_p_p_")[2] or path.stem
    edges, answers, successes = (
        np.round(values[:, 0], 6),
        values[:, 2].astype(np.int64),
        values[:, 3].astype(np.int64),
    )
    return [BinCounts(mutation_of(name), kind, edges, answers, successes)]


def _check_bins(values: Array, columns: tuple[str, ...], path: Path) -> None:
    """Refuse a table of bins that cannot be true; rows are counted from 1, without the header."""
    before = -math.inf
    for number, (edge, _, answers, successes) in enumerate(values.tolist(), start=1):
        where = f"row {number}"
        iqa, count, hits = (
            f"{columns[at]} {value:g}" for at, value in ((0, edge), (2, answers), (3, successes))
        )
        if not 0 <= edge <= 1:
            wanted = "the upper edge of a bin of visual change, 0 to 1, not in percent"
            raise _wrong_table(path, "a bin lies outside 0 to 1", iqa, wanted, where)
        if edge <= before:
            wanted = "bins in ascending order, each once"
            raise _wrong_table(path, "the bins are not in order", f"{iqa} after {before:g}", wanted, where)
        if answers < 1 or answers % 1:
            raise _wrong_table(path, "a bin has no answers", count, "a whole number, 1 or more", where)
        if not 0 <= successes <= answers or successes % 1:
            wanted = f"a whole number from 0 to {columns[2]}"
            raise _wrong_table(
                path, "a bin has more successes than answers", f"{hits} of {count}", wanted, where
            )
        before = edge


def _wrong_table(path: Path, what: str, got: str, wanted: str, where: str = "") -> DataError:
    place = f"{path}, {where}" if where else str(path)
    return DataError(what, where=place, got=got, wanted=wanted, fix="Take the file as it was published.")


def _judgments(rows: list[dict[str, str]], path: Path) -> Judgments:
    """Return the authors' answers; their participants are not in the table."""
    changes = [1 - _number(row, "IQA", path) for row in rows]
    rows = [
        row for row, change in zip(rows, changes, strict=True) if change > -WIDTH
    ]  # as their bins have it
    dv = np.clip([change for change in changes if change > -WIDTH], 0, 1)
    mutations = {name: mutation_of(name) for name in {row["transformation"] for row in rows}}
    transformation = np.array([mutations[row["transformation"]] for row in rows], np.str_)
    return Judgments(
        np.full(len(rows), "", np.str_),
        np.array([_original(row["image_link"]) for row in rows], np.str_),
        transformation,
        np.where(transformation == ORIGINAL, 0.0, dv),
        np.full(len(rows), BACKEND),
        np.array([row["human_label"] for row in rows], np.str_),
        np.array([row["ground_truth"] for row in rows], np.str_),
    )


def _original(link: str) -> str:
    """Return which original an image was made from, by its file name.

    >>> _original("https://x/frost/n01_77.JPEG.frost_3.png"), _original("https://x/IMG_ORIGINAL/batch_4_80.png")
    ('n01_77', 'batch_4_80')
    """
    return link.rpartition("/")[2].partition(".")[0]


def _number(row: Mapping[str, str], name: str, path: Path) -> float:
    value = plain_number(str(row[name]).strip())
    if not math.isfinite(value):
        raise DataError(
            "a cell of the answers cannot be read",
            where=f"{path}, column {name}",
            got=repr(row[name]),
            wanted="a number",
            fix="Take the file as it was published.",
        )
    return value

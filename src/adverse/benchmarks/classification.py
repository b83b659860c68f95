"""Scores of classifiers: top-k accuracy, and the mean corruption error against a reference."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError, IncompleteError
from adverse.plain_files import read_plain


def hits(ranked: Sequence[Sequence[str]], truth: Sequence[str], k: int) -> NDArray[np.bool_]:
    """Return for each image whether its class is among the best k.

    >>> hits([["cat", "dog"], ["car", "cat"]], ["cat", "cat"], 1).tolist()
    [True, False]
    """
    return np.array([name in best[:k] for best, name in zip(ranked, truth, strict=True)], np.bool_)


def mean_corruption_error(
    errors: Mapping[str, Sequence[float]], reference: Mapping[str, Sequence[float]]
) -> float:
    """Return mCE in percent: per corruption the errors over severities relative to the reference's, averaged.

    Hendrycks and Dietterich (2019), section 4.3, with AlexNet as their reference. Both sides must hold the
    same corruptions with equally many severities; what is missing is refused, never taken as 0.

    >>> mean_corruption_error({"fog": [0.25, 0.25]}, {"fog": [0.5, 0.5]})
    50.0
    """
    unlike = sorted(
        name
        for name in {*errors, *reference}
        if len(errors.get(name, ())) != len(reference.get(name, ())) or not len(errors.get(name, ()))
    )
    if unlike or not errors:
        raise IncompleteError(
            "the mean corruption error needs every corruption and severity on both sides",
            got=", ".join(
                f"{n}: {len(errors.get(n, ()))} and {len(reference.get(n, ()))}" for n in unlike[:5]
            ),
            wanted="the same corruptions with as many severities for the system and the reference",
            fix="Run the whole battery, and give the reference for all of it.",
        )
    shares = [sum(rates) / sum(reference[name]) for name, rates in errors.items()]
    return 100 * float(np.mean(shares))


def read_reference(path: Path) -> dict[str, list[float]]:
    """Read the errors of a reference: CSV with the columns corruption, severity and error."""
    try:
        rows = list(csv.DictReader(io.StringIO(read_plain(path).decode("utf-8-sig"), newline="")))
        errors = {(row["corruption"].strip(), int(row["severity"])): float(row["error"]) for row in rows}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            "the error rates of the reference cannot be read",
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            wanted="CSV with the columns corruption, severity and error (0 to 1)",
            fix="Write one line for each corruption and severity.",
        ) from error
    wrong = next((cell for cell, error in errors.items() if not 0 < error <= 1), None)
    if wrong is not None:
        raise DataError(
            "an error rate of the reference is not between 0 and 1",
            where=f"{path}, {wrong[0]}, severity {wrong[1]}",
            got=str(errors[wrong]),
            wanted="above 0, at most 1",
            fix="Give errors as shares: 0.43, not 43.",
        )
    by_name: dict[str, list[float]] = {}
    for (name, _), value in sorted(errors.items()):
        by_name.setdefault(name, []).append(value)
    return by_name


def corruption_errors(cells: Mapping[tuple[str, int], float]) -> dict[str, list[float]]:
    """Return the errors by corruption, in the order of severities, from accuracies."""
    by_name: dict[str, list[float]] = {}
    for (name, _), accuracy in sorted(cells.items()):
        by_name.setdefault(name, []).append(1 - accuracy)
    return by_name

"""Scores of classifiers: top-k accuracy, and the mean corruption error against a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from adverse.errors import IncompleteError


def hits(ranked: Sequence[Sequence[str]], truth: Sequence[str], k: int) -> NDArray[np.bool_]:
    """Tell for each image whether its class is among the best k.

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

    >>> mean_corruption_error({"fog": [0.2, 0.4]}, {"fog": [0.5, 0.7]})
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
    shares = [sum(found) / sum(reference[name]) for name, found in errors.items()]
    return 100 * float(np.mean(shares))

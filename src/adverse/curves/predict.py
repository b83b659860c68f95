"""Whether a contextual mutation can be predicted from a simple one (000, IV-B).

Defocus is blur that depends on depth, haze is blending that does. If what a SUT loses under blur tells what
it will lose under defocus, depth need not be known to test for it. Each contextual setting gets a model of
its own: the score is a sum, with weights >= 0, of the scores under the simple mutation's settings, all
relative to the SUT's baseline. The weights are fitted on all SUTs but one and tried on that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from adverse.curves.table import BASELINE, ScoreTable
from adverse.errors import DataError, suggestion

LEAST_SUTS = 3
"""One to predict and two to learn from."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Observed and predicted scores of one SUT relative to its baseline, one per contextual setting (C,).

    `r2` is 1 - (squared errors) / (squared deviations from this SUT's own mean) over all contextual
    settings: 1 is perfect, 0 no better than the mean, below 0 worse. `squared_correlation` forgives a wrong
    offset or scale. Both are None where the observed scores do not vary (and the second also where the
    predicted do not). `weights` (C, number of simple settings) were fitted without this SUT.
    """

    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    weights: NDArray[np.float64]
    r2: float | None
    squared_correlation: float | None


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions for every SUT, and the settings they are about."""

    simple: tuple[str, ...]
    contextual: tuple[str, ...]
    suts: Mapping[str, Prediction]

    def plain(self) -> dict[str, Any]:
        """Return everything as plain lists and numbers, for JSON."""
        return {
            "simple": list(self.simple),
            "contextual": list(self.contextual),
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
    sources, targets = _family(table, simple, "simple"), _family(table, contextual, "contextual")
    if len(table.suts) < LEAST_SUTS:
        raise DataError(
            "too few SUTs to leave one out",
            where=table.where,
            got=f"{len(table.suts)} SUTs",
            wanted=f"at least {LEAST_SUTS}: one to predict, the others to learn from",
            fix="Add columns for more SUTs.",
        )
    known, wanted = table.relative(sources), table.relative(targets)
    return Predictions(
        sources, targets, {sut: _left_out(known, wanted, index) for index, sut in enumerate(table.suts)}
    )


def _left_out(known: NDArray[np.float64], wanted: NDArray[np.float64], sut: int) -> Prediction:
    """Predict row `sut` of `wanted` (SUTs, C) from that of `known` (SUTs, P), learning from all others."""
    others = np.arange(len(known)) != sut
    weights = np.array([nnls(known[others], wanted[others, target])[0] for target in range(wanted.shape[1])])
    predicted = weights @ known[sut]
    observed = wanted[sut]
    deviation = observed - observed.mean()
    spread = float(deviation @ deviation)
    r2 = 1 - float(np.sum((observed - predicted) ** 2)) / spread if spread > 0 else None
    return Prediction(observed, predicted, weights, r2, _squared_correlation(deviation, predicted))


def _squared_correlation(deviation: NDArray[np.float64], predicted: NDArray[np.float64]) -> float | None:
    other = predicted - predicted.mean()
    scale = float(deviation @ deviation) * float(other @ other)
    return float(deviation @ other) ** 2 / scale if scale > 0 else None


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

"""How well the ADR under contextual mutations is predicted from that under simple ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adverse.curves.predict import BASELINE, LEAST_SUTS, ScoreTable, family_of, predict_contextual
from adverse.store.run import Run

PREDICTED = (("gaussian_blur", "sigma_px", "defocus"), ("alpha_blend", "alpha", "haze"))
"""A simple mutation, the option that is its strength, and the contextual one that is predicted from it."""


def run_scores(run: Run, adr: Sequence[Mapping[str, Any]]) -> ScoreTable:
    """Return the ADR of a run as a table that predictions can be made from.

    Left out are SUTs that detect nobody on un-mutated images, of which nothing is a share, settings of more
    than one mutation, and settings of which the data say nothing.
    """
    values = {(row["setting"], row["sut"]): row["adr"] for row in adr}
    suts = tuple(sut.name for sut in run.suts if values.get((run.baseline.id, sut.name)))
    alone = [setting.id for setting in run.mutations if len(setting.steps) == 1]
    known = [
        setting
        for setting in (run.baseline.id, *alone)
        if all(values.get((setting, sut)) is not None for sut in suts)
    ]
    scores = np.array([[values[setting, sut] for sut in suts] for setting in known], np.float64)
    return ScoreTable(
        (BASELINE, *known[1:]), suts, scores.reshape(len(known), len(suts)), where="ADR of the run"
    )


def predictions(run: Run, adr: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return three tables, empty where nothing can be predicted.

    `predictions`: how well it went for each SUT; `predicted`: what was observed and predicted of each
    contextual setting, relative to the baseline; `prediction_weights`: what each simple setting contributes,
    fitted on all SUTs.
    """
    table = run_scores(run, adr)
    fits: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    weights: list[dict[str, Any]] = []
    for simple, option, contextual in PREDICTED:
        if len(table.suts) < LEAST_SUTS or not {simple, contextual} <= set(map(family_of, table.settings)):
            continue
        found = predict_contextual(table, simple=simple, contextual=contextual)
        heads = {"simple": simple, "contextual": contextual}
        for sut, fit in found.suts.items():
            fits.append({"sut": sut, **heads, "r2": fit.r2, "squared_correlation": fit.squared_correlation})
            points += [
                {"sut": sut, **heads, "setting": setting, "observed": observed, "predicted": predicted}
                for setting, observed, predicted in zip(
                    found.contextual, fit.observed.tolist(), fit.predicted.tolist(), strict=True
                )
            ]
        strengths = _strengths(run, simple, option)
        weights += [
            {**heads, "setting": setting, "from": source, "strength": strengths[source], "weight": weight}
            for setting, row in zip(found.contextual, found.weights.tolist(), strict=True)
            for source, weight in zip(found.simple, row, strict=True)
        ]
    return {"predictions": fits, "predicted": points, "prediction_weights": weights}


def _strengths(run: Run, simple: str, option: str) -> dict[str, float]:
    """Return the strength of each simple setting; the baseline has none of it."""
    mine = {setting.id: setting.steps[0] for setting in run.mutations if setting.steps[0].mutation == simple}
    return {BASELINE: 0.0, **{name: float(step.options[option]) for name, step in mine.items()}}

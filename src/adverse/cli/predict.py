"""predict: how well a contextual mutation follows from a simple one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import Console
from adverse.cli.options import Json

ScoresPath = Annotated[
    Path,
    typer.Argument(help="CSV: first column the setting's id, one column per SUT, a row called baseline."),
]
Simple = Annotated[str, typer.Option(help="The mutation to predict from, as in gaussian_blur.")]
Contextual = Annotated[str, typer.Option(help="The mutation to predict, as in defocus.")]


def predict(table: ScoresPath, simple: Simple, contextual: Contextual, as_json: Json = False) -> None:  # noqa: FBT002
    """Predict scores under a contextual mutation from those under a simple one, leaving one SUT out.

    R2 says how much of a SUT's fall over the contextual settings was foreseen: 1 all, 0 or less nothing.

    \b
    Example:
        adverse predict scores.csv --simple gaussian_blur --contextual defocus
    """
    from adverse.curves.predict import predict_contextual, read_table
    from adverse.report.run_tables import prediction_table

    prediction = predict_contextual(read_table(table), simple=simple, contextual=contextual)
    if as_json:
        typer.echo(json.dumps(prediction.plain(), indent=1))
        return
    counts = {name: len(getattr(prediction, name)) for name in ("contextual", "simple")}
    title = f"{contextual} ({counts['contextual']} settings) from {simple} ({counts['simple']} settings)"
    Console().print(prediction_table(prediction, f"predict {contextual}", title).terminal())

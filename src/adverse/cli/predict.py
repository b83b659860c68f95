"""predict: how well a contextual mutation follows from a simple one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import say

Table = Annotated[
    Path,
    typer.Argument(help="CSV: first column the setting's id, one column per SUT, a row called baseline."),
]
Simple = Annotated[str, typer.Option(help="The mutation to predict from, as in gaussian_blur.")]
Contextual = Annotated[str, typer.Option(help="The mutation to predict, as in defocus.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def predict(table: Table, simple: Simple, contextual: Contextual, as_json: Json = False) -> None:  # noqa: FBT002
    """Predict scores under a contextual mutation from those under a simple one, leaving one SUT out.

    R2 says how much of a SUT's fall over the contextual settings was foreseen: 1 all, 0 or less nothing.

    \b
    Example:
        adverse predict scores.csv --simple gaussian_blur --contextual defocus
    """
    from adverse.curves.predict import predict_contextual, read_table

    found = predict_contextual(read_table(table), simple=simple, contextual=contextual)
    if as_json:
        typer.echo(json.dumps(found.plain(), indent=1))
        return
    say(f"{contextual} ({len(found.contextual)} settings) from {simple} ({len(found.simple)} settings)")
    width = max(len(sut) for sut in found.suts)
    say(f"{'SUT':{width}}      R2  squared correlation")
    for sut, one in found.suts.items():
        say(f"{sut:{width}}  {_figure(one.r2)}  {_figure(one.squared_correlation)}")


def _figure(value: float | None) -> str:
    return f"{'-':>6}" if value is None else f"{value:6.3f}"

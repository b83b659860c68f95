"""report: the page that people look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunPath = Annotated[Path, typer.Argument(help="A finished run folder.")]


def report(folder: RunPath) -> None:
    """Write the report of a run: one HTML file that opens from disk, its tables beside it as CSV and JSON.

    \b
    Example:
        adverse report runs/orchard
    """
    from adverse.report.page import write_report

    typer.echo(f"report: {write_report(folder)}")

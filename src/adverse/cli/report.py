"""report: the page that people look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunPath = Annotated[Path, typer.Argument(help="A finished run folder.")]


def report(folder: RunPath) -> None:
    """Write the report of a run: one HTML file that opens from disk, its tables beside it as CSV and JSON.

    \b
    Examples:
        adverse report runs/orchard
        adverse report runs/orchard-requirements     the page of a requirements check
    """
    from adverse.reliability.written import is_check
    from adverse.report.page import write_report
    from adverse.report.requirements_page import write_requirements_page

    write = write_requirements_page if is_check(folder) else write_report
    typer.echo(f"report: {write(folder)}")

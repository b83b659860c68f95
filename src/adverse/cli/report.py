"""report: the page that people look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import say

RunPath = Annotated[Path, typer.Argument(help="A finished run folder.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the plug-ins that the run's study names, to show frames.")
]


def _note(words: str) -> None:
    say(f"note: {words}", err=True)


def report(folder: RunPath, trust: Trust = False) -> None:  # noqa: FBT002
    """Write the report of a run: one HTML file that opens from disk, its tables beside it as CSV and JSON.

    \b
    Examples:
        adverse report runs/orchard
        adverse report runs/orchard-requirements     the page of a requirements check

    A run that is not finished, or whose files changed, has no report. Plug-ins named by the run are not run
    without --trust; frames and mutations that need them are then not pictured.
    """
    from adverse.report.page import write_report
    from adverse.report.requirements import write_requirements_page
    from adverse.requirements.results import is_check

    if is_check(folder):
        typer.echo(f"report: {write_requirements_page(folder)}")
    else:
        typer.echo(f"report: {write_report(folder, trust=trust, tell=_note)}")

"""compare: two runs, paired log by log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from adverse.cli.console import Console
from adverse.errors import EXIT_GATE_FAILED, EXIT_PASS, StudyError

First = Annotated[Path, typer.Argument(help="The run before the change.")]
Second = Annotated[Path, typer.Argument(help="The run after it.")]
Suts = Annotated[
    list[str] | None,
    typer.Option("--sut", help="BEFORE=AFTER: SUTs that belong together. [default: those of equal names]"),
]
Correction = Annotated[
    Literal["holm", "none"],
    typer.Option(help="holm: at most 5 % chance of any false claim; none: each comparison stands alone."),
]
HtmlPath = Annotated[
    Path | None, typer.Option("--html", help="Also write a page: one file, opens from disk.")
]
CsvPath = Annotated[Path | None, typer.Option("--csv", help="Also write every difference as CSV.")]
JsonPath = Annotated[Path | None, typer.Option("--json", help="Also write every difference as JSON.")]
Fail = Annotated[bool, typer.Option("--fail-on-regression", help="Exit with 1 if anything got worse.")]


def compare(
    first: First,
    second: Second,
    sut: Suts = None,
    correction: Correction = "holm",
    html: HtmlPath = None,
    csv: CsvPath = None,
    json: JsonPath = None,
    fail_on_regression: Fail = False,  # noqa: FBT002
) -> None:
    """Compare two runs over the same logs: what got worse, what is inconclusive, what got better.

    \b
    Examples:
        adverse compare runs/before runs/after
        adverse compare runs/before runs/after --html compare.html --fail-on-regression
        adverse compare runs/orchard runs/orchard --sut anchor=centre

    Both runs must have judged the same images in the same way; what only one of them has is named and left
    out. Exit code 0; with --fail-on-regression 1 if a regression is certain.
    """
    from adverse.analysis.compare import compare as work_out
    from adverse.report.comparison import (
        comparison_lines,
        comparison_table,
        comparison_tables,
        render_comparison,
    )
    from adverse.store.durable import write_file

    comparison = work_out(first, second, suts=_pairs(sut or []), correction=correction)
    console = Console()
    for line in comparison_lines(comparison):
        console.say(line)
    for table in comparison_tables(comparison):
        console.print(table.terminal(details=True))
    whole = comparison_table(comparison)
    for path, text in ((csv, whole.csv), (json, whole.json), (html, lambda: render_comparison(comparison))):
        if path is not None:
            write_file(path, text().encode())
            console.say(f"written: {path}")
    worse = fail_on_regression and comparison.of("regression")
    raise typer.Exit(EXIT_GATE_FAILED if worse else EXIT_PASS)


def _pairs(options: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in options:
        before, sign, after = text.partition("=")
        if not (before and sign and after) or before in pairs:
            raise StudyError(
                "a pair of SUTs cannot be read",
                where="--sut",
                got=text,
                wanted="BEFORE=AFTER, each BEFORE once",
                fix="Write for example --sut old=new.",
            )
        pairs[before] = after
    return pairs

"""check: hold a run to requirements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import Console
from adverse.cli.options import FinishedRun

Rules = Annotated[Path, typer.Argument(help="The requirements (YAML), see docs/gate.md.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML, for CI.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", help="Also write a Markdown summary, for a pull request.")
]
JsonPath = Annotated[Path | None, typer.Option("--json", help="Also write the verdicts as JSON.")]
Save = Annotated[bool, typer.Option("--save", help="Keep the verdicts in the run, for its report to show.")]


def check(
    folder: FinishedRun,
    requirements: Rules,
    junit: Junit = None,
    markdown: Markdown = None,
    json: JsonPath = None,
    save: Save = False,  # noqa: FBT002
) -> None:
    """Hold a run to requirements and print a verdict on each: PASS, FAIL or INCONCLUSIVE.

    \b
    Examples:
        adverse check runs/orchard requirements.yaml
        adverse check runs/orchard requirements.yaml --junit gate.xml --markdown gate.md

    A figure without an interval, or one that the data cannot answer, never passes: it is INCONCLUSIVE.
    Exit codes: 0 all pass, 1 something fails, 3 nothing fails but something is inconclusive.
    """
    from adverse.report.verdicts import to_markdown, verdict_lines, verdict_table
    from adverse.requirements.gate import OWN
    from adverse.requirements.gate import check as work_out
    from adverse.requirements.verdicts import exit_code, to_json, to_junit, write_verdicts
    from adverse.store.durable import write_file
    from adverse.store.finished import finished

    store = finished(folder)
    verdicts = work_out(store, requirements)
    console = Console()
    table = verdict_table(requirements.name, verdicts).only("verdict", "requirement", "measured", "why")
    table = table.stacked("requirement", "requirement", "why")
    console.print(table.terminal(details=True, ruled=True))
    for line in verdict_lines(verdicts):
        console.say(line)
    title = f"adverse check {folder.name}"
    texts = (
        (junit, to_junit(verdicts, suite=title)),
        (markdown, to_markdown(verdicts, title=title)),
        (json, to_json(verdicts)),
    )
    for path, text in texts:
        if path is not None:
            write_file(path, text.encode())
    if save:
        write_verdicts(store, OWN, verdicts)
    raise typer.Exit(exit_code(verdicts))

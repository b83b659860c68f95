"""check: hold a run to requirements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import Console
from adverse.cli.report import Trust
from adverse.cli.runs import trusted_plugins

RunPath = Annotated[Path, typer.Argument(help="A finished run folder.")]
Rules = Annotated[Path, typer.Argument(help="The requirements (YAML), see docs/gate.md.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML, for CI.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", help="Also write a Markdown summary, for a pull request.")
]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the verdicts as JSON.")]
Save = Annotated[bool, typer.Option("--save", help="Keep the verdicts in the run, for its report to show.")]


def check(
    folder: RunPath,
    requirements: Rules,
    junit: Junit = None,
    markdown: Markdown = None,
    json: Json = None,
    save: Save = False,  # noqa: FBT002
    trust: Trust = False,  # noqa: FBT002
) -> None:
    """Hold a run to requirements and print a verdict on each: PASS, FAIL or INCONCLUSIVE.

    \b
    Examples:
        adverse check runs/orchard requirements.yaml
        adverse check runs/orchard requirements.yaml --junit gate.xml --markdown gate.md

    A figure without an interval, or one that the data cannot answer, never passes: it is INCONCLUSIVE.
    Exit codes: 0 all pass, 1 something fails, 3 nothing fails but something is inconclusive.
    """
    from adverse.report.gate import verdict_lines, verdict_table
    from adverse.requirements import verdicts as written
    from adverse.requirements.gate import OWN
    from adverse.requirements.gate import check as work_out
    from adverse.requirements.verdicts import write_verdicts
    from adverse.store.durable import write_file
    from adverse.store.finished import finished

    store = finished(folder)
    found = work_out(store, requirements, registry=trusted_plugins(folder) if trust else None)
    console = Console()
    console.print(verdict_table(found))
    for line in verdict_lines(found):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    title = f"adverse check {folder.name}"
    texts = (
        (junit, written.to_junit(found, suite=title)),
        (markdown, written.to_markdown(found, title=title)),
        (json, written.to_json(found)),
    )
    for path, text in texts:
        if path is not None:
            write_file(path, text.encode())
    if save:
        write_verdicts(store, OWN, found)
    raise typer.Exit(written.exit_code(found))

"""check: hold a run to rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import Console
from adverse.cli.options import FinishedRun, Trust, trusted_plugins

RulesPath = Annotated[Path, typer.Argument(help="The rules (YAML), see docs/gate.md.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML, for CI.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", help="Also write a Markdown summary, for a pull request.")
]
JsonPath = Annotated[Path | None, typer.Option("--json", help="Also write the verdicts as JSON.")]
Save = Annotated[bool, typer.Option("--save", help="Keep the verdicts in the run, for its report to show.")]


def check(
    folder: FinishedRun,
    rules: RulesPath,
    junit: Junit = None,
    markdown: Markdown = None,
    json: JsonPath = None,
    save: Save = False,  # noqa: FBT002
    trust: Trust = False,  # noqa: FBT002
) -> None:
    """Hold a run to rules and print a verdict on each: PASS, FAIL or INCONCLUSIVE.

    \b
    Examples:
        adverse check runs/orchard rules.yaml
        adverse check runs/orchard rules.yaml --junit gate.xml --markdown gate.md

    A figure without an interval, or one the data does not support, never passes: it is INCONCLUSIVE.
    What people tolerate is another file: see adverse requirements check.
    Exit codes: 0 all pass, 1 something fails, 3 nothing fails but something is inconclusive.
    """
    from adverse.report.verdicts import to_markdown, verdict_lines, verdict_table
    from adverse.requirements.gate import RULES, check_run
    from adverse.requirements.verdicts import exit_code, to_json, to_junit, write_verdicts
    from adverse.store.durable import write_file
    from adverse.store.read import finished

    store = finished(folder)
    verdicts = check_run(store, rules, registry=trusted_plugins(folder) if trust else None)
    console = Console()
    table = verdict_table(RULES, verdicts).only("verdict", "rule", "measured", "why")
    table = table.stacked("rule", "rule", "why")
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
        write_verdicts(store, RULES, verdicts)
    raise typer.Exit(exit_code(verdicts))

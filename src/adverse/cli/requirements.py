"""requirements: hold SUTs to what people tolerate."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import Console, ProgressWatcher
from adverse.cli.options import Fresh, Workers
from adverse.cli.runs import interrupts
from adverse.errors import EXIT_INTERRUPTED

requirements = typer.Typer(
    help="Reliability requirements: a change that people tolerate must not affect the system.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
FilePath = Annotated[
    Path, typer.Argument(metavar="FILE", help="A requirements file, or a study with requirements: in it.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The run folder. [default: runs/NAME-requirements beside the study]"),
]


@requirements.callback()
def _main() -> None:
    pass


@requirements.command("check")
def check(file: FilePath, out: Out = None, workers: Workers = None, fresh: Fresh = False) -> None:  # noqa: FBT002
    """Run the SUTs on images changed as far as people tolerate, and judge whether they keep up.

    \b
    Examples:
        adverse requirements check requirements.yaml
        adverse requirements check study.yaml --out runs/reliability --workers 4

    Prints the reliability distance (required less measured, 0 or less is good) of every requirement and SUT
    with its bounds and a verdict, and writes them with a page into the folder. Work
    that is already done is not repeated. docs/requirements.md shows how to write requirements and explains
    the verdicts.

    Exit codes: 0 all pass, 1 something fails, 3 nothing fails but something is inconclusive.
    """
    from adverse.processes import all_cores
    from adverse.report.requirements import requirement_lines, requirement_tables, write_requirements_page
    from adverse.requirements.file import read_requirements
    from adverse.requirements.results import as_data, as_verdict, save
    from adverse.requirements.run import run_check
    from adverse.requirements.verdicts import exit_code
    from adverse.study.engines import Engine, Stop
    from adverse.study.engines.local import InlineEngine, LocalEngine

    requirements_file = read_requirements(file)
    folder = (
        out or requirements_file.study.folder / "runs" / f"{requirements_file.study.study.name}-requirements"
    )
    console = Console()
    watch, stop = ProgressWatcher(console), Stop()
    count = all_cores() if workers is None else workers
    engine: Engine = LocalEngine(count, folder / "logs") if count else InlineEngine()
    checked = None
    with contextlib.suppress(KeyboardInterrupt), interrupts(stop):
        checked = run_check(requirements_file, folder, engine, watch=watch, stop=stop, fresh=fresh)
    if checked is None:
        watch.note(f"stopped; finished work is kept in {folder}. Run the same command to continue.")
        raise typer.Exit(EXIT_INTERRUPTED)
    data = as_data(checked)
    for table in requirement_tables(data):
        console.print(table.terminal(details=True))
    for line in requirement_lines(data):
        console.say(f"- {line}")
    for name, path in zip(("results", "verdicts"), save(checked), strict=True):
        console.say(f"{name + ':':10}{path}")
    page = write_requirements_page(folder)
    console.say(f"{'page:':10}{page}")
    raise typer.Exit(exit_code(as_verdict(result) for result in checked.results))

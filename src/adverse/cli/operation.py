"""operate, limits, margins: at which threshold and in which conditions a system may be operated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from adverse.cli.console import Console, ProgressWatcher
from adverse.cli.options import FinishedRun, Fresh, Json, Quiet, Workers
from adverse.cli.plan import StudyPath
from adverse.cli.runs import interrupts
from adverse.errors import EXIT_GATE_FAILED, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_PASS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adverse.study.spec import StudyFile

Found = TypeVar("Found")
RulesPath = Annotated[
    Path, typer.Argument(metavar="RULES", help="Rules on violations or stops_in_time; docs/operation.md.")
]
HtmlPath = Annotated[Path | None, typer.Option("--html", help="Also write an HTML page.")]
CsvPath = Annotated[
    Path | None, typer.Option("--csv", help="Also write every threshold of a condition as CSV.")
]
JsonPath = Annotated[Path | None, typer.Option("--json", help="Also write everything as JSON.")]
Tables = Annotated[bool, typer.Option("--tables", help="Also print the threshold of every condition.")]
SUTS_ABREAST = 3
Seed = Annotated[
    int | None, typer.Option("--seed", help="Which logs choose and which check. [default: the run's seed]")
]


Speeds = Annotated[
    list[float] | None, typer.Option("--speed", help="A top speed to try, in m/s; repeatable.")
]
Radii = Annotated[
    list[float] | None, typer.Option("--control-radius", help="A control radius to try, in m; repeatable.")
]
Confirms = Annotated[
    list[int] | None,
    typer.Option("--confirm", help="Images in a row that must show something; repeatable."),
]


def operate(
    folder: FinishedRun,
    rules: RulesPath,
    speed: Speeds = None,
    control_radius: Radii = None,
    confirm: Confirms = None,
    html: HtmlPath = None,
    csv: CsvPath = None,
    json: JsonPath = None,
    tables: Tables = False,  # noqa: FBT002
    seed: Seed = None,
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Choose the threshold of each SUT: as efficient as possible, with rules of the closed loop kept.

    \b
    Examples:
        adverse operate runs/orchard rules.yaml
        adverse operate runs/orchard rules.yaml --html operate.html --json operate.json
        adverse operate runs/orchard rules.yaml --speed 2 --speed 3 --confirm 1 --confirm 2

    One half of the logs chooses the threshold, the other half checks it. Shown beside it: what the present
    threshold comes to, the threshold of each condition alone (--tables, --html), and how many more logs would
    settle what is not certain. With --speed, --control-radius and --confirm, other ways to drive are tried
    beside the study's own, and the Pareto set of safety and efficiency is shown.
    Exit codes: 0 every SUT's threshold passes, 1 the rules of one cannot be kept, 3 not certain yet.
    """
    import json as json_format

    from adverse.report.operating_point import (
        condition_table,
        in_terminal,
        operating_lines,
        render_operating_points,
        whole_table,
    )
    from adverse.requirements.operating_point import operating_points
    from adverse.requirements.verdicts import Outcome
    from adverse.store.durable import write_file
    from adverse.store.finished_run import finished

    found = operating_points(
        finished(folder),
        rules,
        seed=seed,
        speeds_mps=speed or (),
        radii_m=control_radius or (),
        confirms=confirm or (),
    )
    console = Console(quiet=quiet)
    console.print(in_terminal(found).terminal(details=True))
    for point in found.points if tables else ():
        console.print(condition_table(found, point).terminal(details=True))
    for line in operating_lines(found):
        console.say(f"- {line}")
    texts: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (html, lambda: render_operating_points(found)),
        (csv, lambda: whole_table(found).csv()),
        (json, lambda: json_format.dumps(found.plain(), indent=1, allow_nan=False) + "\n"),
    )
    for path, text in texts:
        if path is not None:
            write_file(path, text().encode())
            console.say(f"written: {path}")
    outcomes = {point.chosen.outcome for point in found.points}
    if Outcome.FAIL in outcomes:
        raise typer.Exit(EXIT_GATE_FAILED)
    raise typer.Exit(EXIT_PASS if outcomes == {Outcome.PASS} else EXIT_INCOMPLETE)


LimitsFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The folder of the runs. [default: runs/NAME-limits beside the study]"),
]


def limits(
    study: StudyPath,
    out: LimitsFolder = None,
    workers: Workers = None,
    fresh: Fresh = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Search the strongest conditions at which rules still hold: the domain to operate in.

    \b
    Examples:
        adverse limits study.yaml
        adverse limits study.yaml --out runs/limits --workers 4
        adverse limits study.yaml --json

    The study's limits: section names rules and conditions. Each condition is searched by halving, all frames
    at each strength: at most 5 strengths where 12 would be swept. What is not monotone is swept. Writes
    limits.html, limits.csv and limits.json, and a run folder for each SUT; finished work is not repeated.
    """
    from adverse.report.limits import (
        boundary_table,
        domain_table,
        limit_lines,
        render_limits,
        together_table,
        whole_table,
    )
    from adverse.requirements.limits_run import search_limits
    from adverse.store.durable import write_file
    from adverse.study.spec import read_study

    file = read_study(study)
    folder = out or file.folder / "runs" / f"{file.study.name}-limits"
    console = Console(quiet=quiet or as_json)
    found = _searched(search_limits, file, folder, workers, console, fresh=fresh)
    for rule in found.rules:
        for table in domain_table(found, rule).abreast(SUTS_ABREAST):
            console.print(table.terminal(details=True))
    for one in {(id(one.pair), id(one.rule)): one for one in found.boundaries}.values():
        for table in boundary_table(found, one.pair, one.rule).abreast(SUTS_ABREAST):
            console.print(table.terminal())
    for line in limit_lines(found):
        console.say(f"- {line}")
    whole = whole_table(found)
    if found.boundaries:
        write_file(folder / "limits-together.csv", together_table(found).csv().encode())
    texts = {"html": render_limits(found), "csv": whole.csv(), "json": whole.json() + "\n"}
    _written(texts, folder, "limits", console, as_json=as_json)


MarginsFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The folder of the runs. [default: runs/NAME-margins beside the study]"),
]


def margins(
    study: StudyPath,
    out: MarginsFolder = None,
    workers: Workers = None,
    fresh: Fresh = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Find how far each annotated person is from being lost: the weakest strength at which they are.

    \b
    Examples:
        adverse margins study.yaml
        adverse margins study.yaml --out runs/margins --workers 4
        adverse margins study.yaml --json

    The study's margins: section names conditions and the method; without it, all mutations that have a
    strength are ascended, frame by frame, until everybody in the frame is lost. Writes margins.html,
    margins.csv and margins.json, and a run folder for each SUT; finished work is not repeated.
    """
    from adverse.report.margins import (
        margin_lines,
        margins_json,
        margins_table,
        people_table,
        render_margins,
    )
    from adverse.requirements.margins_run import search_margins
    from adverse.study.spec import read_study

    file = read_study(study)
    folder = out or file.folder / "runs" / f"{file.study.name}-margins"
    console = Console(quiet=quiet or as_json)
    found = _searched(search_margins, file, folder, workers, console, fresh=fresh)
    console.print(margins_table(found).terminal(details=True))
    for line in margin_lines(found):
        console.say(f"- {line}")
    texts = {
        "html": render_margins(found),
        "csv": people_table(found).csv(),
        "json": margins_json(found),
    }
    _written(texts, folder, "margins", console, as_json=as_json)


def _written(texts: Mapping[str, str], folder: Path, stem: str, console: Console, *, as_json: bool) -> None:
    """Write what a search found in every format and say where; with `as_json` print the JSON instead."""
    from adverse.store.durable import write_file

    for name, text in texts.items():
        write_file(folder / f"{stem}.{name}", text.encode())
        console.say(f"{name + ':':6}{folder / f'{stem}.{name}'}")
    if as_json:
        typer.echo(texts["json"], nl=False)


def _searched(
    search: Callable[..., Found | None],
    file: StudyFile,
    folder: Path,
    workers: int | None,
    console: Console,
    *,
    fresh: bool,
) -> Found:
    """Search limits or margins with progress; an interruption ends the command."""
    import contextlib

    from adverse.processes import all_cores
    from adverse.study.engines import Engine, Stop
    from adverse.study.engines.local import InlineEngine, LocalEngine

    watch, stop = ProgressWatcher(console), Stop()
    count = all_cores() if workers is None else workers

    def engine(logs: Path) -> Engine:
        return LocalEngine(count, logs) if count else InlineEngine()

    found = None
    with contextlib.suppress(KeyboardInterrupt), interrupts(stop):
        found = search(file, folder, engine, watch=watch, stop=stop, fresh=fresh)
    if found is None:
        watch.note(f"stopped; finished work is kept in {folder}. Run the same command to resume.")
        raise typer.Exit(EXIT_INTERRUPTED)
    return found

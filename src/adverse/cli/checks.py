"""check, compare, history, requirements check: runs held to rules, to others, to what people tolerate."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from adverse.cli.console import Console, ProgressWatcher
from adverse.cli.engines import EngineName, Scheduler, open_engine
from adverse.cli.options import (
    FinishedRun,
    Fresh,
    Json,
    Quiet,
    Trust,
    Workers,
    at_hand,
    each_at_hand,
    trusted_plugins,
)
from adverse.cli.runs import interrupts
from adverse.cli.sealing import say_remade, say_stale
from adverse.errors import EXIT_GATE_FAILED, EXIT_INTERRUPTED, EXIT_PASS, StudyError

if TYPE_CHECKING:
    from adverse.requirements.verdicts import Verdict

RulesPath = Annotated[Path, typer.Argument(metavar="RULES", help="The rules (YAML); see docs/gate.md.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML, for CI.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", help="Also write a Markdown summary, for a pull request.")
]
JsonPath = Annotated[Path | None, typer.Option("--json", help="Also write the verdicts as JSON.")]
EveryVerdict = Annotated[
    bool, typer.Option("--tables", help="Print the verdict under every mutation, not only what decides.")
]
Details = Annotated[
    bool,
    typer.Option("--details", help="Say of every verdict what was required and why, also where it passes."),
]
MOST_LINES = 30
"""What a check ends with in a terminal, in all."""
Save = Annotated[bool, typer.Option("--save", help="Save the verdicts in the run, for its report.")]


def check(
    folder: FinishedRun,
    rules: RulesPath,
    junit: Junit = None,
    markdown: Markdown = None,
    json: JsonPath = None,
    save: Save = False,  # noqa: FBT002
    trust: Trust = False,  # noqa: FBT002
    every: EveryVerdict = False,  # noqa: FBT002
    details: Details = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Check a run or fuzz campaign against rules: PASS, FAIL or INCONCLUSIVE.

    \b
    Examples:
        adverse check runs/orchard rules.yaml
        adverse check runs/orchard rules.yaml --junit gate.xml --markdown gate.md
        adverse check runs/street-replay suite.yaml --junit gate.xml

    A figure without an interval, or one the data does not support, never passes: it is INCONCLUSIVE.
    For requirements based on what people tolerate, see adverse requirements check.
    Exit codes: 0 all pass, 1 something fails, 3 nothing fails but something is inconclusive.
    """
    from adverse.analysis.stopped import opened
    from adverse.fuzz.folder import is_campaign
    from adverse.report.verdicts import briefly, terminal_lines, to_markdown, verdict_lines
    from adverse.requirements.gate import check_rules, save_verdicts
    from adverse.requirements.verdicts import exit_code, to_json, to_junit
    from adverse.store.durable import write_file

    store = None
    notes: list[str] = []
    if is_campaign(folder):
        shown = verdicts = _suite_verdicts(folder, rules, save=save)
    else:
        store = opened(folder, rewrites=("verdicts/rules.",) if save else (), selected=("margins",))
        checked = check_rules(store, rules, registry=trusted_plugins(folder) if trust else None)
        verdicts = [verdict for rule in checked for verdict in rule.verdicts]
        shown, notes = (verdicts, []) if every else briefly([rule.folded for rule in checked])
    console = Console(quiet=quiet)
    if len(shown) < len(verdicts):
        notes.append(f"{len(verdicts)} verdicts in all; --tables prints each.")
    below = [*verdict_lines(shown), *notes]
    room = MOST_LINES - save - sum(-(-len(line) // console.width) for line in below)
    most = None if every or details else max(room, 1)
    for line in (*terminal_lines(shown, width=console.width, details=details, most=most), *below):
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
    if store is not None and save:
        say_remade(store)
        if save_verdicts(store, rules, verdicts) and (folder / "report.html").exists():
            console.say(f"The report is older than these: adverse report {folder}")
        say_stale(folder)
    raise typer.Exit(exit_code(verdicts))


def _suite_verdicts(folder: Path, rules: Path, *, save: bool) -> list[Verdict]:
    from adverse.requirements.suite_rules import check_suite

    if save:
        raise StudyError("verdicts on a campaign are not saved in it", where="--save", fix="Use --json FILE.")
    return check_suite(folder, rules)


First = Annotated[Path, typer.Argument(metavar="BEFORE", help="The run before the change.", callback=at_hand)]
Second = Annotated[Path, typer.Argument(metavar="AFTER", help="The run after it.", callback=at_hand)]
Suts = Annotated[
    list[str] | None,
    typer.Option("--sut", help="BEFORE=AFTER: SUTs to compare; repeatable. [default: equal names]"),
]
Correction = Annotated[
    Literal["holm", "none"],
    typer.Option(help="holm: 5 % chance of any false claim at most; none: each comparison alone."),
]
HtmlPath = Annotated[Path | None, typer.Option("--html", help="Also write an HTML page.")]
DifferencesCsv = Annotated[Path | None, typer.Option("--csv", help="Also write every difference as CSV.")]
DifferencesJson = Annotated[Path | None, typer.Option("--json", help="Also write every difference as JSON.")]
Fail = Annotated[bool, typer.Option("--fail-on-regression", help="Exit with 1 if a regression is certain.")]


def compare(
    first: First,
    second: Second,
    sut: Suts = None,
    correction: Correction = "holm",
    html: HtmlPath = None,
    csv: DifferencesCsv = None,
    json: DifferencesJson = None,
    fail_on_regression: Fail = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Compare two runs on the same logs, or two fuzz campaigns on the same tests: regressions first.

    \b
    Examples:
        adverse compare runs/before runs/after
        adverse compare runs/street-fuzz runs/street-replay
        adverse compare runs/before runs/after --fail-on-regression
        adverse compare runs/orchard runs/orchard --sut anchor=centre

    Both runs must hold the same images, evaluated in the same way; what only one of them has is named and
    left out. Exit code 0; with --fail-on-regression 1 if a regression is certain.
    """
    from adverse.fuzz.folder import is_campaign

    if is_campaign(first) or is_campaign(second):
        _compare_campaigns(first, second, sut, html, csv, json, fail=fail_on_regression, quiet=quiet)
    from adverse.analysis.compare import compare as work_out
    from adverse.report.comparison import (
        comparison_lines,
        comparison_table,
        headline,
        render_comparison,
        terminal_table,
    )
    from adverse.store.durable import write_file

    comparison = work_out(first, second, suts=_pairs(sut or []), correction=correction)
    console = Console(quiet=quiet)
    console.say(headline(comparison))
    table = terminal_table(comparison)
    if table is not None:
        console.print(table.terminal(details=True))
    for line in comparison_lines(comparison):
        console.say(line)
    whole = comparison_table(comparison)
    for path, text in ((csv, whole.csv), (json, whole.json), (html, lambda: render_comparison(comparison))):
        if path is not None:
            write_file(path, text().encode())
            console.say(f"written: {path}")
    worse = fail_on_regression and comparison.worse
    raise typer.Exit(EXIT_GATE_FAILED if worse else EXIT_PASS)


def _compare_campaigns(
    first: Path,
    second: Path,
    sut: list[str] | None,
    html: Path | None,
    csv: Path | None,
    json: Path | None,
    *,
    fail: bool,
    quiet: bool,
) -> NoReturn:
    from adverse.fuzz.outcome import read_outcome
    from adverse.fuzz.regression import WORSE, compare_suites, not_compared
    from adverse.fuzz.verify import open_campaign
    from adverse.report.suites import (
        changes_in_terminal,
        changes_table,
        suite_headline,
        suites_page,
        suites_table,
    )
    from adverse.store.durable import write_file

    folders = [open_campaign(path) for path in (first, second)]
    outcomes = [read_outcome(folder) for folder in folders]
    comparisons = compare_suites(*outcomes, suts=_pairs(sut or []))
    left_out = not_compared(outcomes[0], outcomes[1], comparisons)
    console = Console(quiet=quiet)
    console.say(suite_headline(comparisons, left_out))
    console.print(suites_table(comparisons).terminal(details=True))
    changes = changes_in_terminal(comparisons)
    if changes.rows:
        console.print(changes.terminal())
    whole = changes_table(comparisons)
    page = (html, lambda: suites_page(comparisons, folders[1], left_out))
    for path, text in ((csv, whole.csv), (json, whole.json), page):
        if path is not None:
            write_file(path, text().encode())
            console.say(f"written: {path}")
    worse = fail and any(comparison.of(*WORSE) for comparison in comparisons)
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


Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", help="The folders of finished runs.", callback=each_at_hand),
]
MeasureName = Annotated[
    str | None,
    typer.Option("--measure", help="A measure of docs/gate.md. [default: what the report begins with]"),
]
LevelName = Annotated[str | None, typer.Option("--level", help="The level, for measures that have one.")]
SettingName = Annotated[
    str | None, typer.Option("--setting", help="clean, worst mild case, worst case or the id of a mutation.")
]
SutNames = Annotated[list[str] | None, typer.Option("--sut", help="Only this SUT; repeatable.")]


def history(
    folders: Runs,
    measure: MeasureName = None,
    level: LevelName = None,
    setting: SettingName = None,
    sut: SutNames = None,
    html: HtmlPath = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Show one measure over many runs, the oldest first.

    \b
    Examples:
        adverse history runs/*
        adverse history runs/* --measure recall --setting "haze(visibility_m=200)" --sut ours
        adverse history runs/* --html history.html

    Each run stands with the time its last image was done and, where git tracks a SUT's files, their commit. A
    run on other data, or evaluated in another way than the newest, is marked *. To test a difference, use
    adverse compare.
    """
    from adverse.report.history import history_lines, history_table, in_terminal, render_history
    from adverse.requirements.history import history as read
    from adverse.store.durable import write_file

    runs = read(folders, measure=measure, level=level, setting=setting, suts=sut or ())
    if html is not None:
        write_file(html, render_history(runs).encode())
    if as_json:
        typer.echo(history_table(runs).json())
        return
    console = Console()
    for table in in_terminal(runs):
        console.print(table.terminal(details=True))
    for line in history_lines(runs):
        console.say(line)
    if html is not None:
        console.say(f"written: {html}")


requirements = typer.Typer(
    help="Check reliability requirements: what people tolerate.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
RequirementsPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="A requirements file, or a study with a requirements: section.")
]
CheckFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The run folder. [default: runs/NAME-requirements beside the study]"),
]


@requirements.callback()
def _main() -> None:
    pass


@requirements.command("check")
def check_requirements(
    file: RequirementsPath,
    out: CheckFolder = None,
    workers: Workers = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    fresh: Fresh = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Check that SUTs tolerate the changes that people tolerate.

    \b
    Examples:
        adverse requirements check requirements.yaml
        adverse requirements check study.yaml --out runs/reliability --workers 4

    Prints the reliability distance (required less measured; 0 or less is good) of every requirement and SUT
    with its bounds and a verdict, and writes them and a page into the folder. Finished work is not repeated.
    docs/requirements.md shows how to write requirements and explains the verdicts.

    Exit codes: 0 all pass, 1 something fails, 3 nothing fails but something is inconclusive.
    """
    from adverse.report.requirements import requirement_lines, requirement_tables, write_requirements_page
    from adverse.requirements.file import read_requirements
    from adverse.requirements.results import as_data, as_verdict, save
    from adverse.requirements.run import run_check
    from adverse.requirements.verdicts import exit_code
    from adverse.study.engines import Stop

    requirements_file = read_requirements(file)
    folder = (
        out or requirements_file.study.folder / "runs" / f"{requirements_file.study.study.name}-requirements"
    )
    console = Console(quiet=quiet)
    watch, stop = ProgressWatcher(console), Stop()
    checked = None
    with (
        contextlib.suppress(KeyboardInterrupt),
        open_engine(requirements_file.study, folder / "logs", workers, engine, scheduler) as opened,
        interrupts(stop),
    ):
        checked = run_check(requirements_file, folder, opened, watch=watch, stop=stop, fresh=fresh)
    if checked is None:
        watch.note(f"stopped; finished work is kept in {folder}. Run the same command to resume.")
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
    if not quiet:
        say_stale(folder)
    raise typer.Exit(exit_code(as_verdict(result) for result in checked.results))

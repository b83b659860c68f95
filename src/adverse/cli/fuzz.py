"""fuzz: campaigns of semantic mutations, what they found, and the review of it."""

from __future__ import annotations

import contextlib
import difflib
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console as RichConsole
from typer.core import TyperGroup

from adverse.cli.console import Console, ProgressWatcher
from adverse.cli.engines import EngineName, Scheduler, open_engine
from adverse.cli.options import (
    DataFormat,
    DataOptions,
    DataPath,
    FormatPlugins,
    Host,
    Json,
    Port,
    Quiet,
    Workers,
)
from adverse.cli.runs import interrupts
from adverse.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_PASS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adverse.fuzz.outcome import CampaignOutcome
    from adverse.fuzz.run import CampaignRun
    from adverse.study.spec import StudyFile

StudyPath = Annotated[
    Path, typer.Argument(metavar="STUDY", help="The study file (YAML), with a fuzz: section.")
]
CampaignPath = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="The folder of a campaign.")]
Tests = Annotated[int, typer.Option("--tests", "-n", min=1, help="Number of tests.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The campaign's folder. [default: runs/NAME-fuzz beside the study]"),
]
Guided = Annotated[
    bool,
    typer.Option("--guided", help="Choose tests by what failed so far; compared with an unguided campaign."),
]
Against = Annotated[
    Path | None,
    typer.Option("--against", help="An unguided campaign to compare with. [default: OUT/unguided]"),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Random seed. [default: the study's]")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Discard earlier results and start over.")]
ReplayStudy = Annotated[
    Path, typer.Option("--study", metavar="STUDY", help="The study with the SUTs to test, and the data.")
]
ReplayOut = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The replay's folder. [default: runs/NAME-replay beside the study]"),
]
Failures = Annotated[bool, typer.Option("--failures", help="Only the tests that failed a SUT.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Also write each test as JUnit XML, for CI.")]
ExportFolder = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; a new one.")]
SuiteFormat = Annotated[
    Literal["coco", "coco-panoptic", "cityscapes"],
    typer.Option("--format", help="The format of the data set."),
]
WholeStudy = Annotated[
    Path | None,
    typer.Option("--study", metavar="STUDY", help="The campaign's study: all tests, not only failures."),
]
CutoutSheet = Annotated[
    Path | None, typer.Option("--sheet", help="Write a sheet of cut-outs to this PNG file.")
]
Count = Annotated[int, typer.Option("--count", min=1, max=2000, help="Cut-outs on the sheet.")]
Cache = Annotated[
    Path | None, typer.Option("--cache", help="The folder of resource sets. [default: ~/.cache/adverse]")
]
WORD = re.compile(r"\w[\w-]*")
"""What can be a command: a file of this name is not likely to be a study."""
HELP = """Fuzz segmenters and detectors by changing scenes.

\b
Examples:
    adverse fuzz resources data/cityscapes --sheet cutouts.png
    adverse fuzz study.yaml --tests 10000
    adverse fuzz study.yaml --tests 2000 --guided --out runs/guided
    adverse fuzz report runs/street-fuzz
    adverse fuzz review runs/street-fuzz
    adverse fuzz replay runs/street-fuzz --study new.yaml
    adverse fuzz export runs/street-fuzz suite --format coco

A campaign that was stopped or killed resumes when the same command is run again.
"""


class StudyFirst(TyperGroup):
    """Takes `adverse fuzz STUDY` for `adverse fuzz run STUDY`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `run` in front unless the first word is a command, could only be one, or asks for help."""
        first = args[0] if args else ""
        if first and first not in self.commands and first not in ctx.help_option_names:
            if WORD.fullmatch(first) and not Path(first).exists():
                self._refuse(ctx, first)
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def _refuse(self, ctx: Any, word: str) -> None:
        """Say that a word is neither a command nor a study, and what there is."""
        above = ctx.parent.command.commands if ctx.parent is not None else {}
        near = difflib.get_close_matches(word, self.commands, n=1)
        if near:
            fix = f"Did you mean 'adverse fuzz {near[0]}'?"
        elif word in above:
            fix = f"Did you mean 'adverse {word}'?"
        else:
            fix = f"Give a study file, or one of: {', '.join(self.commands)}."
        ctx.fail(f"No such command 'fuzz {word}', and no such file. {fix}")


fuzz = typer.Typer(cls=StudyFirst, help=HELP, no_args_is_help=True, rich_markup_mode=None)


@fuzz.command("run")
def run(
    study: StudyPath,
    tests: Tests = 10_000,
    out: Out = None,
    workers: Workers = None,
    guided: Guided = False,  # noqa: FBT002
    against: Against = None,
    seed: Seed = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    fresh: Fresh = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Run or resume a campaign and print what it found.

    \b
    Examples:
        adverse fuzz study.yaml --tests 10000
        adverse fuzz study.yaml --tests 2000 --guided

    Only failures are kept: image, ground truth, recipe, and the answers of the SUTs before and after.
    """
    from adverse.fuzz.folder import UNGUIDED, CampaignFolder
    from adverse.fuzz.run import run_campaign
    from adverse.study.spec import read_study

    file = read_study(study)
    folder = out or file.folder / "runs" / f"{file.study.name}-fuzz{'-guided' if guided else ''}"
    console = Console(quiet=quiet)
    campaigns = [(folder, guided)]
    if guided and against is None:
        against = folder / UNGUIDED
        campaigns.insert(0, (against, False))
    for path, _ in campaigns:  # both before the first runs
        CampaignFolder(path).refuse_files_of_others()
    code = EXIT_PASS
    for path, is_guided in campaigns:
        watch = ProgressWatcher(console)
        if len(campaigns) > 1:
            watch.note("the guided campaign" if is_guided else "first an unguided campaign, to compare with")
        work = partial(
            run_campaign, file, path, tests=tests, watch=watch, guided=is_guided, seed=seed, fresh=fresh
        )
        ran = _worked(work, file, path, watch, workers, engine, scheduler)
        code = EXIT_INCOMPLETE if ran.status == "saturated" else code
    show(folder, against if guided else None, quiet=quiet)
    raise typer.Exit(code)


@fuzz.command("replay")
def replay(
    folder: CampaignPath,
    study: ReplayStudy,
    out: ReplayOut = None,
    failures: Failures = False,  # noqa: FBT002
    junit: Junit = None,
    workers: Workers = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    fresh: Fresh = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Ask the tests of a campaign of the SUTs of another study.

    \b
    Examples:
        adverse fuzz replay runs/street-fuzz --study new.yaml
        adverse fuzz replay runs/street-fuzz --study new.yaml --failures --junit suite.xml

    Bases, recipes and rules of scoring are the campaign's; SUTs and data are the study's. Each test must come
    out with the same pixels and truth, or the replay is refused. What it makes is a campaign: report, review,
    compare, check and replay take it. To see what was fixed: adverse compare CAMPAIGN REPLAY.
    """
    from adverse.fuzz.folder import CampaignFolder
    from adverse.fuzz.outcome import read_outcome
    from adverse.fuzz.regression import compare_suites, not_compared
    from adverse.fuzz.replay import replay_campaign
    from adverse.fuzz.verify import REWRITES, open_campaign
    from adverse.report.suites import suite_headline
    from adverse.requirements.suite_rules import each_test
    from adverse.requirements.verdicts import to_junit
    from adverse.store.durable import write_file
    from adverse.study.spec import read_study

    original = open_campaign(folder, rewrites=REWRITES)
    file = read_study(study)
    path = out or file.folder / "runs" / f"{file.study.name}-replay"
    CampaignFolder(path).refuse_files_of_others()
    console = Console(quiet=quiet)
    watch = ProgressWatcher(console)
    work = partial(replay_campaign, original, file, path, watch=watch, only_failures=failures, fresh=fresh)
    _worked(work, file, path, watch, workers, engine, scheduler)
    show(path, None, quiet=quiet)
    before, after = read_outcome(original), read_outcome(CampaignFolder(path))
    comparisons = []
    if len(before.suts) == len(after.suts) == 1 or set(before.suts) & set(after.suts):
        comparisons = compare_suites(before, after)
    left_out = not_compared(before, after, comparisons)
    if comparisons or left_out:
        console.say(suite_headline(comparisons, left_out))
    if junit is not None:
        write_file(
            junit, to_junit(each_test(after, comparisons), suite=f"adverse fuzz replay {path.name}").encode()
        )
        console.say(f"written: {junit}")
    raise typer.Exit(EXIT_PASS)


def _worked(
    work: Callable[..., CampaignRun],
    file: StudyFile,
    path: Path,
    watch: ProgressWatcher,
    workers: int | None,
    engine: str,
    scheduler: str | None,
) -> CampaignRun:
    """Do the work of a campaign with the engine that options ask for; the command ends if it is stopped."""
    from adverse.study.engines import Stop

    stop, ran = Stop(), None
    with (
        contextlib.suppress(KeyboardInterrupt),
        open_engine(file, path / "logs", workers, engine, scheduler) as opened,
        interrupts(stop),
    ):
        ran = work(engine=opened, stop=stop)
    if ran is None or ran.status == "interrupted":
        watch.note(f"stopped; finished work is kept in {path}. Run the same command to resume.")
        raise typer.Exit(EXIT_INTERRUPTED)
    return ran


@fuzz.command("export")
def export(
    folder: CampaignPath,
    out: ExportFolder,
    how: SuiteFormat = "coco",
    study: WholeStudy = None,
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Write the failures of a campaign, or all of its tests, as a data set.

    \b
    Examples:
        adverse fuzz export runs/street-fuzz suite --format coco
        adverse fuzz export runs/street-fuzz suite --format cityscapes --study study.yaml

    Failures are in the campaign's folder; tests that passed are made again from the data of --study. The file
    recipes.jsonl has the recipe of each test and which SUTs fail it.
    """
    from adverse.fuzz.outcome import read_outcome
    from adverse.fuzz.verify import REWRITES, open_campaign
    from adverse.interop.suites import suite_tests, write_suite
    from adverse.study.spec import read_study

    campaign = open_campaign(folder, rewrites=REWRITES)
    outcome = read_outcome(campaign)
    tests = suite_tests(campaign, outcome, file=None if study is None else read_study(study))
    count, notes = write_suite(tests, outcome, out, how)
    console = Console(quiet=quiet)
    for line in (f"{count} tests written to {out} as {how}", *notes):
        console.say(line)


@fuzz.command("report")
def report(folder: CampaignPath, against: Against = None, quiet: Quiet = False) -> None:  # noqa: FBT002
    """Recompute the results of a campaign and write its page.

    \b
    Example:
        adverse fuzz report runs/street-fuzz
    """
    show(folder, against, quiet=quiet)


@fuzz.command("review")
def review(folder: CampaignPath, host: Host = "127.0.0.1", port: Port = 0) -> None:
    """Review failures in the browser: true or false.

    \b
    Example:
        adverse fuzz review runs/street-fuzz

    Keys: t true, f false, u unsure; arrows go back and forth. Every vote is kept at once.
    """
    from adverse.pages.review import routes_of
    from adverse.serving import open_door, serve

    routes = routes_of(folder)
    door, bound = open_door(host, port)
    typer.echo(f"review: {door.address}\nCtrl-C ends it; votes are kept in {folder / 'votes'}")
    serve(door, bound, routes)


@fuzz.command("resources")
def resources(
    path: DataPath,
    sheet: CutoutSheet = None,
    count: Count = 60,
    format_name: DataFormat = None,
    option: DataOptions = None,
    cache: Cache = None,
    as_json: Json = False,  # noqa: FBT002
    plugin: FormatPlugins = None,
) -> None:
    """Cut objects out of a data set with labels and instances.

    The first time takes about as long as reading the data; the set is kept, by content, and found again.

    \b
    Examples:
        adverse fuzz resources data/cityscapes -o "split={test: val}"
        adverse fuzz resources data/cityscapes --sheet cutouts.png
        adverse fuzz resources study.yaml --json
    """
    from adverse import plugins
    from adverse.cli.data import read_place
    from adverse.content import user_cache
    from adverse.data.images import write_image
    from adverse.semantic import Resources
    from adverse.semantic.inspecting import cutout_sheet, facts, words

    dataset, _, title = read_place(path, format_name, option or [], plugins.load(plugin or ()))
    with RichConsole(stderr=True).status("cutting out") as status:
        resources = Resources.build(
            dataset,
            cache or user_cache("resources"),
            watch=lambda done, of: status.update(f"cut out {done} of {of} frames"),
        )
    if sheet is not None:
        write_image(sheet, cutout_sheet(resources, count=count))
    if as_json:
        typer.echo(json.dumps(facts(resources), indent=1))
        return
    for line in (title, *words(resources)):
        typer.echo(line)


def show(folder: Path, against: Path | None, *, quiet: bool = False) -> None:
    """Print the outcome of a campaign and write its tables and its page."""
    from adverse.fuzz.compare import compare
    from adverse.fuzz.outcome import read_outcome
    from adverse.fuzz.verify import REWRITES, open_campaign
    from adverse.report.fuzz import (
        cause_lines,
        counts_tables,
        guiding_lines,
        object_tables,
        reviewed_table,
        summary_words,
        times_table,
    )
    from adverse.report.fuzz_page import write_fuzz_page

    campaign = open_campaign(folder, rewrites=REWRITES)
    outcome = read_outcome(campaign)
    other = read_outcome(open_campaign(against, rewrites=REWRITES)) if against else None
    comparison = compare(outcome, other) if other else None
    page = write_fuzz_page(
        campaign, outcome, comparison=comparison, reviewed=reviewed_table(campaign, outcome)
    )
    console = Console(quiet=quiet)
    for table in (*counts_tables(outcome), *object_tables(outcome)):
        console.print(table.terminal(details=True))
    lines: list[str] = [f"- {line}" for line in (*summary_words(outcome), *cause_lines(outcome))]
    lines += _refused(outcome)
    lines += guiding_lines(comparison) if comparison else []
    times = times_table(campaign)
    if times is not None:
        console.print(times.terminal())
    for line in (*lines, f"results: {campaign.results}", f"page:    {page}"):
        console.say(line)


def _refused(outcome: CampaignOutcome) -> Sequence[str]:
    """Say what kept candidates from becoming tests, the most frequent reasons of each mutation."""
    by_mutation: dict[str, list[str]] = {}
    row: dict[str, Any]
    for row in outcome.refusals():
        by_mutation.setdefault(row["mutation"], []).append(f"{row['reason']} {row['refused']}")
    return [f"- {mutation} refused: {', '.join(reasons[:5])}" for mutation, reasons in by_mutation.items()]

"""humans: the human study, and what people tolerate by its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from adverse.cli.console import Console
from adverse.cli.options import Host

humans = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Find out how much change people tolerate: show them images, and estimate from what they say.

\b
    adverse humans serve study.yaml                the experiment, in the browser
    adverse humans export study.yaml > answers.csv the answers that count
    adverse humans erase study.yaml NUMBER         forget a participant
    adverse humans simulate answers.csv            made-up answers, to see what comes of them
    adverse humans estimate answers.csv            thresholds with intervals, and the picture
""",
)

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The file of a human study (YAML).")]
Port = Annotated[int, typer.Option("--port", "-p", help="0: the one it had before, or any that is free.")]
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="The participant's number.")]
LeftOut = Annotated[
    Path | None, typer.Option("--excluded", help="Write the trials that were left out (CSV).")
]

Answers = Annotated[
    Path, typer.Argument(metavar="ANSWERS.csv", help="Answers, as export or simulate wrote them.")
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Write the estimates file that requirements name (JSON).")
]
Page = Annotated[Path | None, typer.Option("--page", help="Write the page with the pictures (HTML).")]
Alpha = Annotated[float, typer.Option(help="Significance of the test in each bin.")]
Weight = Annotated[
    Literal["none", "answers"], typer.Option(help="The spline counts bins alike, or by their answers.")
]
Consecutive = Annotated[
    int, typer.Option(min=1, max=2, help="Significant bins in a row that make a threshold.")
]
Quantile = Annotated[
    float, typer.Option("--baseline-quantile", help="Barely changed: the lowest share of dv.")
]
Confidence = Annotated[float, typer.Option(help="Of the interval.")]
Resamples = Annotated[int, typer.Option(help="How often participants are drawn anew.")]
Seed = Annotated[int, typer.Option(min=0, help="For what is drawn.")]
NoReuse = Annotated[
    bool, typer.Option("--no-reuse", help="Leave out the comparison of two parts of the images.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the estimates file instead of words.")]

Drop = Annotated[float | None, typer.Option(help="Visual change from which people fail.")]
NoDrop = Annotated[bool, typer.Option("--no-drop", help="People never fail.")]
Fall = Annotated[float, typer.Option(help="Over how much more change they fall to guessing.")]
OnsetOf = Annotated[Literal["even", "gentle", "sudden"], typer.Option("--onset", help="How the fall begins.")]
Base = Annotated[float, typer.Option(help="How often they are right before.")]
Differ = Annotated[float, typer.Option(help="How much people differ: deviation of their log odds.")]
Categories = Annotated[int, typer.Option(help="Answers to choose from, 2 to 16.")]
People_ = Annotated[int, typer.Option("--participants", help="How many people.")]
Count = Annotated[int, typer.Option("--answers", help="How many answers on changed images, in all.")]
Named = Annotated[str, typer.Option("--transformation", help="What the changes are called.")]
Measured = Annotated[
    Literal["vif", "vifp"], typer.Option("--backend", help="By which visual change is said to be measured.")
]
Repeat = Annotated[
    int | None, typer.Option(min=1, help="Instead of answers: how this many studies would do.")
]
Target = Annotated[Path | None, typer.Argument(metavar="[OUT.csv]", help="Where to write the answers.")]


@humans.command("serve")
def serve(study: StudyPath, host: Host = "127.0.0.1", port: Port = 0) -> None:
    """Show images to people and keep what they say they saw, until Ctrl-C.

    Everybody with the printed address can take part, each under a random number. Answers are kept beside the
    file, in the folder STUDY-answers; start it again to go on, at the same address.

    \b
    Examples:
        adverse humans serve cars.yaml
        adverse humans serve cars.yaml --host 192.168.1.20 --port 8000      for others in the room
    """
    from adverse.humans.experiment import Experiment
    from adverse.humans.server import lock_study, reopen_door, routes, warm_up
    from adverse.humans.study_file import read_human_study
    from adverse.serving import LOOPBACK
    from adverse.serving import serve as answer_requests

    file = read_human_study(study)
    with lock_study(file):
        experiment = Experiment(file)
        typer.echo("making the first images ...", err=True)
        warm_up(experiment)
        door, bound = reopen_door(file, host, port)
        if host != LOOPBACK:
            typer.echo(f"warning: {host} can be reached from other machines; the address lets in", err=True)
        typer.echo(f"participants open: {door.address}\nanswers: {file.folder}\nCtrl-C ends it")
        answer_requests(door, bound, routes(experiment, door))


@humans.command("export")
def export(study: StudyPath, excluded: LeftOut = None) -> None:
    """Print the answers that count as CSV; say what was left out, and why.

    \b
    Example:
        adverse humans export cars.yaml --excluded left-out.csv > answers.csv
    """
    from adverse.humans.records import export as answers_of
    from adverse.humans.server import read_state
    from adverse.humans.study_file import read_human_study
    from adverse.store.durable import write_file

    file = read_human_study(study)
    collected = answers_of(read_state(file), file.study)
    typer.echo(collected.csv(), nl=False)
    for line in collected.words():
        typer.echo(line, err=True)
    if excluded is not None:
        write_file(excluded, collected.excluded_csv().encode())


@humans.command("erase")
def erase(study: StudyPath, participant: Number) -> None:
    """Erase all that is kept of one participant; while the study is served, their own page can do it.

    \b
    Example:
        adverse humans erase cars.yaml 3f2a9c0d11e4b7a8
    """
    from adverse.humans.server import erase as forget
    from adverse.humans.study_file import read_human_study

    forget(read_human_study(study), participant)
    typer.echo(f"erased: {participant}")


@humans.command("estimate")
def estimate(
    answers: Answers,
    out: Out = None,
    page: Page = None,
    alpha: Alpha = 0.05,
    weight: Weight = "none",
    consecutive: Consecutive = 1,
    baseline_quantile: Quantile = 0.05,
    confidence: Confidence = 0.9,
    resamples: Resamples = 500,
    seed: Seed = 0,
    no_reuse: NoReuse = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Estimate how much change people tolerate, from their answers.

    t_c: up to there people are right as often as on the originals. t_p: up to there they answer as before.

    \b
    Examples:
        adverse humans estimate answers.csv --page thresholds.html
        adverse humans estimate answers.csv --out estimates.json     for: threshold: estimates.json
        adverse humans estimate answers.csv --consecutive 2          the rule of the paper's own script
    """
    from adverse.humans.answers import read_judgments
    from adverse.humans.estimate import EstimateOptions
    from adverse.humans.estimate import estimate as work_out
    from adverse.humans.estimates_file import as_json as estimates_text
    from adverse.humans.estimates_file import counts_in_words, reuse
    from adverse.report.human_study import in_words, threshold_table, thresholds_page
    from adverse.store.durable import write_file

    options = EstimateOptions(alpha, weight, consecutive, baseline_quantile, confidence, resamples, seed)
    judgments = read_judgments(answers)
    estimates = work_out(judgments, options)
    agreement = [] if no_reuse else reuse(judgments, options)
    text = estimates_text(judgments, estimates, agreement, options)
    if as_json:
        typer.echo(text, nl=False)
    else:
        console = Console()
        console.print(threshold_table(estimates).terminal())
        for line in (
            counts_in_words(judgments),
            *map(in_words, estimates),
            *(reused.words for reused in agreement),
        ):
            console.say(f"- {line}")
    for path, content in ((out, text), (page, thresholds_page(judgments, estimates, agreement, options))):
        if path is not None:
            write_file(path, content.encode())
            typer.echo(f"written: {path}", err=True)


@humans.command("simulate")
def simulate(
    target: Target = None,
    drop: Drop = 0.4,
    no_drop: NoDrop = False,  # noqa: FBT002
    fall: Fall = 0.3,
    onset: OnsetOf = "even",
    base: Base = 0.95,
    differ: Differ = 0.3,
    categories: Categories = 2,
    participants: People_ = 50,
    answers: Count = 2500,
    transformation: Named = "t.gaussian_noise",
    backend: Measured = "vif",
    seed: Seed = 0,
    repeat: Repeat = None,
) -> None:
    """Make answers up from a known curve, or see what studies of a size would find.

    \b
    Examples:
        adverse humans simulate answers.csv --drop 0.4
        adverse humans simulate --drop 0.4 --participants 30 --answers 1500 --repeat 100    is that enough?
    """
    from adverse.errors import StudyError
    from adverse.humans.answers import to_csv
    from adverse.humans.estimate import EstimateOptions
    from adverse.humans.simulate import People, plan_sample_size
    from adverse.humans.simulate import simulate as make_up
    from adverse.humans.thresholds import KINDS
    from adverse.store.durable import write_file

    if (target is None) == (repeat is None):
        raise StudyError("either answers or a plan", fix="Give OUT.csv, or --repeat 100.")
    people = People(
        None if no_drop else drop,
        fall,
        onset,
        base,
        differ,
        categories,
        participants,
        answers,
        transformation,
        backend,
    )
    if repeat is not None:
        for kind in KINDS:
            typer.echo(plan_sample_size(people, repeat, kind, EstimateOptions(seed=seed)).words)
    elif target is not None:
        write_file(target, to_csv(make_up(people, seed)).encode())
        typer.echo(f"written: {target}", err=True)

"""humans: the human study, and what people tolerate by its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from adverse.cli.console import Console
from adverse.cli.options import Host
from adverse.errors import EXIT_INCOMPLETE

humans = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Measure how much change people tolerate.

\b
    adverse humans serve study.yaml          the experiment, in the browser
    adverse humans export study.yaml         the answers that count
    adverse humans erase study.yaml NUMBER   erase a participant
    adverse humans simulate answers.csv      simulated answers
    adverse humans estimate answers.csv      thresholds with intervals
    adverse humans coverage BATTERY photos   how much of a battery people tolerate
""",
)

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The file of a human study (YAML).")]
Port = Annotated[
    int, typer.Option("--port", "-p", help="Port to listen on; 0 takes the previous one, or a free one.")
]
PublicUrl = Annotated[
    str | None,
    typer.Option("--public-url", help="Address of the encrypting proxy in front of it, as https://NAME."),
]
Workers = Annotated[
    Path | None, typer.Option("--workers", help="Also write who came from the platform and is done (CSV).")
]
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="The participant's number.")]
LeftOut = Annotated[Path | None, typer.Option("--excluded", help="Also write the excluded trials (CSV).")]

Answers = Annotated[Path, typer.Argument(metavar="ANSWERS.csv", help="Answers from export or simulate.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write the estimates file for requirements (JSON).")]
Page = Annotated[Path | None, typer.Option("--page", help="Write a page with charts (HTML).")]
Alpha = Annotated[float, typer.Option(help="Significance of the test in each bin, between 0 and 0.5.")]
Weight = Annotated[
    Literal["none", "answers"],
    typer.Option(help="How the spline weights bins: equally, or by their answers."),
]
Consecutive = Annotated[
    int, typer.Option(min=1, max=2, help="Significant bins in a row that make a threshold.")
]
Quantile = Annotated[
    float,
    typer.Option(
        "--baseline-quantile", help="Share of images, by visual change, that count as barely changed."
    ),
]
Compat = Annotated[
    Literal["hu-2022"] | None,
    typer.Option(
        help="Follow the published script of Hu et al. (2022) instead: R's smooth.spline, two-sided tests, "
        "the upper edge of the second of two significant bins, without one the second-to-last bin (called a "
        "fallback), no intervals. Reads the authors' CSV files, too."
    ),
]
BaseRate = Annotated[
    float | None,
    typer.Option(
        "--base-rate", help="Share of right answers on originals, for t_c, where it is known from elsewhere."
    ),
]
Confidence = Annotated[float, typer.Option(help="Confidence of the intervals, between 0 and 1.")]
Resamples = Annotated[int, typer.Option(help="Bootstrap resamples of the participants, 100 to 100000.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
NoReuse = Annotated[
    bool, typer.Option("--no-reuse", help="Skip the comparison of two random parts of the images.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the estimates file instead of text.")]

CoverageJson = Annotated[bool, typer.Option("--json", help="Print the table as JSON instead of text.")]
Battery = Annotated[str, typer.Argument(metavar="BATTERY", help="A battery, or a setting.")]
ImageFolder = Annotated[Path, typer.Argument(metavar="IMAGES", help="A folder of photographs.")]
Thresholds = Annotated[
    str, typer.Option("--thresholds", help="published, an estimates file, or a number for all.")
]
KindOf = Annotated[Literal["correctness", "prediction"], typer.Option("--kind", help="t_c or t_p.")]
BackendOf = Annotated[
    Literal["vif", "vifp", "vif2"] | None,
    typer.Option("--backend", help="Backend of visual change. [default: the threshold's, else vif]"),
]
Most = Annotated[int, typer.Option("--images", min=1, help="At most so many images, evenly chosen.")]

Drop = Annotated[float | None, typer.Option(help="Visual change at which people begin to fail.")]
NoDrop = Annotated[bool, typer.Option("--no-drop", help="Simulate people who never fail.")]
Fall = Annotated[float, typer.Option(help="Further change over which they fall to guessing.")]
OnsetOf = Annotated[Literal["even", "gentle", "sudden"], typer.Option("--onset", help="How the drop begins.")]
Base = Annotated[float, typer.Option(help="Share of right answers before the drop.")]
Differ = Annotated[float, typer.Option(help="How much people differ: standard deviation of their log odds.")]
Categories = Annotated[int, typer.Option(help="Categories to choose from, 2 to 16.")]
People_ = Annotated[int, typer.Option("--participants", help="Number of participants.")]
Count = Annotated[int, typer.Option("--answers", help="Number of answers on changed images.")]
Originals = Annotated[
    int | None, typer.Option("--originals", help="Number of answers on originals. [default: as many]")
]
Named = Annotated[str, typer.Option("--transformation", help="Name of the transformation.")]
Measured = Annotated[
    Literal["vif", "vifp", "vif2"], typer.Option("--backend", help="Backend of visual change.")
]
Repeat = Annotated[
    int | None, typer.Option(min=1, help="Simulate this many studies and print what they find.")
]
Target = Annotated[Path | None, typer.Argument(metavar="OUT.csv", help="The file to write.")]


@humans.command("serve")
def serve(study: StudyPath, host: Host = "127.0.0.1", port: Port = 0, public_url: PublicUrl = None) -> None:
    """Serve the experiment until Ctrl-C.

    Anyone with the printed address can take part, each under a random number. Answers are stored beside the
    file, in the folder STUDY-answers; run it again to continue at the same address.

    \b
    Examples:
        adverse humans serve cars.yaml
        adverse humans serve cars.yaml --host 192.168.1.20 --port 8000
        adverse humans serve cars.yaml --port 8000 --public-url https://study.example.org
    """
    from adverse.humans.experiment import Experiment
    from adverse.humans.server import lock_study, reopen_door, routes, warm_up
    from adverse.humans.study_file import read_human_study
    from adverse.serving import LOOPBACK, public_origin
    from adverse.serving import serve as answer_requests

    origin = "" if public_url is None else public_origin(public_url)
    file = read_human_study(study)
    with lock_study(file):
        experiment = Experiment(file)
        typer.echo("making the first images ...", err=True)
        warm_up(experiment)
        door, bound = reopen_door(file, host, port, origin)
        if host != LOOPBACK:
            typer.echo(
                f"warning: {host} can be reached from other machines; anyone with the address can take part",
                err=True,
            )
        typer.echo(f"participants open: {door.address}\nanswers: {file.folder}\nCtrl-C ends it")
        answer_requests(door, bound, routes(experiment, door))


@humans.command("export")
def export(study: StudyPath, excluded: LeftOut = None, workers: Workers = None) -> None:
    """Print the answers that count as CSV.

    What is excluded, and why, goes to standard error.

    \b
    Example:
        adverse humans export cars.yaml --excluded left-out.csv > answers.csv
    """
    from adverse.humans.records import OWNER_ONLY, workers_csv
    from adverse.humans.records import export as answers_of
    from adverse.humans.server import read_state
    from adverse.humans.stimuli import Stimuli
    from adverse.humans.study_file import read_human_study
    from adverse.humans.study_lock import refuse_another_study
    from adverse.store.durable import write_file

    file = read_human_study(study)
    state = read_state(file)
    refuse_another_study(file, state, lambda: Stimuli(file).files)
    collected = answers_of(state, file.study)
    typer.echo(collected.csv(), nl=False)
    for line in collected.words():
        typer.echo(line, err=True)
    if excluded is not None:
        write_file(excluded, collected.excluded_csv().encode())
    if workers is not None:
        write_file(workers, workers_csv(state, file.study).encode())
        workers.chmod(OWNER_ONLY)  # ids of people


@humans.command("erase")
def erase(study: StudyPath, participant: Number) -> None:
    """Erase all records of one participant.

    Not while the study is served: participants can then erase their answers on their own page.

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
    context: typer.Context,
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
    base_rate: BaseRate = None,
    compat: Compat = None,
    no_reuse: NoReuse = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Estimate how much change people tolerate.

    t_c: the change up to which people are right as often as on the originals; t_p: up to which they answer as
    before. Exit codes: 0 some threshold is estimated, 3 none: too few answers.

    \b
    Examples:
        adverse humans estimate answers.csv --page thresholds.html
        adverse humans estimate answers.csv --out estimates.json
        adverse humans estimate answers.csv --consecutive 2
        adverse humans estimate answers.csv --compat hu-2022
    """
    from adverse.processes import use_one_thread

    use_one_thread()
    from adverse.humans.answers import Judgments, read_judgments
    from adverse.humans.estimate import EstimateOptions
    from adverse.humans.estimate import estimate as work_out
    from adverse.humans.estimates_file import as_json as estimates_text
    from adverse.humans.estimates_file import counts_in_words, reuse
    from adverse.humans.thresholds import INSUFFICIENT
    from adverse.report.human_study import in_words, threshold_table, thresholds_page
    from adverse.store.durable import write_file

    options = EstimateOptions(
        alpha, weight, consecutive, baseline_quantile, confidence, resamples, seed, base_rate
    )
    judgments: Judgments | None
    if compat is None:
        judgments = read_judgments(answers)
        estimates = work_out(judgments, options)
        agreement = [] if no_reuse else reuse(judgments, options)
    else:
        from adverse.humans.hu2022 import estimates_as_hu2022

        refuse_ignored(context, compat)
        weighted = weight == "answers"
        estimates, judgments = estimates_as_hu2022(
            answers, base_rate=base_rate, alpha=alpha, weighted=weighted
        )
        agreement = []
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
    if out is not None:
        write_file(out, text.encode())
        typer.echo(f"written: {out}", err=True)
    if page is not None:
        write_file(page, thresholds_page(judgments, estimates, agreement, options).encode())
        typer.echo(f"written: {page}", err=True)
    if all(found.status == INSUFFICIENT for found in estimates):
        raise typer.Exit(EXIT_INCOMPLETE)


NOT_IN_COMPAT = ("consecutive", "baseline_quantile", "confidence", "resamples", "seed")


def refuse_ignored(context: typer.Context, compat: str) -> None:
    """Refuse options that the published script has fixed, or does not have: it would ignore them."""
    from adverse.errors import StudyError

    ignored = [
        f"--{name.replace('_', '-')}"
        for name in NOT_IN_COMPAT
        if (source := context.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    ]
    if ignored:
        raise StudyError(
            f"--compat {compat} has rules of its own",
            got=", ".join(ignored),
            wanted="--alpha, --weight and --base-rate alone; two bins in a row are always needed",
            fix=f"Leave {ignored[0]} out, or --compat.",
        )


@humans.command("coverage")
def coverage(
    battery: Battery,
    images: ImageFolder,
    thresholds: Thresholds = "published",
    kind: KindOf = "correctness",
    backend: BackendOf = None,
    most: Most = 20,
    seed: Seed = 0,
    page: Page = None,
    as_json: CoverageJson = False,  # noqa: FBT002
) -> None:
    """Show how much of a battery people tolerate.

    Every setting is applied to photographs; its visual change is compared with what people tolerate. Exit
    codes: 0 something is measured, 3 nothing.

    \b
    Examples:
        adverse humans coverage coco-c photos --page coverage.html
        adverse humans coverage "c.fog(severity=3)" photos --thresholds 0.8
        adverse humans coverage coco-c photos --thresholds estimates.json
    """
    from adverse import plugins
    from adverse.data.images import images_below
    from adverse.humans.thresholds import DEFAULT_BACKEND
    from adverse.mutations.settings import expand
    from adverse.report.coverage import coverage_lines, coverage_page, coverage_table
    from adverse.requirements.coverage import coverage as measure
    from adverse.requirements.coverage import needs_only_the_image, thresholds_of
    from adverse.store.durable import write_file

    registry = plugins.load()
    every = expand(battery, registry, where="BATTERY")
    settings = [setting for setting in every if needs_only_the_image(setting)]
    no_estimate: dict[str, str] = {}
    limits = thresholds_of(settings, thresholds, kind, backend, no_estimate=no_estimate)
    others = next((limit.backend for limit in limits.values()), DEFAULT_BACKEND)
    rows = measure(
        ((file.path.name, file()) for file in images_below(images, most)),
        settings,
        limits,
        registry,
        seed=seed,
        backend=backend or others,
        no_estimate=no_estimate,
    )
    if as_json:
        typer.echo(coverage_table(rows).json())
    else:
        console = Console()
        console.print(coverage_table(rows).terminal())
        for line in coverage_lines(rows):
            console.say(f"- {line}")
    if len(settings) < len(every):
        typer.echo(f"left out: {len(every) - len(settings)} settings that need depth or labels", err=True)
    if page is not None:
        write_file(page, coverage_page(battery, rows).encode())
        typer.echo(f"written: {page}", err=True)
    if not any(row.visual_change for row in rows):
        raise typer.Exit(EXIT_INCOMPLETE)


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
    originals: Originals = None,
    transformation: Named = "t.gaussian_noise",
    backend: Measured = "vif",
    seed: Seed = 0,
    repeat: Repeat = None,
) -> None:
    """Simulate answers, or plan the size of a study.

    \b
    Examples:
        adverse humans simulate answers.csv --drop 0.4
        adverse humans simulate --participants 30 --answers 1500 --repeat 100
    """
    from adverse.processes import use_one_thread

    use_one_thread()
    from adverse.errors import StudyError
    from adverse.humans.answers import to_csv
    from adverse.humans.estimate import EstimateOptions
    from adverse.humans.simulate import People, plan_sample_size
    from adverse.humans.simulate import simulate as make_up
    from adverse.humans.thresholds import KINDS
    from adverse.store.durable import write_file

    if (target is None) == (repeat is None):
        raise StudyError("give either OUT.csv or --repeat", fix="Give OUT.csv, or --repeat 100.")
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
        originals,
    )
    if repeat is not None:
        for kind in KINDS:
            typer.echo(plan_sample_size(people, repeat, kind, EstimateOptions(seed=seed)).words)
    elif target is not None:
        write_file(target, to_csv(make_up(people, seed)).encode())
        typer.echo(f"written: {target}", err=True)

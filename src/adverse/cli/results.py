"""report, view, drive, export, bench-table, predict: what is made of a finished run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from adverse.cli.console import Console, say
from adverse.cli.options import FinishedRun, Host, Json, Port, Quiet, Trust, at_hand
from adverse.cli.sealing import say_stale
from adverse.errors import EXIT_INCOMPLETE, EXIT_PASS, StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adverse.report.table import Table

Browse = Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser.")]
LoopRun = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run with the level loop.", callback=at_hand)
]
LogName = Annotated[str, typer.Option("--log", help="The log to drive.")]
SutName = Annotated[str, typer.Option("--sut", help="The SUT whose detections drive the robot.")]
Sensitivity = Annotated[float, typer.Option("--sensitivity", help="Expected false positives per image.")]
Mutation = Annotated[
    str | None, typer.Option("--mutation", "-m", help="The mutation to drive under. [default: none]")
]
DrivePath = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="The CSV to write, with an SVG beside it. [default: results/drive.csv in the run]"
    ),
]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")]
Suts = Annotated[list[str] | None, typer.Option("--sut", help="Only this SUT; repeatable.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--setting", help="Only this mutation by its id, or clean; repeatable."),
]


def report(
    folder: FinishedRun,
    trust: Trust = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Write the HTML report of a run.

    One file that opens from disk; its tables are written beside it as CSV and JSON.

    \b
    Examples:
        adverse report runs/orchard
        adverse report runs/orchard-requirements

    A run that is not finished, or whose files changed, has no report. Plug-ins named in the study are run
    only with --trust; frames and mutations that need them are not shown otherwise.
    """
    from adverse.report.page import write_report
    from adverse.report.requirements import write_requirements_page
    from adverse.requirements.results import is_check

    if is_check(folder):
        page = write_requirements_page(folder)
    else:
        page = write_report(folder, trust=trust, tell=_silent if quiet else _note)
    if as_json:
        typer.echo(json.dumps({"report": str(page)}, indent=1))
    elif not quiet:
        typer.echo(f"report: {page}")
        say_stale(folder)


def view(
    folder: FinishedRun,
    host: Host = "127.0.0.1",
    port: Port = 0,
    browse: Browse = False,  # noqa: FBT002
    trust: Trust = False,  # noqa: FBT002
) -> None:
    """Explore a run in the browser.

    Shows all frames as a grid to filter and sort, and each under two mutations with its boxes, curves and the
    closed loop, at any sensitivity. The page is served on this machine only, until Ctrl-C; the printed
    address holds the token that opens it.

    \b
    Examples:
        adverse view runs/orchard
        adverse view runs/orchard --port 8000 --open
    """
    import threading
    import webbrowser

    from adverse.pages.view.app import routes, warm_up
    from adverse.pages.view.session import ExploredRun
    from adverse.serving import LOOPBACK, open_door, serve

    run = ExploredRun(folder, trust=trust)
    pages = routes(run)
    door, bound = open_door(host, port)
    if host != LOOPBACK:
        typer.echo(
            f"warning: {host} can be reached from other machines; anyone with the address can see the run",
            err=True,
        )
    typer.echo(f"explorer: {door.address}\nCtrl-C ends it")
    threading.Thread(target=warm_up, args=(run,), daemon=True).start()
    if browse:
        webbrowser.open(door.address)
    serve(door, bound, pages)


def drive(
    folder: LoopRun,
    log: LogName,
    sut: SutName,
    sensitivity: Sensitivity,
    mutation: Mutation = None,
    out: DrivePath = None,
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Drive one log in closed loop.

    Every step is written as CSV, with a picture beside it.

    \b
    Example:
        adverse drive runs/orchard --log test/log03 --sut ssd --sensitivity 0.01
    """
    from adverse.analysis.loop import drive_log
    from adverse.report.closed_loop import drive_chart, steps_table, verdict
    from adverse.store.durable import write_file
    from adverse.store.finished_run import finished

    store = finished(folder, rewrites=("results/drive.",) if out is None else ())
    driven = drive_log(store, log=log, sut=sut, sensitivity=sensitivity, setting=mutation)
    steps, drawn = steps_table(driven).csv().encode(), drive_chart(driven).svg().encode()
    if out is None:
        table, drawing = store.write({"results/drive.csv": steps, "results/drive.svg": drawn})
    else:
        table, drawing = out, out.with_suffix(".svg")
        write_file(table, steps)
        write_file(drawing, drawn)
    if quiet:
        return
    stops = int(driven.by_sut.stopped.sum())
    say(f"{verdict(driven)}; up to {driven.tolerance_m:g} m later is in time")
    say(f"{stops} stops, {driven.by_sut.time_s[-1]:.2f} s, {driven.by_sut.position_m[-1]:.2f} m")
    say(f"every step: {table}\npicture:    {drawing}")
    say_stale(folder)


def export(
    folder: FinishedRun,
    out: Target,
    sut: Suts = None,
    setting: Settings = None,
    quiet: Quiet = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Export detections as COCO results, with the ground truth.

    Test frames only; one file for each SUT and setting.

    \b
    Examples:
        adverse export runs/orchard coco
        adverse export runs/orchard coco --sut yolo --setting clean
    """
    from adverse.interop.coco_results import ANNOTATIONS, INDEX, export_coco
    from adverse.store.finished_run import finished
    from adverse.text import counted

    written = export_coco(folder, out, suts=sut or (), settings=setting or ())
    if as_json:
        facts = {
            "index": str(out / INDEX),
            "annotations": str(out / ANNOTATIONS),
            "files": [str(out / results.file) for results in written],
            "detections": sum(results.detections for results in written),
            "faults": sum(len(results.faults) for results in written),
            "unusable_images": sum(len(results.quarantined) for results in written),
        }
        typer.echo(json.dumps(facts, indent=1))
        return
    if quiet:
        return
    for name in dict.fromkeys(results.sut for results in written):
        mine = [results for results in written if results.sut == name]
        counts = {
            "detection": sum(results.detections for results in mine),
            "fault": sum(len(results.faults) for results in mine),
            "unusable image": sum(len(results.quarantined) for results in mine),
        }
        words = [counted(number, noun) for noun, number in counts.items() if number or noun == "detection"]
        say(f"{name}: {counted(len(mine), 'file')}, {', '.join(words)}; the first is {out / mine[0].file}")
    say(f"{out / INDEX}: every file, what it holds, what failed")
    truth = finished(folder).run.truth
    say(f"{out / ANNOTATIONS}: {'the ground truth' if truth is None else f'no ground truth: {truth.name}'}")


def _silent(_words: str) -> None:
    pass


def _note(words: str) -> None:
    say(f"note: {words}", err=True)


BenchmarkRun = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="The folder of a finished run with the battery coco-c.", callback=at_hand
    ),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Detectors: ap, ap50, ap75, ap-small, ap-medium, ap-large, ar1, ar10, ar100, ar-small, "
        "ar-medium, ar-large, voc-ap50, voc-ap50-11; of masks the same with mask- in front, cityscapes-ap, "
        "cityscapes-ap50. Segmenters: miou, pixel-accuracy. Classifiers: top1, top5. [default: ap (mask-ap "
        "with masks), miou or top1]",
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        "--reference", help="Errors of a reference model, for mCE (CSV: corruption,severity,error)."
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option("--classes", help="Only this class; repeatable. [default: all]"),
]
PerClass = Annotated[bool, typer.Option("--per-class", help="Also print each class of each SUT.")]
Partial = Annotated[
    bool, typer.Option("--partial", help="Accept a run that lacks corruptions; its mean is not called mPC.")
]
With = Annotated[
    Literal["published"] | None, typer.Option("--with", help="Also show the leaderboard published in 2019.")
]
Quick = Annotated[bool, typer.Option("--no-intervals", help="Skip the intervals (faster).")]
CsvPath = Annotated[Path | None, typer.Option("--csv", help="Also write a CSV file.")]
Figures = Annotated[
    Path | None,
    typer.Option(
        "--figures",
        help="A folder for figures: the metric over severity, and what is left of it over how far each "
        "corruption moves pixels (SVG).",
    ),
]
Before = Annotated[
    Path | None,
    typer.Option("--before", help="With --figures: an earlier run, from which arrows lead to this one."),
]
Save = Annotated[bool, typer.Option("--save", help="Also write results/benchmark.json and .csv in the run.")]


def bench_table(
    folder: BenchmarkRun,
    metric: MetricName = None,
    classes: Classes = None,
    per_class: PerClass = False,  # noqa: FBT002
    partial: Partial = False,  # noqa: FBT002
    published: With = None,
    no_intervals: Quick = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
    csv: CsvPath = None,
    save: Save = False,  # noqa: FBT002
    reference: Reference = None,
    figures: Figures = None,
    before: Before = None,
) -> None:
    """Print P, mPC and rPC of each SUT, and every corruption.

    \b
    Examples:
        adverse bench-table runs/street
        adverse bench-table runs/street --metric voc-ap50 --per-class
        adverse bench-table runs/street --classes person --with published
        adverse bench-table runs/street --json --save
        adverse bench-table runs/new --figures figures --before runs/old
    """
    from adverse.benchmarks.mpc import comparable
    from adverse.benchmarks.table import as_csv, as_data
    from adverse.benchmarks.table import bench_table as work_out
    from adverse.benchmarks.table import save as save_in
    from adverse.report.benchmark import (
        benchmark_remarks,
        corruption_error_lines,
        in_terminal,
        published_remarks,
        published_tables,
    )
    from adverse.report.benchmark_figures import NOTHING, measured, write_figures
    from adverse.store.durable import write_file
    from adverse.store.finished_run import finished

    if before is not None and figures is None:
        raise StudyError("--before draws arrows in a figure", where="--before", fix="Add --figures DIR.")
    others = comparable(metric) if published and metric else None
    store = finished(folder, rewrites=("results/benchmark.",) if save else ())
    table = work_out(
        store, metric=metric, classes=classes or (), partial=partial, with_intervals=not no_intervals
    )
    if published and others is None:
        others = comparable(table.metric.name)
    drawn = NOTHING if figures is None else measured(store, table, before, partial=partial)
    if as_json:
        data = as_data(table, others, drawn.change)
        if others is not None:
            data["published"]["remarks"] = [line[2:] for line in published_remarks(table, others)]
        typer.echo(json.dumps(data, indent=1))
    else:
        lines = (
            *published_remarks(table, others or ()),
            *benchmark_remarks(table),
            *drawn.remarks,
            *corruption_error_lines(table, reference),
        )
        _print_tables(
            (*in_terminal(as_data(table), by_class=per_class), *published_tables(others or ())), lines
        )
    if csv is not None:
        write_file(csv, as_csv(table, drawn.change).encode())
    if figures is not None:
        for file in write_figures(as_data(table), drawn.change, figures, drawn.before):
            typer.echo(f"written: {file}", err=True)
    if save:
        for file in save_in(table, store, drawn.change):
            typer.echo(f"written: {file}", err=True)
        say_stale(folder)
    raise typer.Exit(EXIT_PASS if table.status == "ok" else EXIT_INCOMPLETE)


def _print_tables(tables: Iterable[Table], lines: Iterable[str]) -> None:
    console = Console()
    for table in tables:
        console.print(table.terminal(details=True))
    for line in lines:
        console.say(line)


ScoresPath = Annotated[
    Path,
    typer.Argument(
        metavar="SCORES",
        help="The folder of an analysed run, of which ADR is taken; or a CSV file. First column: setting id; "
        "one column for each SUT; a row named baseline.",
    ),
]
Simple = Annotated[str, typer.Option(help="The mutation to predict from, such as gaussian_blur.")]
Contextual = Annotated[str, typer.Option(help="The mutation to predict, such as defocus.")]


def predict(table: ScoresPath, simple: Simple, contextual: Contextual, as_json: Json = False) -> None:  # noqa: FBT002
    """Predict scores under one mutation from another.

    Each SUT is predicted from all others. R2 is the share of its drop that was predicted: 1 all of it, 0 or
    less none.

    \b
    Examples:
        adverse predict runs/orchard --simple gaussian_blur --contextual defocus
        adverse predict scores.csv --simple gaussian_blur --contextual defocus
    """
    from adverse.analysis.results import read_run_scores
    from adverse.curves.predict import predict_contextual, read_table
    from adverse.report.run_tables import prediction_table
    from adverse.store.finished_run import finished
    from adverse.text import counted

    scores = read_run_scores(finished(table)) if table.is_dir() else read_table(table)
    prediction = predict_contextual(scores, simple=simple, contextual=contextual)
    if as_json:
        typer.echo(json.dumps(prediction.plain(), indent=1))
        return
    targets = counted(len(prediction.contextual), "setting")
    sources = counted(len(prediction.simple) - 1, "setting")
    title = f"{contextual} ({targets}) from {simple} ({sources} and the baseline)"
    Console().print(prediction_table(prediction, f"predict {contextual}", title).terminal())

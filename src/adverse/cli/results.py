"""report, view, drive, export: what is made of a finished run, for people and for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import say
from adverse.cli.options import FinishedRun, Host, Port, Trust

Browse = Annotated[bool, typer.Option("--open/--no-open", help="Open a browser there.")]
LoopRun = Annotated[Path, typer.Argument(help="A run folder with the level loop.")]
LogName = Annotated[str, typer.Option("--log", help="The log to drive.")]
SutName = Annotated[str, typer.Option("--sut", help="The SUT that tells the robot what is there.")]
Sensitivity = Annotated[float, typer.Option("--sensitivity", help="Expected false positives per image.")]
Mutation = Annotated[str | None, typer.Option("--mutation", "-m", help="[default: none, the clean images]")]
DrivePath = Annotated[
    Path | None, typer.Option("--out", "-o", help="[default: drive.csv and .svg in the run]")
]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")]
Suts = Annotated[list[str] | None, typer.Option("--sut", help="Only this SUT; repeatable.")]
Settings = Annotated[list[str] | None, typer.Option("--setting", help="Only this setting's id; repeatable.")]


def report(folder: FinishedRun, trust: Trust = False) -> None:  # noqa: FBT002
    """Write the report of a run: one HTML file that opens from disk, its tables beside it as CSV and JSON.

    \b
    Examples:
        adverse report runs/orchard
        adverse report runs/orchard-requirements     the page of a requirements check

    A run that is not finished, or whose files changed, has no report. Plug-ins named by the run are not run
    without --trust; frames and mutations that need them are then not pictured.
    """
    from adverse.report.page import write_report
    from adverse.report.requirements import write_requirements_page
    from adverse.requirements.results import is_check

    if is_check(folder):
        typer.echo(f"report: {write_requirements_page(folder)}")
    else:
        typer.echo(f"report: {write_report(folder, trust=trust, tell=_note)}")


def view(
    folder: FinishedRun,
    host: Host = "127.0.0.1",
    port: Port = 0,
    browse: Browse = False,  # noqa: FBT002
    trust: Trust = False,  # noqa: FBT002
) -> None:
    """Explore a run: frames under two mutations, their boxes, curves and the closed loop, at any sensitivity.

    Serves a page on this machine alone until Ctrl-C; the printed address holds the token that opens it.

    \b
    Examples:
        adverse view runs/orchard
        adverse view runs/orchard --port 8000 --open
    """
    import webbrowser

    from adverse.pages.view.app import routes
    from adverse.pages.view.session import ExploredRun
    from adverse.serving import LOOPBACK, open_door, serve

    pages = routes(ExploredRun(folder, trust=trust))
    door, bound = open_door(host, port)
    if host != LOOPBACK:
        typer.echo(
            f"warning: {host} can be reached from other machines; who has the address sees the run", err=True
        )
    typer.echo(f"explorer: {door.address}\nCtrl-C ends it")
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
) -> None:
    """Drive one log in closed loop and write every step as CSV, and a picture of it beside.

    \b
    Example:
        adverse drive runs/orchard --log test/log03 --sut ssd --sensitivity 0.01 -m "haze(visibility_m=97.8)"
    """
    from adverse.analysis.loop import drive_log
    from adverse.report.closed_loop import drive_chart, steps_table, verdict
    from adverse.store.durable import write_file
    from adverse.store.read import finished

    store = finished(folder, results=False)
    driven = drive_log(store, log=log, sut=sut, sensitivity=sensitivity, setting=mutation)
    steps, drawn = steps_table(driven).csv().encode(), drive_chart(driven).svg().encode()
    if out is None:
        table, drawing = store.write({"results/drive.csv": steps, "results/drive.svg": drawn})
    else:
        table, drawing = out, out.with_suffix(".svg")
        write_file(table, steps)
        write_file(drawing, drawn)
    stops = int(driven.by_sut.stopped.sum())
    say(f"{verdict(driven)}; up to {driven.tolerance_m:g} m later is in time")
    say(f"{stops} stops, {driven.by_sut.time_s[-1]:.2f} s, {driven.by_sut.position_m[-1]:.2f} m")
    say(f"every step: {table}\npicture:    {drawing}")


def export(folder: FinishedRun, out: Target, sut: Suts = None, setting: Settings = None) -> None:
    """Write the test frames of a run as COCO results, one file for each SUT and setting, and the truth.

    \b
    Examples:
        adverse export runs/orchard coco
        adverse export runs/orchard coco --sut yolo --setting identity
    """
    from adverse.interop.coco_results import ANNOTATIONS, export_coco

    written = export_coco(folder, out, suts=sut or (), settings=setting or ())
    for results in written:
        failed = f", {len(results.faults)} faults" if results.faults else ""
        unusable = f", {len(results.quarantined)} images could not be used" if results.quarantined else ""
        say(f"{out / results.file}: {results.detections} detections{failed}{unusable}")
    say(f"{out / ANNOTATIONS}: the ground truth")


def _note(words: str) -> None:
    say(f"note: {words}", err=True)

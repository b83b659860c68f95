"""drive: one closed-loop run, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import say

RunPath = Annotated[Path, typer.Argument(help="A run folder with the level loop.")]
LogName = Annotated[str, typer.Option("--log", help="The log to drive.")]
SutName = Annotated[str, typer.Option("--sut", help="The SUT that tells the robot what is there.")]
Level = Annotated[float, typer.Option("--sensitivity", help="Expected false positives per image.")]
Setting = Annotated[str | None, typer.Option("--mutation", "-m", help="[default: un-mutated]")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="[default: drive.csv and .svg in the run]")]


def drive(
    folder: RunPath, log: LogName, sut: SutName, sensitivity: Level, mutation: Setting = None, out: Out = None
) -> None:
    """Drive one log in closed loop and write every step as CSV, and a picture of it beside.

    \b
    Example:
        adverse drive runs/orchard --log test/log03 --sut ssd --sensitivity 0.01 -m "haze(visibility_m=97.8)"
    """
    from adverse.analysis.loop import drive_log
    from adverse.report.closed_loop import drive_chart, steps_table
    from adverse.store.durable import write_file
    from adverse.store.finished import finished

    store = finished(folder, results=False)
    driven = drive_log(store, log=log, sut=sut, sensitivity=sensitivity, setting=mutation)
    steps, drawn = steps_table(driven).csv().encode(), drive_chart(driven).svg().encode()
    if out is None:
        table, drawing = store.write({"results/drive.csv": steps, "results/drive.svg": drawn})
    else:
        table, drawing = out, out.with_suffix(".svg")
        write_file(table, steps)
        write_file(drawing, drawn)
    words = {True: "safe", False: "NOT SAFE", None: "nothing to stop for"}[driven.safe]
    stops = int(driven.by_sut.stopped.sum())
    say(f"{words}: {stops} stops, {driven.by_sut.time_s[-1]:.2f} s, {driven.by_sut.position_m[-1]:.2f} m")
    say(f"every step: {table}\npicture:    {drawing}")

"""The `adverse` command and its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer

import adverse
from adverse.cli import (
    annotate,
    checks,
    data,
    demo,
    depth,
    engines,
    fuzz,
    humans,
    models,
    mutate,
    operation,
    plan,
    plugins,
    results,
    runs,
    sealing,
    start,
    status,
    stylize,
)

HELP = """Find out how a perception system fails before the field does.

\b
    adverse demo                          a whole study on rendered scenes
    adverse data check FOLDER             contents and faults of a data set
    adverse depth DATA OUT                depth from stereo or laser
    adverse annotate DATA --out FOLDER    boxes, ids and 3-D positions
    adverse init DATA MODEL.onnx          a first study, with guesses
    adverse plan study.yaml               what would run
    adverse run study.yaml --out RUN      run it, or resume it
    adverse worker tcp://NODE:8786        join a Dask cluster
    adverse status RUN                    how far a run is, what runs where
    adverse report RUN                    the report, one HTML file
    adverse check RUN rules.yaml          verdicts on your rules, for CI
    adverse operate RUN rules.yaml        the threshold to set
    adverse limits study.yaml             how far conditions may go
    adverse margins study.yaml            how near people are to being lost
    adverse view RUN                      frames, boxes, curves, closed loop
    adverse compare BEFORE AFTER          two runs, paired by log
    adverse history RUN...                one measure over many runs
    adverse bench-table RUN               P, mPC and rPC
    adverse requirements check FILE       requirements: what people tolerate
    adverse verify RUN                    recompute every hash
    adverse seal RUN --key KEY            sign what was tested
    adverse export RUN OUT                detections as COCO results
    adverse list mutations [NAME]         all mutations, or one in full
    adverse mutate in.png out.png --mutation "gaussian_blur(sigma_px=2)"
    adverse stylize DATA OUT              training data in the styles of paintings
    adverse fuzz study.yaml --tests 10000 change what is in the scene
    adverse models list                   real models to try
    adverse predict scores.csv --simple gaussian_blur --contextual defocus
    adverse humans estimate ANSWERS.csv   how much change people tolerate

Exit codes: 0 success, 1 a check failed, 2 cannot run, 3 incomplete, 130 interrupted (run again to resume).
"""

app = typer.Typer(
    invoke_without_command=True,
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,  # noqa: FBT002
) -> None:
    if version:
        typer.echo(adverse.__version__)
        raise typer.Exit


app.add_typer(data.data, name="data")
app.command("init")(start.init)
app.command("plan")(plan.plan)
app.command("run")(runs.run)
app.command("worker")(engines.worker)
app.command("status")(status.status)
app.command("analyze")(runs.analyze)
app.command("report")(results.report)
app.command("check")(checks.check)
app.command("operate")(operation.operate)
app.command("limits")(operation.limits)
app.command("margins")(operation.margins)
app.command("view")(results.view)
app.command("compare")(checks.compare)
app.command("history")(checks.history)
app.command("bench-table")(results.bench_table)
app.add_typer(checks.requirements, name="requirements")
app.command("drive")(results.drive)
app.command("export")(results.export)
app.command("verify")(sealing.verify)
app.command("seal")(sealing.seal)
app.command("list")(plugins.list_known)
app.command("hazards")(plugins.hazards)
app.command("mutate")(mutate.mutate)
app.command("stylize")(stylize.stylize)
app.command("check-plugin")(plugins.check_plugin)
app.command("predict")(results.predict)
app.command("world")(data.world)
app.command("depth")(depth.depth)
app.add_typer(annotate.annotate, name="annotate")
app.add_typer(fuzz.fuzz, name="fuzz")
app.add_typer(models.models, name="models")
app.add_typer(humans.humans, name="humans")
app.command("demo")(demo.demo)

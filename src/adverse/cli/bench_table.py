"""bench-table: P, mPC and rPC of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from adverse.cli.console import Console
from adverse.cli.options import Json
from adverse.errors import EXIT_INCOMPLETE, EXIT_PASS

BenchmarkRun = Annotated[Path, typer.Argument(help="A finished run with the battery coco-c.")]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Detectors: ap, ap50, ap75, ap-small, ap-medium, ap-large, ar1, ar10, ar100, ar-small, "
        "ar-medium, ar-large, voc-ap50, voc-ap50-11. Segmenters: miou, pixel-accuracy. Classifiers: top1, "
        "top5. [default: ap, miou or top1]",
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option("--reference", help="Errors of a reference (CSV: corruption,severity,error), for mCE."),
]
Classes = Annotated[
    list[str] | None,
    typer.Option("--classes", help="Average over this class only; repeatable. [default: all]"),
]
PerClass = Annotated[bool, typer.Option("--per-class", help="Also print every class of every SUT.")]
Partial = Annotated[
    bool, typer.Option("--partial", help="Allow a mean over the corruptions there are; it is not called mPC.")
]
With = Annotated[
    Literal["published"] | None, typer.Option("--with", help="Also show the leaderboard published in 2019.")
]
Quick = Annotated[bool, typer.Option("--no-intervals", help="Leave the intervals out; quicker.")]
CsvPath = Annotated[Path | None, typer.Option("--csv", help="Also write a CSV file.")]
Save = Annotated[
    bool, typer.Option("--save", help="Also write results/benchmark.json and .csv into the run.")
]


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
) -> None:
    """Print the robustness benchmark of a run: P, mPC and rPC of each SUT, and every corruption.

    \b
    Examples:
        adverse bench-table runs/street
        adverse bench-table runs/street --metric voc-ap50 --per-class
        adverse bench-table runs/street --classes person --with published
        adverse bench-table runs/street --json --save
    """
    from adverse.benchmarks.mpc import comparable
    from adverse.benchmarks.table import as_csv, as_data
    from adverse.benchmarks.table import bench_table as work_out
    from adverse.benchmarks.table import save as save_in
    from adverse.report.benchmark import (
        benchmark_remarks,
        corruption_error_lines,
        in_terminal,
        published_tables,
    )
    from adverse.store.durable import write_file
    from adverse.store.read import finished

    others = comparable(metric or "ap") if published else None
    store = finished(folder, results=False)
    table = work_out(
        store, metric=metric, classes=classes or (), partial=partial, with_intervals=not no_intervals
    )
    if as_json:
        typer.echo(json.dumps(as_data(table, others), indent=1))
    else:
        console = Console()
        data = as_data(table)
        for shown in (*in_terminal(data, by_class=per_class), *published_tables(others or ())):
            console.print(shown.terminal(details=True))
        for line in (*benchmark_remarks(table), *corruption_error_lines(table, reference)):
            console.say(line)
    if csv is not None:
        write_file(csv, as_csv(table).encode())
    if save:
        for file in save_in(table, store):
            typer.echo(f"written: {file}", err=True)
    raise typer.Exit(EXIT_PASS if table.status == "ok" else EXIT_INCOMPLETE)

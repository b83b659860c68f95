"""Arguments and options that several commands take, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from adverse.plugins import Registry

FinishedRun = Annotated[Path, typer.Argument(help="A finished run folder.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", min=0, help="Worker processes; 0: in this one. [default: all cores]"),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Throw away what was done before and start over.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Run the plug-ins named in the run's study: its levels, metrics and frames may need them.",
    ),
]
DataPath = Annotated[Path, typer.Argument(metavar="PATH", help="The data set's folder, or a study file.")]
DataFormat = Annotated[
    str | None, typer.Option("--format", help="Its format. [default: recognized by its folders]")
]
DataOptions = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="As in the study's data section: split={test: val}; repeatable."),
]
FormatPlugins = Annotated[
    list[Path] | None, typer.Option("--plugin", help="A file that adds formats; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Host = Annotated[
    str, typer.Option("--host", help="Where to listen; others than 127.0.0.1 open it to a network.")
]
Port = Annotated[int, typer.Option("--port", "-p", help="0: any that is free.")]


def trusted_plugins(folder: Path) -> Registry:
    """Load the plug-ins that the study of a run names."""
    from adverse.report.pictures import Looker
    from adverse.store.read import finished

    return Looker(finished(folder, results=False), trust=True).registry

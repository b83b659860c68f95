"""Arguments and options that several commands take, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from adverse.plugins import Registry


def at_hand(context: typer.Context, place: Path | None) -> Path | None:
    """Return a run folder of this machine; of one on an object store a copy, until the command ends."""
    return _at_hand(context, place)


def to_write(context: typer.Context, place: Path | None) -> Path | None:
    """Return a run folder to run in, as `at_hand`; what is written is on the store before it counts."""
    return _at_hand(context, place, writing=True, new=True)


def to_plan(context: typer.Context, place: Path | None) -> Path | None:
    """Return a run folder that need not be there yet, as `at_hand`."""
    return _at_hand(context, place, new=True)


def fetched_anew(context: typer.Context, place: Path | None) -> Path | None:
    """Return a run folder whose every file was fetched just now, as `at_hand`."""
    return _at_hand(context, place, anew=True)


def _at_hand(
    context: typer.Context,
    place: Path | None,
    *,
    writing: bool = False,
    new: bool = False,
    anew: bool = False,
) -> Path | None:
    if place is None or ":/" not in str(place):
        return place
    from adverse.remote_files import is_url, named_path

    if not is_url(place):
        return named_path(place)
    from adverse.store.replica import working_copy

    return context.with_resource(working_copy(place, writing=writing, new=new, anew=anew, note=_note))


def each_at_hand(context: typer.Context, places: list[Path]) -> list[Path]:
    """Return run folders of this machine, as `at_hand`."""
    return [at_hand(context, place) or place for place in places]


def _note(text: str) -> None:
    typer.echo(f"- {text}", err=True)


FinishedRun = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a finished run.", callback=at_hand)
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "-w",
        min=0,
        help="Worker processes; 0 runs in this one, where nothing ends what hangs. [default: all cores]",
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Discard earlier work and start over.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Run the plug-ins named in the run's study: its levels, metrics and frames may need them.",
    ),
]
DataPath = Annotated[Path, typer.Argument(metavar="PATH", help="The data set's folder, or a study file.")]
DataFormat = Annotated[
    str | None, typer.Option("--format", help="The format. [default: recognized by its files]")
]
DataOptions = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="An option of the format, such as split={test: val}; repeatable."),
]
FormatPlugins = Annotated[
    list[Path] | None, typer.Option("--plugin", help="A plug-in file with more formats; repeatable.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print errors only; the exit code says how it went.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Host = Annotated[
    str,
    typer.Option(
        "--host", help="Address to listen on; any but 127.0.0.1 can be reached from other machines."
    ),
]
Port = Annotated[int, typer.Option("--port", "-p", help="Port to listen on; 0 takes a free one.")]


def trusted_plugins(folder: Path) -> Registry:
    """Load the plug-ins that the study of a run names."""
    from adverse.report.pictures import Looker
    from adverse.store.finished_run import finished
    from adverse.store.seals import EVERYTHING

    store = finished(folder, rewrites=EVERYTHING, selected=("until", "margins"))
    return Looker(store, trust=True).registry

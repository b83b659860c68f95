"""demo: a whole study with nothing of one's own, on rendered scenes or on a few real photographs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import Console, rendering
from adverse.cli.options import Json, Quiet, Workers
from adverse.cli.runs import run_and_show

Folder = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="The folder for models, study and run. [default: demo, demo-full or demo-real]"
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full", help="The battery field-2021, four detectors, 160 logs: under an hour on two cores."
    ),
]
Real = Annotated[
    bool, typer.Option("--real", help="Real detectors and photographs, from packages of the index.")
]


def demo(
    out: Folder = None,
    workers: Workers = None,
    full: Full = False,  # noqa: FBT002
    real: Real = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Run a whole study on a rendered orchard.

    Three bundled detectors drive 80 logs, as they are and under nine mutations; the results are printed. Give
    the same command again to go on after an interruption.

    \b
    Examples:
        adverse demo
        adverse demo --full --out demo-full
        adverse demo --real

    With --real, pre-trained detectors are tried on the few photographs that packages of the index hold under
    free licences.
    """
    if full and real:
        raise typer.BadParameter("--full and --real are two demos; give one of them")
    if real:
        raise typer.Exit(_real(out or Path("demo-real"), workers, quiet=quiet, as_json=as_json))
    raise typer.Exit(_orchard(out, workers, full=full, quiet=quiet, as_json=as_json))


def _orchard(out: Path | None, workers: int | None, *, full: bool, quiet: bool, as_json: bool) -> int:
    from adverse.data.rendered import rendered
    from adverse.study import demo as demos
    from adverse.study.spec import read_study

    chosen = demos.FULL if full else demos.QUICK
    folder, console = out or Path(chosen.name), Console(quiet=quiet or as_json)
    study, run = demos.write_demo(chosen, folder), folder / "run"
    console.say("an orchard is rendered on first use (synthetic: it shows the machinery, not any product)")
    started = time.monotonic()
    if demos.reads_demo_data(chosen, study):
        with rendering(console) as watch:
            rendered(
                "orchard", dict(chosen.logs), demos.SIZE, demos.SEED, demos.NOISE, right=False, watch=watch
            )
        console.say(f"- {sum(chosen.logs.values())} logs are there, after {time.monotonic() - started:.0f} s")
    code = run_and_show(read_study(study), run, workers, quiet=quiet, as_json=as_json)
    _say_next(console, study, run)
    console.say(f"all of it took {time.monotonic() - started:.0f} s")
    return code


def _real(out: Path, workers: int | None, *, quiet: bool, as_json: bool) -> int:
    from adverse.study.photographs import write_real_demo
    from adverse.study.spec import read_study

    console = Console(quiet=quiet or as_json)
    study, run = write_real_demo(out, tell=console.say), out / "run"
    code = run_and_show(read_study(study), run, workers, quiet=quiet, as_json=as_json)
    _say_next(console, study, run)
    return code


def _say_next(console: Console, study: Path, run: Path) -> None:
    console.say(f"every table: adverse analyze {run} --tables")
    console.say(f"change {study}, then: adverse run {study} --out {run}")

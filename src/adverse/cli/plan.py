"""plan: what a study would run, and how long that takes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from adverse.cli.console import Console, reading, show_error, under_way
from adverse.cli.options import Json, Workers, to_plan
from adverse.errors import EXIT_CANNOT_RUN, EXIT_PASS
from adverse.text import counted, duration

if TYPE_CHECKING:
    from adverse.study.job import SutTask
    from adverse.study.plan import StudyPlan
    from adverse.study.time_estimate import TimeEstimate

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file (YAML).")]
OUT = "The run folder, or its URL (s3://...). [default: runs/NAME beside the study]"
PlannedOut = Annotated[Path | None, typer.Option("--out", "-o", help=OUT, callback=to_plan)]
Estimate = Annotated[
    bool, typer.Option("--estimate/--no-estimate", help="Run a few images to estimate the time.")
]


def plan(
    study: StudyPath,
    out: PlannedOut = None,
    workers: Workers = None,
    estimate: Estimate = True,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Print what a study would run, and how long it would take.

    It also says what is already done, and what cannot run and why. The time is estimated from a few images
    that are run for it.

    \b
    Examples:
        adverse plan study.yaml
        adverse plan study.yaml --workers 4 --no-estimate --json
    """
    begun = monotonic()
    from adverse.mutations.settings import swept
    from adverse.processes import all_cores
    from adverse.study.run import plan_study
    from adverse.study.spec import read_study
    from adverse.study.time_estimate import estimate_time

    file = read_study(study)
    folder = out or default_folder(file.folder, file.study.name)
    console = Console(quiet=as_json)
    with reading(console):
        made = plan_study(file, folder)
    prepared_s = monotonic() - begun  # a run reads data and SUTs, too
    crew = (all_cores() if workers is None else workers) or 1
    made = _sizes_found(made, crew, console) if estimate and not made.blocked else made
    total, to_do = made.pictures(made.units), made.pictures(made.to_do)
    with under_way(console, "running a few images to estimate the time"):
        time = estimate_time(made, workers=crew) if estimate else None
    if as_json:
        facts = {
            "study": file.study.name,
            "folder": str(folder),
            "logs": len(made.dataset.logs),
            "frames": {split: made.frames(split) for split in ("validation", "test")},
            "settings": [setting.id for setting in made.job.settings],
            "suts": {task.name: task.fingerprint for task in made.job.suts},
            "batches": {
                task.name: None if task.name in made.open_batches else task.batch for task in made.job.suts
            },
            "unit_frames": made.unit_frames or made.file.unit_frames,
            "images": {"planned": total, "done": total - to_do, "to_do": to_do},
            "seconds": None if time is None else time.seconds,
            "seconds_with_results": None if time is None else prepared_s + time.with_results_s,
            "changed": list(made.again),
            "warnings": list(made.warnings),
            "problems": [{"what": error.what, **dict(error.details())} for error in made.blocked],
        }
        typer.echo(json.dumps(facts, indent=1))
        raise typer.Exit(EXIT_CANNOT_RUN if made.blocked else EXIT_PASS)
    groups = Counter(setting.group for setting in made.job.settings)
    left = made.to_do
    say = console.say
    say(f"study     {file.study.name}, seed {file.study.seed}, into {folder}")
    say(
        f"data      {file.study.data.format} {made.dataset.name}: {counted(len(made.dataset.logs), 'log')}, "
        f"{made.frames('validation')} validation and {made.frames('test')} test frames"
    )
    for note, count in made.dataset.notes.items():
        say(f"          {count} x {note}")
    say(f"mutations {len(made.job.settings) - 1}: {groups['mild']} mild, {groups['severe']} severe")
    for line in swept(made.job.settings[1:]):
        say(f"          {line}")
    for task in made.job.suts:
        batch = _batch_words(made, task)
        say(f"sut       {task.name}: {task.adapter}, fingerprint {task.fingerprint[:12]}{batch}")
    say(
        f"work      {total} images to judge, {total - to_do} done, {to_do} to do in {len(left)} units"
        + _size_words(made)
    )
    for line in (*_depth_work(made), *(f"changed   {change}" for change in made.again)):
        say(line)
    if time is not None or (estimate and left and not made.blocked):
        say(f"time      {time_words(time, prepared_s)}")
    for warning in made.warnings:
        say(f"warning   {warning}")
    for problem in made.blocked:
        show_error(problem)
    raise typer.Exit(EXIT_CANNOT_RUN if made.blocked else EXIT_PASS)


def _sizes_found(made: StudyPlan, workers: int, console: Console) -> StudyPlan:
    """Return a plan with the sizes of batches and units that the study leaves open, tried here."""
    from adverse.study.batch_trial import settle_batches
    from adverse.study.engines import Silent, Stop
    from adverse.study.engines.local import LocalEngine
    from adverse.study.unit_size import settle_unit_frames

    with under_way(console, "looking for the sizes of batches and units"), TemporaryDirectory() as logs:
        made = settle_batches(made, {}, LocalEngine(1, Path(logs)), watch=Silent(), stop=Stop())
        return made if made.unit_frames else settle_unit_frames(made, {}, workers=workers)


def _size_words(made: StudyPlan) -> str:
    return "" if made.unit_frames is None else f" of up to {counted(made.unit_frames, 'frame')}"


def _batch_words(made: StudyPlan, task: SutTask) -> str:
    """Say how many images a SUT is shown at once, where the study leaves that open."""
    if task.name in made.open_batches:
        return ", batch auto (a run finds it)"
    if not made.batch_trials.get(task.name):
        return ""
    return f", batch {task.batch} ({'as begun' if made.done else 'here; a run tries where it runs'})"


def default_folder(study_folder: Path, name: str) -> Path:
    """Return where a study runs that says no place."""
    return study_folder / "runs" / name


def time_words(time: TimeEstimate | None, before_s: float = 0.0) -> str:
    """Say how long the images take, and the whole, of which `before_s` go before them."""
    if time is None:
        return "not known: a sample of two images did not end within half a minute"
    whole = duration(before_s + time.with_results_s)
    return (
        f"about {duration(time.seconds)} for the images with {counted(time.workers, 'worker')} (by a timed "
        f"sample of {time.images}); {whole} with results and report"
    )


def _depth_work(made: StudyPlan) -> list[str]:
    """Say how many mutated stereo pairs depth is still to be computed from."""
    if not made.job.localizes_on_mutated:
        return []
    pairs = sum(
        len({cell.setting for cell in unit.cells} - {0})
        * sum(frame.right_depth_m is not None for frame in unit.frames)
        for unit in made.to_do
    )
    if not pairs:
        return []
    return [f"depth     computed again from {pairs} mutated stereo pairs (localize_on: mutated)"]

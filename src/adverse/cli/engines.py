"""Where work is done: the options of commands that run SUTs, and `worker`, which joins a cluster."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from adverse.errors import StudyError
from adverse.remote_files import is_url

if TYPE_CHECKING:
    from adverse.study.engines import Engine
    from adverse.study.spec import StudyFile

EngineName = Annotated[
    Literal["local", "dask"],
    typer.Option("--engine", help="Where: worker processes here, or the workers of a Dask cluster."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="Address of a running Dask cluster, such as tcp://node1:8786. [default with --engine dask: one "
        "is started here]",
    ),
]


def worker(
    scheduler: Annotated[str, typer.Argument(help="Address of the Dask scheduler.")],
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, help="Processes. [default: all cores]")
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", min=1, help="GPUs to use; workers are shared among them."),
    ] = None,
    local_directory: Annotated[
        Path | None,
        typer.Option("--local-directory", help="Where it writes. [default: a temporary folder]"),
    ] = None,
) -> None:
    """Join a Dask cluster with this machine, until the scheduler ends.

    Runs of any study can use it, those under way too. Data, models and plug-ins must be under the same paths
    as where `adverse run` is given, and the versions the same.

    \b
    Examples:
        dask scheduler                                   # on one machine
        adverse worker tcp://node1:8786                  # on each machine
        adverse worker tcp://node1:8786 --gpus 2 -w 16   # 8 processes feed each GPU
        adverse run study.yaml --scheduler tcp://node1:8786
    """
    from adverse.processes import all_cores, run_side_by_side

    _need_dask()
    count = all_cores() if workers is None else workers
    command = [
        *(sys.executable, "-m", "distributed.cli.dask_worker", scheduler),
        *("--memory-limit", "0", "--no-dashboard"),
        *(() if local_directory is None else ("--local-directory", str(local_directory))),
    ]
    if gpus is None:
        os.execv(sys.executable, [*command, "--nworkers", str(count), "--nthreads", "1"])  # noqa: S606 - no shell
    devices = _devices(gpus)
    lanes = max(count // gpus, 1)
    command += ["--nworkers", "1", "--nthreads", str(lanes), "--resources", f"GPU={lanes}"]
    own = [{"CUDA_VISIBLE_DEVICES": device} for device in devices]
    raise typer.Exit(run_side_by_side([command] * gpus, own))


def _devices(gpus: int) -> list[str]:
    """Return what CUDA calls so many GPUs: the first of those that this process may use."""
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = list(map(str, range(gpus))) if allowed is None else allowed.replace(" ", "").split(",")[:gpus]
    if len(list(filter(None, devices))) < gpus:
        raise StudyError(
            "more GPUs are wanted than this process may use",
            where="--gpus",
            got=f"CUDA_VISIBLE_DEVICES={allowed}",
            wanted=f"{gpus} GPUs",
            fix="Ask for fewer, or let the variable name more.",
        )
    return devices


@contextlib.contextmanager
def open_engine(
    file: StudyFile, logs: Path, workers: int | None, engine: str = "local", scheduler: str | None = None
) -> Iterator[Engine]:
    """Give the engine that options ask for; `file` says what every machine must see."""
    from adverse.processes import all_cores
    from adverse.study.engines.local import InlineEngine, LocalEngine

    count = all_cores() if workers is None else workers
    if engine == "local" and scheduler is None:
        yield LocalEngine(count, logs) if count else InlineEngine()
        return
    _refuse_unused(workers, scheduler)
    _need_dask()
    from adverse.study.engines.dask import DaskEngine

    root = (file.study.data.model_extra or {}).get("root")
    here = isinstance(root, str) and not is_url(root)
    paths = [file.folder, *([file.folder / str(root)] if here else [])]
    with DaskEngine(scheduler, count, paths=paths) as dask:
        yield dask


def _refuse_unused(workers: int | None, scheduler: str | None) -> None:
    if scheduler is not None and workers is not None:
        raise StudyError(
            "--workers is for work on this machine",
            got=f"--workers {workers} with --scheduler {scheduler}",
            fix="Leave it out: a cluster has the workers that it has (adverse worker ADDRESS adds some).",
        )
    if workers == 0:
        raise StudyError("a Dask cluster without workers does nothing", got="--workers 0", wanted="1 or more")


def _need_dask() -> None:
    if find_spec("distributed") is None:
        raise StudyError(
            "Dask is not installed",
            got="no package named distributed",
            fix="pip install 'adverse[dask]'",
        )

"""demo: a whole study on a fresh machine, with nothing downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.runs import Workers, run_and_show

Folder = Annotated[Path, typer.Option("--out", "-o", help="Where data, study and run are written.")]
LOGS = 12
SEED = 1
STUDY = """\
name: demo
seed: 7
data: {format: folder, root: data, split: {validation: val, test: test}}
suts:
  - {name: blobs, adapter: contrast-blobs}
  - {name: hog, adapter: opencv-hog}
mutations: [first-look, first-look-depth]
levels: [image]
"""


def demo(out: Folder = Path("demo"), workers: Workers = None) -> None:
    """Draw a small data set, run a study on it, and print what came out.

    \b
    Example:
        adverse demo --out demo
    """
    from adverse.data.drawn import draw_logs

    data = out / "data"
    if not (data / "truth.json").exists():
        typer.echo(
            f"drawing {2 * LOGS} logs into {data} (synthetic: they show the machinery, not any product)"
        )
        draw_logs(data, logs=LOGS, seed=SEED)
    study = out / "study.yaml"
    if not study.exists():
        study.write_text(STUDY)
    run = out / "run"
    code = run_and_show(study, run, workers)
    typer.echo(f"the study file: {study}\nlook next at:   {run}/results, or change the study and run")
    typer.echo(f"                adverse run {study} --out {run}")
    raise typer.Exit(code)

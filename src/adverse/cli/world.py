"""world: rendered data sets, written to disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from adverse.cli.console import Console, rendering
from adverse.errors import StudyError

Name = Annotated[Literal["orchard", "street"], typer.Argument(help="Which world.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; must not exist yet.")]
Logs = Annotated[int, typer.Option("--logs", min=4, help="How many, cut 1:1:2 into train, validation, test.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Another seed, another world.")]
Size = Annotated[str, typer.Option("--size", help="WIDTHxHEIGHT in pixels.")]
PoseNoise = Annotated[
    float,
    typer.Option("--pose-noise-mm", min=0, max=1000, help="Noise of recorded positions; RTK: about 20."),
]
Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, help="Logs at once. [default: all cores]")
]


def world(
    name: Name,
    out: Target,
    logs: Logs = 40,
    seed: Seed = 1,
    size: Size = "640x480",
    pose_noise_mm: PoseNoise = 0.0,
    workers: Workers = None,
) -> None:
    """Render a synthetic data set: stereo images, depth, labels, boxes, poses, in the `folder` layout.

    \b
    Example:
        adverse world orchard data/orchard --logs 40 --seed 1
    """
    from adverse.data.worlds.writing import WorldSpec, shared_out, write_world
    from adverse.processes import all_cores

    if out.exists():
        raise StudyError(
            "the folder is there already", where=str(out), fix="Give another name, or remove it."
        )
    spec = WorldSpec(name, shared_out(logs), *_pixels(size), seed, pose_noise_mm)
    with rendering(Console(stderr=True)) as watch:
        frames = write_world(out, spec, workers=workers or all_cores(), watch=watch)
    typer.echo(f"{frames} frames in {logs} logs (synthetic) in {out}; to read them in a study:")
    typer.echo(f"data: {{format: folder, root: {out}, split: {{validation: validation, test: test}}}}")


def _pixels(text: str) -> tuple[int, int]:
    size = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    if size is None:
        raise StudyError("the size is not understood", got=text, wanted="WIDTHxHEIGHT, such as 640x480")
    return int(size[1]), int(size[2])

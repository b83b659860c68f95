"""init: a first study from a data set and a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import Console, say
from adverse.cli.options import Json, Quiet

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="The folder of the data set, or its annotation file.")
]
Model = Annotated[
    Path | None,
    typer.Argument(metavar="MODEL", help="An ONNX model, or a name of adverse models list. [default: HOG]"),
]
StudyOut = Annotated[Path, typer.Option("--out", "-o", help="The study file to write.")]


def init(
    data: Data,
    model: Model = None,
    out: StudyOut = Path("study.yaml"),
    quiet: Quiet = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Write a first study for a data set and a model.

    Format, decoder, classes, and what the data supports are guessed; the study says what was assumed.

    \b
    Examples:
        adverse init data/coco models/ours.onnx
        adverse init data/VOC2007 --out voc.yaml
        adverse init walk.mp4 yolov4-tiny

    Where the model does not say how images are preprocessed (letterboxed or stretched, RGB or BGR, which
    scale), the usual ways are tried on labelled images and the best is taken; the study lists their scores.

    Check the picture it draws: ground truth is white (where there is any), detections are orange.
    """
    from adverse import plugins
    from adverse.study.starter import starter, write_starter

    made = starter(data, model, out.resolve().parent, plugins.load())
    picture = out.with_suffix(".png")
    write_starter(made, out, picture)
    drawn = None if made.picture is None else picture
    if as_json:
        written = {"study": str(out), "assumed": list(made.assumed), "picture": drawn and str(drawn)}
        say(json.dumps(written, indent=1))
        return
    console = Console(quiet=quiet)
    console.say(f"{out} is written. Assumed:")
    for line in made.assumed:
        console.say(f"- {line}")
    if drawn is not None:
        console.say(f"check {drawn}: {made.legend}")
    console.say(f"then:   adverse run {out}")

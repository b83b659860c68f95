"""fuzz: change what is in a scene, and its right answer with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

HELP = """Change what is in a scene, and its right answer with it, to find failures.

\b
    adverse fuzz resources FOLDER         the objects that can be put into scenes
"""
fuzz = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Place = Annotated[Path, typer.Argument(metavar="PATH", help="The data set's folder, or a study file.")]
Sheet = Annotated[Path | None, typer.Option("--sheet", help="Draw cut-outs on a sheet: this PNG file.")]
Count = Annotated[int, typer.Option("--count", min=1, max=2000, help="Cut-outs on the sheet.")]
Format = Annotated[str | None, typer.Option("--format", help="What it is. [default: told by its folders]")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="As in the study's data section: split={test: val}; repeatable."),
]
Cache = Annotated[
    Path | None, typer.Option("--cache", help="Where sets are kept. [default: ~/.cache/adverse]")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
PluginFiles = Annotated[
    list[Path] | None, typer.Option("--plugin", help="A file that adds formats; repeatable.")
]


@fuzz.command("resources")
def resources(
    path: Place,
    sheet: Sheet = None,
    count: Count = 60,
    format_name: Format = None,
    option: Options = None,
    cache: Cache = None,
    as_json: Json = False,  # noqa: FBT002
    plugin: PluginFiles = None,
) -> None:
    """Cut the objects out of a data set with labels and instances, and say what can be done with them.

    The first time takes about as long as reading the data; the set is kept, by content, and found again.

    \b
    Examples:
        adverse fuzz resources data/cityscapes -o "split={test: val}"
        adverse fuzz resources data/cityscapes --sheet cutouts.png
        adverse fuzz resources study.yaml --json
    """
    from adverse import plugins
    from adverse.cli.data import read_place
    from adverse.data.write import write_image
    from adverse.semantic import Resources
    from adverse.semantic.inspecting import cutout_sheet, facts, words
    from adverse.user_cache import user_cache

    dataset, _, title = read_place(path, format_name, option or [], plugins.load(plugin or ()))
    with Console(stderr=True).status("cutting out") as status:
        found = Resources.build(
            dataset,
            cache or user_cache("resources"),
            watch=lambda done, of: status.update(f"cut out {done} of {of} frames"),
        )
    if sheet is not None:
        write_image(sheet, cutout_sheet(found, count=count))
    if as_json:
        typer.echo(json.dumps(facts(found), indent=1))
        return
    for line in (title, *words(found)):
        typer.echo(line)

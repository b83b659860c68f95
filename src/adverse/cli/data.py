"""data: what is in a data set, before a study is made of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from adverse.cli.console import say
from adverse.cli.options import DataFormat, DataOptions, DataPath, FormatPlugins, Json
from adverse.errors import EXIT_GATE_FAILED, StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adverse.plugins import Registry
    from adverse.types import Dataset

HELP = """Look at a data set before a study is made of it.

\b
    adverse data check FOLDER
"""
data = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Everything = Annotated[bool, typer.Option("--all", help="Decode every image, not a sample of 100.")]


@data.command("check")
def check_data(
    path: DataPath,
    format_name: DataFormat = None,
    option: DataOptions = None,
    everything: Everything = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
    plugin: FormatPlugins = None,
) -> None:
    """Read a data set and say what is in it, what it can be used for, and what is wrong with it.

    \b
    Examples:
        adverse data check data/VOC2007
        adverse data check data/kitti -o difficulty=moderate --all
        adverse data check data/coco --format coco -o annotations=val.json --json
        adverse data check study.yaml

    Exit code 0: usable; 1: something would stop a study or leave it incomplete; 2: cannot be read.
    """
    from adverse import plugins
    from adverse.data.check import check
    from adverse.data.check_text import words

    registry = plugins.load(plugin or ())
    dataset, section, title = read_place(path, format_name, option or [], registry)
    console = Console(stderr=True)
    with console.status("looking") as status:
        found = check(
            dataset,
            registry.all("mutation"),
            everything=everything,
            watch=lambda done, of: status.update(f"decoded {done} of {of} frames"),
        )
    if as_json:
        typer.echo(json.dumps({**_plain(found), "data": section, "usable": found.usable}, indent=1))
    else:
        for line in words(found, title, section):
            say(line)
    if not found.usable:
        raise typer.Exit(EXIT_GATE_FAILED)


def read_place(
    path: Path, format_name: str | None, given: list[str], registry: Registry
) -> tuple[Dataset, Mapping[str, Any] | None, str]:
    """Return the data set, the data section that reads it, and a title for it."""
    from adverse import plugins
    from adverse.data.formats import guess, guessed_options, read_format
    from adverse.study.plan import read_dataset
    from adverse.study.spec import read_study

    if format_name is None and path.suffix in (".yaml", ".yml") and _is_study(path):
        file = read_study(path)
        study_registry = plugins.load(file.plugin_files) if file.plugin_files else registry
        return read_dataset(file, study_registry), None, f"The data of {path} ({file.study.data.format})"
    if format_name is None:
        guessed = guess(path, registry.all("dataset"))
        reader, options, how = guessed.format, guessed.options, "recognized by its folders"
    else:
        reader = registry.get("dataset", format_name, where="--format")
        options, how = guessed_options(reader, path), "as given"
    section = {**options, **_given(given)}
    bound = plugins.bind(reader, section, where="--option")
    title = f"{reader.name}, {how}: {path}"
    return read_format(reader, bound, where=str(path)), {"format": reader.name, **section}, title


def _given(options: list[str]) -> dict[str, Any]:
    import yaml

    found = {}
    for text in options:
        name, equals, value = text.partition("=")
        try:
            found[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            fix = "Quote it."
            raise StudyError("an option is not understood", where="--option", got=text, fix=fix) from error
        if not equals:
            fix = "Write it as boxes=polygons, or split={test: val}."
            raise StudyError("an option has no value", where="--option", got=text, fix=fix)
    return found


def _is_study(path: Path) -> bool:
    """Tell a study from the YAML file of a data set: a study has a data section."""
    from adverse.strict_yaml import read_yaml

    read = read_yaml(path).data
    return isinstance(read, dict) and "data" in read


def _plain(found: Any) -> dict[str, Any]:
    """Return the facts as plain values, named tuples as mappings."""
    return {field.name: _mapping(getattr(found, field.name)) for field in dataclasses.fields(found)}


def _mapping(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {key: _mapping(item) for key, item in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_mapping(item) for item in value]
    return value

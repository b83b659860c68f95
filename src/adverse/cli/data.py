"""data check and world: what is in a data set, and rendered ones written to disk."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from adverse.cli.console import Console, rendering, say
from adverse.cli.options import DataFormat, DataOptions, DataPath, FormatPlugins, Json, Quiet
from adverse.errors import EXIT_GATE_FAILED, StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adverse.plugins import Registry
    from adverse.types import Dataset

HELP = """Inspect a data set before it is used in a study.

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
    """Print what a data set holds, supports and gets wrong.

    \b
    Examples:
        adverse data check data/VOC2007
        adverse data check data/kitti -o difficulty=moderate --all
        adverse data check data/coco --format coco -o annotations=val.json --json
        adverse data check study.yaml

    Exit codes: 0 usable, 1 a study would stop or be incomplete, 2 cannot be read.
    """
    from adverse import plugins
    from adverse.data.check import check
    from adverse.data.check_text import words
    from adverse.study.pair_check import doubtful_pairs

    registry = plugins.load(plugin or ())
    dataset, section, title = read_place(path, format_name, option or [], registry)
    console = Console(stderr=True)
    with console.status("looking") as status:
        facts = check(
            dataset,
            registry.all("mutation"),
            everything=everything,
            watch=lambda done, of: status.update(f"decoded {done} of {of} frames"),
            more_doubts=doubtful_pairs(dataset),
        )
    if as_json:
        typer.echo(json.dumps({**_plain(facts), "data": section, "usable": facts.usable}, indent=1))
    else:
        for line in words(facts, title, section):
            say(line)
    if not facts.usable:
        raise typer.Exit(EXIT_GATE_FAILED)


def read_place(
    path: Path, format_name: str | None, given: list[str], registry: Registry
) -> tuple[Dataset, Mapping[str, Any] | None, str]:
    """Return the data set, the data section that reads it, and a title for it."""
    from adverse import plugins
    from adverse.data.formats import guess, guessed_options, read_format
    from adverse.data.video_file import SUFFIXES
    from adverse.study.plan import read_dataset
    from adverse.study.spec import read_study

    if format_name is None and path.suffix in (".yaml", ".yml") and _is_study(path):
        file = read_study(path)
        study_registry = plugins.load(file.plugin_files) if file.plugin_files else registry
        return read_dataset(file, study_registry), None, f"The data of {path} ({file.study.data.format})"
    if format_name is None:
        guessed = guess(path, registry.all("dataset"))
        reader, options, how = guessed.format, guessed.options, "recognized by its folders"
        if path.suffix.lower() in SUFFIXES and path.is_file():
            how = "recognized by its name"
        if guessed.elsewhere:
            how = f"found at {guessed.elsewhere}"
    else:
        reader = registry.get("dataset", format_name, where="--format")
        options, how = guessed_options(reader, path, given), "as given"
    section = {**options, **_given(given)}
    bound = plugins.bind(reader, section, where="--option")
    title = f"{reader.name}, {how}: {path}"
    return read_format(reader, bound, where=str(path)), {"format": reader.name, **section}, title


def _given(options: list[str]) -> dict[str, Any]:
    import yaml

    parsed = {}
    for text in options:
        name, equals, value = text.partition("=")
        try:
            parsed[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            fix = "Quote it."
            raise StudyError("an option is not valid YAML", where="--option", got=text, fix=fix) from error
        if not equals:
            fix = "Write it as boxes=polygons, or split={test: val}."
            raise StudyError("an option has no value", where="--option", got=text, fix=fix)
    return parsed


def _is_study(path: Path) -> bool:
    """Tell a study from the YAML file of a data set: a study has a data section."""
    from adverse.strict_yaml import read_yaml

    read = read_yaml(path).data
    return isinstance(read, dict) and "data" in read


def _plain(facts: Any) -> dict[str, Any]:
    """Return the facts as plain values, named tuples as mappings."""
    return {field.name: _mapping(getattr(facts, field.name)) for field in dataclasses.fields(facts)}


def _mapping(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {key: _mapping(item) for key, item in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_mapping(item) for item in value]
    return value


Name = Annotated[
    Literal["orchard", "street"], typer.Argument(metavar="WORLD", help="Which world: orchard or street.")
]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; must not exist yet.")]
Logs = Annotated[
    int, typer.Option("--logs", min=4, help="Number of logs, split 1:1:2 into train, validation and test.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed of the world.")]
Size = Annotated[str, typer.Option("--size", help="WIDTHxHEIGHT in pixels.")]
Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, help="Logs rendered at once. [default: all cores]")
]


PoseNoise = Annotated[
    float,
    typer.Option("--pose-noise-mm", min=0, max=1000, help="Noise of recorded positions; RTK: about 20."),
]
DisparityNoise = Annotated[
    float,
    typer.Option(
        "--disparity-noise-px", min=0, max=10, help="Noise of recorded depth; stereo matching: about 0.25."
    ),
]


def world(
    name: Name,
    out: Target,
    logs: Logs = 40,
    seed: Seed = 1,
    size: Size = "640x480",
    pose_noise_mm: PoseNoise = 0.0,
    disparity_noise_px: DisparityNoise = 0.0,
    workers: Workers = None,
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Render a synthetic data set.

    Stereo images, depth, labels, boxes and poses, in the layout of the `folder` format.

    \b
    Example:
        adverse world orchard data/orchard --logs 40 --seed 1
    """
    from adverse.data.worlds.writing import WorldSpec, shared_out, write_world
    from adverse.processes import all_cores

    if out.exists():
        raise StudyError("the folder already exists", where=str(out), fix="Give another name, or remove it.")
    noise = pose_noise_mm, disparity_noise_px
    spec = WorldSpec(name, shared_out(logs), *_pixels(size), seed, *noise)
    with rendering(Console(stderr=True, quiet=quiet)) as watch:
        frames = write_world(out, spec, workers=workers or all_cores(), watch=watch)
    if quiet:
        return
    typer.echo(f"{frames} frames in {logs} logs (synthetic) in {out}; to read them in a study:")
    typer.echo(f"data: {{format: folder, root: {out}, split: {{validation: validation, test: test}}}}")


def _pixels(text: str) -> tuple[int, int]:
    size = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    if size is None:
        raise StudyError("the size cannot be read", got=text, wanted="WIDTHxHEIGHT, such as 640x480")
    return int(size[1]), int(size[2])

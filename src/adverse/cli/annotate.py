"""annotate: a page to put boxes, ids and places on the frames of a data set, and their export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from adverse.cli.console import say
from adverse.cli.data import read_place
from adverse.cli.options import DataFormat, DataOptions, FormatPlugins, Port
from adverse.text import counted

if TYPE_CHECKING:
    from adverse.types import Dataset

DataFolder = Annotated[Path, typer.Argument(metavar="DATA", help="The data set's folder; it is only read.")]
Out = Annotated[
    Path, typer.Option("--out", "-O", help="The folder of annotations; an earlier one is gone on with.")
]
Class = Annotated[
    list[str] | None,
    typer.Option("--class", help="A class besides those of the data; repeatable. [default: person if none]"),
]
Offset = Annotated[
    float | None,
    typer.Option("--offset-px", help="Principal point, right minus left camera. [default: camera.json]"),
]
Browse = Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser.")]
Annotations = Annotated[Path, typer.Argument(metavar="ANNOTATIONS", help="The folder of annotations.")]
Target = Annotated[
    Path,
    typer.Argument(metavar="OUT", help="The folder (format coco: the file) to write; must not exist yet."),
]
ExportFormat = Annotated[
    Literal["folder", "coco"],
    typer.Option("--format", help="The whole data set as `folder`, or one COCO file with positions."),
]
Smooth = Annotated[
    float,
    typer.Option(
        "--smooth-s",
        min=0,
        max=10,
        help="0: each position from its own match alone. Otherwise matches are fitted over the log, and "
        "places from depth maps are made smooth over so many seconds.",
    ),
]
Inside = Annotated[
    float,
    typer.Option(
        "--inside-m", min=0, max=2, help="How far behind the marked surface the place is, in metres."
    ),
]
HELP = """Put boxes, ids and 3-D positions on the frames of a data set.

\b
Examples:
    adverse annotate data/orchard --out annotations
    adverse annotate export annotations data/annotated
"""


class DataFirst(TyperGroup):
    """Takes `adverse annotate DATA` for `adverse annotate page DATA`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `page` in front unless the first word is a command or an option of the group."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["page", *args]
        return super().parse_args(ctx, args)


annotate = typer.Typer(cls=DataFirst, help=HELP, no_args_is_help=True, rich_markup_mode=None)


@annotate.command("page")
def page(
    path: DataFolder,
    out: Out,
    classes: Class = None,
    port: Port = 0,
    browse: Browse = False,  # noqa: FBT002
    offset_px: Offset = None,
    format_name: DataFormat = None,
    option: DataOptions = None,
    plugin: FormatPlugins = None,
) -> None:
    """Annotate in the browser.

    Click on a person in the left image: the partner in the right one is found, depth and place follow, and
    the tracker carries both through the log. Every change is on the disk before it is acknowledged; the same
    command goes on where you were. The page is served on this machine only, until Ctrl-C; the printed address
    holds the token that opens it.

    \b
    Examples:
        adverse annotate data/orchard --out annotations
        adverse annotate data/kitti --out annotations --class cyclist --open
    """
    import webbrowser

    from adverse.annotation.folder import KIND, AnnotatedData, all_categories, fingerprint, open_state
    from adverse.annotation.session import first_pair_problem
    from adverse.data.plausibility import doubtful_depth
    from adverse.pages.annotate import routes_of
    from adverse.serving import open_door, serve
    from adverse.store.owned_folder import claim, locked

    files = [str(file.resolve()) for file in plugin or ()]
    dataset = _read(path, format_name, option or [], files, offset_px)
    data = AnnotatedData(
        str(path.resolve()),
        format_name,
        tuple(option or ()),
        tuple(files),
        all_categories(dataset, classes or ()),
        fingerprint(dataset),
        offset_px,
    )
    claim(out, KIND, is_copy=lambda: True)
    with locked(out):
        state, categories = open_state(out, data, dataset)
        door, bound = open_door(port=port)
        doubts = map(str, doubtful_depth(dataset))
        for words in (*_lacking(dataset), first_pair_problem(dataset, state), *doubts):
            if words:
                say(f"note: {words}", err=True)
        say(f"{counted(len(dataset.logs), 'log')}, {counted(state.version, 'change')} so far, kept in {out}")
        say(f"annotate: {door.address}\nCtrl-C ends it")
        if browse:
            webbrowser.open(door.address)
        serve(door, bound, routes_of(dataset, state, categories, out))


@annotate.command("export")
def export(
    folder: Annotations,
    out: Target,
    format_name: ExportFormat = "folder",
    smooth_s: Smooth = 0.5,
    inside_m: Inside = 0.0,
) -> None:
    """Write annotations as a data set.

    `folder` copies images, depth, cameras and poses beside the annotations, so that a study reads it at every
    level. `coco` is one file with positions (position_m); file names in it are relative to DATA, and a
    study on data in the `folder` format takes it as `truth:`.

    \b
    Examples:
        adverse annotate export annotations data/annotated
        adverse annotate export annotations truth.json --format coco
    """
    from adverse.annotation.export import export_coco, export_folder, image_root
    from adverse.annotation.folder import check_data, read_manifest, read_state

    data = read_manifest(folder)
    dataset = _read(Path(data.path), data.format, list(data.options), list(data.plugins), data.offset_px)
    check_data(folder, data, dataset)
    state, root = read_state(folder, dataset), image_root(dataset, Path(data.path))
    if format_name == "folder":
        made = export_folder(dataset, state, data.categories, out, smooth_s=smooth_s, inside_m=inside_m)
    else:
        made = export_coco(
            dataset, state, data.categories, out, root=root, smooth_s=smooth_s, inside_m=inside_m
        )
    say(f"{made.frames} frames, {made.boxes} boxes, {made.located} with a position in {made.truth}")
    if made.unsure:
        say(f"{len(made.unsure)} of them may be off by more than 0.10 m (position_error_m), such as")
        for words in made.unsure[:3]:
            say(f"  {words}")
        say("Put a point near by, or on the trunk where no arm is before it, and track again.")
    for words in made.left_out[:5]:
        say(f"left out: {words}")
    if len(made.left_out) > 5:
        say(f"and {len(made.left_out) - 5} more")
    if format_name == "folder":
        say(f"to read it in a study:\ndata: {{format: folder, root: {out}{_split(dataset)}}}")
    else:
        say(f"file names are relative to {root}")


def _read(
    path: Path, format_name: str | None, options: list[str], plugin_files: list[str], offset_px: float | None
) -> Dataset:
    from adverse import plugins
    from adverse.annotation.session import with_offset

    registry = plugins.load([Path(file) for file in plugin_files])
    dataset = read_place(path, format_name, options, registry)[0]
    return dataset if offset_px is None else with_offset(dataset, offset_px)


def _split(dataset: Dataset) -> str:
    splits = list(dict.fromkeys(log.split for log in dataset.logs))
    return f", split: {{{', '.join(f'{name}: {name}' for name in splits)}}}" if len(splits) > 1 else ""


def _lacking(dataset: Dataset) -> list[str]:
    """Say what the data lack, each once."""
    frames = [frame for log in dataset.logs for frame in log.frames]
    cases = {
        "no frame has a camera (camera.json), so points give no position": all(
            frame.camera is None for frame in frames
        ),
        "no frame has a right image with a baseline_m or a depth map, so points give no position": all(
            frame.depth_m is None
            and (frame.right is None or frame.camera is None or frame.camera.baseline_m is None)
            for frame in frames
        ),
        "no frame has a pose (poses.csv), so positions are not in the world and are not exported": all(
            frame.world_from_camera is None for frame in frames
        ),
    }
    return [words for words, holds in cases.items() if holds]

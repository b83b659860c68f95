"""depth: dense metric depth of a data set, from its stereo pairs or its laser returns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from adverse.cli.console import Console, rendering, say
from adverse.cli.data import read_place
from adverse.cli.options import DataFormat, DataOptions, DataPath, FormatPlugins, Quiet
from adverse.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, StudyError
from adverse.text import counted

Target = Annotated[
    Path,
    typer.Argument(metavar="OUT", help="The folder to write; earlier maps of the same frames are replaced."),
]
Origin = Annotated[
    Literal["stereo", "laser"] | None,
    typer.Option("--from", help="[default: stereo where frames have a right image, else laser]"),
]
Refine = Annotated[
    Literal["smoother", "solver", "none"], typer.Option("--refine", help="How maps are refined by the image.")
]
Nearest = Annotated[
    float | None, typer.Option("--nearest-m", min=0.01, help="Stereo: the least depth searched for.")
]
Offset = Annotated[
    float | None,
    typer.Option(
        "--offset-px", help="Stereo: principal point, right minus left camera. [default: camera.json]"
    ),
]
NoSky = Annotated[bool, typer.Option("--no-sky", help="Look for no sky (indoors).")]
Rig = Annotated[
    Path | None, typer.Option("--rig", help="Stereo: calibration of images that are not rectified, JSON.")
]
Hood = Annotated[
    Path | None,
    typer.Option("--hood", help="Mask of the vehicle's own hood, a gray PNG; {log} stands for the log."),
]
Neighbours = Annotated[
    int,
    typer.Option(
        "--neighbours", min=0, max=5, help="Stereo: consistent with so many frames before and after."
    ),
]
FindHood = Annotated[
    bool, typer.Option("--find-hood", help="Only propose a hood mask for each log, to be looked at.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, help="Frames at once. [default: all cores]")
]


def depth(
    path: DataPath,
    out: Target,
    origin: Origin = None,
    refine: Refine = "smoother",
    nearest_m: Nearest = None,
    offset_px: Offset = None,
    no_sky: NoSky = False,  # noqa: FBT002
    rig: Rig = None,
    hood: Hood = None,
    neighbours: Neighbours = 0,
    find_hood: FindHood = False,  # noqa: FBT002
    workers: Workers = None,
    format_name: DataFormat = None,
    option: DataOptions = None,
    plugin: FormatPlugins = None,
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Compute dense depth with confidence for every frame.

    Maps are kept in the cache, so that an interrupted command goes on where it was and a study with the same
    `depth:` section finds them.

    \b
    Examples:
        adverse depth data/orchard OUT
        adverse depth data/orchard OUT --neighbours 2
        adverse depth data/kitti OUT --from laser
        adverse depth data/tractor OUT --find-hood
        adverse depth data/tractor OUT --hood OUT/{log}/hood.png

    Exit codes: 0 all frames, 2 cannot run or no frame has depth, 3 some have none, 130 stopped.
    """
    from adverse import plugins
    from adverse.processes import all_cores
    from adverse.study.depth_export import check_apart, first_failures, propose_hoods, write_depth
    from adverse.study.depth_maps import with_depth
    from adverse.study.scale_check import doubtful_scale
    from adverse.study.spec import DepthSection

    dataset, _, title = read_place(path, format_name, option or [], plugins.load(plugin or ()))
    console = Console(quiet=quiet)
    console.say(title)
    if find_hood:
        for mask, share in propose_hoods(dataset, out):
            console.say(
                f"{mask}: {share:.1%} of the pixels; look at hood-preview.png beside it before you use it"
            )
        return
    check_apart(dataset, out)
    pairs = any(frame.right is not None for log in dataset.logs for frame in log.frames)
    given: dict[str, Any] = {"from": origin or ("stereo" if pairs else "laser"), "refine": refine}
    given |= {"sky": not no_sky, "nearest_m": nearest_m, "offset_px": offset_px, "neighbours": neighbours}
    given |= {name: str(file) for name, file in (("rig", rig), ("hood", hood)) if file is not None}
    try:
        section = DepthSection(**given)
    except ValueError as error:
        text = str(error).splitlines()[1].strip().removeprefix("Value error, ").partition(" [")[0]
        raise StudyError("these options do not go together", wanted=text, fix="Drop one of them.") from error
    computed = with_depth(dataset, section, folder=Path.cwd(), where="adverse depth")
    try:
        for doubt in doubtful_scale(computed):
            if doubt.certain:
                raise StudyError(doubt.what, where=doubt.where, got=doubt.got, fix=doubt.fix)
            say(f"note: {doubt}", err=True)
        with rendering(Console(stderr=True, quiet=quiet), "{} of {} frames") as watch:
            made = write_depth(computed, out, workers=workers or all_cores(), watch=watch)
    except KeyboardInterrupt:
        say(f"stopped; finished maps are kept in {out}. Run the same command to resume.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    shares = ", ".join(f"{share:.1%} {name}" for name, share in made.shares.items())
    console.say(f"{counted(made.frames, 'depth map')} from {given['from']} in {out}: {shares}")
    if made.failed:
        say(f"{len(made.failed)} of {len(made.failed) + made.frames} frames have no depth:", err=quiet)
        for line in first_failures(made.failed):
            say(f"- {line}", err=quiet)
        raise typer.Exit(EXIT_INCOMPLETE)

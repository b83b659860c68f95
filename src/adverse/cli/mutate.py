"""mutate: images changed, on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from adverse.cli.console import Console, ProgressWatcher, say
from adverse.cli.options import Quiet
from adverse.errors import EXIT_INCOMPLETE, StudyError

if TYPE_CHECKING:
    from adverse.data.images import ImageFile
    from adverse.depth import Policy
    from adverse.study.export import Mix
    from adverse.study.job import StudyJob
    from adverse.study.spec import StudyFile
    from adverse.stylize import Stylization
    from adverse.types import Dataset, Depth, Image

Source = Annotated[
    Path,
    typer.Argument(metavar="IN", help="An image, a folder of images or data set, a video, or a study file."),
]
Target = Annotated[
    Path | None, typer.Argument(metavar="OUT", help="The image to write (PNG or JPEG), or a folder for many.")
]
ContactSheet = Annotated[
    Path | None, typer.Option("--sheet", help="Write a contact sheet of all settings to this file.")
]
Mutations = Annotated[
    list[str] | None,
    typer.Option(
        "--mutation", "-m", help='A mutation, such as "gaussian_blur(sigma_px=2)", or a battery; repeatable.'
    ),
]
DepthPath = Annotated[
    Path | None, typer.Option("--depth", help="Depth in metres (.npy), or 16-bit PNG with --depth-scale.")
]
DepthScale = Annotated[float | None, typer.Option("--depth-scale", help="Metres per unit of a depth PNG.")]
InvalidDepth = Annotated[
    Literal["refuse", "far", "nearest"] | None,
    typer.Option("--invalid-depth", help="What to do where depth is invalid. [default: refuse]"),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of random mutations. [default: 0]")]
Key = Annotated[
    str | None,
    typer.Option("--key", help="Frame id, which also seeds them. [default: IN's name, or the first]"),
]
Suffix = Annotated[str, typer.Option("--suffix", help="File type for many images: .png (exact) or .jpg.")]
MixShares = Annotated[
    str | None,
    typer.Option(
        "--mix",
        help="Write each image once, clean, under one of the mutations or stylized, to train on: "
        "clean=1,mutated=1,stylized=1.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", min=1, help="Worker processes for many images. [default: all cores]"),
]
Styles = Annotated[
    Path | None,
    typer.Option(
        "--styles", help="A folder of paintings, one drawn for each image. [default: 64 made styles]"
    ),
]
Alpha = Annotated[float, typer.Option("--alpha", help="How much of the style, 0 to 1.")]
StyleModel = Annotated[
    Path | None,
    typer.Option("--style-model", help="An AdaIN network in ONNX. [default: the bundled one]"),
]


def mutate(
    source: Source,
    target: Target = None,
    mutation: Mutations = None,
    sheet: ContactSheet = None,
    depth: DepthPath = None,
    depth_scale: DepthScale = None,
    invalid_depth: InvalidDepth = None,
    seed: Seed = None,
    key: Key = None,
    suffix: Suffix = ".png",
    workers: Workers = None,
    mix: MixShares = None,
    styles: Styles = None,
    alpha: Alpha = 1.0,
    style_model: StyleModel = None,
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Apply mutations to an image, a folder, a video or a data set.

    \b
    Examples:
        adverse mutate in.png out.png --mutation "brightness(scale=0.5)"
        adverse mutate in.png out.png -m "haze(visibility_m=97.8)" --depth in.npy
        adverse mutate in.png --sheet sheet.png -m coco-c
        adverse mutate study.yaml --sheet sheet.png --key row3/000123
        adverse mutate walk.mp4 --sheet sheet.png -m first-look
        adverse mutate photos mutated -m first-look -m "gaussian_blur(sigma_px=5)"
        adverse mutate walk.mp4 mutated -m "gaussian_blur(sigma_px=2)"
        adverse mutate study.yaml mutated
        adverse mutate study.yaml augmented --mix clean=1,mutated=2
        adverse mutate study.yaml augmented --mix clean=1,stylized=1 --styles paintings

    The sheet of a study or data set shows one frame (--key, else the first) by the depth that a run uses.
    Many images go to OUT/MUTATION/FRAME.png, with annotations.json beside them; with --mix to OUT/mixed, with
    mix.csv. Existing images are kept.
    """
    if target is None and sheet is None:
        raise StudyError("no output was given", fix="Give OUT, or --sheet SHEET.png.")
    given = {"mutations": mutation, "seed": seed, "invalid_depth": invalid_depth}
    is_study = source.suffix.lower() in (".yaml", ".yml")
    if sheet is not None and (source.is_dir() or is_study or _is_video(source)):
        _sheet_of_data(source, sheet, given, key)
        if target is None:
            return
    if source.is_dir() or is_study or _is_video(source):
        from adverse.study.export import export_job

        if target is None:
            raise StudyError("no output was given", fix="Give OUT, a folder.")
        _refuse_one_file(target)
        shares, how = _shares(mix, styles, alpha, style_model)
        unmutated = shares is not None and not shares.mutated
        dataset, job = export_job(_as_study(source, given), may_be_empty=unmutated)
        write_copies(dataset, job, target, suffix, workers, shares, how, quiet=quiet)
        return
    if mix is not None:
        raise StudyError(
            "a mix is of many images", where="--mix", got=str(source), fix="Give a folder as IN."
        )
    from adverse.data.images import ImageFile

    image = ImageFile(source)
    depth_m = _depth(image, depth, depth_scale, invalid_depth or "refuse")
    _one(image(), mutation or [], target, sheet, seed or 0, key or source.stem, depth_m)


def _refuse_one_file(target: Path) -> None:
    from adverse.data.images import SUFFIXES as IMAGES
    from adverse.data.video_file import SUFFIXES

    if target.suffix.lower() in {*IMAGES, *SUFFIXES} and not target.is_dir():
        raise StudyError(
            "many images go to a folder",
            where="OUT",
            got=str(target),
            wanted="the name of a folder; each frame is written as an image",
            fix=f"Say {target.with_suffix('').name}. One frame on a sheet: --sheet SHEET.png --key FRAME.",
        )


def _is_video(source: Path) -> bool:
    from adverse.data.video_file import SUFFIXES

    return source.suffix.lower() in SUFFIXES


def _sheet_of_data(source: Path, sheet: Path, given: Mapping[str, Any], key: str | None) -> None:
    """Write the sheet of one frame of a study or data set."""
    from adverse.data.images import write_image
    from adverse.study.sheet import study_of_data, study_sheet

    is_study = source.is_file() and not _is_video(source)
    file = _as_study(source, given) if is_study else study_of_data(source, given)
    write_image(sheet, study_sheet(file, key))


def _shares(
    mix: str | None, styles: Path | None, alpha: float, model: Path | None
) -> tuple[Mix | None, Stylization | None]:
    from adverse.study.export import read_mix
    from adverse.stylize import stylization

    shares = None if mix is None else read_mix(mix)
    if shares is not None and shares.stylized > 0:
        return shares, stylization(styles, alpha=alpha, model=model)
    if styles is not None or model is not None or alpha != 1:
        raise StudyError(
            "styles are for a mix with a stylized share",
            where="--mix",
            got="nothing" if mix is None else mix,
            fix="Say --mix stylized=1, with other shares.",
        )
    return shares, None


def _depth(image: ImageFile, path: Path | None, scale_m: float | None, policy: Policy) -> Depth | None:
    from adverse.data.depth import DepthFile
    from adverse.depth import usable

    if path is None:
        return None
    return usable(DepthFile(path, image, scale_m)(), policy, where=f"depth file {path}").depth_m


def _one(
    image: Image,
    names: list[str],
    target: Path | None,
    sheet: Path | None,
    seed: int,
    key: str,
    depth_m: Depth | None,
) -> None:
    from adverse import plugins
    from adverse.data.images import write_image
    from adverse.mutations.contact_sheets import contact_sheet
    from adverse.mutations.settings import apply_setting, expand

    registry = plugins.load()
    chosen = [setting for name in names for setting in expand(name, registry, where="--mutation")]
    if target is not None:
        if len(chosen) != 1:
            fix = 'Give one --mutation, such as "brightness(scale=2)"; --sheet shows many.'
            raise StudyError("one image takes one mutation", got=f"{len(chosen)} settings", fix=fix)
        write_image(target, apply_setting(image, chosen[0], registry, seed=seed, key=key, depth_m=depth_m))
    if sheet is not None:
        write_image(sheet, contact_sheet(image, chosen, registry, seed=seed, key=key, depth_m=depth_m))


def write_copies(
    dataset: Dataset,
    job: StudyJob,
    target: Path,
    suffix: str,
    workers: int | None,
    mix: Mix | None,
    stylize: Stylization | None,
    *,
    quiet: bool = False,
) -> None:
    """Write the copies of a data set, and say how it went."""
    from adverse.processes import all_cores
    from adverse.study.export import export

    console = Console(quiet=quiet)
    watch = ProgressWatcher(console)
    count = workers or all_cores()
    done = export(dataset, job, target, suffix=suffix, workers=count, watch=watch, mix=mix, stylize=stylize)
    console.say(f"{done.files} files in {target}, {done.made} of them made now")
    for frame, reason in done.refused[:10]:
        say(f"- left out {frame}: {reason}", err=quiet)
    if done.refused:
        raise typer.Exit(EXIT_INCOMPLETE)


def _as_study(source: Path, given: Mapping[str, Any]) -> StudyFile:
    """Return the study of a file, or one made up around a video or folder of images; `given` wins."""
    from adverse.strict_yaml import YamlFile, read_yaml
    from adverse.study.spec import StudyFile

    if source.is_dir() or _is_video(source):
        kind = "folder" if source.is_dir() else "video"
        data = {"format": kind, "root": str(source.resolve())}
        made = YamlFile(source.resolve(), {"name": "mutate", "data": data}, {})
    else:
        made = read_yaml(source)
    options = {key: value for key, value in given.items() if value}
    if not options or not isinstance(made.data, dict):
        return StudyFile(made)  # which says what is wrong with it
    lines = {place: line for place, line in made.lines.items() if place and place[0] not in options}
    return StudyFile(YamlFile(made.path, {**made.data, **options}, lines))

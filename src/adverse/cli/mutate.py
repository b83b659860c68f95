"""mutate: one image, changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Source = Annotated[Path, typer.Argument(metavar="IN", help="The image to change.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it (PNG or JPEG).")]
Mutation = Annotated[str, typer.Option("--mutation", "-m", help='For example "gaussian_blur(sigma_px=2)".')]
DepthPath = Annotated[
    Path | None, typer.Option("--depth", help="Depth in metres (.npy), or 16-bit PNG with --depth-scale.")
]
DepthScale = Annotated[float | None, typer.Option("--depth-scale", help="Metres per unit of a depth PNG.")]
InvalidDepth = Annotated[
    Literal["refuse", "far", "nearest"], typer.Option(help="What to put where depth is no distance.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="For mutations that draw random numbers.")]
Key = Annotated[str | None, typer.Option("--key", help="Frame id, as in a study. [default: IN's name]")]


def mutate(
    source: Source,
    target: Target,
    mutation: Mutation,
    depth: DepthPath = None,
    depth_scale: DepthScale = None,
    invalid_depth: InvalidDepth = "refuse",
    seed: Seed = 0,
    key: Key = None,
) -> None:
    """Apply a mutation to an image.

    \b
    Examples:
        adverse mutate in.png out.png --mutation "brightness(scale=0.5)"
        adverse mutate in.png out.png -m "haze(visibility_m=97.8)" --depth in.npy
        adverse mutate in.png out.png -m "gaussian_blur(sigma_px=2) + salt_pepper(fraction=0.01)"
    """
    from adverse import mutations
    from adverse.data.depth import DepthFile
    from adverse.data.images import ImageFile
    from adverse.data.write import write_image
    from adverse.depth.validity import usable

    image = ImageFile(source)
    depth_m = None
    if depth is not None:
        stored = DepthFile(depth, image, depth_scale)()
        depth_m = usable(stored, invalid_depth, where=f"depth file {depth}").depth_m
    changed = mutations.apply(image(), mutation, seed=seed, key=key or source.stem, depth_m=depth_m)
    write_image(target, changed)

"""The formats `orchard-world` and `street-world`: rendered on first use, then read as `folder`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from adverse.data.folder import folder
from adverse.plugins import dataset
from adverse.types import Dataset, Split

if TYPE_CHECKING:
    from adverse.data.worlds.writing import World

Pixels = Annotated[int, Field(ge=64, le=4096)]
Logs = Annotated[int, Field(ge=0, le=10_000)]
PoseNoise = Annotated[float, Field(ge=0, le=1000)]
DisparityNoise = Annotated[float, Field(ge=0, le=10)]
Watch = Callable[[int, int], None]
"""Hears how many logs of how many are rendered."""
_watch: ContextVar[Watch | None] = ContextVar("rendering watch", default=None)
DEFAULT_LOGS: dict[Split, int] = {"validation": 12, "test": 24}


@dataset(name="orchard-world")
def orchard_world(
    *,
    logs: dict[Split, Logs] = DEFAULT_LOGS,
    size: tuple[Pixels, Pixels] = (320, 240),
    seed: Annotated[int, Field(ge=0)] = 1,
    pose_noise_mm: PoseNoise = 0.0,
    disparity_noise_px: DisparityNoise = 0.0,
    right: bool = True,
) -> Dataset:
    """Render orchard logs (synthetic): a tractor among trees that drives up to people and stops.

    `logs` says how many for each split, half of them without people; `size` is [width, height];
    `pose_noise_mm` the noise of recorded positions (about 20 with an RTK receiver), `disparity_noise_px`
    that of the recorded depth (about 0.25 with stereo matching). Without `right`, the right images of the
    stereo pairs are left out: they are two fifths of the work.
    """
    return _world("orchard", logs, size, seed, (pose_noise_mm, disparity_noise_px), right=right)


@dataset(name="street-world")
def street_world(
    *,
    logs: dict[Split, Logs] = DEFAULT_LOGS,
    size: tuple[Pixels, Pixels] = (320, 240),
    seed: Annotated[int, Field(ge=0)] = 1,
    pose_noise_mm: PoseNoise = 0.0,
    disparity_noise_px: DisparityNoise = 0.0,
    right: bool = True,
) -> Dataset:
    """Render street logs (synthetic): houses, cars of many colours, trees, people, labelled per pixel.

    `logs` says how many for each split, half of them without people; `size` is [width, height];
    `pose_noise_mm` the noise of recorded positions (about 20 with an RTK receiver), `disparity_noise_px`
    that of the recorded depth (about 0.25 with stereo matching). Without `right`, the right images of the
    stereo pairs are left out: they are two fifths of the work.
    """
    return _world("street", logs, size, seed, (pose_noise_mm, disparity_noise_px), right=right)


def rendered(
    world: World,
    logs: dict[Split, int],
    size: tuple[int, int],
    seed: int,
    noise: tuple[float, float] = (0.0, 0.0),
    *,
    right: bool = True,
    watch: Watch | None = None,
) -> Path:
    """Return the folder of a world in the cache; render it first if need be, and tell how far that is.

    `noise` is that of positions (mm) and of disparity (pixels); without `right` there are left images only.
    """
    from adverse.data.worlds.writing import WorldSpec, cached_world  # noqa: PLC0415 - loads the renderer

    wanted = tuple((split, logs[split]) for split in _wanted(logs))
    spec = WorldSpec(world, wanted, *size, seed, *noise, right=right)
    return cached_world(spec, workers=os.cpu_count() or 1, watch=watch)


@contextmanager
def watched_rendering(watch: Watch) -> Iterator[None]:
    """Tell how far a world is that a study needs and that has to be rendered while it is read."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def _world(
    world: World,
    logs: dict[Split, int],
    size: tuple[int, int],
    seed: int,
    noise: tuple[float, float],
    *,
    right: bool,
) -> Dataset:
    root = rendered(world, logs, size, seed, noise, right=right, watch=_watch.get())
    read = folder(root, split={split: split for split in _wanted(logs)})
    return replace(read, name=f"{world} world (synthetic)")


def _wanted(logs: dict[Split, int]) -> list[Split]:
    from adverse.data.worlds.writing import SPLITS  # noqa: PLC0415

    return [split for split in SPLITS if logs.get(split, 0) > 0]

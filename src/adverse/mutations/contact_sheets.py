"""Contact sheets: a battery on one image, to check it at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from adverse.errors import MutationError
from adverse.mutations import settings
from adverse.plugins import Registry
from adverse.types import Depth, Image, Setting

FONT = cv2.FONT_HERSHEY_SIMPLEX
FONT_SCALE = 0.4
LINE_PX = 16
"""Height of a line of text."""

GAP_PX = 4
LABEL_PX = 150
"""Width of the column of names."""

PAPER, INK = 255, 30


class _Tile(NamedTuple):
    caption: str
    image: Image


def contact_sheet(
    image: Image,
    battery: Sequence[Setting],
    registry: Registry,
    *,
    seed: int = 0,
    key: str = "sheet",
    log: str | None = None,
    time_s: float = 0.0,
    depth_m: Depth | None = None,
    tile_width: int = 240,
) -> Image:
    """Draw a battery: one row for each mutation, its settings from left to right, the original first.

    Every setting is applied to the image at its full size and then shrunk to `tile_width`. Returns an RGB
    image; rows are as long as the mutation with most settings. `key`, `log` and `time_s` are as in `apply`.

    >>> from adverse import plugins
    >>> registry = plugins.load()
    >>> battery = settings.expand("first-look", registry, where="example")
    >>> contact_sheet(np.zeros((30, 40, 3), np.uint8), battery, registry, tile_width=40).shape
    (200, 282, 3)
    """
    if not battery:
        raise MutationError(
            "a contact sheet needs at least one setting", got="none", fix="Name a battery, such as coco-c."
        )
    families: dict[str, list[_Tile]] = {}
    original = _shrunk(image, tile_width)
    for setting in battery:
        made = settings.apply_setting(
            image, setting, registry, seed=seed, key=key, log=log, time_s=time_s, depth_m=depth_m
        )
        row = families.setdefault(setting.family, [_Tile("original", original)])
        row.append(_Tile(_caption(setting), _shrunk(made, tile_width)))
    columns = max(map(len, families.values()))
    height = original.shape[0] + LINE_PX + GAP_PX
    width = LABEL_PX + columns * (tile_width + GAP_PX)
    page = np.full((len(families) * height, width, 3), PAPER, np.uint8)
    for number, (family, tiles) in enumerate(families.items()):
        top = number * height
        _write(page, family, GAP_PX, top + LINE_PX + original.shape[0] // 2, LABEL_PX)
        for column, tile in enumerate(tiles):
            left = LABEL_PX + column * (tile_width + GAP_PX)
            _write(page, tile.caption, left, top + LINE_PX - GAP_PX, tile_width)
            page[top + LINE_PX : top + LINE_PX + original.shape[0], left : left + tile_width] = tile.image
    return page


def _caption(setting: Setting) -> str:
    """Return what differs along a row: the options of the setting."""
    inside = setting.id.partition("(")[2]
    return inside.removesuffix(")") if len(setting.steps) == 1 and inside else setting.id


def _shrunk(image: Image, width: int) -> Image:
    rows, columns = image.shape[:2]
    size = (width, max(round(rows * width / columns), 1))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA if width < columns else cv2.INTER_NEAREST)
    flat = small.reshape(size[1], size[0], -1)
    return np.broadcast_to(flat, (size[1], size[0], 3)).astype(np.uint8)


def _write(page: Image, text: str, left: int, base: int, room: int) -> None:
    """Write one line, made narrower if it would not fit."""
    (width, _), _ = cv2.getTextSize(text, FONT, FONT_SCALE, 1)
    scale = FONT_SCALE * min(1.0, (room - GAP_PX) / max(width, 1))
    cv2.putText(page, text, (left, base), FONT, scale, (INK, INK, INK), 1, cv2.LINE_AA)

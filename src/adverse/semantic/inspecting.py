"""Looking into a resource set: what it holds, what can be done with it, and a sheet of its cut-outs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np

from adverse.errors import DataError
from adverse.semantic.checks import Options
from adverse.semantic.resources import Entity, Resources
from adverse.types import Image

FONT, FONT_SCALE = cv2.FONT_HERSHEY_SIMPLEX, 0.35
LINE_PX, GAP_PX = 13, 4
PAPER, INK = 255, 30
CHECKS_PX = 8
"""Size of the squares behind a cut-out, which show through where it is transparent."""
SHOWN_BETWEEN = (12, 2000)
"""Cut-outs with a longest side outside these pixels are not drawn."""


FAULTS_SHOWN = 5
COLUMNS = (
    ("class", 16),
    ("objects", 9),
    ("large", 8),
    ("unoccluded", 12),
    ("whole", 8),
    ("vanishing point", 17),
    ("with depth", 12),
    ("donors", 8),
)
"""Heads and widths of the columns that people read."""


class ClassSummary(NamedTuple):
    """The objects of one class: how many, and how many the checks that ask only about them let through."""

    class_name: str
    objects: int
    large: int
    """With a longest side of at least what the options ask of the class."""
    unoccluded: int
    whole: int
    with_point: int
    """From an image with a vanishing point."""
    with_depth: int
    donors: int
    """All of large, un-occluded, whole and from an image with a vanishing point."""


def held(resources: Resources, options: Options) -> list[ClassSummary]:
    """Return what a resource set holds, class by class, those with most objects first."""
    rows = []
    for name, count in resources.classes.items():
        index = resources.index(name)
        large = index.side_px >= options.min_side_px.get(name, 1)
        point = ~np.isnan(index.vanishing[:, 0])
        whole = index.largest_part >= options.least_in_one_piece
        every = large & ~index.occluded & whole & point
        row = ClassSummary(
            name,
            count,
            int(large.sum()),
            int((~index.occluded).sum()),
            int(whole.sum()),
            int(point.sum()),
            int(index.with_depth.sum()),
            int(every.sum()),
        )
        rows.append(row)
    return sorted(rows, key=lambda entry: (-entry.objects, entry.class_name))


def cannot(resources: Resources) -> list[str]:
    """Say in sentences what cannot be done with a resource set, and what it lacks for it."""
    rows = held(resources, Options())
    reasons = [
        f"add_{name} needs objects of the class {name!r}: there are none"
        for name in ("car", "person")
        if name not in resources.classes
    ]
    if len(resources.logs) == 1 and resources.classes:
        reasons.append(
            "nothing is added that comes from the scene's own log, and there is only one: use "
            "options: {off: [log]}, or a data set option that cuts it into logs"
        )
    if not any(row.with_point for row in rows):
        reasons.append("the perspective check needs a vanishing point: none was found in any image")
    return reasons


def facts(resources: Resources) -> dict[str, Any]:
    """Return what a resource set holds, for machines."""
    rows = [row._asdict() for row in held(resources, Options())]
    entries = {
        "key": resources.key,
        "objects": len(resources),
        "classes": rows,
        "notes": dict(resources.notes),
    }
    return {**entries, "faults": dict(resources.faults), "cannot": cannot(resources)}


def words(resources: Resources) -> list[str]:
    """Return what a resource set holds, for people, line by line."""
    lines = [f"{len(resources)} objects, resource set {resources.key}", ""]
    lines.append("".join(f"{head:>{width}}" for head, width in COLUMNS))
    lines += [
        "".join(f"{cell:>{width}}" for cell, (_, width) in zip(row, COLUMNS, strict=True))
        for row in held(resources, Options())
    ]
    least = ", ".join(f"{name} {px}" for name, px in sorted(Options().min_side_px.items()))
    lines += ["", f"large: longest side in pixels at least {least}; donors: all of large to vanishing point"]
    lines += [f"left out: {count} {note}" for note, count in sorted(resources.notes.items())]
    lines += [f"  {frame}: {fault}" for frame, fault in list(resources.faults.items())[:FAULTS_SHOWN]]
    return lines + [f"cannot: {sentence}" for sentence in cannot(resources)]


def cutout_sheet(resources: Resources, *, count: int = 60, columns: int = 10, tile_px: int = 120) -> Image:
    """Draw cut-outs, of each class as many as its share and largest first, with what is known of them."""
    chosen = _chosen(resources, count)
    if not chosen:
        raise DataError("there is nothing to draw", got="a resource set without objects")
    tiles = [_tile(entity, tile_px) for entity in chosen]
    blank = np.full_like(tiles[0], PAPER)
    tiles += [blank] * (-len(tiles) % min(columns, len(tiles)))
    columns = min(columns, len(tiles))
    rows = [np.concatenate(tiles[at : at + columns], axis=1) for at in range(0, len(tiles), columns)]
    return np.concatenate(rows, axis=0)


def _chosen(resources: Resources, count: int) -> list[Entity]:
    entities: list[Entity] = []
    share = max(count // max(len(resources.classes), 1), 1)
    for name in resources.classes:
        index = resources.index(name)
        fit = np.flatnonzero((index.side_px >= SHOWN_BETWEEN[0]) & (index.side_px < SHOWN_BETWEEN[1]))
        order = fit[np.argsort(-index.side_px[fit], kind="stable")]
        spread = order[np.linspace(0, len(order) - 1, min(share, len(order))).astype(np.int64)]
        entities += [resources.entity(int(index.number[at])) for at in spread]
    return entities


def _tile(entity: Entity, tile_px: int) -> Image:
    height, width = entity.alpha.shape
    rows, columns = np.indices((height, width)) // CHECKS_PX
    squares = np.where((rows + columns) % 2, 200, 235).astype(np.uint8)[..., None]
    shown = np.where(entity.alpha[..., None] > 0, entity.rgb, squares)
    room = tile_px - 2 * GAP_PX
    scale = min(room / width, room / height, 1.0)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    small = cv2.resize(shown, size, interpolation=cv2.INTER_AREA)
    tile = np.full((tile_px + 3 * LINE_PX, tile_px, 3), PAPER, np.uint8)
    left, top = (tile_px - size[0]) // 2, tile_px - GAP_PX - size[1]
    tile[top : top + size[1], left : left + size[0]] = small
    for number, text in enumerate(_said(entity)):
        place = GAP_PX, tile_px + LINE_PX * (number + 1) - 3
        cv2.putText(tile, text, place, FONT, FONT_SCALE, (INK, INK, INK), 1, cv2.LINE_AA)
    return tile


def _said(entity: Entity) -> Sequence[str]:
    x0, y0, x1, y1 = entity.box
    flaws = [
        *(["occluded"] if entity.occluded else []),
        *([f"{entity.components} parts"] if entity.components != 1 else []),
        *(["no VP"] if entity.vanishing is None else []),
    ]
    reach = "" if entity.depth_range_m is None else f" {entity.depth_range_m[0]:.0f}m"
    size = f"{x1 - x0}x{y1 - y0} V{entity.median_value:.0f}{reach}"
    return entity.class_name[:18], size, ", ".join(flaws)

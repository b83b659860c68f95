"""Draw docs/sheets/worlds.jpg and orchard.jpg: frames of both worlds with boxes, depth and labels, and what
fools a detector in the orchard.

python bench/world_sheet.py
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.rendering import Rendered, render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import HIDDEN, SCRIPTS, World
from adverse.seeds import generator
from adverse.types import LogKind

SHEETS = Path(__file__).parents[1] / "docs" / "sheets"
WIDTH, HEIGHT = 400, 300
SEED = 1
ROWS: tuple[tuple[World, str, LogKind, float], ...] = (
    ("orchard", "test/positive000", "positive", 0.45),
    ("orchard", "test/positive003", "positive", 0.8),
    ("orchard", "test/negative001", "negative", 0.3),
    ("street", "test/positive000", "positive", 0.2),
    ("street", "test/positive002", "positive", 0.7),
)
CELLS, COLUMNS = 24, 4
"""Frames of the second sheet, the first half of them without people."""
COLOURS = {
    4: (90, 90, 90),
    6: (81, 0, 81),
    7: (128, 64, 128),
    8: (244, 35, 232),
    11: (70, 70, 70),
    17: (153, 153, 153),
    20: (220, 220, 0),
    21: (107, 142, 35),
    22: (152, 251, 152),
    23: (70, 130, 180),
    24: (220, 20, 60),
    26: (0, 0, 142),
}
"""Cityscapes' own colours."""
Picture = NDArray[np.uint8]


def main() -> None:
    camera = stereo_camera(WIDTH, HEIGHT)
    rows = []
    for world, name, kind, part in ROWS:
        script = SCRIPTS[world](SEED, name, kind)
        at = script.drive.duration_s * part
        seen = render(script.scene(), camera, script.drive.pose(at), at, generator(SEED, name))
        rows.append(np.hstack([_boxes(seen), _depth(seen), _labels(seen)]))
    _write("worlds", rows)
    _write("orchard", _orchard())


def _orchard() -> list[Picture]:
    """Return rows of small frames from the middle of logs, half of them without people."""
    camera = stereo_camera(320, 240)
    kinds: tuple[LogKind, LogKind] = ("negative", "positive")
    cells = []
    for kind in kinds:
        for number in range(CELLS // 2):
            name = f"train/{kind}{number:03d}"
            script = SCRIPTS["orchard"](SEED, name, kind)
            at = script.drive.duration_s * 0.6
            seen = render(script.scene(), camera, script.drive.pose(at), at, generator(SEED, name))
            cells.append(_boxes(seen))
    return [np.hstack(cells[first : first + COLUMNS]) for first in range(0, CELLS, COLUMNS)]


def _write(name: str, rows: list[Picture]) -> None:
    out = SHEETS / f"{name}.jpg"
    SHEETS.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(out), np.vstack(rows)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 80])
    print(f"{out}: {out.stat().st_size / 1e3:.0f} kB")


def _boxes(seen: Rendered) -> Picture:
    picture = np.ascontiguousarray(seen.image)
    for thing in seen.things:
        if thing.label == 24 and thing.pixels > HIDDEN * thing.full_pixels:
            x0, y0, x1, y1 = thing.visible
            cv2.rectangle(picture, (x0 - 1, y0 - 1), (x1, y1), (255, 60, 40), 1)
    return picture


def _depth(seen: Rendered) -> Picture:
    """Return depth as colours: 1.5 m bright, 60 m dark, by the logarithm."""
    part = np.clip(np.log(60 / np.clip(seen.depth_m, 1.5, 60)) / np.log(60 / 1.5), 0, 1)
    return np.asarray(cv2.applyColorMap((255 * part).astype(np.uint8), cv2.COLORMAP_INFERNO)[..., ::-1])


def _labels(seen: Rendered) -> Picture:
    table = np.zeros((256, 3), np.uint8)
    for label, colour in COLOURS.items():
        table[label] = colour
    return table[seen.labels]


if __name__ == "__main__":
    main()

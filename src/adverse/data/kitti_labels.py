"""KITTI's label lines, and its rules for what is not judged.

A line: type, truncation, occlusion, alpha, left, top, right, bottom, height, width, length, x, y, z, turn.
The tracking data put frame and track before it. (x, y, z) is the middle of the object's lower side in the
rectified camera frame. Boxes are kept as they stand: the devkit compares them without adding a pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adverse.data.number_lines import lines_of, numbers, wrong_line
from adverse.data.objects import Annotated, Box, for_each_class, renamed
from adverse.errors import suggestion

Difficulty = Literal["all", "easy", "moderate", "hard"]
Point = tuple[float, float, float]
DONT_CARE = "DontCare"
CLASSES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc")
ALIASES = {"Person": "Person_sitting"}
"""What the tracking data call a class."""
NEIGHBOURS = {"Person_sitting": "Pedestrian", "Van": "Car"}
"""Too much alike to be wrong: where the second is judged, the first is ignored."""
LIMITS: dict[Difficulty, tuple[float, int, float]] = {
    "easy": (40, 0, 0.15),
    "moderate": (25, 1, 0.30),
    "hard": (25, 2, 0.50),
}
"""Of the devkit: least height in pixels, most occlusion (0 visible, 1 partly, 2 largely), most truncation."""


@dataclass(frozen=True)
class Row:
    """One label line."""

    where: str
    kind: str
    truncation: float
    occlusion: float
    box: Box
    position_m: Point

    def beyond(self, difficulty: Difficulty) -> bool:
        """Tell whether the object is too small, hidden or cut off to be judged at a difficulty."""
        if difficulty == "all":
            return False
        height, occlusion, truncation = LIMITS[difficulty]
        too_small = self.box[3] - self.box[1] < height
        return too_small or self.occlusion > occlusion or self.truncation > truncation


def read_object_labels(path: Path) -> list[Row]:
    """Read the labels of one image."""
    return [_row(where, words) for where, words in lines_of(path, "label")]


def read_tracking_labels(path: Path) -> dict[int, list[Row]]:
    """Read the labels of a sequence, by frame number."""
    found: dict[int, list[Row]] = {}
    for where, words in lines_of(path, "label"):
        if len(words) < 2 or not words[0].isdecimal():
            raise wrong_line(
                where, "label", repr(words[0][:40]), "a frame number, a track number, a type ..."
            )
        found.setdefault(int(words[0]), []).append(_row(where, words[2:]))
    return found


def class_names(rows: Iterable[Row], class_map: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the study calls the classes that are judged or occur, in KITTI's order."""
    present = {row.kind for row in rows} | {"Car", "Pedestrian", "Cyclist"}
    return tuple(dict.fromkeys(renamed(name, class_map) for name in CLASSES if name in present))


def objects_of(
    rows: Iterable[Row],
    categories: tuple[str, ...],
    class_map: Mapping[str, str],
    difficulty: Difficulty,
    place: Callable[[Point], Point] | None,
    *,
    drop_dont_care: bool = False,
) -> Iterator[Annotated]:
    """Yield the objects of a frame: DontCare is ignored for every class, a neighbour for its class.

    `place` carries a position into the world; None: there is no world to speak of.
    """
    for row in rows:
        if row.kind == DONT_CARE and drop_dont_care:
            continue
        if row.kind == DONT_CARE:
            yield from for_each_class(Annotated("", row.box, row.where), categories)
            continue
        label = renamed(row.kind, class_map)
        where_m = place(row.position_m) if place else None
        yield Annotated(label, row.box, row.where, row.beyond(difficulty), where_m)
        beside = renamed(NEIGHBOURS.get(row.kind, row.kind), class_map)
        if beside != label and beside in categories:
            yield Annotated(beside, row.box, row.where, ignore=True, position_m=where_m)


def _row(where: str, words: list[str]) -> Row:
    if len(words) != 15:
        got = f"{len(words)} words from the type on"
        raise wrong_line(where, "label", got, "a type and 14 numbers (a 16th is the score of a result)")
    kind = ALIASES.get(words[0], words[0])
    if kind not in (*CLASSES, DONT_CARE):
        raise wrong_line(where, "label", repr(kind), f"a type. {suggestion(kind, [*CLASSES, DONT_CARE])}")
    values = numbers(words[1:], 14, where, "label")
    truncation, occlusion, _, x0, y0, x1, y1 = values[:7]
    x, y, z = values[10:13]
    return Row(where, kind, truncation, occlusion, (x0, y0, x1, y1), (x, y, z))

"""MOT Challenge text, an object on each line: `frame, track, left, top, width, height, flag, class, visible`.

Frames and pixels are counted from 1. A flag of 0 means that the object is not to be evaluated. The first
challenge (2015) wrote -1 in place of class and visibility: then everything is a pedestrian. The later ones
evaluate pedestrians alone: a class of which nothing counts is no class of the data.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from adverse.data.files import numbers, read_text, wrong_line
from adverse.data.truth import AnnotatedObject

PEDESTRIAN = "pedestrian"
CLASSES = {
    1: PEDESTRIAN,
    2: "person on vehicle",
    3: "car",
    4: "bicycle",
    5: "motorbike",
    6: "non motorized vehicle",
    7: "static person",
    8: "distractor",
    9: "occluder",
    10: "occluder on the ground",
    11: "occluder full",
    12: "reflection",
    13: "crowd",
}
NEUTRAL = frozenset({2, 7, 8, 12})
"""Classes that the challenge's own evaluation counts neither for nor against: too like a pedestrian."""
NEUTRAL_2020 = NEUTRAL | {6}
"""The same of MOT20."""
_WHAT = "MOT"


def read_mot(
    path: Path, *, neutral: Collection[int] = NEUTRAL, least_visible: float = 0.0
) -> dict[int, list[AnnotatedObject]]:
    """Return the objects by frame, counted from 0; each with the class, track and visibility it is given.

    What is neutral in the challenge is an ignored pedestrian besides. Of other classes than pedestrians, only
    those are kept of which something counts. What is visible to less than `least_visible` is ignored.
    """
    rows: dict[int, list[AnnotatedObject]] = {}
    seen: set[tuple[int, int]] = set()
    for number, line in enumerate(read_text(path, what=_WHAT).splitlines(), start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        values = numbers([word.strip() for word in line.split(",")], None, place, _WHAT)
        if len(values) not in range(7, 11):
            raise wrong_line(place, _WHAT, f"{len(values)} numbers", "7 to 10 numbers divided by commas")
        frame, track = values[:2]
        if frame < 1 or frame % 1 or track % 1:
            got = f"frame {frame:g}, track {track:g}"
            raise wrong_line(place, _WHAT, got, "a whole frame number from 1 on, and a whole track number")
        if track >= 0 and (int(frame), int(track)) in seen:
            got = f"track {int(track)} twice in frame {int(frame)}"
            raise wrong_line(place, _WHAT, got, "each track once in a frame")
        seen.add((int(frame), int(track)))
        rows.setdefault(int(frame) - 1, []).extend(_objects(values, place, neutral, least_visible))
    counted = {thing.label for things in rows.values() for thing in things if not thing.ignore}
    kept = counted | {PEDESTRIAN}
    return {frame: [thing for thing in things if thing.label in kept] for frame, things in rows.items()}


def _objects(
    values: list[float], place: str, neutral: Collection[int], least_visible: float
) -> list[AnnotatedObject]:
    _, track, left, top, width, height, flag, *rest = values
    kind = int(rest[0]) if rest and rest[0] > 0 else 1
    if kind not in CLASSES or (rest and rest[0] % 1):
        raise wrong_line(place, _WHAT, f"class {rest[0]:g}", f"a class from 1 to {max(CLASSES)}, or -1")
    box = (left - 1, top - 1, left - 1 + width, top - 1 + height)
    seen = {} if len(rest) < 2 or rest[1] < 0 else {"visible": _visible(rest[1])}
    ignore = flag == 0 or (len(rest) > 1 and 0 <= rest[1] < least_visible)
    number = int(track) if track >= 0 else None
    thing = AnnotatedObject(CLASSES[kind], box, place, ignore=ignore, attributes=seen, track=number)
    if kind in neutral:
        return [thing, AnnotatedObject(PEDESTRIAN, box, place, ignore=True)]
    return [thing]


def _visible(share: float) -> str:
    """Return a share of an object that can be seen, in quarters.

    >>> _visible(0.3), _visible(1.0)
    ('25 to 50 %', '75 to 100 %')
    """
    quarter = min(max(int(share * 4), 0), 3)
    return f"{25 * quarter} to {25 * (quarter + 1)} %"

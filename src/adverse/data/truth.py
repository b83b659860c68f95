"""Objects as annotation files of many kinds hold them, made into the checked truth of one image.

What spoils one image (a box without size or outside of it) becomes that image's fault, as in COCO files; a
box partly outside is used and counted.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from adverse.data.attributes import told_attributes
from adverse.data.coco_truth import IGNORED, NEGATIVE, PARTLY_OUTSIDE, ROUNDING_PX, ImageTruth
from adverse.data.images import Size
from adverse.errors import AdverseError, DataError, StudyError, suggestion
from adverse.masks import Masks
from adverse.types import Truth

Box = tuple[float, float, float, float]


class Measurable(Protocol):
    """An image whose size is known, or can be found out."""

    def measure(self) -> Size:
        """Return width and height, or raise DataError."""


@dataclass(frozen=True)
class AnnotatedObject:
    """One object: its class in the study's words, its box (x0, y0, x1, y1) half-open, and where it stands."""

    label: str
    box: Box
    where: str
    ignore: bool = False
    position_m: tuple[float, float, float] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    mask: bytes | None = None
    """Compressed run lengths in an image of its own size, where masks are read."""
    track: int | None = None
    """Who it is over the frames of a log, where the data say so."""


@dataclass(frozen=True)
class Truths:
    """Makes the truth of one image after the other; numbers their ids and counts irregularities."""

    categories: tuple[str, ...]
    notes: Counter[str]
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    located: bool = False
    """Whether objects have positions: then one without has NaN."""

    def of(
        self,
        objects: Sequence[AnnotatedObject],
        image: Measurable,
        *,
        mask_size: tuple[int, int] | None = None,
        void: Masks | None = None,
    ) -> ImageTruth:
        """Return the truth of an image; its size is measured only where there is something to check.

        Where there is a `mask_size` (height, width), every object has a mask; `void` are the pixels in which
        nothing is evaluated.
        """
        if not objects:
            self.notes[NEGATIVE] += 1
        labels = {name: number for number, name in enumerate(self.categories)}
        unknown = (np.nan, np.nan, np.nan)
        points = [unknown if thing.position_m is None else thing.position_m for thing in objects]
        counts = tuple(thing.mask for thing in objects if thing.mask is not None)
        masks = None if mask_size is None else Masks(mask_size, counts)
        truth = Truth(
            boxes=np.array([thing.box for thing in objects], np.float64).reshape(-1, 4),
            labels=np.array([labels[thing.label] for thing in objects], np.int64),
            ignore=np.array([thing.ignore for thing in objects], np.bool_),
            ids=np.array(list(self._numbers(objects)), np.int64),
            positions_m=np.array(points, np.float64).reshape(-1, 3) if self.located else None,
            area=None if masks is None else masks.areas,
            attributes=told_attributes([thing.attributes for thing in objects]),
            masks=masks,
            void=void,
        )
        self.notes[IGNORED] += int(truth.ignore.sum())
        try:
            width, height = image.measure() if objects else (1, 1)
            self.notes[PARTLY_OUTSIDE] += sum(_partly_outside(thing, width, height) for thing in objects)
        except AdverseError as error:
            return ImageTruth(truth, str(error))
        return ImageTruth(truth, None)

    def _numbers(self, objects: Sequence[AnnotatedObject]) -> Iterator[int]:
        """Yield the number of each object: that of its track, or one that no track has."""
        sign = -1 if any(thing.track is not None for thing in objects) else 1
        for thing in objects:
            yield sign * next(self.ids) if thing.track is None else thing.track


def renamed(name: str, class_map: Mapping[str, str]) -> str:
    """Return what the study calls a class of the data."""
    return class_map.get(name, name)


def check_class_map(class_map: Mapping[str, str], classes: Iterable[str]) -> None:
    """Refuse a class_map that names a class the data do not have."""
    names = set(classes)
    for name in class_map:
        if name not in names:
            raise StudyError(
                "class_map names a class that the data do not have",
                where=f"data.class_map.{name}",
                got=repr(name),
                fix=suggestion(name, names),
            )


def for_each_class(region: AnnotatedObject, categories: Iterable[str]) -> list[AnnotatedObject]:
    """Return a region in which no class is evaluated, once for each class."""
    return [replace(region, label=name, ignore=True) for name in categories]


def _partly_outside(thing: AnnotatedObject, width: int, height: int) -> bool:
    x0, y0, x1, y1 = thing.box
    if x1 <= x0 or y1 <= y0:
        raise _bad_box(thing, "has no size", "a box whose right and lower side come after the left and upper")
    if x1 <= 0 or y1 <= 0 or x0 >= width or y0 >= height:
        raise _bad_box(thing, "is outside the image", f"a box in {width}x{height} pixels")
    return min(x0, y0, width - x1, height - y1) < -ROUNDING_PX


def _bad_box(thing: AnnotatedObject, what: str, wanted: str) -> DataError:
    shown = ", ".join(f"{value:g}" for value in thing.box)
    return DataError(
        f"the box of a {thing.label} {what}",
        where=thing.where,
        got=f"x0, y0, x1, y1 = {shown}",
        wanted=wanted,
        fix="Correct the box or take the object out.",
    )

"""Frames of a run as pictures: clean, or mutated exactly as the SUTs saw them, with boxes to draw on top.

The right half of a run opens an image only here, and only to show it. Where the data set is no longer
there, or has changed, there is a reason instead of a picture.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray

import adverse
from adverse import plugins
from adverse.errors import AdverseError, PluginError, StoreError, StudyError
from adverse.masks import Masks
from adverse.plugins import Registry
from adverse.store.read import Store
from adverse.store.records import MUTATION_ENDED
from adverse.study.frame_versions import FrameVersion, FrameVersions
from adverse.study.job import StudyJob
from adverse.study.plan import StudyPlan, job_of, read_dataset
from adverse.study.spec import StudyFile, study_from
from adverse.study.stages import Avoid
from adverse.types import Dataset, Frame, Image, Setting

WIDEST = 480
JPEG_QUALITY = 80
NAMED_FRAMES = 5


Region = tuple[int, int, int, int]
"""A part of an image: x0, y0, x1, y1 in pixels."""
LARGE_ENOUGH = 0.4
"""Of the height of an image; what is smaller is also shown from close up."""
CLOSE_UP = 3.0
LEAST_CLOSE_UP_PX = 48
"""Side of a close-up: so many times the longer side of what it shows, but no less than this."""
ARROW = 0.05
"""Length of the arrow, of the width of the picture."""

Outline = tuple[NDArray[np.int64], ...]
"""The closed lines (N,2) around the parts of a mask and its holes, x and y of pixels."""
Kind = Literal["truth", "ignored", "found", "meant"]


@dataclass(frozen=True)
class Mark:
    """What is to be drawn where on an image, in its pixels: truth, a detection, or who is meant."""

    kind: Kind
    x0: float
    y0: float
    x1: float
    y1: float
    outline: Outline = ()
    """Of its mask, where it has one."""


@dataclass(frozen=True)
class Box:
    """A mark in pixels of a picture; `path` draws its mask, as SVG has it."""

    kind: Kind
    x: float
    y: float
    width: float
    height: float
    path: str = ""


@dataclass(frozen=True)
class Picture:
    """An image as a data URI with its size, and the boxes that belong on it."""

    source: str
    width: int
    height: int
    boxes: tuple[Box, ...] = ()

    @property
    def arrows(self) -> list[str]:
        """The corners of an arrow that points at whoever is meant: from above or below, or else inside."""
        long = ARROW * self.width
        arrows = []
        for box in (box for box in self.boxes if box.kind == "meant"):
            middle, bottom = box.x + box.width / 2, box.y + box.height
            if box.y >= 1.25 * long:
                tip, end = box.y - 0.25 * long, box.y - 1.25 * long
            elif self.height - bottom >= 1.25 * long:
                tip, end = bottom + 0.25 * long, bottom + 1.25 * long
            else:
                end = max(box.y, 0.0) + 0.25 * long
                tip = end + long
            corners = ((middle, tip), (middle - long / 2, end), (middle + long / 2, end))
            arrows.append(" ".join(f"{x:.1f},{y:.1f}" for x, y in corners))
        return arrows


class Looker:
    """Opens frames of a run again; the study and its data set are read when they are first needed.

    A run folder may come from anybody, so the plug-ins that its study names are run only if somebody says
    that they are to be trusted. Without them there is no picture of what only they can read or make. Right
    after a run, its `plan` has all that is needed.
    """

    def __init__(self, store: Store, *, trust: bool = False, plan: StudyPlan | None = None) -> None:
        self.store = store
        self.trust = trust or plan is not None
        self.plan = plan
        self.changed: set[str] = set()
        """Frames whose image was found to be another than the SUTs saw."""

    @cached_property
    def withheld(self) -> tuple[Path, ...]:
        """The plug-in files that are not run: all of the study but our own, unless they are trusted."""
        ours = Path(adverse.__file__).resolve().parent
        return tuple(
            path for path in self._file.plugin_files if not self.trust and not path.is_relative_to(ours)
        )

    @cached_property
    def registry(self) -> Registry:
        """The plug-ins of the study that may be run."""
        if self.plan is not None:
            return self.plan.registry
        return plugins.load(path for path in self._file.plugin_files if path not in self.withheld)

    def known_plugins(self) -> Registry:
        """Return the plug-ins that may be run, or the installed ones where the study's no longer load."""
        try:
            return self.registry
        except AdverseError:
            return plugins.load()

    @cached_property
    def job(self) -> StudyJob:
        """What the workers of the run were given."""
        return job_of(self._file, self.dataset, ())

    @cached_property
    def dataset(self) -> Dataset:
        """The data set of the study."""
        if self.plan is not None:
            return self.plan.dataset
        with self._naming_what_is_withheld("the data format"):
            return read_dataset(self._file, self.registry)

    def image(self, frame_id: str, setting: str) -> Image:
        """Return a frame under a setting, pixel by pixel as the SUTs saw it, or raise if it was changed."""
        version = self.version(frame_id, setting)
        if self._pixels.get(frame_id, version.pixels) != version.pixels:
            self.changed.add(frame_id)
            raise StoreError(
                "the image was changed after the run",
                where=f"frame {frame_id!r}",
                fix="Put the old file back, or run the study again.",
            )
        return np.asarray(version.image)

    def version(self, frame_id: str, setting: str) -> FrameVersion:
        """Return a frame under a setting with its image, and the hash of its pixels before mutation.

        What the mutation moves is moved back, as the answers were.
        """
        frame = self._frames.get(frame_id)
        chosen = self._settings.get(setting)
        if frame is None or chosen is None:
            raise StoreError(
                "the run's study no longer has this frame or mutation",
                where=f"frame {frame_id!r}, {setting}",
                fix="Show the report beside the data it was made from.",
            )
        with self._naming_what_is_withheld(setting):
            for step in chosen.steps:
                self.registry.get("mutation", step.mutation)
        prepared = FrameVersions(frame, self.job, self.registry, avoid=self._ended, tell=lambda _: None)
        version = prepared.version(chosen)
        if version.image is None:
            raise StoreError("the frame cannot be shown", where=f"frame {frame_id!r}", got=version.refused)
        back = version.back
        return version if back is None else replace(version, image=back.pixels(version.image))

    def why_not(self) -> str | None:
        """Return why frames cannot be shown, or None if they can."""
        try:
            self._frames  # noqa: B018 - reading it is the question
        except AdverseError as error:
            return str(error)
        return None

    def not_pictured(self) -> str | None:
        """Return which mutations have no picture because their plug-in is not run; None: none of them."""
        if not self.withheld:
            return None
        known = {plugin.name for plugin in self.registry.all("mutation")}
        settings = self.store.run.settings
        unknown = [one.id for one in settings if not known.issuperset(step.mutation for step in one.steps)]
        if not unknown:
            return None
        files = ", ".join(map(str, self.withheld))
        return f"No pictures of {', '.join(unknown)}: plug-ins are not run without --trust ({files})."

    @contextlib.contextmanager
    def _naming_what_is_withheld(self, what: str) -> Iterator[None]:
        """Say of a name that nobody knows that a plug-in may know it, if some were not run."""
        try:
            yield
        except StudyError as error:
            if not self.withheld:
                raise
            raise PluginError(
                f"{what} may need a plug-in of the study, and those are not run without --trust",
                where=", ".join(map(str, self.withheld)),
                got=error.what,
                fix="Read the file, and give --trust if you trust it.",
            ) from error

    def changed_words(self) -> str | None:
        """Say which frames are not shown because their images changed after the run; None: none."""
        if not self.changed:
            return None
        frames = sorted(self.changed)
        more = f" and {len(frames) - NAMED_FRAMES} more" if len(frames) > NAMED_FRAMES else ""
        named = ", ".join(frames[:NAMED_FRAMES])
        return f"Not pictured, because the images were changed after the run: {named}{more}."

    @cached_property
    def _ended(self) -> Avoid:
        """What a mutation was ended at during the run: here, nothing would end it."""
        rows = self.store.troubles().to_pylist()
        ended = [row for row in rows if (row["reason"] or "").startswith(MUTATION_ENDED)]
        return Avoid({(row["frame"], row["setting"]): row["reason"] for row in ended})

    @cached_property
    def _settings(self) -> Mapping[str, Setting]:
        return {setting.id: setting for setting in self.store.run.settings}

    @cached_property
    def _pixels(self) -> Mapping[str, str]:
        return self.store.pixel_hashes(self.store.frames.ids)

    @cached_property
    def _frames(self) -> Mapping[str, Frame]:
        return {frame.id: frame for log in self.dataset.logs for frame in log.frames}

    @cached_property
    def _file(self) -> StudyFile:
        if self.plan is not None:
            return self.plan.file
        told: dict[str, Any] = yaml.safe_load(self.store.folder.study.read_text())
        if not told.get("mutations"):  # who writes an empty list forgot them; a run may have none
            told.pop("mutations", None)
        return study_from(told, self.store.run.folder)


def picture(
    image: Image, marks: Sequence[Mark] = (), *, region: Region | None = None, widest: int = WIDEST
) -> Picture:
    """Return an image, or a region of it, as a small JPEG in a data URI, with the marks that are on it."""
    x0, y0, x1, y1 = region or (0, 0, int(image.shape[1]), int(image.shape[0]))
    part = image[y0:y1, x0:x1]
    scale = min(1.0, widest / (x1 - x0))
    small = part if scale == 1 else cv2.resize(part, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    data = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
    source = f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
    boxes = tuple(_box(mark, x0, y0, scale) for mark in marks)
    return Picture(source, small.shape[1], small.shape[0], boxes)


def close_up(mark: Mark, image: Image) -> Region | None:
    """Return a square around something that is small in its image; None where it is large enough to see.

    >>> close_up(Mark("meant", 10, 10, 20, 40), np.zeros((240, 320, 3), np.uint8))
    (0, 0, 90, 90)
    >>> close_up(Mark("meant", 10, 10, 90, 200), np.zeros((240, 320, 3), np.uint8)) is None
    True
    """
    height, width = image.shape[:2]
    size = max(mark.x1 - mark.x0, mark.y1 - mark.y0)
    if size >= LARGE_ENOUGH * height:
        return None
    side = min(height, width, max(LEAST_CLOSE_UP_PX, round(CLOSE_UP * size)))
    x0, y0 = (
        int(np.clip(round((low + high - side) / 2), 0, end - side))
        for low, high, end in ((mark.x0, mark.x1, width), (mark.y0, mark.y1, height))
    )
    return x0, y0, x0 + side, y0 + side


def _box(mark: Mark, x0: int, y0: int, scale: float) -> Box:
    """Return a mark in pixels of a picture that begins at x0, y0 and is smaller by the scale."""
    left, right = (round((x - x0) * scale, 1) for x in (mark.x0, mark.x1))
    top, bottom = (round((y - y0) * scale, 1) for y in (mark.y0, mark.y1))
    path = outline_path(mark.outline, x0, y0, scale)
    return Box(mark.kind, left, top, round(right - left, 1), round(bottom - top, 1), path)


def outline(counts: bytes | None, size: tuple[int, int] | None) -> Outline:
    """Return the lines around a mask of compressed run lengths; none where there is no mask."""
    if counts is None or size is None:
        return ()
    mask = Masks(size, (counts,)).array(0).astype(np.uint8)
    lines, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    return tuple(np.asarray(line, np.int64)[:, 0] for line in lines)


def outline_path(lines: Outline, x0: float = 0, y0: float = 0, scale: float = 1) -> str:
    """Return lines as an SVG path in pixels of a picture that begins at x0, y0, smaller by the scale."""
    parts = []
    for line in lines:
        points = (line + 0.5 - (x0, y0)) * scale  # the middle of a pixel
        parts.append("M" + " ".join(f"{x:.1f},{y:.1f}" for x, y in points.tolist()) + "Z")
    return "".join(parts)

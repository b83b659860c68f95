"""Frames of a run as pictures: clean, or mutated exactly as the SUTs saw them, with boxes to draw on top.

The right half of a run opens an image only here, and only to show it. Where the data set is no longer
there, or has changed, there is a reason instead of a picture.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray

import adverse
from adverse import plugins
from adverse.errors import AdverseError, PluginError, StoreError, StudyError
from adverse.mutations.settings import parse
from adverse.plugins import Registry
from adverse.store.read import Store
from adverse.study.frame_versions import FrameVersion, FrameVersions
from adverse.study.job import StudyJob
from adverse.study.plan import StudyPlan, job_of, read_dataset
from adverse.study.spec import StudyFile, study_from
from adverse.study.stages import NOTHING_TO_AVOID
from adverse.types import Dataset, Frame, Image

WIDEST = 480
JPEG_QUALITY = 80
NAMED_FRAMES = 5


@dataclass(frozen=True)
class Box:
    """A box to draw, in pixels of the picture; kind is truth, ignored or found."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Picture:
    """An image as a data URI with its size, and the boxes that belong on it."""

    source: str
    width: int
    height: int
    boxes: tuple[Box, ...] = ()


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
        """Return a frame under a setting with its image, and the hash of its pixels before mutation."""
        frame = self._frames.get(frame_id)
        if frame is None or setting not in self.store.groups:
            raise StoreError(
                "the run's study no longer has this frame or mutation",
                where=f"frame {frame_id!r}, {setting}",
                fix="Show the report beside the data it was made from.",
            )
        with self._naming_what_is_withheld(setting):
            chosen = parse(setting, self.registry)
        prepared = FrameVersions(frame, self.job, self.registry, avoid=NOTHING_TO_AVOID, tell=lambda _: None)
        version = prepared.version(chosen)
        if version.image is None:
            raise StoreError("the frame cannot be shown", where=f"frame {frame_id!r}", got=version.refused)
        return version

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
        unknown = [name for name in self.store.groups if not self._knows(name)]
        if not unknown:
            return None
        files = ", ".join(map(str, self.withheld))
        return f"No pictures of {', '.join(unknown)}: plug-ins are not run without --trust ({files})."

    def _knows(self, setting: str) -> bool:
        try:
            parse(setting, self.registry)
        except StudyError:
            return False
        return True

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
    def _pixels(self) -> Mapping[str, str]:
        return self.store.pixel_hashes(self.store.frames.ids)

    @cached_property
    def _frames(self) -> Mapping[str, Frame]:
        return {frame.id: frame for log in self.dataset.logs for frame in log.frames}

    @cached_property
    def _file(self) -> StudyFile:
        if self.plan is not None:
            return self.plan.file
        told: Any = yaml.safe_load(self.store.folder.study.read_text())
        return study_from(told, self.store.run.folder)


def picture(image: Image, boxes: tuple[Box, ...] = ()) -> Picture:
    """Return an image as a small JPEG in a data URI."""
    scale = scale_of(image)
    small = image if scale == 1 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    data = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
    source = f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
    return Picture(source, small.shape[1], small.shape[0], boxes)


def scale_of(image: Image) -> float:
    """Return how much smaller than the image its picture is."""
    return min(1.0, WIDEST / int(image.shape[1]))


def box_of(kind: str, box: NDArray[Any], image: Image) -> Box:
    """Return a box x0 y0 x1 y1 in pixels of the image as one to draw on its picture."""
    x0, y0, x1, y1 = (round(float(value) * scale_of(image), 1) for value in box)
    return Box(kind, x0, y0, round(x1 - x0, 1), round(y1 - y0, 1))


def visible_change(before: Image, after: Image) -> float:
    """Return how far pixels moved, in grey levels: the root of the mean square."""
    difference = before.astype(np.float32) - after.astype(np.float32)
    return float(np.sqrt(np.mean(difference**2)))

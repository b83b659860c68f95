"""Frames of a run as pictures: un-mutated, mutated exactly as the SUTs saw them, with boxes to draw on top.

The right half of a run opens an image only here, and only to show it. Where the data set is no longer
there, or has changed, there is a reason instead of a picture.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray

from adverse import plugins
from adverse.errors import AdverseError, StoreError
from adverse.plugins import Registry
from adverse.study.plan import Job, job_of, read_dataset, read_settings
from adverse.study.prepare import Prepared, Version
from adverse.study.spec import StudyFile, study_from
from adverse.study.stages import NOTHING_TO_AVOID
from adverse.study.store.read import Store
from adverse.types import Dataset, Frame, Image

WIDEST = 480
JPEG_QUALITY = 80


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
    """Opens frames of a run again; the study and its data set are read when they are first needed."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def registry(self) -> Registry:
        """The plug-ins of the study."""
        return plugins.load(self._file.plugin_files)

    @cached_property
    def job(self) -> Job:
        """What the workers of the run were told."""
        settings = read_settings(self._file, self.registry)
        return job_of(self._file, self.dataset, settings)

    @cached_property
    def dataset(self) -> Dataset:
        """The data set of the study."""
        return read_dataset(self._file, self.registry)

    def image(self, frame_id: str, setting: str) -> Image:
        """Return a frame under a setting, pixel by pixel as the SUTs saw it."""
        return np.asarray(self.version(frame_id, setting).image)

    def version(self, frame_id: str, setting: str) -> Version:
        """Return a frame under a setting with its image, and the hash of its pixels before mutation."""
        frame = self._frames.get(frame_id)
        chosen = next((one for one in self.job.settings if one.id == setting), None)
        if frame is None or chosen is None:
            raise StoreError(
                "the run's study no longer has this frame or mutation",
                where=f"frame {frame_id!r}, {setting}",
                fix="Show the report beside the data it was made from.",
            )
        prepared = Prepared(frame, self.job, self.registry, avoid=NOTHING_TO_AVOID, tell=lambda _: None)
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

    @cached_property
    def _frames(self) -> Mapping[str, Frame]:
        return {frame.id: frame for log in self.dataset.logs for frame in log.frames}

    @cached_property
    def _file(self) -> StudyFile:
        told: Any = yaml.safe_load(self.store.folder.study.read_text())
        return study_from(told, Path(self.store.manifest["study"]["folder"]))


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

"""Frames for the explorer: mutated when they are asked for, as PNG, and as few kept as fit a bound.

Each is made by the study's own mutation with the study's seed, so it is to the pixel what the SUTs saw, if
the data set is still what it was; where its pixels have changed since the run, the page says so.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from adverse.errors import AdverseError
from adverse.pages.view.session import ExploredRun
from adverse.text import without_paths

MOST_BYTES = 96 * 1024 * 1024
QUICK = 1
"""PNG compression: a page is served over the loopback, where time counts more than size."""
CHANGED = "The data set has changed since the run: this is not the image that the SUT was shown."


@dataclass(frozen=True)
class FramePicture:
    """A frame under a setting as PNG with its size; `why` it cannot be shown, or not be trusted."""

    png: bytes = b""
    width: int = 0
    height: int = 0
    why: str | None = None


class Pictures:
    """Renders frames one at a time, and keeps the latest."""

    def __init__(self, run: ExploredRun, *, most_bytes: int = MOST_BYTES) -> None:
        self.run = run
        self.most_bytes = most_bytes
        self.kept: OrderedDict[tuple[int, str], FramePicture] = OrderedDict()
        self.roots = (run.store.folder.path.resolve(), run.store.run.folder, Path.home())
        self._printed: set[str] = set()
        self._lock = threading.Lock()  # plug-ins need not be safe to run in two threads

    def of(self, frame: int, setting: str) -> FramePicture:
        """Return a frame (a row of the run's frames) under a setting."""
        key = (frame, setting)
        with self._lock:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key]
            shown = self._render(frame, setting)
            if shown.png:  # what failed may work again once the data are back
                self.kept[key] = shown
            while len(self.kept) > 1 and sum(len(one.png) for one in self.kept.values()) > self.most_bytes:
                self.kept.popitem(last=False)
            return shown

    def _render(self, frame: int, setting: str) -> FramePicture:
        name = self.run.store.frames.ids[frame]
        try:
            version = self.run.looker.version(name, setting)
        except AdverseError as error:
            self._tell(f"no picture: {error}")
            return FramePicture(why=without_paths(str(error), *self.roots))
        image = np.asarray(version.image)
        png = cv2.imencode(".png", image[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, QUICK])[1].tobytes()
        frames = self.run.store.frames
        known = self.run.pixel_hashes(frames.logs[frames.log[frame]])
        changed = version.pixels != known.get(name, version.pixels)
        return FramePicture(png, int(image.shape[1]), int(image.shape[0]), CHANGED if changed else None)

    def _tell(self, words: str) -> None:
        """Say on the terminal, once, what the page says without paths."""
        if words not in self._printed:
            self._printed.add(words)
            print(words, file=sys.stderr)  # noqa: T201

"""Whether the right images of a data set are what they should be, before depth is computed of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from adverse.data.plausibility import Doubt, spread
from adverse.depth.stereo import check_pair
from adverse.errors import AdverseError
from adverse.study.depth_maps import with_depth
from adverse.study.scale_check import doubtful_scale
from adverse.study.spec import DepthSection
from adverse.types import Dataset

PAIRS = 5
"""So many pairs, spread over the data set, are looked at."""


def doubtful_pairs(dataset: Dataset) -> Iterator[Doubt]:
    """Yield what is wrong with stereo pairs and their calibration, each kind once.

    Nobody who needs no depth is stopped by it.
    """
    frames = [frame for log in dataset.logs for frame in log.frames if frame.right is not None]
    met: dict[str, list[tuple[str, AdverseError]]] = {}
    looked = 0
    for frame in spread([frame for frame in frames if frame.camera is not None], PAIRS):
        if frame.right is None or frame.camera is None:
            continue
        try:
            left, right = frame.image(), frame.right()
        except (AdverseError, OSError):
            continue  # said of the file when it is decoded
        looked += 1
        try:
            check_pair(left, right, frame.camera, where=f"frame {frame.id!r}")
        except AdverseError as error:
            met.setdefault(error.what, []).append((f"frame {frame.id!r}", error))
    for what, found in met.items():
        where, first = found[0]
        got = "; ".join(words for words in (first.got, f"{len(found)} of {looked} pairs looked at") if words)
        yield Doubt(what, where, got, first.fix or "", len(found))
    if looked and not met:
        yield from (doubt._replace(certain=False) for doubt in _of_scale(dataset))


def _of_scale(dataset: Dataset) -> list[Doubt]:
    """Return doubts about the scale of depth, were it computed from the pairs."""
    section = DepthSection.model_validate({"from": "stereo"})
    try:
        return list(doubtful_scale(with_depth(dataset, section, folder=Path(), where="data check")))
    except AdverseError:  # of a frame whose calibration was not looked at; said when depth is computed
        return []

"""How does a model want to see its images? Tried out on labelled ones, where the model does not say.

A wrong order of channels, scale or way of resizing raises no error: the model only finds less. So every usual
combination is tried on a few labelled images and the one with the highest average precision is taken. What
the model's family does as a rule wins wherever the difference may be chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.errors import AdverseError, SutError
from adverse.suts.ask import ask
from adverse.suts.preprocess import Channels, Interpolation, Resize
from adverse.types import Dataset, Detections, Detector, Frame, Image

FIRST, SECOND = 8, 32
"""Images on which all ways are tried, and those on which the best are tried again."""
BEST = 4
IOU = 0.5
POOR = 0.05
"""Average precision below which no way can be said to fit."""
SURE = 2.0
"""Standard errors that a difference must have to count."""
SCALES: Mapping[str, Mapping[str, Any]] = {
    "pixels / 255": {},
    "pixels 0 to 255": {"scale": 1.0},
    "pixels -1 to 1": {"scale": 1 / 127.5, "mean": [1.0, 1.0, 1.0]},
    "ImageNet mean and std": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
}
BYTES = "bytes"
"""Stands for the scale of a model that takes whole numbers."""


@dataclass(frozen=True)
class Showing:
    """One way to show images to a model."""

    resize: Resize = "letterbox"
    channels: Channels = "rgb"
    scale: str = "pixels / 255"
    interpolation: Interpolation = "linear"

    def __str__(self) -> str:
        """Name it in words."""
        return f"{self.resize} ({self.interpolation}), {self.channels.upper()}, {self.scale}"

    def options(self) -> dict[str, Any]:
        """Return the options of an adapter that say the same; mean and std are in the model's own order."""
        scale = SCALES.get(self.scale, {})
        turned = {
            key: value[::-1] if isinstance(value, list) and self.channels == "bgr" else value
            for key, value in scale.items()
        }
        smoothed = {"interpolation": self.interpolation} if self.interpolation != "linear" else {}
        return {"resize": self.resize, **smoothed, "channels": self.channels, **turned}


CONVENTIONS: Mapping[str, Showing] = {
    "fastestdet": Showing("stretch", "bgr", interpolation="area"),
    "ssd": Showing("stretch", "rgb", "pixels -1 to 1"),
    "detr": Showing("stretch", "rgb", "ImageNet mean and std"),
    "detr-sigmoid": Showing("stretch", "rgb"),
}
"""What the families of models do as a rule; all others as `Showing()` has it."""


class LabelledImages(NamedTuple):
    """Decoded images with their true boxes (N,4), and labels (N,) as numbers of categories."""

    images: Sequence[Image]
    boxes: Sequence[NDArray[np.float64]]
    labels: Sequence[NDArray[np.int64]]


class RankedDetections(NamedTuple):
    """The detections of one image: scores, which of them are hits; and the number of true objects."""

    scores: NDArray[np.float64]
    hits: NDArray[np.bool_]
    truths: int


@dataclass(frozen=True)
class Chosen:
    """The way to take, why in one line, and all that was tried with its score."""

    showing: Showing
    why: str
    tried: tuple[str, ...]


def convention(decoder: str, *, floats: bool) -> Showing:
    """Return what models of a decoder's family do as a rule."""
    usual = CONVENTIONS.get(decoder, Showing())
    return usual if floats else replace(usual, scale=BYTES)


def labelled_images(dataset: Dataset) -> LabelledImages:
    """Decode labelled images, evenly spread over the data set, at most as many as are tried."""
    frames = [frame for log in dataset.logs for frame in log.frames if _usable(frame)]
    places = np.linspace(0, len(frames) - 1, min(SECOND, len(frames))).astype(int).tolist()
    images: list[tuple[Image, NDArray[np.float64], NDArray[np.int64]]] = []
    for place in places:
        truth = frames[place].truth
        try:
            images.append((frames[place].image(), truth.boxes[~truth.ignore], truth.labels[~truth.ignore]))
        except AdverseError:  # adverse data check reports it
            continue
    return LabelledImages([row[0] for row in images], [row[1] for row in images], [row[2] for row in images])


def try_out(
    build: Callable[[Showing], Detector],
    usual: Showing,
    labelled: LabelledImages,
    category_of: Mapping[int, int],
) -> Chosen:
    """Try all ways on a few images and the best on all of them; `category_of` is by the model's labels.

    The interpolation is that of the family; the other one is tried with the best way only.
    """
    scales = [BYTES] if usual.scale == BYTES else list(SCALES)
    resizes: tuple[Resize, ...] = ("letterbox", "stretch")
    orders: tuple[Channels, ...] = ("rgb", "bgr")
    ways = [Showing(*way, usual.interpolation) for way in itertools.product(resizes, orders, scales)]
    some = range(0, len(labelled.images), max(1, len(labelled.images) // FIRST))[:FIRST]
    first = LabelledImages(
        [labelled.images[at] for at in some],
        [labelled.boxes[at] for at in some],
        [labelled.labels[at] for at in some],
    )
    early = {way: pooled_precision(_judge(build(way), first, category_of)) for way in ways}
    ways.sort(key=lambda way: (-early[way], way != usual))
    other: Interpolation = "area" if usual.interpolation == "linear" else "linear"
    finalists = list(dict.fromkeys([*ways[:BEST], usual, replace(ways[0], interpolation=other)]))
    judged = {way: _judge(build(way), labelled, category_of) for way in finalists}
    final = {way: pooled_precision(ranked) for way, ranked in judged.items()}
    finalists.sort(key=lambda way: (-final[way], way != usual))
    best = finalists[0]
    taken = best if _differs(judged[best], judged[usual]) else usual
    alike = [way for way in finalists if way != taken and not _differs(judged[best], judged[way])]
    return Chosen(
        taken,
        _why(taken, usual, alike, final, len(ways), len(labelled.images)),
        (
            f"on {len(labelled.images)} images:",
            *(f"  {final[way]:.3f}  {way}" for way in finalists),
            f"on {len(first.images)} images:",
            *(f"  {early[way]:.3f}  {way}" for way in ways),
        ),
    )


def pooled_precision(ranked: Sequence[RankedDetections]) -> float:
    """Return the area under precision over recall, the detections of all images and classes in one order.

    >>> image = RankedDetections(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]), 2)
    >>> round(pooled_precision([image]), 3)
    0.833
    """
    total = sum(image.truths for image in ranked)
    if not total:
        return 0.0
    order = np.argsort(-np.concatenate([image.scores for image in ranked]), kind="stable")
    hits = np.concatenate([image.hits for image in ranked])[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(envelope[hits].sum() / total)


def _usable(frame: Frame) -> bool:
    return frame.fault is None and bool((~frame.truth.ignore).any())


def _judge(
    system: Detector, labelled: LabelledImages, category_of: Mapping[int, int]
) -> list[RankedDetections]:
    ranked = []
    for image, boxes, labels in zip(*labelled, strict=True):
        try:
            (answer,) = ask(system, [image], name="model")
        except SutError:  # as with an input that makes it overflow: nothing is found this way
            answer = Detections.none()
        ranked.append(_ranked(answer, boxes, labels, category_of))
    return ranked


def _ranked(
    answer: Detections,
    boxes: NDArray[np.float64],
    labels: NDArray[np.int64],
    category_of: Mapping[int, int],
) -> RankedDetections:
    """Match detections with the true objects of their class, the surest first, each object once."""
    order = np.argsort(-answer.scores, kind="stable").tolist()
    rows = [row for row in order if not category_of or int(answer.labels[row]) in category_of]
    free = np.ones(len(boxes), np.bool_)
    hits = np.zeros(len(rows), np.bool_)
    for place, row in enumerate(rows):
        overlap = _overlaps(answer.boxes[row].astype(np.float64), boxes)
        fitting = free & (overlap >= IOU)
        if category_of:
            fitting &= labels == category_of[int(answer.labels[row])]
        if fitting.any():
            free[int(np.argmax(np.where(fitting, overlap, -1.0)))] = False
            hits[place] = True
    return RankedDetections(answer.scores[rows].astype(np.float64), hits, len(boxes))


def _overlaps(box: NDArray[np.float64], boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    size = np.maximum(np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2]), 0)
    both = size[:, 0] * size[:, 1]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    union = (box[2] - box[0]) * (box[3] - box[1]) + areas - both
    shares: NDArray[np.float64] = both / np.maximum(union, 1e-9)
    return shares


def _differs(better: Sequence[RankedDetections], other: Sequence[RankedDetections]) -> bool:
    """Return whether one way is better than another by more than chance: the jackknife over images."""
    count = len(better)
    gain = pooled_precision(better) - pooled_precision(other)
    left_out = np.array(
        [
            pooled_precision([*better[:at], *better[at + 1 :]])
            - pooled_precision([*other[:at], *other[at + 1 :]])
            for at in range(count)
        ]
    )
    error = math.sqrt((count - 1) / count * float(((left_out - left_out.mean()) ** 2).sum()))
    return gain > SURE * error


def _why(
    taken: Showing,
    usual: Showing,
    alike: Sequence[Showing],
    final: Mapping[Showing, float],
    ways: int,
    images: int,
) -> str:
    best = max(final.values())
    score = f"pooled AP50 {final[taken]:.3f} on {images} labelled images"
    text = f"images are shown as {taken}: {score}, {ways} ways tried"
    if best < POOR:
        return f"{text}. NO WAY FITS: check decoder:, classes: and the model's own example"
    if alike:
        others = "; ".join(f"{way} {final[way]:.3f}" for way in alike)
        choice = "what its family does" if taken == usual else "the best"
        text += f". Within chance of it: {others}. Taken is {choice}: compare with the model's own example"
    return text

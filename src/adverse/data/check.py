"""What is in a data set, what of it can be used, and which studies it supports, before one is started.

Facts only; `check_text` writes them out. Truth and file names are looked at in full; images, depth and labels
are decoded for a sample of the frames, or for all.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adverse.content import SOURCES, content_hashes, digest
from adverse.data.checksums import listed, mismatches
from adverse.data.plausibility import (
    Doubt,
    alike,
    doubtful_boxes,
    doubtful_depth,
    faults_by_kind,
    same_images,
    spread,
)
from adverse.errors import AdverseError, one_line
from adverse.plugins import Plugin, built_in
from adverse.types import Dataset, Frame, Log, Source

SAMPLE = 100
"""Frames whose files are decoded unless all are requested."""
FROM_PAIRS = "`depth: {from: stereo}` in the study computes depth from the pairs"
UNLABELLED = "nothing is annotated, so recall cannot be measured; agreement can"
NOTHING_TO_SCORE = "no test frame has a box"
BUDGET = 0.01
"""Share of test frames that a study may lose before it is incomplete, unless it says otherwise."""


class Problem(NamedTuple):
    """Something wrong: where it was met first, what was there, the way out, how often, how bad it is."""

    what: str
    where: str
    got: str
    fix: str
    times: int
    stops: bool


class ClassCount(NamedTuple):
    """A class: boxes that count and that are ignored, and the logs with, only with ignored, and without."""

    name: str
    boxes: int
    ignored: int
    positive_logs: int
    ignored_logs: int
    negative_logs: int


class SplitCount(NamedTuple):
    """How much of the data a split has."""

    name: str
    logs: int
    images: int


class DepthFacts(NamedTuple):
    """Frames with depth; of the sample, the share of pixels with a distance, and the distances between."""

    frames: int
    known_share: float | None
    nearest_m: float | None
    farthest_m: float | None


class InPart(NamedTuple):
    """Mutations that only so many of the test frames can be shown under."""

    frames: int
    of: int
    mutations: Sequence[str]


class Able(NamedTuple):
    """Whether something can be done with the data, and why not."""

    name: str
    able: bool
    reason: str = ""


@dataclass(frozen=True)
class DataCheck:
    """All that was found out."""

    name: str
    images: int
    decoded: int
    unusable: int
    logs: int
    sizes: Mapping[str, int]
    splits: Sequence[SplitCount]
    classes: Sequence[ClassCount]
    frames_per_s: float | None
    depth: DepthFacts
    poses: int
    cameras: int
    stereo: int
    labels: int
    pixel_classes: int
    pictured: int
    pictured_classes: Mapping[str, int]
    """The images of each class, where an image tells its class."""
    positions: bool
    robot: bool
    levels: Sequence[Able]
    mutations: int
    mutations_out: Mapping[str, Sequence[str]]
    """By what no test frame has, the mutations that cannot be applied."""
    mutations_in_part: Mapping[str, InPart]
    """By what some test frames lack, the mutations that those frames are left out of."""
    depth_from_pairs: bool
    """Whether depth is missing and can be computed from stereo pairs."""
    notes: Mapping[str, int]
    problems: Sequence[Problem]

    @property
    def usable(self) -> bool:
        """Whether a study of the data would not be stopped or left incomplete."""
        return not any(problem.stops for problem in self.problems)

    @property
    def labelled(self) -> bool:
        """Whether there is any truth to score against."""
        boxes = any(row.boxes or row.ignored for row in self.classes)
        return boxes or bool(self.pictured) or bool(self.labels and self.pixel_classes)

    @property
    def classifies(self) -> bool:
        """Whether the data is for classifiers alone: images tell their class, and nothing has a box."""
        return bool(self.pictured) and not any(row.boxes or row.ignored for row in self.classes)


def check(
    dataset: Dataset,
    mutations: Iterable[Plugin] = (),
    *,
    everything: bool = False,
    watch: Callable[[int, int], None] = lambda _done, _of: None,
    more_doubts: Iterable[Doubt] = (),
) -> DataCheck:
    """Look at a data set; `everything` decodes all frames instead of a sample spread over them.

    `more_doubts` are what others found who know more of depth.
    """
    frames = [frame for log in dataset.logs for frame in log.frames]
    test = [frame for log in dataset.logs if log.split == "test" for frame in log.frames]
    there = [frame for frame in frames if frame.fault is None]
    sample = there if everything else spread(there, SAMPLE)
    looked = _look_at_all(sample, watch)
    faults = Counter({frame.id: 1 for frame in frames if frame.fault is not None})
    faults.update(looked.broken)
    lacking = _lacking(test)
    wanting = {
        need: sorted(plugin.name for plugin in plugins if need in plugin.needs)
        for plugins in (list(mutations),)
        for need in ("depth_m", "labels")
    }
    having = {need: sum(getattr(frame, need) is not None for frame in test) for need in wanting}
    return DataCheck(
        name=dataset.name,
        images=len(frames),
        decoded=len(sample),
        unusable=len(faults),
        logs=len(dataset.logs),
        sizes=dict(looked.sizes.most_common()),
        splits=_splits(dataset.logs),
        classes=_classes(dataset),
        frames_per_s=_rate(dataset.logs),
        depth=looked.depth_facts(sum(frame.depth_m is not None for frame in frames)),
        poses=sum(frame.world_from_camera is not None for frame in frames),
        cameras=sum(frame.camera is not None for frame in frames),
        stereo=sum(frame.right is not None for frame in frames),
        labels=sum(frame.labels is not None for frame in frames),
        pixel_classes=len(set(dataset.pixel_classes.values())),
        pictured=sum(frame.category is not None for frame in frames),
        pictured_classes=Counter(
            dataset.categories[frame.category] for frame in frames if frame.category is not None
        ),
        positions=any(frame.truth.positions_m is not None for frame in frames),
        robot=dataset.robot is not None,
        levels=list(_levels(dataset, lacking)),
        mutations=len(list(mutations)),
        mutations_out={need: names for need, names in wanting.items() if names and not having[need]},
        mutations_in_part={
            need: InPart(having[need], len(test), names)
            for need, names in wanting.items()
            if names and 0 < having[need] < len(test)
        },
        depth_from_pairs=_computable(test),
        notes=dict(dataset.notes),
        problems=[
            *_replaced(dataset, frames),
            *_missing_parts(dataset, test, faults),
            *_grouped(frames, looked),
            *(Problem(*doubt[:-1], stops=doubt.certain) for doubt in _doubts(dataset, looked)),
            *(Problem(*doubt[:-1], stops=doubt.certain) for doubt in more_doubts),
        ],
    )


def _replaced(dataset: Dataset, frames: Iterable[Frame]) -> Iterator[Problem]:
    """Yield the files that are not what the data set's own list of hashes says."""
    sources = (getattr(frame, name) for frame in frames for name in SOURCES)
    paths = [source.path for source in sources if source is not None]
    wrong = list(mismatches(content_hashes(listed([*paths, *dataset.annotations]))))
    if wrong:
        first = wrong[0]
        yield Problem(first.what, first.where or "", first.got or "", first.fix or "", len(wrong), stops=True)


def _doubts(dataset: Dataset, looked: _Looked) -> Iterator[Doubt]:
    yield from doubtful_boxes(dataset)
    yield from doubtful_depth(dataset)
    yield from same_images(dataset.logs, lambda frame: looked.pixels.get(frame.id))


class _Looked:
    """The result of decoding the sample."""

    def __init__(self) -> None:
        self.sizes: Counter[str] = Counter()
        self.pixels: dict[str, str] = {}
        self.broken: set[str] = set()
        self.errors: list[tuple[str, AdverseError]] = []
        self.known_px = 0
        self.all_px = 0
        self.nearest_m, self.farthest_m = np.inf, -np.inf

    def depth_facts(self, frames: int) -> DepthFacts:
        """Return what is known about depth, `frames` of the data set having one."""
        share = self.known_px / self.all_px if self.all_px else None
        ends = (self.nearest_m, self.farthest_m) if self.nearest_m <= self.farthest_m else (None, None)
        return DepthFacts(frames, share, *ends)


class _Seen(NamedTuple):
    """One decoded frame: its size, the error of each file that does not decode, depth in short."""

    frame: Frame
    size: str | None
    pixels: str | None
    errors: list[tuple[str, AdverseError]]
    depth: tuple[int, int, float, float] | None


def _look_at_all(sample: Sequence[Frame], watch: Callable[[int, int], None]) -> _Looked:
    looked = _Looked()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, seen in enumerate(pool.map(_look, sample), start=1):
            watch(done, len(sample))
            looked.errors += seen.errors
            if seen.size is None:
                looked.broken.add(seen.frame.id)
            else:
                looked.sizes[seen.size] += 1
                looked.pixels[seen.frame.id] = seen.pixels or ""
            if seen.depth is not None:
                valid, pixels, nearest, farthest = seen.depth
                looked.known_px += valid
                looked.all_px += pixels
                looked.nearest_m = min(looked.nearest_m, nearest)
                looked.farthest_m = max(looked.farthest_m, farthest)
    return looked


def _look(frame: Frame) -> _Seen:
    errors: list[tuple[str, AdverseError]] = []

    def read(source: Source | None) -> Any:
        try:
            return None if source is None else source()
        except AdverseError as error:
            errors.append((frame.id, error))
        except Exception as error:  # noqa: BLE001 - a plug-in's reader may raise anything
            errors.append((frame.id, AdverseError("a file cannot be read", got=one_line(error))))
        return None

    image, _, _, depth = (read(source) for source in (frame.image, frame.right, frame.labels, frame.depth_m))
    size = None if image is None else f"{image.shape[1]}x{image.shape[0]}"
    pixels = None if image is None else digest(size or "", image.tobytes())
    if depth is None:
        return _Seen(frame, size, pixels, errors, None)
    valid = depth > 0  # False for NaN too
    near = depth[valid & np.isfinite(depth)]
    ends = (float(near.min()), float(near.max())) if near.size else (np.inf, -np.inf)
    return _Seen(frame, size, pixels, errors, (int(valid.sum()), depth.size, *ends))


def _splits(logs: Iterable[Log]) -> list[SplitCount]:
    frames_by_split: dict[str, list[int]] = defaultdict(list)
    for log in logs:
        frames_by_split[log.split].append(len(log.frames))
    return [SplitCount(name, len(sizes), sum(sizes)) for name, sizes in frames_by_split.items()]


def _classes(dataset: Dataset) -> list[ClassCount]:
    n = len(dataset.categories)
    boxes, ignored = np.zeros(n, np.int64), np.zeros(n, np.int64)
    positive, only_ignored = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for log in dataset.logs:
        counted, left = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for frame in log.frames:
            counted += np.bincount(frame.truth.labels[~frame.truth.ignore], minlength=n)
            left += np.bincount(frame.truth.labels[frame.truth.ignore], minlength=n)
        boxes, ignored = boxes + counted, ignored + left
        positive += counted > 0
        only_ignored += (counted == 0) & (left > 0)
    negative = len(dataset.logs) - positive - only_ignored
    columns = (boxes, ignored, positive, only_ignored, negative)
    return [
        ClassCount(name, *(int(column[row]) for column in columns))
        for row, name in enumerate(dataset.categories)
    ]


def _rate(logs: Iterable[Log]) -> float | None:
    """Return the frames per second: the median over neighbours that both have a time."""
    gaps = [
        later.time_s - earlier.time_s
        for log in logs
        for earlier, later in zip(log.frames, log.frames[1:], strict=False)
        if earlier.time_s is not None and later.time_s is not None and later.time_s > earlier.time_s
    ]
    return 1 / float(np.median(gaps)) if gaps else None


def _lacking(test: Sequence[Frame]) -> dict[str, int]:
    """Count the test frames without what the levels in context need."""
    needs = {"depth": "depth_m", "a pose": "world_from_camera", "a camera": "camera"}
    counts = {noun: sum(getattr(frame, name) is None for frame in test) for noun, name in needs.items()}
    return {noun: count for noun, count in counts.items() if count}


def _computable(test: Sequence[Frame]) -> bool:
    """Return whether all test frames without depth have a stereo pair that it can be computed from."""
    without = [frame for frame in test if frame.depth_m is None]
    return bool(without) and all(
        frame.right is not None and frame.camera is not None and frame.camera.baseline_m is not None
        for frame in without
    )


def _levels(dataset: Dataset, lacking: Mapping[str, int]) -> Iterator[Able]:
    test = [log for log in dataset.logs if log.split == "test"]
    frames = sum(len(log.frames) for log in test)
    words = [
        f"{count} of {frames} test frames have no {noun.removeprefix('a ')}"
        for noun, count in lacking.items()
    ]
    way = ""
    if _computable([frame for log in test for frame in log.frames]):
        words = [text for text in words if not text.endswith("no depth")]
        way = FROM_PAIRS
    scored = any(len(frame.truth.boxes) for log in test for frame in log.frames)
    radii = "" if dataset.robot else "robot: in the study must tell the radii"
    moving = any(len(log.frames) > 1 for log in test)
    still = "every log is one image, so nothing drives"
    for level in built_in("level"):
        lacks = words if {"depth", "pose", "camera"} & level.needs else []
        if not scored:
            lacks = [NOTHING_TO_SCORE]
        elif "motion" in level.needs and not moving:
            lacks = lacks or [still]
        notes = (way if "depth" in level.needs else "", radii if "robot" in level.needs else "")
        yield Able(level.name, not lacks, "; ".join(lacks or filter(None, notes)))


def _missing_parts(dataset: Dataset, test: Sequence[Frame], faults: Mapping[str, int]) -> Iterator[Problem]:
    place = dataset.name
    if not test:
        fix = "Name the test part: split: {test: FOLDER}."
        yield Problem("there are no test frames", place, "", fix, 1, stops=True)
    if not any(_has_truth(frame, dataset) for log in dataset.logs for frame in log.frames):
        fix = "Run it label-free, as adverse init writes it: truth: clean compares with the system's own "
        fix += "answers on clean frames, truth: NAME with those of a stronger one (docs/label-free.md). "
        fix += "If each folder holds the images of one class: --format class-folders, for classifiers."
        if dataset.categories or not test:
            yield Problem("there are no boxes, so nothing can be scored", place, "", fix, 1, stops=True)
        else:
            yield Problem(UNLABELLED, place, "", fix, 1, stops=False)
    lost = sum(frame.id in faults for frame in test)
    if test and lost > BUDGET * len(test):
        what = f"{lost} of {len(test)} test frames cannot be used; a study may lose {BUDGET:.0%}"
        fix = "Mend or take out what is listed below, or raise quarantine_budget in the study."
        first = next(frame.id for frame in test if frame.id in faults)
        yield Problem(what, f"frame {first!r}", "", fix, lost, stops=True)


def _has_truth(frame: Frame, dataset: Dataset) -> bool:
    """Return whether an answer can be evaluated: by boxes, named pixels, or the class of the image."""
    named = frame.labels is not None and bool(dataset.pixel_classes)
    return len(frame.truth.boxes) > 0 or named or frame.category is not None


def _grouped(frames: Iterable[Frame], looked: _Looked) -> list[Problem]:
    """Return the faults of frames, alike ones together, the most frequent first."""
    met = faults_by_kind(frames)
    for frame_id, error in looked.errors:
        place = error.where or f"frame {frame_id!r}"
        met.setdefault((alike(error.what), error.fix or ""), []).append((place, error.got or ""))
    problems = [
        Problem(what, *places[0], fix, len(places), stops=False) for (what, fix), places in met.items()
    ]
    return sorted(problems, key=lambda problem: (-problem.times, problem.what))

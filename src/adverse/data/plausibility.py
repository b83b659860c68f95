"""Is the data what it seems to be? What is legal but hardly meant, looked for before any work.

Corners written as width and height, depth in millimetres, one picture under two names: each makes a wrong
number and no error. What is certain stops the studies that need it; the rest is said, and nothing refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from adverse.errors import AdverseError
from adverse.types import Dataset, Frame, Log

BOXED_FRAMES = 2000
"""Frames whose boxes are compared with the image."""
MEASURED = 64
"""Of them, images whose size must be read from their files."""
FEWEST_BOXES = 10
OUTSIDE = 0.25
"""Share of the boxes that reach beyond their image, from which they are hardly [x, y, width, height]."""
NEARLY_ALL = 0.99
OVERHANG_PX = 2.0
DEPTHS = 5
"""Depth maps that are read."""
FARTHEST_MEDIAN_M, NEAREST_MEDIAN_M = 1000.0, 0.05
"""Between these is the middle of any scene that a camera on a machine sees."""
NEAREST_M = 0.01
T = TypeVar("T")


class Doubt(NamedTuple):
    """Something that is hardly meant: where it was met first, what was there, the way out, how often."""

    what: str
    where: str
    got: str
    fix: str
    times: int
    certain: bool = False
    """Whether nothing that is computed from it could be right."""

    def __str__(self) -> str:
        return f"{self.what}: {self.got} ({self.where}). {self.fix}"


def doubtful_boxes(dataset: Dataset) -> Iterator[Doubt]:
    """Yield a doubt if the true boxes look like corners that were taken for a corner and a size."""
    boxes, edges, first = [], [], None
    unread = MEASURED
    for frame in spread([f for log in dataset.logs for f in log.frames if len(f.truth.boxes)], BOXED_FRAMES):
        size = getattr(frame.image, "size", None)
        if size is None and unread:
            unread -= 1
            size = _measured(frame)
        if size is not None:
            first = first or frame
            boxes.append(frame.truth.boxes)
            edges.append(np.broadcast_to(np.array(size, np.float64), (len(frame.truth.boxes), 2)))
    if first is None:
        return
    corners, limits = np.concatenate(boxes), np.concatenate(edges) + OVERHANG_PX
    written = np.column_stack([corners[:, :2], corners[:, 2:] - corners[:, :2]])
    beyond = int((corners[:, 2:] > limits).any(axis=1).sum())
    ordered = (written[:, 2:] > written[:, :2]).all(axis=1).mean() >= NEARLY_ALL
    fitting = (written[:, 2:] <= limits).all(axis=1).mean() >= NEARLY_ALL
    if len(corners) >= FEWEST_BOXES and beyond > OUTSIDE * len(corners) and ordered and fitting:
        yield Doubt(
            "the true boxes look like [x0, y0, x1, y1], but are read as [x, y, width, height]",
            f"frame {first.id!r}",
            f"{beyond} of {len(corners)} reach beyond their image, and as corners none would",
            "Write bbox as [x, y, width, height].",
            beyond,
        )


def faulty_frames(frames: Iterable[Frame]) -> Iterator[Doubt]:
    """Yield what is wrong with frames that will be left out, known without decoding them."""
    for (what, fix), places in faults_by_kind(frames).items():
        count = f"{len(places)} frame{' is' if len(places) == 1 else 's are'} left out"
        yield Doubt(f"{count}: {what}", *places[0], fix, len(places))


def faults_by_kind(frames: Iterable[Frame]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return where faults of frames are and what is there, by what is wrong and its fix."""
    met: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for frame in frames:
        if frame.fault is not None:
            text, _, fix = frame.fault.partition(". Fix: ")
            what, _, rest = text.partition("; wanted: ")[0].partition("; where: ")
            where, _, got = rest.partition("; got: ")
            met.setdefault((alike(what), fix), []).append((where or f"frame {frame.id!r}", got))
    return met


def alike(what: str) -> str:
    """Leave out the number that tells one box from another.

    >>> alike("the box of annotation 17 has no size")
    'the box of an annotation has no size'
    """
    words = what.split(" ")
    if "annotation" in words and words[(at := words.index("annotation")) + 1 : at + 2]:
        number = words[at + 1]
        if number.lstrip("-").isdecimal():
            return " ".join([*words[:at], "an annotation", *words[at + 2 :]])
    return what


class _Depths(NamedTuple):
    """A few depth maps: the median of each with its frame, the nearest depth and where, those without any."""

    medians: list[tuple[float, Frame]]
    nearest: tuple[float, str]
    empty: list[str]


def _depths(dataset: Dataset) -> _Depths:
    medians: list[tuple[float, Frame]] = []
    nearest = (np.inf, "")
    empty = []
    for frame in spread([f for log in dataset.logs for f in log.frames if f.depth_m is not None], DEPTHS):
        try:
            depth = frame.depth_m() if frame.depth_m is not None else np.zeros(0)
        except (AdverseError, OSError):
            continue  # said of the frame when it is used
        known = depth[np.isfinite(depth) & (depth > 0)]
        if known.size:
            medians.append((float(np.median(known)), frame))
            nearest = min(nearest, (float(known.min()), frame.id))
        elif not np.isinf(depth).any():
            empty.append(frame.id)
    return _Depths(medians, nearest, empty)


def doubtful_depth(dataset: Dataset) -> Iterator[Doubt]:
    """Yield doubts about depth, from a few maps spread over the data set: its unit, and maps without any."""
    medians, nearest, empty = _depths(dataset)
    if empty:
        fix = "Check that scans are not empty and that the calibration puts them into the image."
        got = f"{len(empty)} of {len(empty) + len(medians)} maps"
        yield Doubt("no pixel of a depth map has a depth", f"frame {empty[0]!r}", got, fix, len(empty))
    if not medians:
        return
    middle = float(np.median([median for median, _ in medians]))
    where = f"frame {medians[0][1].id!r}"
    got = f"the median of {len(medians)} maps is {middle:.3g} m"
    if middle > FARTHEST_MEDIAN_M:
        fix = "Depth is in metres: divide millimetres by 1000 (depth_scale_m: 0.001 for PNG)."
        yield Doubt("depth is too large by about a thousand", where, got, fix, len(medians), certain=True)
    elif middle < NEAREST_MEDIAN_M:
        fix = "Depth is in metres: check the unit, and depth_scale_m where it is PNG."
        yield Doubt("depth is too small by about a thousand", where, got, fix, len(medians), certain=True)
    elif odd := [found for found in medians if not NEAREST_MEDIAN_M <= found[0] <= FARTHEST_MEDIAN_M]:
        fix = "Depth is in metres: check the unit of these frames' files."
        got = f"a median of {odd[0][0]:.3g} m, and {middle:.3g} m over {len(medians)} maps"
        where = f"frame {odd[0][1].id!r}"
        yield Doubt("depth of some frames is in another unit than that of others", where, got, fix, len(odd))
    elif nearest[0] < NEAREST_M:
        fix = "Write 0 or NaN where depth is unknown; defocus spreads such pixels by a bounded radius."
        got = f"{nearest[0]:.3g} m"
        yield Doubt("depth is nearer than any lens sees", f"frame {nearest[1]!r}", got, fix, 1)


def same_images(logs: Iterable[Log], content: Callable[[Frame], str | None]) -> Iterator[Doubt]:
    """Yield doubts about pictures that are there more than once; `content` returns what they are known by."""
    found: Mapping[str, list[tuple[str, Frame]]] = defaultdict(list)
    for log in logs:
        for frame in log.frames:
            key = content(frame)
            if key is not None:
                found[key].append((log.split, frame))
    across: list[list[tuple[str, Frame]]] = []
    within: list[list[tuple[str, Frame]]] = []
    for group in found.values():
        if len(group) > 1:
            (across if len({split for split, _ in group}) > 1 else within).append(group)
    if across:
        splits = " and ".join(sorted({split for split, _ in across[0]}))
        fix = "Take them out of one split: thresholds would be set on what is tested."
        yield _twice(f"images of {splits} are identical", across, fix)
    if within:
        fix = "Keep one of each: the others count as further evidence, and are none."
        yield _twice("images within a split are identical", within, fix)


def by_hash(hashes: Mapping[Path, str], missing: str) -> Callable[[Frame], str | None]:
    """Return what tells the content of a frame's image from hashes of files."""

    def content(frame: Frame) -> str | None:
        found = hashes.get(frame.image.path)
        if found is None or found == missing:
            return None
        return f"{found} {getattr(frame.image, 'number', '')}"  # a video holds many

    return content


def spread(items: Sequence[T], count: int) -> list[T]:
    """Return so many items, evenly spread.

    >>> spread("abcde", 3)
    ['a', 'c', 'e']
    """
    if len(items) <= count:
        return list(items)
    return [items[int(at)] for at in np.linspace(0, len(items) - 1, count)]


def _twice(what: str, groups: Sequence[Sequence[tuple[str, Frame]]], fix: str) -> Doubt:
    first, second = groups[0][0][1], groups[0][1][1]
    extra = sum(len(group) - 1 for group in groups)
    return Doubt(what, f"frame {second.id!r}", f"{extra}, such as {first.id!r} and {second.id!r}", fix, extra)


def _measured(frame: Frame) -> tuple[int, int] | None:
    measure = getattr(frame.image, "measure", None)
    try:
        return None if measure is None else measure()
    except AdverseError:  # said when the frame is read
        return None

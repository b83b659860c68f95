"""Masks of objects as COCO's run lengths: compact enough to be kept for every detection of a run.

A mask is the lengths of its runs, of pixels outside and inside in turn, down the columns from the left, each
written as the difference to the run two before in groups of 5 bits (COCO's compressed `counts`). A mask of a
person takes some hundred bytes. What is no mask raises ValueError here; who read it says whose fault it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]
FIRST = 48
"""The character of a group of bits that are all 0."""
MORE, SIGN, BITS = 32, 16, 5
MOST_GROUPS = 12
"""Groups of 5 bits that one run can have: 60 bits are more than any image has pixels."""
MOST_SIDE = 2**20


@dataclass(frozen=True, eq=False)
class Masks:
    """N masks of one image of `size` (height, width), each as COCO's compressed counts.

    >>> masks = Masks.of(np.array([[[0, 1, 1], [0, 1, 0]]], bool))
    >>> masks.counts, masks.areas, masks.boxes.tolist()
    ((b'231',), array([3.]), [[1.0, 0.0, 3.0, 2.0]])
    """

    size: tuple[int, int]
    counts: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.counts)

    @staticmethod
    def of(value: Any) -> Masks:
        """Return masks from an array (N, height, width), or from a list of COCO's {size, counts}."""
        if isinstance(value, Masks):
            return value
        if isinstance(value, Sequence) and all(isinstance(item, Mapping) for item in value):
            return _from_coco(value)
        array = np.asarray(value)
        if array.ndim == 3 and len(array) == 0:  # numpy makes nothing into floats
            return Masks.none((int(array.shape[1]), int(array.shape[2])))
        if array.ndim != 3 or array.dtype.kind not in "bui" or 0 in array.shape[1:]:
            got = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"masks are {got}, not (N, height, width) of bool")
        if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
            raise ValueError("masks hold numbers other than 0 and 1")
        size = int(array.shape[1]), int(array.shape[2])
        return Masks(size, tuple(mask_in_crop(plane != 0, 0, 0, size) for plane in array))

    @staticmethod
    def none(size: tuple[int, int]) -> Masks:
        """Return no masks of an image of (height, width)."""
        return Masks(size, ())

    @property
    def areas(self) -> NDArray[np.float64]:
        """The pixels in each."""
        return np.array([float(run_lengths(counts)[1::2].sum()) for counts in self.counts], np.float64)

    @property
    def boxes(self) -> NDArray[np.float64]:
        """The boxes (N,4) around what is inside, x0 y0 x1 y1; zeros for an empty mask."""
        boxes = np.zeros((len(self), 4))
        for row, counts in enumerate(self.counts):
            boxes[row] = _box(run_lengths(counts), self.size[0])
        return boxes

    def take(self, rows: Iterable[int]) -> Masks:
        """Return some of them, in the given order."""
        return Masks(self.size, tuple(self.counts[row] for row in rows))

    def array(self, row: int) -> Bools:
        """Return one as (height, width)."""
        inside = np.repeat(*_alternating(run_lengths(self.counts[row])))
        return np.ascontiguousarray(inside.reshape(self.size[1], self.size[0]).T)

    def as_coco(self) -> list[dict[str, Any]]:
        """Return them as COCO's files hold them."""
        return [{"size": list(self.size), "counts": counts.decode()} for counts in self.counts]

    def same(self, other: Masks | None) -> bool:
        """Tell whether two are equal to the bit, order included."""
        return other is not None and (self.size, self.counts) == (other.size, other.counts)


def mask_in_crop(crop: Bools, left: int, top: int, size: tuple[int, int]) -> bytes:
    """Return the counts of a mask that is empty outside of a part of its image of (height, width)."""
    height, width = size
    columns = np.zeros((crop.shape[1], crop.shape[0] + 2), np.int8)
    columns[:, 1:-1] = crop.T
    change = np.diff(columns, axis=1)
    starts, ends = (np.nonzero(change == step) for step in (1, -1))
    first, last = ((left + column) * height + top + row for column, row in (starts, ends))
    joined = np.zeros(len(first), np.bool_)  # one run goes on at the top of the next column
    joined[1:] = first[1:] == last[:-1]
    first, last = first[~joined], last[np.append(~joined[1:], True)[: len(last)]]
    edges = np.column_stack([first, last]).reshape(-1)
    runs = np.diff(np.concatenate([[0], edges, [height * width]]))
    return _written(runs if runs[-1] or len(runs) == 1 else runs[:-1])


def run_lengths(counts: bytes) -> Counts:
    """Return the runs, outside first, that compressed counts stand for; ValueError where they are none."""
    values = np.frombuffer(counts, np.uint8).astype(np.int64) - FIRST
    if len(values) and (int(values.min()) < 0 or int(values.max()) > 63):
        raise ValueError("its counts hold characters that COCO's run lengths do not have")
    ends = np.flatnonzero(values < MORE)
    if not len(values) or len(ends) == 0 or ends[-1] != len(values) - 1:
        raise ValueError("its counts are cut off")
    sizes = np.diff(ends, prepend=-1)
    if int(sizes.max()) > MOST_GROUPS:
        raise ValueError("its counts hold a run that is longer than any image")
    place = np.arange(len(values)) - np.repeat(ends - sizes + 1, sizes)
    numbers = np.add.reduceat((values & 31) << (BITS * place), ends - sizes + 1)
    negative = (values[ends] & SIGN) > 0
    numbers = np.where(negative, numbers - (1 << (BITS * sizes)), numbers)
    for begin in (1, 2):
        numbers[begin::2] = np.cumsum(numbers[begin::2])
    return np.asarray(numbers, np.int64)


def checked_counts(counts: bytes, size: tuple[int, int]) -> bytes:
    """Return counts that fill an image of (height, width) exactly, or raise ValueError."""
    runs = run_lengths(counts)
    if int(runs.min()) < 0 or int(runs.sum()) != size[0] * size[1]:
        raise ValueError(f"its counts do not add up to {size[1]}x{size[0]} pixels")
    return counts


def from_runs(runs: Sequence[int], size: tuple[int, int]) -> bytes:
    """Return the compressed counts of runs that are written out, or raise ValueError."""
    if not runs or not all(isinstance(run, int) and not isinstance(run, bool) and run >= 0 for run in runs):
        raise ValueError("its counts are not whole numbers from 0 up")
    if sum(runs) != size[0] * size[1]:
        raise ValueError(f"its counts do not add up to {size[1]}x{size[0]} pixels")
    return _written(np.array(runs, np.int64))


def mask_size(value: Any) -> tuple[int, int]:
    """Return (height, width) as COCO's `size` gives it, or raise ValueError."""
    if (
        not isinstance(value, list | tuple)
        or len(value) != 2
        or not all(isinstance(side, int) and 0 < side <= MOST_SIDE for side in value)
    ):
        raise ValueError(f"its size is {value!r}, not [height, width]")
    return int(value[0]), int(value[1])


def coco_counts(
    mask: Mapping[str, Any], size: tuple[int, int] | None = None
) -> tuple[tuple[int, int], bytes]:
    """Return the size and the checked counts of COCO's {size, counts}; of a size, where one is wanted."""
    told = mask_size(mask.get("size"))
    if size is not None and told != size:
        raise ValueError(f"its size is {told[1]}x{told[0]}, not {size[1]}x{size[0]}")
    counts = mask.get("counts")
    if isinstance(counts, list):
        return told, from_runs(counts, told)
    if isinstance(counts, str):
        counts = counts.encode("ascii", "replace")
    if not isinstance(counts, bytes):
        raise ValueError("its counts are neither a text nor a list of runs")  # noqa: TRY004 - of a file
    return told, checked_counts(counts, told)


def _from_coco(value: Sequence[Mapping[str, Any]]) -> Masks:
    if not value:
        return Masks.none((0, 0))
    size, first = coco_counts(value[0])
    return Masks(size, (first, *(coco_counts(mask, size)[1] for mask in value[1:])))


def _written(runs: Counts) -> bytes:
    """Return the compressed counts of runs."""
    numbers = runs.copy()
    numbers[3:] -= runs[1:-2]
    groups = np.zeros((len(numbers), MOST_GROUPS), np.int64)
    sizes = np.zeros(len(numbers), np.int64)
    open_ = np.ones(len(numbers), np.bool_)
    for place in range(MOST_GROUPS):
        group = numbers & 31
        numbers = numbers >> BITS
        more = np.where(group & SIGN, numbers != -1, numbers != 0)
        groups[:, place] = group | (more * MORE)
        sizes += open_
        open_ &= more
        if not open_.any():
            break
    kept = np.arange(MOST_GROUPS) < sizes[:, None]
    return (groups[kept] + FIRST).astype(np.uint8).tobytes()


def _alternating(runs: Counts) -> tuple[Bools, Counts]:
    return np.arange(len(runs)) % 2 == 1, runs


def _box(runs: Counts, height: int) -> tuple[float, float, float, float]:
    ends = np.cumsum(runs)
    first, last = ends[0 : len(runs) - 1 : 2], ends[1::2]
    real = last > first
    first, last = first[real], last[real] - 1
    if not len(first):
        return 0.0, 0.0, 0.0, 0.0
    left, right = first[0] // height, last[-1] // height
    if (first // height != last // height).any():  # a run from one column into the next touches both ends
        top, bottom = 0, height - 1
    else:
        top, bottom = (first % height).min(), (last % height).max()
    return float(left), float(top), float(right + 1), float(bottom + 1)

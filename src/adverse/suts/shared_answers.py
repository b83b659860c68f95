"""Answers to several images that lie in one place of memory: a system that overwrites its own output.

A model that fills one array for every image and returns it for each has given the last image's answer to
all of them. Who reads the answers afterwards cannot tell, so such answers are refused whatever they hold.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.errors import BadAnswerError
from adverse.masks import Masks
from adverse.types import ClassScores, Detections, LabelMap

COPIES = (Detections, LabelMap, ClassScores, Masks, str, bytes, int, float, np.generic, type(None))
"""What cannot be written to; ours have copied what they were made of."""
MOST_WORK = 1000
"""Spent on two arrays that lie in the same stretch of memory, to see whether they have a value in common."""


def refuse_shared(answers: Sequence[Any]) -> None:
    """Raise BadAnswerError where the answers to two images are, or hold, one list or one array.

    Arrays that cannot be written to, and empty ones, may be shared.

    >>> refuse_shared([[0.1, 0.9], [0.1, 0.9]])
    >>> refuse_shared([np.zeros(0)] * 2)
    """
    if len(answers) < 2:
        return
    owners: dict[int, int] = {}
    arrays: list[tuple[int, int, int, NDArray[Any]]] = []
    for image, answer in enumerate(answers):
        for part in _parts(answer):
            if owners.setdefault(id(part), image) != image:
                raise _shared(type(part).__name__, owners[id(part)], image)
            if isinstance(part, np.ndarray):
                arrays.append((*_bounds(part), image, part))
    _refuse_overlaps(sorted(arrays, key=lambda entry: entry[:3]))


def _refuse_overlaps(arrays: Iterable[tuple[int, int, int, NDArray[Any]]]) -> None:
    """Raise where two arrays of different images have a value in common; they come by where they begin."""
    open_: list[tuple[int, int, NDArray[Any]]] = []
    for begin, end, image, array in arrays:
        open_ = [entry for entry in open_ if entry[0] > begin]
        for _, other, earlier in open_:
            if other != image and _overlap(earlier, array):
                raise _shared("array", *sorted((other, image)))
        open_.append((end, image, array))


def _bounds(array: NDArray[Any]) -> tuple[int, int]:
    """Return the addresses of the first byte of an array and of the one after its last."""
    begin: int = array.__array_interface__["data"][0]
    reach = [step * (size - 1) for step, size in zip(array.strides, array.shape, strict=True)]
    return begin + sum(min(way, 0) for way in reach), begin + sum(
        max(way, 0) for way in reach
    ) + array.itemsize


def _overlap(first: NDArray[Any], second: NDArray[Any]) -> bool:
    try:
        return np.shares_memory(first, second, max_work=MOST_WORK)  # type: ignore[arg-type] # any number
    except np.exceptions.TooHardError:
        return True


def _parts(value: Any) -> Iterator[Any]:
    """Yield every list, mapping and array in an answer that somebody can write to."""
    if isinstance(value, COPIES):
        return
    if isinstance(value, np.ndarray):
        if value.size and _writeable(value):
            yield value
        return
    if isinstance(value, list | dict):
        yield value
    for item in _items(value):
        yield from _parts(item)


def _items(value: Any) -> Iterable[Any]:
    """Return what an answer, or a part of one, consists of."""
    if isinstance(value, Mapping):  # the size of an image, in COCO's masks, is the same for all
        return [item for name, item in value.items() if name != "size"]
    if isinstance(value, list | tuple):
        return () if _are_numbers(value) or (value and _are_numbers(value[0])) else value
    with contextlib.suppress(Exception):  # a tensor, perhaps
        return [np.asarray(value)]
    return ()


def _are_numbers(value: Any) -> bool:
    """Return whether this is a row of plain numbers: a constant one may stand in every answer."""
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], COPIES)


def _writeable(array: Any) -> bool:
    """Return whether an array, or one that it is a view of, can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


def _shared(kind: str, first: int, second: int) -> BadAnswerError:
    kind = "array" if kind == "ndarray" else kind
    return BadAnswerError(
        f"frames of a batch share one {kind}",
        got=f"the same for images {first} and {second}, which can hold the answer to one of them only",
        wanted=f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} of its own for each image",
        fix="Copy it for each image, as in boxes.copy().",
    )

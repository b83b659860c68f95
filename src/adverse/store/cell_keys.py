"""The cells of a run by the million: sixteen bytes for each key; what else they are, units share.

A cell as an object takes hundreds of bytes, so ten million would take all the memory there is. Here the cells
of a unit are one run of bytes that yields objects when it is looped over, and an index of all finished cells
is three arrays.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from adverse.content import digest

C = TypeVar("C")
WIDTH = 16
KEY = re.compile(r"[0-9a-f]{32}")
"""How keys are written: the bytes of a digest in hex."""


class PackedCells(Sequence[C], Generic[C]):
    """Cells of one unit. `pairs` tells of each which setting and SUT it is; units that are alike share it."""

    __slots__ = ("keys", "make", "pairs")

    def __init__(
        self, keys: bytes, pairs: tuple[tuple[Any, Any], ...], make: Callable[[str, Any, Any], C]
    ) -> None:
        if len(keys) != WIDTH * len(pairs):
            raise ValueError(f"{len(keys)} bytes of keys for {len(pairs)} cells")
        self.keys = keys
        self.pairs = pairs
        self.make = make

    def __len__(self) -> int:
        """Count the cells."""
        return len(self.pairs)

    @overload
    def __getitem__(self, place: int) -> C: ...
    @overload
    def __getitem__(self, place: slice) -> PackedCells[C]: ...
    def __getitem__(self, place: int | slice) -> C | PackedCells[C]:
        """Return a cell, or some of them."""
        if isinstance(place, slice):
            mask = np.zeros(len(self), bool)
            mask[place] = True
            return self.where(mask)
        at = range(len(self))[place]
        return self.make(self.key(at), *self.pairs[at])

    def __iter__(self) -> Iterator[C]:
        """Yield each cell."""
        return (self.make(self.key(at), *pair) for at, pair in enumerate(self.pairs))

    def __eq__(self, other: object) -> bool:
        """Return whether the other holds the same cells in the same order."""
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(_same, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Name the cells."""
        return repr(tuple(self))

    def hex_keys(self) -> list[str]:
        """Return all keys."""
        text, width = self.keys.hex(), 2 * WIDTH
        return [text[start : start + width] for start in range(0, len(text), width)]

    def numbers(self) -> NDArray[np.int64]:
        """Return the pairs (N, 2), where they are of numbers."""
        return _numbers(self.pairs)

    def key(self, at: int) -> str:
        """Return one key."""
        return self.keys[WIDTH * at : WIDTH * (at + 1)].hex()

    def where(self, mask: NDArray[np.bool_]) -> PackedCells[C]:
        """Return the cells for which the mask is true."""
        if mask.all():
            return self
        table = np.frombuffer(self.keys, np.uint8).reshape(-1, WIDTH)
        return PackedCells(table[mask].tobytes(), _some(self.pairs, mask.tobytes()), self.make)


@functools.lru_cache(maxsize=64)
def _numbers(pairs: tuple[tuple[Any, Any], ...]) -> NDArray[np.int64]:
    return np.array(pairs, np.int64).reshape(-1, 2)


@functools.lru_cache(maxsize=1024)
def _some(pairs: tuple[tuple[Any, Any], ...], mask: bytes) -> tuple[tuple[Any, Any], ...]:
    return tuple(pair for pair, here in zip(pairs, mask, strict=True) if here)


def _same(one: object, other: object) -> bool:
    return one == other


def packed_keys(keys: Iterable[str]) -> bytes:
    """Return keys as bytes; one that is no digest in hex is known by its own digest."""
    return bytes.fromhex("".join(key if KEY.fullmatch(key) else digest(key) for key in keys))


class CellIndex:
    """Which of some units holds each cell, where several do the last; units go by their numbers."""

    def __init__(self, units: Iterable[bytes]) -> None:
        some = list(units)
        counts = np.fromiter((len(keys) // WIDTH for keys in some), np.int64, len(some))
        owners = np.repeat(np.arange(len(some), dtype=np.int32), counts)
        heads, tails = _halves(b"".join(some))
        order = np.lexsort((tails, heads))  # stable: of equal keys the last unit comes last
        self._heads, self._tails, self._owners = heads[order], tails[order], owners[order]

    def __bool__(self) -> bool:
        """Return whether there is any cell."""
        return len(self._owners) > 0

    def units_of(self, keys: bytes) -> NDArray[np.int64]:
        """Return the number of the unit that holds each key; -1: none does."""
        heads, tails = _halves(keys)
        found = np.full(len(heads), -1, np.int64)
        left = np.arange(len(heads))
        place = np.searchsorted(self._heads, heads, side="right") - 1
        while len(left):
            equal = (place >= 0) & (self._heads[place] == heads[left]) if len(self._heads) else place >= 0
            left, place = left[equal], place[equal]
            here = self._tails[place] == tails[left]
            found[left[here]] = self._owners[place[here]]
            left, place = left[~here], place[~here] - 1
        return found

    def units(self) -> list[int]:
        """Return the numbers of the units that are the last to hold some cell."""
        last = np.ones(len(self._owners), bool)
        last[:-1] = (self._heads[1:] != self._heads[:-1]) | (self._tails[1:] != self._tails[:-1])
        return [int(unit) for unit in np.unique(self._owners[last])]


def _halves(keys: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    table = np.frombuffer(keys, ">u8").astype(np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])

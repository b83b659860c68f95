"""How much of each thing is seen, and how much there would be to see with nothing in front of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.casting import NEAREST_M, Owners, screen_box
from adverse.data.worlds.compiled import compiled
from adverse.data.worlds.solids import Solids, stretch

Floats = NDArray[np.float64]
Box = tuple[int, int, int, int]


class Instance(NamedTuple):
    """A thing with an identity in one frame; boxes are xyxy pixels, half-open, inside the image.

    `visible` encloses exactly the `pixels` that are seen of it, `full` the `full_pixels` that would be if it
    were alone in the world.
    """

    id: int
    label: int
    visible: Box
    full: Box
    pixels: int
    full_pixels: int


def instances(solids: Solids, owner: Owners, eye: Floats, turn: Floats, lens: Floats) -> tuple[Instance, ...]:
    """Measure every instance of which at least one pixel is seen, in the order of their numbers."""
    table = _measured(solids, owner, eye, turn, lens)
    labels = {int(number): int(label) for number, label in zip(solids.instance, solids.label, strict=True)}
    found = []
    for number in np.flatnonzero(table[:, 0, 4]):
        (*visible, pixels), (*full, full_pixels) = table[number].tolist()
        found.append(
            Instance(int(number), labels[int(number)], _box(visible), _box(full), pixels, full_pixels)
        )
    return tuple(found)


def _box(sides: list[int]) -> Box:
    x0, y0, x1, y1 = sides
    return x0, y0, x1, y1


@compiled
def _measured(solids: Solids, owner: Owners, eye: Floats, turn: Floats, lens: Floats) -> Owners:
    """Return (instances + 1, [visible, full], [x0, y0, x1, y1, pixels])."""
    height, width = owner.shape
    table = np.zeros((solids.instance.max() + 1, 2, 5), np.int64)
    table[:, :, 0], table[:, :, 1] = width, height
    for v in range(height):
        for u in range(width):
            if owner[v, u] >= 0 and solids.instance[owner[v, u]] > 0:
                _add(table[solids.instance[owner[v, u]], 0], u, v)
    stamp = np.zeros((height, width), np.int64)
    box = np.empty(4, np.int64)
    for index in np.argsort(solids.instance, kind="mergesort"):  # one thing after the other
        number = solids.instance[index]
        if (
            table[number, 0, 4] == 0
            or screen_box(solids, index, eye, turn, lens, width, height, box) == np.inf
        ):
            continue
        o = solids.inverse[index] @ (eye - solids.centre_m[index])
        m = solids.inverse[index] @ turn
        for v in range(box[1], box[3]):
            y = (v - lens[3]) / lens[1]
            for u in range(box[0], box[2]):
                if stamp[v, u] == number:
                    continue
                x = (u - lens[2]) / lens[0]
                d = m[:, 0] * x + m[:, 1] * y + m[:, 2]
                t0, t1 = stretch(solids.kind[index], solids.taper[index], o[0], o[1], o[2], d[0], d[1], d[2])
                if t0 <= t1 and t1 > NEAREST_M:
                    stamp[v, u] = number
                    _add(table[number, 1], u, v)
    return table


@compiled
def _add(row: Owners, u: int, v: int) -> None:
    row[0], row[1] = min(row[0], u), min(row[1], v)
    row[2], row[3] = max(row[2], u + 1), max(row[3], v + 1)
    row[4] += 1

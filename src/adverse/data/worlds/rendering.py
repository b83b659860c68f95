"""From a scene and a camera to pictures and their exact truth.

How much of each thing is seen, and how much there would be to see with nothing in front of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import casting, classes, shading
from adverse.data.worlds.casting import NEAREST_M, Owners, screen_box
from adverse.data.worlds.compiled import compiled
from adverse.data.worlds.exposure import exposed
from adverse.data.worlds.shading import Light, sun_grid
from adverse.data.worlds.solids import Solids, stretch
from adverse.data.worlds.textures import STREET_GROUND
from adverse.types import Camera, Depth, Image

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


Pose = Floats
"""(4, 4) world_from_camera."""


@dataclass(frozen=True)
class Scene:
    """All there is to see: solids at a time, the direction of the sun, the light, and the exposure for it."""

    solids: Callable[[float], Solids]
    sun: Floats
    light: Light
    exposure: float


class Rendered(NamedTuple):
    """What one camera sees: RGB, z-depth in metres (+inf: sky), class ids, instance values (0: none)."""

    image: Image
    depth_m: Depth
    labels: NDArray[np.uint8]
    instances: NDArray[np.uint16]
    things: tuple[Instance, ...]


def render(
    scene: Scene, camera: Camera, world_from_camera: Pose, time_s: float, rng: np.random.Generator
) -> Rendered:
    """Render one view; `rng` is the sensor's noise and nothing else."""
    solids = scene.solids(time_s)
    eye, turn = world_from_camera[:3, 3].copy(), world_from_camera[:3, :3].copy()
    lens = np.array([camera.fx, camera.fy, camera.cx, camera.cy])
    shape = camera.height, camera.width
    depth, owner = np.empty(shape), np.empty(shape, np.int64)
    casting.cast(solids, eye, turn, lens, depth, owner)
    grid = sun_grid(solids, scene.sun, eye)
    radiance, on_way = np.empty((*shape, 3)), np.zeros(shape, np.bool_)
    shading.shade(solids, grid, scene.light, eye, turn, lens, depth, owner, radiance, on_way)
    return Rendered(
        exposed(radiance, scene.exposure, rng),
        depth.astype(np.float32),
        _labels(solids, owner, on_way, scene.light.place),
        _instance_values(solids, owner),
        instances(solids, owner, eye, turn, lens),
    )


def right_of(world_from_camera: Pose, baseline_m: float) -> Pose:
    """Return the pose of the right camera of a stereo pair, shifted along the left camera's x."""
    pose = world_from_camera.copy()
    pose[:3, 3] += baseline_m * pose[:3, 0]
    return pose


def _labels(
    solids: Solids, owner: casting.Owners, on_way: NDArray[np.bool_], place: int
) -> NDArray[np.uint8]:
    way = classes.ROAD if place == STREET_GROUND else classes.GROUND
    bare = np.where(on_way, way, classes.TERRAIN)
    of_solid = solids.label[np.maximum(owner, 0)]
    empty = np.where(owner == casting.GROUND, bare, classes.SKY)
    return np.where(owner >= 0, of_solid, empty).astype(np.uint8)


def _instance_values(solids: Solids, owner: casting.Owners) -> NDArray[np.uint16]:
    value = np.where(solids.instance > 0, solids.label * np.int64(1000) + solids.instance, 0)
    return np.where(owner >= 0, value[np.maximum(owner, 0)], 0).astype(np.uint16)

"""From a scene and a camera to pictures and their exact truth.

How much of each thing is seen, and how much there would be to see with nothing in front of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import casting, classes, shading
from adverse.data.worlds.casting import LANES, NEAREST_M, Owners, cast_row, into_unit, screen_box
from adverse.data.worlds.compiled import compiled, inlined
from adverse.data.worlds.exposure import exposed
from adverse.data.worlds.shading import Flags, Light, Singles
from adverse.data.worlds.shadows import SunGrid, moved, sun_grid
from adverse.data.worlds.solids import Solids
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
    found = []
    for number in np.flatnonzero(table[:, 0, 4]):
        (*visible, pixels), (*full, full_pixels) = table[number].tolist()
        label = int(solids.label[solids.instance == number][-1])
        found.append(Instance(int(number), label, _box(visible), _box(full), pixels, full_pixels))
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
                _add(table, solids.instance[owner[v, u]], 0, u, v)
    stamp = np.zeros((height, width), np.int32)
    columns = np.empty(width + LANES)
    for u in range(len(columns)):
        columns[u] = (u - lens[2]) / lens[0]
    enter, leave = np.empty(width + LANES), np.empty(width + LANES)
    box, origin, m = np.empty(4, np.int64), np.empty(3), np.empty((3, 3))
    for index in np.argsort(solids.instance, kind="mergesort"):  # one thing after the other
        number = solids.instance[index]
        if (
            table[number, 0, 4] == 0
            or screen_box(solids, index, eye, turn, lens, width, height, box) == np.inf
        ):
            continue
        into_unit(solids, index, eye, turn, origin, m)
        first, last = box[0], box[2]
        for v in range(box[1], box[3]):
            y = (v - lens[3]) / lens[1]
            cast_row(
                solids.kind[index], solids.taper[index], origin, m, columns, y, first, last, enter, leave
            )
            for u in range(first, last):
                if enter[u] <= leave[u] and leave[u] > NEAREST_M and stamp[v, u] != number:
                    stamp[v, u] = number
                    _add(table, number, 1, u, v)
    return table


@inlined
def _add(table: Owners, number: int, which: int, u: int, v: int) -> None:
    table[number, which, 0], table[number, which, 1] = (
        min(table[number, which, 0], u),
        min(table[number, which, 1], v),
    )
    table[number, which, 2], table[number, which, 3] = (
        max(table[number, which, 2], u + 1),
        max(table[number, which, 3], v + 1),
    )
    table[number, which, 4] += 1


Pose = Floats
"""(4, 4) world_from_camera."""


@dataclass(frozen=True)
class Scene:
    """All there is to see: solids at a time, the direction of the sun, the light, and the exposure for it."""

    solids: Callable[[float], Solids]
    sun: Floats
    light: Light
    exposure: float
    _latest: dict[float, tuple[Solids, SunGrid]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def at(self, time_s: float, eye_m: Floats) -> tuple[Solids, SunGrid]:
        """Return solids and shadows at a time; the latest are kept, for the other eye of a stereo pair."""
        solids, grid = self._latest.get(time_s) or (self.solids(time_s), None)
        near = moved(grid, eye_m) if grid is not None else None
        if near is None:
            near = sun_grid(solids, self.sun, eye_m)
            self._latest.clear()
            self._latest[time_s] = solids, near
        return solids, near


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
    view = View.of(scene, camera, world_from_camera, time_s)
    view.cast()
    radiance, on_way = view.shaded(scene.light)
    return view.developed(scene, radiance, on_way, rng)


class View(NamedTuple):
    """A scene before a camera: what there is to see, from where, and what each pixel sees once it is cast."""

    solids: Solids
    grid: SunGrid
    eye: Floats
    turn: Floats
    lens: Floats
    depth_m: Floats
    owner: Owners

    @classmethod
    def of(cls, scene: Scene, camera: Camera, world_from_camera: Pose, time_s: float) -> View:
        """Return the view of a camera; nothing is cast yet, and each pixel sees the sky."""
        eye, turn = world_from_camera[:3, 3].copy(), world_from_camera[:3, :3].copy()
        lens = np.array([camera.fx, camera.fy, camera.cx, camera.cy])
        shape = camera.height, camera.width
        sky = np.full(shape, np.inf), np.full(shape, casting.SKY, np.int64)
        return cls(*scene.at(time_s, eye), eye, turn, lens, *sky)

    def cast(self) -> None:
        """Find the surface that each pixel sees."""
        casting.cast(self.solids, self.eye, self.turn, self.lens, self.depth_m, self.owner)

    def shaded(self, light: Light) -> tuple[Singles, Flags]:
        """Return the light (H, W, 3) that reaches each pixel, and which see the ground that is the way."""
        shape = self.owner.shape
        radiance, on_way = np.empty((*shape, 3), np.float32), np.zeros(shape, np.bool_)
        shading.shade(
            self.solids,
            self.grid,
            light,
            self.eye,
            self.turn,
            self.lens,
            self.depth_m,
            self.owner,
            radiance,
            on_way,
        )
        return radiance, on_way

    def developed(self, scene: Scene, radiance: Singles, on_way: Flags, rng: np.random.Generator) -> Rendered:
        """Return the picture with its truth."""
        labels, values = np.empty(self.owner.shape, np.uint8), np.empty(self.owner.shape, np.uint16)
        way = classes.ROAD if scene.light.place == STREET_GROUND else classes.GROUND
        _tell(self.solids, self.owner, on_way, way, labels, values)
        return Rendered(
            exposed(radiance, scene.exposure, rng),
            self.depth_m.astype(np.float32),
            labels,
            values,
            instances(self.solids, self.owner, self.eye, self.turn, self.lens),
        )


def right_of(world_from_camera: Pose, baseline_m: float) -> Pose:
    """Return the pose of the right camera of a stereo pair, shifted along the left camera's x."""
    pose = world_from_camera.copy()
    pose[:3, 3] += baseline_m * pose[:3, 0]
    return pose


@compiled
def _tell(
    solids: Solids,
    owner: Owners,
    on_way: NDArray[np.bool_],
    way: int,
    labels: NDArray[np.uint8],
    values: NDArray[np.uint16],
) -> None:
    """Write what each pixel sees: its class, and its instance value."""
    height, width = owner.shape
    for v in range(height):
        for u in range(width):
            index = owner[v, u]
            if index >= 0:
                label, number = solids.label[index], solids.instance[index]
                labels[v, u] = label
                values[v, u] = label * 1000 + number if number > 0 else 0
            else:
                bare = way if on_way[v, u] else classes.TERRAIN
                labels[v, u] = bare if index == casting.GROUND else classes.SKY
                values[v, u] = 0

"""From a scene and a camera to pictures and their exact truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import casting, classes, shading
from adverse.data.worlds.extents import Instance, instances
from adverse.data.worlds.sensor import exposed
from adverse.data.worlds.shading import Light
from adverse.data.worlds.shadows import sun_grid
from adverse.data.worlds.solids import Solids
from adverse.data.worlds.textures import STREET_GROUND
from adverse.types import Camera, Depth, Image

Floats = NDArray[np.float64]
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

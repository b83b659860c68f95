"""Streets drawn by hand for tests: lines that meet in one point, a road, and objects of known shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.semantic import Resources, Scene
from adverse.types import Dataset, Frame, Log, Truth

ROAD, BUILDING, POLE, PERSON, CAR = 7, 11, 17, 24, 26
CLASSES = {ROAD: "road", BUILDING: "building", POLE: "pole", PERSON: "person", CAR: "car"}
WIDTH, HEIGHT = 320, 160


@dataclass(frozen=True)
class Stored:
    """An array in a .npy file, read as a frame's sources are."""

    path: Path
    recipe: str = "array"

    def __call__(self) -> NDArray[Any]:
        read: NDArray[Any] = np.load(self.path)
        return read


def street(
    name: str = "base",
    *,
    point: tuple[float, float] | None = (100, 60),
    brightness: int = 120,
    log: str | None = None,
    classes: Mapping[int, str] = CLASSES,
    depth: bool = False,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Scene:
    """Draw an empty street: buildings over road, with lines that run towards a point, if there is one."""
    width, height = size
    image = np.full((height, width, 3), brightness, np.uint8)
    labels = np.full((height, width), BUILDING, np.uint8)
    labels[height // 2 :] = ROAD
    if point is not None:
        for x, y in [(0, 130), (0, 20), (60, height - 1), (160, height - 1), (319, 140), (319, 10), (250, 0)]:
            end = np.array([x, y]) + 0.35 * (np.array(point) - [x, y])
            cv2.line(image, (x, y), (round(end[0]), round(end[1])), (20, 20, 20), 2)
    depth_m = None
    if depth:
        rows = np.arange(height, dtype=np.float32)[:, None] - height / 2 + 1
        depth_m = np.where(rows > 0, 160 / np.maximum(rows, 1), np.float32(60)).astype(np.float32)
        depth_m = np.repeat(depth_m, width, axis=1)
    nothing = np.zeros((height, width), np.int32)
    return Scene(name, image, labels, nothing, classes, depth_m, log_id=log or name)


def with_object(
    scene: Scene,
    mask: NDArray[np.bool_],
    at: tuple[int, int],
    *,
    label: int = CAR,
    instance: int = CAR * 1000 + 1,
    colour: tuple[int, int, int] = (120, 30, 30),
    depth_m: float | None = None,
) -> Scene:
    """Put an object with a mask (h,w) of one colour at (x, y)."""
    height, width = mask.shape
    inside = np.s_[at[1] : at[1] + height, at[0] : at[0] + width]
    image, labels, instances = scene.image.copy(), scene.labels.copy(), scene.instances.copy()
    image[inside][mask] = colour
    labels[inside][mask] = label
    instances[inside][mask] = instance
    depth = scene.depth_m
    if depth is not None:
        depth = depth.copy()
        depth[inside][mask] = 160 / (at[1] + height - 80) if depth_m is None else depth_m
    return Scene(scene.id, image, labels, instances, scene.classes, depth, log_id=scene.log_id)


def car_mask(width: int = 110, height: int = 50, *, hole: bool = True) -> NDArray[np.bool_]:
    """Return a car's outline: a body, a roof, and a hole where one sees through the windows."""
    mask = np.zeros((height, width), np.bool_)
    mask[height // 3 :] = True
    mask[:, width // 4 : 3 * width // 4] = True
    if hole:
        mask[height // 6 : height // 3, 2 * width // 5 : 3 * width // 5] = False
    return mask


def dataset_of(scenes: Iterable[Scene], folder: Path) -> Dataset:
    """Store scenes as a data set whose frames read them back."""
    logs = []
    classes: Mapping[int, str] = CLASSES
    for number, scene in enumerate(scenes):
        classes = scene.classes
        paths = {}
        kinds: dict[str, NDArray[Any]] = {
            "image": scene.image,
            "labels": scene.labels,
            "instances": scene.instances,
        }
        if scene.depth_m is not None:
            kinds["depth_m"] = scene.depth_m
        for kind, array in kinds.items():
            paths[kind] = folder / f"{number}-{kind}.npy"
            np.save(paths[kind], array)
        frame = Frame(
            scene.id,
            scene.log_id,
            0,
            Stored(paths["image"]),
            Truth.none(),
            scene.id,
            camera=scene.camera,
            depth_m=Stored(paths["depth_m"]) if "depth_m" in paths else None,
            labels=Stored(paths["labels"]),
            instances=Stored(paths["instances"]),
        )
        logs.append(Log(scene.log_id, (frame,)))
    return Dataset("drawn", ("car", "person"), tuple(logs), pixel_classes=classes)


def resources_of(scenes: Iterable[Scene], folder: Path) -> Resources:
    folder.mkdir(parents=True, exist_ok=True)
    return Resources.build(dataset_of(scenes, folder), folder / "cache")

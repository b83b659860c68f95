"""Drawn logs for the demo: a lane between hedges, people in some, with exact depth and truth.

Plain on purpose: flat figures under a sky. It exercises the whole flow without a download, and says
nothing about any product's safety.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from adverse.data.write import write_image
from adverse.seeds import generator
from adverse.types import Depth, Image

WIDTH, HEIGHT = 320, 240
FOCAL_PX = 260.0
HORIZON_PX = 100.0
EYE_M = 1.6
"""Height of the camera above the ground."""
SPEED_M = 0.4
"""How far the camera moves from frame to frame."""
FRAMES = 6
GROUND, SKY = (150, 158, 122), (190, 196, 202)
"""A pale, overcast day, on which people stand out more than hedges do."""


@dataclass(frozen=True)
class _Thing:
    """A flat upright figure that stands on the ground at x to the right, z ahead."""

    x_m: float
    z_m: float
    width_m: float
    height_m: float
    colour: tuple[int, int, int]
    person: bool = False


def draw_logs(root: Path, *, logs: int, seed: int) -> None:
    """Write `logs` logs for each of validation and test below root; every second one has people."""
    images: list[dict[str, object]] = []
    annotations: list[dict[str, object]] = []
    for split in ("val", "test"):
        for number in range(logs):
            name = f"{split}/log{number:02d}"
            (root / name / "images").mkdir(parents=True, exist_ok=True)
            (root / name / "depth").mkdir(exist_ok=True)
            for frame, image, depth, boxes in _frames(name, seed, people=number % 2 == 0):
                write_image(root / name / "images" / f"{frame:03d}.png", image)
                np.save(root / name / "depth" / f"{frame:03d}.npy", depth)
                image_id = len(images) + 1
                file_name = f"{name}/images/{frame:03d}.png"
                images.append({"id": image_id, "file_name": file_name, "width": WIDTH, "height": HEIGHT})
                for x0, y0, x1, y1 in boxes:
                    annotations.append(
                        {
                            "id": len(annotations) + 1,
                            "image_id": image_id,
                            "category_id": 1,
                            "bbox": [x0, y0, x1 - x0, y1 - y0],
                        }
                    )
    truth = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "person"}]}
    (root / "truth.json").write_text(json.dumps(truth))


def _frames(
    log: str, seed: int, *, people: bool
) -> Iterator[tuple[int, Image, Depth, list[tuple[int, int, int, int]]]]:
    rng = generator(seed, "drawn", log)
    things = [
        _Thing(side * rng.uniform(2.6, 4.0), z, rng.uniform(0.8, 2.4), rng.uniform(0.5, 1.4), _dull(rng))
        for z in np.arange(4.0, 40.0, 3.0)
        for side in (-1, 1)
    ]
    things += [
        _Thing(rng.uniform(-2, 2), rng.uniform(6, 25), 0.4, rng.uniform(0.5, 1.2), _dull(rng))
        for _ in range(3)
    ]
    if people:
        things += [
            _Thing(
                rng.uniform(-1.8, 1.8),
                rng.uniform(5, 16),
                0.55,
                rng.uniform(1.5, 1.9),
                _vivid(rng),
                person=True,
            )
            for _ in range(int(rng.integers(1, 4)))
        ]
    for frame in range(FRAMES):
        yield frame, *_picture(things, frame * SPEED_M, rng)


def _picture(
    things: list[_Thing], moved_m: float, rng: np.random.Generator
) -> tuple[Image, Depth, list[tuple[int, int, int, int]]]:
    rows = np.arange(HEIGHT, dtype=np.float32)[:, None].repeat(WIDTH, axis=1)
    ground = rows > HORIZON_PX
    depth = np.where(ground, FOCAL_PX * EYE_M / np.maximum(rows - HORIZON_PX, 1e-3), np.inf).astype(
        np.float32
    )
    image = np.where(ground[..., None], GROUND, SKY).astype(np.float32)
    owner = np.full((HEIGHT, WIDTH), -1)
    for index in sorted(range(len(things)), key=lambda i: -things[i].z_m):
        thing = things[index]
        distance = thing.z_m - moved_m
        if distance < 1.0:
            continue
        mask = _silhouette(thing, distance)
        image[mask] = thing.colour
        depth[mask] = distance
        owner[mask] = index
    texture = cv2.GaussianBlur(rng.normal(0, 14, (HEIGHT, WIDTH)).astype(np.float32), (0, 0), 1.2)
    image += texture[..., None] + rng.normal(0, 3, (HEIGHT, WIDTH, 3))
    boxes = []
    for index, thing in enumerate(things):
        ys, xs = np.nonzero(owner == index)
        if thing.person and len(ys) > 60:
            boxes.append((int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1))
    return np.clip(image, 0, 255).astype(np.uint8), depth, boxes


def _silhouette(thing: _Thing, distance: float) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    scale = FOCAL_PX / distance
    x, foot = WIDTH / 2 + thing.x_m * scale, HORIZON_PX + EYE_M * scale
    half, tall = thing.width_m * scale / 2, thing.height_m * scale
    if thing.person:
        head = max(int(0.13 * tall), 1)
        cv2.circle(mask, (int(x), int(foot - tall) + head), head, 1, -1)
        top = int(foot - tall) + 2 * head
    else:
        top = int(foot - tall)
    cv2.rectangle(mask, (int(x - half), top), (int(x + half), int(foot)), 1, -1)
    return mask.astype(np.bool_)


def _dull(rng: np.random.Generator) -> tuple[int, int, int]:
    shade = int(rng.integers(118, 150))
    return (shade + int(rng.integers(0, 14)), shade + int(rng.integers(0, 14)), shade // 2)


def _vivid(rng: np.random.Generator) -> tuple[int, int, int]:
    choices = ((210, 60, 50), (240, 220, 60), (40, 60, 150), (235, 235, 235), (30, 30, 35))
    return choices[int(rng.integers(len(choices)))]

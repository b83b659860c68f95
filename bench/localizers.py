"""How far from the truth ways to read the depth of a box place people of the rendered worlds.

Boxes are the true ones, or jittered to an IoU with them; depth is exact, or as from stereo: half a pixel of
noise in disparity, so an error that grows with the square of the distance, and a fifth of the pixels missing.
The error is that of the place on the ground. `--write` puts the table into docs/localizer.md.

python bench/localizers.py --write
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import classes
from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import HIDDEN, SCRIPTS, SMALL_PX, World
from adverse.depth.boxes import box_depths_m
from adverse.robot.localizer import localize
from adverse.seeds import generator
from adverse.types import Camera

DOCS = Path(__file__).parents[1] / "docs" / "localizer.md"
BEGIN, END = "<!-- localizers -->", "<!-- end of localizers -->"
SEED, LOGS = 2, 60
SIZES = {(160, 120): 3, (320, 240): 4, (640, 480): 8}
"""Width and height, and which frames are rendered: every third, and so on."""
RANGES_M: Mapping[World, float] = {"orchard": 10.0, "street": 20.0}
"""People further away are left out: the located level ends at 10 m; few people of the street are as near."""
OVERLAPS = {"true": (1.0, 1.0), "IoU 0.7-0.9": (0.7, 0.9), "IoU 0.5-0.7": (0.5, 0.7)}
DISPARITY_NOISE_PX, MISSING = 0.5, 0.2
LEAST_VISIBLE = 0.3
"""People of whom less is visible than the worlds ask for (`HIDDEN`) are counted apart, down to this share."""
WRONG_M = 1.0
Floats = NDArray[np.floating]
Reader = Callable[[Floats, Floats], Floats]


class Person(NamedTuple):
    """One box of one person on one depth map."""

    depth_m: Floats
    box: Floats
    overlap: str
    noisy: bool
    visible: float
    at_m: tuple[float, float]
    pose: Floats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=LOGS, help="of each world and size")
    parser.add_argument("--write", action="store_true", help="put the table into docs/localizer.md")
    chosen = parser.parse_args()
    lines = list(_table(chosen.logs))
    print("\n".join(lines))
    if chosen.write:
        text = DOCS.read_text()
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        DOCS.write_text("\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"]))


def _table(logs: int) -> list[str]:
    conditions = [(overlap, noisy) for noisy in (False, True) for overlap in OVERLAPS]
    titles = [f"{overlap}{', stereo' if noisy else ''}" for overlap, noisy in conditions]
    lines = [
        f"| world | people | localizer | {' | '.join(titles)} | hidden | median | 95 % | time |",
        f"|---|---:|---|{'---:|' * (len(titles) + 4)}",
    ]
    for world, range_m in RANGES_M.items():
        for size, every in SIZES.items():
            camera = stereo_camera(*size)
            people = _people(world, camera, logs, every, range_m)
            seen = np.array([person.visible >= HIDDEN for person in people], bool)
            if not seen.any():
                raise SystemExit(f"{world} {camera.width}x{camera.height}: nobody is near; take more logs")
            count = int(seen.sum()) // len(conditions)
            for name, read in READERS.items():
                error, time_us = _errors_m(people, read, camera)
                wrong = error > WRONG_M
                cells = [
                    _share(wrong, seen & [(one.overlap, one.noisy) == condition for one in people])
                    for condition in conditions
                ]
                cells.append(_share(wrong, ~seen))
                middle, most = np.median(error[seen]), np.quantile(error[seen], 0.95)
                figures = f"{middle:.2f} m | {most:.2f} m | {time_us:.0f} us"
                where = f"{world} {camera.width}x{camera.height} | {count}"
                lines.append(f"| {where} | {name} | {' | '.join(cells)} | {figures} |")
    return [*lines, *_overall(lines)]


def _overall(lines: list[str]) -> list[str]:
    """Return the mean share of each localizer over worlds and sizes, from the rows of the table."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    overall = []
    for name in READERS:
        mine = [row[3 : 4 + 2 * len(OVERLAPS)] for row in rows if row[2] == name]
        columns = [
            [float(cell.rstrip("%")) for cell in column if cell != "-"] for column in zip(*mine, strict=True)
        ]
        cells = " | ".join(f"{np.mean(column):.1f}%" if column else "-" for column in columns)
        overall.append(f"| **mean of all** | | {name} | {cells} | | | |")
    return overall


def _share(wrong: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> str:
    return f"{wrong[chosen].mean():.1%}" if chosen.any() else "-"


def _errors_m(people: list[Person], read: Reader, camera: Camera) -> tuple[Floats, float]:
    """Return how far from the truth people are placed, and the time for one box in microseconds."""
    read(people[0].depth_m, people[0].box[None])  # compile
    depth = np.empty(len(people))
    spent = 0.0
    for row, person in enumerate(people):
        start = time.process_time()
        depth[row] = read(person.depth_m, person.box[None])[0]
        spent += time.process_time() - start
    lens = np.tile([camera.fx, camera.fy, camera.cx, camera.cy], (len(people), 1))
    places = localize(
        np.array([one.box for one in people]), depth, lens, np.array([one.pose for one in people])
    )
    error = np.hypot(*(places[:, :2] - np.array([one.at_m for one in people])).T)
    return np.where(np.isnan(error), np.inf, error), spent / len(people) * 1e6


def _people(world: World, camera: Camera, logs: int, every: int, range_m: float) -> list[Person]:
    names = [f"localizer/{number}" for number in range(logs)]
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(lambda name: _log(world, name, camera, every, range_m), names)
        return [person for part in parts for person in part]


def _log(world: World, name: str, camera: Camera, every: int, range_m: float) -> list[Person]:
    script = SCRIPTS[world](SEED, name, "positive")
    scene, actors = script.scene(), {actor.instance: actor for actor in script.actors}
    people = []
    for number, time_s in enumerate(script.drive.times_s()):
        if number % every:
            continue
        pose = script.drive.pose(time_s)
        rng = generator(SEED, world, name, str(number), str(camera.width))
        seen = render(scene, camera, pose, time_s, rng)
        maps = {False: seen.depth_m, True: _stereo(seen.depth_m, camera, rng)}
        for thing in seen.things:
            visible = thing.pixels / thing.full_pixels
            low = thing.visible[3] - thing.visible[1] < SMALL_PX
            x, y, _ = actors[thing.id].centre_m(time_s)
            near = math.hypot(x - pose[0, 3], y - pose[1, 3]) <= range_m
            if thing.label != classes.PERSON or low or visible < LEAST_VISIBLE or not near:
                continue
            for overlap, (least, most) in OVERLAPS.items():
                box = _jittered(np.array(thing.visible, float), least, most, camera, rng)
                people += [
                    Person(depth_m, box, overlap, noisy, visible, (x, y), pose)
                    for noisy, depth_m in maps.items()
                ]
    return people


def _stereo(depth_m: Floats, camera: Camera, rng: np.random.Generator) -> Floats:
    scale = camera.fx * (camera.baseline_m or 0.0)
    disparity = scale / depth_m + rng.normal(0, DISPARITY_NOISE_PX, depth_m.shape)
    noisy = np.where(disparity > DISPARITY_NOISE_PX, scale / np.maximum(disparity, 1e-9), np.nan)
    noisy[np.isinf(depth_m) | (rng.random(depth_m.shape) < MISSING)] = np.nan
    return noisy.astype(np.float32)


def _jittered(box: Floats, least: float, most: float, camera: Camera, rng: np.random.Generator) -> Floats:
    """Move and stretch a box until its IoU with the true one is as wanted."""
    if least == 1:
        return box
    size = box[2:] - box[:2]
    limits = np.array([camera.width, camera.height], float)
    while True:
        middle = (box[:2] + box[2:]) / 2 + rng.normal(0, 0.2, 2) * size
        half = size * np.exp(rng.normal(0, 0.25, 2)) / 2
        moved = np.concatenate([np.clip(middle - half, 0, limits), np.clip(middle + half, 0, limits)])
        common = np.prod(np.clip(np.minimum(moved[2:], box[2:]) - np.maximum(moved[:2], box[:2]), 0, None))
        iou = common / (np.prod(size) + np.prod(moved[2:] - moved[:2]) - common)
        if least <= iou <= most:
            return moved


def _quantile(part: float, *, across: tuple[float, float], down: tuple[float, float]) -> Reader:
    """Return a reader of a quantile of the pixels in some part of each box."""

    def read(depth_m: Floats, boxes: Floats) -> Floats:
        found = np.full(len(boxes), np.nan)
        for row, (x0, y0, x1, y1) in enumerate(boxes):
            left, right = (x0 + share * (x1 - x0) for share in across)
            top, bottom = (y0 + share * (y1 - y0) for share in down)
            pixels = depth_m[
                max(math.floor(top), 0) : math.ceil(bottom), max(math.floor(left), 0) : math.ceil(right)
            ]
            valid = pixels[pixels > 0]
            if valid.size:
                found[row] = np.quantile(valid, part, method="lower")
        return found

    return read


READERS: Mapping[str, Reader] = {
    "`box_median`": lambda depth_m, boxes: box_depths_m(np.asarray(depth_m, np.float32), boxes, "box_median"),
    "median of the middle": _quantile(0.5, across=(0.25, 0.75), down=(0.25, 0.75)),
    "lower quartile of the middle": _quantile(0.25, across=(0.25, 0.75), down=(0.1, 0.9)),
    "median of the torso": _quantile(0.5, across=(0.3, 0.7), down=(0.15, 0.5)),
    "median of the legs": _quantile(0.5, across=(0.3, 0.7), down=(0.5, 0.9)),
    "`foreground`": lambda depth_m, boxes: box_depths_m(np.asarray(depth_m, np.float32), boxes, "foreground"),
}


if __name__ == "__main__":
    main()

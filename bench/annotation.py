"""How far off the positions are that one box and one click on a person give, over rendered orchard logs.

A log has 50 frames at 640x480 and one person. It is annotated by the functions behind `adverse annotate`, as
its manual says: a click where nothing is before the trunk (of the upper half of the body, the place farthest
from every step of depth), a third of the log from its start; then the tracker runs both ways, and where it
stops there is a click in the next frame in which the person can be matched, six with the box in all. An error
is the larger of two: the distance of the exported place from the surface under the point that is shown, and
that on the ground from the place that was clicked, carried on as the person walks.

python bench/annotation.py 500 501 502
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.annotation.changes import Annotation, Change, Edit, LogState
from adverse.annotation.geometry import in_camera_m, in_world_m, seen_at
from adverse.annotation.matching import Point
from adverse.annotation.session import UNSURE_M, AnnotatedLog
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.rendering import Rendered, render, right_of
from adverse.data.worlds.scripts import Script, Walker, stereo_camera
from adverse.seeds import generator
from adverse.types import Frame, Log, Truth

FRAMES = 50
CAMERA = stereo_camera(640, 480)
RANGE_M = 5.0, 15.0
UPPER = 0.18, 0.55
"""Where on the height of a person's box the click may be."""
MOST_CLICKS = 6
"""Of which the first draws the box."""
STEP_M, CLEAR_PX = 0.05, 1.5
"""A step of depth between neighbouring pixels; the click is at least so far from any."""


@dataclass(frozen=True)
class Rows:
    """An array as a source of frames."""

    array: NDArray[Any]
    path: Path = Path()
    recipe: str = ""

    def __call__(self) -> NDArray[Any]:
        """Return it."""
        return self.array


class Scene(NamedTuple):
    """A rendered log with one person: the frames, and the left images with what is true of them."""

    script: Script
    frames: tuple[Frame, ...]
    views: list[Rendered]


def scene_of(seed: int) -> Scene:
    """Render the first log of a seed that has one person."""
    for number in range(1000):
        name = f"test/positive{number:03d}"
        script = orchard_log(seed, name, "positive")
        if len(script.actors) == 1:
            break
    scene, views, frames = script.scene(), [], []
    nothing = Truth(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0, np.int64))
    for at, time_s in enumerate(np.linspace(0, script.drive.duration_s, FRAMES).tolist()):
        pose = script.drive.pose(time_s)
        left, right = (
            render(scene, CAMERA, view, time_s, generator(seed, "orchard", name, f"{at:04d}", eye))
            for eye, view in (("left", pose), ("right", right_of(pose, CAMERA.baseline_m or 0.0)))
        )
        views.append(left)
        images = Rows(left.image), Rows(right.image)
        frames.append(Frame(f"log/{at}", "log", at, images[0], nothing, at, time_s, CAMERA, pose, images[1]))
    return Scene(script, tuple(frames), views)


def person_box(view: Rendered) -> tuple[float, float, float, float] | None:
    """Return the visible box of the person."""
    seen = [thing for thing in view.things if thing.id == 1 and thing.pixels > 0]
    if not seen:
        return None
    x0, y0, x1, y1 = max(seen, key=lambda thing: thing.pixels).visible
    return float(x0), float(y0), float(x1), float(y1)


def click(view: Rendered) -> Point | None:
    """Return where somebody who follows the manual clicks; None: the person cannot be seen well."""
    box = person_box(view)
    if box is None or box[3] - box[1] < 20:
        return None
    depth = np.where(np.isfinite(view.depth_m), view.depth_m, 1e6).astype(np.float32)
    step = cv2.dilate(depth, np.ones((3, 3))) - cv2.erode(depth, np.ones((3, 3)))
    body = (view.instances > 0) & (view.instances % 1000 == 1) & (step < STEP_M)
    clear = cv2.distanceTransform(np.pad(body, 1).astype(np.uint8), cv2.DIST_L2, 5)[1:-1, 1:-1].copy()
    top, bottom = (int(box[1] + share * (box[3] - box[1])) for share in UPPER)
    clear[:top] = clear[bottom:] = 0
    row, column = np.unravel_index(int(clear.argmax()), clear.shape)
    return (float(column) + 0.5, float(row) + 0.5) if clear[row, column] >= CLEAR_PX else None


class Annotated(NamedTuple):
    """A log with what was put on it: for each frame that of the click it was tracked from, and all clicks."""

    log: AnnotatedLog
    clicked_in: dict[int, int]
    clicks: int
    words: str


def annotated(scene: Scene) -> Annotated:
    """Annotate a log by a box and clicks, as far as the tracker carries them."""
    log = AnnotatedLog(Log("log", scene.frames), LogState(scene.frames))
    done = Annotated(log, {}, 1, "")
    start = _clicked(scene, done, range(FRAMES // 3, FRAMES))
    if start is None:
        return done._replace(words="nobody is seen well")
    done, words, clicks = done._replace(clicked_in={start: start}), [], 2
    for step, end in ((1, FRAMES), (-1, -1)):
        at: int | None = start
        while at is not None:
            tracked = log.track(at, 1, step, FRAMES)
            log.state.take(Change("log", "track", tracked.edits), len(log.state.done) + 1)
            done.clicked_in.update({edit.frame: at for edit in tracked.edits})
            words.append(tracked.why)
            last = max((edit.frame * step for edit in tracked.edits), default=at * step) * step
            at = None if clicks == MOST_CLICKS else _clicked(scene, done, range(last + step, end, step))
            if at is not None:
                done.clicked_in[at] = at
                clicks += 1
    return done._replace(clicks=clicks, words="; ".join(words))


def _clicked(scene: Scene, done: Annotated, frames: range) -> int | None:
    """Click in the first of some frames in which the person can be matched; None: in none of them."""
    state = done.log.state
    for at in frames:
        point, box = click(scene.views[at]), person_box(scene.views[at])
        if point is None or box is None:
            continue
        found = done.log.locate(at, point, box[3] - box[1])
        if not found.why:
            fine = None if found.fine is None else (found.fine.x, found.fine.error_px)
            what = Annotation(box, "person", point=point, right_x=found.right_x, score=found.score, fine=fine)
            state.take(Change("log", "point", (Edit(at, 1, what),)), len(state.done) + 1)
            return at
    return None


def main() -> None:
    """Print a row for each seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="+")
    columns = (
        "clicks",
        "frames tracked",
        "5 to 15 m",
        "largest error",
        "told",
        "beyond 0.10 m",
        "marked",
        "missed",
    )
    print("| log |", " | ".join(columns), "|")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    total = np.zeros(5, int)
    for seed in parser.parse_args().seeds:
        scene = scene_of(seed)
        made = annotated(scene)
        (actor,) = scene.script.actors
        name = f"{seed}, {actor.posture}" if isinstance(actor, Walker) else f"{seed}"
        errors, told = measured(scene, made)
        off, marked = errors > UNSURE_M, told > UNSURE_M
        counts = [len(made.clicked_in), len(errors), off.sum(), marked.sum(), (off & ~marked).sum()]
        total += counts
        largest = f"{errors.max():.2f} m | {told.max():.2f} m" if len(errors) else "- | -"
        print(f"| {name} | {made.clicks} | {counts[0]} | {counts[1]} | {largest} | ", end="")
        print(" | ".join(map(str, counts[2:])), f"| <!-- {made.words} -->", flush=True)
    print("| all | |", " | ".join(map(str, total[:2])), "| | |", " | ".join(map(str, total[2:])), "|")


def measured(scene: Scene, made: Annotated) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the errors of the frames in range, and those that are told."""
    (actor,) = scene.script.actors
    velocity = np.array([*actor.velocity, 0.0]) if isinstance(actor, Walker) else np.zeros(3)
    annotations = made.log.state.annotations
    errors, told = [], []
    for at, placed in made.log.fitted(1).items():
        start = made.clicked_in[at]
        frame, first = scene.frames[at], scene.frames[start]
        meant = _surface_m(scene, start, annotations[start, 1])
        there = meant + velocity * ((frame.time_s or 0.0) - (first.time_s or 0.0))
        pose = frame.world_from_camera
        if pose is None or not RANGE_M[0] <= seen_at(CAMERA, pose, there)[1] <= RANGE_M[1]:
            continue
        apart = placed.place_m - _surface_m(scene, at, annotations[at, 1]), (placed.place_m - there)[:2]
        errors.append(max(float(np.linalg.norm(one)) for one in apart))
        told.append(placed.error_m or 0.0)
    return np.array(errors), np.array(told)


def _surface_m(scene: Scene, at: int, what: Annotation) -> NDArray[np.float64]:
    """Return the place in the world of what is seen at an annotation's point."""
    pose, point = scene.frames[at].world_from_camera, what.point
    if pose is None or point is None:
        raise ValueError(at)
    depth = float(scene.views[at].depth_m[int(point[1]), int(point[0])])
    return in_world_m(pose, in_camera_m(CAMERA, point, depth))


if __name__ == "__main__":
    main()

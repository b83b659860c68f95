"""The orchard: a tractor drives between two rows of trees, up to people, and stops before them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from adverse.data.worlds import classes, scenery, textures
from adverse.data.worlds.distractors import STANDING, drawn_thing, flat
from adverse.data.worlds.exposure import Day, drawn_hour
from adverse.data.worlds.people import STILL, UPRIGHT, Posture, at_work, drawn_person
from adverse.data.worlds.scripts import Drive, Script, Walker
from adverse.data.worlds.solids import Builder, Look, Solids, joined
from adverse.data.worlds.textures import picked
from adverse.seeds import generator
from adverse.types import LogKind

ROBOT = {"control_radius_m": 1.5, "safety_radius_m": 1.0}
"""A tractor 1.6 m wide: it should stop for people within the first and must never have them in the second."""
SPEED = 3.0
CRUISE_M = {"positive": (2.5, 6.5), "negative": (4.0, 10.0)}
"""How far a log goes at full speed, before the driver brakes if he must."""
ROW_ASIDE_M = 2.7
ROW_APART_M = 5.4
VIEW_M = 62.0
"""How far beyond the end of the drive trees are planted."""
IN_WAY_M = 0.8
"""People in the way stand this near to the path, well within the control radius."""
BESIDE_M = (1.7, 2.2)
"""Those who are not, between these: outside the control radius, at the trees."""
GAP_M = (2.1, 3.4)
"""What a careful driver leaves between camera and person."""
CLEAR_M = 0.95
"""No part of what stands is nearer to the path than this: the tractor passes it."""
FARTHEST_M = 2.6
"""What stands has its middle within this distance of the path, a third of it inside the control radius."""
ON_PATH_M = 0.5
"""What lies flat lies this near to the path: the tractor drives over it."""
GRASS_M = (0.2, 0.4)
"""Size of the clumps of grass left standing before people; they reach up to 1.3 times as high."""
GRASS_SHARE = 0.2
"""Share of the people with such grass before them."""
NEAR_SHARE = 1 / 3
"""Share of the stops that are nearer than that, before somebody who stands still."""
NEAR_M = (1.25, 1.42)
"""Distance of camera and person at a near stop: inside the control radius, outside the safety radius."""
NEAR_ASIDE_M = 0.4
"""That near, somebody further to the side would be beside the picture."""


def orchard_log(seed: int, log_id: str, kind: LogKind) -> Script:
    """Draw a log; it depends on seed, id and kind only."""
    rng = generator(seed, "orchard", log_id, kind)
    in_way = kind == "positive" and rng.random() < 0.8
    brake_s = float(rng.uniform(2.6, 3.6)) if in_way else 0.0
    drive = Drive(
        speed=SPEED,
        cruise_m=float(rng.uniform(*CRUISE_M[kind])),
        brake_s=brake_s,
        eye_m=float(rng.uniform(1.7, 2.1)),
        pitch=math.radians(rng.uniform(4.0, 8.0)),
        wander_m=float(rng.uniform(0.03, 0.12)),
        phase=float(rng.uniform(0, 6.28)),
    )
    spacing = float(rng.uniform(2.2, 2.9))
    actors = _actors(rng, drive, in_way=in_way) if kind == "positive" else ()
    near = generator(seed, "orchard", log_id, "near")  # of its own, so that all else is drawn as ever
    if in_way and near.random() < NEAR_SHARE:
        actors = (_before(near, drive, actors[0]), *actors[1:])
    day = drawn_hour(rng, textures.ORCHARD_GROUND)
    parts = [*_rows(rng, drive, spacing), *_things(rng, drive, actors, day), *_grass(rng, drive, actors)]
    still = joined([*parts, _far_edge(rng, drive)])
    return Script(still, actors, drive, day.sun, day.light, day.exposure)


def _actors(rng: np.random.Generator, drive: Drive, *, in_way: bool) -> tuple[Walker, ...]:
    end_s = drive.duration_s
    first = drive.length_m + rng.uniform(*GAP_M)
    if in_way:
        place = (first, drive.aside_m(first) + rng.uniform(-IN_WAY_M, IN_WAY_M))
    else:  # beside the path, passed or about to be passed at the end
        place = (drive.length_m + rng.uniform(-1.0, 6.0), _beside(rng))
    actors = [_someone(rng, place, end_s, 1, walks=in_way and rng.random() < 0.45)]
    if rng.random() < 0.4:
        away = first + rng.uniform(2.0, 5.0)
        aside = _beside(rng) if rng.random() < 0.6 else rng.uniform(-1.5, 1.5)
        other_side = -math.copysign(aside, place[1])  # people who work together keep apart
        actors.append(_someone(rng, (away, other_side), end_s, 2, walks=in_way and rng.random() < 0.4))
    return tuple(actors)


def _before(rng: np.random.Generator, drive: Drive, person: Walker) -> Walker:
    """Put a person right before the end of the drive, standing: lower ones would be below the picture."""
    x = drive.length_m
    away, aside = rng.uniform(*NEAR_M), rng.uniform(-NEAR_ASIDE_M, NEAR_ASIDE_M)
    place = (x + math.sqrt(away**2 - aside**2), drive.aside_m(x) + aside)
    return replace(person, posture="standing", at_m=place, velocity=(0.0, 0.0))


def _someone(
    rng: np.random.Generator, at_end: tuple[float, float], end_s: float, instance: int, *, walks: bool
) -> Walker:
    """Draw a person who is at a place at the end of the drive."""
    posture: Posture = (
        "walking" if walks else STILL[int(rng.choice(len(STILL), p=(0.35, 0.15, 0.15, 0.2, 0.15)))]
    )
    heading = float(rng.uniform(0, 2 * math.pi))
    velocity = (0.0, 0.0)
    if walks:
        heading = (math.pi / 2, -math.pi / 2, 0.0, math.pi)[int(rng.choice(4, p=(0.35, 0.35, 0.15, 0.15)))]
        heading += rng.uniform(-0.15, 0.15)
        speed = rng.uniform(0.7, 1.3)
        velocity = (float(speed * math.cos(heading)), float(speed * math.sin(heading)))
    start = (float(at_end[0] - velocity[0] * end_s), float(at_end[1] - velocity[1] * end_s))
    person = at_work(rng, drawn_person(rng))
    if posture not in UPRIGHT:
        person = replace(person, ladder=None)
    return Walker(person, posture, start, velocity, heading, instance)


def _beside(rng: np.random.Generator) -> float:
    return float(rng.choice((-1, 1)) * rng.uniform(*BESIDE_M))


def _rows(rng: np.random.Generator, drive: Drive, spacing: float) -> Iterator[Solids]:
    fruit = picked(rng, scenery.FRUITS)
    height = rng.uniform(2.6, 3.4)
    end = drive.length_m + VIEW_M
    for row in (-3, -2, -1, 1, 2, 3):
        y = math.copysign(ROW_ASIDE_M + (abs(row) - 1) * ROW_APART_M, row)
        for x in np.arange(rng.uniform(-3.0, -1.0), end, spacing):
            if rng.random() < 0.07:
                continue  # trees die
            at = x + rng.uniform(-0.2, 0.2), y + rng.uniform(-0.15, 0.15)
            tall = height * rng.uniform(0.85, 1.12)
            near = abs(row) == 1 and x < drive.length_m + 30
            yield scenery.fruit_tree(rng, *at, tall, fruit) if near else scenery.far_tree(rng, *at, tall)
            if abs(row) == 1 and near:
                for _ in range(3):
                    yield scenery.tuft(rng, x + rng.uniform(-1.2, 1.2), y + rng.uniform(-0.5, 0.5))


def _things(rng: np.random.Generator, drive: Drive, actors: tuple[Walker, ...], day: Day) -> Iterator[Solids]:
    """Yield what stands beside the path and what lies on it; nothing where a person is in the end.

    Logs without people have more of both: they are there to fool a detector.
    """
    taken = [actor.ground_m(drive.duration_s) for actor in actors]
    on_ground = flat(day.sun, float(day.light.sun[0]))
    standing, lying = (rng.integers(3, 8), rng.integers(1, 4)) if not actors else rng.integers(0, (4, 2))
    for number in range(int(standing + lying)):
        x = rng.uniform(4.0, drive.length_m + 14)
        if number < standing:
            thing = drawn_thing(rng, STANDING)
            near = CLEAR_M + thing.aside_m
            room = max(FARTHEST_M - near, 0.2)
            aside = rng.choice((-1, 1)) * (near + room * rng.uniform() ** 2)  # most stand close to the path
        else:
            thing = drawn_thing(rng, on_ground)
            aside = rng.uniform(-ON_PATH_M, ON_PATH_M)
        y = drive.aside_m(x) + aside
        solids = thing.built(rng, x, y)
        if all(math.hypot(x - px, y - py) > 1.0 for px, py in taken):
            yield solids


def _grass(rng: np.random.Generator, drive: Drive, actors: tuple[Walker, ...]) -> Iterator[Solids]:
    """Yield the grass that hides the legs of some people, a step nearer to the camera than they are."""
    for actor in actors:
        x, y = actor.ground_m(drive.duration_s)
        if rng.random() < GRASS_SHARE:
            for _ in range(3):
                yield scenery.tuft(rng, x - rng.uniform(0.5, 0.9), y + rng.uniform(-0.4, 0.4), GRASS_M)


def _far_edge(rng: np.random.Generator, drive: Drive) -> Solids:
    """Return the wood at the end of the rows."""
    made = Builder(classes.VEGETATION)
    x = drive.length_m + VIEW_M + 25
    for y in np.arange(-70.0, 71.0, 7.0):
        leaves = Look(textures.LEAVES, (84, 104, 60), (84, 104, 60), int(rng.integers(1 << 20)))
        made.ball((x + rng.uniform(-4, 4), y, 1.0), (5.0, 5.5, rng.uniform(4.0, 8.0)), leaves)
    return made.solids()

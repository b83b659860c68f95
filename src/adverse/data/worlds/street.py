"""The street: a car drives between houses, parked and moving cars, trees, signs, and people on foot."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from adverse.data.worlds import textures
from adverse.data.worlds.exposure import drawn_day
from adverse.data.worlds.people import Posture, drawn_person
from adverse.data.worlds.scenery import Car, drawn_car, house, lamp_post, pavement, sign, street_tree
from adverse.data.worlds.scripts import Drive, Script, Walker
from adverse.data.worlds.solids import Solids, joined
from adverse.seeds import generator
from adverse.types import LogKind

ROBOT = {"control_radius_m": 2.0, "safety_radius_m": 1.2}
SPEED = 6.0
VIEW_M = 90.0
LANE_M = 1.75
"""How far the middle of a lane is from the middle of the road; traffic keeps to the right."""


class Plan(NamedTuple):
    """Half the road's width, the pavement's width, and how far the street reaches."""

    road_m: float
    pavement_m: float
    end_m: float


def street_log(seed: int, log_id: str, kind: LogKind) -> Script:
    """Draw a log; it depends on seed, id and kind only. A negative one has no person in it."""
    rng = generator(seed, "street", log_id, kind)
    drive = Drive(
        speed=SPEED,
        cruise_m=float(rng.uniform(8.0, 14.0)),
        brake_s=0.0,
        eye_m=float(rng.uniform(1.3, 1.6)),
        pitch=math.radians(rng.uniform(1.0, 4.0)),
        wander_m=0.04,
        phase=float(rng.uniform(0, 6.28)),
        lane_m=-LANE_M,
    )
    plan = Plan(float(rng.uniform(5.3, 6.2)), float(rng.uniform(2.4, 3.6)), drive.length_m + VIEW_M)
    people = _people(rng, plan, drive) if kind == "positive" else ()
    cars = _cars(rng, plan, first=len(people) + 1)
    day = drawn_day(rng, textures.STREET_GROUND)
    still = joined([*_sides(rng, plan), *_furniture(rng, plan)])
    return Script(still, (*people, *cars), drive, day.sun, day.light, day.exposure)


def _sides(rng: np.random.Generator, plan: Plan) -> Iterator[Solids]:
    for side in (-1, 1):
        yield from pavement(-8.0, plan.end_m, side, plan.road_m, plan.pavement_m + 2)
        x = -rng.uniform(4.0, 10.0)
        while x < plan.end_m:
            wide = float(rng.uniform(6.0, 12.0))
            set_back = float(rng.choice((0.0, 0.0, 0.4, 1.2)))
            yield house(rng, x, x + wide, side, plan.road_m + plan.pavement_m + set_back)
            x += wide + (rng.uniform(1.5, 4.0) if rng.random() < 0.15 else 0.0)
    yield house(rng, plan.end_m, plan.end_m + 12, 1, -9.0)  # the street ends at a house


def _furniture(rng: np.random.Generator, plan: Plan) -> Iterator[Solids]:
    for side in (-1, 1):
        y = side * (plan.road_m + 0.5)
        for x in np.arange(rng.uniform(3.0, 9.0), plan.end_m - 25, rng.uniform(8.0, 14.0)):
            choice = rng.random()
            if choice < 0.4:
                yield street_tree(rng, x, y + side * 0.4)
            elif choice < 0.75:
                yield lamp_post(x, y, side)
            else:
                yield from sign(rng, x, y)


def _cars(rng: np.random.Generator, plan: Plan, first: int) -> tuple[Car, ...]:
    cars: list[Car] = []
    for side in (-1, 1):
        heading = 0.0 if side < 0 else math.pi
        for x in np.arange(rng.uniform(5.0, 9.0), plan.end_m - 40, 6.2):
            if rng.random() < 0.55:
                place = (float(x), side * (plan.road_m - 1.15))
                cars.append(drawn_car(rng, place, heading + rng.normal(0, 0.02), 0.0, first + len(cars)))
    for _ in range(int(rng.integers(1, 4))):  # towards us, in the other lane
        place = (float(rng.uniform(20, 80)), LANE_M)
        cars.append(drawn_car(rng, place, math.pi, float(rng.uniform(5, 9)), first + len(cars)))
    if rng.random() < 0.6:  # ahead of us
        place = (float(rng.uniform(12, 30)), -LANE_M)
        cars.append(drawn_car(rng, place, 0.0, float(rng.uniform(5, 8)), first + len(cars)))
    return tuple(cars)


def _people(rng: np.random.Generator, plan: Plan, drive: Drive) -> tuple[Walker, ...]:
    people = []
    for number in range(int(rng.integers(2, 8))):
        crosses = number == 0 and rng.random() < 0.5
        posture: Posture = "walking" if crosses or rng.random() < 0.6 else "standing"
        speed = float(rng.uniform(0.8, 1.5)) if posture == "walking" else 0.0
        if crosses:
            heading = float(rng.choice((-1, 1)) * math.pi / 2)
            place = (
                drive.length_m + float(rng.uniform(4.0, 14.0)),
                float(-math.copysign(rng.uniform(0, 4), heading)),
            )
        else:
            heading = float(rng.choice((0.0, math.pi))) if speed else float(rng.uniform(0, 2 * math.pi))
            side = float(rng.choice((-1, 1)))
            place = (
                float(rng.uniform(7, 45)),
                side * (plan.road_m + float(rng.uniform(0.9, plan.pavement_m - 0.3))),
            )
        velocity = (speed * math.cos(heading), speed * math.sin(heading))
        people.append(Walker(drawn_person(rng), posture, place, velocity, heading, number + 1))
    return tuple(people)

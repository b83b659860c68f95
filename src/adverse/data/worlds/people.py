"""Who is in the picture: people of varied height, build, skin and clothes, and the postures they take.

A person's body: joints from the angles of a stance, and solids around the joints.

The body frame is x forward, y left, z up; lengths are shares of the person's height (after Drillis and
Contini 1966, rounded). Whatever the posture, the lowest part touches the ground.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import classes, textures
from adverse.data.worlds.solids import Builder, Look, Solids, joined
from adverse.data.worlds.textures import Rgb, picked

Posture = Literal["standing", "walking", "sitting", "crouching", "reaching", "bending"]
STILL: tuple[Posture, ...] = ("standing", "sitting", "crouching", "reaching", "bending")
UPRIGHT: tuple[Posture, ...] = ("standing", "walking")
DULL_SHARE, LADDER_SHARE = 0.25, 0.2
"""Share of the people in an orchard who wear dull clothes, and of those upright who carry a ladder."""
STRIDE = 0.82
"""Length of a full cycle of two steps, in heights."""
SKINS: tuple[Rgb, ...] = ((241, 205, 180), (224, 172, 134), (186, 128, 90), (141, 88, 58), (92, 58, 40))
HAIRS: tuple[Rgb, ...] = ((35, 28, 24), (80, 54, 34), (150, 115, 70), (120, 118, 116), (200, 198, 194))
SHIRTS: tuple[Rgb, ...] = (
    (196, 52, 44),
    (52, 92, 170),
    (232, 228, 220),
    (60, 62, 68),
    (86, 120, 66),
    (214, 180, 70),
    (120, 84, 56),
    (92, 60, 120),
    (60, 140, 150),
    (150, 152, 150),
)
TROUSERS: tuple[Rgb, ...] = (
    (48, 62, 98),
    (56, 56, 58),
    (120, 104, 78),
    (84, 86, 64),
    (34, 36, 42),
    (150, 146, 138),
)
VESTS: tuple[Rgb, ...] = ((226, 240, 60), (250, 120, 30))
DULL: tuple[Rgb, ...] = ((96, 92, 70), (84, 96, 62), (112, 96, 76), (78, 74, 66), (104, 108, 92))
"""Working clothes: the colours of earth, bark and leaves."""
LADDERS: tuple[Rgb, ...] = ((176, 178, 180), (168, 136, 92))
HATS: tuple[Rgb, ...] = ((216, 188, 128), (170, 40, 40), (40, 58, 110), (230, 226, 214), (60, 76, 50))


@dataclass(frozen=True)
class Person:
    """How one person looks."""

    height_m: float
    girth: float
    skin: Rgb
    hair: Rgb
    shirt: Look
    trousers: Look
    vest: Rgb | None
    hat: Rgb | None
    long_sleeves: bool
    seed: int
    ladder: Rgb | None = None


class Stance(NamedTuple):
    """Angles in radians: forward lean of the torso; per side (left, right) thigh, knee, arm and elbow."""

    lean: float
    thigh: tuple[float, float]
    knee: tuple[float, float]
    arm: tuple[float, float]
    elbow: tuple[float, float]


def drawn_person(rng: np.random.Generator) -> Person:
    """Draw somebody."""
    seed = int(rng.integers(1 << 20))
    shirt = textures.CHECKS if rng.random() < 0.25 else textures.CLOTH
    colour, other = (picked(rng, SHIRTS) for _ in range(2))
    return Person(
        height_m=float(rng.uniform(1.52, 1.92)),
        girth=float(rng.uniform(0.88, 1.25)),
        skin=picked(rng, SKINS),
        hair=picked(rng, HAIRS),
        shirt=Look(shirt, colour, other, seed),
        trousers=Look(textures.CLOTH, picked(rng, TROUSERS), seed=seed + 1),
        vest=picked(rng, VESTS) if rng.random() < 0.2 else None,
        hat=picked(rng, HATS) if rng.random() < 0.45 else None,
        long_sleeves=bool(rng.random() < 0.5),
        seed=seed,
    )


def at_work(rng: np.random.Generator, person: Person) -> Person:
    """Draw the same person at work in an orchard: often in dull clothes, at times with a ladder."""
    if rng.random() < DULL_SHARE:
        shirt, trousers = (Look(textures.CLOTH, picked(rng, DULL), seed=person.seed + at) for at in (0, 1))
        person = replace(person, shirt=shirt, trousers=trousers, vest=None)
    return replace(person, ladder=picked(rng, LADDERS)) if rng.random() < LADDER_SHARE else person


def stance(posture: Posture, walked_m: float, person: Person) -> Stance:
    """Return the joint angles of a posture; walking swings with the distance walked."""
    if posture == "walking":
        phase = 2 * math.pi * walked_m / (STRIDE * person.height_m)
        swing, other = math.sin(phase), math.cos(phase)
        return Stance(
            0.06,
            (0.42 * swing, -0.42 * swing),
            (0.18 + 0.55 * max(other, 0.0), 0.18 + 0.55 * max(-other, 0.0)),
            (-0.45 * swing, 0.45 * swing),
            (0.35, 0.35),
        )
    vary = (person.seed % 97) / 97 - 0.5  # nobody stands quite like another
    return {
        "standing": Stance(
            0.02, (0.05 * vary, -0.06), (0.04, 0.06), (0.12 * vary, -0.1), (0.2, 0.2 + 0.9 * abs(vary))
        ),
        "sitting": Stance(-0.12, (1.85, 1.75), (0.74, 0.53), (0.55, 0.6), (0.7 + 0.3 * vary, 0.5)),
        "crouching": Stance(0.5, (1.75, 1.5), (2.2, 2.1), (0.9, 0.7), (0.5, 0.4)),
        "reaching": Stance(-0.03, (0.1, -0.08), (0.08, 0.05), (2.5 + 0.4 * vary, 2.2), (0.35, 0.5)),
        "bending": Stance(1.15 + 0.2 * vary, (0.15, -0.02), (0.15, 0.1), (1.3, 1.15), (0.15, 0.2)),
    }[posture]


THIGH, SHIN, TORSO, UPPER_ARM, FOREARM = 0.245, 0.246, 0.288, 0.172, 0.157
HIP_ASIDE, SHOULDER_ASIDE = 0.055, 0.112
SOLE, SEAT, KNEECAP = 0.035, 0.075, 0.03
"""How far a body reaches below ankle, hip and knee."""
SHOE = Look(textures.PLAIN, (44, 38, 34))
Point = NDArray[np.float64]
Place = Callable[[Point], Point]


class Joints(NamedTuple):
    """Joints in heights, the hip's middle at the origin; pairs are left and right."""

    neck: Point
    head: Point
    hip: tuple[Point, Point]
    knee: tuple[Point, Point]
    ankle: tuple[Point, Point]
    shoulder: tuple[Point, Point]
    elbow: tuple[Point, Point]
    wrist: tuple[Point, Point]


def body(person: Person, pose: Stance, at_m: tuple[float, float], heading: float, instance: int) -> Solids:
    """Return the solids of a person at a point of the ground, facing `heading` (0: along world x).

    A ladder on the shoulder is part of the scene and not of the person: it has no identity.
    """
    turn = np.array(
        [
            [math.cos(heading), -math.sin(heading), 0.0],
            [math.sin(heading), math.cos(heading), 0.0],
            [0.0, 0.0, 1.0],
        ]
    )
    joints = joints_of(pose)
    foot = np.array([at_m[0], at_m[1], -lowest(joints) * person.height_m])

    def place(point: Point) -> Point:
        moved: Point = foot + person.height_m * (turn @ point)
        return moved

    made = Builder(classes.PERSON, instance)
    _legs(made, person, joints, place, turn)
    _trunk(made, person, joints, place, turn)
    _arms(made, person, joints, place)
    _head(made, person, joints, place, turn)
    if person.ladder is None:
        return made.solids()
    return joined([made.solids(), _ladder(person.ladder, joints, place)])


def joints_of(pose: Stance) -> Joints:
    """Return where the joints are in a stance."""
    lean = np.array([math.sin(pose.lean), 0.0, math.cos(pose.lean)])
    neck = TORSO * lean
    left, right = (_side(pose, neck - 0.02 * lean, side) for side in (0, 1))
    head = neck + 0.05 * lean + np.array([0.018, 0.0, 0.03])
    hip, knee, ankle, shoulder, elbow, wrist = zip(left, right, strict=True)
    return Joints(neck, head, hip, knee, ankle, shoulder, elbow, wrist)


def lowest(joints: Joints) -> float:
    """Return the height of the body's lowest part over the hip (negative), in heights."""
    return float(
        min(
            -SEAT,
            *(ankle[2] - SOLE for ankle in joints.ankle),
            *(knee[2] - KNEECAP for knee in joints.knee),
        )
    )


def _side(pose: Stance, collar: Point, side: int) -> tuple[Point, ...]:
    sign = (1.0, -1.0)[side]
    hip = np.array([0.0, HIP_ASIDE * sign, 0.0])
    knee = hip + THIGH * _swung(pose.thigh[side], 0.03 * sign)
    ankle = knee + SHIN * _swung(pose.thigh[side] - pose.knee[side], 0.01 * sign)
    shoulder = collar + np.array([0.0, SHOULDER_ASIDE * sign, 0.0])
    elbow = shoulder + UPPER_ARM * _swung(pose.arm[side], 0.16 * sign)
    wrist = elbow + FOREARM * _swung(pose.arm[side] + pose.elbow[side], 0.03 * sign)
    return hip, knee, ankle, shoulder, elbow, wrist


def _swung(angle: float, outward: float) -> Point:
    """Return the direction of a limb: down at angle 0, forward at a right angle."""
    return np.array([math.sin(angle), outward, -math.cos(angle)])


def _legs(made: Builder, person: Person, joints: Joints, place: Place, turn: Point) -> None:
    h = person.height_m
    thick = h * math.sqrt(person.girth)
    for hip, knee, ankle in zip(joints.hip, joints.knee, joints.ankle, strict=True):
        made.stem(place(hip), place(knee), 0.052 * thick, person.trousers, top_radius=0.036 * thick)
        made.ball(place(knee), np.full(3, 0.036 * thick), person.trousers)
        made.stem(place(knee), place(ankle), 0.035 * thick, person.trousers, top_radius=0.027 * thick)
        toe = ankle + np.array([0.03, 0.0, -0.012])
        made.ball(place(toe), (0.075 * h, 0.028 * h, 0.024 * h), SHOE, turn)


def _trunk(made: Builder, person: Person, joints: Joints, place: Place, turn: Point) -> None:
    h, girth = person.height_m, person.girth
    left = turn[:, 1]
    hip, neck = np.zeros(3), joints.neck
    waist = 0.38 * neck
    made.ball(place(hip), (0.066 * h * girth, 0.098 * h * math.sqrt(girth), 0.075 * h), person.trousers, turn)
    made.stem(
        place(0.1 * neck),
        place(waist),
        0.068 * h * girth,
        person.shirt,
        top_radius=0.064 * h * girth,
        wide=1.35,
        across=left,
    )
    made.stem(
        place(waist),
        place(0.93 * neck),
        0.064 * h * girth,
        person.shirt,
        top_radius=0.072 * h,
        wide=1.42,
        across=left,
    )
    made.ball(place(0.93 * neck), (0.062 * h, 0.112 * h, 0.04 * h), person.shirt, turn)
    if person.vest is not None:
        look = Look(textures.BANDS, person.vest, (205, 208, 210), person.seed)
        made.stem(place(0.2 * neck), place(0.97 * neck), 0.074 * h * girth, look, wide=1.42, across=left)


def _arms(made: Builder, person: Person, joints: Joints, place: Place) -> None:
    h = person.height_m
    skin = Look(textures.PLAIN, person.skin, seed=person.seed)
    lower = person.shirt if person.long_sleeves else skin
    for shoulder, elbow, wrist in zip(joints.shoulder, joints.elbow, joints.wrist, strict=True):
        made.ball(place(shoulder), np.full(3, 0.036 * h), person.shirt)
        made.stem(place(shoulder), place(elbow), 0.033 * h, person.shirt, top_radius=0.026 * h)
        made.ball(place(elbow), np.full(3, 0.026 * h), lower)
        made.stem(place(elbow), place(wrist), 0.025 * h, lower, top_radius=0.018 * h)
        hand = wrist + 0.3 * (wrist - elbow)
        made.ball(place(hand), np.full(3, 0.027 * h), skin)


def _ladder(colour: Rgb, joints: Joints, place: Place) -> Solids:
    """Return a ladder carried level on the right shoulder, along the way its bearer faces."""
    made = Builder(classes.STATIC)
    look = Look(textures.PAINT, colour)
    middle = joints.shoulder[1] + np.array([0.05, -0.04, 0.06])
    along, across = np.array([0.8, 0.0, 0.0]), np.array([0.0, -0.02, 0.11])
    for side in (-1, 1):
        rail = middle + side * across
        made.stem(place(rail - along), place(rail + along), 0.022, look)
    for part in np.linspace(-0.9, 0.9, 9):
        made.stem(place(middle + part * along - across), place(middle + part * along + across), 0.014, look)
    return made.solids()


def _head(made: Builder, person: Person, joints: Joints, place: Place, turn: Point) -> None:
    h, head = person.height_m, joints.head
    skin = Look(textures.PLAIN, person.skin, seed=person.seed)
    hair = Look(textures.CLOTH, person.hair, seed=person.seed)
    made.stem(place(0.95 * joints.neck), place(head), 0.036 * h, skin)
    made.ball(place(head), (0.056 * h, 0.045 * h, 0.066 * h), skin, turn)
    made.ball(place(head + np.array([-0.014, 0.0, 0.014])), (0.053 * h, 0.05 * h, 0.062 * h), hair, turn)
    if person.hat is not None:
        hat = Look(textures.CLOTH, person.hat, seed=person.seed + 2)
        brim = 0.1 if person.seed % 2 else 0.07  # straw hat or cap
        made.ball(place(head + np.array([0.02, 0.0, 0.035])), (brim * h, brim * h, 0.009 * h), hat, turn)
        made.ball(place(head + np.array([-0.004, 0.0, 0.035])), (0.06 * h, 0.054 * h, 0.05 * h), hat, turn)

"""The classes of the worlds: ids of the 34-class Cityscapes scheme (cityscapesScripts, labels.py)."""

from __future__ import annotations

STATIC = 4
GROUND = 6
ROAD = 7
SIDEWALK = 8
BUILDING = 11
FENCE = 13
POLE = 17
TRAFFIC_SIGN = 20
VEGETATION = 21
TERRAIN = 22
SKY = 23
PERSON = 24
CAR = 26

WITH_INSTANCES = {PERSON: "person", CAR: "car"}
"""Classes whose things are told apart and have boxes, and the names of their categories."""

JUDGED = {
    ROAD: "road",
    SIDEWALK: "sidewalk",
    BUILDING: "building",
    FENCE: "fence",
    POLE: "pole",
    TRAFFIC_SIGN: "traffic sign",
    VEGETATION: "vegetation",
    TERRAIN: "terrain",
    SKY: "sky",
    PERSON: "person",
    CAR: "car",
}
"""Pixel classes by name, but for those that Cityscapes does not judge either (static, ground)."""


def instance_value(label: int, number: int) -> int:
    """Return the pixel value of an instance: class * 1000 + number, as Cityscapes writes instanceIds.

    >>> instance_value(PERSON, 1)
    24001
    """
    return label * 1000 + number

"""A street drawn by us, with its depth: free to publish, and the same everywhere."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.seeds import generator
from adverse.types import Depth, Image

EYE_M = 1.6
"""Height of the camera above the road."""


def street(rows: int = 480, columns: int = 640) -> tuple[Image, Depth]:
    """Draw a road between houses, with cars, trees and people, and return it with its depth in metres."""
    horizon, focal = 0.45 * rows, 0.9 * columns
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    image = np.empty((rows, columns, 3), np.float32)
    depth = np.full((rows, columns), np.inf, np.float32)
    image[:] = np.array([120, 165, 220]) + (y / horizon)[..., None] * np.array([80, 50, 20])
    ground = y > horizon + 1
    depth[ground] = focal * EYE_M / (y - horizon)[ground]
    side_m = (x - columns / 2) * np.where(ground, depth, 0) / focal
    image[ground] = [96, 118, 70]
    image[ground & (np.abs(side_m) < 6)] = [150, 146, 140]
    image[ground & (np.abs(side_m) < 4)] = [92, 92, 96]
    dashed = ground & (np.abs(side_m) < 0.12) & (np.where(ground, depth, 0) % 6 < 3)
    image[dashed] = [235, 235, 225]
    things = [
        *((side * 11.0, 8.0 + 12 * k, 9.0, 7.0 + (k * 3) % 5, k) for k in range(6) for side in (-1, 1)),
        *((side * 5.2, 10.0 + 13 * k, 1.2, 4.5, 20 + k) for k in range(4) for side in (-1, 1)),
    ]
    for left_m, far_m, wide_m, high_m, kind in sorted(things, key=lambda thing: -thing[1]):
        _board(image, depth, focal, horizon, (left_m, far_m, wide_m, high_m), kind)
    for left_m, far_m, kind in ((1.9, 24.0, 31), (-2.0, 15.0, 32), (2.1, 9.0, 33)):
        _board(image, depth, focal, horizon, (left_m, far_m, 1.8, 1.5), kind)
    for left_m, far_m, kind in ((-4.6, 20.0, 41), (4.8, 12.0, 42), (-4.5, 7.0, 43)):
        _board(image, depth, focal, horizon, (left_m, far_m, 0.55, 1.75), kind)
    grain = generator(0, "street").standard_normal((rows, columns, 1)).astype(np.float32)
    made = image + 5 * grain + 6 * cv2.GaussianBlur(grain[..., 0], (0, 0), 2)[..., None]
    return np.clip(made, 0, 255).astype(np.uint8), depth


def _board(
    image: NDArray[np.float32],
    depth: NDArray[np.float32],
    focal: float,
    horizon: float,
    place: tuple[float, float, float, float],
    kind: int,
) -> None:
    """Stand a board on the ground, painted as a house (0..), tree (20..), car (30..) or person (40..)."""
    left_m, far_m, wide_m, high_m = place
    rows, columns = depth.shape
    scale = focal / far_m
    bottom = horizon + EYE_M * scale
    top, centre, half = bottom - high_m * scale, columns / 2 + left_m * scale, wide_m * scale / 2
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    v, u = (y - top) / (bottom - top), (x - centre) / half
    inside = (np.abs(u) <= 1) & (v >= 0) & (v <= 1) & (depth > far_m)
    colour = np.array(generator(kind, "board").integers(60, 220, 3), np.float32)
    if kind < 20:
        window = (((u + 1) * 4) % 1 > 0.35) & ((v * 4) % 1 > 0.4) & (v < 0.85)
        shade = np.where(window, 0.45, 1.0)
    elif kind < 30:
        crown = (u**2 + ((v - 0.35) / 0.35) ** 2 < 1) & inside
        inside &= crown | ((np.abs(u) < 0.15) & (v > 0.6))
        shade = np.where(crown, 1.0, 0.6)
        colour = np.array([60, 110, 50], np.float32)
    elif kind < 40:
        inside &= (v > 0.45) | (np.abs(u) < 0.75)
        shade = np.where((v > 0.12) & (v < 0.42), 0.35, np.where(v > 0.85, 0.15, 1.0))
    else:
        head = (u / 0.45) ** 2 + ((v - 0.08) / 0.08) ** 2 < 1
        inside &= head | ((v > 0.16) & (v < 0.55)) | ((v >= 0.55) & (np.abs(np.abs(u) - 0.45) < 0.4))
        shade = np.where(v < 0.16, 1.3, np.where(v < 0.55, 1.0, 0.55))
    image[inside] = (colour * shade[..., None])[inside]
    depth[inside] = far_m

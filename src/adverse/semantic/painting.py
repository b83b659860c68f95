"""What mutations do to pixels: pure functions of arrays, the same bytes for the same arguments."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.semantic.scenes import Box, Mask
from adverse.types import Image

HUES = 180
"""OpenCV's 8-bit hue counts half degrees, so a full turn is 180."""
LIGHT = 100
"""Lightness above which a pixel, or an object on average, counts as light."""
FADED = 50
"""Saturation below which a light pixel would show no hue."""
DARK, BLACK = 45, 20
"""Lightness below which a pixel of a vehicle is tyre or window, and below which even a rich colour is."""
RED, RICH = (168, 14), 110
"""Hues of tail lights and indicators (from the first round to the second), and their least saturation."""
GLARE = 235
MOST_LIGHTS = 0.3
"""The share of a vehicle above which red or white is its paint."""
GAIN_LIMITS = (0.75, 4 / 3)
SHADOW_STRENGTH = 0.55
SHADOW_REACH = 0.06
"""How far a contact shadow goes beyond the object, as a share of its longest side."""
LOW_PART, FEET = 0.45, 0.1
"""The share of an object's height that is near the ground."""
SOLID = 128
"""Alpha, of 255, from which on a pixel of a scaled cut-out belongs to it."""


def recoloured(pixels: NDArray[np.uint8], hue_shift: int, darker: int, richer: int) -> NDArray[np.uint8]:
    """Repaint the pixels (N,3) of one object: turn their hue, and give light paint a colour to turn.

    `hue_shift` is in half degrees. If the object is light on average, its light pixels get darker, and the
    faded ones among them richer in colour; which ones is decided by their lightness before the change.

    >>> recoloured(np.array([[200, 0, 0]], np.uint8), 60, 0, 0)
    array([[  0, 200,   0]], dtype=uint8)
    """
    hls = cv2.cvtColor(pixels.reshape(-1, 1, 3), cv2.COLOR_RGB2HLS).reshape(-1, 3).astype(np.int16)
    hue, lightness, saturation = hls[:, 0], hls[:, 1], hls[:, 2]
    if int(lightness.sum(dtype=np.int64)) > LIGHT * len(hls):
        light = lightness > LIGHT
        faded = light & (saturation < FADED)
        lightness = lightness - darker * light
        saturation = saturation + richer * faded
    changed = np.stack([(hue + hue_shift) % HUES, lightness, saturation], axis=1).astype(np.uint8)
    return np.asarray(cv2.cvtColor(changed.reshape(-1, 1, 3), cv2.COLOR_HLS2RGB), np.uint8).reshape(-1, 3)


def body_paint(pixels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which pixels (N,3) of a vehicle are paint: not tyres, dark windows, lights or glare.

    Dark pixels are no paint, unless they are rich in colour. Rich red and orange is a light, and what is
    nearly white glare or a lamp, unless they make up so much of the vehicle that it is painted so.

    >>> body_paint(np.array([[20, 20, 20], *[[60, 90, 160]] * 3, [230, 30, 20]], np.uint8)).tolist()
    [False, True, True, True, False]
    """
    if not len(pixels):
        return np.zeros(0, np.bool_)
    hls = cv2.cvtColor(pixels.reshape(-1, 1, 3), cv2.COLOR_RGB2HLS).reshape(-1, 3)
    hue, lightness, saturation = hls[:, 0], hls[:, 1], hls[:, 2]
    paint = (lightness >= DARK) | ((lightness >= BLACK) & (saturation >= RICH))
    lights = paint & ((hue <= RED[1]) | (hue >= RED[0])) & (saturation >= RICH)
    glare = paint & (lightness >= GLARE)
    for other in (lights, glare):
        if int(other.sum()) <= MOST_LIGHTS * int(paint.sum()):
            paint = paint & ~other
    return np.asarray(paint)


def acting(pixels: NDArray[np.uint8], hue_shift: int, darker: int, richer: int) -> tuple[int, int, int]:
    """Return the numbers of a repainting of pixels (N,3) with 0 for those that do nothing to them.

    Only light objects get darker or richer, only those with faded paint richer, and grey has no hue to turn.
    The pixels that come out are the same.

    >>> acting(np.array([[90, 90, 90]], np.uint8), 60, 30, 20)
    (0, 0, 0)
    """
    if not len(pixels):
        return 0, 0, 0
    hls = cv2.cvtColor(pixels.reshape(-1, 1, 3), cv2.COLOR_RGB2HLS).reshape(-1, 3).astype(np.int16)
    lightness, saturation = hls[:, 1], hls[:, 2]
    if int(lightness.sum(dtype=np.int64)) <= LIGHT * len(hls):
        darker = richer = 0
    elif not ((lightness > LIGHT) & (saturation < FADED)).any():
        richer = 0
    return hue_shift if richer or saturation.any() else 0, darker, richer


class Patch(NamedTuple):
    """A cut-out and where it goes: the box of the image that it fills, mask and colours of that box."""

    box: Box
    mask: Mask
    rgb: Image
    depth_m: NDArray[np.float32] | None


def resized(patch: Patch, box: Box, closer: float) -> Patch:
    """Scale a cut-out to another box; `closer` is how many times nearer it then is."""
    size = box[2] - box[0], box[3] - box[1]
    if size == (patch.mask.shape[1], patch.mask.shape[0]):
        return Patch(box, patch.mask, patch.rgb, patch.depth_m)
    how = cv2.INTER_AREA if size[0] < patch.mask.shape[1] else cv2.INTER_LINEAR
    alpha = cv2.resize(patch.mask.astype(np.float32) * 255, size, interpolation=how)
    # colours are weighed by alpha, so that the black around the cut-out does not bleed in
    weighed = cv2.resize(patch.rgb.astype(np.float32) * patch.mask[..., None], size, interpolation=how)
    rgb = np.rint(np.clip(weighed / np.maximum(alpha / 255, 1e-6)[..., None], 0, 255)).astype(np.uint8)
    depth = patch.depth_m
    if depth is not None and not np.isnan(depth).all():
        nearest = cv2.resize(depth, size, interpolation=cv2.INTER_NEAREST)
        filled = np.where(np.isnan(nearest), np.nanmedian(depth), nearest)
        depth = (filled / closer).astype(np.float32)
    return Patch(box, alpha >= SOLID, rgb, depth)


def harmonised(rgb: Image, before: tuple[float, float, float], after: tuple[float, float, float]) -> Image:
    """Fit the colours of a cut-out to new surroundings: by the ratio of their mean colours, within limits."""
    ratios = [(a + 1) / (b + 1) for a, b in zip(after, before, strict=True)]
    gains = np.clip(ratios, *GAIN_LIMITS)
    table = np.rint(np.minimum(np.arange(256)[:, None] * gains, 255)).astype(np.uint8)
    return np.asarray(cv2.LUT(np.ascontiguousarray(rgb), table.reshape(256, 1, 3)), np.uint8)


def feathered(base: Image, patch: Patch, feather_px: int) -> Image:
    """Return the patch's colours blended, from its edge inwards, with the base's (of its box)."""
    padded = np.pad(patch.mask, 1).astype(np.uint8)
    inwards = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1]
    alpha = np.minimum(inwards / (feather_px + 1), 1)[..., None]
    mixed = patch.rgb * alpha + base * (1 - alpha)
    return np.asarray(np.rint(mixed), np.uint8)


class Shadow(NamedTuple):
    """How much of the light is left, by pixel of a box."""

    box: Box
    light: NDArray[np.float32]


def contact_shadow(patch: Patch, size: tuple[int, int]) -> Shadow:
    """Return the soft shadow on the ground under something: around the hull of its lower part.

    The lower part of a thing that is wider than high (a car) reaches up to its far wheels; of one that is
    higher than wide (a person) it is the feet.
    """
    x0, y0, x1, y1 = patch.box
    width, height = x1 - x0, y1 - y0
    reach = max(round(SHADOW_REACH * max(width, height)), 2)
    lower = np.argwhere(patch.mask)[:, ::-1]
    share = LOW_PART if width >= height else FEET
    lower = lower[lower[:, 1] >= lower[:, 1].max() - share * height]
    left, top, right, bottom = x0 - reach, y0 - reach, x1 + reach, y1 + reach
    hull = np.zeros((bottom - top, right - left), np.float32)
    cv2.fillConvexPoly(hull, cv2.convexHull(lower.astype(np.int32) + reach), SHADOW_STRENGTH)
    soft = cv2.GaussianBlur(hull, (2 * reach + 1, 2 * reach + 1), reach / 3, borderType=cv2.BORDER_CONSTANT)
    box = max(left, 0), max(top, 0), min(right, size[0]), min(bottom, size[1])
    inside = soft[box[1] - top : box[3] - top, box[0] - left : box[2] - left]
    return Shadow(box, (1 - inside).astype(np.float32))

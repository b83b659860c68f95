"""What can be said about a test in a few words: what failures may share."""

from __future__ import annotations

import cv2
import numpy as np

from adverse.semantic import Mutated, Recipe, Scene
from adverse.semantic.scenes import Box

SIZES = (0.05, 0.1, 0.2)
"""Where the classes of size end, as shares of the width of the image."""
THIRDS = ("left", "middle", "right")
DARK, LIGHT, PALE = 45, 200, 45
"""Lightness of black and white, and the saturation below which a colour is grey, of 255."""
HUES = (
    (10, "red"),
    (34, "yellow"),
    (85, "green"),
    (100, "cyan"),
    (135, "blue"),
    (168, "magenta"),
    (181, "red"),
)
"""Names of OpenCV's hues, each up to a number of half degrees."""
LEAST_BEFORE = 0.3
"""The share of what it covers that something has before an object is said to stand before it."""


def features_of(recipe: Recipe, made: Mutated, base: Scene) -> dict[str, str]:
    """Return the features of a test by name; those that mean nothing for its mutation are left out.

    `class`, `size`, `place` and `colour` are of what was added or changed, `before` is the class of what an
    added object stands before, `touches` whether a changed one touches another, `object` which it is.
    """
    features = {"mutation": recipe.mutation}
    scene = made.scene if made.instance in made.scene.things else base
    thing = scene.things.get(made.instance or 0)
    if thing is None:
        return features
    x0, y0, x1, y1 = thing.box
    width = scene.size[0]
    features["class"] = scene.class_of(thing) or "unnamed"
    features["size"] = size_words(max(x1 - x0, y1 - y0) / width)
    features["place"] = THIRDS[min(int(3 * (x0 + x1) / 2 / width), 2)]
    own = scene.instances[y0:y1, x0:x1] == thing.instance
    features["colour"] = colour_name(np.median(scene.image[y0:y1, x0:x1][own], axis=0))
    if recipe.donor is not None:
        features["before"] = _covered(base, made)
    elif recipe.mutation != "remove_object":
        features["touches"] = "another object" if _touches(scene, thing.box, thing.instance) else "no object"
    features["object"] = recipe.donor or f"{base.id}#{thing.instance}"
    return features


SEEN = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95)
MASTERED = (90.0, 95.0, 97.0, 98.0, 99.0)
COVERED = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08)
"""Where classes end: of how much of an object is seen, of a score in percent, of a share of the image."""


def hints_of(made: Mutated, base: Scene, seen: float | None, score: float | None) -> dict[str, str]:
    """Return what tells how likely a test fails before it is run, for a guided search.

    `seen` is how much of the object a SUT saw in the base, `score` its score there; None: not known.
    """
    hints = {"pixels": _class_of(float(made.mask.mean()), COVERED)}
    if seen is not None and made.instance in base.things:
        hints["seen before"] = _class_of(seen, SEEN)
    if score is not None:
        hints["score before"] = _class_of(score, MASTERED)
    return hints


def _class_of(value: float, ends: tuple[float, ...]) -> str:
    return str(int(np.searchsorted(ends, value, side="right")))


def size_words(share: float) -> str:
    """Return the class of size of a longest side, as a share of the width of the image.

    >>> [size_words(share) for share in (0.04, 0.1, 0.5)]
    ['below 5 % of the width', '10 to 20 % of the width', 'above 20 % of the width']
    """
    edges = [0.0, *SIZES]
    at = int(np.searchsorted(SIZES, share, side="right"))
    if at == 0:
        return f"below {SIZES[0]:.0%} of the width".replace("%", " %")
    if at == len(SIZES):
        return f"above {SIZES[-1]:.0%} of the width".replace("%", " %")
    return f"{100 * edges[at]:.0f} to {100 * SIZES[at]:.0f} % of the width"


def colour_name(rgb: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """Return the name of a colour, the median of an object.

    >>> [colour_name(np.array(rgb)) for rgb in ((20, 20, 20), (120, 122, 119), (180, 30, 30), (30, 40, 160))]
    ['black', 'grey', 'red', 'blue']
    """
    pixel = np.rint(np.asarray(rgb)).astype(np.uint8).reshape(1, 1, 3)
    hue, lightness, saturation = cv2.cvtColor(pixel, cv2.COLOR_RGB2HLS)[0, 0].tolist()
    if lightness < DARK:
        return "black"
    if saturation < PALE:
        return "white" if lightness > LIGHT else "grey"
    return next(name for end, name in HUES if hue < end)


def _covered(base: Scene, made: Mutated) -> str:
    """Return the class of most of what an added object covers, if it is much of it."""
    labels = base.labels[made.mask]
    if not len(labels):
        return "nothing"
    counts = np.bincount(labels)
    most = int(counts.argmax())
    return (
        base.classes.get(most, "unlabelled")
        if counts[most] >= LEAST_BEFORE * len(labels)
        else "several things"
    )


def _touches(scene: Scene, box: Box, instance: int) -> bool:
    x0, y0, x1, y1 = box
    inside = np.s_[max(y0 - 1, 0) : y1 + 1, max(x0 - 1, 0) : x1 + 1]
    near = scene.instances[inside]
    grown = cv2.dilate((near == instance).astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    return bool((grown & (near > 0) & (near != instance)).any())

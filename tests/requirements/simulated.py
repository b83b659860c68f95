"""Worlds in which the true reliability distance is known: images that a SUT gets right or wrong."""

from __future__ import annotations

import numpy as np

from adverse.requirements.measures import Evidence, Ratio, Side


def simulated(
    seed: int,
    *,
    images: int,
    lost: float,
    won: float = 0.0,
    versions: int = 2,
    accuracy: float = 0.8,
    per_log: int = 1,
    alike: float = 0.0,
) -> Evidence:
    """Return an image set whose true distance is `lost` less `won`.

    Each image is right as it is with chance `accuracy`; a share `lost` of all images turns wrong when changed
    and a share `won` turns right. With chance `alike` an image does what the first of its log does, so that
    logs of `per_log` images are alike inside; with `alike` 0 images are independent.
    """
    rng = np.random.default_rng(seed)
    log = np.arange(images) // per_log
    right = rng.random(images) < accuracy
    flip = np.where(right, lost / accuracy, won / (1 - accuracy))
    chance = rng.random((images, versions))
    follows = rng.random(images) < alike
    first = log * per_log
    right = np.where(follows, right[first], right)
    flip = np.where(follows, flip[first], flip)
    chance = np.where(follows[:, None], chance[first], chance)
    changed = right[:, None] ^ (chance < flip[:, None])
    one = np.ones(images)
    image = np.repeat(np.arange(images), versions)
    return Evidence(
        Side(Ratio(right.astype(float), one), np.arange(images)),
        Side(Ratio(changed.ravel().astype(float), np.ones(len(image))), image),
        log,
    )


def crowds(seed: int, *, images: int, distance: float, share: float = 0.1, people: int = 20) -> Evidence:
    """Return images of which a share holds so many people, the others one each, all found as they are.

    Only in the full ones are people lost, all of an image together: with the chance that makes the true
    distance what it is.
    """
    rng = np.random.default_rng(seed)
    full = rng.random(images) < share
    held = np.where(full, float(people), 1.0)
    of_all = share * people / (share * people + 1 - share)
    lost = full & (rng.random(images) < distance / of_all)
    image = np.arange(images)
    return Evidence(
        Side(Ratio(held, held), image), Side(Ratio(np.where(lost, 0.0, held), held), image), image
    )

"""How often a requirement about recall passes wrongly where images hold unequally many people.

The true distance is the margin (`none`: nobody is lost, and a PASS is right). The verdict is written a
second time here, for many checks at once, and compared with that of the package on some of them. Everybody in
an image is found as it is and lost together, the hardest case. No rule was tuned on these seeds.

OPENBLAS_NUM_THREADS=1 PYTHONPATH=src python bench/requirement_verdicts.py [checks in each cell] [seed]
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from adverse.requirements.decision import SamplingPlan, decisions
from adverse.requirements.measures import Evidence, Ratio, Side
from adverse.requirements.verdicts import Outcome
from adverse.seeds import generator

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]

RISK, BATCHES, CHUNK = 0.05, 1000, 64
IMAGES, MARGINS = (30, 60, 100, 150, 300), (0.05, 0.15, 0.4)
RAREST = 0.02
"""Kinds of image from this share on must not be missed; as a requirements file has it by default."""
POPULATION = 1_000_000
"""Images from which it is known where the fullest begin, and which share of the people they hold."""
TIE = 1e-6
WITNESSES = 2
"""Checks of each cell that the package decides, too."""


class World(NamedTuple):
    """How many people are in an image, and which share of the images, the fullest, loses people."""

    words: str
    people: Draw
    fullest: float = 0.1
    crowds: bool = False


def crowds(share: float, held: float) -> Draw:
    return lambda rng, shape: np.where(rng.random(shape) < share, held, 1.0)


def log_normal(sigma: float) -> Draw:
    return lambda rng, shape: np.ceil(rng.lognormal(0, sigma, shape)).astype(np.float64)


WORLDS = (
    World("1", lambda _, shape: np.ones(shape)),
    World("1 + Poisson(2)", lambda rng, shape: (1 + rng.poisson(2, shape)).astype(np.float64)),
    *(World(f"log-normal, sigma {sigma:g}", log_normal(sigma)) for sigma in (1, 1.5, 2)),
    World("20 in a tenth, else 1", crowds(0.1, 20), 0.1, True),
    World("50 in 1 of 20, else 1", crowds(0.05, 50), 0.05, True),
    World("100 in 1 of 50, else 1", crowds(0.02, 100), 0.02, True),
)


def main() -> None:
    checks = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20_261_117
    batches = {images: [weights(images, run) for run in (0, 1)] for images in IMAGES}
    compared = agreed = 0
    print(
        "| people in an image | lost in | margin |", " | ".join(f"{images} images" for images in IMAGES), "|"
    )
    print("|---|---|---|" + "---|" * len(IMAGES))
    for (number, world), place in itertools.product(enumerate(WORLDS), ("fullest", "any", "none")):
        for margin in MARGINS:
            cells = []
            for images in IMAGES:
                rng = np.random.default_rng([seed, number, len(place), round(100 * margin), images])
                held, lost = draw(world, place, margin, (checks, images), rng)
                passes = verdicts(held, lost, margin, batches[images])
                cell = f"{passes.mean():.1%}"
                crowd = held.max(axis=1) > 1
                if place == "fullest" and world.crowds and not crowd.all():
                    cell += f" ({passes[crowd].mean():.1%} of the {crowd.mean():.0%} with a crowd)"
                cells.append(cell)
                for check in range(WITNESSES):
                    compared += 1
                    agreed += passes[check] == package(held[check], lost[check], margin)
            print("|", world.words, "|", place, "|", margin, "|", " | ".join(cells), "|", flush=True)
    print(f"the package decides {agreed} of {compared} checks alike")


def draw(
    world: World, place: str, margin: float, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return (checks, images) how many people there are, and how many of them are lost."""
    held = world.people(rng, shape)
    if place == "none":
        return held, np.zeros(shape)
    if place == "any":
        return held, held * (rng.random(shape) < margin)
    least, share = fullest(world, margin)
    full = held + TIE * rng.random(shape) >= least
    return held, held * (full & (rng.random(shape) < margin / share))


@functools.cache
def fullest(world: World, margin: float) -> tuple[float, float]:
    """Return from how many people on an image is one of the fullest, and which share of all people they hold.

    They hold at least as many as are to be lost. Ties are broken at random.
    """
    rng = np.random.default_rng(1)
    order = np.sort(world.people(rng, (1, POPULATION))[0] + TIE * rng.random(POPULATION))[::-1]
    shares = np.cumsum(order) / order.sum()
    last = max(round(world.fullest * POPULATION) - 1, int(np.searchsorted(shares, margin)))
    return float(order[last]), float(shares[last])


def weights(images: int, run: int) -> Array:
    """Return how often each image is in each batch, drawn as the package draws them."""
    rng = generator(0, "batches of logs", str(run))
    drawn = [
        rng.integers(images, size=(min(CHUNK, BATCHES - start), images)) for start in range(0, BATCHES, CHUNK)
    ]
    return np.stack([np.bincount(row, minlength=images) for row in np.concatenate(drawn)]).astype(np.float64)


def verdicts(held: Array, lost: Array, margin: float, batches: list[Array]) -> NDArray[np.bool_]:
    """Return which checks (C,) of (C, images) pass; the rule as docs/requirements.md words it."""
    images = held.shape[1]
    total = held.sum(axis=1)
    distance = lost.sum(axis=1) / total
    equal = total**2 / (held**2).sum(axis=1)
    tenth = np.sort(held, axis=1)[:, ::-1][:, : images // 10].sum(axis=1) / total
    worth = np.minimum(equal, images / np.maximum(tenth / 0.1, 1))
    with np.errstate(invalid="ignore"):
        more = np.abs((lost.sum(axis=1)[:, None] + lost) / (total[:, None] + held) - distance[:, None])
    extreme = 2 * np.minimum(1, 2 * (1 - equal / images)) * more.max(axis=1)
    passes: NDArray[np.bool_] = (equal >= 20) & ((1 - RAREST) ** images <= RISK)
    for batch in batches:
        spread = (batch @ lost.T / (batch @ held.T)).std(axis=0, ddof=1) * np.sqrt(images / (images - 1))
        half = np.hypot(stdtrit(equal - 1, 1 - RISK) * spread, 1 - RISK ** (1 / worth))
        passes &= distance + half + np.maximum(0.5 / worth, extreme) <= margin
    return passes


def package(held: Array, lost: Array, margin: float) -> bool:
    image = np.arange(len(held))
    evidence = Evidence(Side(Ratio(held, held), image), Side(Ratio(held - lost, held), image), image)
    plan = SamplingPlan(margin=margin, confidence=1 - RISK, batches=BATCHES, rarest_kind=RAREST)
    return decisions([evidence], [plan])[0].outcome is Outcome.PASS


if __name__ == "__main__":
    main()

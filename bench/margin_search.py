"""What a search for margins costs, and how often bisection is too far: in simulated worlds or on a sweep.

In a simulated world the score of each person falls along 12 strengths, at a speed of their own, with noise
that brings some of them back; one to three people stand in a frame, which is shown what any of them asks for.

    python bench/margin_search.py --people 20000 --seed 1
    python bench/margin_search.py --run RUN        # a run that has every strength of its mutations
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import sut_detections
from adverse.curves.margin_search import (
    FOUND,
    UNKNOWN,
    Known,
    Margins,
    Method,
    bisected_margins,
    margins,
    wanted_steps,
)
from adverse.plugins import load
from adverse.requirements.margins import RunMargins
from adverse.seeds import generator
from adverse.store.finished_run import finished

STEPS = 12


class World(NamedTuple):
    """How much of a score is chance, and how many people stand in a frame at most."""

    name: str
    noise: float
    most: int


WORLDS = (
    World("one person in a frame, 8 % come back", 0.26, 1),
    World("one to three in a frame, 8 % come back", 0.26, 3),
    World("one to three in a frame, 4 % come back", 0.2, 3),
    World("one to three in a frame, 21 % come back (own noise)", 0.46, 3),
)


def main() -> None:
    """Print a table of worlds, or of the conditions of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=Path)
    given = parser.parse_args()
    print("| | found clean | come back | ascending: images | bisection: images | too far |")
    print("|---|---|---|---|---|---|")
    if given.run is not None:
        of_run(given.run)
        return
    for world in WORLDS:
        rng = generator(given.seed, "margin bench", world.name)
        middle, slope = rng.logistic(7, 2.5, given.people), rng.uniform(0.15, 0.8, given.people)
        chance = world.noise * rng.normal(size=(given.people, STEPS + 1))
        truth = ((middle[:, None] - np.arange(STEPS + 1)) * slope[:, None] + chance > 0).astype(np.int8)
        frame = np.repeat(np.arange(given.people), rng.integers(1, world.most + 1, given.people))
        row(world.name, truth, frame[: given.people])


def of_run(path: Path) -> None:
    """Print the conditions of a run that has every strength."""
    run = RunMargins(finished(path), load())
    for sut in run.store.suts:
        for condition in run.conditions:
            known = run.known(sut_detections(run.store, sut), condition)
            row(f"{sut}, {condition.name}", known, run.store.truth.frame[run.people])


def row(name: str, truth: Known, frame: NDArray[np.int64]) -> None:
    """Print what both searches cost of a sweep of the frames with anybody, and how often one is wrong."""
    found = truth[:, 0] == FOUND
    back = np.mean([(np.diff(person) > 0).any() for person in truth[found]])
    sweep = len(np.unique(frame)) * (truth.shape[1] - 1)
    costs, answers = [], []
    methods: tuple[tuple[Method, Callable[[Known], Margins]], ...]
    methods = (("ascend", margins), ("bisect", bisected_margins))
    for method, read in methods:
        known = np.full_like(truth, UNKNOWN)
        known[:, 0] = truth[:, 0]
        names = [str(number) for number in range(len(truth))]
        while (wanted := wanted_steps(known, method, frame, names, seed=1)).any():
            asked = np.zeros((int(frame.max()) + 1, truth.shape[1]), np.bool_)
            np.logical_or.at(asked, frame, wanted)
            shown = asked[frame]
            known[shown] = truth[shown]
        frames = np.zeros((int(frame.max()) + 1, truth.shape[1]), np.bool_)
        np.logical_or.at(frames, frame, known != UNKNOWN)
        costs.append(frames[:, 1:].sum() / sweep)
        answers.append(read(known).step)
    far = np.mean(answers[1][found] > answers[0][found])
    print(f"| {name} | {found.sum()} | {back:.1%} | {costs[0]:.0%} | {costs[1]:.0%} | {far:.2%} |")


if __name__ == "__main__":
    main()

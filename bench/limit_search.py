"""How often a search for a condition's limit gives the answer of a sweep over all steps, and what it costs.

Each person of a simulated world is lost at a strength of their own, and found again or lost by chance at some
steps, as often as answers reverse under common random numbers (8 %) or under fresh ones (21 %). The rule is
about the recall over all of them.

    python bench/limit_search.py --cases 200 --seed 1
    python bench/limit_search.py --cases 200 --seed 1 --rules 2
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from adverse.curves.limit_search import Evaluation, LimitSearch
from adverse.seeds import generator

STEPS = 12


class World(NamedTuple):
    """How many people, how much of their answers is chance, and whether recall comes back at the end."""

    name: str
    people: int
    reversed_share: float
    comes_back: bool = False
    dips: bool = False
    """One step somewhere loses most people, those beside it do not."""


WORLDS = (
    World("400 people, 8 % of answers reverse", 400, 0.08),
    World("100 people, 8 % of answers reverse", 100, 0.08),
    World("400 people, 21 % of answers reverse", 400, 0.21),
    World("4000 people, 8 % of answers reverse", 4000, 0.08),
    World("recall comes back at the strongest steps", 400, 0.08, comes_back=True),
    World("recall drops at one step alone", 400, 0.08, dips=True),
)


class Case(NamedTuple):
    """The answer of the search and of the sweep, and what the search cost."""

    found: int | None
    wanted: int | None
    evaluations: int
    swept: bool


def recalls(world: World, rng: np.random.Generator) -> np.ndarray:
    """Draw the recall at steps 0 to 12."""
    steps = np.arange(STEPS + 1)
    middle, spread = rng.uniform(1.0, 14.0), rng.uniform(0.4, 2.5)
    lost_at = rng.logistic(middle, spread, world.people)
    found = lost_at[:, None] > steps
    near = np.exp(-np.abs(lost_at[:, None] - steps) / 2)  # chance decides near the border, not far from it
    flips = rng.random(found.shape) < world.reversed_share * near
    recall = (found ^ flips).mean(axis=0) * rng.uniform(0.85, 1.0)
    if world.comes_back:
        recall[-3:] = recall[:3].mean()
    if world.dips:
        recall[rng.integers(2, STEPS - 1)] *= 0.3
    return np.asarray(recall)


def run_case(world: World, number: int, seed: int, rules: int = 1) -> list[Case]:
    """Search the limits of some rules in one world, sharing what was run, and sweep it."""
    rng = generator(seed, world.name, str(number))
    recall = recalls(world, rng)
    searches = []
    for _ in range(rules):
        at_least = float(rng.uniform(0.3, 0.95))
        every = [_evaluation(float(value) - at_least, float(value), world.people) for value in recall]
        search = LimitSearch(STEPS, seed, f"{world.name} {number}")
        search.add(0, every[0])
        searches.append((search, every))
    while steps := {step for search, _ in searches for step in search.next_steps()}:
        for search, every in searches:
            for step in steps - search.known.keys():
                search.add(step, every[step])
    cases = []
    for search, every in searches:
        failing = [step for step, one in enumerate(every) if not one.holds]
        wanted = (failing[0] - 1 if failing[0] else None) if failing else STEPS
        result = search.result()
        cases.append(Case(result.limit, wanted, result.evaluations, result.swept))
    return cases


def _evaluation(room: float, recall: float, people: int) -> Evaluation:
    """Return how a recall keeps the rule, with the interval that so many people give it."""
    error = 2 * (max(recall * (1 - recall), 0.01) / people) ** 0.5
    return Evaluation(room >= 0, room, (room - error, room + error))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", type=int, default=1, help="rules that are searched together")
    told = parser.parse_args()
    print("| world | same answer | further than the sweep | mean evaluations | most, not swept | swept |")
    print("|---|---|---|---|---|---|")
    for world in WORLDS:
        every = (run_case(world, number, told.seed, told.rules) for number in range(told.cases))
        cases = [case for some in every for case in some]
        same = np.mean([case.found == case.wanted for case in cases])
        beyond = np.mean([(case.found or 0) > (case.wanted or 0) for case in cases])
        most = max(case.evaluations for case in cases if not case.swept)
        print(
            f"| {world.name} | {100 * same:.1f} % | {100 * beyond:.1f} % "
            f"| {np.mean([case.evaluations for case in cases]):.2f} | {most} "
            f"| {100 * np.mean([case.swept for case in cases]):.1f} % |"
        )


if __name__ == "__main__":
    main()

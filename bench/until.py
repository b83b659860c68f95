"""How often a run that stops early is wrong, how often it says what the whole run says, and what it saves.

Logs are drawn in worlds whose true figure is known, 40 with people and 40 without, and looked at as `adverse
run --until` does: five looks, the same intervals, the same rules of settling. *False PASS*: a PASS although
the true figure breaks the limit; 3 % are allowed in every cell. *Same*: the verdict of all 80 logs at 95 %.
*Opposite*: PASS where that is FAIL, or the reverse. The last table is of studies: a SUT under nine mutations,
each with a true figure of its own, dropped when its rule is settled; the clean images are run to the end.
Logs without people are shown as by the command: to rates of people as many as a PASS takes, to areas all.

    python bench/until.py --repetitions 2000 --seed 1
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from adverse.curves.bootstrap import Sample, draw, estimate
from adverse.curves.group_sequential import Spending
from adverse.curves.interval import Interval, korn_graubard
from adverse.curves.quantities import Area, Ratios
from adverse.curves.studentized import interval
from adverse.requirements.rules import Rule
from adverse.requirements.until import LOOKS, PEOPLE_ONLY, UntilPlan, settle, staged
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.seeds import generator

LOGS, FRAMES, LEVELS = 40, 12, 15
MUTATIONS = 9
MEASURES = {"violations": "violations", "recall": "recall", "area": "f1", "alarms": "f1"}
"""What a rule is called that settles by the interval of such a figure; f1 needs logs of either kind too."""


class World(NamedTuple):
    """A figure, its true value, and the least (or most) that a rule allows."""

    name: str
    kind: str
    true: float
    limit: float


WORLDS = (
    World("violations 20 %, at most 20 %", "violations", 0.2, 0.2),
    World("violations 5 %, at most 20 %", "violations", 0.05, 0.2),
    World("violations 45 %, at most 20 %", "violations", 0.45, 0.2),
    World("recall 0.6, at least 0.6", "recall", 0.6, 0.6),
    World("recall 0.85, at least 0.6", "recall", 0.85, 0.6),
    World("recall 0.3, at least 0.6", "recall", 0.3, 0.6),
    World("area at its limit", "area", 0.5, 0.0),
    World("area at its limit, one alarm log in seven", "alarms", 0.5, 0.0),
    World("area well above its limit, one alarm log in seven", "alarms", 0.5, -0.25),
)
"""Of areas the limit is given as a distance from the true one, which is that of very many logs."""


@dataclass(frozen=True, eq=False)
class Logs:
    """What logs say: `hits` of `trials` (P,) with people; alarms (N, K) of those without, found (P, K)."""

    hits: np.ndarray
    trials: np.ndarray
    found: np.ndarray
    alarms: np.ndarray
    samples: dict[tuple[int, int], Sample] = field(default_factory=dict)
    """Resampled areas of the first logs of either kind."""


def drawn(world: World, rng: np.random.Generator, logs: int = LOGS) -> Logs:
    """Draw logs of a world: frames of a log are alike, and one log in seven has alarms where that is so."""
    if world.kind == "violations":
        hits = (rng.random(logs) < world.true).astype(float)
        return Logs(hits, np.ones(logs), np.zeros((logs, 0)), np.zeros((logs, 0)))
    rate = rng.beta(3 * world.true, 3 * (1 - world.true), logs)  # correlation within logs 0.25
    hits = rng.binomial(FRAMES, rate).astype(float)
    if world.kind == "recall":
        return Logs(hits, np.full(logs, float(FRAMES)), np.zeros((logs, 0)), np.zeros((logs, 0)))
    rising = np.linspace(0.2, 1.8, LEVELS)
    found = rng.binomial(FRAMES, np.clip(rate[:, None] * rising, 0, 1)).astype(float)
    found = np.maximum.accumulate(found, axis=1)
    alarming = rng.random(logs) < (1 / 7 if world.kind == "alarms" else 1.0)
    many = rng.gamma(1.0, 0.7 if world.kind == "alarms" else 0.1, logs) * alarming
    alarms = np.maximum.accumulate(rng.poisson(np.minimum(many[:, None] * rising**3, 50)), axis=1)
    return Logs(hits, np.full(logs, float(FRAMES)), found, alarms.astype(float))


def curve(logs: Logs, positive: int, negative: int) -> Ratios:
    """Return the first logs of either kind as one curve; those without people come second."""
    zeros = np.zeros((negative, LEVELS))
    hits = np.concatenate([logs.found[:positive], zeros])
    truths = np.concatenate([logs.trials[:positive], np.zeros(negative)])
    cost = np.concatenate([np.zeros((positive, LEVELS)), logs.alarms[:negative]])
    exposure = np.concatenate([np.zeros(positive), np.full(negative, float(FRAMES))])
    return Ratios(hits, truths, cost, exposure)


def measured(world: World, logs: Logs, count: tuple[int, int], sure: float, bootstrap: int) -> Interval:
    """Return the interval of the figure from the first logs of either kind."""
    positive, negative = count
    if world.kind in ("violations", "recall"):
        return korn_graubard(logs.hits[:positive], logs.trials[:positive], confidence=sure)
    if count not in logs.samples:
        names = [f"{number:03}" for number in range(positive + negative)]
        resamples = draw(names, ["+"] * positive + ["-"] * negative, seed=1, count=bootstrap)
        logs.samples[count] = estimate({"area": Area((curve(logs, *count),))}, resamples)["area"]
    return interval(logs.samples[count], confidence=sure)


def outcome(world: World, figure: Interval, limit: float) -> str:
    """Return PASS, FAIL or neither: both ends keep the limit, or none does."""
    if figure.low is None or figure.high is None:
        return "INCONCLUSIVE"
    if world.kind == "violations":
        kept = [figure.low <= limit, figure.high <= limit]
    else:
        kept = [figure.low >= limit, figure.high >= limit]
    return "PASS" if all(kept) else "INCONCLUSIVE" if any(kept) else "FAIL"


def limit_of(world: World, seed: int) -> float:
    """Return the limit of a world; of areas, beside the true one."""
    if world.kind not in ("area", "alarms"):
        return world.limit
    many = drawn(world, generator(seed, "truth", world.name), 200_000)
    safety, efficiency = curve(many, 200_000, 200_000).observed
    from adverse.curves.curve import areas  # noqa: PLC0415 - of this kind alone

    return float(areas(safety, efficiency)) + world.limit


def plan_of(spending: Spending) -> UntilPlan:
    """Return the looks of a run of as many logs of either kind."""
    parts = staged(range(LOGS), range(LOGS), LOOKS)
    ends = np.cumsum([[len(logs) for logs in part] for part in parts], axis=0)
    facts = {"fixed_thresholds": True, "people_only": PEOPLE_ONLY}
    return UntilPlan((), tuple((int(p), int(n)) for p, n in ends), spending, (), facts)


def until(world: World, logs: Logs, limit: float, plan: UntilPlan, bootstrap: int) -> tuple[str, float]:
    """Return the verdict of a run that stops when it is clear, and the share of logs that it took."""
    limits = {"at_most": limit} if world.kind == "violations" else {"at_least": limit}
    rule = Rule.model_validate({"measure": MEASURES[world.kind], "setting": "clean", **limits})
    for look, count in enumerate(plan.counts):
        figure = measured(world, logs, count, plan.confidence(look), bootstrap)
        verdict = Verdict("", "", limit, None, figure, Outcome(outcome(world, figure, limit)))
        for settled in settle(plan, look, (0, rule), [verdict], {}).values():
            return str(settled.verdict.outcome), sum(settled.logs) / (2 * LOGS)
    raise AssertionError("the last look settles everything")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--bootstrap", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("| world | spending | PASS | FAIL | false PASS | false FAIL | same | opposite | logs |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for world in WORLDS:
        rows(world, given)
    print(
        "\n| studies | open with all logs | same verdicts | opposite | images |\n|---|---|---|---|---|",
        flush=True,
    )
    for kind, limit in (("recall", 0.6), ("violations", 0.2), ("area", 0.5)):
        studies(kind, limit, given)


def rows(world: World, given: argparse.Namespace) -> None:
    """Print one world, by either spending."""
    plans: dict[Spending, UntilPlan] = {name: plan_of(name) for name in ("obrien-fleming", "pocock")}
    said: dict[Spending, list[tuple[str, float]]] = {name: [] for name in plans}
    limit, whole = limit_of(world, given.seed), []
    for number in range(given.repetitions):
        logs = drawn(world, generator(given.seed, "until bench", world.name, str(number)))
        for name, plan in plans.items():
            said[name].append(until(world, logs, limit, plan, given.bootstrap))
        whole.append(outcome(world, measured(world, logs, (LOGS, LOGS), 0.95, given.bootstrap), limit))
    for name, found in said.items():
        print_row(world, name, limit, found, np.array(whole))


def print_row(
    world: World, spending: Spending, limit: float, found: list[tuple[str, float]], wholes: np.ndarray
) -> None:
    """Print verdicts, and the shares of logs that they took, beside those of all logs."""
    verdicts, used = np.array([verdict for verdict, _ in found]), [share for _, share in found]
    true = world.true if world.kind not in ("area", "alarms") else limit - world.limit
    keeps = true <= limit if world.kind == "violations" else true >= limit
    at_limit = true == limit
    false_pass = np.mean(verdicts == "PASS") if at_limit or not keeps else 0.0
    false_fail = np.mean(verdicts == "FAIL") if at_limit or keeps else 0.0
    opposite = np.mean(
        ((verdicts == "PASS") & (wholes == "FAIL")) | ((verdicts == "FAIL") & (wholes == "PASS"))
    )
    shares = [np.mean(verdicts == one) for one in ("PASS", "FAIL")]
    cells = [*shares, false_pass, false_fail, np.mean(verdicts == wholes), opposite, np.mean(used)]
    print(f"| {world.name} | {spending} | " + " | ".join(f"{cell:.1%}" for cell in cells) + " |", flush=True)


def studies(kind: str, limit: float, given: argparse.Namespace) -> None:
    """Print studies of one SUT under nine mutations, whose true figures are spread over all there are."""
    plan = plan_of("obrien-fleming")
    same = opposite = verdicts = undecided = 0
    images = []
    for study in range(given.studies):
        rng = generator(given.seed, "studies", kind, str(study))
        used = []
        for true in rng.uniform(0.02, 0.98, MUTATIONS):
            world = World("", kind, float(true), limit)
            logs = drawn(world, rng)
            verdict, share = until(world, logs, limit, plan, given.bootstrap)
            whole = outcome(world, measured(world, logs, (LOGS, LOGS), 0.95, given.bootstrap), limit)
            used.append(share)
            verdicts, same = verdicts + 1, same + (verdict == whole)
            opposite += {verdict, whole} == {"PASS", "FAIL"}
            undecided += whole == "INCONCLUSIVE"
        images.append((sum(used) + max(used)) / (MUTATIONS + 1))
    name = f"{kind} under {MUTATIONS} mutations, limit {limit:g}"
    cells = f"{undecided / verdicts:.0%} | {same / verdicts:.2%} of {verdicts} | {opposite}"
    print(f"| {name} | {cells} | {np.mean(images):.1%} |", flush=True)


if __name__ == "__main__":
    main()

"""How often either end of a 95% interval is wrong, in simulated studies whose truth has a closed form.

A gate that asks for "at least" the truth is passed in vain when the low end lies above it; one that asks for
"at most" the truth when the high end lies below it. Each may happen in 2.5% of studies.

A frame of a positive log shows one person, whose strength is normal around the SUT's skill; a frame of a
negative log shows a normal false strength. Part of each strength is common to its log: the intra-log
correlation. A mutation lowers the skill and raises the false strength, and the strengths under it correlate
with those without. Recall and alarm rate at any threshold are then values of the normal distribution. Log
lengths vary by half. In the loop regime a log is safe or not as a whole, and alarms cost time.

    python bench/interval_coverage.py --repetitions 1000 --resamples 1000
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from adverse.curves import (
    Area,
    Difference,
    Expected,
    Mean,
    Ratios,
    Recall,
    Share,
    area,
    draw,
    intervals,
    korn_graubard,
    robustness_roc,
)
from adverse.curves.quantities import Quantity
from adverse.levels.outcomes import counts_by_level
from adverse.seeds import generator

LEVELS = np.geomspace(1e-4, 1, 25)
THRESHOLDS = np.append(-special.ndtri(LEVELS[:-1]), -40.0)
"""Of the false strength of negative frames; everything exceeds the last."""

FPR_MAX = 0.1
RATE_LEVEL = 12
"""The level whose recall the rate interval is about: one alarm in 100 images."""

KINSHIP = 0.8
"""Correlation of a strength with the same frame's under mutation, or with another SUT's."""

LAG = 0.3
"""How much less skilled the SUT is that the first is compared with."""

FRAME_S, ALARM_S = 0.1, 1.0
"""In the loop regime: the time a frame takes, and what an alarm costs on top."""

RECALL_LEVELS = slice(6, 19, 3)
"""The levels of the mean recall: 10^-3 to 10^-1 alarms per image."""

ODDS = (0.5, 0.3, 0.2)
"""How likely the conditions are in the expected curve: un-mutated, mutated, milder."""

STATISTICS = ("area", "robustness", "worst of 3", "difference", "mean", "expected", "recall", "rate")
WANTED, SURE = 0.025, 1e-3
"""How often an end may be wrong, and how unlikely so many wrong ends must be before the promise is broken."""

ROUNDING = 1e-12


@dataclass(frozen=True)
class Regime:
    """Numbers of logs, frames per log, intra-log correlation, skill, and what the mutation does."""

    name: str
    positive: int
    negative: int
    frames: int
    icc: float
    skill: float = 2.0
    loss: float = 0.5
    gain: float = 0.1
    loop: bool = False
    noisy: float = 1.0
    """The share of empty frames that can raise an alarm at all."""


REGIMES = (
    Regime("two logs of a kind", 2, 2, 50, 0.1),
    Regime("three logs of a kind", 3, 3, 50, 0.1),
    Regime("five long logs", 5, 5, 50, 0.3),
    Regime("ten logs", 10, 10, 10, 0.3),
    Regime("strong correlation", 20, 20, 10, 0.6),
    Regime("long logs, weak correlation", 20, 20, 50, 0.05, skill=3.0, loss=0.3, gain=0.0),
    Regime("forty logs", 40, 40, 10, 0.3),
    Regime("few negatives", 60, 8, 20, 0.2),
    Regime("many positives", 100, 20, 20, 0.2),
    Regime("a hundred logs", 100, 100, 10, 0.3),
    Regime("single images", 200, 200, 1, 0.0),
    Regime("few single images", 30, 30, 1, 0.0),
    Regime("strong SUT", 40, 40, 10, 0.3, skill=4.0),
    Regime("nearly perfect SUT", 40, 40, 1, 0.0, skill=4.5),
    Regime("hardly any alarms", 40, 40, 1, 0.0, noisy=0.02),
    Regime("nearly blind SUT", 40, 40, 10, 0.3, skill=-1.0),
    Regime("mutation without effect", 40, 40, 10, 0.3, loss=0.0, gain=0.0),
    Regime("loop, forty logs", 40, 40, 50, 0.3, loop=True),
    Regime("loop, ten logs", 10, 10, 50, 0.3, loop=True),
)


class World:
    """One simulated study: the same frames seen by any SUT under any condition."""

    def __init__(self, regime: Regime, rng: np.random.Generator) -> None:
        self.regime, self.rng = regime, rng
        self.logs = regime.positive + regime.negative
        self.sizes = rng.integers(
            max(1, regime.frames // 2), regime.frames + regime.frames // 2 + 1, self.logs
        )
        self.is_positive = np.arange(self.logs) < regime.positive
        if regime.loop:
            people = np.flatnonzero(self.is_positive)
        else:
            people = np.repeat(np.arange(self.logs), np.where(self.is_positive, self.sizes, 0))
        self.people = people
        self.empty = np.repeat(np.arange(self.logs), np.where(self.is_positive, 0, self.sizes))
        self.strength, self.false_strength = self._normal(self.people), self._normal(self.empty)
        self.is_noisy = rng.random(len(self.empty)) < regime.noisy

    def curve(self, skill: float, gain: float, kinship: float) -> Ratios:
        """Return what a SUT of some skill does where false strengths are higher by `gain`."""
        other = np.sqrt(1 - kinship**2)
        strength = kinship * self.strength + other * self._normal(self.people) + skill
        false = kinship * self.false_strength + other * self._normal(self.empty) + gain
        hits, alarms = (
            self._counts(self.people, strength),
            self._counts(self.empty, np.where(self.is_noisy, false, -np.inf)),
        )
        truths = np.bincount(self.people, minlength=self.logs)
        images = np.where(self.is_positive, 0, self.sizes)
        if self.regime.loop:
            time_s = images * FRAME_S
            return Ratios(hits, truths, time_s, time_s[:, None] + ALARM_S * alarms, "ratio")
        return Ratios(hits, truths, alarms, images, fpr_max=FPR_MAX)

    def _normal(self, log: NDArray[np.int64]) -> NDArray[np.float64]:
        icc = 0.0 if self.regime.loop and log is self.people else self.regime.icc
        common = self.rng.standard_normal(self.logs)[log]
        mixed: NDArray[np.float64] = np.sqrt(icc) * common + np.sqrt(1 - icc) * self.rng.standard_normal(
            len(log)
        )
        return mixed

    def _counts(self, log: NDArray[np.int64], strength: NDArray[np.float64]) -> NDArray[np.int64]:
        first = np.searchsorted(-THRESHOLDS, -strength)
        return counts_by_level(log, first, self.logs, len(THRESHOLDS))


def true_curve(
    regime: Regime, skill: float, gain: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return (level, safety, efficiency) of endless logs."""
    rate = regime.noisy * special.ndtr(gain - THRESHOLDS)
    efficiency = FRAME_S / (FRAME_S + ALARM_S * rate) if regime.loop else 1 - np.minimum(rate / FPR_MAX, 1)
    return LEVELS, special.ndtr(skill - THRESHOLDS), efficiency


def truths(regime: Regime) -> Mapping[str, float]:
    base, other, mutated, milder = (
        true_curve(regime, regime.skill - less, gain)
        for less, gain in ((0, 0), (LAG, 0), (regime.loss, regime.gain), (regime.loss / 2, 2 * regime.gain))
    )

    def worst(*curves: tuple[NDArray[np.float64], ...]) -> float:
        return area(*robustness_roc(curves)[1:])

    return {
        "area": worst(base),
        "robustness": worst(base, mutated) / worst(base),
        "worst of 3": worst(base, mutated, milder),
        "difference": worst(base) - worst(other),
        "mean": (worst(mutated) + worst(milder)) / 2,
        "expected": _expected(regime, [base, mutated, milder]),
        "recall": float(np.mean(mutated[1][RECALL_LEVELS])),
        "rate": float(base[1][RATE_LEVEL]),
    }


def _expected(regime: Regime, curves: list[tuple[NDArray[np.float64], ...]]) -> float:
    """Return the area of the expected curve of endless logs, from its definition."""
    safety = np.sum([odds * curve[1] for odds, curve in zip(ODDS, curves, strict=True)], axis=0)
    if regime.loop:
        efficiency = np.sum([odds * curve[2] for odds, curve in zip(ODDS, curves, strict=True)], axis=0)
    else:
        gains = (0.0, regime.gain, 2 * regime.gain)
        rates = [regime.noisy * special.ndtr(gain - THRESHOLDS) for gain in gains]
        mean = np.sum([odds * rate for odds, rate in zip(ODDS, rates, strict=True)], axis=0)
        efficiency = 1 - np.minimum(mean / FPR_MAX, 1)
    return area(safety, efficiency)


@dataclass
class Tally:
    """What became of the intervals of one statistic."""

    given: int = 0
    above: int = 0
    """Intervals whose low end lies above the truth."""
    below: int = 0
    width: float = 0.0

    def broken(self) -> bool:
        """Tell whether an end is wrong more often than chance explains, if it may be in WANTED of studies."""
        most = max(self.above, self.below)
        return most > 0 and float(special.bdtrc(most - 1, self.given, WANTED)) < SURE


def one_study(number: int, *, regime: Regime, resamples: int) -> dict[str, tuple[float, float] | None]:
    """Return the interval of every statistic in one simulated study, None where it is refused."""
    world = World(regime, generator(number, "coverage", regime.name))
    kinship = 0.95 if regime.loss == 0 else KINSHIP
    base = world.curve(regime.skill, 0.0, 1.0)
    mutated = world.curve(regime.skill - regime.loss, regime.gain, kinship)
    milder = world.curve(regime.skill - regime.loss / 2, 2 * regime.gain, kinship)
    plain, unasked = Area((base,)), np.zeros(world.logs)
    quantities: dict[str, Quantity] = {
        "area": plain,
        "robustness": Share(Area((base, mutated)), plain),
        "worst of 3": Area((base, mutated, milder)),
        "difference": Difference(plain, Area((world.curve(regime.skill - LAG, 0.0, KINSHIP),))),
        "mean": Mean((Area((mutated,)), Area((milder,))), (0.5, 0.5)),
        "expected": Expected((base, mutated, milder), ODDS),
        "recall": Recall(Ratios(mutated.num_s[:, RECALL_LEVELS], mutated.den_s, unasked, unasked)),
    }
    names = [f"log {index:04d}" for index in range(world.logs)]
    drawn = draw(names, world.is_positive.tolist(), seed=number, count=resamples)
    found = intervals(quantities, drawn)
    found["worst of 3"] = found["worst of 3"].at_most(found["area"])  # as the results hold it
    found["rate"] = korn_graubard(base.num_s[:, RATE_LEVEL], base.den_s)
    return {
        name: None if one.low is None or one.high is None else (one.low, one.high)
        for name, one in found.items()
    }


def measure(regime: Regime, numbers: range, resamples: int) -> dict[str, Tally]:
    truth = truths(regime)
    tallies = {name: Tally() for name in STATISTICS}
    for number in numbers:
        for name, ends in one_study(number, regime=regime, resamples=resamples).items():
            if ends is None:
                continue
            tally = tallies[name]
            tally.given += 1
            tally.above += ends[0] - ROUNDING > truth[name]
            tally.below += ends[1] + ROUNDING < truth[name]
            tally.width += ends[1] - ends[0]
    return tallies


def cell(tally: Tally, repetitions: int) -> str:
    if tally.given == 0:
        return "refused"
    above, below = (100 * count / tally.given for count in (tally.above, tally.below))
    text = f"{above:.1f} / {below:.1f} ({tally.width / tally.given:.2f})"
    return text if tally.given == repetitions else f"{text}, {1 - tally.given / repetitions:.0%} refused"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--first", type=int, default=10_000, help="the seed of the first repetition")
    parser.add_argument("--only", help="run the regimes whose name holds this word")
    chosen = parser.parse_args()
    print(f"{chosen.repetitions} repetitions, {chosen.resamples} resamples; percent of intervals")
    print("whose low end is above / whose high end is below the truth (mean width)\n")
    print(f"| regime | logs + / - | frames | icc | {' | '.join(STATISTICS)} |")
    print(f"|---|---|---|---|{'---|' * len(STATISTICS)}")
    broken, start = [], time.perf_counter()
    for regime in REGIMES:
        if chosen.only and chosen.only not in regime.name:
            continue
        tallies = measure(regime, range(chosen.first, chosen.first + chosen.repetitions), chosen.resamples)
        cells = " | ".join(cell(tallies[name], chosen.repetitions) for name in STATISTICS)
        sizes = f"{regime.positive} / {regime.negative} | {regime.frames} | {regime.icc}"
        print(f"| {regime.name} | {sizes} | {cells} |", flush=True)
        broken += [f"{regime.name}: {name}" for name, one in tallies.items() if one.broken()]
    print(f"\nwrong in more than {WANTED:.1%}: {', '.join(broken) or 'none'}")
    print(f"{time.perf_counter() - start:.0f} s")
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    main()

"""How well the path survives noise: drives with a known end, recorded with noise, and who is in their way.

A vehicle drives 12 m at up to 3 m/s, straight or on a circle, brakes, and stands; or backs up 1 m before it
stands. A person is 3 m ahead of the furthest point, in the vehicle's way; two others, 4 m to the left and
right of that one, are not. The camera's heading is not given, or noisy. Noise of positions is white, or
wanders as that of a satellite receiver does.
"""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adverse.robot.obstacles import pathified_distance_m
from adverse.robot.trajectory import NoPathError, trajectory

NOISE_M = (0.0, 0.01, 0.02, 0.05)
STANDING_S = (0.0, 3.0, 10.0)
RATES_HZ = (5.0, 30.0)
RADII_M = {"straight": math.inf, "circle of 10 m": 10.0, "circle of 5 m": 5.0}
BACKING_M = {"stops": 0.0, "backs up": 1.0}
WANDERING_S = (0.0, 2.0)
CONTROL_RADIUS_M, AHEAD_M, ASIDE_M = 2.0, 3.0, 4.0
CRUISE_M, SPEED, BRAKE, CREEP = 9.0, 3.0, 1.5, 0.5
FURTHEST_M = CRUISE_M + SPEED**2 / (2 * BRAKE)


@dataclass(frozen=True)
class Case:
    """One kind of drive.

    `heading_deg` is the noise of the heading, None that there is none; `wandering_s` the time after which
    the noise of a position is forgotten (0: at once).
    """

    noise_m: float
    standing_s: float
    rate_hz: float
    radius_m: float = math.inf
    backing_m: float = 0.0
    heading_deg: float | None = None
    wandering_s: float = 0.0


def driven_m(case: Case) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times and the way along the path at each, from the start to the end of the standstill."""
    stop_s = CRUISE_M / SPEED + SPEED / BRAKE
    wait_s = 0.5 if case.backing_m else 0.0
    end_s = stop_s + wait_s + case.backing_m / CREEP + case.standing_s
    time_s = np.arange(math.floor(end_s * case.rate_hz + 1e-9) + 1) / case.rate_hz
    left_s = np.maximum(stop_s - np.maximum(time_s, CRUISE_M / SPEED), 0.0)
    way = np.where(time_s < CRUISE_M / SPEED, SPEED * time_s, FURTHEST_M - BRAKE * left_s**2 / 2)
    return time_s, way - np.clip(CREEP * (time_s - stop_s - wait_s), 0.0, case.backing_m)


def on_course(way_m: NDArray[np.float64], radius_m: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return places on the ground (N,2) and headings (N,) after so much way."""
    if math.isinf(radius_m):
        return np.stack([way_m, np.zeros_like(way_m)], axis=1), np.zeros_like(way_m)
    turn = way_m / radius_m
    return radius_m * np.stack([np.sin(turn), 1 - np.cos(turn)], axis=1), turn


def people(case: Case) -> NDArray[np.float64]:
    """Return the one ahead, on the course that the drive goes on, and those to its left and right."""
    ahead, heading = on_course(np.array([FURTHEST_M + AHEAD_M, FURTHEST_M]), case.radius_m)
    left = np.array([-math.sin(heading[1]), math.cos(heading[1])])
    return np.stack([ahead[0], ahead[0] + ASIDE_M * left, ahead[0] - ASIDE_M * left])


def noise(case: Case, frames: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the noise of positions (N,2)."""
    fresh = rng.normal(0, case.noise_m, (frames, 2))
    if not case.wandering_s:
        return fresh
    kept = math.exp(-1 / (case.rate_hz * case.wandering_s))
    fresh[1:] *= math.sqrt(1 - kept**2)
    for index in range(1, frames):
        fresh[index] += kept * fresh[index - 1]
    return fresh


@dataclass
class Tally:
    """What became of some runs."""

    runs: int = 0
    refused: int = 0
    missed: int = 0
    wrongly: int = 0
    turns_deg: list[float] = field(default_factory=list)
    lengths_m: list[float] = field(default_factory=list)


def simulate(case: Case, runs: int, seed: int) -> Tally:
    """Record a drive many times with noise, and look who is in the way of its last frame."""
    rng = np.random.default_rng(seed)
    time_s, way = driven_m(case)
    truth, heading = on_course(way, case.radius_m)
    (last,) = on_course(np.array([FURTHEST_M]), case.radius_m)[1]
    them = people(case)
    tally = Tally(runs)
    for _ in range(runs):
        seen = truth + noise(case, len(truth), rng)
        looks = heading + np.radians(rng.normal(0, case.heading_deg or 0.0, len(heading)))
        forward = np.stack([np.cos(looks), np.sin(looks)], axis=1)
        try:
            path = trajectory(seen, forward[-1] if case.heading_deg is None else forward, time_s=time_s)
        except NoPathError:
            tally.refused += 1
            continue
        at = np.repeat(path.stations[-1], len(them))
        distance = pathified_distance_m(path, at, them, CONTROL_RADIUS_M)
        tally.missed += not math.isfinite(distance[0])
        tally.wrongly += bool(np.isfinite(distance[1:]).any())
        end = path.corners[-1] - path.corners[-2]
        turn = math.atan2(end[1], end[0]) - last
        tally.turns_deg.append(math.degrees(abs(math.remainder(turn, math.tau))))
        tally.lengths_m.append(abs(path.recorded_m - FURTHEST_M))
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="of each of the cases behind one line")
    parser.add_argument("--noise", type=float, nargs="+", default=NOISE_M, help="in metres")
    parser.add_argument("--wandering", type=float, nargs="+", default=WANDERING_S, help="in seconds")
    parser.add_argument(
        "--heading", type=float, help="noise of the heading in degrees; without it, none is given"
    )
    chosen = parser.parse_args()
    cases = len(STANDING_S) * len(RATES_HZ)
    print(f"{chosen.runs} runs of each case; each line shows the worst of {cases} cases\n")
    shares, errors = "on the path | others on it | refused", "turned, median | 99.5 % | length off, median"
    print(f"| noise | drive | end | {shares} | {errors} |\n|---|---|---|{'---:|' * 6}")
    for wandering_s, noise_m, (shape, radius_m), (end, backing_m) in itertools.product(
        chosen.wandering, chosen.noise, RADII_M.items(), BACKING_M.items()
    ):
        if wandering_s and not noise_m:
            continue
        runs = chosen.runs if noise_m else 1
        tallies = [
            simulate(Case(noise_m, stood, rate, radius_m, backing_m, chosen.heading, wandering_s), runs, seed)
            for seed, (stood, rate) in enumerate(itertools.product(STANDING_S, RATES_HZ))
        ]
        cells = (
            f"{noise_m * 1000:.0f} mm{', wandering' if wandering_s else ''}",
            shape,
            end,
            f"{min(1 - (one.missed + one.refused) / one.runs for one in tallies):.1%}",
            f"{max(one.wrongly / one.runs for one in tallies):.1%}",
            f"{max(one.refused / one.runs for one in tallies):.1%}",
            f"{max(np.median(one.turns_deg) for one in tallies):.1f}",
            f"{max(np.quantile(one.turns_deg, 0.995) for one in tallies):.1f}",
            f"{1000 * max(np.median(one.lengths_m) for one in tallies):.0f} mm",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

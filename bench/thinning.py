"""Whether a demo finds the same on fewer frames: its study on the thinned frames, and on all of them.

    python bench/thinning.py OUT                # networks, some mutations of the demo, 80 logs

For each level and condition the order of the detectors by area, how probably the first is the best, and how
far the areas lie apart; then the stops in time that each mutation costs. A finding that differs is named.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import adverse
from adverse.analysis.choices import Best, best_sut
from adverse.analysis.headline import stop_costs
from adverse.analysis.results import Summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.store.run import Run
from adverse.study.demo import QUICK, Demo, write_demo

MUTATIONS = ("gaussian_blur(sigma_px=2)", "haze(visibility_m=97.8)", "channel_dropout(channel=G)")
SURE = 0.95
"""From this probability on somebody is said to be the best."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    found = {
        words: made(given.out / words, frames, given.workers)
        for words, frames in (("thinned", QUICK.test_frames), ("all", None))
    }
    (few, few_run), (every, every_run) = found["thinned"], found["all"]
    print(f"{few_run.data.frames['test']} of {every_run.data.frames['test']} test frames")
    differ = 0
    for level in dict.fromkeys(str(row["level"]) for row in every.rows):
        for condition in (every_run.baseline.id, ANY_MILD, ANY):
            said = [answer(summary, level, condition) for summary in (few, every)]
            gap = max(
                abs(a - areas(every, level, condition)[sut])
                for sut, a in areas(few, level, condition).items()
            )
            other = contradicts(best_sut(few, level, condition), best_sut(every, level, condition))
            differ += other
            print(
                f"{level:18} {condition:10} areas within {gap:.3f}; {said[0]} | {said[1]}"
                + (" DIFFERS" * other)
            )
    for summary, run in (found["thinned"], found["all"]):
        for one in stop_costs(summary, run):
            costs = ", ".join(f"{cost.words} {-cost.lost:+d}" for cost in one.costs)
            print(f"{one.sut} {one.stopped} of {one.logs} clean; {costs}")
    print(f"{differ} findings differ")


def made(out: Path, frames: int | None, workers: int) -> tuple[Summary, Run]:
    """Run the demo with so many test frames, and return its results."""
    demo = Demo(QUICK.name, QUICK.logs, QUICK.models, MUTATIONS, frames)
    done = adverse.run(write_demo(demo, out), out / "run", workers=workers)
    return done.summary, done.run


def areas(summary: Summary, level: str, condition: str) -> dict[str, float]:
    """Return the areas of the detectors; those that are defined."""
    rows = [row for row in summary.rows if (row["level"], row["setting"]) == (level, condition)]
    return {str(row["sut"]): float(row["area"]) for row in rows if row["area"] is not None}


def answer(summary: Summary, level: str, condition: str) -> str:
    """Return the detectors, the best first, and how probably it is the best."""
    known, best = areas(summary, level, condition), best_sut(summary, level, condition)
    order = " > ".join(f"{sut} {known[sut]:.3f}" for sut in sorted(known, key=lambda sut: -known[sut]))
    return f"{order} ({'unknown' if best is None or best.chance is None else f'{best.chance:.0%}'})"


def contradicts(one: Best | None, two: Best | None) -> bool:
    """Return whether two answers name different detectors, and one of them is sure."""
    if one is None or two is None:
        return one is not two
    sure = max(one.chance or 0.0, two.chance or 0.0) >= SURE
    return sure and one.sut != two.sut


if __name__ == "__main__":
    main()

"""Human thresholds: how often the interval holds the true drop point, and how long 20,000 answers take.

First comes how often a drop is found where there is none. Nothing was tuned on the seeds from 1,000,000 on.

OPENBLAS_NUM_THREADS=1 PYTHONPATH=src python bench/human_thresholds.py [studies] [first seed]
"""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import replace
from typing import get_args

import numpy as np

from adverse.curves.interval import clopper_pearson
from adverse.humans.answers import COLUMNS, count_answers, judgments_of
from adverse.humans.drop_test import BaseRate
from adverse.humans.estimate import EstimateOptions, estimate, estimate_one, fit
from adverse.humans.evidence import base_of, lacking
from adverse.humans.simulate import Onset, People, plan_sample_size, simulate
from adverse.humans.thresholds import FOUND, KINDS, SYMBOLS, Kind

BASES = (0.8, 0.95, 0.99, 1.0)
SIZES = ((800, 20), (1500, 30), (2500, 50), (10_000, 100))
"""Answers and participants."""


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    print("| answers | on originals | kind |", " | ".join(f"{base:.0%} right" for base in BASES), "|")
    for count, originals, kind in itertools.product((2500, 10_000), (50, 200, 1000), KINDS):
        shares = [
            false_alarms(People(drop=None, base=base, answers=count, originals=originals), studies, kind)
            for base in BASES
        ]
        print("|", count, "|", originals, "|", SYMBOLS[kind], "|", " | ".join(shares), "|", flush=True)
    print("| onset | answers (people) | kind | threshold | interval covers | its width | spread covers |")
    print("|---|---|---|---|---|---|---|")
    for onset, (count, people), kind in itertools.product(get_args(Onset), SIZES, KINDS):
        made = People(onset=onset, drop=0.35, answers=count, participants=people)
        found = plan_sample_size(made, studies, kind, EstimateOptions(resamples=200), first=seed)
        assert found.covered is not None
        low, high = clopper_pearson(round(found.covered * studies), studies, 0.95)
        covers = f"{found.covered:.1%} ({low:.1%} to {high:.1%})"
        row = (onset, f"{count} ({people})", SYMBOLS[kind], f"{found.threshold:.2f}", covers)
        print("|", " | ".join((*row, f"{found.width:.2f}", f"{found.spread_covered:.1%}")), "|", flush=True)
    one = People(answers=1250, participants=100)
    rows = [
        (who, f"{image}, {number}", *rest)
        for number in range(8)
        for made in [simulate(replace(one, transformation=f"t{number}"), number)]
        for who, image, *rest in zip(*(getattr(made, name).tolist() for name in COLUMNS), strict=True)
    ]
    answers = judgments_of(rows)
    start, cpu = time.perf_counter(), time.process_time()
    estimate(answers)
    print(
        f"{len(answers)} answers, 16 thresholds: {time.perf_counter() - start:.2f} s, "
        f"{time.process_time() - cpu:.2f} s of CPU"
    )


def false_alarms(people: People, studies: int, kind: Kind) -> str:
    """Return in how many studies of people who never fail a drop is found, and how many have enough answers.

    A drop must be significant over answers and over participants. So studies where it is not over answers,
    fitted all at once, need no further look; the others are estimated as `adverse humans estimate` does.
    """
    options = EstimateOptions(resamples=100)  # which decide no status
    counts = {
        seed: count_answers(simulate(people, seed), kind, options.baseline_quantile)
        for seed in range(studies)
    }
    counts = {seed: counted for seed, counted in counts.items() if not lacking(counted, options.alpha)}
    if not counts:
        return "too few"
    bases = [base_of(counted) for counted in counts.values()]
    fitted = fit(
        np.stack([counted.answers.sum(axis=0) for counted in counts.values()]),
        np.stack([counted.successes.sum(axis=0) for counted in counts.values()]),
        BaseRate(*(np.concatenate(values) for values in zip(*bases, strict=True))),
        options,
    )
    seeds = [seed for seed, first in zip(counts, fitted.first, strict=True) if first >= 0]
    found = sum(
        estimate_one(simulate(people, seed), people.transformation, kind, options).status == FOUND
        for seed in seeds
    )
    share = f"{found / studies:.1%}"
    return share if len(counts) == studies else f"{share} ({found} of {len(counts)} with enough answers)"


if __name__ == "__main__":
    main()

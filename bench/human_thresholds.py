"""Human thresholds: how often the interval holds the true drop point, and how long 20,000 answers take.

PYTHONPATH=src python bench/human_thresholds.py [studies]
"""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import replace
from typing import get_args

from adverse.humans.answers import COLUMNS, judgments_of
from adverse.humans.estimate import EstimateOptions, estimate
from adverse.humans.simulate import Onset, People, plan_sample_size, simulate
from adverse.humans.thresholds import KINDS, SYMBOLS


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| onset | answers (people) | kind | threshold | interval covers | its width | spread covers |")
    print("|---|---|---|---|---|---|---|")
    for onset, (count, people), kind in itertools.product(
        get_args(Onset), ((1500, 30), (2500, 50), (10_000, 100)), KINDS
    ):
        made = People(onset=onset, drop=0.35, answers=count, participants=people)
        found = plan_sample_size(made, studies, kind, EstimateOptions(resamples=200))
        assert found.found == 1
        row = (onset, f"{count} ({people})", SYMBOLS[kind], f"{found.threshold:.2f}", f"{found.covered:.1%}")
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


if __name__ == "__main__":
    main()

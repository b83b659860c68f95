"""What guiding a fuzz campaign is worth: guided and unguided at equal tests, over several seeds.

    python bench/guided.py STUDY [--tests 240] [--seeds 10] [--first 1] [--work FOLDER] [--json FILE]

Counted are distinct failures: frames and objects that fail, kinds of failure (all features of a test but
which object it is about) and the causes that the report names. Each seed is one pair; the interval is
Student's of the mean logarithm of their ratio, or Fieller's of the ratio of means where a campaign found
none. Campaigns that are finished in the folder are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from adverse.fuzz.causes import causes_of
from adverse.fuzz.guide import kind_of
from adverse.fuzz.outcome import CampaignOutcome, read_outcome
from adverse.fuzz.run import run_campaign
from adverse.study.engines import Silent, Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.spec import StudyFile, read_study


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("study", type=Path)
    parser.add_argument("--tests", type=int, default=240)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--work", type=Path, help="keep campaigns in this folder")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    file = read_study(options.study)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        work = options.work or Path(place)
        for seed in range(options.first, options.first + options.seeds):
            pair = {
                how: counted(
                    campaign(file, work / f"{how}-{seed}", options.tests, seed, guided=how == "guided")
                )
                for how in ("unguided", "guided")
            }
            rows.append({"seed": seed, **pair})
            print(json.dumps(rows[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1))
    for what in rows[0]["guided"]:
        ratio(what, [(row["guided"][what], row["unguided"][what]) for row in rows])


def campaign(file: StudyFile, out: Path, tests: int, seed: int, *, guided: bool) -> CampaignOutcome:
    ran = run_campaign(
        file, out, InlineEngine(), tests=tests, watch=Silent(), stop=Stop(), guided=guided, seed=seed
    )
    if ran.status == "interrupted":
        sys.exit(f"{out} was interrupted")
    return read_outcome(ran.folder)


def counted(outcome: CampaignOutcome) -> dict[str, int]:
    """Count distinct failures of any SUT."""
    failing = [
        (test, row["features"])
        for sut in outcome.suts
        for test, row in zip(outcome.tests[sut], outcome.rows, strict=True)
        if test.failed
    ]
    return {
        "tests": outcome.count,
        "failing tests": len({test.number for test, _ in failing}),
        "frames": len({test.base for test, _ in failing}),
        "objects": len({test.thing for test, _ in failing}),
        "kinds": len({kind_of(features) for _, features in failing}),
        "named causes": sum(len(causes_of(outcome, sut).causes) for sut in outcome.suts),
    }


def ratio(what: str, pairs: list[tuple[int, int]]) -> None:
    """Print the geometric mean of the ratio over seeds, with its interval."""
    guided, unguided = np.array(pairs, np.float64).T
    text = f"{what}: {guided.mean():.1f} guided, {unguided.mean():.1f} unguided"
    if len(pairs) > 1 and guided.all() and unguided.all():
        logs = np.log(guided / unguided)
        reach = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
        low, middle, high = np.exp([logs.mean() - reach, logs.mean(), logs.mean() + reach])
        text += f"; {middle:.2f} times ({low:.2f} to {high:.2f}) over {len(pairs)} seeds"
    elif len(pairs) > 1 and unguided.any():
        low, high = fieller(guided, unguided)
        text += f"; {guided.mean() / unguided.mean():.2f} times ({low:.2f} to {high:.2f})"
    print(text)


def fieller(above: NDArray[np.float64], below: NDArray[np.float64]) -> tuple[float, float]:
    """Return Fieller's 95 % interval of a ratio of paired means; without end where `below` may be 0."""
    (a, c), (_, b) = np.cov(above, below) / len(above)
    t = float(stats.t.ppf(0.975, len(above) - 1)) ** 2
    square, line, rest = (
        below.mean() ** 2 - t * b,
        above.mean() * below.mean() - t * c,
        above.mean() ** 2 - t * a,
    )
    if square <= 0:
        return 0.0, float("inf")
    reach = float(np.sqrt(line**2 - square * rest))
    return (line - reach) / square, (line + reach) / square


if __name__ == "__main__":
    main()

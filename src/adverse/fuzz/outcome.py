"""What a campaign came to, worked out from its log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from adverse.curves.interval import Interval
from adverse.curves.rates import korn_graubard
from adverse.errors import StoreError
from adverse.fuzz.bandit import Bandit
from adverse.fuzz.discovery import expected, permuted, steps
from adverse.fuzz.folder import CampaignFolder, other_version
from adverse.fuzz.plan import VERSION
from adverse.fuzz.rounds import Rounds
from adverse.fuzz.scoring import BINS, bin_of
from adverse.fuzz.work import DUPLICATE

Row = Mapping[str, Any]
ALL = "all"
"""In tables: all mutations together."""


@dataclass(frozen=True)
class Case:
    """One test, for one SUT: what fell, and how far."""

    number: int
    key: str
    mutation: str
    base: str
    log: str
    recipe: str
    thing: str
    """What was added or changed: the donor, or the base's own object."""
    drop: float | None
    compat_drop: float | None
    fault: str | None

    @property
    def bin(self) -> str | None:
        """The kind of inconsistency that this is; None if it is none."""
        return bin_of(self.drop)


@dataclass(frozen=True)
class Outcome:
    """The tests of a campaign by SUT, in their order, and what was refused on the way."""

    manifest: Mapping[str, Any]
    tests: Mapping[str, tuple[Case, ...]]
    refused: Counter[str]
    refused_by_mutation: Mapping[str, Counter[str]]
    draws: int
    rows: tuple[Row, ...]

    @property
    def suts(self) -> list[str]:
        """The SUTs, in the study's order."""
        return list(self.manifest["suts"])

    @property
    def count(self) -> int:
        """How many tests there are."""
        return len(self.rows)

    @property
    def duplicates(self) -> int:
        """Draws of a picture that had been drawn before, by the same recipe or another."""
        return self.refused[DUPLICATE]

    @property
    def saturation(self) -> float | None:
        """The share of duplicates among all pictures drawn; None where none was."""
        drawn = self.count + self.duplicates
        return self.duplicates / drawn if drawn else None

    def counts(self) -> list[dict[str, Any]]:
        """Return for each SUT and mutation: tests, inconsistencies by bin, faults, rate with its interval."""
        made = []
        for sut in self.suts:
            for mutation in (*self.manifest["mutations"], ALL):
                mine = [test for test in self.tests[sut] if mutation in (ALL, test.mutation)]
                bins = Counter(test.bin for test in mine)
                scored = [test for test in mine if test.drop is not None]
                failed = sum(bins[name] for name in BINS)
                made.append(
                    {
                        "sut": sut,
                        "mutation": mutation,
                        "tests": len(mine),
                        "scored": len(scored),
                        **{name: bins[name] for name in BINS},
                        "inconsistencies": failed,
                        "faults": sum(test.fault is not None for test in mine),
                        "published_scorer": _published(scored),
                        **per_thousand(rate(scored)),
                    }
                )
        return made

    def overlap(self) -> list[dict[str, Any]]:
        """Return for each pair of SUTs how many tests fail one, the other, and both."""
        failing = {sut: {test.key for test in tests if test.bin} for sut, tests in self.tests.items()}
        made = []
        for first, second in combinations(self.suts, 2):
            both, either = failing[first] & failing[second], failing[first] | failing[second]
            made.append(
                {
                    "first": first,
                    "second": second,
                    "fail_first": len(failing[first]),
                    "fail_second": len(failing[second]),
                    "fail_both": len(both),
                    "share_of_either": len(both) / len(either) if either else None,
                }
            )
        return made

    def discovery(self) -> list[dict[str, Any]]:
        """Return what is known after so many tests, for each SUT: bases, objects and tests that fail.

        `permuted` is the mean over a few random orders of the tests; it must lie near the closed form.
        """
        made = []
        at = steps(self.count)
        for sut in self.suts:
            kinds = {
                "bases": [test.base if test.bin else None for test in self.tests[sut]],
                "objects": [test.thing if test.bin else None for test in self.tests[sut]],
                "inconsistencies": [test.key if test.bin else None for test in self.tests[sut]],
            }
            for kind, found in kinds.items():
                exact = expected(found, at)
                some = permuted(found, at, seed=int(self.manifest["seed"]))
                made += [
                    {"sut": sut, "of": kind, "tests": int(n), "expected": float(e), "permuted": float(p)}
                    for n, e, p in zip(at, exact, some, strict=True)
                ]
        return made

    def refusals(self) -> list[dict[str, Any]]:
        """Return how often each check refused a candidate, by mutation, the most frequent first."""
        return [
            {"mutation": mutation, "reason": reason, "refused": count}
            for mutation in self.manifest["mutations"]
            for reason, count in sorted(
                (+self.refused_by_mutation.get(mutation, Counter())).items(),
                key=lambda item: (-item[1], item[0]),
            )
        ]


def read_outcome(folder: CampaignFolder) -> Outcome:
    """Work out the outcome of a campaign: the one door for whoever shows what it found.

    It must be finished, and its log must give the tests that it gave when it was.
    """
    manifest = folder.finished_manifest()
    if manifest.get("version") != VERSION:
        raise other_version(folder, manifest)
    done = {(unit.phase, unit.id): unit.rows for unit in folder.units()[0]}
    bandit = Bandit(manifest["classes"], manifest["seed"]) if manifest["guided"] else None
    rounds = Rounds(manifest["mutations"], manifest["bases"], manifest["seed"], bandit)
    wanted = manifest["asked"]
    while len(rounds.tests) < wanted and not rounds.spent(wanted):
        names = [unit.id for unit in rounds.next_round()]
        rounds.take([done["tests", name] for name in names if ("tests", name) in done], wanted)
    if rounds.digest() != manifest["results"]:
        raise StoreError(
            "the log of the campaign was changed",
            where=str(folder.log),
            got=f"{len(rounds.tests)} tests with hash {rounds.digest()}",
            wanted=f"{manifest['tests']} tests with hash {manifest['results']}",
            fix="Restore it from a copy, or run the same adverse fuzz command again.",
        )
    tests = {sut: tuple(_tests(rounds.tests, sut)) for sut in manifest["suts"]}
    return Outcome(manifest, tests, rounds.refused, rounds.by_mutation, rounds.draws, tuple(rounds.tests))


def rate(tests: Sequence[Case]) -> Interval:
    """Return inconsistencies per test with its interval; tests of one log are alike, and taken as such."""
    hits, trials = Counter[str](), Counter[str]()
    for test in tests:
        trials[test.log] += 1
        hits[test.log] += test.bin is not None
    return korn_graubard([hits[log] for log in trials], list(trials.values()))


def per_thousand(found: Interval) -> dict[str, Any]:
    """Return a rate per 1,000 tests and its interval as plain columns."""
    scaled = [None if value is None else 1000 * value for value in (found.value, found.low, found.high)]
    names = ("per_1000", "per_1000_low", "per_1000_high")
    return {**dict(zip(names, scaled, strict=True)), "interval": found.status, "why": found.why or None}


def _published(scored: Sequence[Case]) -> int | None:
    """Return how many tests the published scorer calls inconsistent; None where it says nothing."""
    drops = [test.compat_drop for test in scored if test.compat_drop is not None]
    return sum(bin_of(drop) is not None for drop in drops) if drops else None


def _tests(rows: Sequence[Row], sut: str) -> list[Case]:
    found = []
    for number, row in enumerate(rows, start=1):
        said = row["suts"][sut]
        found.append(
            Case(
                number=number,
                key=row["key"],
                mutation=row["arm"][0],
                base=row["base"],
                log=row["log"],
                recipe=row["recipe"],
                thing=row["thing"],
                drop=said["drop"],
                compat_drop=said["compat_drop"],
                fault=said["fault"],
            )
        )
    return found

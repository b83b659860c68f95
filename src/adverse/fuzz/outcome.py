"""What a campaign came to, worked out from its log alone: counts, verdicts, overlap, what was found when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from adverse.curves.interval import Interval, interval_cells, korn_graubard, stratified
from adverse.errors import StoreError
from adverse.fuzz.discovery import expected, permuted, steps
from adverse.fuzz.folder import CampaignFolder, FinishedCampaign
from adverse.fuzz.guide import Guide
from adverse.fuzz.objects import KINDS, Kind, ObjectVerdict, Sightings
from adverse.fuzz.rounds import Rounds, results_digest
from adverse.fuzz.scoring import ALL, Bins, Score, bin_of
from adverse.semantic import Recipe

Row = Mapping[str, Any]
OBJECTS = "objects"
"""In tables, beside the bins: what has a verdict about an object."""
MOSTLY_RIGHT = 50.0
"""The score, in percent, below which more of a base is wrong than right; `prune_below` may be lower."""


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
    """Why there is no verdict: no answer to the mutated scene, or none to its base to compare with."""
    bin: str | None
    """The kind of inconsistency that this is; None if it is none."""
    verdicts: tuple[ObjectVerdict, ...] = ()
    """What the SUT got wrong about objects."""
    added: float | None = None
    """How much of an added object it sees: IoU of box or mask; None where none was added."""
    score: float | None = None
    """The score of the test, in percent."""
    seen: Sightings | None = None
    """What it sees of the base's objects that show enough to be asked for."""
    found_before: frozenset[int] = frozenset()
    """The objects that it finds in the base."""
    unseen: str = ""
    """Why the SUT does not see the base, in words; empty if it does. Such a test cannot be passed."""
    base_score: float | None = None
    """The score of the base, in percent, all of it; None where there is none."""
    base_fault: bool = False
    """Whether the SUT gave no answer to the base."""
    base_wrong: bool = False
    """Whether more of the base is wrong than right."""

    @property
    def clean(self) -> float | None:
        """The score of the base, in percent, without what the test removed."""
        return None if self.score is None or self.drop is None else self.score + self.drop

    @property
    def failed(self) -> bool:
        """Whether the score fell, or something about an object is wrong."""
        return self.bin is not None or bool(self.verdicts)

    @property
    def says_nothing(self) -> str:
        """Why a test that does not fail is not passed either, in words; empty for all others."""
        if self.fault is not None or self.failed:
            return ""
        return self.unseen or ("nothing in it is judged" if self.drop is None else "")


@dataclass(frozen=True)
class MutationCounts:
    """Tests of one SUT under one mutation, or under all: inconsistencies by bin and per 1,000 tests."""

    sut: str
    mutation: str
    tests: int
    scored: int
    bins: Mapping[str, int]
    faults: int
    published_scorer: int | None
    """How many tests the published scorer calls inconsistent; None where it says nothing."""
    per_1000: Interval
    weights: Mapping[str, float]
    """What each mutation counts in the rate of all, in sum 1; empty for one mutation."""

    @property
    def inconsistencies(self) -> int:
        """Inconsistencies of all bins."""
        return sum(self.bins.values())

    def record(self) -> dict[str, Any]:
        """Return the counts as CSV and JSON hold them."""
        return {
            "sut": self.sut,
            "mutation": self.mutation,
            "tests": self.tests,
            "scored": self.scored,
            **self.bins,
            "inconsistencies": self.inconsistencies,
            "faults": self.faults,
            "published_scorer": self.published_scorer,
            "per_1000": self.per_1000.value,
            **interval_cells("per_1000", self.per_1000.plain()),
            "weights": weights_text(self.weights) or None,
        }


@dataclass(frozen=True)
class ObjectCounts:
    """Tests of one SUT under one mutation by the verdicts about objects, and per 1,000 tests."""

    sut: str
    mutation: str
    answered: int
    kinds: Mapping[Kind, int]
    """Tests with a verdict of each kind; a test may have several."""
    failed: int
    added: float | None
    """The median of how much of what was added is seen; None where nothing was added."""
    per_1000: Interval

    def record(self) -> dict[str, Any]:
        """Return the counts as CSV and JSON hold them."""
        return {
            "sut": self.sut,
            "mutation": self.mutation,
            "answered": self.answered,
            **{str(kind): count for kind, count in self.kinds.items()},
            "failed": self.failed,
            "added_overlap_median": self.added,
            "per_1000": self.per_1000.value,
            **interval_cells("per_1000", self.per_1000.plain()),
        }


@dataclass(frozen=True)
class CampaignOutcome:
    """The tests of a campaign by SUT, in their order, and what was refused on the way."""

    campaign: FinishedCampaign
    tests: Mapping[str, tuple[Case, ...]]
    refused_by_mutation: Mapping[str, Counter[str]]
    draws: int
    short: Mapping[str, tuple[int, int]]
    """How many tests there are and were wanted, of the mutations that could not fill their quota."""
    rows: tuple[Row, ...]
    duplicates: int = 0
    """Draws that gave no test, as what their frames made of them was one already."""

    @property
    def suts(self) -> list[str]:
        """The SUTs, in the study's order."""
        return list(self.campaign.suts)

    @property
    def count(self) -> int:
        """How many tests there are."""
        return len(self.rows)

    def counts(self) -> list[MutationCounts]:
        """Return the counts of each SUT and mutation; those of all mutations come last."""
        rows = []
        for sut in self.suts:
            for mutation in (*self.campaign.mutations, ALL):
                mine = [test for test in self.tests[sut] if mutation in (ALL, test.mutation)]
                bins = Counter(test.bin for test in mine)
                scored = [test for test in mine if test.drop is not None]
                weights = self.weights(sut) if mutation == ALL else {}
                rows.append(
                    MutationCounts(
                        sut,
                        mutation,
                        tests=len(mine),
                        scored=len(scored),
                        bins={name: bins[name] for name in self.campaign.bins},
                        faults=sum(test.fault is not None for test in mine),
                        published_scorer=_published(scored, self.campaign.bins),
                        per_1000=mixed_per_1000(scored, [test.bin is not None for test in scored], weights)
                        if weights
                        else per_1000(scored),
                        weights=weights,
                    )
                )
        return rows

    def object_counts(self) -> list[ObjectCounts]:
        """Return what goes wrong with objects for each SUT and mutation; there is no row of all."""
        rows = []
        for sut, mutation in product(self.suts, self.campaign.mutations):
            mine = [test for test in self.tests[sut] if test.mutation == mutation and test.fault is None]
            kinds = Counter(kind for test in mine for kind in {verdict.kind for verdict in test.verdicts})
            seen = [test.added for test in mine if test.added is not None]
            rate = rate_per_1000(mine, [bool(test.verdicts) for test in mine])
            rows.append(
                ObjectCounts(
                    sut,
                    mutation,
                    len(mine),
                    {kind: kinds[kind] for kind in KINDS},
                    failed=sum(bool(test.verdicts) for test in mine),
                    added=float(np.median(seen)) if seen else None,
                    per_1000=rate,
                )
            )
        return rows

    def weights(self, sut: str) -> dict[str, float]:
        """Return what each mutation counts in a rate of all: its quota, or its share of guided tests.

        Of replayed tests, too, it is the share.
        """
        shares: Mapping[str, float] = self.campaign.shares
        if self.campaign.guided or self.campaign.replays is not None:
            shares = Counter(test.mutation for test in self.tests[sut])
        total = sum(shares.values())
        return {name: shares[name] / total for name in self.campaign.mutations if total}

    def overlap(self) -> list[dict[str, Any]]:
        """Return for each pair of SUTs how many tests fail one, the other, and both."""
        failing = {sut: {test.key for test in tests if test.failed} for sut, tests in self.tests.items()}
        rows = []
        for first, second in combinations(self.suts, 2):
            both, either = failing[first] & failing[second], failing[first] | failing[second]
            rows.append(
                {
                    "first": first,
                    "second": second,
                    "fail_first": len(failing[first]),
                    "fail_second": len(failing[second]),
                    "fail_both": len(both),
                    "share_of_either": len(both) / len(either) if either else None,
                }
            )
        return rows

    def discovery(self) -> list[dict[str, Any]]:
        """Return what is known after so many tests, for each SUT: frames and objects that fail.

        `severity` is the least that counts: a bin or a worse one, or a verdict about an object. (Every
        failing test is another one, so their number over tests would say nothing but the rate.) `permuted` is
        the mean over a few random orders of the tests; it must lie near the closed form.
        """
        rows = []
        at = steps(self.count)
        lows = {**self.campaign.bins, OBJECTS: np.inf}
        for sut, (severity, low) in product(self.suts, lows.items()):
            failed = [
                bool(test.verdicts) if severity == OBJECTS else test.drop is not None and test.drop >= low
                for test in self.tests[sut]
            ]
            for kind in ("bases", "objects"):
                shown = [
                    (test.base if kind == "bases" else test.thing) if fails else None
                    for test, fails in zip(self.tests[sut], failed, strict=True)
                ]
                exact = expected(shown, at)
                some = permuted(shown, at, seed=self.campaign.seed)
                facts = {"sut": sut, "of": kind, "severity": severity}
                rows += [
                    {**facts, "tests": int(n), "expected": float(e), "permuted": float(p)}
                    for n, e, p in zip(at, exact, some, strict=True)
                ]
        return rows

    def refusals(self) -> list[dict[str, Any]]:
        """Return how often each check refused a candidate, by mutation, the most frequent first."""
        return [
            {"mutation": mutation, "reason": reason, "refused": count}
            for mutation in self.campaign.mutations
            for reason, count in sorted(
                (+self.refused_by_mutation.get(mutation, Counter())).items(),
                key=lambda item: (-item[1], item[0]),
            )
        ]


def read_outcome(folder: CampaignFolder) -> CampaignOutcome:
    """Work out the outcome of a campaign: the one door for whoever shows what it found.

    It must be finished, and its log must give the tests that it gave when it was.
    """
    campaign = folder.finished()
    rows = {(unit.phase, unit.id): unit.rows for unit in folder.journal().entries}
    if campaign.replays is not None:
        names = sorted(name for phase, name in rows if phase == "tests")
        tests = [row for name in names for row in rows["tests", name]]
        refused: dict[str, Counter[str]] = {}
        draws, short, repeated = len(tests), {}, 0
    else:
        rounds = _rounds(campaign, rows)
        tests, refused, draws, short = rounds.tests, rounds.by_mutation, rounds.draws, rounds.short
        repeated = rounds.repeated
    found = results_digest(draws, tests, refused)
    if found != campaign.results:
        raise StoreError(
            "the log of the campaign was changed",
            where=str(folder.log),
            got=f"{len(tests)} tests with hash {found}",
            wanted=f"{campaign.tests} tests with hash {campaign.results}",
            fix="Restore it from a copy, or run the same adverse fuzz command again.",
        )
    bases = {
        row["frame"]: row["suts"] for (phase, _), some in rows.items() if phase == "baseline" for row in some
    }
    cases = {sut: tuple(_cases(tests, sut, campaign, bases)) for sut in campaign.suts}
    return CampaignOutcome(campaign, cases, refused, draws, short, tuple(tests), repeated)


def _rounds(campaign: FinishedCampaign, rows: Mapping[tuple[str, str], Sequence[Row]]) -> Rounds:
    guide = Guide(campaign.classes, campaign.seed) if campaign.guided else None
    rounds = Rounds(campaign.shares, campaign.bases, campaign.seed, campaign.requested, guide)
    for stream in rounds.streams:
        while not stream.over:
            names = [unit.id for unit in stream.next_round()]
            stream.take([rows["tests", name] for name in names if ("tests", name) in rows])
    return rounds


def per_1000(tests: Sequence[Case]) -> Interval:
    """Return inconsistencies per 1,000 tests."""
    return rate_per_1000(tests, [test.bin is not None for test in tests])


def rate_per_1000(tests: Sequence[Case], hit: Sequence[bool], *, confidence: float = 0.95) -> Interval:
    """Return hits per 1,000 tests, with logs as the independent units: tests of one are alike."""
    hits, trials = Counter[str](), Counter[str]()
    for test, is_hit in zip(tests, hit, strict=True):
        trials[test.log] += 1
        hits[test.log] += is_hit
    counts = [hits[log] for log in trials]
    return korn_graubard(counts, list(trials.values()), confidence=confidence).scaled(1000)


def mixed_per_1000(tests: Sequence[Case], hit: Sequence[bool], weights: Mapping[str, float]) -> Interval:
    """Return hits per 1,000 tests of which each mutation has the share that its weight says.

    Undefined while a mutation that counts has no test.
    """
    mutations = [name for name, weight in weights.items() if weight]
    logs = sorted({test.log for test in tests})
    hits, trials = (
        np.array([[counts[log, name] for name in mutations] for log in logs]).reshape(-1, len(mutations))
        for counts in (
            Counter((test.log, test.mutation) for test, is_hit in zip(tests, hit, strict=True) if is_hit),
            Counter((test.log, test.mutation) for test in tests),
        )
    )
    weight = np.array([weights[name] for name in mutations])
    sizes = weight * float(np.max(trials.sum(axis=0) / weight, initial=0.0)) * (1 + 1e-9)
    return stratified(hits, trials, sizes if trials.any() else weight).scaled(1000)


def weights_text(weights: Mapping[str, float]) -> str:
    """Return weights in words.

    >>> weights_text({"add_car": 0.25, "change_color": 0.75})
    'add_car 25 %, change_color 75 %'
    """
    return ", ".join(f"{name} {100 * weight:.3g} %" for name, weight in weights.items())


def _published(scored: Sequence[Case], bins: Bins) -> int | None:
    """Return how many tests the published scorer calls inconsistent; None where it says nothing."""
    drops = [test.compat_drop for test in scored if test.compat_drop is not None]
    return sum(bin_of(drop, bins) is not None for drop in drops) if drops else None


def _is_below(score: float | None, least: float) -> bool:
    return score is not None and score < least


def _unseen(row: Row, score: float | None, clean: Row, least: float) -> str:
    """Return why a SUT does not see a base, in words: most of it is wrong, or what is asked is not found.

    Asked is the object that is repainted, or any at all of those in the base. Whoever finds an added object
    sees: of an addition only the score of the base counts.
    """
    mutation = row["arm"][0]
    if _is_below(score, least):
        return f"the unmutated frame scores {score:.1f} % already, below {least:g} %"
    sightings = Sightings.read(clean["sightings"]) if clean["sightings"] else Sightings()
    asked = sightings.overlap
    if mutation == "change_color":
        instance = dict(Recipe.from_json(row["recipe"]).numbers).get("instance")
        asked = {name: share for name, share in asked.items() if name == instance}
    if asked and not sightings.found & asked.keys() and not mutation.startswith("add_"):
        which = "the object that is repainted is not" if mutation == "change_color" else "no object is"
        return f"{which} found in the unmutated frame"
    return ""


def _cases(
    rows: Sequence[Row], sut: str, campaign: FinishedCampaign, bases: Mapping[str, Mapping[str, Row]]
) -> list[Case]:
    cases = []
    least = min(MOSTLY_RIGHT, campaign.prune_below)
    for number, row in enumerate(rows, start=1):
        scores = row["suts"][sut]
        fault, clean = scores["fault"], bases[row["base"]][sut]
        if fault is None and clean["fault"] is not None:
            fault = f"of the frame before it was changed: {clean['fault']}"
        score = None if scores["score"] is None else Score(*scores["score"]).percent
        base_score = None if score is None or scores["drop"] is None else score + scores["drop"]
        cases.append(
            Case(
                number=number,
                key=row["key"],
                mutation=row["arm"][0],
                base=row["base"],
                log=row["log"],
                recipe=row["recipe"],
                thing=row["thing"],
                drop=scores["drop"],
                compat_drop=scores["compat_drop"],
                fault=fault,
                bin=bin_of(scores["drop"], campaign.bins),
                verdicts=tuple(map(ObjectVerdict.read, scores["verdicts"])),
                added=scores["added"],
                score=score,
                seen=None if scores["seen"] is None else Sightings.read(scores["seen"]),
                found_before=Sightings.read(clean["sightings"]).found if clean["sightings"] else frozenset(),
                unseen=_unseen(row, base_score, clean, least),
                base_score=None if clean["score"] is None else Score(*clean["score"]).percent,
                base_fault=clean["fault"] is not None,
                base_wrong=_is_below(base_score, least),
            )
        )
    return cases

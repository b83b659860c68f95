"""Two campaigns on the same tests: what was fixed, what still fails, and what fails now that passed before.

Tests are matched by their pictures, so any two campaigns that share some can be compared: a campaign and its
replay, or two replays. A test fails if the score falls, an object is wrong, or the SUT gives no answer.

All of that is against the SUT's own answer to the base. So a SUT that sees nothing in the base has nothing to
lose: what it does not find in the test, though the other SUT found it in the base, makes the test "base
lost", neither passing nor fixed. Two versions of a system always score somewhat differently, so a score
alone makes a base lost only if it is lower by what the campaign calls the worst kind of drop, and a failure
by score is not fixed where the picture scores no higher than it did when it failed. The clean scores of both
are told apart from the tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, get_args

from adverse.curves.interval import Interval, interval_cells
from adverse.errors import StoreError, StudyError, suggestion
from adverse.fuzz.compare import difference_of_ratios
from adverse.fuzz.folder import FinishedCampaign
from adverse.fuzz.objects import least_overlap
from adverse.fuzz.outcome import CampaignOutcome, Case
from adverse.fuzz.scoring import Bins, worst_drop
from adverse.text import counted, shown

Change = Literal["new", "base lost", "still failing", "fixed", "passing"]
CHANGES: tuple[Change, ...] = get_args(Change)
WORSE: tuple[Change, ...] = ("new", "base lost")
"""What makes a regression."""
FAILING: tuple[Change, ...] = (*WORSE, "still failing")
THE_OTHER = "the SUT before"
SAME_RULES = (
    "task",
    "targets",
    "scorer",
    "threshold",
    "bins",
    "visible_share",
    "remnant_share",
    "pixel_classes",
)
"""What two campaigns must share for their failures to mean the same."""


@dataclass(frozen=True)
class ComparedTest:
    """One test as two SUTs answered it."""

    picture: str
    before: Case
    after: Case
    base_lost: str = ""
    """What the SUT does not reach that the other reached on the base, in words."""

    @property
    def change(self) -> Change:
        """What became of it."""
        failed = is_failure(self.before), is_failure(self.after)
        if all(failed):
            return "still failing"
        if failed[1]:
            return "new"
        return "base lost" if self.base_lost else "fixed" if failed[0] else "passing"

    def record(self) -> dict[str, Any]:
        """Return the test as CSV and JSON hold it."""
        return {
            "change": self.change,
            "picture": self.picture,
            "key": self.after.key,
            "mutation": self.after.mutation,
            "base": self.after.base,
            "before": why_failed(self.before),
            "after": why_failed(self.after) or self.base_lost,
            "recipe": self.after.recipe,
        }


@dataclass(frozen=True)
class SuiteComparison:
    """The tests that two campaigns share, as one SUT of each answered them."""

    before: str
    after: str
    tests: tuple[ComparedTest, ...]
    difference: Interval
    """The share of failing tests after less before, paired by log; what lost its base counts as failing."""

    def of(self, *changes: Change) -> list[ComparedTest]:
        """Return the tests with one of some changes."""
        return [test for test in self.tests if test.change in changes]

    @property
    def clean_frames(self) -> list[tuple[float, float | None]]:
        """The score of each base of the tests, before and after; None where the SUT gives no answer now.

        Bases without a score before are left out.
        """
        cases = {test.after.base: test for test in self.tests}.values()
        return [
            (test.before.base_score, None if test.after.base_fault else test.after.base_score)
            for test in cases
            if test.before.base_score is not None
            and (test.after.base_fault or test.after.base_score is not None)
        ]

    @property
    def clean_scores(self) -> tuple[float, float] | None:
        """The mean scores of the bases of the tests, before and after, where both have one."""
        scores = [(old, new) for old, new in self.clean_frames if new is not None]
        if not scores:
            return None
        return fmean(old for old, _ in scores), fmean(new for _, new in scores)

    @property
    def clean_unanswered(self) -> int:
        """How many bases with a score before the SUT gives no answer to now."""
        return sum(new is None for _, new in self.clean_frames)

    def counts(self) -> dict[Change, int]:
        """Return how many tests there are with each change."""
        counts = Counter(test.change for test in self.tests)
        return {change: counts[change] for change in CHANGES}

    def record(self) -> dict[str, Any]:
        """Return the counts as CSV and JSON hold them."""
        difference = interval_cells("difference", self.difference.plain())
        return {
            "before": self.before,
            "after": self.after,
            "tests": len(self.tests),
            "clean_before": None if self.clean_scores is None else self.clean_scores[0],
            "clean_after": None if self.clean_scores is None else self.clean_scores[1],
            "clean_unanswered": self.clean_unanswered,
            **{str(name): count for name, count in self.counts().items()},
            "difference": self.difference.value,
            **difference,
        }


def is_failure(test: Case) -> bool:
    """Tell whether a test fails: by its score, by an object, or for want of an answer."""
    return test.failed or test.fault is not None


def why_failed(test: Case) -> str:
    """Return why a test fails, in words; empty if it passes."""
    if test.fault is not None:
        return f"no answer: {test.fault.partition('. Fix: ')[0]}"
    fell = [f"{test.drop:.2f} points lower ({test.bin})"] if test.bin else []
    return "; ".join([*fell, *(verdict.words for verdict in test.verdicts)])


def base_lost(before: Case, after: Case, *, task: str, bins: Bins) -> str:
    """Return what a test asks by the one SUT's answer to the base and the other does not reach, in words.

    It asks for the objects that were found in the base and still show, for no phantom where there was one,
    for a score that is not below that of the base by the worst kind of drop, and, where the test failed by
    its score, for a higher one.
    """
    words: list[str] = []
    if after.fault is not None:
        return ""
    if after.seen is not None:
        least = least_overlap(task)
        gone = [name for name in before.found_before if after.seen.overlap.get(name, 1.0) < least]
        if gone:
            words.append(
                f"{counted(len(gone), 'object')} not found, mutated or not, that {THE_OTHER} found unmutated"
            )
        again = [
            verdict
            for verdict in before.verdicts
            if verdict.kind == "phantom" and after.seen.phantom_at(verdict.class_name, verdict.box)
        ]
        words += [
            f"a {verdict.class_name} still appears where there is none, mutated or not" for verdict in again
        ]
    was, now = before.clean, after.score
    if was is not None and now is not None and was - now >= worst_drop(bins):
        words.append(f"scores {now:.2f} %; {THE_OTHER} scored {was:.2f} % unmutated")
    elif before.bin and before.score is not None and now is not None and now <= before.score:
        words.append(f"scores {now:.2f} %, not above the {before.score:.2f} % with which {THE_OTHER} failed")
    if not words and after.unseen and not before.unseen:
        words.append(after.unseen)
    return "; ".join(words)


def not_compared(before: CampaignOutcome, after: CampaignOutcome, compared: Sequence[SuiteComparison]) -> str:
    """Return which SUTs of either campaign are in no pair, in words; empty if there are none."""
    first = [sut for sut in before.suts if sut not in {pair.before for pair in compared}]
    second = [sut for sut in after.suts if sut not in {pair.after for pair in compared}]
    sides = (("first", first), ("second", second))
    parts = [f"{', '.join(map(shown, names))} (of the {which} campaign)" for which, names in sides if names]
    return f"Not compared: {'; '.join(parts)}." if parts else ""


def compare_suites(
    before: CampaignOutcome, after: CampaignOutcome, *, suts: Mapping[str, str] | None = None
) -> list[SuiteComparison]:
    """Compare two campaigns test by test; `suts` pairs theirs, by equal names or the only ones if empty."""
    _refuse_other_rules(before.campaign, after.campaign)
    pictures = {row["picture"]: number for number, row in enumerate(before.rows)}
    both = [(pictures.get(row["picture"]), number) for number, row in enumerate(after.rows)]
    shared = [(here, there) for here, there in both if here is not None]
    if not shared:
        raise StoreError(
            "the two campaigns share no test",
            got=f"{before.count} and {after.count} tests, no picture in both",
            wanted="a campaign and its replay, or two replays of one campaign",
            fix="Make the second one with: adverse fuzz replay FIRST --study STUDY.",
        )
    compared = []
    for old, new in _pairs(before, after, suts or {}).items():
        answers = [
            (after.rows[there]["picture"], before.tests[old][here], after.tests[new][there])
            for here, there in shared
        ]
        rules = after.campaign
        tests = tuple(
            ComparedTest(picture, was, now, base_lost(was, now, task=rules.task, bins=rules.bins))
            for picture, was, now in answers
        )
        compared.append(SuiteComparison(old, new, tests, _difference(tests)))
    return compared


def _difference(tests: Sequence[ComparedTest]) -> Interval:
    logs = sorted({test.after.log for test in tests})
    trials = Counter(test.after.log for test in tests)
    was = Counter(test.before.log for test in tests if is_failure(test.before))
    now = Counter(test.after.log for test in tests if test.change in FAILING)
    columns = ([counts[log] for log in logs] for counts in (now, trials, was, trials))
    return difference_of_ratios(*columns)


def _refuse_other_rules(before: FinishedCampaign, after: FinishedCampaign) -> None:
    for name in SAME_RULES:
        one, other = getattr(before, name), getattr(after, name)
        if one != other and None not in (one, other):
            words = "" if name == "pixel_classes" else f" {one!r} and {other!r}"
            raise StoreError(
                "these two campaigns cannot be compared",
                got=f"{name}{words or ' that differ: what pixels are judged as'}",
                wanted=f"the same {name}: a failure must mean the same in both",
                fix="Replay the first one: a replay keeps its rules.",
            )


def _pairs(before: CampaignOutcome, after: CampaignOutcome, wanted: Mapping[str, str]) -> dict[str, str]:
    for names, known in ((wanted.keys(), before.suts), (wanted.values(), after.suts)):
        for name in names:
            if name not in known:
                raise StudyError(f"there is no SUT {name!r}", where="--sut", fix=suggestion(name, known))
    if wanted:
        return dict(wanted)
    if len(before.suts) == len(after.suts) == 1:
        return {before.suts[0]: after.suts[0]}
    both = [name for name in before.suts if name in after.suts]
    if not both:
        raise StudyError(
            "no SUT is in both campaigns",
            where="--sut",
            got=f"{', '.join(before.suts)} and {', '.join(after.suts)}",
            fix="Say which to compare, for example --sut old=new.",
        )
    return {name: name for name in both}

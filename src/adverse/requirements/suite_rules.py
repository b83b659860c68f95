"""Rules that a fuzz campaign or its replay is held to, and each of its tests as a verdict of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from adverse.curves.interval import Interval
from adverse.errors import StudyError, suggestion
from adverse.fuzz.objects import KINDS
from adverse.fuzz.outcome import (
    CampaignOutcome,
    Case,
    mixed_per_1000,
    rate_per_1000,
    read_outcome,
    weights_text,
)
from adverse.fuzz.regression import WORSE, Change, SuiteComparison, compare_suites, is_failure, why_failed
from adverse.fuzz.scoring import least_drop
from adverse.fuzz.verify import open_campaign
from adverse.requirements.rules import KIND, PAGE
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.strict_yaml import Where, read_yaml, tuples, validated
from adverse.text import counted

Measure = Literal[
    "failures",
    "failures_per_1000",
    "missed",
    "lost",
    "phantom",
    "faults",
    "new_failures",
    "still_failing",
    "clean_drop",
]
WORDS: dict[str, str] = {
    "failures": "number of failing tests",
    "failures_per_1000": "failing tests per 1,000",
    "missed": "number of tests in which an added object is not found",
    "lost": "number of tests in which an object is lost",
    "phantom": "number of tests in which an object appears where there is none",
    "faults": "number of tests without an answer",
    "new_failures": "number of tests that fail and passed before, or lost their base,",
    "still_failing": "number of tests that still fail, or lost their base,",
    "clean_drop": "percentage points by which the mean clean score of the base frames fell",
}
AGAINST = ("new_failures", "still_failing", "clean_drop")


class SuiteRule(BaseModel):
    """One rule: a measure of a campaign, of which SUTs and mutation, and the most that it may be."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    measure: Measure
    at_most: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    sut: tuple[str, ...] = ()
    mutation: str | None = None
    against: str | None = None
    bound: Literal["upper", "point"] | None = None

    @field_validator("sut", mode="before")
    @classmethod
    def _suts(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _fits(self) -> SuiteRule:
        if (self.measure in AGAINST) != (self.against is not None):
            raise ValueError(f"against: a campaign is for {', '.join(AGAINST)}, and they need it")
        if self.measure == "failures_per_1000" and self.at_most == 0 and self.bound != "point":
            raise ValueError("no number of tests shows that a rate is 0; write measure: failures")
        return self


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rules: Annotated[tuple[SuiteRule, ...], Field(min_length=1)]


def check_suite(folder: Path, rules: Path) -> list[Verdict]:
    """Hold a finished campaign to a file of rules; its files must be as they were written."""
    outcome = read_outcome(open_campaign(folder))
    source = read_yaml(rules, kind=KIND, example=f"{PAGE} shows one")
    if not isinstance(source.data, dict):
        raise StudyError("a rules file is a mapping", where=str(rules), got=type(source.data).__name__)
    file = validated(_File, source, tuples(source.data), fields_at=_fields_at, page=PAGE, kind="rule")
    for place, rule in enumerate(file.rules):
        if rule.against is not None and (rules.parent / rule.against).resolve() == folder.resolve():
            raise StudyError(
                "a campaign cannot be held against itself: nothing in it could be new",
                where=source.where(("rules", place, "against")),
                got=rule.against,
                wanted="the campaign that it replays, or an earlier replay of it",
                fix="Name that campaign, from the folder of the rules.",
            )
    return [verdict for rule in file.rules for verdict in _verdicts(outcome, rule, rules.parent)]


def _fields_at(place: Where) -> list[str]:
    return list(SuiteRule.model_fields) if len(place) > 1 else list(_File.model_fields)


def each_test(outcome: CampaignOutcome, compared: Sequence[SuiteComparison] = ()) -> list[Verdict]:
    """Return each test of each SUT as a verdict, for JUnit: a suite is a list of regression tests.

    `compared`, with the campaign that it replays, says which tests lost their base.
    """
    verdicts = []
    lost = {
        (pair.after, test.after.key): test.base_lost for pair in compared for test in pair.of("base lost")
    }
    for sut in outcome.suts:
        for test in outcome.tests[sut]:
            fails = is_failure(test) or (sut, test.key) in lost
            state = Outcome.FAIL if fails else Outcome.INCONCLUSIVE if test.says_nothing else Outcome.PASS
            why = why_failed(test) or lost.get((sut, test.key), test.says_nothing)
            name = f"{sut}: {test.mutation} on {test.base}, {test.key[:12]}"
            words = f"points by which {test.mutation} on {test.base} lowers the score, with no object wrong"
            verdicts.append(Verdict(name, words, None, test.drop, None, state, why, sut))
    return verdicts


def _verdicts(outcome: CampaignOutcome, rule: SuiteRule, folder: Path) -> Iterator[Verdict]:
    known = outcome.campaign.mutations
    if rule.mutation is not None and rule.mutation not in known:
        raise StudyError(
            f"the campaign has no mutation {rule.mutation!r}", fix=suggestion(rule.mutation, known)
        )
    for name in rule.sut:
        if name not in outcome.suts:
            raise StudyError(f"the campaign has no SUT {name!r}", fix=suggestion(name, outcome.suts))
    for sut in rule.sut or outcome.suts:
        tests = [test for test in outcome.tests[sut] if rule.mutation in (None, test.mutation)]
        if not tests:
            measured = Measured(None, why="there is no such test")
        elif rule.against is not None:
            measured = _changed(outcome, rule, sut, tests, folder)
        else:
            measured = _measured(outcome, rule, sut, tests)
        of = f" of {sut}" + (f" under {rule.mutation}" if rule.mutation else "")
        if rule.measure == "failures_per_1000" and rule.mutation is None:
            of += f" ({weights_text(outcome.weights(sut))})"
        words = f"{WORDS[rule.measure]}{of} is at most {rule.at_most:g}"
        name = rule.name or words
        if rule.name and len(rule.sut or outcome.suts) > 1:
            name = f"{rule.name}: {sut}"
        state, reason = _decided(rule, measured)
        remarks = measured.remarks
        yield Verdict(
            name, words, rule.at_most, measured.value, measured.interval, state, reason, sut, remarks
        )


@dataclass(frozen=True)
class Measured:
    """What a rule is about: its value by what is known, and by the worst that open tests could be."""

    value: float | None
    interval: Interval | None = None
    why: str = ""
    """Why there is no value, or a doubtful interval."""
    worst: float | None = None
    worst_interval: Interval | None = None
    open: str = ""
    """How many tests say nothing, and why; empty if all do."""
    remarks: tuple[str, ...] = ()


def _measured(outcome: CampaignOutcome, rule: SuiteRule, sut: str, tests: Sequence[Case]) -> Measured:
    """Count what fails; a test that says nothing may be either, and both are looked at."""
    states = [_state(rule.measure, test) for test in tests]
    known = [state is True for state in states]
    worst = [state is not False for state in states]
    open_ = _open_words([test for test, state in zip(tests, states, strict=True) if state is None])
    if rule.measure != "failures_per_1000":
        return Measured(float(sum(known)), worst=float(sum(worst)), open=open_)
    first, last = (
        mixed_per_1000(tests, failing, outcome.weights(sut))
        if rule.mutation is None
        else rate_per_1000(tests, failing)
        for failing in (known, worst)
    )
    return Measured(first.value, first, first.why, last.value, last, open_)


def _state(measure: Measure, test: Case) -> bool | None:
    """Tell whether a test counts for a measure; None where it says nothing."""
    if measure == "faults":
        return test.fault is not None
    if measure in KINDS:
        if any(verdict.kind == measure for verdict in test.verdicts):
            return True
        if measure == "missed" and not test.mutation.startswith("add_"):
            return False
        blind = test.unseen if measure == "lost" else test.base_wrong
        return None if test.fault is not None or blind else False
    return True if is_failure(test) else None if test.says_nothing else False


def _open_words(tests: Sequence[Case]) -> str:
    silent = sum(test.fault is not None for test in tests)
    unseen = sum(test.fault is None and bool(test.unseen) for test in tests)
    parts = (
        (silent, "without an answer"),
        (unseen, "as the SUT does not see the unmutated frame or object"),
        (len(tests) - silent - unseen, "as nothing in them is judged"),
    )
    said = "; ".join(f"{count} {words}" for count, words in parts if count)
    return f"{counted(len(tests), 'test')} may be either, {said}" if tests else ""


def _changed(
    outcome: CampaignOutcome, rule: SuiteRule, sut: str, tests: Sequence[Case], folder: Path
) -> Measured:
    place = folder / (rule.against or "")
    other = read_outcome(open_campaign(place))
    pairs = {sut: sut} if sut in other.suts else {}
    if not pairs and len(other.suts) == 1:
        pairs = {other.suts[0]: sut}
    if not pairs:
        return Measured(None, why=f"{rule.against} has no SUT {sut!r}")
    (compared,) = compare_suites(other, outcome, suts=pairs)
    shared = [test for test in compared.tests if rule.mutation in (None, test.after.mutation)]
    if not shared:
        return Measured(None, why=f"{rule.against} has no such test")
    others = len(tests) - len(shared)
    why = [f"compared with {old!r} there" for old in pairs if old != sut]
    why += [f"{others} of {len(tests)} tests are not there, and not counted"] if others else []
    (old,) = pairs
    here = {test.picture for test in compared.tests}
    gone = sum(
        is_failure(test) and rule.mutation in (None, test.mutation) and row["picture"] not in here
        for test, row in zip(other.tests[old], other.rows, strict=True)
    )
    why += [f"{counted(gone, 'failing test')} of there not asked here, and not counted"] if gone else []
    some = replace(compared, tests=tuple(shared))
    clean = some.clean_scores
    if rule.measure == "clean_drop":
        return _clean_drop(some, why)
    new = rule.measure == "new_failures"
    changes: tuple[Change, ...] = WORSE if new else ("still failing", "base lost")
    asked = [test for test in shared if new or is_failure(test.before)]
    counts = [test for test in asked if test.change in changes]
    unknown = [
        test.after for test in asked if test.change in ("passing", "fixed") and test.after.says_nothing
    ]
    lost = sum(test.change == "base lost" for test in counts)
    why += [f"{lost} of them base lost: mutated or not, it lacks what was found there before"] if lost else []
    if clean is not None and clean[0] - clean[1] >= least_drop(outcome.campaign.bins):
        why.append(
            f"the clean score of {sut} on the base frames fell from {clean[0]:.2f} to {clean[1]:.2f} %"
        )
    worst = float(len(counts) + len(unknown))
    remarks = ("; ".join(why),) if why else ()
    return Measured(float(len(counts)), worst=worst, open=_open_words(unknown), remarks=remarks)


def _clean_drop(compared: SuiteComparison, why: list[str]) -> Measured:
    """Return how far the clean score fell; where there is no answer any more it may have fallen to 0."""
    clean, silent = compared.clean_scores, compared.clean_unanswered
    open_ = f"{counted(silent, 'base frame')} without an answer" if silent else ""
    if clean is None:
        return Measured(None, why=open_ or "no base frame has a score on both sides")
    frames = compared.clean_frames
    bases = len({test.after.base for test in compared.tests})
    part = f" on {len(frames) - silent} of {bases} base frames" if len(frames) - silent < bases else ""
    why = [*why, f"{clean[0]:.2f} % there, {clean[1]:.2f} % here{part}"]
    worst = fmean(before - (after or 0.0) for before, after in frames)
    return Measured(clean[0] - clean[1], worst=worst, open=open_, remarks=("; ".join(why),))


def _decided(rule: SuiteRule, measured: Measured) -> tuple[Outcome, str]:
    value, interval, worst, high = measured.value, measured.interval, measured.worst, measured.worst_interval
    if value is None or worst is None:
        return Outcome.INCONCLUSIVE, measured.why
    least, most, why, open_ = value, worst, "", measured.open
    if interval is not None and high is not None and rule.bound != "point":
        if interval.low is None or high.high is None:
            return Outcome.INCONCLUSIVE, f"no interval: {measured.why or high.why}"
        least, most, why = interval.low, high.high, measured.why
        open_ = "; ".join(filter(None, ("the limit lies within the interval", open_)))
    if least > rule.at_most:
        return Outcome.FAIL, why
    return (Outcome.PASS, why) if most <= rule.at_most else (Outcome.INCONCLUSIVE, open_)

"""Rules that a fuzz campaign or its replay is held to, and each of its tests as a verdict of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
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
from adverse.fuzz.verify import open_campaign
from adverse.requirements.rules import KIND, PAGE
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.strict_yaml import Where, read_yaml, tuples, validated

Measure = Literal[
    "failures", "failures_per_1000", "missed", "lost", "phantom", "faults", "new_failures", "still_failing"
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
}
AGAINST = ("new_failures", "still_failing")


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
            raise ValueError(f"against: a campaign is for {' and '.join(AGAINST)}, and they need it")
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
            open_ = test.fault is None and test.drop is None and not test.verdicts
            fails = is_failure(test) or (sut, test.key) in lost
            state = Outcome.FAIL if fails else Outcome.INCONCLUSIVE if open_ else Outcome.PASS
            why = why_failed(test) or lost.get((sut, test.key), "nothing in it is judged" if open_ else "")
            name = f"{sut}: {test.mutation} on {test.base}, {test.key[:12]}"
            words = f"{test.mutation} on {test.base} changes no answer that was right"
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
        value, interval, why = _measured(outcome, rule, sut, tests, folder)
        of = f" of {sut}" + (f" under {rule.mutation}" if rule.mutation else "")
        if rule.measure == "failures_per_1000" and rule.mutation is None:
            of += f" ({weights_text(outcome.weights(sut))})"
        words = f"{WORDS[rule.measure]}{of} is at most {rule.at_most:g}"
        name = rule.name or words
        if rule.name and len(rule.sut or outcome.suts) > 1:
            name = f"{rule.name}: {sut}"
        state, reason = _decided(rule, value, interval, why)
        remarks = (why,) if rule.against is not None and value is not None and why else ()
        yield Verdict(name, words, rule.at_most, value, interval, state, reason, sut, remarks)


def _measured(
    outcome: CampaignOutcome, rule: SuiteRule, sut: str, tests: Sequence[Case], folder: Path
) -> tuple[float | None, Interval | None, str]:
    if not tests:
        return None, None, "there is no such test"
    if rule.against is not None:
        return _changed(outcome, rule, sut, tests, folder)
    if rule.measure == "failures_per_1000":
        failing = [is_failure(test) for test in tests]
        if rule.mutation is None:
            interval = mixed_per_1000(tests, failing, outcome.weights(sut))
        else:
            interval = rate_per_1000(tests, failing)
        return interval.value, interval, interval.why
    if rule.measure in KINDS:
        return float(sum(rule.measure in {v.kind for v in test.verdicts} for test in tests)), None, ""
    counts = is_failure if rule.measure == "failures" else _is_fault
    return float(sum(map(counts, tests))), None, ""


def _is_fault(test: Case) -> bool:
    return test.fault is not None


def _changed(
    outcome: CampaignOutcome, rule: SuiteRule, sut: str, tests: Sequence[Case], folder: Path
) -> tuple[float | None, Interval | None, str]:
    place = folder / (rule.against or "")
    other = read_outcome(open_campaign(place))
    pairs = {sut: sut} if sut in other.suts else {}
    if not pairs and len(other.suts) == 1:
        pairs = {other.suts[0]: sut}
    if not pairs:
        return None, None, f"{rule.against} has no SUT {sut!r}"
    (compared,) = compare_suites(other, outcome, suts=pairs)
    shared = [test for test in compared.tests if rule.mutation in (None, test.after.mutation)]
    if not shared:
        return None, None, f"{rule.against} has no such test"
    new = rule.measure == "new_failures"
    changes: tuple[Change, ...] = WORSE if new else ("still failing", "base lost")
    counts = [test for test in shared if test.change in changes and (new or is_failure(test.before))]
    others = len(tests) - len(shared)
    why = [f"compared with {old!r} there" for old in pairs if old != sut]
    why += [f"{others} of {len(tests)} tests are not there, and not counted"] if others else []
    lost = sum(test.change == "base lost" for test in counts)
    why += (
        [f"{lost} of them base lost: the unmutated frame lacks what was found there before"] if lost else []
    )
    return float(len(counts)), None, "; ".join(why)


def _decided(
    rule: SuiteRule, value: float | None, interval: Interval | None, why: str
) -> tuple[Outcome, str]:
    if value is None:
        return Outcome.INCONCLUSIVE, why
    if interval is None or rule.bound == "point":
        return (Outcome.PASS if value <= rule.at_most else Outcome.FAIL), ""
    if interval.low is None or interval.high is None:
        return Outcome.INCONCLUSIVE, f"no interval: {why}"
    if interval.high <= rule.at_most:
        return Outcome.PASS, why
    if interval.low > rule.at_most:
        return Outcome.FAIL, why
    return Outcome.INCONCLUSIVE, "the limit lies within the interval"

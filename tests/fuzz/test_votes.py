"""Votes survive, the last one counts, one `false` decides, and rates are those counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.curves.interval import korn_graubard
from adverse.errors import StoreError
from adverse.fuzz.folder import FinishedCampaign
from adverse.fuzz.outcome import CampaignOutcome, Case
from adverse.fuzz.scoring import BINS, bin_of
from adverse.fuzz.votes import SAYS, Says, Vote, Votes, false_positives, review_order, verdict

CAMPAIGN = FinishedCampaign(
    study="s",
    task="segmentation",
    seed=3,
    shares={"add_car": 1.0},
    bins=BINS,
    classes={},
    scorer="pixels",
    threshold=0.5,
    suts={"net": "f"},
    data="drawn",
    frames=1,
    pixel_classes={},
    guided=False,
    key="",
    status="complete",
    requested=1,
    tests=1,
    bases=(0,),
    pruned={},
    resources="",
    results="",
    made_by="",
)


def outcome_of(drops: list[float], *, logs: int = 4) -> CampaignOutcome:
    """One SUT, one test for each drop, spread over logs."""
    tests = tuple(
        Case(
            number=n + 1,
            key=f"{n:032x}",
            mutation="add_car",
            base=f"frame{n}",
            log=f"log{n % logs}",
            recipe="{}",
            thing=f"thing{n}",
            drop=drop,
            compat_drop=None,
            fault=None,
            bin=bin_of(drop),
        )
        for n, drop in enumerate(drops)
    )
    return CampaignOutcome(CAMPAIGN, {"net": tests}, {}, len(drops), {}, ())


@given(st.dictionaries(st.text(min_size=1), st.sampled_from(SAYS)))
def test_one_false_decides_whatever_others_say(votes: dict[str, Says]) -> None:
    word = verdict(votes)
    assert (word == "false") == ("false" in votes.values())
    assert (word is None) == (not votes)
    if word == "unsure":
        assert set(votes.values()) == {"unsure"}


def test_votes_are_read_back_and_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "votes"
    votes = Votes(path)
    for vote in (Vote("ann", "k", "true"), Vote("bob", "k", "unsure"), Vote("ann", "k", "false")):
        votes.add(vote)
    assert Votes(path).latest() == {"k": {"ann": "false", "bob": "unsure"}}
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:30])  # a power cut while a fourth vote was written
    assert Votes(path).latest() == {"k": {"ann": "false", "bob": "unsure"}}
    assert path.read_bytes() == whole
    before = (tmp_path / "votes.json").read_bytes()
    Votes(path).add(Vote("ann", "k", "true"))
    (tmp_path / "votes.json").write_bytes(before)  # a power cut between a vote and its seal
    assert Votes(path).latest() == {"k": {"ann": "true", "bob": "unsure"}}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"bob", b"eve", "changed or is damaged"),
        (b'"false"}\n', b'"false"}', "votes were changed"),  # the last one: it would count as never given
        (b'"false"}\n', b'"folse"}\n', "votes were changed"),
    ],
)
def test_a_changed_vote_is_refused(tmp_path: Path, old: bytes, new: bytes, words: str) -> None:
    path = tmp_path / "votes"
    votes = Votes(path)
    for vote in (Vote("bob", "k", "unsure"), Vote("ann", "k", "false")):
        votes.add(vote)
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(StoreError, match=words):
        Votes(path)
    path.unlink()
    with pytest.raises(StoreError, match="votes were changed"):
        Votes(path)


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\nb", "row\u202e"])
def test_a_reviewer_has_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="needs a name"):
        Votes(tmp_path / "votes").add(Vote(name, "k", "true"))
    assert not (tmp_path / "votes").exists()


def test_rates_are_those_counted_by_hand(tmp_path: Path) -> None:
    outcome = outcome_of([1.5] * 8 + [6.0] * 4 + [12.0, 0.2])
    votes = Votes(tmp_path / "votes")
    keys = [test.key for test in outcome.tests["net"]]
    for n, key in enumerate(keys[:6]):
        votes.add(Vote("ann", key, "false" if n in (0, 4) else "true"))
    votes.add(Vote("bob", keys[1], "false"))
    votes.add(Vote("bob", keys[6], "unsure"))
    rows = {row.bin: row for row in false_positives(outcome, votes)}
    moderate = rows["moderate"]
    names = ("failures", "true", "false", "unsure", "not_reviewed")
    assert [moderate.record()[name] for name in names] == [8, 3, 3, 1, 1]
    rate, by_log = moderate.false_positive_rate, korn_graubard([2, 1, 0, 0], [2, 2, 1, 1])
    assert rate.value == 0.5
    assert (rate.low, rate.high) == pytest.approx((by_log.low, by_log.high))
    assert rows["extreme"].false_positive_rate.value is None, "undefined, not 0"
    assert rows["all"].failures == 13
    assert rows["all"].false_positive_rate.value is None, "only the moderate ones were reviewed"
    assert rows["all"].record()["false_positive_rate_why"] == "part of it was not looked at"


def test_the_rate_of_all_failures_weighs_bins_by_their_failures(tmp_path: Path) -> None:
    """100 failures, 10 of them false, all of these extreme; 10 of each bin are reviewed.

    Pooled, 10 of 20 reviewed ones are false; the share among all failures is 10 %.
    """
    outcome = outcome_of([12.0] * 10 + [1.5] * 90, logs=10)
    votes = Votes(tmp_path / "votes")
    for key in review_order(outcome)[:20]:
        votes.add(Vote("ann", key, "false" if int(key, 16) < 10 else "true"))
    rows = {row.bin: row for row in false_positives(outcome, votes)}
    assert [rows[name].false_positive_rate.value for name in ("moderate", "extreme")] == [0, 1]
    whole = rows["all"].record()
    assert whole["false_positive_rate"] == pytest.approx(0.1)
    assert whole["false_positive_rate_low"] < 0.1 < whole["false_positive_rate_high"] < 0.5


def test_a_failure_that_another_sut_brought_forward_does_not_speak_for_its_bin(tmp_path: Path) -> None:
    """50 failures are moderate with both SUTs and true; 5 are extreme with the other one alone, and false."""
    first = outcome_of([1.5] * 55, logs=5)
    second = outcome_of([12.0] * 5 + [1.5] * 50, logs=5)
    campaign = replace(CAMPAIGN, suts={"net": "f", "other": "g"})
    outcome = replace(
        first, campaign=campaign, tests={"net": first.tests["net"], "other": second.tests["net"]}
    )
    votes = Votes(tmp_path / "votes")
    for key in review_order(outcome)[:15]:
        votes.add(Vote("ann", key, "false" if int(key, 16) < 5 else "true"))
    rows = {(row.sut, row.bin): row for row in false_positives(outcome, votes)}
    assert rows["net", "moderate"].false_positive_rate.value == pytest.approx(5 / 55)


def test_review_begins_with_the_worst_and_is_shuffled_within_bins() -> None:
    outcome = outcome_of([1.5] * 30 + [6.0] * 20 + [12.0] * 10 + [0.1] * 5)
    order = review_order(outcome)
    number = {test.key: n for n, test in enumerate(outcome.tests["net"])}
    places = [number[key] for key in order]
    assert sorted(places[:10]) == list(range(50, 60)) != places[:10]
    assert sorted(places[10:30]) == list(range(30, 50))
    assert sorted(places[30:]) == list(range(30))
    assert order == review_order(outcome)

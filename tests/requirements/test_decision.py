"""The statistics of requirements, on worlds whose true distance is known."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adverse.curves.interval import Interval, refused
from adverse.humans.thresholds import Threshold
from adverse.requirements.batches import batches_of_images, batches_of_logs, whole
from adverse.requirements.decision import (
    Decision,
    SamplingPlan,
    decisions,
    find,
    images_needed,
    unseen,
    within_interval,
    without_interval,
)
from adverse.requirements.measures import Evidence, Ratio, Side
from adverse.requirements.verdicts import Outcome
from requirements.simulated import crowds, simulated

SIMULATIONS = 200
PLAN = SamplingPlan(batches=200, margin=0.05)


def outcomes(plan: SamplingPlan, **world: float) -> Counter[Outcome]:
    return Counter(
        decisions([simulated(seed, **world)], [plan])[0].outcome  # type: ignore[arg-type]
        for seed in range(SIMULATIONS)
    )


def test_a_sut_that_does_not_fall_passes() -> None:
    found = outcomes(PLAN, images=300, lost=0.05, won=0.05)
    assert found[Outcome.PASS] >= 0.9 * SIMULATIONS
    assert found[Outcome.FAIL] == 0


def test_a_sut_that_misses_by_the_stated_effect_fails() -> None:
    lost, won = 0.125, 0.025
    stated = find(simulated(1, images=300, lost=lost, won=won), PLAN).detectable
    assert stated == pytest.approx(lost - won - PLAN.margin, abs=0.002)  # the world is chosen so
    found = outcomes(PLAN, images=300, lost=lost, won=won)
    assert found[Outcome.FAIL] >= 0.9 * SIMULATIONS
    assert found[Outcome.PASS] == 0


def test_the_effect_is_stated_no_larger_than_it_has_to_be() -> None:
    """Half the stated effect is found far less often, so the statement says something."""
    found = outcomes(PLAN, images=300, lost=0.1, won=0.025)
    assert found[Outcome.FAIL] < 0.7 * SIMULATIONS


@pytest.mark.parametrize("rule", ["paired", "paper"])
def test_the_same_sut_twice_seldom_fails(rule: str) -> None:
    plan = replace(PLAN, margin=0.0, rule=rule)  # type: ignore[arg-type]
    found = outcomes(plan, images=300, lost=0.1, won=0.1)
    assert found[Outcome.FAIL] <= 0.05 * SIMULATIONS
    assert found[Outcome.PASS] <= 0.05 * SIMULATIONS


@pytest.mark.parametrize(
    "world",
    [
        {"images": 300, "lost": 0.05, "versions": 1},
        {"images": 300, "lost": 0.1, "won": 0.05},
        {"images": 400, "lost": 0.1, "won": 0.05, "per_log": 10, "alike": 0.9},
    ],
)
def test_a_sut_at_the_margin_seldom_passes(world: dict[str, float]) -> None:
    assert outcomes(PLAN, **world)[Outcome.PASS] <= 0.05 * SIMULATIONS


@pytest.mark.parametrize(("images", "margin"), [(30, 0.15), (30, 0.4), (100, 0.1), (100, 0.3)])
def test_images_that_hold_most_people_count_as_few(images: int, margin: float) -> None:
    """A tenth of the images holds 69 % of the people, and only there are people lost."""
    found = Counter(
        decisions([crowds(seed, images=images, distance=margin)], [replace(PLAN, margin=margin, batches=50)])[
            0
        ].outcome
        for seed in range(100)
    )
    assert found[Outcome.PASS] <= 5


def test_enough_unequal_images_pass_and_fail_and_few_say_why() -> None:
    (perfect,) = decisions([crowds(0, images=400, distance=0)], [replace(PLAN, margin=0.1)])
    assert perfect.outcome is Outcome.PASS
    (failing,) = decisions([crowds(0, images=200, distance=0.6)], [PLAN])
    assert failing.outcome is Outcome.FAIL
    (few,) = decisions([crowds(0, images=30, distance=0)], [replace(PLAN, margin=0.9)])
    assert few.outcome is Outcome.INCONCLUSIVE
    assert "hold 48 % of what is counted, so they count as" in few.reason


@pytest.mark.parametrize("images", [30, 148, 149])
def test_crowds_that_no_image_shows_are_no_pass(images: int) -> None:
    """One image in 50 holds 100 people, all of whom are lost; a set of images without one looks flawless."""
    plan = replace(PLAN, margin=0.15, batches=50, rarest_kind=0.02)
    worlds = (crowds(seed, images=images, distance=0.67, share=0.02, people=100) for seed in range(1000))
    without = next(world for world in worlds if (world.required.tally.size == 1).all())
    (found,) = decisions([without], [plan])
    alone = 0.98**images  # the chance of such a set
    assert (found.outcome is Outcome.PASS) is (alone <= 0.05)
    if found.outcome is not Outcome.PASS:
        assert f"1 in 50 with a chance of {alone:.0%}, and" in found.reason
        assert "149 images would do, or set rarest_kind:" in found.reason
    (even,) = decisions([without], [replace(plan, rarest_kind=0.0)])
    assert even.outcome is Outcome.PASS  # where each image counts alike


def test_kinds_of_image_are_met_by_logs_where_frames_are_alike() -> None:
    """300 frames of 30 logs that are alike within count as 30: none of a kind of 1 in 50 may be there."""
    plan = replace(PLAN, margin=0.5, batches=100, rarest_kind=0.02)
    alike = simulated(0, images=300, lost=0.0, per_log=10, alike=1.0)
    (found,) = decisions([alike], [plan])
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "300 images of 30 logs, alike within them, lack any" in found.reason
    (open_,) = decisions([alike], [replace(plan, margin=0.01)])
    assert " of 149 logs would decide it" not in open_.reason  # a margin that small needs more
    (fails,) = decisions([simulated(0, images=60, lost=0.7)], [replace(plan, margin=0.02)])
    assert fails.outcome is Outcome.FAIL  # what was seen to fall needs no other kinds


def test_alike_frames_do_not_count_as_many() -> None:
    """Taken for independent, frames of a log make the same SUT fail; drawn as logs they do not."""
    world = {"images": 400, "lost": 0.05, "won": 0.05, "per_log": 10, "alike": 0.9}
    plan = replace(PLAN, margin=0.0)
    assert outcomes(plan, **world)[Outcome.FAIL] <= 0.05 * SIMULATIONS
    blind = replace(plan, rule="paper")
    assert outcomes(blind, **world)[Outcome.FAIL] > 0.05 * SIMULATIONS


@pytest.mark.parametrize("images", [1, 5, 19])
def test_too_few_images_are_inconclusive(images: int) -> None:
    (found,) = decisions([simulated(0, images=images, lost=0)], [replace(PLAN, margin=0.9)])
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "too few images" in found.reason


def test_images_that_all_behave_rule_out_only_what_they_can() -> None:
    plan = replace(PLAN, margin=0.02)
    few, many = (decisions([simulated(0, images=n, lost=0)], [plan])[0] for n in (100, 250))
    assert (few.outcome, many.outcome) == (Outcome.INCONCLUSIVE, Outcome.PASS)
    assert few.finding.interval.high == pytest.approx(1 - 0.05 ** (1 / 100) + 0.5 / 100)


def test_the_rule_of_the_paper_rules_out_no_more_than_images_can() -> None:
    paper = replace(PLAN, rule="paper", margin=0.1)
    (few,) = decisions([simulated(0, images=20, lost=0, accuracy=1 - 1e-9)], [paper])
    assert few.outcome is Outcome.INCONCLUSIVE
    assert few.finding.interval.high == pytest.approx(unseen(20, 0.05))
    assert "about 29 images would decide it, there are 20" in few.reason
    (enough,) = decisions([simulated(0, images=29, lost=0, accuracy=1 - 1e-9)], [paper])
    assert enough.outcome is Outcome.PASS


def test_what_images_cannot_rule_out_is_the_exact_bound() -> None:
    for images in (20, 300):
        exact = stats.binomtest(0, images).proportion_ci(confidence_level=0.9, method="exact").high
        assert unseen(images, 0.05) == pytest.approx(exact)


def test_the_error_is_that_of_a_paired_difference() -> None:
    evidence = simulated(3, images=500, lost=0.1, won=0.05, versions=1)
    assert isinstance(evidence.required.tally, Ratio)
    assert isinstance(evidence.measured.tally, Ratio)
    differences = evidence.required.tally.part - evidence.measured.tally.part
    found = find(evidence, replace(PLAN, batches=4000))
    assert found.distance == pytest.approx(differences.mean())
    assert found.error == pytest.approx(differences.std(ddof=1) / math.sqrt(500), rel=0.05)


def test_the_rule_of_the_paper_is_the_formula_of_the_paper() -> None:
    evidence = simulated(3, images=200, lost=0.1)
    plan = SamplingPlan(batches=300, images=50, rule="paper")
    found = find(evidence, plan)
    values = batches_of_images(evidence, 300, 50, seed=0, run=0)
    spread = math.sqrt(np.var(values.required, ddof=1) + np.var(values.measured, ddof=1))
    assert found.required == pytest.approx(values.required.mean())
    assert found.interval.high == pytest.approx(
        values.required.mean() - values.measured.mean() + 1.6449 * spread, abs=1e-4
    )
    assert np.std(values.required) == pytest.approx(math.sqrt(0.8 * 0.2 / 50), rel=0.15)


def test_a_batch_does_not_pretend_more_images_than_there_are() -> None:
    evidence = simulated(3, images=50, lost=0.1)
    for rule in ("paired", "paper"):
        plan = SamplingPlan(batches=300, rule=rule)
        assert find(evidence, replace(plan, images=5000)) == find(evidence, plan)


def test_a_side_with_few_images_draws_few() -> None:
    evidence = simulated(3, images=200, lost=0.1)
    assert isinstance(evidence.required.tally, Ratio)
    part = evidence.required.tally.part[:25]
    few = replace(evidence, required=Side(Ratio(part, np.ones(25)), np.arange(25)))
    values = batches_of_images(few, 2000, 200, seed=0, run=0)
    assert values.required.std() == pytest.approx(part.std() / math.sqrt(25), rel=0.1)
    assert few.images == 25


def test_batches_are_the_same_for_the_same_seed_and_no_other() -> None:
    evidence = simulated(3, images=60, lost=0.1)
    for draw in (batches_of_images, batches_of_logs):
        one, same = (draw(evidence, 20, 60, seed=4, run=0) for _ in range(2))
        assert np.array_equal(one, same)
        for seed, run in ((5, 0), (4, 1)):
            assert not np.array_equal(one, draw(evidence, 20, 60, seed=seed, run=run))


def test_a_measure_that_is_not_defined_is_inconclusive() -> None:
    nothing = Side(Ratio(np.zeros(30), np.zeros(30)), np.arange(30))
    (found,) = decisions([Evidence(nothing, nothing, np.arange(30))], [PLAN])
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.finding.distance is None


@pytest.mark.parametrize(
    ("right", "outcome"), [(0, Outcome.INCONCLUSIVE), (15, Outcome.INCONCLUSIVE), (30, Outcome.PASS)]
)
def test_a_sut_that_has_nothing_to_lose_does_not_pass(right: int, outcome: Outcome) -> None:
    """Right on 15 of 300 images is 0.05, the margin: losing all of them would be no miss."""
    hits = (np.arange(300) < right).astype(float)
    side = Side(Ratio(hits, np.ones(300)), np.arange(300))
    (found,) = decisions([Evidence(side, side, np.arange(300))], [PLAN])
    assert found.outcome is outcome
    assert ("losing everything would pass" in found.reason) == (outcome is Outcome.INCONCLUSIVE)


def test_what_two_seeds_do_not_agree_on_is_not_said() -> None:
    """Three batches tell little: near the margin the two sets of them differ for some seed."""
    evidence = simulated(3, images=300, lost=0.06, won=0.04)
    found = [
        decisions([evidence], [SamplingPlan(batches=3, margin=0.055, seed=seed)])[0] for seed in range(20)
    ]
    open_ones = [one for one in found if one.reason.startswith("n too small")]
    assert open_ones
    assert all(one.outcome is Outcome.INCONCLUSIVE for one in open_ones)


def test_one_of_many_needs_more_evidence() -> None:
    evidence = simulated(3, images=300, lost=0.05, won=0.03)
    (alone,) = decisions([evidence], [PLAN])
    assert alone.outcome is Outcome.PASS
    plan = replace(PLAN, margin=(alone.finding.interval.high or 0) + 0.001)
    among = decisions([evidence] * 8, [plan] * 8)
    assert {one.outcome for one in among} == {Outcome.INCONCLUSIVE}
    assert "as one of 8 (Holm)" in among[0].reason


def test_about_so_many_images_would_tell() -> None:
    finding = find(simulated(3, images=300, lost=0.06, won=0.04), PLAN)
    needed = images_needed(finding, PLAN)
    assert needed is not None
    near = replace(PLAN, margin=(finding.distance or 0) + 0.001)
    assert images_needed(finding, near) is None  # too many to be an advice
    half = stats.t.ppf(0.95, needed - 1) * (finding.error or 0) * math.sqrt(300 / needed)
    half = math.hypot(half, 1 - 0.05 ** (1 / needed)) + 0.5 / needed
    assert half == pytest.approx(abs(PLAN.margin - (finding.distance or 0)), rel=0.01)
    assert (images_needed(finding, PLAN, among=5) or 0) > needed  # Holm asks more of one of five


@pytest.mark.parametrize("per_log", [1, 10])
def test_small_batches_change_nothing_about_how_many_images_there_are(per_log: int) -> None:
    """A SUT that never falls passes whatever `images:` is, and the error is that of all images."""
    plan = replace(PLAN, margin=0.04, batches=2000)
    world = simulated(3, images=500, lost=0.04, won=0.03, per_log=per_log, alike=0.5)
    whole_error, small_error = (find(world, replace(plan, images=n)).error for n in (None, 50))
    assert small_error == pytest.approx(whole_error, rel=0.06)
    perfect = decisions([simulated(0, images=300, lost=0)], [replace(PLAN, margin=0.02, images=50)])
    assert [one.outcome for one in perfect] == [Outcome.PASS]
    small = replace(PLAN, images=50)
    assert outcomes(small, images=300, lost=0.1, won=0.05)[Outcome.PASS] <= 0.05 * SIMULATIONS


def test_the_advice_helps() -> None:
    """What the reason asks for decides it, and nothing is asked for that would not."""
    perfect = simulated(0, images=300, lost=0)
    paper = replace(PLAN, margin=0.09, images=50, rule="paper", batches=2000)
    (found,) = decisions([perfect], [paper])
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "more images would not help, images: " in found.reason
    wanted = int(found.reason.split("images: ")[-1].split()[0])
    assert decisions([perfect], [replace(paper, images=round(1.2 * wanted))])[0].outcome is Outcome.PASS
    assert decisions([perfect], [replace(paper, rule="paired")])[0].outcome is Outcome.PASS
    (few,) = decisions([simulated(0, images=100, lost=0)], [replace(PLAN, margin=0.02)])
    needed = int(few.reason.split("about ")[1].split()[0])
    assert decisions([simulated(0, images=needed, lost=0)], [replace(PLAN, margin=0.02)])[0].outcome == "PASS"
    assert decisions([simulated(0, images=needed - 9, lost=0)], [replace(PLAN, margin=0.02)])[0].reason
    (none,) = decisions([perfect], [replace(PLAN, margin=0.0)])
    assert "no number of images" in none.reason


@pytest.mark.parametrize(
    ("whole_range", "lower", "outcome", "reason"),
    [
        ("PASS", "PASS", "PASS", "people may tolerate it up to 0.8, which was not checked"),
        ("PASS", "FAIL", "INCONCLUSIVE", "PASS up to 0.7 as a whole, but FAIL up to 0.4, the lower end of"),
        ("FAIL", "FAIL", "FAIL", "also up to 0.4"),
        ("FAIL", "PASS", "INCONCLUSIVE", "PASS up to 0.4, the lower end of the 90% interval of t_c"),
        ("FAIL", "INCONCLUSIVE", "INCONCLUSIVE", "undecided up to 0.4"),
        ("INCONCLUSIVE", "PASS", "INCONCLUSIVE", "too few; PASS up to 0.4, the lower end"),
        ("INCONCLUSIVE", "INCONCLUSIVE", "INCONCLUSIVE", "too few"),
    ],
)
def test_a_sut_fails_only_where_people_surely_do_not(
    whole_range: str, lower: str, outcome: str, reason: str
) -> None:
    limit = Threshold(
        "t.frost", "correctness", 0.7, 0.7, "vif", "", Interval(0.7, 0.4, 0.8, 0.9, "profile", 30, "ok")
    )
    finding = find(simulated(0, images=50, lost=0), PLAN)
    found, below = (Decision(finding, Outcome(each), "too few") for each in (whole_range, lower))
    decided = within_interval(found, below, limit)
    assert decided.outcome == outcome
    assert reason in decided.reason
    assert within_interval(found, below, replace(limit, interval=None)) == found


@pytest.mark.parametrize("outcome", list(Outcome))
def test_no_fail_rests_on_a_threshold_whose_interval_was_refused(outcome: Outcome) -> None:
    few = refused(0.7, "5 participants, where 10 are needed", confidence=0.9, method="profile", logs=5)
    limit = Threshold("t.frost", "correctness", 0.7, 0.7, "vif", "", few)
    found = Decision(find(simulated(0, images=50, lost=0), PLAN), outcome, "why")
    decided = without_interval(found, limit)
    if outcome is not Outcome.FAIL:
        assert decided == found
        return
    assert decided.outcome is Outcome.INCONCLUSIVE
    assert decided.reason.startswith("FAIL up to 0.7, but people may fail before: no interval of t_c (5 part")
    assert without_interval(found, replace(limit, interval=None)) == found  # a number from elsewhere


def test_a_threshold_that_may_be_0_can_be_missed() -> None:
    """Nothing lies below 0: who falls at the least change that can be decided fails."""
    interval = Interval(0.7, 0.0, 0.8, 0.999, "profile", 30, "ok")
    limit = Threshold("t.frost", "correctness", 0.7, 0.7, "vif", "", interval)
    failed = Decision(find(simulated(0, images=50, lost=0), PLAN), Outcome.FAIL)
    decided = within_interval(failed, failed, limit, decided_to=0.04)
    assert decided.outcome is Outcome.FAIL
    words = (
        "also up to 0.04, the least change with enough versions (the 99.9% interval of t_c goes down to 0)"
    )
    assert decided.reason == words


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 3))
def test_the_order_of_rows_changes_nothing(seed: int, versions: int) -> None:
    evidence = simulated(seed, images=40, lost=0.2, versions=versions)
    assert isinstance(evidence.measured.tally, Ratio)
    order = np.random.default_rng(seed).permutation(len(evidence.measured.image))
    tally = Ratio(evidence.measured.tally.part[order], evidence.measured.tally.whole[order])
    shuffled = replace(evidence, measured=Side(tally, evidence.measured.image[order]))
    assert whole(shuffled) == pytest.approx(whole(evidence))
    assert find(shuffled, PLAN).error == pytest.approx(find(evidence, PLAN).error)

"""Thresholds as the specification says, against a slow reference; intervals that cover the true drop."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from statistics import multimode

import numpy as np
import pytest
from scipy.interpolate import BSpline, make_smoothing_spline
from scipy.stats import fisher_exact
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.errors import StudyError
from adverse.humans.answers import COLUMNS, ORIGINAL, Judgments, Row, count_answers, judgments_of, to_csv
from adverse.humans.estimate import Estimate, EstimateOptions, _quantiles, estimate, estimate_one
from adverse.humans.estimates_file import Reuse, reuse
from adverse.humans.simulate import People, plan_sample_size, rate, simulate
from adverse.humans.smoothing import DEGREES, Array, smooth
from adverse.humans.thresholds import INSUFFICIENT, KINDS, Kind
from adverse.report.human_study import in_words

QUICK = EstimateOptions(resamples=100)


def rows_of(judgments: Judgments) -> list[Row]:
    return list(zip(*(getattr(judgments, name).tolist() for name in COLUMNS), strict=True))


def reference(judgments: Judgments, kind: Kind) -> tuple[list[float | None], list[float]]:
    """Do what the specification says, one answer and one bin at a time, with scipy's spline and test.

    Return the thresholds that one, and that two significant bins in a row give, and p of every bin.
    """
    on_originals = [row for row in rows_of(judgments) if row[2] == "original"]
    said: dict[str, list[str]] = {}
    for _, image, _, _, _, answer, _ in on_originals:
        said.setdefault(image, []).append(answer)
    rows = [row for row in rows_of(judgments) if row[2] != "original"]
    if kind == "prediction":
        rows = [row for row in rows if len(multimode(said.get(row[1], ()))) == 1]
    bins: dict[int, list[bool]] = {}
    base = [answer == truth for *_, answer, truth in on_originals] if kind == "correctness" else []
    cut = sorted(row[3] for row in rows)[math.ceil(0.05 * len(rows)) - 1]
    for _, image, _, dv, _, answer, truth in rows:
        success = answer == (truth if kind == "correctness" else multimode(said[image])[0])
        bins.setdefault(min(round(dv * 10000) // 100, 99), []).append(success)
        if kind == "prediction" and dv <= cut:
            base.append(success)
    kept = sorted(number for number, found in bins.items() if len(found) > 10)
    x = np.array([(number + 0.5) / 100 for number in kept])
    y = np.array([np.mean(bins[number]) for number in kept])
    ones = np.ones(len(x))

    def left_out(lam: float) -> float:
        return sum(
            float(y[i] - straight_on(make_smoothing_spline(np.delete(x, i), np.delete(y, i), lam=lam), x, i))
            ** 2
            for i in range(len(x))
        )

    chosen = smooth(x[None], y[None], ones[None], np.array([len(x)])).lam[0]
    near = [*DEGREES[np.abs(np.log10(DEGREES / chosen)) < 0.2], *DEGREES[::20]]
    assert left_out(chosen) <= min(left_out(lam) for lam in near) * (1 + 1e-6)
    fitted = make_smoothing_spline(x, y, lam=chosen)(x)
    right = sum(base)
    p = []
    for number, value in zip(kept, fitted, strict=True):
        count = len(bins[number])
        hits = min(max(round(count * value), 0), count)
        table = [[hits, count - hits], [right, len(base) - right]]
        p.append(float(fisher_exact(table, alternative="less").pvalue))
    significant = [value < 0.05 for value in p]
    pairs = [one and other for one, other in itertools.pairwise(significant)]
    first = [
        next((kept[i] / 100 for i, yes in enumerate(found) if yes), None) for found in (significant, pairs)
    ]
    return first, p


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("people", [People(drop=0.3, fall=0.1), People(drop=0.3, onset="sudden")])
def test_the_threshold_is_that_of_the_slow_reference(kind: Kind, people: People) -> None:
    answers = simulate(people, 3)
    shown = (answers.dv >= 0.12) & (answers.dv < 0.45)
    answers = answers.where(shown | (answers.transformation == "original"))
    wanted, p = reference(answers, kind)
    for consecutive in (1, 2):
        found = estimate_one(answers, people.transformation, kind, replace(QUICK, consecutive=consecutive))
        assert found.value == wanted[consecutive - 1]
        np.testing.assert_allclose([b.p for b in found.bins], p, rtol=1e-6)
    assert wanted[0] is not None


def straight_on(spline: BSpline, x: Array, i: int) -> float:
    """Evaluate a spline that was fitted without point i; a natural one goes straight on beyond its ends."""
    inside = min(max(x[i], x[1] if i == 0 else x[0]), x[-2] if i == len(x) - 1 else x[-1])
    return float(spline(inside) + spline.derivative()(inside) * (x[i] - inside))


def flat(count: int, successes: int, dv: float, start: int = 0) -> list[Row]:
    """Answers at one visual change, some of them right; on the originals 19 of 20 are."""
    return [
        row
        for k in range(count)
        for row in (
            (f"p{k % 12}", f"i{start + k}", "haze", dv, "vif", "a" if k < successes else "b", "a"),
            (f"q{k % 12}", f"i{start + k}", "original", 0.0, "vif", "a" if k % 20 else "b", "a"),
        )
    ]


def steps(counts: list[tuple[int, int]]) -> Judgments:
    """Answers in the bins 0, 1, 2 ...: (how many, how many right)."""
    rows = [
        row
        for number, (count, right) in enumerate(counts)
        for row in flat(count, right, number / 100, 1000 * number)
    ]
    return judgments_of(rows)


def correctness(judgments: Judgments, options: EstimateOptions = QUICK) -> Estimate:
    return estimate(judgments, options)[0]


def test_a_bin_with_ten_answers_is_pooled_and_one_with_eleven_is_not() -> None:
    found = correctness(steps([(20, 19)] * 6 + [(11, 10), (10, 0), (11, 10)]))
    assert [round(b.low, 2) for b in found.bins] == [0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07]
    assert (found.bins[-1].high, found.bins[-1].answers, found.bins[-1].rate) == (0.09, 21, 10 / 21)


def test_no_drop_is_said_and_is_no_number() -> None:
    found = correctness(steps([(40, 38)] * 8))
    assert (found.status, found.value, found.tolerated_to) == ("not found", None, 0.08)
    assert found.interval is None


def test_too_little_is_insufficient() -> None:
    found = correctness(steps([(40, 38)] * 4))
    assert found.status == "insufficient"
    assert found.why == "4 bins with more than 10 answers, where 5 are needed"
    assert (found.value, found.tolerated_to, found.interval) == (None, None, None)


def test_one_bad_bin_is_a_threshold_unless_two_are_asked_for() -> None:
    answers = steps([(400, 380)] * 10 + [(400, 100)])
    jagged = replace(QUICK, consecutive=2)
    one, two = correctness(answers), correctness(answers, jagged)
    assert one.value is not None
    assert two.value is None or two.value < one.bins[-1].low
    assert all(b.p < 0.05 for b in one.bins if b.low == one.value)


def test_without_truth_there_is_only_t_p_and_without_originals_nothing() -> None:
    full = simulate(People(), 1)
    blank = np.full(len(full), "")
    no_truth = estimate(replace(full, truth=blank), QUICK)
    assert [found.status for found in no_truth] == ["insufficient", "found"]
    no_originals = estimate(full.where(full.transformation != "original"), QUICK)
    assert [found.status for found in no_originals] == ["insufficient", "insufficient"]


def test_answers_on_images_whose_original_nobody_saw_are_said_to_be_left_out() -> None:
    found = estimate(simulate(People(originals=500), 1), QUICK)[1]
    assert found.unseen > 0
    assert f", {found.unseen} answers left out because nobody saw the original" in in_words(found)


def test_few_people_get_no_interval() -> None:
    found = estimate(simulate(People(participants=9, answers=1800), 1), QUICK)[0]
    assert found.value is not None
    assert found.interval is not None
    assert (found.interval.status, found.interval.logs) == ("refused", 9)
    assert found.interval.why == "9 participants, where 10 are needed"
    assert "No interval: 9 participants, where 10 are needed." in in_words(found)


def test_the_order_of_rows_and_the_names_of_people_change_nothing() -> None:
    answers = simulate(People(), 5)
    shuffled = answers.where(np.random.default_rng(1).permutation(len(answers)))  # type: ignore[arg-type]
    assert estimate(shuffled, QUICK) == estimate(answers, QUICK)


def test_other_transformations_matter_by_their_originals_alone() -> None:
    one, other = simulate(People(), 5), simulate(People(transformation="t.jpeg", drop=0.7), 6)
    renamed = [(row[0], f"other {row[1]}", *row[2:]) for row in rows_of(other)]
    originals = [row for row in renamed if row[2] == "original"]
    both = judgments_of([*rows_of(one), *renamed])
    assert estimate(both, QUICK)[:2] == estimate(judgments_of([*rows_of(one), *originals]), QUICK)


def test_the_base_rate_is_that_of_all_answers_on_originals_whatever_was_shown_changed() -> None:
    """90 answers on originals, 84 of them right, counted by hand; a pairing with changed rows sees others.

    Every haze row is of image i1, whose 10 originals are 9 times right. Image i2 was changed by noise alone,
    and i3 was never changed at all.
    """
    originals = {"i1": "a" * 9 + "b", "i2": "a" * 35 + "b" * 5, "i3": "a" * 40}
    rows: list[Row] = [
        (f"q{n}", image, "original", 0.0, "vif", answer, "a")
        for image, answers in originals.items()
        for n, answer in enumerate(answers)
    ]
    rows += [
        (f"p{n % 12}", image, name, n % 10 / 100, "vif", "a", "a")
        for image, name in (("i1", "haze"), ("i2", "noise"))
        for n in range(120)
    ]
    for found in estimate(judgments_of(rows), QUICK):
        if found.kind == "correctness":
            assert (found.base, found.base_answers) == (84 / 90, 90)
            assert (found.answers, found.participants) == (120, 12)


@pytest.mark.parametrize(
    ("on_original", "majority"),
    [("aab", "a"), ("baabb", "b"), ("b", "b"), ("aabc", "a"), ("ab", ""), ("aabb", ""), ("", "")],
)
def test_prediction_is_agreement_with_the_majority_on_the_original(on_original: str, majority: str) -> None:
    """People always answer a on the changed versions; a tie has no majority and its image does not count."""
    rows: list[Row] = [
        (f"q{n}", "i", "original", 0.0, "vif", answer, "") for n, answer in enumerate(on_original)
    ]
    rows += [(f"p{n}", "i", "haze", n / 40, "vif", "a", "") for n in range(40)]
    counted = count_answers(judgments_of(rows), "prediction", 0.05)
    assert counted.answers.sum() == (40 if majority else 0)
    assert counted.successes.sum() == (40 if majority == "a" else 0)
    assert counted.tied == (40 if on_original and not majority else 0)
    assert counted.unseen == (0 if on_original else 40)


def test_weighting_by_answers_is_the_same_where_bins_are_equal() -> None:
    answers = steps([(40, 38)] * 8 + [(40, 20)] * 8)
    plain, weighted = (correctness(answers, replace(QUICK, weight=w)) for w in ("none", "answers"))
    assert plain == weighted
    uneven = simulate(People(), 2)
    assert estimate(uneven, QUICK) != estimate(uneven, replace(QUICK, weight="answers"))


@pytest.mark.parametrize(
    "wrong",
    [{"alpha": 0.0}, {"alpha": 0.5}, {"confidence": 1.0}, {"consecutive": 3}, {"resamples": 5}],
)
def test_options_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(StudyError, match=f"--{next(iter(wrong))} has an invalid value"):
        EstimateOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("onset", ["even", "gentle", "sudden"])
def test_the_interval_covers_the_true_drop(onset: str) -> None:
    """Thirty studies here; bench/human_thresholds.py has the thousand of each kind."""
    found = plan_sample_size(People(onset=onset, drop=0.35), 30, "correctness", QUICK)  # type: ignore[arg-type]
    assert found.found == 1
    assert found.covered is not None
    assert found.covered >= 0.85


def test_the_interval_holds_the_estimate_and_narrows_with_answers() -> None:
    widths = []
    for count in (2500, 40_000):
        found = estimate_one(simulate(People(answers=count), 1), "t", "correctness", QUICK)
        assert found.value is not None
        assert found.interval is not None
        low, high = found.interval.low, found.interval.high
        assert low is not None
        assert high is not None
        assert low <= found.value <= high < np.inf
        widths.append(high - low)
    assert widths[1] < widths[0]


def test_without_a_drop_there_is_nothing_to_cover() -> None:
    found = plan_sample_size(People(drop=None, originals=200), 3, "correctness", QUICK)
    assert (found.covered, found.found) == (None, 0)


def test_simulated_people_follow_the_curve() -> None:
    people = People(answers=60_000, differ=0.0, categories=4)
    answers = simulate(people, 1)
    assert (answers.answer == answers.truth)[answers.dv == 0].mean() == pytest.approx(0.95, abs=0.005)
    answers = answers.where(answers.transformation != "original")
    right = answers.answer == answers.truth
    for low in (0.1, 0.45, 0.55, 0.8):
        here = (answers.dv >= low) & (answers.dv < low + 0.05)
        expected = rate(people, answers.dv[here]).mean()
        assert right[here].mean() == pytest.approx(expected, abs=4 * 0.5 / math.sqrt(here.sum()))
    assert answers.seen_before == 0


def test_two_parts_of_the_images_agree_where_images_do_not_matter_and_too_few_tell_nothing() -> None:
    people = People(answers=8000, participants=40)
    answers = simulate(people, 1)
    assert all(found.overlap is not None and found.overlap > 0.9 for found in reuse(answers, QUICK))
    few = judgments_of([row for row in rows_of(answers) if row[1] in ("image 1", "image 2")])
    assert [found.overlap for found in reuse(few, QUICK)] == [None, None]


@pytest.mark.parametrize("answers", [11, 12, 15])
@pytest.mark.parametrize("right", [0, 9, 11])
def test_bins_that_hardly_have_enough_answers_are_no_trouble(answers: int, right: int) -> None:
    for bins in (5, 6, 9):
        made = steps([(answers, 11)] * (bins - 2) + [(answers, right)] * 2)
        for found in estimate(made, QUICK):
            assert found.status in ("found", "not found", "insufficient")
            assert all(b.band is None or b.band[0] <= b.band[1] for b in found.bins)
        reuse(made, QUICK)


def test_two_parts_differ_where_every_image_is_a_world_of_its_own() -> None:
    """Five images with drops far apart: no two parts of three can agree in all bins."""
    rows = [
        (*row[:1], f"image {number}", *row[2:])
        for number, drop in enumerate((0.1, 0.3, 0.5, 0.7, 0.9))
        for row in rows_of(simulate(People(drop=drop, onset="sudden", answers=4000, participants=40), number))
    ]
    found = [
        each
        for seed in range(4)
        for each in reuse(judgments_of(rows), replace(QUICK, seed=seed))
        if each.kind == "correctness"
    ]
    assert min(each.overlap for each in found if each.overlap is not None) < 0.95
    assert all(each.differ for each in found if not each.agree)
    assert any(each.differ for each in found)


def test_where_images_do_not_matter_parts_seldom_differ() -> None:
    """Six small studies, in about half of which the parts do not agree; docs/human-study.md has more."""
    people = People(drop=0.35, answers=1500, participants=30)
    found = [reuse(simulate(people, seed), QUICK)[0] for seed in range(6)]
    assert any(not each.agree for each in found)
    assert sum(each.differ for each in found) <= 1


@pytest.mark.parametrize(
    ("overlap", "thresholds", "tolerated", "chance", "words"),
    [
        (0.97, (0.69, 0.65), (0.69, 0.65), None, "parts of the images agree"),
        (0.97, (0.69, 0.12), (0.69, 0.12), 0.4, "do not agree: their thresholds are more than 0.05 apart"),
        (0.97, (0.69, 0.12), (0.69, 0.12), 0.4, "answers are too few to tell"),
        (0.97, (0.69, 0.12), (0.69, 0.12), 0.01, "apart. By chance that is rare: the threshold depends on"),
        (0.97, (0.69, None), (0.69, 1.0), 0.4, "thresholds 0.69 and none up to 1)"),
        (0.97, (None, None), (0.9, 1.0), None, "parts of the images agree"),
        (0.90, (0.69, 0.69), (0.69, 0.69), 0.01, "the threshold depends on which images are shown"),
    ],
)
def test_parts_agree_in_their_curves_and_in_their_thresholds(
    overlap: float,
    thresholds: tuple[float | None, float | None],
    tolerated: tuple[float, float],
    chance: float | None,
    words: str,
) -> None:
    found = Reuse("haze", "correctness", overlap, 80, thresholds, tolerated=tolerated, chance=chance)
    assert words in found.words
    assert found.agree == (" agree (" in found.words and "not agree" not in found.words)
    assert found.plain()["agree"] == found.agree
    assert found.differ == (chance == 0.01)


def test_a_base_rate_from_outside_takes_the_place_of_the_originals() -> None:
    answers = simulate(People(drop=0.4, answers=1500, participants=20), seed=2)
    changed = answers.where(answers.transformation != ORIGINAL)
    inside = estimate_one(answers, "t.gaussian_noise", "correctness", QUICK)
    assert inside.base is not None
    given = replace(QUICK, base_rate=inside.base)
    outside = estimate_one(changed, "t.gaussian_noise", "correctness", given)
    assert (outside.base, outside.base_answers) == (inside.base, 0)
    assert all(
        known.p <= counted.p
        for known, counted in zip(outside.bins, inside.bins, strict=True)
        if known.p < 0.2
    )
    assert outside.value is not None
    assert inside.value is not None
    assert outside.value <= inside.value
    assert outside.interval is not None
    assert estimate_one(answers, "t.gaussian_noise", "correctness", given).value == outside.value
    assert estimate_one(changed, "t.gaussian_noise", "correctness", QUICK).status == INSUFFICIENT
    with pytest.raises(StudyError, match="--base-rate has an invalid value"):
        EstimateOptions(base_rate=1.5)


@pytest.mark.parametrize("compat", [[], ["--compat", "hu-2022"]])
def test_a_base_rate_that_the_originals_of_the_file_contradict_is_refused(
    tmp_path: Path, compat: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(to_csv(simulate(People(answers=600), 3)))
    done = CliRunner().invoke(app, ["humans", "estimate", str(path), "--base-rate", "0.5", *compat])
    assert isinstance(done.exception, StudyError)
    assert "of 600 answers on originals in the file are right (9" in str(done.exception)


def test_no_threshold_at_all_is_no_success(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(to_csv(simulate(People(answers=20, participants=2), 3)))
    done = CliRunner().invoke(app, ["humans", "estimate", str(path), "--no-reuse"])
    assert "insufficient" in done.output
    assert done.exit_code == 3


def test_quantiles_of_all_columns_at_once_are_numpys_to_the_bit() -> None:
    rng = np.random.default_rng(5)
    for missing in (0.0, 0.3, 0.6):
        values = rng.random((101, 30))
        values[rng.random(values.shape) < missing] = np.nan
        assert np.array_equal(_quantiles(values, [0.05, 0.95]), np.nanquantile(values, [0.05, 0.95], axis=0))


def test_where_nobody_is_right_on_the_originals_nothing_is_tolerated() -> None:
    rows: list[Row] = [
        (f"person {i % 19}", f"image {i}", name, dv, "vif", "no car", "car")
        for i in range(600)
        for name, dv in ((ORIGINAL, 0.0), ("t.frost", i % 20 / 20))
    ]
    correct, same = estimate(judgments_of(rows))
    assert (correct.status, correct.value, correct.tolerated_to) == (INSUFFICIENT, None, None)
    assert "base rate is 0.0%" in correct.why
    assert same.tolerated_to == 0.96


@pytest.mark.parametrize(("originals", "found"), [(15, False), (3000, True)])
def test_few_originals_that_nobody_gets_wrong_do_not_make_one_wrong_answer_a_drop(
    originals: int, *, found: bool
) -> None:
    """One of 25 is wrong in every bin: less than 15 right answers in a row can promise, not than 3000 can."""
    people = itertools.cycle(f"person {i}" for i in range(19))
    rows: list[Row] = [
        (next(people), f"original {i}", ORIGINAL, 0.0, "vif", "car", "car") for i in range(originals)
    ] + [
        (next(people), f"image {i}", "t.frost", i % 20 / 20, "vif", "car" if i >= 20 else "field", "car")
        for i in range(500)
    ]
    correct = estimate_one(judgments_of(rows), "t.frost", "correctness", QUICK)
    assert correct.base == 1
    assert (correct.value is not None) == found
    assert correct.bins[0].p == pytest.approx(25 / (25 + originals))  # the one failure, by chance here

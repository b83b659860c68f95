"""The rules of the authors' script: its spline against R's numbers and scipy, its decisions by hand."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import make_lsq_spline, make_smoothing_spline
from scipy.optimize import brentq
from scipy.stats import binom
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.errors import DataError, StudyError
from adverse.humans.answers import Row, judgments_of, read_judgments, to_csv
from adverse.humans.estimate import EstimateOptions
from adverse.humans.estimates_file import as_json
from adverse.humans.hu2022 import (
    BinCounts,
    SmoothSpline,
    counts_of,
    estimate_as_hu2022,
    knots,
    read_authors_table,
    smooth_spline,
)
from adverse.humans.simulate import People, simulate
from adverse.humans.thresholds import FOUND, INSUFFICIENT, NOT_FOUND, threshold
from adverse.report.human_study import in_words

SPEED = "4 7 8 9 10 11 12 13 14 15 16 17 18 19 20 22 23 24 25"
DISTANCE = """2 10, 4 22, 16, 10, 18 26 34, 17 28, 14 20 24 28, 26 34 34 46, 26 36 60 80, 20 26 54, 32 40,
32 40 50, 42 56 76 84, 36 46 68, 32 48 52 56 64, 66, 54, 70 92 93 120, 85"""
"""R's `cars` (Ezekiel, 1930): stopping distances in feet by speed in miles per hour."""
CARS_SPAR, CARS_LAMBDA, CARS_DF, CARS_RSS = 0.7801305, 0.1112206, 2.635278, 4187.776
"""What R prints for smooth.spline(speed, dist), the first example of its manual page."""


def test_the_spline_is_that_of_r() -> None:
    distances = [np.array(group.split(), float) for group in DISTANCE.split(",")]
    count = np.array([len(group) for group in distances], float)
    x, y = np.array(SPEED.split(), float), np.array([group.mean() for group in distances])

    def fit(spar: float) -> SmoothSpline:
        return smooth_spline(x, y, weights=count, spar=spar)

    wanted = CARS_LAMBDA * 19 / 50  # weights sum up to 50 there, to 19 here
    assert fit(CARS_SPAR).lam == pytest.approx(wanted, rel=1e-3)
    spline = fit(float(brentq(lambda spar: fit(spar).lam - wanted, 0.7, 0.9, xtol=1e-12)))
    assert spline.leverage.sum() == pytest.approx(CARS_DF, abs=1e-6)
    assert (count * (y - spline.fitted) ** 2).sum() == pytest.approx(CARS_RSS, abs=1e-3)


def curve(points: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(points)
    x = np.sort(rng.choice(np.arange(1, 101), points, replace=False)) / 100
    return x, 0.95 - 0.4 * np.clip(x - 0.6, 0, None) + rng.normal(0, 0.03, points)


def test_the_smoothing_has_the_least_error_of_what_is_left_out() -> None:
    x, y = curve(30)
    weights = np.arange(1.0, 31)
    spline = smooth_spline(x, y, weights=weights)
    scaled, weights = (x - x[0]) / (x[-1] - x[0]), weights * 30 / weights.sum()
    wanted = make_smoothing_spline(scaled, y, weights, lam=spline.lam)
    assert spline.fitted == pytest.approx(wanted(scaled), abs=2e-5)  # R's third is 0.333

    def left_out(lam: float) -> float:
        errors = []
        for i in range(1, 29):  # beyond the ends scipy's splines run straight on
            others = np.arange(30) != i
            fit = make_smoothing_spline(scaled[others], y[others], weights[others], lam=lam)
            errors.append(weights[i] * (y[i] - fit(scaled[i])) ** 2)
        return float(np.sum(errors))

    ours = (weights * ((y - spline.fitted) / (1 - spline.leverage)) ** 2)[1:29].sum()
    assert ours == pytest.approx(left_out(spline.lam), rel=1e-3)
    assert left_out(spline.lam) <= min(left_out(spline.lam * 8), left_out(spline.lam / 8)) + 1e-4


def test_from_fifty_points_on_there_are_fewer_knots() -> None:
    x, y = curve(94)
    assert (knots(49), knots(94)) == (49, 61)
    spline = smooth_spline(x, y, spar=-1.5)  # hardly any smoothing is left
    places = (x - x[0]) / (x[-1] - x[0])
    inner = places[[int(93 * k / 60) for k in range(61)]]
    whole = np.concatenate([[inner[0]] * 3, inner, [inner[-1]] * 3])
    assert spline.fitted == pytest.approx(make_lsq_spline(places, y, whole)(places), abs=1e-5)
    assert spline.leverage.sum() == pytest.approx(63, abs=1e-3)


def counts(rates: list[float], answers: int = 400) -> BinCounts:
    edges = np.arange(1, len(rates) + 1).astype(np.float64) * 0.02
    n = np.full(len(rates), answers)
    return BinCounts("frost", "correctness", edges, n, np.rint(n * np.array(rates)).astype(int))


def test_the_second_of_two_bins_is_the_threshold_and_its_absence_a_fallback() -> None:
    falling = [0.97] * 20 + [0.5] * 20
    found = estimate_as_hu2022(counts(falling), base_rate=0.97)
    p = [
        min(1.0, 2 * binom.cdf(round(each.answers * each.fitted), each.answers, 0.97)) for each in found.bins
    ]
    low = [value < 0.02 for value in p]  # far from 0.05 either way, so how two sides are counted is no matter
    first = next(i for i in range(40) if low[i] and low[i + 1])
    assert found.status == FOUND
    assert found.value == pytest.approx(0.02 * (first + 2))
    assert found.interval is None
    never = estimate_as_hu2022(counts([0.97] * 40), base_rate=0.97)
    assert (never.status, never.value) == (NOT_FOUND, None)
    assert never.tolerated_to == pytest.approx(0.78)
    assert never.why.startswith("no drop was found; 0.78, the second-to-last bin, is the fallback")
    better = estimate_as_hu2022(counts([1.0] * 40), base_rate=0.9)
    assert better.status == FOUND  # two-sided: who does better than on originals is found, too
    assert better.better
    assert "people do better here" in in_words(better)
    assert not found.better
    assert "better here" not in in_words(found)
    assert estimate_as_hu2022(counts(falling)).status == INSUFFICIENT  # nothing to compare with


def test_half_of_the_answers_are_the_base_of_predictions() -> None:
    made = replace(counts([0.9] * 10 + [0.6] * 12, answers=100), kind="prediction")
    found = estimate_as_hu2022(made, base_rate=0.2)  # for t_c alone
    assert found.base == pytest.approx((10 * 0.9 + 0.6) / 11)
    assert found.base_answers == 1100


def test_tables_of_the_authors_are_read_as_they_are(tmp_path: Path) -> None:
    rows = [(0.02 * k, 1.0 if k < 30 else 0.4, 50, 50 if k < 30 else 20) for k in range(1, 45)]
    for name, head, kind in (
        ("imagenet_c_p_frost.csv", "IQA,Accuracy,Count,Num_Accs", "correctness"),
        ("cifar10_p_p_frost.csv", "IQA,Preserved,Count,Num_Pre", "prediction"),
    ):
        path = tmp_path / name
        path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]))
        (read,) = read_authors_table(path)
        assert (read.transformation, read.kind) == ("t.frost", kind)
        assert read.rates[[0, -1]].tolist() == [1.0, 0.4]
    page, out = tmp_path / "page.html", tmp_path / "people.json"
    command = ["humans", "estimate", str(tmp_path / "imagenet_c_p_frost.csv"), "--compat", "hu-2022"]
    done = CliRunner().invoke(app, [*command, "--base-rate", "0.97", "--page", str(page), "--out", str(out)])
    assert done.exit_code == 0, done.output
    limit = threshold(str(out), "t.frost", "correctness")
    assert limit.value == pytest.approx(0.6, abs=0.04)
    assert "by the rules of hu-2022" in limit.origin
    assert f"t_c of t.frost = {limit.value:g} by vif and the rules of hu-2022" in page.read_text()
    assert set(json.loads(out.read_text())["options"]) == {"alpha", "weight", "base_rate"}
    for ignored in (["--consecutive", "2"], ["--baseline-quantile", "0.1", "--seed", "3"]):
        refused = CliRunner().invoke(app, [*command, *ignored, "--no-reuse"]).exception
        assert isinstance(refused, StudyError)
        assert refused.got == ", ".join(word for word in ignored if word.startswith("--"))
    rows = [(0.02 * k, 1.0, 50, 50) for k in range(1, 41)]
    (tmp_path / "imagenet_c_p_frost.csv").write_text(
        "\n".join(["IQA,Accuracy,Count,Num_Accs", *(",".join(map(str, row)) for row in rows)])
    )
    CliRunner().invoke(app, [*command, "--base-rate", "0.99", "--no-reuse", "--out", str(out)])
    fallback = threshold(str(out), "t.frost", "correctness")
    assert fallback.words == "t_c: tolerated up to 0.78, the second-to-last populated bin"
    assert fallback.doubt == "t_c 0.78 is a fallback: no drop was found, people tolerate that or more"
    with pytest.raises(DataError, match=re.escape("--compat hu-2022")):
        read_judgments(tmp_path / "imagenet_c_p_frost.csv")


@pytest.mark.parametrize(
    ("row", "instead", "said"),
    [
        (5, "0.05,0.9,20,30", r"more successes than answers.*row 5.*Num_Accs 30 of Count 20"),
        (3, "0.03,0.9,0,0", r"no answers.*row 3.*Count 0"),
        (4, "0.02,0.9,20,18", r"not in order.*row 4.*IQA 0.02 after 0.03"),
        (4, "0.03,0.9,20,18", r"not in order.*row 4.*IQA 0.03 after 0.03"),
        (9, "9,0.9,20,18", r"outside 0 to 1.*row 9.*IQA 9.*percent"),
        (0, "", r"no rows"),
    ],
)
def test_a_table_of_the_authors_that_cannot_be_true_is_refused(
    row: int, instead: str, said: str, tmp_path: Path
) -> None:
    lines = ["IQA,Accuracy,Count,Num_Accs", *(f"{k / 100:g},0.9,20,18" for k in range(1, 10))]
    path = tmp_path / "imagenet_c_p_frost.csv"
    path.write_text("\n".join([*lines[:row], instead, *lines[row + 1 :]] if row else lines[:1]))
    with pytest.raises(DataError, match=said):
        read_authors_table(path)


def test_what_the_rules_find_can_be_read_again(tmp_path: Path) -> None:
    """Answers on changes of exactly 0 lie in a bin that ends there: it begins there, too."""
    rows: list[Row] = [
        (f"p{i % 20}", f"i{k}, {i}", "haze", k / 100, "vif", "no" if i < k - 40 else "car", "car")
        for k in range(70)
        for i in range(20)
    ]
    rows += [(f"p{i % 20}", f"o{i}", "original", 0.0, "vif", "car" if i else "no", "car") for i in range(40)]
    right = estimate_as_hu2022(counts_of(judgments_of(rows))[0])
    assert (right.bins[0].low, right.bins[0].high) == (0.0, 0.0)
    assert {each.proven for each in right.bins} == {None}
    assert right.value is not None
    assert [right.value, right.bins[47].high] == [round(right.value, 2), 0.47]
    path = tmp_path / "people.json"
    path.write_text(as_json(None, [right], [], EstimateOptions()))
    assert threshold(str(path), "haze", "correctness").value == right.value


def test_answers_one_by_one_are_counted_as_the_authors_do(tmp_path: Path) -> None:
    lines = ["image_link,transformation,ground_truth,human_label,IQA"]
    for number in range(30):
        lines.append(f"http://a/n1_{number}.JPEG,original,car,{'not car' if number % 2 else 'car'},1")
        lines.append(
            f"http://a/frost/n1_{number}.JPEG.frost_2.png,frost,car,not car,{0.5 if number < 12 else 0.4901}"
        )
    path = tmp_path / "imagenet_experiment_results.csv"
    path.write_text("\n".join(lines))
    right, same = read_authors_table(path)
    assert right.edges == pytest.approx([0.5, 0.51])  # (0.49, 0.5] is named 0.5
    assert right.answers.tolist() == same.answers.tolist() == [12, 18]
    assert right.successes.tolist() == [0, 0]
    assert same.successes.tolist() == [6, 9]  # as before on every second image
    assert right.base == (0.5, 30)


def test_on_simulated_people_both_rules_find_the_drop(tmp_path: Path) -> None:
    """The drop begins at 0.5: the script's edge lies two bins or more behind the first proof of it."""
    answers = simulate(People(drop=0.5, fall=0.2, answers=6000, participants=60), seed=1)
    found = {each.kind: estimate_as_hu2022(each) for each in counts_of(answers)}
    assert found["correctness"].value == pytest.approx(0.55, abs=0.05)
    path = tmp_path / "answers.csv"
    path.write_text(to_csv(answers))
    run = CliRunner().invoke(app, ["humans", "estimate", str(path), "--compat", "hu-2022"])
    assert run.exit_code == 0, run.output
    assert f"{found['correctness'].value:.2f}" in run.output

"""Two runs compared: what is the same is unchanged, a blinded SUT is a regression, and pairs are pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

import adverse
from adverse.analysis.compare import compare
from adverse.analysis.compare_metrics import PairedRatios, paired_change
from adverse.analysis.pairing import Change
from adverse.cli.app import app
from adverse.curves.bootstrap import draw, estimate
from adverse.curves.interval import holm
from adverse.curves.quantities import Area, Difference, Ratios
from adverse.curves.sign_flip import sign_flip_p
from adverse.curves.studentized import interval, p_value
from adverse.data.images import write_image
from adverse.errors import AdverseError, DataError, StudyError
from adverse.report.comparison import headline
from adverse.store.run import differences
from adverse.types import Image

LOGS = tuple(f"log{number:02}" for number in range(16))
FPR_MAX = 5.0
"""High, so that efficiency is known even from few images."""
MUTATIONS = [
    {"brightness": {"scale": scale}, "group": group} for scale, group in ((0.5, "severe"), (0.9, "mild"))
]


class Spots:
    """Finds the bright spot where it is bright enough, and a false one where a marker pixel says so."""

    classes = ("person",)

    def __init__(self, least: int, fingerprint: str) -> None:
        self.least = least
        self.fingerprint = fingerprint

    def detect(self, images: Sequence[Image]) -> list[Any]:
        found: list[Any] = []
        for image in images:
            rows, columns = np.nonzero(image[..., 0] > self.least)
            boxes = [[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]] if len(rows) else []
            found.append((boxes, [float(image[..., 0].max()) / 255] * len(boxes)))
        return found


def write_data(root: Path, logs: Sequence[str], *, brightest: int = 250) -> None:
    images: list[dict[str, Any]] = []
    truth: list[dict[str, Any]] = []
    for number, log in enumerate(logs):
        rng = np.random.default_rng(number)
        (root / log).mkdir(parents=True, exist_ok=True)
        for frame in range(3):
            image = rng.integers(0, 50, (24, 32, 3)).astype(np.uint8)
            if number % 2 == 0:
                image[8:16, 10:16] = rng.integers(100, brightest)
                truth.append(
                    {
                        "id": len(truth) + 1,
                        "image_id": len(images) + 1,
                        "category_id": 1,
                        "bbox": [10, 8, 6, 8],
                    }
                )
            name = f"{log}/{frame}.png"
            write_image(root / name, image)
            images.append({"id": len(images) + 1, "file_name": name, "width": 32, "height": 24})
    whole = {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "person"}]}
    (root / "truth.json").write_text(json.dumps(whole))


Runner = Callable[..., Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Return a function that makes a run, or gives the one it made before."""
    folder = tmp_path_factory.mktemp("compare")
    write_data(folder / "data", LOGS)
    known: dict[str, Path] = {}

    def run(name: str, suts: dict[str, Spots] | None = None, data: Path | None = None, **more: Any) -> Path:
        if name not in known:
            study = {
                "name": name,
                "data": {"format": "folder", "root": str(data or folder / "data")},
                "mutations": MUTATIONS,
                "robustness": {"bootstrap": 200},
                "fpr_max": FPR_MAX,
                **more,
            }
            adverse.run(study, folder / name, detectors=suts or {"keen": Spots(70, "keen")})
            known[name] = folder / name
        return known[name]

    return run


def test_a_run_compared_with_itself_is_unchanged(made: Runner) -> None:
    found = compare(made("plain"), made("plain"))
    assert {change.outcome for change in found.changes} == {"unchanged"}
    assert found.pairing.logs == LOGS


def test_a_sut_gone_blind_is_a_regression_and_comes_first(made: Runner) -> None:
    suts = {"keen": Spots(255, "blind")}
    found = compare(made("plain"), made("blind", suts))
    assert found.changes[0].outcome == "regression"
    assert found.changes[0].size == min(change.size for change in found.changes)
    back = compare(made("blind", suts), made("plain"))
    assert {c.outcome for c in back.changes} <= {"improvement", "not told", "unchanged"}
    mirrored = {(c.level, c.setting): c for c in back.changes}
    for change in found.changes:
        other = mirrored[change.level, change.setting]
        assert change.difference is not None
        assert other.difference is not None
        if change.figure == "precision":  # who detects nothing has none
            assert (change.difference.value, other.difference.value) == (None, None)
        else:
            assert change.difference.value == pytest.approx(-(other.difference.value or 0))


@pytest.mark.parametrize(("order", "code"), [((0, 1), 1), ((1, 0), 0), ((0, 0), 0)])
def test_a_certain_regression_fails_when_asked(made: Runner, order: tuple[int, int], code: int) -> None:
    runs = made("plain"), made("blind", {"keen": Spots(255, "blind")})
    words = ["compare", *(str(runs[side]) for side in order)]
    assert CliRunner().invoke(app, [*words, "--fail-on-regression"]).exit_code == code
    assert CliRunner().invoke(app, words).exit_code == 0


def test_figures_are_those_of_the_runs(made: Runner) -> None:
    first, second = made("plain"), made("dull", {"keen": Spots(120, "dull")})
    summaries = [json.loads((run / "results" / "summary.json").read_text()) for run in (first, second)]
    before, after = ({(r["level"], r["setting"]): r for r in one["rows"]} for one in summaries)
    found = compare(first, second)
    areas = [change for change in found.changes if change.figure == "robust_area"]
    assert {(c.level, c.setting) for c in areas} == set(before)
    for change in areas:
        key = (change.level, change.setting)
        assert (change.before, change.after) == (before[key]["area"], after[key]["area"])
        assert change.robustness_after == pytest.approx(after[key]["robustness"])
        assert change.difference is not None
        assert change.difference.value == pytest.approx(after[key]["area"] - before[key]["area"])


def test_the_interval_is_that_of_logs_drawn_together(made: Runner) -> None:
    """The same interval, from the tables of the runs by hand."""
    first, second = made("plain"), made("dull", {"keen": Spots(120, "dull")})
    found = next(
        c for c in compare(first, second).changes if (c.level, c.setting) == ("image/ROC_B", "identity")
    )
    sides = []
    for run in (first, second):
        rows = [
            row
            for row in pq.read_table(run / "results" / "outcomes.parquet").to_pylist()
            if (row["level"], row["setting"]) == ("image/ROC_B", "identity")
        ]
        rows.sort(key=lambda row: row["log"])
        hits, truths, cost, exposure = (
            np.array([row[name] for row in rows], np.float64)
            for name in ("hits", "truths", "cost", "exposure")
        )
        sides.append(Area((Ratios(hits, truths, cost, exposure, "rate", FPR_MAX),)))
    strata = ["positive", "negative"] * 8
    wanted = estimate({"d": Difference(sides[1], sides[0])}, draw(LOGS, strata, seed=0, count=200))["d"]
    assert found.difference == interval(wanted)
    assert found.p == p_value(wanted)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_p_values_and_intervals_agree(confidence: float) -> None:
    rng = np.random.default_rng(4)
    logs = [f"{n:02}" for n in range(40)]
    strata = ["+", "-"] * 20
    truths, exposure = np.array([10, 0] * 20), np.array([0, 10] * 20)
    resamples = draw(logs, strata, seed=1, count=200)
    for shift in (0.0, 0.1, 0.2, 0.3):
        curves = [
            Ratios(
                np.minimum(rng.binomial(10, 0.4 + add, (40, 3)), truths[:, None]),
                truths,
                np.zeros((40, 3)),
                exposure,
            )
            for add in (0.0, shift)
        ]
        sample = estimate({"d": Difference(*(Area((c,)) for c in reversed(curves)))}, resamples)["d"]
        found, p = interval(sample, confidence=confidence), p_value(sample)
        assert p is not None
        assert found.low is not None
        assert found.high is not None
        if abs(p - (1 - confidence)) > 0.02 * (1 - confidence):
            assert (found.low > 0 or found.high < 0) == (p < 1 - confidence)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_its_definition(values: list[float]) -> None:
    """Against adjusted p-values: the running maximum of (m - rank) p, as textbooks have it."""
    order = np.argsort(values, kind="stable")
    adjusted = np.maximum.accumulate([(len(values) - k) * values[i] for k, i in enumerate(order)])
    wanted = np.zeros(len(values), bool)
    wanted[order] = np.asarray(adjusted) <= 0.05
    named = holm(values)
    bonferroni = [value <= 0.05 / len(values) for value in values]
    assert named == wanted.tolist() or any(
        abs((len(values) - k) * values[i] - 0.05) < 1e-12 for k, i in enumerate(order)
    )
    assert all(one or not other for one, other in zip(named, bonferroni, strict=True))


def test_what_alone_would_count_is_not_claimed_among_many() -> None:
    found = interval_of(-0.2, -0.3, -0.1)
    change = Change("a", "a", "image", "x", "area", difference=found, p=0.04)
    assert change.decided(sure=True, among=10).outcome == "regression"
    doubtful = change.decided(sure=False, among=10)
    assert (doubtful.outcome, doubtful.why) == (
        "not told",
        "alone it would count as a regression, but among 10 comparisons some do by chance",
    )


def interval_of(value: float, low: float, high: float) -> Any:
    from adverse.curves.interval import given as make  # noqa: PLC0415

    return make(value, low, high, confidence=0.95, method="test", logs=30)


def test_suts_of_other_names_are_paired_when_told(made: Runner) -> None:
    other = made("renamed", {"sharp": Spots(70, "sharp")})
    with pytest.raises(StudyError, match="no SUT is in both"):
        compare(made("plain"), other)
    found = compare(made("plain"), other, suts={"keen": "sharp"})
    assert {(c.before_sut, c.after_sut) for c in found.changes} == {("keen", "sharp")}
    with pytest.raises(StudyError, match="no SUT 'keem'"):
        compare(made("plain"), other, suts={"keem": "sharp"})


def test_what_is_in_one_run_alone_is_said_and_any_is_over_what_is_common(made: Runner) -> None:
    few = made("few", mutations=MUTATIONS[:1])
    found = compare(made("plain"), few)
    assert "mutation brightness(scale=0.9) is only in the first run" in found.pairing.only
    worst = {c.setting: c for c in found.changes if c.level == "image/ROC_B"}
    assert "AnyMild" not in worst
    assert worst["Any"].before == worst["Any"].after == worst["brightness(scale=0.5)"].before


def test_only_logs_that_are_the_same_are_paired(made: Runner, tmp_path: Path) -> None:
    data = tmp_path / "more"
    write_data(data, [*LOGS, "new"])
    longer = made("longer", data=data)
    found = compare(made("plain"), longer)
    assert found.pairing.logs == LOGS
    assert found.pairing.only == ("1 test logs are only in the second run: new",)
    truth = json.loads((data / "truth.json").read_text())
    truth["annotations"][0]["bbox"] = [1, 1, 5, 5]
    (data / "truth.json").write_text(json.dumps(truth))
    moved = compare(made("plain"), made("moved", data=data))
    assert moved.pairing.logs == LOGS[1:]
    assert any("frames, truth or usable images differ: log00" in text for text in moved.pairing.only)


def test_annotations_that_lie_elsewhere_did_not_change() -> None:
    def manifest(path: str, sha256: str) -> dict[str, Any]:
        return {"data": {"annotations": {path: sha256}}}

    before = manifest("/runs/../data/truth.json", "1")
    assert differences(before, manifest("/mnt/data/truth.json", "1")) == []
    for after in (manifest("/mnt/data/truth.json", "2"), manifest("/mnt/data/other.json", "1")):
        assert differences(before, after) == ["the annotations changed"]


def test_runs_that_cannot_be_compared_are_refused(made: Runner, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="the sensitivity levels differ"):
        compare(made("plain"), made("grid", sensitivity={"levels": 50}))
    with pytest.raises(StudyError, match="the highest rate of false positives differ"):
        compare(made("plain"), made("fpr", fpr_max=0.5))
    write_data(tmp_path / "other", [f"other{n}" for n in range(8)])
    with pytest.raises(DataError, match="no log in common"):
        compare(made("plain"), made("other", data=tmp_path / "other"))
    with pytest.raises(AdverseError, match="not a run folder"):
        compare(made("plain"), tmp_path)


def test_images_that_changed_are_noticed(made: Runner, tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_data(data, LOGS)
    first = made("as it was", data=data)
    write_data(data, LOGS, brightest=200)
    with pytest.raises(DataError, match="did not see the same images"):
        compare(first, made("as it is", data=data))


def test_results_changed_by_hand_are_refused(made: Runner) -> None:
    run = made("forged", {"keen": Spots(75, "forged")})
    summary = run / "results" / "summary.json"
    summary.write_text(summary.read_text().replace("0.", "0.9"))
    with pytest.raises(AdverseError, match="a file was changed"):
        compare(made("plain"), run)


def test_plain_metrics_are_compared_by_log(made: Runner) -> None:
    """Their values are those of the two summaries; fewer false positives are an improvement."""
    first, second = made("plain"), made("blind", {"keen": Spots(255, "blind")})
    summaries = [json.loads((run / "results" / "summary.json").read_text()) for run in (first, second)]
    before, after = ({row["setting"]: row for row in one["plain_metrics"]} for one in summaries)
    changes = {(c.figure, c.setting): c for c in compare(first, second).changes}
    for metric in ("recall", "precision", "false_positives_per_image"):
        for setting in before:
            change = changes[metric, setting]
            assert (change.before, change.after) == (before[setting][metric], after[setting][metric])
    assert changes["recall", "identity"].outcome == "regression"
    false = changes["false_positives_per_image", "identity"]
    assert false.outcome in ("unchanged", "improvement")
    assert (changes["fault_rate", "all settings"].before, changes["fault_rate", "all settings"].after) == (
        0,
        0,
    )


def test_few_logs_do_not_reassure(tmp_path: Path, made: Runner) -> None:
    write_data(tmp_path / "data", LOGS[:2])
    runs = [
        made(f"few {name}", {"keen": Spots(least, name)}, tmp_path / "data")
        for name, least in (("keen", 70), ("blind", 255))
    ]
    found = compare(*runs)
    assert {change.outcome for change in found.changes} <= {"not told", "unchanged"}
    words = headline(found)
    assert words.startswith("Whether anything got worse for certain cannot be told: too few logs (2)")
    assert "1.000 -> 0.000" in words
    assert headline(compare(runs[0], runs[0])).startswith("Nothing got worse for certain")


def test_an_interval_of_a_difference_is_the_jackknife_over_logs(made: Runner) -> None:
    """Against a slow one: each log with a person left out in turn, for recall under half the light."""
    first, second = made("plain"), made("dull", {"keen": Spots(120, "dull")})
    setting = "brightness(scale=0.5)"
    hits = [_found_by_log(run, setting) for run in (first, second)]
    logs = sorted(hits[0])
    without = [
        [sum(side[log] for log in logs if log != out) / (3 * (len(logs) - 1)) for side in hits]
        for out in logs
    ]
    falls = np.array([after - before for before, after in without])
    error = np.sqrt((len(logs) - 1) / len(logs) * ((falls - falls.mean()) ** 2).sum())
    changes = compare(first, second).changes
    (change,) = (c for c in changes if (c.figure, c.setting) == ("recall", setting))
    assert change.difference is not None
    assert change.difference.value == pytest.approx(sum(hits[1].values()) / 24 - sum(hits[0].values()) / 24)
    reach = stats.t.ppf(0.975, len(logs) - 1) * error
    assert all(0 < len(set(side.values())) > 1 for side in hits)  # else the rule of three is added
    assert change.difference.low == pytest.approx(change.difference.value - reach)


@pytest.mark.parametrize(("logs", "rate"), [(8, 0.8), (8, 1.0), (30, 0.95)])
def test_an_interval_of_a_difference_covers(logs: int, rate: float) -> None:
    """Logs differ in how hard they are, for both alike; at a rate of 1 only the rule of three is left."""
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(400):
        hard = rng.beta(10 * rate, 10 * (1 - rate), logs) if rate < 1 else np.ones(logs)
        trials = rng.integers(2, 8, logs)
        parts = [(rng.binomial(trials, hard).astype(float), trials.astype(float)) for _ in range(2)]
        found = PairedRatios([str(log) for log in range(logs)], parts, seed=0).interval()
        assert found.low is not None
        assert found.high is not None
        missed += not found.low <= 0 <= found.high
    assert missed / 400 <= 0.065  # 5 % and three standard errors would be 8.3 %


@pytest.mark.parametrize(("lost", "gained"), [(12, 0), (14, 3), (40, 0)])
def test_signs_of_yes_and_no_are_the_exact_test_of_mcnemar(lost: int, gained: int) -> None:
    """Against SciPy's exact binomial test, for shares of logs and for the area of a curve."""
    before, after = np.ones(60), np.ones(60)
    after[:lost], before[lost : lost + gained] = 0.0, 0.0
    logs = [f"{number:02}" for number in range(60)]
    paired = PairedRatios(logs, [(before, np.ones(60)), (after, np.ones(60))], seed=0)
    exact = stats.binomtest(gained, lost + gained).pvalue
    assert sign_flip_p(paired.by_log) == pytest.approx(exact, abs=1e-12)
    curves = [
        Area((Ratios(np.outer(hits, [0.0, 1.0]), np.ones(60), np.zeros((60, 2)), np.ones(60)),))
        for hits in (before, after)
    ]
    sample = estimate({"d": Difference(curves[1], curves[0])}, draw(logs, logs[:1] * 60, seed=1, count=100))[
        "d"
    ]
    assert sign_flip_p(sample.influence + sample.value / 60) == pytest.approx(exact, abs=1e-12)


def test_signs_of_any_parts_are_counted_as_by_enumeration() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        parts = rng.normal(0.4, 1.0, 11)
        signs = 1 - 2 * (np.arange(2**11)[:, None] >> np.arange(11) & 1)
        every = np.mean(np.abs(signs @ parts) >= abs(parts.sum()) - 1e-12)
        found = sign_flip_p(parts)
        assert found is not None
        assert every <= found <= every + 0.03  # what the grid rounds away is doubt


def test_a_clear_loss_among_many_comparisons_is_named_and_nothing_is_where_nothing_changed() -> None:
    """40 of 40 to 28 of 40 among 32; and families of a SUT compared with itself: Holm may name 5 %."""
    rng = np.random.default_rng(11)
    logs = [f"{number:02}" for number in range(40)]

    def p_of(before: Any, after: Any) -> tuple[Change, float]:
        change = paired_change(
            ("a", "b", "recall", "x", "recall"),
            logs,
            [(side, np.ones(40)) for side in (before, after)],
            seed=0,
        )
        return change, change.p if change.p is not None and not change.identical else 1.0

    lost, p = p_of(np.ones(40), (np.arange(40) >= 12).astype(float))
    assert holm([p, *[0.5] * 31])[0]
    assert lost.difference is not None
    assert (lost.difference.high or 0) < 0
    alarms = 0
    for _ in range(12):
        chance = rng.beta(9, 1, 40)
        family = [p_of(*(rng.random((2, 40)) < chance).astype(float))[1] for _ in range(12)]
        alarms += any(holm(family))
    assert alarms <= 3  # of 12 at 5 %, more are chance in 2 of 1000


def _found_by_log(run: Path, setting: str) -> dict[str, int]:
    """Count the frames with a detection at the operating point by log, those with a person only."""
    rows = [row for path in (run / "detections").iterdir() for row in pq.read_table(path).to_pylist()]
    summary = json.loads((run / "results" / "summary.json").read_text())
    (score,) = (row["score_threshold"] for row in summary["plain_metrics"] if row["setting"] == setting)
    found = dict.fromkeys(LOGS[::2], 0)
    for row in rows:
        log = row["frame"].partition("/")[0]
        if row["setting"] == setting and log in found:
            found[log] += any(value >= (-np.inf if score is None else score) for value in row["scores"])
    return found


def test_another_operating_point_is_named_and_its_loss_counts(made: Runner) -> None:
    """The same SUT, whose recall falls to nothing in every log by another threshold alone."""
    more = {"mutations": [*MUTATIONS, {"brightness": {"scale": 1.0}, "group": "mild"}]}
    first = made("at 0.3", operating_point={"score": 0.3}, **more)
    second = made("at 0.99", operating_point={"score": 0.99}, **more)
    found = compare(first, second)
    recalls = {one.setting: one for one in found.changes if one.figure == "recall"}
    assert recalls["identity"].outcome == "regression"
    assert (recalls["identity"].before, recalls["identity"].after) == (1.0, 0.0)
    same = recalls["brightness(scale=1)"]
    assert (same.repeats, same.outcome) == (True, "regression")
    (note,) = (note for note in found.notes if "operating point" in note)
    assert "keen changed, score 0.3 -> score 0.99" in note
    faults = next(one for one in found.changes if one.figure == "fault_rate")
    assert (faults.before, faults.after, faults.outcome) == (0.0, 0.0, "unchanged")
    assert not any("among 0" in one.why for one in found.changes)

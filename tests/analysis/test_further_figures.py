"""ADR, means, expectations, closed-loop rates and required rates, each worked out once more, another way."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import adverse
from adverse import plugins
from adverse.analysis.detections import sut_detections
from adverse.analysis.loop import drive_log
from adverse.curves import adr, area, korn_graubard
from adverse.levels.image import ROC_A, image_outcomes
from adverse.mutations.defocus import blur_radius_px
from adverse.mutations.haze import haze
from adverse.mutations.settings import parse
from adverse.store.finished_run import finished
from adverse.store.read import Store
from analysis.test_context import FRAMES, PERSON_M, ROBOT, STEP_M, write_drives
from analysis.test_thresholds import unsure

MUTATIONS = [
    "brightness(scale=0.9)",
    "brightness(scale=0.95)",
    "haze(beta=0.02)",
    "defocus(focus_m=2, kappa=3)",
]
CONDITIONS = {"baseline": 0.6, "haze(beta=0.02)": 0.3, "brightness(scale=0.9)": 0.1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("further")
    write_drives(root / "data")
    study = {
        "name": "further",
        "data": {"format": "folder", "root": str(root / "data")},
        "mutations": MUTATIONS,
        "levels": ["image", "path", "loop"],
        "robot": ROBOT,
        "sensitivity": {"levels": 8, "lowest": 0.01, "highest": 1.0},
        "robustness": {"bootstrap": 50, "conditions": CONDITIONS},
    }
    adverse.run(study, root / "run", detectors={"unsure": unsure})
    return root / "run"


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results" / "summary.json").read_text()))


@pytest.fixture(scope="module")
def store(folder: Path) -> Store:
    return finished(folder)


def test_adr_is_that_of_the_exact_curve(store: Store, summary: dict[str, Any]) -> None:
    one = sut_detections(store, "unsure")
    found = {row["setting"]: row for row in summary["adr"]}
    assert list(found) == list(store.groups)
    for setting in store.groups:
        both = [one.settings[name].answers.scores for name in ("identity", setting)]
        scores = np.unique(np.concatenate(both))[::-1]
        curves = []
        for name in ("identity", setting):
            judged, counted = one.settings[name], one.counted(name)
            alone = (np.array([s], np.float32) for s in scores)
            outcomes = [image_outcomes(judged, store.truth, store.frames, t, counted) for t in alone]
            curves.append([o[ROC_A] for o in outcomes])
        rates = [o.false_rate()[0] for o in curves[0]]
        wanted = adr([o.safety()[0] for o in curves[1]], rates)
        assert found[setting]["adr"] == pytest.approx(wanted)
        assert (found[setting]["people"], found[setting]["frames"]) == (FRAMES, 2 * FRAMES)
        assert found[setting]["share"] == pytest.approx(wanted / found["identity"]["adr"])
        assert (found[setting]["group"], found[setting]["status"]) == (store.groups[setting], "ok")
        assert found[setting]["adr_interval"]["status"] == "refused"  # one log
    assert len({row["adr"] for row in summary["adr"]}) > 1


def test_the_share_of_adr_is_over_the_same_frames(tmp_path: Path) -> None:
    """Frames without depth are left out under haze, so the baseline is read without them, too."""
    write_drives(tmp_path / "data")
    gone = [f"meeting/{frame:03d}" for frame in range(0, FRAMES, 3)]
    for name in gone:
        (tmp_path / "data" / name.replace("/", "/depth/")).with_suffix(".npy").write_bytes(b"no depth")
    study = {
        "name": "lost",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "mutations": ["haze(beta=0.02)"],
        "robustness": {"bootstrap": 0},
        "quarantine_budget": 0.9,
    }
    adverse.run(study, tmp_path / "run", detectors={"unsure": unsure})
    store = finished(tmp_path / "run")
    one = sut_detections(store, "unsure")
    kept = np.array(
        [test and name not in gone for name, test in zip(store.frames.ids, store.frames.test, strict=True)]
    )
    scores = np.unique(np.concatenate([found.answers.scores for found in one.settings.values()]))[::-1]

    def points(setting: str, counted: NDArray[np.bool_]) -> list[Any]:
        alone = (np.array([s], np.float32) for s in scores)
        found = (image_outcomes(one.settings[setting], store.truth, store.frames, t, counted) for t in alone)
        return [outcomes[ROC_A] for outcomes in found]

    rates = [o.false_rate()[0] for o in points("identity", one.counted("identity"))]
    before, after = (
        adr([o.safety()[0] for o in points(name, kept)], rates) for name in ("identity", "haze(beta=0.02)")
    )
    summary = json.loads((tmp_path / "run" / "results" / "summary.json").read_text())
    clean, hazy = summary["adr"]
    assert (hazy["people"], hazy["quarantined"]) == (FRAMES - len(gone), len(gone))
    assert hazy["adr"] == pytest.approx(after)
    assert hazy["share"] == pytest.approx(after / before)
    assert clean["share"] == 1
    assert clean["adr"] != pytest.approx(before)


def test_the_mean_counts_each_family_once(summary: dict[str, Any]) -> None:
    for row in summary["means"]:
        mine = {r["setting"]: r for r in summary["rows"] if r["level"] == row["level"]}
        for name in ("area", "robustness"):
            dark = (mine[MUTATIONS[0]][name] + mine[MUTATIONS[1]][name]) / 2
            wanted = (dark + mine[MUTATIONS[2]][name] + mine[MUTATIONS[3]][name]) / 3
            assert row[name] == pytest.approx(wanted)
        assert (row["families"], row["settings"]) == (3, 4)
    assert {row["level"] for row in summary["means"]} == {row["level"] for row in summary["rows"]}


def test_expected_curves_average_rates_first(folder: Path, summary: dict[str, Any]) -> None:
    rows = pq.read_table(folder / "results" / "outcomes.parquet").to_pylist()
    for expected in summary["expected"]:
        safety, third = np.zeros(1), np.zeros(1)
        for name, chance in CONDITIONS.items():
            setting = "identity" if name == "baseline" else name
            mine = [r for r in rows if (r["level"], r["setting"]) == (expected["level"], setting)]
            safety = safety + chance * np.sum([r["hits"] for r in mine], axis=0) / sum(
                r["truths"] for r in mine
            )
            cost, exposure = np.sum([r["cost"] for r in mine], axis=0), sum(r["exposure"] for r in mine)
            third = third + chance * (exposure / cost if "loop" in expected["level"] else cost / exposure)
        efficiency = third if "loop" in expected["level"] else 1 - np.minimum(third / 0.1, 1)
        assert expected["area"] == pytest.approx(area(safety, efficiency))


def test_loop_rates_are_those_of_driving_every_level(folder: Path, store: Store) -> None:
    with (folder / "results" / "loop_rates.csv").open(newline="") as file:
        rows = [
            r for r in csv.DictReader(file) if (r["level"], r["setting"]) == ("loop/annotated", "identity")
        ]
    assert len(rows) == 8
    seen = set()
    for row in rows:
        driven = drive_log(store, log="meeting", sut="unsure", sensitivity=float(row["sensitivity"]))
        stopped, late = (
            driven.by_sut.stopped[-1],
            driven.by_sut.position_m[-1] - driven.by_truth.position_m[-1],
        )
        for name, tolerance in (("safety", 1.0), ("safety_at_0", 0)):
            assert float(row[name]) == (stopped and late <= tolerance + 1e-4)
        assert float(row["violations"]) == driven.by_sut.violating.any()
        assert float(row["never_stops"]) == (not stopped)
        seen.add(tuple(float(row[name]) for name in ("safety_at_0", "safety", "violations", "never_stops")))
        assert row["safety_interval"] == "refused"  # one positive log
    assert len(seen) > 1


def test_areas_at_0_use_the_same_efficiency(folder: Path, summary: dict[str, Any]) -> None:
    curves = pq.read_table(folder / "results" / "curves.parquet").to_pylist()
    with (folder / "results" / "loop_rates.csv").open(newline="") as file:
        rates = list(csv.DictReader(file))
    compared = 0
    for row in summary["rows"]:
        if row["level"].partition("/")[0] not in ("path", "loop"):
            assert row["area_at_0"] is None
            continue
        assert row["area_at_0"] <= row["area"]
        assert row["robust_area_at_0"] <= row["area_at_0"]
        assert row["area_at_0_interval"]["status"] == "refused"  # one log
        key = (row["level"], row["setting"])
        efficiency = [c["efficiency"] for c in curves if (c["level"], c["setting"]) == key]
        for name, of in (("area", "safety"), ("area_at_0", "safety_at_0")):
            safety = [float(r[of]) for r in rates if (r["level"], r["setting"]) == key]
            if safety:
                assert row[name] == pytest.approx(area(safety, efficiency))
                compared += 1
    assert compared == 2 * 2 * 5


def test_how_every_log_ended_is_what_driving_it_tells(
    folder: Path, store: Store, summary: dict[str, Any]
) -> None:
    levels = np.geomspace(0.01, 1.0, 8)
    rows = pq.read_table(folder / "results" / "stops.parquet").to_pylist()
    assert len(rows) == 2 * 5
    for row in rows:
        assert row["log"] == "meeting"
        for k, sensitivity in enumerate(levels) if row["level"] == "loop/annotated" else ():
            driven = drive_log(
                store, log="meeting", sut="unsure", sensitivity=sensitivity, setting=row["setting"]
            )
            ends = driven.by_sut.position_m[-1] if driven.by_sut.stopped[-1] else STEP_M * (FRAMES - 1) + 10
            late = ends - driven.by_truth.position_m[-1] if driven.by_sut.stopped[-1] else np.inf
            assert row["lateness_m"][k] == pytest.approx(late)
            assert row["clearance_m"][k] == pytest.approx(max(PERSON_M - ends, 0.0), abs=1e-6)
            inside = driven.by_sut.position_m > PERSON_M - 1
            fastest = driven.by_sut.speed_mps[inside].max(initial=0.0)
            assert row["speed_at_safety_radius_mps"][k] == pytest.approx(fastest, abs=4.572 * 0.05)
    for row in summary["loop"]:
        (ended,) = (r for r in rows if (r["level"], r["setting"]) == (row["level"], row["setting"]))
        k = int(np.argmin(np.abs(levels - row["sensitivity"])))
        for name in ("lateness_m", "clearance_m", "speed_at_safety_radius_mps"):
            value = ended[name][k] if np.isfinite(ended[name][k]) else None
            assert {row[f"{name}_{part}"] for part in ("min", "p05", "p50", "p95", "max")} == {value}
        assert row["never_stops"] == (row["lateness_m_p50"] is None)


def test_required_rates_are_counted_one_person_at_a_time(folder: Path, store: Store) -> None:
    one = sut_detections(store, "unsure")
    plain = one.settings["identity"]
    false = plain.answers.scores[plain.outcome == 0]
    rows = pq.read_table(folder / "results" / "required.parquet").to_pylist()
    assert len(rows) == FRAMES * len(MUTATIONS)
    for row in rows:
        for name, setting in (("before", "identity"), ("after", row["setting"])):
            answers = one.settings[setting].answers
            at = store.frames.ids.index(row["frame"])
            mine = slice(*answers.offsets[[at, at + 1]])
            true = store.truth.boxes[store.truth.frame == at][0]
            best = [
                s for box, s in zip(answers.boxes[mine], answers.scores[mine], strict=True) if same(box, true)
            ]
            cost = sum(false >= max(best)) / (2 * FRAMES) if best else np.inf
            assert row[name] == cost


def same(box: Any, true: Any) -> bool:
    """Tell whether two boxes overlap by half of their union."""
    left, top = np.maximum(box[:2], true[:2])
    right, bottom = np.minimum(box[2:], true[2:])
    shared = max(right - left, 0) * max(bottom - top, 0)
    sizes = [(b[2] - b[0]) * (b[3] - b[1]) for b in (box, true)]
    return bool(shared >= 0.5 * (sum(sizes) - shared))


def test_people_lost_are_those_whose_rate_rises_beyond_what_is_affordable(
    folder: Path, summary: dict[str, Any]
) -> None:
    rows = pq.read_table(folder / "results" / "required.parquet").to_pylist()
    for found in summary["required"]:
        mine = [row for row in rows if row["setting"] == found["setting"]]
        had = [row for row in mine if row["before"] <= 0.1]
        lost = [row for row in had if row["after"] > 0.1]
        assert found["affordable_before"] == len(had)
        assert found["lost"] == korn_graubard([len(lost)], [len(had)]).value == len(lost) / len(had)
        assert (found["people"], found["logs"], found["frames"]) == (FRAMES, 1, FRAMES)


def test_magnitudes_are_what_the_mutations_do() -> None:
    depth = np.array([1.0, 2.5, 7.0, 30.0])
    alpha = simple_magnitude("haze(visibility_m=20)", depth)
    for metres, value in zip(depth, alpha, strict=True):
        far = np.full((9, 9), metres, np.float32)
        hazy = haze(np.zeros((9, 9, 3), np.uint8), depth_m=far, visibility_m=20.0, color=(255, 255, 255))
        assert hazy[4, 4, 0] == pytest.approx(255 * value, abs=0.6)
    sigma = simple_magnitude("defocus(focus_m=2, kappa=3)", depth)
    np.testing.assert_allclose(
        sigma, blur_radius_px(depth.astype(np.float32), focus_m=2.0, kappa=3.0), rtol=1e-5
    )
    assert plugins.load().get("mutation", "gaussian_blur").simple is None


def simple_magnitude(setting: str, depth_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a mutation says it comes to at some depths."""
    registry = plugins.load()
    (step,) = parse(setting, registry).steps
    magnitude = registry.get("mutation", step.mutation).simple
    assert magnitude is not None
    return magnitude.at(depth_m, **step.options)


def test_the_histogram_is_over_the_pixels_of_the_true_boxes(folder: Path, store: Store) -> None:
    with (folder / "results" / "magnitudes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["setting"] for row in rows} == {MUTATIONS[2], MUTATIONS[3]}
    data = folder.parent / "data"
    pixels: list[NDArray[np.float32]] = []
    for frame, box in zip(store.truth.frame, store.truth.boxes, strict=True):
        depth = np.load(data / (store.frames.ids[frame].replace("/", "/depth/") + ".npy"))
        (left, top), (right, bottom) = np.floor(box[:2]).astype(int), np.ceil(box[2:]).astype(int)
        pixels.append(depth[top:bottom, left:right].ravel())
    every = np.concatenate(pixels).astype(np.float64)
    assert len(every) > 10 * FRAMES
    assert len(np.unique(every)) > 10
    for name in {row["setting"] for row in rows}:
        mine = [row for row in rows if row["setting"] == name]
        assert {(int(row["people"]), int(row["pixels"])) for row in mine} == {(FRAMES, len(every))}
        values = simple_magnitude(name, every)
        edges = [float(row["from"]) for row in mine] + [float(mine[-1]["to"])]
        exact = np.cumsum(np.histogram(values, edges)[0]) / len(every)
        close = np.cumsum([float(row["share"]) for row in mine])
        assert close[-1] == pytest.approx(1)
        np.testing.assert_allclose(close, exact, atol=1 / 32)  # each quantile stands for a 32nd of a box

"""Worst cases compare what was seen on the same frames, and do not depend on the order of mutations."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adverse
from adverse.analysis.confidence import confidence
from adverse.analysis.thresholds import SLACK, chosen_thresholds
from adverse.curves import Area, Ratios, Share, draw, intervals
from analysis.test_context import ROBOT, write_drives
from analysis.test_thresholds import made_up, unsure
from curves.simulated import outcomes


def test_the_worst_of_one_mutation_is_that_mutation(tmp_path: Path) -> None:
    """Also where some of its frames could not be used: the baseline is taken on the others then."""
    write_drives(tmp_path / "data")
    for path in sorted((tmp_path / "data").rglob("depth/*.npy"))[::4]:
        depth = np.load(path)
        depth[0, 0] = np.nan
        np.save(path, depth)
    study = {
        "name": "worst",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "mutations": ["haze(visibility_m=50)"],
        "levels": ["image", "located", "path", "loop"],
        "robot": ROBOT,
        "quarantine_budget": 0.5,
        "robustness": {"bootstrap": 50},
    }
    rows = adverse.run(study, tmp_path / "run", detectors={"unsure": unsure}).rows
    for level in dict.fromkeys(row["level"] for row in rows):
        by_setting = {row["setting"]: row for row in rows if row["level"] == level}
        hazy, clean = by_setting["haze(visibility_m=50)"], by_setting["identity"]
        assert 0 < hazy["frames"] < clean["frames"]
        for figure in ("robust_area", "robustness", "logs", "frames", "truths", "quarantined"):
            assert by_setting["Any"][figure] == hazy[figure], (level, figure)
        assert by_setting["Any"]["robust_area_interval"] == hazy["robust_area_interval"]


def test_the_worst_of_a_family_is_that_of_a_study_with_nothing_else(tmp_path: Path) -> None:
    write_drives(tmp_path / "data")
    study = {
        "name": "families",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "levels": ["image", "located", "path", "loop"],
        "robot": ROBOT,
        "robustness": {"bootstrap": 50},
    }
    hazes, blur = ["haze(visibility_m=50)", "haze(visibility_m=20)"], "gaussian_blur(sigma_px=2)"

    def run(name: str, mutations: list[str]) -> dict[str, Any]:
        adverse.run({**study, "mutations": mutations}, tmp_path / name, detectors={"unsure": unsure})
        summary: dict[str, Any] = json.loads((tmp_path / name / "results" / "summary.json").read_text())
        return summary

    both, alone = run("both", [*hazes, blur]), run("alone", hazes)
    families = {(row["level"], row["family"]): row for row in both["families"]}
    worst = {row["level"]: row for row in alone["rows"] if row["setting"] == "Any"}
    single = {row["level"]: row for row in both["rows"] if row["setting"] == blur}
    assert families.keys() == {(level, family) for level in worst for family in ("haze", "gaussian_blur")}
    for level, row in worst.items():
        haze = families[level, "haze"]
        assert (haze["settings"], haze["worst_setting"] in hazes) == (2, True)
        for figure in ("robust_area", "robustness"):
            assert haze[figure] == pytest.approx(row[figure], abs=2 * SLACK), (level, figure)
        assert families[level, "gaussian_blur"]["robust_area"] == single[level]["robust_area"]
        columns = [set(families[level, family]) for family in ("haze", "gaussian_blur")]
        assert columns[0] == columns[1]  # each of one meaning, for one strength or several
        assert not {"area", "area_interval", "least_safety"} & columns[0]


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_curves_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = outcomes(rng), outcomes(rng)
    third = Ratios(np.minimum(first.num_s, second.num_s), first.den_s, first.num_e, first.den_e)  # many ties
    logs = len(first.den_s)
    resamples = draw([f"log {n}" for n in range(logs)], ["+" if n < 6 else "-" for n in range(logs)], seed=1)
    found = [
        intervals({"area": Area(order), "share": Share(Area((first, *order)), Area((first,)))}, resamples)
        for order in itertools.permutations((first, second, third))
    ]
    for other in found[1:]:
        for name, interval in found[0].items():
            assert (interval.low, interval.high) == pytest.approx(
                (other[name].low, other[name].high), abs=1e-9
            )


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_settings_does_not_choose_thresholds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    events = [made_up(rng, 250) for _ in range(4)]
    compared = [*((one,) for one in events), *itertools.pairwise(events), tuple(events)]
    chosen = chosen_thresholds(250, compared, 0.1, keep=np.array([7]), slack=0.005)
    for order in ([6, 1, 0, 3, 7, 4, 2, 5], [7, 6, 5, 4, 3, 2, 1, 0]):
        again = chosen_thresholds(250, [compared[n] for n in order], 0.1, keep=np.array([7]), slack=0.005)
        np.testing.assert_array_equal(again, chosen)


def by_strength(rng: np.random.Generator, shift: float) -> Ratios:
    """Make up eight logs with people and eight without, by strengths above nine thresholds."""
    thresholds = np.linspace(3, -1, 9)
    hits = (rng.normal(1.5 - shift, 1, (16, 6, 1)) > thresholds).sum(axis=1)
    alarms = (rng.normal(-1, 1, (16, 20, 1)) > thresholds).sum(axis=1)
    people = np.arange(16) < 8
    return Ratios(
        np.where(people[:, None], hits, 0),
        np.where(people, 6, 0),
        np.where(people[:, None], 0, alarms),
        np.where(people, 0, 20),
        fpr_max=1.0,
    )


def test_the_interval_of_a_worst_case_never_reaches_above_that_of_the_clean_area() -> None:
    kinds = [number < 8 for number in range(16)]
    unordered = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        clean, foggy = by_strength(rng, 0.0), by_strength(rng, 0.1)
        draws = draw([f"log{number:02}" for number in range(16)], kinds, seed=seed, count=100)
        curves = {("image", "identity"): clean, ("image", "fog"): foggy}
        worst = (clean, foggy)
        compared = {("image", "identity"): (clean, clean), ("image", "fog"): worst, ("image", "Any"): worst}
        strict = {("image", "identity"): (clean,), ("image", "Any"): worst}
        covers = {
            (at, name): frozenset(["identity", "fog"] if name == "Any" else [name]) for at, name in compared
        }
        sure = confidence(
            curves, compared, "identity", draws, weights={}, conditions={}, at_0=strict, covers=covers
        )
        whole = sure.area["image", "identity"]
        for part in (
            sure.robust_area["image", "fog"],
            sure.area["image", "Any"],
            sure.at_0["image", "Any"],
        ):
            assert None not in (part.value, part.low, part.high, whole.low, whole.high)
            assert part.low <= whole.low  # type: ignore[operator]
            assert part.value <= part.high <= whole.high  # type: ignore[operator]
        alone = intervals({"worst": Area(worst)}, draws)["worst"]
        unordered += alone.high > whole.high or alone.low > whole.low  # type: ignore[operator]
    assert unordered, "by themselves they may contradict each other"


def test_no_worst_case_is_surer_than_what_it_covers() -> None:
    """A gate must not pass the worst of all mutations at a limit where it cannot tell of one of them."""
    unordered = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        settings = {name: by_strength(rng, shift) for name, shift in SHIFTS.items()}
        draws = draw([f"log{number:02}" for number in range(16)], ["x"] * 8 + ["y"] * 8, seed=seed, count=100)
        cases: dict[str, tuple[str, ...]] = {name: (name,) for name in settings}
        cases |= {"AnyMild": ("identity", "fog", "rain"), "Any": (*settings,), "Any fog": ("identity", "fog")}
        compared = {
            ("image", name): tuple(settings[one] for one in dict.fromkeys(("identity", *covered)))
            for name, covered in cases.items()
        }
        sure = confidence(
            {("image", name): curve for name, curve in settings.items()},
            compared,
            "identity",
            draws,
            weights={},
            conditions={},
            at_0={},
            covers={("image", name): frozenset(covered) for name, covered in cases.items()},
        )
        for found in (sure.robustness, sure.robust_area):
            low = {name: one.low for (_, name), one in found.items() if one.low is not None}
            parts = [(a, b) for a in low for b in low if a != b and {*cases[b]} <= {*cases[a]}]
            assert len(parts) >= 7
            assert all(low[case] <= low[part] for case, part in parts)
        wholes = {name: Area(compared["image", name]) for name in cases}
        alone = intervals({name: Share(area, wholes["identity"]) for name, area in wholes.items()}, draws)
        unordered += any(alone["Any"].low > alone[name].low for name in ("fog", "rain", "night"))  # type: ignore[operator]
    assert unordered, "by themselves they may contradict each other"


SHIFTS = {"identity": 0.0, "fog": 0.1, "rain": 0.9, "night": 1.0}

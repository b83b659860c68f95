"""Every number that the explorer shows is that of the results, at every sensitivity."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from adverse.pages.view.curves import comparisons
from adverse.pages.view.pick import picked
from adverse.pages.view.session import ExploredRun
from adverse.report.tradeoffs import LEFT, SIZE, TOP
from adverse.store.finished_run import finished
from adverse.text import setting_text

LEVELS = 100


def curve(run: Path, **names: str) -> dict[str, list[float]]:
    """Return a curve at the shared sensitivities: the last of its points that is no more sensitive."""
    filters = [(name, "==", value) for name, value in names.items()]
    points = pq.read_table(run / "results" / "curves.parquet", filters=filters).to_pydict()
    shared = grid(run, names["sut"])
    at = [sum(own >= threshold for own in points["threshold"]) - 1 for threshold in shared["threshold"]]
    return {
        **shared,
        **{name: [points[name][place] for place in at] for name in ("safety", "efficiency")},
        "at": at,
    }


def grid(run: Path, sut: str) -> dict[str, list[float]]:
    filters = [("sut", "==", sut)]
    return dict(pq.read_table(run / "results" / "sensitivity.parquet", filters=filters).to_pydict())


def overlap(one: list[float], other: list[float]) -> float:
    """Return the intersection over union of two boxes x, y, width, height."""
    wide = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    high = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    shared = max(wide, 0) * max(high, 0)
    return shared / (one[2] * one[3] + other[2] * other[3] - shared)


def numbers(svg: str) -> dict[str, dict[str, list[float]]]:
    """Return the numbers that a chart carries."""
    return dict(json.loads(html.unescape(svg.partition("<metadata>")[2].partition("</metadata>")[0])))


def test_two_settings_have_their_robustness_roc(guest: TestClient, run: Path) -> None:
    level, sut = "image/ROC_B", finished(run).suts[0]
    rows = json.loads((run / "results" / "summary.json").read_text())["rows"]
    for setting in list(finished(run).groups)[1:]:
        pick = {"sut": sut, "level": level, "left": setting, "right": "identity"}
        first = guest.get("/explore.json", params=pick).json()["comparisons"][0]
        (row,) = (r for r in rows if (r["level"], r["sut"], r["setting"]) == (level, sut, setting))
        assert first["title"].endswith(f"area {row['robust_area']:.3f}")
        assert [line["name"] for line in first["legend"][:2]] == ["clean", setting_text(setting)]
        alone = guest.get("/explore.json", params={**pick, "right": setting}).json()["comparisons"][0]
        assert alone["title"] == first["title"]  # with the baseline, where there is one setting
    same = guest.get("/explore.json", params={**pick, "left": "identity"}).json()["comparisons"]
    assert not any("worse of both" in chart["title"] for chart in same)


def test_settings_that_left_out_different_frames_have_no_curve_of_both(run: Path) -> None:
    """But the area that the results have over the frames used in both; of two mutations they have none."""
    explored = ExploredRun(run)
    sut, (clean, one, two) = explored.suts[0], list(explored.settings)[:3]
    assert explored.left_out == {}
    explored.left_out = {(sut, one): frozenset({"a/0"}), (sut, two): frozenset({"b/0"})}
    pick = replace(picked(explored, {}), sut=sut)
    area = explored.rows_of(pick.level, sut)[one]["robust_area"]
    for left, right, words in ((clean, one, f"has area {area:.3f}"), (one, two, "could be used under both")):
        first = comparisons(explored, replace(pick, left=left, right=right))[0]
        assert "not drawn" in first["title"]
        assert first["title"].endswith(words)
        assert first["svg"] == ""
    explored.left_out[sut, two] = explored.left_out[sut, one]  # the same frames
    assert comparisons(explored, replace(pick, left=one, right=two))[0]["svg"]


def test_all_suts_are_drawn_under_each_setting(guest: TestClient, run: Path) -> None:
    level, (left, right) = "image/ROC_A", list(finished(run).groups)[:2]
    page = guest.get("/explore.json", params={"level": level, "left": left, "right": right}).json()
    charts = [chart for chart in page["comparisons"] if chart["title"].startswith("all SUTs")]
    assert len(charts) == 2
    for chart, setting in zip(charts, (left, right), strict=True):
        drawn = numbers(chart["svg"])
        for sut in finished(run).suts:
            filters = [("sut", "==", sut), ("level", "==", level), ("setting", "==", setting)]
            points = pq.read_table(run / "results" / "curves.parquet", filters=filters).to_pydict()
            np.testing.assert_allclose(drawn[sut]["safety: targets found"][::2], points["safety"], rtol=1e-5)


@pytest.mark.parametrize("level", ["image/ROC_A", "image/ROC_B"])
def test_curves_and_thresholds_are_those_of_the_results(guest: TestClient, run: Path, level: str) -> None:
    settings = finished(run).groups
    for sut in finished(run).suts:
        page = guest.get("/explore.json", params={"sut": sut, "level": level}).json()
        for line in page["curves"]["lines"]:
            wanted = curve(run, sut=sut, level=level, setting=line["name"])
            assert line["safety"] == wanted["safety"]
            assert line["efficiency"] == wanted["efficiency"]
            assert line["safety_words"] == [f"{value:.3f}" for value in wanted["safety"]]
            assert page["sensitivity"]["levels"] == wanted["sensitivity"]
            finite = [value if np.isfinite(value) else None for value in wanted["threshold"]]
            assert page["sensitivity"]["thresholds"] == finite
        names = {line["name"] for line in page["curves"]["lines"]}
        assert names == {*list(settings)[:2], "AnyMild", "Any"}


def test_markers_are_where_the_numbers_say(guest: TestClient) -> None:
    page = guest.get("/explore.json", params={"sut": "keen"}).json()
    levels = np.log10(page["sensitivity"]["levels"])
    across = (levels - levels[0]) / (levels[-1] - levels[0])
    for line in page["curves"]["lines"]:
        safety, efficiency = np.array(line["safety"]), np.array(line["efficiency"])
        for spots, x, y in zip(
            line["spots"],
            (efficiency, across, across),
            (safety, safety, efficiency),
            strict=True,
        ):
            wanted = np.stack([LEFT + x * SIZE, TOP + (1 - y) * SIZE], axis=1)
            np.testing.assert_allclose(spots, wanted, atol=0.051)


@pytest.mark.parametrize("sut", ["keen", "dull", "blind"])
def test_boxes_appear_where_their_score_passes_the_threshold(guest: TestClient, run: Path, sut: str) -> None:
    store = finished(run)
    setting = list(store.groups)[1]
    thresholds = np.array(curve(run, sut=sut, level="image/ROC_A", setting=setting)["threshold"])
    table = store.detections(sut, setting).to_pylist()
    answers = {row["frame"]: row for row in table}
    for log in range(len(store.frames.logs)):
        ids = [store.frames.ids[row] for row in np.flatnonzero(store.frames.log == log)]
        for number, frame in enumerate(ids):
            asked = {"sut": sut, "right": setting, "log": store.frames.logs[log], "frame": str(number)}
            page = guest.get("/frame.json", params=asked).json()
            assert page["id"] == frame
            side = page["sides"]["right"]
            counted = sum(score >= thresholds[-1] for score in answers[frame]["scores"])
            assert len(side["found"]) == counted
            for box in side["found"]:
                assert box["score"] in answers[frame]["scores"]
                first = next(k for k in range(LEVELS) if box["score"] >= thresholds[k])
                assert box["since"] == first
                hit = any(overlap(box["box"], true["box"]) >= 0.5 for true in side["true"])
                assert box["kind"] == ("hit" if hit else "false")


@pytest.mark.parametrize("sut", ["keen", "dull"])
def test_frames_add_up_to_what_the_results_say_of_their_log(guest: TestClient, run: Path, sut: str) -> None:
    store = finished(run)
    outcomes = pq.read_table(run / "results" / "outcomes.parquet").to_pylist()
    rows = {(row["sut"], row["level"], row["setting"], row["log"]): row for row in outcomes}
    for setting in store.groups:
        for log in store.frames.logs:
            count = int((store.frames.log == store.frames.logs.index(log)).sum())
            pages = [
                guest.get("/frame.json", params={"sut": sut, "left": setting, "log": log, "frame": n}).json()
                for n in range(count)
            ]
            sides = [next(s for s in page["sides"].values() if s["setting"] == setting) for page in pages]
            wanted = rows[sut, "image/ROC_A", setting, log]
            at = curve(run, sut=sut, level="image/ROC_A", setting=setting)["at"]
            for k in (0, 30, 60, LEVELS - 1):
                found = [box for side in sides for box in side["found"] if box["since"] <= k]
                people = [true for side in sides for true in side["true"]]
                assert len(people) == wanted["truths"]
                assert sum(true["since"] <= k for true in people) == wanted["hits"][at[k]]
                assert sum(box["kind"] == "false" for box in found) == wanted["cost"][at[k]]
                words = [counts_at(side, k) for side in sides]
                assert sum(int(text.split()[0]) for text in words) == wanted["hits"][at[k]]


def counts_at(side: dict[str, Any], k: int) -> str:
    return str([words for start, words in side["steps"] if start <= k][-1])


def test_the_words_about_a_log_are_the_outcomes_of_the_results(guest: TestClient, run: Path) -> None:
    for row in pq.read_table(run / "results" / "outcomes.parquet").to_pylist():
        if row["sut"] != "keen" or row["setting"] != "identity":
            continue
        asked = {"sut": "keen", "level": row["level"], "log": row["log"]}
        steps = guest.get("/explore.json", params=asked).json()["log"]["left"]
        at = curve(run, sut="keen", level=row["level"], setting="identity")["at"]
        for k in range(0, LEVELS, 9):
            words = [text for start, text in steps if start <= k][-1]
            hits, cost = row["hits"][at[k]], row["cost"][at[k]]
            parts = []
            if row["truths"]:
                parts.append(f"{hits} of {row['truths']} found")
            if row["exposure"]:
                plural = "" if cost == 1 else "s"
                parts.append(f"{cost:g} false alarm{plural} on {row['exposure']:g} images")
            assert words == ", ".join(parts)


def test_the_page_and_its_twin_show_the_same(guest: TestClient) -> None:
    asked = {"sut": "keen", "k": "70"}
    page = guest.get("/explore.json", params=asked).json()
    html = guest.get("/explore", params=asked).text
    assert page["sensitivity"]["words"][70] in html
    for line in page["curves"]["lines"]:
        assert f">{line['safety_words'][70]}</td>" in html
    for side in page["frame"]["sides"].values():
        assert f">{counts_at(side, 70)}</span>" in html


def test_answers_to_some_frames_are_those_among_all(driven: Path) -> None:
    store = finished(driven)
    setting = list(store.groups)[1]
    everything = store.answers("sut01", settings=[setting])[setting]
    for log in store.frames.logs[-3:]:
        rows = np.flatnonzero(store.frames.log == store.frames.logs.index(log))
        some = store.answers("sut01", settings=[setting], frames=[store.frames.ids[row] for row in rows])[
            setting
        ]
        np.testing.assert_array_equal(some.frame, rows)
        kept = np.isin(np.repeat(everything.frame, np.diff(everything.offsets)), rows)
        assert kept.any()
        for name in ("boxes", "scores", "labels", "depths_m"):
            np.testing.assert_array_equal(getattr(some, name), getattr(everything, name)[kept])

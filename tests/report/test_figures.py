"""What charts and the table of levels show is what the results hold, in the words of the levels."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from adverse.analysis.choices import worst_settings
from adverse.analysis.results import Summary, read_summary
from adverse.analysis.tradeoffs import read_curves
from adverse.report.prediction_figures import prediction_figures
from adverse.report.run_tables import levels_table
from adverse.report.tradeoffs import Figure, LevelFigures, figures, sut_style
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.text import WORST_CASES


@pytest.fixture(scope="module")
def store(driven: Path) -> Store:
    return finished(driven)


@pytest.fixture(scope="module")
def summary(store: Store) -> Summary:
    return read_summary(store)


@pytest.fixture(scope="module")
def drawn(store: Store, summary: Summary) -> dict[str, LevelFigures]:
    return {level.level: level for level in figures(store, summary)}


def data(svg: str) -> dict[str, dict[str, list[float]]]:
    """Return the numbers that a chart carries."""
    (text,) = re.findall("<metadata>(.*?)</metadata>", svg, re.DOTALL)
    return dict(json.loads(html.unescape(text)))


def test_axes_have_the_words_of_their_level(drawn: dict[str, LevelFigures]) -> None:
    words = {
        "image/ROC_A": ("safety: targets found", "efficiency: false alarms avoided"),
        "loop/annotated": ("safety: stops in time", "efficiency: time not lost"),
    }
    for level, labels in words.items():
        for figure in drawn[level].figures:
            assert all(label in figure.svg for label in labels)
    assert drawn["loop/annotated"].title == "what the robot does"
    assert drawn["loop/annotated"].sentence.startswith("This level judges whole logs")


def test_all_suts_are_on_one_roc(store: Store, drawn: dict[str, LevelFigures]) -> None:
    for level, found in drawn.items():
        chart = found.figures[0]
        curves = {read.sut: read.curves for read in read_curves(store) if read.level == level}
        if len(curves) < 2:
            assert chart.heading != "all SUTs"
            continue
        numbers = data(chart.svg)
        safety = next(name for name in numbers[store.suts[0]] if name.startswith("safety"))
        for sut in store.suts:
            clean = curves[sut][store.run.baseline.id]
            np.testing.assert_allclose(numbers[sut][safety][::2], clean.safety, rtol=1e-5)
            np.testing.assert_allclose(
                numbers[sut][f"{safety} (worst case)"][::2], curves[sut]["Any"].safety, rtol=1e-5
            )
        assert [entry[0] for entry in chart.legend] == list(store.suts)
        marked = {(row["line"], row["sensitivity"]) for row in chart.numbers.data()}
        assert marked == {
            (f"{sut}, {title}", at)
            for sut in store.suts
            for title in ("clean", "worst mild case", "worst case")
            for at in (0.001, 0.01, 0.1)
        }
    assert any(found.figures[0].heading == "all SUTs" for found in drawn.values())


def test_many_suts_can_be_told_apart() -> None:
    assert len({sut_style(number)[:2] for number in range(20)}) == 20


def test_the_filled_area_is_what_the_table_shows(
    store: Store, summary: Summary, drawn: dict[str, LevelFigures]
) -> None:
    seen = 0
    for level, found in drawn.items():
        for sut in store.suts:
            charts = [one for one in found.figures if one.heading == f"{sut}: Robustness ROC"]
            worst = worst_settings(summary, level, sut)
            assert len(charts) == bool(worst)
            for chart, setting in ((charts[0], name) for name in list(worst.values())[:1]):
                numbers = data(chart.svg)["area of the Robustness ROC"]
                across, up = (
                    next(numbers[k] for k in numbers if k.startswith(w)) for w in ("efficiency", "safety")
                )
                high = next(numbers[k] for k in numbers if k.endswith("high"))
                (row,) = (
                    r for r in summary.rows if (r["level"], r["sut"], r["setting"]) == (level, sut, setting)
                )
                assert up == [0.0] * len(up)
                assert np.trapezoid(high, across) == pytest.approx(row["robust_area"], abs=1e-4)
                assert f"{row['robust_area']:.3f} of" in chart.note
                seen += 1
    assert seen > 2


def test_levels_stand_side_by_side(store: Store, summary: Summary) -> None:
    table = levels_table(summary)
    assert table is not None
    levels = list(dict.fromkeys(row["level"] for row in summary.rows))
    assert [name.replace(" ", "/") for name in table.headings[1:]] == levels
    conditions = (store.run.baseline.id, "AnyMild", "Any")
    known = {(row["setting"], row["sut"], row["level"]): row for row in summary.rows}
    texts = iter(table.texts())
    for condition in conditions:
        for sut in store.suts:
            wanted = [known[condition, sut, level] for level in levels]
            shown = [row["status"] if row["area"] is None else f"{row['area']:.3f}" for row in wanted]
            assert [text.rstrip("*?") for text in next(texts)] == [sut, *shown]
    assert list(table.groups.values()) == ["clean", *WORST_CASES.values()]


@pytest.fixture
def predicted(tmp_path: Path) -> list[Any]:
    """The figures about two SUTs, one contextual setting and its histogram of two bins."""
    heads = {"simple": "alpha_blend", "contextual": "haze", "setting": "haze(beta=1)"}
    path = tmp_path / "magnitudes.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("setting", "magnitude", "from", "to", "share"))
        writer.writerows([("haze(beta=1)", "alpha", 0.0, 0.5, 0.7), ("haze(beta=1)", "alpha", 0.5, 1.0, 0.3)])
    summary = Summary(
        {
            "predicted": [
                {"sut": "a", **heads, "observed": 0.5, "predicted": 0.4},
                {"sut": "b", **heads, "observed": 0.9, "predicted": 1.1},
            ],
            "prediction_weights": [
                {**heads, "from": "baseline", "strength": 0.0, "weight": 0.6},
                {**heads, "from": "alpha_blend(alpha=0.5)", "strength": 0.5, "weight": 0.3},
            ],
        }
    )
    return list(prediction_figures(cast(Store, SimpleNamespace(result=lambda _: path)), summary))


def test_predicted_stands_against_observed(predicted: list[Any]) -> None:
    scatter = data(predicted[0].svg)
    assert {sut: [values[0] for values in scatter[sut].values()] for sut in "ab"} == {
        "a": [0.5, 0.4],
        "b": [0.9, 1.1],
    }
    assert predicted[0].svg.count("<circle") == 2
    assert [row["observed"] for row in predicted[0].numbers.data()] == [0.5, 0.9]


def test_weights_stand_beside_what_applies_inside_the_boxes(predicted: list[Any]) -> None:
    numbers = data(predicted[1].svg)
    assert numbers["share of pixels"]["alpha of the haze colour"] == [0.0, 0.5, 0.5, 1.0]
    assert [values for name, values in numbers["share of pixels"].items() if name.endswith("high")] == [
        [0.7, 0.7, 0.3, 0.3]
    ]
    assert [value for value in numbers["weight"]["alpha of the haze colour"] if value is not None] == [
        *(0.0, 0.0, 0.5, 0.5)
    ]
    assert "blur" not in predicted[1].svg


def test_a_run_without_predictions_has_no_figure() -> None:
    assert list(prediction_figures(cast(Store, None), Summary({"predicted": []}))) == []


def test_figures_say_how_many_panels_are_abreast(drawn: dict[str, LevelFigures]) -> None:
    every: list[Figure] = [figure for level in drawn.values() for figure in level.figures]
    assert {figure.across for figure in every} <= {1, 2, 3}
    assert all(figure.svg.count("<g transform") >= figure.across for figure in every)

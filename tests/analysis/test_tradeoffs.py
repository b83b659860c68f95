"""The Robustness ROC that is drawn has the area that tables show, and the worst mutation is the worst."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.analysis.choices import worst_settings
from adverse.analysis.results import Summary
from adverse.analysis.tradeoffs import TradeOff, read_curves, robust_curve
from adverse.store.finished_run import finished

POINTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=12)


def curve(points: list[tuple[int, int]]) -> TradeOff:
    """Return a curve through any points, in eighths."""
    safety, efficiency = (np.array(column) / 8 for column in zip(*points, strict=True))
    falling = np.linspace(1, 0, len(points))
    return TradeOff("c", falling, falling[::-1], safety, efficiency)


def cells(of: TradeOff) -> int:
    """Count the cells of an 8 x 8 grid that a point of the curve dominates."""
    points = list(zip((8 * of.safety).tolist(), (8 * of.efficiency).tolist(), strict=True))
    return sum(any(s > y and e > x for s, e in points) for y in range(8) for x in range(8))


@given(POINTS)
def test_what_is_filled_is_the_area(points: list[tuple[int, int]]) -> None:
    one = curve(points)
    across, up = one.dominated()
    assert (np.diff(across) >= 0).all()
    assert (np.diff(up) <= 0).all()
    assert np.trapezoid(up, across) == pytest.approx(cells(one) / 64)
    assert one.area() == pytest.approx(cells(one) / 64)


@given(st.lists(st.tuples(*[st.integers(0, 8)] * 4), min_size=1, max_size=12))
def test_the_robust_curve_is_the_worse_at_each_threshold(points: list[tuple[int, int, int, int]]) -> None:
    first, second = curve([p[:2] for p in points]), curve([p[2:] for p in points])
    worst = robust_curve(first, second)
    assert worst.safety.tolist() == [min(a, c) / 8 for a, _, c, _ in points]
    assert worst.efficiency.tolist() == [min(b, d) / 8 for _, b, _, d in points]
    assert worst.area() <= min(first.area(), second.area()) + 1e-12
    assert robust_curve(first, first).area() == first.area()


def test_drawn_areas_are_those_of_the_tables(driven: Path) -> None:
    store = finished(driven)
    rows = json.loads((driven / "results" / "summary.json").read_text())["rows"]
    known = {(row["level"], row["sut"], row["setting"]): row["robust_area"] for row in rows}
    seen = 0
    for read in read_curves(store):
        clean = read.curves.get(store.run.baseline.id)
        for setting, mutated in read.curves.items():
            assert clean is not None
            wanted = known[read.level, read.sut, setting]
            assert robust_curve(clean, mutated).area() == pytest.approx(wanted, abs=1e-9)
            seen += 1
    assert seen > 10


def test_the_worst_mutation_leaves_the_smallest_worst_case_area() -> None:
    areas = {
        "a": ("mild", 0.4),
        "b": ("mild", 0.2),
        "c": ("severe", 0.3),
        "d": ("severe", None),
        "e": ("severe", 0.3),
    }
    row = {"level": "path", "sut": "x", "area": 0.0}
    rows = [
        {**row, "setting": "identity", "group": "baseline", "robust_area": 0.0},
        *(
            {**row, "setting": name, "group": group, "robust_area": area}
            for name, (group, area) in areas.items()
        ),
        {**row, "setting": "AnyMild", "group": "mild", "robust_area": 0.0},
        {**row, "setting": "a", "group": "mild", "robust_area": 0.0, "sut": "other"},
        {**row, "setting": "a", "group": "mild", "robust_area": 0.0, "level": "loop"},
    ]
    assert worst_settings(Summary({"rows": rows}), "path", "x") == {"mild": "b", "severe": "c"}
    assert worst_settings(Summary({"rows": rows[:1]}), "path", "x") == {}

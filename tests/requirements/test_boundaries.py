"""Two conditions together, through the search for limits: the boundary of a run that has every point."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from adverse import plugins
from adverse.errors import StudyError
from adverse.report.limits import boundary_table, limit_lines, render_limits, together_table
from adverse.requirements.boundaries import PairSearch, pairs_of
from adverse.requirements.limits import read_limits
from adverse.requirements.limits_run import search_limits
from adverse.requirements.rules import Rule
from adverse.requirements.run_figures import RunFigures
from adverse.store.finished_run import finished
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from analysis.test_compare import write_data
from requirements.test_limits import RULE, Quiet, inline, study

FIRST = {"brightness": {"scale": [0.8, 0.6, 0.4]}}
SECOND = {"gaussian_blur": {"sigma_px": [1.0, 3.0]}}
ONLY = {**RULE, "sut": "keen"}


def test_the_boundary_is_that_of_every_point(tmp_path: Path) -> None:
    write_data(tmp_path / "data", [f"log{number:02}" for number in range(8)])
    section = {"rules": [ONLY], "conditions": [FIRST], "together": [[FIRST, SECOND]]}
    file = study(tmp_path, limits=section)
    found = search_limits(file, tmp_path / "out", inline, watch=Quiet(), stop=Stop())
    assert found is not None
    (boundary,) = found.boundaries
    pair = boundary.pair
    every = study(tmp_path, limits=None, mutations=list(pair.ids.values()))
    run_study(every, tmp_path / "every", InlineEngine(), watch=Quiet(), stop=Stop())
    figures = RunFigures(finished(tmp_path / "every"))

    def holds(first: int, second: int) -> bool:
        rule = Rule.model_validate({**ONLY, "setting": pair.ids.get((first, second), "clean")})
        return (next(iter(figures.figures(rule))).value or 0.0) >= 0.6

    swept = [
        max((i for i in range(4) if all(holds(k, j) for k in range(i + 1))), default=None) for j in range(3)
    ]
    assert list(boundary.limits) == swept
    assert len(set(swept)) > 1  # the second condition matters
    assert boundary.evaluations < len(pair.ids)
    assert found.limits[0].result.limit == boundary.limits[0]
    table = boundary_table(found, pair, found.rules[0])
    assert table.texts()[0][0] == "clean"
    assert len(together_table(found).data()) == 3
    assert "Two conditions at once" in render_limits(found)
    assert limit_lines(found)[-1].endswith(f"takes {3 + len(pair.ids)}.")


def test_what_is_not_defined_is_not_measured_rather_than_broken() -> None:
    section = read_limits({"rules": [RULE], "together": [[FIRST, SECOND]]}, where="limits")
    (pair,) = pairs_of(section, plugins.load(), where="limits")
    rule = Rule.model_validate({**ONLY, "setting": "clean"})
    texts = {}
    for value in (None, 0.1):  # RULE asks for 0.6
        search = PairSearch(pair, rule, "keen")
        figure: Any = SimpleNamespace(value=value, interval=None, doubt="")
        assert search.advance(Mock(return_value=[figure]), pair.ids.values()) == []
        boundary = search.boundary()
        assert boundary.limits == (None, None, None)
        assert [row["measured"] for row in boundary.rows()] == [value is not None] * 3
        found: Any = SimpleNamespace(boundaries=[boundary])
        texts[value] = [row[1] for row in boundary_table(found, pair, rule).texts()]
    assert texts == {None: ["not measured"] * 3, 0.1: ["at no strength"] * 3}


@pytest.mark.parametrize("together", [[[FIRST]], [FIRST], [[FIRST, {"brightness": {"scale": 0.5}}]]])
def test_what_is_no_pair_is_one_error(together: Any) -> None:
    section = read_limits({"rules": [RULE], "together": together}, where="limits")
    with pytest.raises(StudyError):
        pairs_of(section, plugins.load(), where="limits")

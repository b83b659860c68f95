"""Top-k and the mean corruption error, by hand."""

from __future__ import annotations

import pytest

from adverse.benchmarks.classification import hits, mean_corruption_error
from adverse.errors import IncompleteError


def test_top_k_looks_at_the_best_k() -> None:
    ranked = [["a", "b", "c"], ["b", "a"], []]
    assert hits(ranked, ["b", "b", "b"], 1).tolist() == [False, True, False]
    assert hits(ranked, ["b", "b", "b"], 2).tolist() == [True, True, False]


def test_the_reference_has_an_error_of_one_hundred() -> None:
    errors = {"fog": [0.1, 0.2, 0.3], "snow": [0.5, 0.6, 0.9]}
    assert mean_corruption_error(errors, errors) == pytest.approx(100)
    halved = {name: [e / 2 for e in row] for name, row in errors.items()}
    assert mean_corruption_error(halved, errors) == pytest.approx(50)
    assert mean_corruption_error({**errors, "snow": halved["snow"]}, errors) == pytest.approx(75)


@pytest.mark.parametrize("errors", [{}, {"fog": [0.1]}, {"fog": [0.1, 0.2], "snow": []}])
def test_missing_cells_are_refused(errors: dict[str, list[float]]) -> None:
    with pytest.raises(IncompleteError, match="every corruption"):
        mean_corruption_error(errors, {"fog": [0.1, 0.2]} if errors else {})

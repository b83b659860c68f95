"""Rankings against counting resamples one by one."""

from __future__ import annotations

import numpy as np
import pytest

from adverse.curves import Area, Sample, changes, draw, estimate, rank
from adverse.curves.ranking import Place, Ranking
from curves.simulated import NAMES, outcomes


def sample(value: float, values: list[float]) -> Sample:
    curve = outcomes(np.random.default_rng(0))
    return Sample(Area((curve,)), value, 0.1, np.zeros(1), np.array(values), np.ones(len(values)))


def test_probabilities_are_shares_of_resamples() -> None:
    found = rank(
        {
            "b": sample(0.5, [0.5, 0.6, 0.4, 0.7]),
            "a": sample(0.9, [0.9, 0.5, 0.9, 0.7]),
            "c": sample(0.1, [0.1, 0.1, 0.5, 0.1]),
        }
    )
    assert found.places == (
        Place("a", 0.9, 2.5 / 4, 3 / 4),  # first in two of four, shares the fourth
        Place("b", 0.5, 1.5 / 4, 3 / 4),
        Place("c", 0.1, 0.0, None),
    )
    assert found.probability == 2 / 4  # the first and, with a tie, the last


def test_probabilities_of_being_best_sum_to_one() -> None:
    rng = np.random.default_rng(6)
    areas = {f"sut {i}": Area((outcomes(rng, skill=-0.02 * i),)) for i in range(5)}
    found = rank(estimate(areas, draw(NAMES[:11], [0] * 6 + [1] * 5, seed=1)))
    assert sum(place.best for place in found.places) == pytest.approx(1)
    values = [place.value for place in found.places]
    assert values == sorted(values, reverse=True)


def test_what_is_undefined_is_named_not_ranked() -> None:
    found = rank({"a": sample(0.5, [0.5, np.nan]), "b": sample(np.nan, [0.1, 0.2])})
    assert [place.sut for place in found.places] == ["a"]
    assert found.undefined == ("b",)
    assert rank({"a": sample(np.nan, [0.1])}) == Ranking((), None, ("a",))
    assert rank({"a": sample(0.5, [np.nan])}) == Ranking((), None, ("a",))


def best(sut: str, other: str) -> Ranking:
    return Ranking((Place(sut, 0.6, 0.93, 0.93), Place(other, 0.5, 0.07, None)), 0.93)


def test_where_the_choice_changes_in_words() -> None:
    rankings = {
        ("image", "baseline"): best("A", "B"),
        ("image", "Any"): best("B", "A"),
        ("path", "baseline"): best("A", "B"),
        ("path", "Any"): Ranking((), None, ("A", "B")),
    }
    (found,) = changes(rankings, ("image", "path", "loop"), ("baseline", "Any"))
    assert (found.best_before, found.best_after) == ("A", "B")
    assert str(found) == (
        "at level image under baseline A is best (probability 0.93), at level image under Any B (0.93)."
    )
    rankings["path", "baseline"] = best("B", "A")
    across = changes(rankings, ("image", "path"), ("baseline", "Any"))[1]
    assert (across.before, across.after) == (("image", "baseline"), ("path", "baseline"))


def test_a_tie_changes_nothing() -> None:
    """All worth nothing under Any: whoever is named first there is no better choice than before."""
    tied = Ranking((Place("A", 0.0, 0.5, 1.0), Place("B", 0.0, 0.5, None)), 1.0)
    rankings = {("image", "baseline"): best("B", "A"), ("image", "Any"): tied}
    assert changes(rankings, ("image",), ("baseline", "Any")) == []

"""Rankings against counting resamples one by one."""

from __future__ import annotations

import numpy as np
import pytest

from adverse.curves import Area, Difference, Sample, changes, draw, estimate, intervals, rank
from adverse.curves.ranking import Place, Ranking
from adverse.curves.studentized import Spread, most_ahead, spread
from curves.simulated import NAMES, outcomes


def sample(value: float, values: list[float]) -> Sample:
    curve = outcomes(np.random.default_rng(0))
    no = np.zeros(1, np.int64)
    return Sample(value, 0.1, np.zeros(1), no, np.array(values), np.ones(len(values)), Area((curve,)))


def test_probabilities_are_shares_of_resamples() -> None:
    found = rank(
        {
            "b": sample(0.5, [0.5, 0.6, 0.4, 0.7]),
            "a": sample(0.9, [0.9, 0.5, 0.9, 0.7]),
            "c": sample(0.1, [0.1, 0.1, 0.5, 0.1]),
        }
    )
    assert found.places == (
        Place("a", 0.9, 2.5 / 4, 2.5 / 4),  # first in two of four, shares the fourth
        Place("b", 0.5, 1.5 / 4, 3 / 4),
        Place("c", 0.1, 0.0, None),
    )
    assert found.probability == 1 / 4  # the first alone: a tie confirms no order
    assert found.why == ""


def test_no_probability_is_above_what_the_paired_interval_allows() -> None:
    """Few logs whose resamples all agree: the interval of the difference holds 0, so nothing is sure."""
    claims = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        areas = {name: Area((outcomes(rng, skill=skill),)) for name, skill in (("a", 0.0), ("b", -0.15))}
        draws = draw(NAMES[:11], [0] * 6 + [1] * 5, seed=seed)
        samples = estimate(areas, draws)
        spreads = {name: spread(one) for name, one in samples.items()}

        def most(one: str, other: str, of: dict[str, Spread] = spreads) -> float:
            return most_ahead(of[one], of[other])

        found = rank(samples, most=most)
        first, second = found.places
        away = intervals({"away": Difference(areas[first.sut], areas[second.sut])}, draws)["away"]
        assert away.low is not None
        assert first.best is not None
        assert (first.best >= 0.975) <= (away.low > -0.02)  # but for how errors correlate in resamples
        assert (found.probability, first.ahead) == (first.best, first.best)
        assert first.best + (second.best or 0.0) == pytest.approx(1)
        plain = rank(samples).places[0].best or 0.0
        assert first.best <= plain
        claims.append((plain > 0.99, first.best > 0.99))
    assert any(plain and not capped for plain, capped in claims), "a share of resamples alone is too sure"


ZEROS = [0.0] * 4


def test_equals_are_no_order() -> None:
    found = rank({name: sample(0.0, ZEROS) for name in "cab"})
    assert found == Ranking(
        tuple(Place(sut, 0.0, None, None) for sut in "abc"), None, (), "a, b and c are equal"
    )
    below = rank({"a": sample(0.5, [0.5] * 4), "b": sample(0.1 + 0.2, ZEROS), "c": sample(0.3, ZEROS)})
    assert (below.probability, below.why) == (None, "b and c are equal")  # but for rounding
    assert [place.best for place in below.places] == [1, 0, 0]
    assert [place.ahead for place in below.places] == [1, 0.5, None]


def test_equal_but_for_rounding_in_a_resample_is_a_tie() -> None:
    found = rank({"a": sample(0.5, [0.1 + 0.2, 0.3]), "b": sample(0.4, [0.3, 0.1 + 0.2])})
    assert (found.places[0].best, found.places[0].ahead, found.probability) == (0.5, 0.5, 0)


@pytest.mark.parametrize(
    ("doubts", "why"),
    [
        ({"a": "too few logs", "b": "too few logs"}, "a and b: too few logs"),
        ({"b": "too few logs"}, "b: too few logs"),
    ],
)
def test_nothing_is_claimed_in_doubt(doubts: dict[str, str], why: str) -> None:
    found = rank({"a": sample(0.5, [0.5]), "b": sample(0.4, [0.4])}, doubts)
    assert found == Ranking((Place("a", 0.5, None, None), Place("b", 0.4, None, None)), None, (), why)


def test_one_sut_alone_is_not_the_best() -> None:
    assert rank({"a": sample(0.5, [0.5])}) == Ranking(
        (Place("a", 0.5, None, None),), None, (), "there is one SUT alone"
    )


def test_probabilities_of_being_best_sum_to_one() -> None:
    rng = np.random.default_rng(6)
    areas = {f"sut {i}": Area((outcomes(rng, skill=-0.02 * i),)) for i in range(5)}
    found = rank(estimate(areas, draw(NAMES[:11], [0] * 6 + [1] * 5, seed=1)))
    assert sum(place.best or 0.0 for place in found.places) == pytest.approx(1)
    values = [place.value for place in found.places]
    assert values == sorted(values, reverse=True)


def test_what_is_undefined_is_named_not_ranked() -> None:
    found = rank({"a": sample(0.5, [0.5, np.nan]), "b": sample(np.nan, [0.1, 0.2]), "c": sample(0.1, [0, 0])})
    assert [(place.sut, place.best) for place in found.places] == [("a", None), ("c", None)]
    assert (found.undefined, found.why) == (("b",), "b: not defined on these logs")
    nothing = rank({"a": sample(np.nan, [0.1])})
    assert (nothing.places, nothing.probability, nothing.undefined) == ((), None, ("a",))
    never = rank({"a": sample(0.5, [np.nan]), "b": sample(0.4, [0.4])})
    assert (never.probability, never.why) == (None, "not defined in any resample of the logs")


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
        "at level image under baseline A leads (probability 93%), at level image under Any B (93%)."
    )
    rankings["path", "baseline"] = best("B", "A")
    across = changes(rankings, ("image", "path"), ("baseline", "Any"))[1]
    assert (across.before, across.after) == (("image", "baseline"), ("path", "baseline"))


def test_a_tie_changes_nothing() -> None:
    """All worth nothing under Any: whoever is named first there is no better choice than before."""
    tied = rank({"A": sample(0.0, ZEROS), "B": sample(0.0, ZEROS)})
    rankings = {("image", "baseline"): best("B", "A"), ("image", "Any"): tied}
    assert changes(rankings, ("image",), ("baseline", "Any")) == []


def test_what_is_hardly_likely_is_no_change() -> None:
    sure = Ranking((Place("a", 0.9, 0.9, 0.9), Place("b", 0.1, 0.1, None)), 0.9)
    doubtful = Ranking((Place("b", 0.6, 0.57, 0.57), Place("a", 0.5, 0.43, None)), 0.57)
    rankings = {("image", "clean"): sure, ("image", "Any"): doubtful}
    assert changes(rankings, ["image"], ["clean", "Any"]) == []

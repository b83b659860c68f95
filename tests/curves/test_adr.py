"""The average detection rate against the sentence that defines it, written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.curves.detection_rates import REFERENCES, adr, reference_points


def literally(recall: list[float], rates: list[float], references: list[float]) -> float:
    """Recall at the last curve point whose rate does not exceed the reference, else 0; the mean of that."""
    found = []
    for reference in references:
        value = 0.0
        for point, rate in enumerate(rates):
            if rate <= reference:
                value = recall[point]
        found.append(value)
    return sum(found) / len(found)


def test_the_references_are_those_of_the_benchmark() -> None:
    assert len(REFERENCES) == 9
    np.testing.assert_allclose(np.log10(REFERENCES), [-3, -2.75, -2.5, -2.25, -2, -1.75, -1.5, -1.25, -1])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.3)), max_size=20))
def test_equals_its_definition(points: list[tuple[float, float]]) -> None:
    rates = sorted(rate for _, rate in points)
    recall = [value for value, _ in points]
    references = [0.001, 0.01, 0.05, 0.1]
    assert adr(recall, rates, references) == pytest.approx(literally(recall, rates, references))


def test_a_rate_that_equals_a_reference_counts_whatever_the_rounding() -> None:
    rates = [count / 1000 for count in (1, 10, 100)]
    assert reference_points(rates).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert adr([1, 1, 1], [0.001, 0.002, 0.003]) == 1
    assert adr([1.0], [3 * 0.1], [0.3]) == 1  # 3 * 0.1 is a little more than 0.3


def test_mutated_data_is_judged_at_the_points_of_the_baseline() -> None:
    """The mutated SUT may raise any number of alarms: only its recall there counts."""
    assert adr([0.2, 0.4], [0.001, 0.1]) == pytest.approx((8 * 0.2 + 0.4) / 9)


def test_no_truth_is_undefined_and_disorder_refused() -> None:
    assert np.isnan(adr([np.nan], [0.001]))
    with pytest.raises(ValueError, match="rise"):
        adr([1, 1], [0.1, 0.01])
    with pytest.raises(ValueError, match="shape"):
        adr([1, 1], [0.1])

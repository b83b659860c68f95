"""Required false-positive rates against counting, and the orders of magnitude of 000's figure 6."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.curves.detection_rates import required_rate, required_rates

SCORES = st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.7, 0.9]), max_size=20)


@given(SCORES, SCORES)
def test_equals_counting(scores: list[float], false_scores: list[float]) -> None:
    wanted = [sum(false >= score for false in false_scores) / 7 for score in scores]
    np.testing.assert_allclose(required_rate(scores, false_scores, 7), wanted)


def test_orders_of_magnitude_before_and_after() -> None:
    false_scores = np.linspace(0, 1, 1001)[:-1]  # a thousand, evenly spread, on a thousand images
    rates = required_rates(
        [0.99, 0.9995, 0.5, np.nan, np.nan], [0.01, 0.99, np.nan, 0.5, np.nan], false_scores, 1000
    )
    assert rates.before[:2] == pytest.approx([0.01, 0.0])
    assert rates.orders()[0] == pytest.approx(np.log10(99))
    assert rates.orders()[1] == pytest.approx(1)  # from below 1 / 1000 to 1 / 100
    np.testing.assert_array_equal(rates.orders()[2:], [np.inf, -np.inf, np.nan])


def test_without_validation_images_nothing_is_known() -> None:
    assert np.isnan(required_rate([0.5], [0.4], 0)).all()
    with pytest.raises(ValueError, match="not the same"):
        required_rates([0.5], [0.5, 0.4], [], 10)

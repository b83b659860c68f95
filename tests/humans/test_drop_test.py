"""The test of a drop, against scipy's, and how seldom it finds one where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact

from adverse.humans.answers import BINS
from adverse.humans.drop_test import BaseRate, p_of_fewer
from adverse.humans.estimate import EstimateOptions, fit

ALPHA = 0.05


@settings(max_examples=40)
@given(st.integers(1, 60), st.integers(1, 3000), st.data())
def test_p_is_that_of_fishers_exact_test(n: int, base_n: int, data: st.DataObject) -> None:
    hits, base_hits = data.draw(st.integers(0, n)), data.draw(st.integers(0, base_n))
    counts = np.array([[hits]], float), np.array([[n]], float)
    base = BaseRate(np.array([base_hits / base_n]), np.array([float(base_n)]))
    wanted = fisher_exact([[hits, n - hits], [base_hits, base_n - base_hits]], alternative="less").pvalue
    assert p_of_fewer(*counts, base)[0, 0] == pytest.approx(wanted, rel=1e-8)
    quick = p_of_fewer(*counts, base, enough=ALPHA)[0, 0]
    tied = wanted == pytest.approx(ALPHA, rel=1e-8)  # as with 0 of 3 against 3 of 3
    assert quick == pytest.approx(wanted, rel=1e-8) if wanted <= ALPHA or tied else quick > ALPHA


def test_a_known_rate_is_where_more_and_more_answers_on_originals_lead() -> None:
    hits, n = np.arange(26.0)[None], np.full((1, 26), 25.0)
    exact = [binomtest(k, 25, 0.9, alternative="less").pvalue for k in range(26)]
    for answers, close in ((np.inf, 1e-12), (1e7, 1e-3)):
        p = p_of_fewer(hits, n, BaseRate(np.array([0.9]), np.array([answers])))[0]
        np.testing.assert_allclose(p, exact, rtol=close)
    large = p_of_fewer(
        np.full((1, 1), 9.9e4), np.full((1, 1), 1e5), BaseRate(np.array([0.5]), np.array([1e5]))
    )
    assert large[0, 0] == 1


@pytest.mark.parametrize("originals", [50, 200, 1000])
@pytest.mark.parametrize("base", [0.8, 0.95, 0.99, 1.0])
def test_people_who_do_as_well_as_on_originals_seldom_have_a_threshold(base: float, originals: int) -> None:
    """200 studies with 20 bins of 100 answers; a rate taken as exact fails in up to a quarter of them."""
    rng = np.random.default_rng(originals)
    answers = np.where(np.arange(BINS) < 20, 100.0, 0.0) * np.ones((200, 1))
    counted = BaseRate(rng.binomial(originals, base, 200) / originals, np.full(200, float(originals)))
    successes = rng.binomial(answers.astype(int), base).astype(float)
    found = fit(answers, successes, counted, EstimateOptions(alpha=ALPHA)).first >= 0
    assert found.mean() <= ALPHA

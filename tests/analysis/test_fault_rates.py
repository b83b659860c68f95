"""Rates of failed and lost requests, against a slow version that counts requests one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adverse.analysis.fault_rates import fault_rate, fault_remarks, outage_rate, retried_mark

IMAGE = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2))
"""Answered and failed attempts, and outages, that began with one image."""


def store_of(logs: list[list[tuple[int, int, int]]], kills: int = 0) -> Any:
    """Return the part of a run that the rates are worked out from, its images in no order of logs."""
    images = [(f"{log}/{at}", log, *one) for log, some in enumerate(logs) for at, one in enumerate(some)]
    frames = SimpleNamespace(
        ids=tuple(image[0] for image in images),
        log=np.array([image[1] for image in images], np.int64),
        logs=tuple(map(str, range(len(logs)))),
    )
    rows = [
        {
            "frame": name,
            "setting": "identity",
            "attempts": good + bad,
            "failed_attempts": bad,
            "outages": lost,
        }
        for name, _, good, bad, lost in reversed(images)
    ]
    run = SimpleNamespace(kills={"x": kills})
    attempts = pa.Table.from_pylist(rows)
    return SimpleNamespace(frames=frames, attempts=lambda _sut: attempts, run=run, confidence=0.95)


def slowly(trials: list[list[int]], images: int) -> tuple[float, float] | None:
    """Return Korn and Graubard's 95 % interval of the rate of ones among trials by log, 1 or 0 each.

    Together the trials weigh as much as the images that they are about.
    """
    logs = [log for log in trials if log]
    every = [trial for log in logs for trial in log]
    if len(logs) < 2:
        return None
    n, rate = images, sum(every) / len(every)
    weight = images / len(every)
    effect = max(1, 1 + 0.05 * (sum(weight * len(log) for log in logs for _ in log) / len(every) - 1))
    if 0 < rate < 1:
        spread = sum(sum(trial - rate for trial in log) ** 2 for log in logs)
        variance = len(logs) / (len(logs) - 1) * spread / len(every) ** 2
        effect = max(effect, variance / (rate * (1 - rate) / n))
    t_all, t_logs = (stats.t.ppf(0.975, max(freedom, 1)) for freedom in (n - 1, len(logs) - 1))
    n_effective = n / effect * (t_all / t_logs) ** 2
    x = rate * n_effective
    low = stats.beta.ppf(0.025, x, n_effective - x + 1) if rate > 0 else 0.0
    high = stats.beta.ppf(0.975, x + 1, n_effective - x) if rate < 1 else 1.0
    return min(low, rate), max(high, rate)


@given(st.lists(st.lists(IMAGE, min_size=1, max_size=4), min_size=1, max_size=6), st.integers(0, 3))
def test_rates_are_those_of_the_requests_one_by_one(
    logs: list[list[tuple[int, int, int]]], kills: int
) -> None:
    store = store_of(logs, kills)
    faults = [[kind for g, b, _ in log for kind in [0] * g + [1] * b] for log in logs]
    faults[0] += [1] * kills  # whoever did it
    lost = [[kind for g, b, o in log for kind in [0] * (g + b) + [1] * o] for log in logs]
    reached = sum(g + b > 0 for log in logs for g, b, _ in log) + kills
    sent = sum(any(image) for log in logs for image in log)
    rates = ((fault_rate(store, "x"), faults, reached), (outage_rate(store, "x"), lost, sent))
    for rate, trials, images in rates:
        every = [trial for log in trials for trial in log]
        assert rate.value == (pytest.approx(sum(every) / len(every)) if every else None)
        wanted = slowly(trials, images)
        assert (rate.low, rate.high) == (pytest.approx(wanted, abs=1e-9) if wanted else (None, None))


def test_the_cautious_end_is_above_what_was_seen() -> None:
    few = fault_rate(store_of([[(1, 0, 0)]] * 20), "x")
    assert few.value == 0
    assert few.high == pytest.approx(1 - 0.025 ** (1 / 20))  # Clopper-Pearson: one attempt in each log
    many = outage_rate(store_of([[(1, 0, 0)]] * 400), "x")
    assert many.high == pytest.approx(1 - 0.025 ** (1 / 400))


@given(st.lists(st.lists(IMAGE, min_size=1, max_size=4), min_size=2, max_size=6), st.integers(2, 4))
def test_asking_every_image_again_is_no_further_evidence(
    logs: list[list[tuple[int, int, int]]], times: int
) -> None:
    again = [[(times * good, times * bad, times * lost) for good, bad, lost in log] for log in logs]
    for rate in (fault_rate, outage_rate):
        once, repeated = rate(store_of(logs), "x"), rate(store_of(again), "x")
        assert (repeated.value, repeated.low, repeated.high) == pytest.approx(
            (once.value, once.low, once.high), nan_ok=True
        )


@pytest.mark.parametrize("asked_twice", [20, 36])
def test_clean_images_that_are_asked_twice_do_not_narrow_the_interval(asked_twice: int) -> None:
    once = 1 - 0.025 ** (1 / 36)
    twice = [[(2, 0, 0)]] * asked_twice + [[(1, 0, 0)]] * (36 - asked_twice)
    high = fault_rate(store_of(twice), "x").high
    assert high is not None
    assert high >= once - 1e-9


def test_whatever_went_wrong_is_remarked_and_marked() -> None:
    well = dict.fromkeys(("fault", "retried", "outages", "nondeterministic", "failed_attempts"), 0)
    well |= {"planned": 50, "attempts": 79}
    assert fault_remarks("served", well) == []
    assert retried_mark(well) == ""
    (line,) = fault_remarks("served", well | {"outages": 35})
    assert line.startswith("served was unavailable: 35 of 114 requests found no server or memory (30.7%)")
    (line,) = fault_remarks("flaky", well | {"retried": 4, "failed_attempts": 4})
    assert line == "flaky is flaky: 4 of 79 attempts failed and were retried (5.1%)"
    assert retried_mark(well | {"outages": 1}) == retried_mark(well | {"retried": 1}) != ""
    everything = well | {"fault": 2, "retried": 1, "outages": 1, "nondeterministic": 1, "failed_attempts": 5}
    assert len(fault_remarks("sut", everything)) == 4

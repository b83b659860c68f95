"""Strengths that drift over a log: laws of the process, and of the images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adverse import mutations, plugins
from adverse.errors import StudyError
from adverse.mutations.drift import STEEPEST, steps_at, wander
from adverse.mutations.settings import apply_setting, expand, parse
from adverse.seeds import generator
from adverse.types import Image

REGISTRY = plugins.load()
PERIOD_S = 4.0
SCENE = np.random.default_rng(1).integers(0, 255, (24, 32, 3)).astype(np.uint8)
DEPTH = np.linspace(3, 60, 24 * 32, dtype=np.float32).reshape(24, 32)
DRIFTING = (
    "haze(visibility_m=60)",
    "rain(rate_mm_h=50)",
    "snow(rate_mm_h=3)",
    "lens_drops(coverage=0.2)",
    "lens_mud(coverage=0.2)",
    "brightness(scale=0.5)",
    "defocus(focus_m=2, kappa=8)",
    "motion_blur(length_px=9)",
    "jpeg(quality=20)",
)


def _values(time_s: float, draws: int = 1500) -> list[float]:
    return [wander(generator(n, "law"), time_s, PERIOD_S) for n in range(draws)]


def test_the_process_has_mean_0_and_variance_1_at_every_time_and_equal_distributions() -> None:
    first = _values(0.0)
    for time_s in (0.0, 0.37, 50.0, 1e4):
        values = _values(time_s)
        assert np.mean(values) == pytest.approx(0, abs=4 / math.sqrt(len(values)))
        assert np.var(values) == pytest.approx(1, abs=0.15)
        assert stats.ks_2samp(first, values).pvalue > 1e-3 or time_s == 0


def test_neighbours_differ_by_no_more_than_the_bound_and_the_process_moves() -> None:
    step_s = 0.1
    for n in range(20):
        values = [wander(generator(n, "law"), step_s * k, PERIOD_S) for k in range(200)]
        assert np.abs(np.diff(values)).max() <= STEEPEST * step_s / PERIOD_S + 1e-12
        assert np.ptp(values) > 1  # over five periods


def test_correlation_is_lost_over_a_period_and_not_before() -> None:
    now = np.array(_values(3.0))
    near, far = (np.corrcoef(now, _values(3.0 + lag))[0, 1] for lag in (PERIOD_S / 20, 3 * PERIOD_S))
    assert near > 0.9
    assert abs(far) < 0.2


def _strength(setting: str, log: str, time_s: float) -> float:
    parsed = parse(setting, REGISTRY)
    details: dict[str, float] = {}
    steps_at(parsed, REGISTRY, seed=3, log=log, time_s=time_s, details=details)
    return next(iter(details.values()))


def test_the_strength_is_a_multiple_of_its_distance_from_no_change() -> None:
    at = {
        text: [_strength(f"{text} @ drift(spread=0.4)", "a", 0.5 * k) for k in range(40)] for text in DRIFTING
    }
    rates = np.array(at["rain(rate_mm_h=50)"])
    parsed = parse("rain(rate_mm_h=50) @ drift(spread=0.4)", REGISTRY)
    waves = [wander(generator(3, "a", parsed.id, "drift", "0"), 0.5 * k, PERIOD_S) for k in range(40)]
    np.testing.assert_allclose(rates, 50 * np.exp(0.4 * np.array(waves)))
    assert all(0 <= value <= 1 for value in at["brightness(scale=0.5)"])
    assert all(isinstance(value, int) and 1 <= value <= 100 for value in at["jpeg(quality=20)"])
    assert min(at["haze(visibility_m=60)"]) < 60 < max(at["haze(visibility_m=60)"])


def _frame(setting: str, time_s: float, *, log: str = "a") -> Image:
    parsed = parse(setting, REGISTRY)
    return apply_setting(
        SCENE, parsed, REGISTRY, seed=3, key=f"{log}/{time_s}", log=log, time_s=time_s, depth_m=DEPTH
    )


@pytest.mark.parametrize("text", [one for one in DRIFTING if not one.startswith(("rain", "snow"))])
def test_neighbouring_frames_of_a_still_scene_are_nearly_alike_and_far_ones_are_not(text: str) -> None:
    drifting = f"{text} @ drift(spread=0.6, period_s=20)"
    times = [0.0, 0.02, 7.0, 13.0]
    first, next_one, *later = (_frame(drifting, time_s).astype(float) for time_s in times)
    near = np.abs(next_one - first).mean()
    far = max(np.abs(other - first).mean() for other in later)
    assert near < 0.25 * far
    assert far > 0.5


def test_frames_need_no_frame_before_and_logs_drift_apart() -> None:
    text = "haze(visibility_m=60) @ drift"
    alone = _frame(text, 1.5)
    for k in range(5):
        _frame(text, 0.3 * k)
    assert np.array_equal(alone, _frame(text, 1.5))
    assert not np.array_equal(alone, _frame(text, 1.5, log="b"))


def test_no_spread_is_no_drift_to_the_byte() -> None:
    for text in DRIFTING:
        none = parse(f"{text} @ drift(spread=0)", REGISTRY)
        assert none == parse(text, REGISTRY)
        assert np.array_equal(_frame(none.id, 2.0), _frame(text, 2.0))
    assert _frame("rain(rate_mm_h=50)", 2.0).tobytes() == (
        mutations.apply(SCENE, "rain(rate_mm_h=50)", seed=3, key="a/2.0", log="a", depth_m=DEPTH).tobytes()
    )


def test_studies_write_it_in_words_and_what_cannot_drift_is_refused() -> None:
    ((short,), (long,)) = (
        expand({"haze": {"visibility_m": 90}, "coherent": kept}, REGISTRY, where="mutations")
        for kept in ("drift", {"drift": {"spread": 0.5, "period_s": 9}})
    )
    assert short.id == "haze(visibility_m=90) @ drift"
    assert long.id == "haze(visibility_m=90) @ drift(spread=0.5, period_s=9)"
    for text, words in (
        ("c.snow(severity=3) @ drift", "no strength that changes gradually"),
        ("haze(visibility_m=90) @ drift(spread=3)", "value that it cannot take"),
        ("haze(visibility_m=90) @ drift(speed=3)", "no option 'speed'"),
        ("haze(visibility_m=90) @ drift(spread='much')", "not a number"),
    ):
        with pytest.raises(StudyError, match=words):
            parse(text, REGISTRY)

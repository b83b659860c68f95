"""ROC_A and ROC_B against counting by hand at every threshold, and the laws they must keep."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.levels.image import ROC_A, ROC_B, image_outcomes
from adverse.levels.match import FALSE, HIT, IGNORED, false_scores, match_detections
from adverse.levels.outcomes import grid, standardize
from levels.scenes import random_scene

SEEDS = st.integers(0, 10_000)
LEVELS = grid(15, 1e-2, 3)


@given(SEEDS)
@settings(deadline=None)
def test_equals_counting_at_each_threshold(seed: int) -> None:
    answers, truth, frames = random_scene(seed)
    rng = np.random.default_rng(seed + 1)
    counted = rng.random(len(frames.ids)) < 0.8
    judged = match_detections(answers, truth)
    scores = false_scores(judged, counted)
    thresholds = standardize(scores, int(counted.sum()), LEVELS).thresholds
    found = image_outcomes(judged, truth, frames, thresholds, counted)
    people = {frames.log[f] for f in truth.frame}
    for log in range(len(frames.logs)):
        mine = [f for f in range(len(frames.ids)) if frames.log[f] == log and counted[f]]
        real = sum(1 for t in range(len(truth.frame)) if truth.frame[t] in mine and not truth.ignore[t])
        assert found[ROC_A].truths[log] == found[ROC_B].truths[log] == real
        assert found[ROC_A].exposure[log] == len(mine)
        assert found[ROC_B].exposure[log] == (0 if log in people else len(mine))
        for k, threshold in enumerate(thresholds):
            hits = false = alarms = 0
            for f in mine:
                seen = [
                    judged.outcome[d]
                    for d in range(answers.offsets[f], answers.offsets[f + 1])
                    if answers.scores[d] >= threshold
                ]
                hits += seen.count(HIT)
                false += seen.count(FALSE)
                alarms += log not in people and any(o != IGNORED for o in seen)
            assert found[ROC_A].hits[log, k] == hits
            assert found[ROC_A].cost[log, k] == false
            assert found[ROC_B].cost[log, k] == alarms


@given(SEEDS)
@settings(deadline=None)
def test_more_sensitive_never_sees_less(seed: int) -> None:
    answers, truth, frames = random_scene(seed)
    counted = np.ones(len(frames.ids), np.bool_)
    judged = match_detections(answers, truth)
    thresholds = standardize(false_scores(judged, counted), len(frames.ids), LEVELS).thresholds
    for outcomes in image_outcomes(judged, truth, frames, thresholds, counted).values():
        assert (np.diff(outcomes.hits, axis=1) >= 0).all()
        assert (np.diff(outcomes.cost, axis=1) >= 0).all()
        assert (outcomes.hits <= outcomes.truths[:, None]).all()


def test_the_baseline_rate_is_the_level() -> None:
    """On the images the thresholds come from, ROC_A's false positives never exceed the level."""
    answers, truth, frames = random_scene(5, frames=60)
    counted = np.ones(60, np.bool_)
    judged = match_detections(answers, truth)
    thresholds = standardize(false_scores(judged, counted), 60, LEVELS).thresholds
    rates = image_outcomes(judged, truth, frames, thresholds, counted)[ROC_A].false_rate()
    assert (rates <= LEVELS * (1 + 1e-9)).all()


def test_nothing_true_is_undefined_not_zero() -> None:
    answers, truth, frames = random_scene(3)
    parts = {field.name: getattr(truth, field.name) for field in fields(truth)}
    nothing = replace(truth, **{name: part[:0] for name, part in parts.items() if part is not None})
    judged = match_detections(answers, nothing)
    outcomes = image_outcomes(judged, nothing, frames, np.zeros(3, np.float32), np.ones(12, np.bool_))
    assert np.isnan(outcomes[ROC_A].safety()).all()
    assert not np.isnan(outcomes[ROC_A].efficiency(0.1)).any()

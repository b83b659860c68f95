"""Weather and cameras change over time: the strength of a mutation drifts over the frames of a log.

`haze(visibility_m=200) @ drift` is fog that gets thicker and thinner, `brightness(scale=0.5) @ drift` an
exposure that wanders, `motion_blur(length_px=6) @ drift` shake that comes and goes, `rain(rate_mm_h=25) @
drift` showers. The strength at time t is its distance from no change times exp(spread g(t)), where g is a sum
of cosines of random frequency and phase, drawn once for a log. So a frame is made without looking at any
other; all have the same distribution, with the variance of g exactly 1; and g moves by no more than `STEEPEST
/ period_s` a second.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from adverse.errors import StudyError
from adverse.plugins import Plugin, Registry
from adverse.seeds import generator
from adverse.types import Drift, Setting, Step

WAVES = 8
"""Cosines that g is the sum of; their frequencies are spread, with a random part, up to two a period."""
STEEPEST = math.sqrt(2 / WAVES) * 2 * math.pi * sum(2 * (n + 1) / WAVES for n in range(WAVES))
"""The largest slope that g can have, times the period."""
WIDEST_SPREAD, LONGEST_PERIOD_S = 2.0, 1e5
INVERSE = ("visibility_m",)
"""Options that get smaller as the mutation gets stronger, in inverse proportion."""
FRAME_S = 0.1
"""Frames of a log without times count as this long."""


def drift(given: dict[str, Any], *, where: str) -> Drift | None:
    """Check the options of a drift; None where it is of no spread: then nothing drifts."""
    known = Drift()
    for name, value in given.items():
        if name not in Drift._fields:
            wanted = ", ".join(Drift._fields)
            raise StudyError(f"drift has no option {name!r}", where=where, wanted=wanted)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise StudyError(f"{name} of drift is not a number", where=where, got=repr(value))
    found = known._replace(**{name: float(value) for name, value in given.items()})
    if not 0 <= found.spread <= WIDEST_SPREAD or not 0 < found.period_s <= LONGEST_PERIOD_S:
        raise StudyError(
            "a drift has a value that it cannot take",
            where=where,
            got=f"spread {found.spread:g}, period_s {found.period_s:g}",
            wanted=f"spread from 0 to {WIDEST_SPREAD:g}, period_s above 0",
            fix="Write @ drift(spread=0.3, period_s=4).",
        )
    return found if found.spread else None


def drift_words(found: Drift) -> str:
    """Return a drift as ids have it: what differs from the defaults.

    >>> drift_words(Drift()), drift_words(Drift(0.5, 4.0))
    ('drift', 'drift(spread=0.5)')
    """
    named = [
        f"{name}={value:g}" for name, value in found._asdict().items() if value != Drift._field_defaults[name]
    ]
    return f"drift({', '.join(named)})" if named else "drift"


def drifting_option(plugin: Plugin, options: dict[str, Any], *, where: str) -> str:
    """Return the option of a step that drifts, or say that it has none."""
    strength = plugin.searchable
    if strength is not None and strength.option in options:
        return strength.option
    for option in INVERSE:
        if option in options:
            return option
    raise StudyError(
        f"{plugin.name} cannot drift: it has no strength that changes gradually",
        where=where,
        wanted="a mutation with a number that makes it stronger, given in the study",
        fix="Drop @ drift, or take haze, rain, snow, lens_drops, lens_mud, brightness or motion_blur.",
    )


def wander(rng: np.random.Generator, time_s: float, period_s: float) -> float:
    """Return g at a time: of variance 1 over the draw, and as smooth as `STEEPEST` says."""
    frequency = 2 * (np.arange(WAVES) + rng.random(WAVES)) / WAVES / period_s
    phase = 2 * math.pi * rng.random(WAVES)
    return float(math.sqrt(2 / WAVES) * np.cos(2 * math.pi * frequency * time_s + phase).sum())


def steps_at(
    setting: Setting,
    registry: Registry,
    *,
    seed: int,
    log: str,
    time_s: float,
    details: dict[str, float] | None = None,
) -> tuple[Step, ...]:
    """Return the steps of a setting with the strengths of a moment; as they are where nothing drifts.

    `details` takes the strength of each step that drifts.
    """
    if setting.drift is None:
        return setting.steps
    steps = []
    for number, step in enumerate(setting.steps):
        plugin = registry.get("mutation", step.mutation)
        option = drifting_option(plugin, dict(step.options), where=setting.id)
        rng = generator(seed, log, setting.id, "drift", str(number))
        factor = math.exp(setting.drift.spread * wander(rng, time_s, setting.drift.period_s))
        value = _stronger(plugin, option, step.options[option], factor)
        if details is not None:
            details[f"drift_{option}"] = value
        steps.append(replace(step, options={**step.options, option: value}))
    return tuple(steps)


def _stronger(plugin: Plugin, option: str, value: float, factor: float) -> float:
    """Return the value that is so many times as strong, within what the mutation goes to."""
    if option in INVERSE:
        return float(value / factor)
    strength = plugin.searchable
    if strength is None:
        return float(value)
    moved = strength.none + (value - strength.none) * factor
    if (value - strength.none) * (strength.most - strength.none) > 0:
        low, high = sorted((strength.none, strength.most))
        moved = min(max(moved, low), high)
    return round(moved) if strength.whole else float(moved)

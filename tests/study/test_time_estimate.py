"""The time of a study is estimated from images that pay nothing for what is done once, and from that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adverse.study import time_estimate
from adverse.study.job import WorkUnit

SETTINGS, FRAMES = 5, 20
FIRST_S, IMAGE_S = 3.0, 0.01


@pytest.mark.parametrize("in_time", [10, 3])
def test_what_is_done_once_counts_once(monkeypatch: pytest.MonkeyPatch, in_time: int) -> None:
    """Every setting takes long once; only where even that does not end in time each image is said to."""
    cells: Any = [SimpleNamespace(setting=f"s{number}", sut="a") for number in range(SETTINGS)]
    frames: Any = tuple(range(FRAMES))
    unit = WorkUnit("0", frames, tuple(cells), frozenset(), {})
    plan: Any = SimpleNamespace(to_do=[unit], blocked=False, pictures=lambda _: SETTINGS * FRAMES)

    def ends(plan: object, sample: list[WorkUnit], stop: object) -> list[float]:  # noqa: ARG001
        now, seen, found = 0.0, set(), []
        for one in sample[:in_time]:
            setting = one.cells[0].setting
            now += (FIRST_S if setting not in seen else 0.0) + IMAGE_S * len(one.frames)
            seen.add(setting)
            found.append(now)
        return found

    monkeypatch.setattr(time_estimate, "_ends", ends)
    found = time_estimate.estimate_time(plan, workers=2)
    assert found is not None
    per_image = IMAGE_S if in_time == 10 else FIRST_S + IMAGE_S
    once = FIRST_S * SETTINGS if in_time == 10 else 0.0
    assert found.seconds == pytest.approx(once + per_image * SETTINGS * FRAMES / 2)
    assert found.longest_s > found.seconds
    assert found.images == (SETTINGS * 4 if in_time == 10 else 2)

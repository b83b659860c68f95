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
    plan: Any = SimpleNamespace(to_do=[unit, unit], blocked=False, pictures=lambda _: SETTINGS * FRAMES)

    def ends(plan: object, sample: list[WorkUnit], stop: object) -> tuple[list[float], float]:  # noqa: ARG001
        now, seen, found = 0.0, set(), []
        for one in sample[:in_time]:
            setting = one.cells[0].setting
            now += (FIRST_S if setting not in seen else 0.0) + IMAGE_S * len(one.frames)
            seen.add(setting)
            found.append(now)
        return found, 0.0

    monkeypatch.setattr(time_estimate, "_ends", ends)
    found = time_estimate.estimate_time(plan, workers=2)
    assert found is not None
    per_image = IMAGE_S if in_time == 10 else FIRST_S + IMAGE_S
    once = FIRST_S * SETTINGS if in_time == 10 else 0.0
    assert found.seconds == pytest.approx(once + per_image * SETTINGS * FRAMES / 2)
    assert found.longest_s > found.seconds
    assert found.images == (SETTINGS * 4 if in_time == 10 else 2)


@pytest.mark.parametrize(
    ("workers", "units", "busy", "side_by_side"),
    [
        (2, 9, 1.0, 2),
        (6, 9, 1.0, 4),  # more workers than cores: of what computes, four are at work
        (6, 9, 0.25, 6),  # of what waits for a server, all
        (6, 3, 0.25, 3),  # as many as there are pieces of work
        (3, 9, 8.0, 1),  # a SUT that takes more cores than there are
    ],
)
def test_workers_help_as_far_as_there_are_cores_and_work(
    monkeypatch: pytest.MonkeyPatch, workers: int, units: int, busy: float, side_by_side: int
) -> None:
    cells: Any = (SimpleNamespace(setting="s", sut="a"),)
    frames: Any = tuple(range(FRAMES))
    unit = WorkUnit("0", frames, cells, frozenset(), {})
    plan: Any = SimpleNamespace(to_do=[unit] * units, blocked=False, pictures=lambda _: 1200)
    monkeypatch.setattr(time_estimate, "_cores", lambda: 4)
    monkeypatch.setattr(time_estimate, "_ends", lambda *_: ([IMAGE_S, 5 * IMAGE_S], busy))
    found = time_estimate.estimate_time(plan, workers=workers)
    assert found is not None
    assert found.seconds == pytest.approx(IMAGE_S * 1200 / side_by_side)

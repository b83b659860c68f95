"""The time of a study is estimated from images that pay nothing for what is done once, and from that."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adverse.study import time_estimate
from adverse.study.job import WorkUnit

SETTINGS, FRAMES, LOGS = 5, 20, 6
FIRST_S, IMAGE_S = 3.0, 0.01


def frame(path: Path) -> Any:
    return SimpleNamespace(image=SimpleNamespace(path=path))


def planned(units: int, *, settings: int = SETTINGS, frames: list[Any] | None = None, batch: int = 1) -> Any:
    cells: Any = tuple(SimpleNamespace(setting=number, sut=0) for number in range(settings))
    shown: Any = tuple([frame(Path("none"))] * FRAMES if frames is None else frames)
    left = [WorkUnit(str(number), shown, cells, frozenset(), {}) for number in range(units)]
    job = SimpleNamespace(suts=[SimpleNamespace(batch=batch)], settings=cells)
    study = SimpleNamespace(task="detection", levels=("image",), robustness=SimpleNamespace(bootstrap=1000))
    return SimpleNamespace(
        to_do=left,
        units=left,
        blocked=False,
        job=job,
        file=SimpleNamespace(study=study),
        dataset=SimpleNamespace(logs=[SimpleNamespace(split="test")] * LOGS),
        pictures=lambda units: sum(len(unit.frames) * len(unit.cells) for unit in units),
    )


class Crew:
    """Workers that each take the next unit when free: a setting takes long once, and a frame by its size."""

    def __init__(
        self, *, in_time: int | None = None, cores: float = 1.0, unit_s: float = 0.0, **image_s: float
    ) -> None:
        self.in_time, self.cores, self.unit_s, self.image_s = in_time, cores, unit_s, image_s
        self.tried: list[WorkUnit] = []

    def __call__(self, _plan: object, sample: Any, workers: int, _stop: object) -> Any:
        free, seen = [0.0] * workers, [set[int]() for _ in range(workers)]
        ends = []
        for unit in (*sample.warming, *sample.timed):
            who = free.index(min(free))
            new = {cell.setting for cell in unit.cells} - seen[who]
            seen[who] |= new
            shown = sum(self.image_s.get(one.image.path.name, IMAGE_S) for one in unit.frames)
            free[who] += FIRST_S * len(new) + self.unit_s + shown * len(unit.cells)
            ends.append((unit, free[who]))
            self.tried.append(unit)
        ends.sort(key=lambda end: end[1])
        return ends[: self.in_time], self.cores * workers


@pytest.fixture(autouse=True)
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_estimate, "_cores", lambda: 4)


def estimated(monkeypatch: pytest.MonkeyPatch, plan: Any, crew: Crew, workers: int) -> Any:
    monkeypatch.setattr(time_estimate, "_ends", crew)
    return time_estimate.estimate_time(plan, workers=workers)


def test_what_is_done_once_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = estimated(monkeypatch, planned(1), Crew(), workers=1)
    assert found.seconds == pytest.approx(FIRST_S * SETTINGS + IMAGE_S * SETTINGS * FRAMES)
    assert found.images == SETTINGS * (1 + 2 + 4 + 8)


def test_what_a_unit_takes_besides_its_images_counts_as_often_as_in_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a quick SUT that is much of a unit of one frame, and little of one of eight."""
    frames = [frame(Path("none"))] * 8
    found = estimated(monkeypatch, planned(50, frames=frames), Crew(unit_s=0.08), workers=2)
    truth = 2 * FIRST_S * SETTINGS / 2 + 25 * (0.08 + 8 * SETTINGS * IMAGE_S)
    assert found.seconds == pytest.approx(truth, rel=0.02)


def test_a_slow_sut_is_timed_by_what_it_did_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers have warmed up and done two rounds, and one of them a unit of the third."""
    done = 2 * SETTINGS + 5
    found = estimated(monkeypatch, planned(4), Crew(in_time=done), workers=2)
    assert found.seconds == pytest.approx(FIRST_S * SETTINGS + 2 * FRAMES * SETTINGS * IMAGE_S)


def test_results_and_report_are_estimated_by_what_they_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: two curves, seven settings with the worst cases, one SUT; the robot drives six logs."""
    monkeypatch.setattr(time_estimate, "_pace", lambda _crowded: 2.0)
    plan = planned(1)
    found = estimated(monkeypatch, plan, Crew(), workers=1)
    pictures = (SETTINGS + 24) * IMAGE_S
    still = 2.0 + 100 * 1e-4 + 2 * 7 * 0.015 + pictures
    assert found.results_s == pytest.approx(2 * still)
    assert found.with_results_s == found.seconds + found.results_s
    plan.file.study.levels = ("image", "loop")
    driven = still + 2 * 7 * 0.015 + 6 * SETTINGS * time_estimate.DRIVEN_S
    assert estimated(monkeypatch, plan, Crew(), workers=1).results_s == pytest.approx(2 * driven)
    plan.file.study.task, plan.file.study.levels = "classification", ("image",)
    alone = 2.0 + 100 * 1e-4 + pictures
    assert estimated(monkeypatch, plan, Crew(), workers=1).results_s == pytest.approx(2 * alone)


def test_a_crowd_slows_what_comes_after_only_as_far_as_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that wait for a server are no crowd; a slower processor is slower for everything."""
    clocks = iter([0.0, 10.0, 0.0, 10.0])
    monkeypatch.setattr("adverse.study.time_estimate.time.monotonic", lambda: next(clocks))
    used = iter([0.0, 2 * time_estimate.PROBE_S, 0.0, 10.0])
    monkeypatch.setattr("adverse.study.time_estimate.time.process_time", lambda: next(used))
    assert time_estimate._pace(3.0) == pytest.approx(2 * 3.0)
    assert time_estimate._pace(3.0) == pytest.approx(10.0 / time_estimate.PROBE_S)


def test_where_not_even_the_first_images_end_in_time_each_is_said_to_take_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = estimated(monkeypatch, planned(1), Crew(in_time=3), workers=1)
    assert found.seconds == pytest.approx((FIRST_S + IMAGE_S) * SETTINGS * FRAMES)
    assert found.images == 2
    assert estimated(monkeypatch, planned(1), Crew(in_time=1), workers=1) is None


@pytest.mark.parametrize(
    ("workers", "units", "busy", "rounds"),
    [
        (2, 8, 1.0, 4),
        (2, 3, 1.0, 2),  # the third unit is done by one worker while the other waits
        (6, 12, 1.0, 3),  # more workers than cores: of what computes, four are at work
        (6, 12, 0.25, 2),  # of what waits for a server, all
        (6, 3, 0.25, 1),  # as many as there are pieces of work
        (3, 9, 8.0, 3),  # that a SUT wants more cores than there are is in its time already
    ],
)
def test_workers_help_as_far_as_there_are_cores_and_work(
    monkeypatch: pytest.MonkeyPatch, workers: int, units: int, busy: float, rounds: int
) -> None:
    monkeypatch.setitem(globals(), "FIRST_S", 0.0)
    found = estimated(monkeypatch, planned(units, settings=1), Crew(cores=busy), workers)
    assert found.seconds == pytest.approx(IMAGE_S * FRAMES * rounds)


@pytest.mark.parametrize("batch", [1, 16])
def test_large_images_among_small_ones_have_their_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, batch: int
) -> None:
    """The large ones stand together at the end of the data, where a sample of its start would miss them."""
    for name, size in (("small", 10), ("large", 1000)):
        (tmp_path / name).write_bytes(b"0" * size)
    frames = [frame(tmp_path / name) for name in ["small"] * 15 + ["large"] * 5]
    crew = Crew(small=0.01, large=0.5)
    found = estimated(monkeypatch, planned(2, frames=frames, batch=batch), crew, workers=1)
    truth = FIRST_S * SETTINGS + 2 * SETTINGS * (15 * 0.01 + 5 * 0.5)
    assert found.seconds == pytest.approx(truth, rel=0.03)
    assert [len(unit.frames) for unit in crew.tried[SETTINGS:]] == [1, 2, 4, 8, 16][: 4 + (batch > 8)]
    assert {len(unit.cells) for unit in crew.tried[SETTINGS:]} == {SETTINGS}  # decoded once for all

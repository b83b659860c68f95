"""How much of long recordings a first study looks at."""

from __future__ import annotations

from typing import Any

import pytest

from adverse.study.recordings import cut_into_logs, frames_left_out, linked
from adverse.types import Dataset, Frame, Log, Truth

SOURCE: Any = None


def recording(frames: int, rate_hz: float | None) -> Dataset:
    """Return a data set of one recording; without a rate its frames have no times."""
    shots = tuple(
        Frame(f"a/{n}", "a", n, SOURCE, Truth.none(), n, time_s=n / rate_hz if rate_hz else None)
        for n in range(frames)
    )
    return Dataset("a", (), (Log("a", shots),))


@pytest.mark.parametrize(
    ("frames", "rate_hz", "every", "cut"),
    [
        (300, 30, {}, {"seconds": 2.0}),  # ten seconds: all of it
        (795, 10, {"every": 2}, {"seconds": 4.0}),  # a minute and a half: half of the frames
        (4000, 30, {"every": 6}, {"seconds": 6.7}),  # not so few that objects are lost between two
        (108_000, 30, {"every": 6}, {"seconds": 4.0, "keep": 20}),  # an hour
        (3600, 1, {}, {"seconds": 10.0, "keep": 20}),  # an hour at a frame a second: none to leave out
        (5000, None, {}, None),  # no times, so nothing to go by
    ],
)
def test_a_first_run_takes_minutes_whatever_the_length(
    frames: int, rate_hz: float | None, every: dict[str, int], cut: dict[str, float] | None
) -> None:
    whole = recording(frames, rate_hz)
    fewer = frames_left_out(whole, ["root", "every"])
    assert fewer == every
    assert frames_left_out(whole, ["root"]) == {}
    step = fewer.get("every", 1)
    taken = recording(-(-frames // step), rate_hz / step if rate_hz else None)
    assumed: list[str] = []
    made = cut_into_logs(taken, assumed)
    assert made == ({} if cut is None else {"cut": cut})
    assert len(assumed) == (0 if cut is None else len(cut))


def test_frames_are_linked_where_they_are_near_in_time() -> None:
    assert linked(recording(10, 5))
    assert not linked(recording(10, 1))
    assert not linked(recording(10, None))

"""A closed-loop run for people: speed and position over time, the SUT's against the truth's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from adverse.analysis.drive import Driven
from adverse.report.plot import Line, Mark, Panel, svg
from adverse.report.words import shown

HEADER = (
    "by",
    "time_s",
    "position_m",
    "speed_mps",
    "safe_speed_mps",
    "obstacle_m",
    "stopped",
    "violating",
)


def rows(driven: Driven) -> Iterator[tuple[object, ...]]:
    """Yield a header and a row for every step of both runs."""
    yield HEADER
    for name, run in ((driven.sut, driven.by_sut), ("truth", driven.by_truth)):
        for step in zip(*run, strict=True):
            numbers = [f"{value:.6g}" for value in step[:5]]
            yield (name, *numbers, int(step[5]), int(step[6]))


def picture(driven: Driven) -> str:
    """Draw both runs; stops and violations of the safety radius are marked."""
    sut, truth = driven.by_sut, driven.by_truth
    words = {True: "safe", False: "NOT SAFE: it stops too late or not at all", None: "nothing to stop for"}
    title = f"{shown(driven.log)}, {driven.sut}, {driven.setting}: {words[driven.safe]}"
    stops = [Mark("stop", float(time)) for time in sut.time_s[sut.stopped]]
    violations = np.flatnonzero(sut.violating)
    if len(violations):
        stops.append(Mark("inside the safety radius", float(sut.time_s[violations[0]])))
    return svg(
        title,
        [
            Panel(
                "speed, m/s",
                "time, s",
                [
                    Line(driven.sut, sut.time_s, sut.speed_mps),
                    Line("truth", truth.time_s, truth.speed_mps, dashed=True),
                    Line(f"safe speed by {driven.sut}", sut.time_s, sut.safe_speed_mps, dashed=True),
                ],
                stops,
            ),
            Panel(
                "position along the path, m",
                "time, s",
                [
                    Line(driven.sut, sut.time_s, sut.position_m),
                    Line("truth", truth.time_s, truth.position_m, dashed=True),
                ],
            ),
        ],
    )

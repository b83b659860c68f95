"""The closed loop beside the frame: how the robot drives the picked log, and where it is at this frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adverse.analysis.loop import Driven, Driver, drive_detections
from adverse.errors import AdverseError
from adverse.pages.view.picks import Pick
from adverse.pages.view.session import ExploredRun
from adverse.report.chart import Chart, Line, Mark, Panel, time_panel
from adverse.report.tradeoffs import style_of
from adverse.robot.playback import Trace
from adverse.robot.vehicle import TOUCHING_M
from adverse.text import shown

WIDTH = 340
TRUTH_COLOUR = "#009e73"
DASHES = {"right": "7 4", "truth": "2 3"}
NO_LOOP = (
    "The study has no level loop, so there is no closed-loop playback. Add loop to levels: in the study "
    "and run it again."
)
SAFE = {True: "stops in time", False: "does NOT stop in time", None: "has nothing to stop for"}


def drive_panels(run: ExploredRun, pick: Pick) -> dict[str, Any]:
    """Return speed and position over time as SVG, and for every frame of the log where each run passes it."""
    context = run.context(pick.log)
    if context.robot is None or not any(level["drives"] for level in run.summary.data["levels"].values()):
        return {"why": NO_LOOP}
    try:
        driven = {side: _driven(run, pick, setting) for side, setting in pick.sides.items()}
    except AdverseError as error:
        return {"why": f"{error.what[:1].upper()}{error.what[1:]}."}
    runs = [
        (side, f"{side}: {shown(one.sut)} under {shown(one.setting)}", style_of(number)[0], one.by_sut)
        for number, (side, one) in enumerate(driven.items())
    ]
    truth = next(iter(driven.values())).by_truth
    runs.append(("truth", "driven by the ground truth", TRUTH_COLOUR, truth))
    marks = [mark for side, one in driven.items() for mark in _marks(side, one)]
    panels = (
        time_panel("speed, m/s", "time, s", [_line(*run, "speed_mps") for run in runs], marks, width=WIDTH),
        time_panel(
            "position along the path, m", "time, s", [_line(*run, "position_m") for run in runs], width=WIDTH
        ),
    )
    stations = context.stations[run.logs[pick.log].rows]
    passed = [[_passes(trace, float(place)) for place in stations] for *_, trace in runs]
    return {
        "why": None,
        "size": (WIDTH, panels[0].size.height),
        "panels": [
            {
                "title": panel.title,
                "svg": Chart(f"{panel.title} over time", [panel], standing_alone=False).svg(),
            }
            for panel in panels
        ],
        "runs": [
            {
                "side": side,
                "name": name,
                "colour": colour,
                "dashes": DASHES.get(side, ""),
                "spots": _spots(panels, trace, at),
            }
            for (side, name, colour, trace), at in zip(runs, passed, strict=True)
        ],
        "verdicts": [f"{side} {_verdict(one)}" for side, one in driven.items()],
        "frames": [_row(float(place), runs, [at[n] for at in passed]) for n, place in enumerate(stations)],
    }


def _verdict(one: Driven) -> str:
    stops = int(one.by_sut.stopped.sum())
    if one.positive or not stops:
        return SAFE[one.safe]
    return f"has nothing to stop for, and stops {'once' if stops == 1 else f'{stops} times'}"


def _driven(run: ExploredRun, pick: Pick, setting: str) -> Driven:
    grid = run.grid(pick.sut)
    driver = Driver(pick.sut, setting, float(grid.levels[pick.k]), float(grid.thresholds[pick.k]))
    kind = pick.level.partition("/")[2]
    context = run.context(pick.log)
    known = kind if kind in context.truths else None
    matched, placed = run.judged(pick.sut, setting, pick.log), run.seen(pick.sut, setting, pick.log)
    return drive_detections(context, matched, driver, pick.log, kind=known, placed=placed)


def _line(side: str, name: str, colour: str, trace: Trace, column: str) -> Line:
    dashes = DASHES.get(side, "")
    return Line(name, trace.time_s, getattr(trace, column), colour, dashes)


def _marks(side: str, driven: Driven) -> list[Mark]:
    trace = driven.by_sut
    marks = [Mark(f"{side} stops", float(time)) for time in trace.time_s[trace.stopped][:3]]
    inside = np.flatnonzero(trace.violating)
    if len(inside):
        marks.append(Mark(f"{side} too close", float(trace.time_s[inside[0]])))
    return marks


def _passes(trace: Trace, station_m: float) -> int | None:
    """Return the step at which a run passes the place of a frame; None if it stops before that.

    A run that goes on to the end of its log passes the last frames within its last step.
    """
    if not np.isfinite(station_m):
        return None
    step = int(np.searchsorted(trace.position_m, station_m - TOUCHING_M))
    if step < len(trace.position_m):
        return step
    return None if trace.stopped[-1] else len(trace.position_m) - 1


def _spots(panels: Sequence[Panel], trace: Trace, passed: list[int | None]) -> list[list[list[float]] | None]:
    """Return for every frame where the run's dot is on each panel."""
    values = (trace.speed_mps, trace.position_m)
    return [
        None
        if step is None
        else [
            [round(place, 1) for place in panel.place(trace.time_s[step], value[step]).tolist()]
            for panel, value in zip(panels, values, strict=True)
        ]
        for step in passed
    ]


def _row(
    station_m: float, runs: list[tuple[str, str, str, Trace]], steps: list[int | None]
) -> dict[str, Any]:
    """Return where one frame was taken, and when and how fast each run passes it."""
    row: dict[str, Any] = {"place_m": station_m if np.isfinite(station_m) else None, "passed": {}}
    words = []
    for (side, _, _, trace), step in zip(runs, steps, strict=True):
        if step is None:
            row["passed"][side] = None
            words.append(f"{side}: stops before it")
        else:
            time, speed = float(trace.time_s[step]), float(trace.speed_mps[step])
            row["passed"][side] = {"time_s": time, "speed_mps": speed}
            words.append(f"{side}: after {time:.2f} s at {speed:.2f} m/s")
    return {**row, "words": "; ".join(words)}

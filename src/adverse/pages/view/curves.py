"""What the explorer draws beside the frames: trade-off curves, and the robot in closed loop.

Curves are drawn once, with a marker for each that the page moves by picking. Every place that a marker can
take, and every number beside it, is worked out here for all sensitivities. The closed loop shows how the
robot drives the picked log, and where it is at this frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adverse.analysis.detections import SharedSensitivity
from adverse.analysis.loop import Driven, Driver, drive_detections
from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.tradeoffs import robust_curve
from adverse.errors import AdverseError
from adverse.pages.view.pick import Pick
from adverse.pages.view.session import ExploredRun
from adverse.report.chart import Chart, Line, Mark, Panel, time_panel
from adverse.report.intervals import summary_interval
from adverse.report.tradeoffs import (
    AXES,
    BASELINE_STYLE,
    FONT_PX,
    MUTATED_STYLE,
    PANEL_SIZE,
    ROBUST_LEGEND,
    robust_panel,
    style_of,
    sut_style,
    suts_panel,
)
from adverse.report.tradeoffs import curve_panels as drawn_panels
from adverse.robot.playback import Trace
from adverse.robot.vehicle import TOUCHING_M
from adverse.text import counted, setting_text, shown

PANELS = ("safety against efficiency", "safety against sensitivity", "efficiency against sensitivity")
SHAPES = ("circle", "diamond", "dot", "dot", "dot")
"""The marker of each line; those of the two settings that are looked at are larger."""


def curve_panels(run: ExploredRun, pick: Pick) -> dict[str, Any]:
    """Return the three panels as SVG and, for each line, its values and its markers' places at all levels."""
    curves = run.curves(pick.sut, pick.level)
    roles = _roles(run, pick)
    drawn = [(name, curves[name]) for name in roles if name in curves]
    missing = [f"{setting_text(name)}: the data cannot answer this" for name in roles if name not in curves]
    rows = run.rows_of(pick.level, pick.sut)
    size = (PANEL_SIZE.width, PANEL_SIZE.height)
    if not drawn:
        return {"panels": [], "lines": [], "missing": missing, "size": size}
    grid = run.grid(pick.sut)
    words = run.words_of(pick.level)
    panels = drawn_panels([curve for _, curve in drawn], run.sensitivity_ends, words, marked=())
    lines = []
    for number, (name, curve) in enumerate(drawn):
        colour, dashes, _ = style_of(number)
        at = run.curve_places(pick.sut, pick.level, name)
        picked = {"sensitivity": grid.levels, "safety": curve.safety[at], "efficiency": curve.efficiency[at]}
        spots = np.array(
            [panel.place(picked[x], picked[y]) for panel, (x, y) in zip(panels, AXES, strict=True)]
        )
        lines.append(
            {
                "name": name,
                "roles": roles[name],
                "colour": colour,
                "dashes": dashes,
                "shape": SHAPES[number],
                "area": rows[name]["area"],
                "area_words": f"{rows[name]['area']:.3f}",
                "interval_words": summary_interval(rows[name].get("area_interval")),
                "safety": curve.safety[at].tolist(),
                "efficiency": curve.efficiency[at].tolist(),
                "safety_words": [f"{value:.3f}" for value in curve.safety[at]],
                "efficiency_words": [f"{value:.3f}" for value in curve.efficiency[at]],
                "spots": spots.round(1).tolist(),
            }
        )
    title = f"{shown(pick.sut)} at level {pick.level}"
    charts = [
        Chart(f"{title}: {words}", [panel], standing_alone=False, font_px=FONT_PX)
        for words, panel in zip(PANELS, panels, strict=True)
    ]
    drawings = [{"title": words, "svg": chart.svg()} for words, chart in zip(PANELS, charts, strict=True)]
    return {
        "panels": drawings,
        "lines": lines,
        "missing": missing,
        "size": (PANEL_SIZE.width, PANEL_SIZE.height),
    }


def comparisons(run: ExploredRun, pick: Pick) -> list[dict[str, Any]]:
    """Return what two settings leave of the SUT's curve, and all SUTs under each, as SVG with legends."""
    words = run.words_of(pick.level)
    curves = run.curves(pick.sut, pick.level)
    charts = []
    sides = list(pick.sides.values())
    pair = sides if len(sides) > 1 else [run.baseline, *sides]
    if len(set(pair)) > 1 and set(pair) <= set(curves):
        pair.sort(key=lambda name: name != run.baseline)
        charts.append(_both(run, pick, pair))
    for setting in sides:
        suts = {sut: run.curves(sut, pick.level).get(setting) for sut in run.suts}
        drawn = [replace(curve, name=sut) for sut, curve in suts.items() if curve is not None]
        if len(drawn) > 1:
            legend = [(curve.name, *sut_style(number)[:2]) for number, curve in enumerate(drawn)]
            title = f"all SUTs under {setting_text(setting)}"
            charts.append(_comparison(title, suts_panel(drawn, words, ""), legend))
    return charts


def _both(run: ExploredRun, pick: Pick, pair: Sequence[str]) -> dict[str, Any]:
    """Return the Robustness ROC of two settings; words alone where they left out different frames."""
    if len({run.left_out.get((pick.sut, name)) for name in pair}) > 1:
        return {"title": _uneven_words(run, pick, pair), "svg": "", "legend": []}
    curves = run.curves(pick.sut, pick.level)
    first, second = (curves[name] for name in pair)
    if not np.array_equal(first.threshold, second.threshold):
        return {"title": "both were run on different logs: the run stopped early", "svg": "", "legend": []}
    worst = robust_curve(first, second).area()
    title = f"{shown(pick.sut)}: the worse of both at every threshold, area {worst:.3f}"
    legend = [
        (setting_text(pair[0]), *BASELINE_STYLE[:2]),
        (setting_text(pair[1]), *MUTATED_STYLE[:2]),
        ROBUST_LEGEND,
    ]
    return _comparison(title, robust_panel(first, second, run.words_of(pick.level), ""), legend)


def _uneven_words(run: ExploredRun, pick: Pick, pair: Sequence[str]) -> str:
    """Say that two settings left out different frames, and what the results have of those used in both."""
    text = f"{shown(pick.sut)}: not drawn, as not the same frames could be used under both"
    if pair[0] != run.baseline:
        return text
    area = run.rows_of(pick.level, pick.sut)[pair[1]]["robust_area"]
    worse = "undefined" if area is None else f"{area:.3f}"
    return f"{text}; on those that could, the worse of both has area {worse}"


def _comparison(title: str, panel: Panel, legend: list[tuple[str, str, str]]) -> dict[str, Any]:
    chart = Chart(title, [replace(panel, size=PANEL_SIZE)], standing_alone=False, font_px=FONT_PX)
    names = ("name", "colour", "dashes")
    return {
        "title": title,
        "svg": chart.svg(),
        "legend": [dict(zip(names, entry, strict=True)) for entry in legend],
    }


def sensitivity_words(grid: SharedSensitivity, operating: int, score: float | None) -> list[str]:
    """Say for each sensitivity what it means for this SUT, and at which the grid and the report count."""
    words = []
    for place, (level, threshold, resolved) in enumerate(
        zip(grid.levels, grid.thresholds, grid.resolved, strict=True)
    ):
        text = f"{level:.3g} expected false positives per image"
        if np.isfinite(threshold):
            text += f": a box counts from score {threshold:.4f}"
        else:
            text += ": every box counts" if threshold < 0 else ": no box counts"
        if place == operating:
            text += "; includes all that counts in report and grid"
            text += f" (from score {score:.4f})" if score is not None else ""
        words.append(text if resolved else f"{text} (finer than the validation images can tell)")
    return words


def log_words(run: ExploredRun, pick: Pick, setting: str) -> list[tuple[int, str]]:
    """Say what the results hold of this log at this level, from which sensitivity on."""
    outcome = run.outcome((pick.sut, pick.level, setting, pick.log))
    if outcome is None:
        return [(0, "has no result at this level")]
    level = run.words_of(pick.level)
    steps: list[tuple[int, str]] = []
    for k, place in enumerate(run.curve_places(pick.sut, pick.level, setting).tolist()):
        words = _outcome_words(level, outcome, outcome["hits"][place], outcome["cost"][place])
        if not steps or steps[-1][1] != words:
            steps.append((k, words))
    return steps


def _outcome_words(level: Mapping[str, Any], outcome: dict[str, Any], hits: int, cost: float) -> str:
    parts = []
    truths, exposure = outcome["truths"], outcome["exposure"]
    if truths:
        well_or_badly = level["per_log"]
        parts.append(
            well_or_badly[hits != truths] if well_or_badly else f"{hits} of {truths} {level['hits']}"
        )
    if exposure and level["cost"] == "time":
        parts.append(f"takes {cost:.1f} s where the truth takes {exposure:.1f} s")
    elif exposure:
        parts.append(f"{counted(round(cost), 'false alarm')} on {counted(round(exposure), 'image')}")
    return ", ".join(parts)


def _roles(run: ExploredRun, pick: Pick) -> dict[str, str]:
    """Return the lines to draw, and what each is here for; the two settings first."""
    roles = {setting: side for side, setting in pick.sides.items()}
    others = {run.baseline: "for reference", ANY_MILD: "of mild mutations", ANY: "of all mutations"}
    for name, role in others.items():
        roles.setdefault(name, role)
    return roles


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
    drives = any(level["drives"] for level in run.summary.data["levels"].values())
    if not run.store.run.robot or not drives:
        return {"why": NO_LOOP}
    context = run.context(pick.log)
    try:
        driven = {side: _driven(run, pick, setting) for side, setting in pick.sides.items()}
    except AdverseError as error:
        return {"why": f"{error.what[:1].upper()}{error.what[1:]}."}
    runs = [
        (
            side,
            f"{side}: {shown(drive.sut)} under {setting_text(drive.setting)}",
            style_of(number)[0],
            drive.by_sut,
        )
        for number, (side, drive) in enumerate(driven.items())
    ]
    truth = next(iter(driven.values())).by_truth
    runs.append(("truth", "driven by the ground truth", TRUTH_COLOUR, truth))
    marks = [mark for side, drive in driven.items() for mark in _marks(side, drive)]
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
        "verdicts": [f"{side} {_verdict(drive)}" for side, drive in driven.items()],
        "frames": [_row(float(place), runs, [at[n] for at in passed]) for n, place in enumerate(stations)],
    }


def _verdict(drive: Driven) -> str:
    stops = int(drive.by_sut.stopped.sum())
    if drive.positive or not stops:
        return SAFE[drive.safe]
    return f"has nothing to stop for, and stops {'once' if stops == 1 else f'{stops} times'}"


def _driven(run: ExploredRun, pick: Pick, setting: str) -> Driven:
    grid = run.grid(pick.sut)
    driver = Driver(pick.sut, setting, float(grid.levels[pick.k]), float(grid.thresholds[pick.k]))
    kind = pick.level.partition("/")[2]
    context = run.context(pick.log)
    positions = kind if kind in context.truths else None
    matched, placed = run.judged(pick.sut, setting, pick.log), run.seen(pick.sut, setting, pick.log)
    return drive_detections(context, matched, driver, pick.log, kind=positions, placed=placed)


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

"""Trade-off curves for the explorer: drawn once, with a marker for each that the page moves by picking.

Every place that a marker can take, and every number beside it, is worked out here for all sensitivities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adverse.analysis.score import ANY, ANY_MILD
from adverse.pages.view.picks import Pick
from adverse.pages.view.session import ExploredRun, Grid
from adverse.report.chart import Chart
from adverse.report.intervals import summary_interval
from adverse.report.tradeoffs import FONT_PX, PANEL_SIZE, style_of
from adverse.report.tradeoffs import curve_panels as drawn_panels
from adverse.text import counted, shown

PANELS = ("safety against efficiency", "safety against sensitivity", "efficiency against sensitivity")
SHAPES = ("circle", "diamond", "dot", "dot", "dot")
"""The marker of each line; those of the two settings that are looked at are larger."""


def curve_panels(run: ExploredRun, pick: Pick) -> dict[str, Any]:
    """Return the three panels as SVG and, for each line, its values and its markers' places at all levels."""
    known = run.curves(pick.sut, pick.level)
    roles = _roles(run, pick)
    drawn = [(name, known[name]) for name in roles if name in known]
    missing = [f"{shown(name)}: the data cannot answer this" for name in roles if name not in known]
    rows = run.rows_of(pick.level, pick.sut)
    size = (PANEL_SIZE.width, PANEL_SIZE.height)
    if not drawn:
        return {"panels": [], "lines": [], "missing": missing, "size": size}
    grid = run.grid(pick.sut)
    panels = drawn_panels([curve for _, curve in drawn], run.sensitivity_ends, marked=())
    lines = []
    for number, (name, curve) in enumerate(drawn):
        colour, dashes, _ = style_of(number)
        at = run.places(pick.sut, pick.level)
        picked = {"sensitivity": grid.levels, "safety": curve.safety[at], "efficiency": curve.efficiency[at]}
        spots = np.array([panel.place(picked[panel.x.label], picked[panel.y.label]) for panel in panels])
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


def sensitivity_words(grid: Grid) -> list[str]:
    """Say for each sensitivity what it means for this SUT."""
    words = []
    for level, threshold, resolved in zip(grid.levels, grid.thresholds, grid.resolved, strict=True):
        text = f"{level:.3g} expected false positives per image"
        if np.isfinite(threshold):
            text += f": a box counts from score {threshold:.4f}"
        else:
            text += ": every box counts" if threshold < 0 else ": no box counts"
        words.append(text if resolved else f"{text} (finer than the validation images can tell)")
    return words


def log_words(run: ExploredRun, pick: Pick, setting: str) -> list[tuple[int, str]]:
    """Say what the results hold of this log at this level, from which sensitivity on."""
    outcome = run.outcome((pick.sut, pick.level, setting, pick.log))
    if outcome is None:
        return [(0, "has no result at this level")]
    level = run.words_of(pick.level)
    steps: list[tuple[int, str]] = []
    for k, place in enumerate(run.places(pick.sut, pick.level).tolist()):
        words = _outcome_words(level, outcome, outcome["hits"][place], outcome["cost"][place])
        if not steps or steps[-1][1] != words:
            steps.append((k, words))
    return steps


def _outcome_words(level: dict[str, Any], outcome: dict[str, Any], hits: int, cost: float) -> str:
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
    for name, role in ((run.baseline, "baseline"), (ANY_MILD, "worst mild case"), (ANY, "worst case")):
        roles.setdefault(name, role)
    return roles

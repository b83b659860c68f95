"""The thresholds of a human study: in words, as a table, as charts, and all of it on a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse.curves.interval import interval_cells
from adverse.humans.answers import Judgments
from adverse.humans.estimate import Estimate, EstimateOptions
from adverse.humans.estimates_file import Reuse, counts_in_words
from adverse.humans.thresholds import FOUND, INSUFFICIENT, Kind
from adverse.report.chart import Axis, Band, Chart, Dots, Line, Mark, Panel, PanelSize
from adverse.report.layout import rendered
from adverse.report.table import Cell, Table, columns
from adverse.text import shown

WORSE: dict[Kind, str] = {
    "correctness": "less often right than on the originals",
    "prediction": "less often of the opinion that most had on the original than for barely changed images",
}

USUAL = 0.9
"""Share of the draws that show what all participants show, unless a few of them decide."""


def in_words(estimate: Estimate) -> str:
    """Say what was estimated, so that it can stand in a document.

    >>> in_words(Estimate("haze", "correctness", "insufficient", "vif", "2 bins with more than 10 answers"))
    't_c of haze: cannot be estimated; 2 bins with more than 10 answers'
    """
    head = f"{estimate.symbol} of {shown(estimate.transformation)}"
    if estimate.status == INSUFFICIENT:
        return f"{head}: cannot be estimated; {estimate.why}"
    counted = f" of {estimate.base_answers} answers" if estimate.base_answers else ", given"
    compared = f"({estimate.base:.1%}{counted})"
    if estimate.compat:
        return _as_script(estimate, head, compared)
    reasons = (
        (estimate.tied, "people are tied on the original"),
        (estimate.unseen, "nobody saw the original"),
    )
    for answers, reason in reasons:
        if answers:
            compared += f", {answers} answers left out because {reason}"
    if estimate.status != FOUND:
        words = (
            f"{head}: tolerated up to a visual change of {estimate.tolerated_to:g} by {estimate.backend}, "
            "the last bin with enough answers. "
            f"Up to there people are nowhere significantly {WORSE[estimate.kind]} {compared}, so there is no "
            "number."
        )
        if estimate.provable is not None:
            words += (
                f" In a typical bin a drop would have been proven where {estimate.provable:.0%} or fewer "
            )
            words += "succeed."
        return words + (f" Note: {estimate.why}." if estimate.why else "") + _drawn_anew(estimate)
    interval = estimate.interval
    if interval is None or interval.low is None or interval.high is None:
        sure = f"No interval: {interval.why}." if interval else ""
    else:
        end = "beyond the data" if math.isinf(interval.high) else f"{interval.high:g}"
        sure = f"{interval.percent} interval of where the drop begins: {interval.low:g} to {end}."
    sure += f" Note: {estimate.why}." if estimate.why else ""
    return (
        f"{head} = {estimate.value:g} by {estimate.backend}: from that visual change on people are "
        f"significantly {WORSE[estimate.kind]} {compared}. {sure}{_drawn_anew(estimate)}"
    )


def _drawn_anew(estimate: Estimate) -> str:
    """Say what other participants would give where that is not what these gave."""
    share, spread = estimate.found_share, estimate.spread
    words = ""
    if share is not None and (share < USUAL if estimate.status == FOUND else share > 1 - USUAL):
        words = f" Participants drawn anew show a drop in {share:.0%} of the draws."
    if spread is None or spread.low is None or spread.high is None or estimate.value is None:
        return words
    if not spread.low <= estimate.value <= spread.high:
        ends = ("none at all" if math.isinf(end) else f"{end:g}" for end in (spread.low, spread.high))
        words += f" Their thresholds lie from {' to '.join(ends)}."
    return words


def _as_script(estimate: Estimate, head: str, compared: str) -> str:
    """Say what another script's rules give, by name; a fallback is called one."""
    rules = f"by {estimate.backend} and the rules of {estimate.compat}"
    if estimate.status != FOUND:
        return f"{head}: {estimate.why} ({rules})."
    return (
        f"{head} = {estimate.value:g} {rules}: the upper edge of the second of two bins in a row where "
        f"people differ significantly {compared}.{f' Note: {estimate.why}.' if estimate.why else ''}"
    )


def threshold_table(estimates: Sequence[Estimate]) -> Table:
    """Return the thresholds as a table; its records hold everything but the bins."""
    rows = tuple(
        (
            Cell(estimate.transformation),
            Cell(estimate.symbol),
            Cell(_threshold(estimate)),
            Cell(_drop_begins(estimate)),
            Cell(estimate.base),
            Cell(str(estimate.answers)),
        )
        for estimate in estimates
    )
    headings = ("transformation", "kind", "threshold", "drop begins", "base rate", "answers")
    records = tuple(_plain(estimate) for estimate in estimates)
    return Table("thresholds", "What people tolerate", columns(*headings, format=".3f"), rows, records)


def _threshold(estimate: Estimate) -> str:
    if estimate.value is not None:
        return f"{estimate.value:.2f}"
    if estimate.compat and estimate.tolerated_to is not None:
        return f"{estimate.tolerated_to:.2f} (fallback)"
    return estimate.status if estimate.tolerated_to is None else f"none up to {estimate.tolerated_to:.2f}"


def _drop_begins(estimate: Estimate) -> str:
    interval = estimate.interval
    if interval is None or interval.low is None or interval.high is None:
        return "-"
    return f"{interval.low:.2f} or later" if math.isinf(interval.high) else interval.text(".2f")


def _plain(estimate: Estimate) -> dict[str, Any]:
    row = estimate.plain()
    del row["bins"]
    interval, spread = row.pop("interval"), row.pop("spread")
    return row | interval_cells("drop", interval) | interval_cells("spread", spread)


PANEL_SIZE = PanelSize(760, 306, 58, 16, 24, 46)
SPLINE, DROP, BASE, PLAIN = "#0072b2", "#d55e00", "#444444", "#8a8a8a"
"""Okabe and Ito's blue and vermillion, which colour-blind people can tell apart."""
DASHES = "6 4"
LARGEST_PX, SMALLEST_PX = 6.0, 1.5
TICKS = tuple(k / 5 for k in range(6))
NEAR_THE_END = 0.85
"""Visual change from which on the name of a threshold stands left of it."""


def threshold_chart(estimate: Estimate, alpha: float) -> Chart:
    """Return one threshold: dots are bins, their area the answers, orange where significantly worse."""
    title = f"{estimate.symbol} of {shown(estimate.transformation)}: {_outcome(estimate)}"
    quantity = "share right" if estimate.kind == "correctness" else "share as before"
    axes = (Axis("visual change", (0.0, 1.0), TICKS), Axis(quantity, (0.0, 1.0), TICKS))
    lines: list[Line] = []
    dots: list[Dots] = []
    marks: list[Mark] = []
    if estimate.bins and estimate.base is not None:
        middles = [(b.low + b.high) / 2 for b in estimate.bins]
        fitted = [_shown_rate(b.fitted) for b in estimate.bins]
        base = "originals" if estimate.kind == "correctness" else "barely changed images"
        lines = [
            Line(
                "spline and its band",
                middles,
                fitted,
                SPLINE,
                width=2,
            ),
            Line(base, [0.0, 1.0], [_shown_rate(estimate.base)] * 2, BASE, DASHES, width=1),
        ]
        worse = np.array([b.p < alpha and b.proven is not False for b in estimate.bins])
        dots = [
            _dots(estimate, name, np.flatnonzero(chosen), colour)
            for name, chosen, colour in (("bin", ~worse, PLAIN), ("significantly worse", worse, DROP))
            if chosen.any()
        ]
    if lines and estimate.value is not None:
        name = f"{estimate.symbol} = {estimate.value:g}"
        side: Literal["left", "right"] = "right" if estimate.value < NEAR_THE_END else "left"
        marks = [Mark(name, estimate.value, DROP, "", side)]
    panel = Panel("", *axes, lines, marks, dots, list(_bands(estimate)) if lines else (), PANEL_SIZE)
    return Chart(title, [panel], legend_left=True)


def _outcome(estimate: Estimate) -> str:
    if estimate.value is not None:
        return f"{estimate.value:g}"
    if estimate.tolerated_to is not None:
        return f"no drop up to {estimate.tolerated_to:g}"
    return "too few answers"


def _shown_rate(rate: float) -> float:
    """Return a rate that the axis holds; a spline may leave it."""
    return min(max(rate, 0.0), 1.0)


def _dots(estimate: Estimate, name: str, chosen: NDArray[np.intp], colour: str) -> Dots:
    most = max(b.answers for b in estimate.bins)
    bins = [estimate.bins[number] for number in chosen]
    radius = [max(SMALLEST_PX, LARGEST_PX * math.sqrt(b.answers / most)) for b in bins]
    return Dots(name, [(b.low + b.high) / 2 for b in bins], [b.rate for b in bins], radius, colour)


def _bands(estimate: Estimate) -> Iterator[Band]:
    interval = estimate.interval
    if interval is not None and interval.low is not None and interval.high is not None:
        name = f"where the drop begins ({interval.percent})"
        yield Band(name, [interval.low, min(interval.high, 1.0)], [0.0, 0.0], [1.0, 1.0], DROP)
    bands = [((b.low + b.high) / 2, *map(_shown_rate, b.band)) for b in estimate.bins if b.band is not None]
    if bands:
        x, low_band, high_band = zip(*bands, strict=True)
        yield Band("", x, low_band, high_band, SPLINE)


def thresholds_page(
    judgments: Judgments | None,
    estimates: Sequence[Estimate],
    agreement: Sequence[Reuse],
    options: EstimateOptions,
) -> str:
    """Return one self-contained HTML page."""
    return rendered(
        "human_thresholds.html",
        counts=counts_in_words(judgments),
        words=[in_words(estimate) for estimate in estimates],
        table=threshold_table(estimates),
        figures=[threshold_chart(estimate, options.alpha).svg() for estimate in estimates],
        reuse=[shown(reuse.words, longest=400) for reuse in agreement],
        alpha=options.alpha,
        consecutive=options.consecutive,
        compat=next((estimate.compat for estimate in estimates if estimate.compat), ""),
    )

"""Margins, in the terminal and as a page: who is nearest to being lost, and how many survive how much."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from adverse.analysis.headline import option_words
from adverse.curves.interval import Interval
from adverse.errors import AdverseError
from adverse.report.chart import Axis, Band, Chart, Line, Panel, PanelSize
from adverse.report.galleries import WIDEST_FAILURE, Shot
from adverse.report.layout import rendered
from adverse.report.pictures import Looker, Mark, close_up, picture
from adverse.report.table import Cell, Column, Table
from adverse.report.tradeoffs import sut_style
from adverse.requirements.conditions import Condition
from adverse.requirements.margins import PARTS, ConditionMargins, RunMargins
from adverse.requirements.margins_run import StudyMargins, SutMargins
from adverse.text import CLEAN, shown
from adverse.types import Image

TENTH, HALF = 0.9, 0.5
SHOWN, MOST_OF_LOG = 8, 2
SIZE = PanelSize(760, 260, 52, 20, 16, 46)
READING = (
    "The margin of a person is the weakest strength at which the SUT, at its operating point, no longer "
    "finds them; only who is found on the clean image has one."
)


def margins_table(found: StudyMargins) -> Table:
    """Return how far people are from being lost: a row for each SUT and condition."""
    columns = (
        Column("SUT", align="left"),
        Column("condition", align="left"),
        Column("found clean", brief="clean"),
        Column("1 in 10 lost by", align="left"),
        Column("half lost by", align="left"),
        Column("never lost", ".0%"),
        Column("images used", ".0%"),
    )
    every = [one for sut in found.suts for one in sut.conditions]
    rows = tuple(
        (
            Cell(one.sut),
            Cell(one.condition.name),
            Cell(int(one.margins.at_risk.sum())),
            _by(one, TENTH),
            _by(one, HALF),
            Cell(one.survival[-1].share, details=_ends(one.survival[-1].interval)),
            Cell(one.looked_at / one.sweep if one.sweep else None, note=f"{one.looked_at} of {one.sweep}"),
        )
        for one in every
    )
    return Table("margins", "Margins", columns, rows, tuple(survival_rows(every)))


def survival_rows(every: Sequence[ConditionMargins]) -> Iterator[dict[str, object]]:
    """Yield the survival curves, a row for each SUT, condition and strength."""
    for one in every:
        for point in one.survival:
            ends = point.interval
            yield {
                "sut": one.sut,
                "condition": one.condition.name,
                "option": one.condition.option,
                "step": point.step,
                "strength": one.condition.values[point.step - 1] if point.step else None,
                "at_risk": point.at_risk,
                "lost": point.lost,
                "share_found": point.share,
                "share_found_low": None if ends is None else ends.low,
                "share_found_high": None if ends is None else ends.high,
                "logs": None if ends is None else ends.logs,
                "interval": None if ends is None else ends.status,
                "images_used": one.looked_at,
                "images_of_a_sweep": one.sweep,
            }


def people_table(found: StudyMargins) -> Table:
    """Return every person and condition, for machines."""
    rows = [row for sut in found.suts for row in sut.run.rows(sut.conditions)]
    return Table("margins", "", (), (), tuple(rows))


def margins_json(found: StudyMargins) -> str:
    """Return survival curves and people as JSON."""
    every = [one for sut in found.suts for one in sut.conditions]
    data = {
        "study": found.study,
        "survival": list(survival_rows(every)),
        "people": people_table(found).data(),
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def margin_lines(found: StudyMargins) -> list[str]:
    """Say how margins are to be read, who is nearest to being lost, and what the search cost."""
    lines = [READING]
    for sut in found.suts:
        order = nearest(sut.run, sut.conditions)
        if order:
            lines.append(f"{shown(sut.run.store.suts[0])}: first lost {_words(sut.run, *order[0])}.")
    used = sum(one.looked_at for sut in found.suts for one in sut.conditions)
    sweep = sum(one.sweep for sut in found.suts for one in sut.conditions)
    exact = {sut.run.section.method for sut in found.suts} == {"ascend"}
    how = "each frame was ascended until all were lost" if exact else "by bisection with random checks"
    if sweep:
        lines.append(f"{used} mutated images of {sweep} that a sweep takes ({used / sweep:.0%}): {how}.")
    return lines


class Nearest(NamedTuple):
    """A person near to being lost: in words, clean and where lost."""

    words: str
    frame: str
    shots: tuple[Shot, Shot]


def render_margins(found: StudyMargins) -> str:
    """Return the whole page."""
    conditions = list(
        {one.condition.name: one.condition for s in found.suts for one in s.conditions}.values()
    )
    return rendered(
        "margins.html",
        study=shown(found.study),
        lines=margin_lines(found),
        table=margins_table(found),
        charts=[survival_chart(found, condition).svg() for condition in conditions],
        parts=[table for one in conditions for table in part_tables(found, one)],
        nearest=[(shown(sut.run.store.suts[0]), *_nearest_pictures(sut)) for sut in found.suts],
    )


def survival_chart(found: StudyMargins, condition: Condition) -> Chart:
    """Draw the share that is still found over the strengths of a condition, with its interval."""
    steps = len(condition.values)
    names = (CLEAN, *(f"{value:.3g}" for value in condition.values))
    across = Axis(
        option_words(condition.option), (0.0, float(steps)), tuple(map(float, range(steps + 1))), False, names
    )
    lines, bands = [], []
    mine = [one for sut in found.suts for one in sut.conditions if one.condition.name == condition.name]
    for number, one in enumerate(mine):
        colour, dashes, width = sut_style(number)
        points = [point for point in one.survival if point.share is not None]
        at = [float(point.step) for point in points]
        shares = [point.share for point in points if point.share is not None]
        lines.append(Line(shown(one.sut), at, shares, colour, dashes, width, marked=True))
        ends = {point.step: point.interval for point in points if point.interval is not None}
        sure = {step: one for step, one in ends.items() if one.low is not None and one.high is not None}
        low, high = ([getattr(each, end) for each in sure.values()] for end in ("low", "high"))
        bands.append(Band(f"{shown(one.sut)}, 95 %", list(map(float, sure)), low, high, colour))
    up = Axis(
        "still found", (0.0, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0), names=("0", "25%", "50%", "75%", "100%")
    )
    panel = Panel("", across, up, lines, bands=[band for band in bands if len(np.asarray(band.x))], size=SIZE)
    return Chart(f"still found under {condition.name}", [panel], legend_left=True)


def part_tables(found: StudyMargins, condition: Condition) -> Iterator[Table]:
    """Yield how far people are from being lost by distance and by size: a row for each part."""
    for kind, edges in PARTS.items():
        word, unit = kind.rsplit("_", 1)
        rows, records = [], []
        for low, high in pairwise(edges):
            cells = []
            for sut in found.suts:
                one = next((each for each in sut.conditions if each.condition.name == condition.name), None)
                values = getattr(sut.run, kind)
                inside = (values >= low) & (values < high)
                mine = None if one is None else _part(one, inside)
                cells.append(Cell(None, "-", tone="soft") if mine is None else mine[0])
                records += (
                    []
                    if mine is None
                    else [{"from": low, "to": None if math.isinf(high) else high} | mine[1]]
                )
            if any(cell.value is not None for cell in cells):
                part = f"{low:g} {unit} and more" if math.isinf(high) else f"{low:g} to {high:g} {unit}"
                rows.append((Cell(part), *cells))
        if rows:
            suts = [Column(shown(sut.run.store.suts[0]), align="left") for sut in found.suts]
            title = f"{condition.name}, by {word}: half lost by"
            name = f"margins {condition.name} {word}"
            yield Table(name, title, (Column(word, align="left"), *suts), tuple(rows), tuple(records))


def _part(one: ConditionMargins, inside: np.ndarray) -> tuple[Cell, dict[str, object]] | None:
    """Return when half of a part of the people are lost, and how many they are; None: nobody is in it."""
    risk = one.margins.at_risk & inside
    count = int(risk.sum())
    if not count:
        return None
    half = one.of(inside).quantile(HALF)
    words = "never" if half is None else one.condition.words(half)
    never = count - int((one.margins.lost & inside).sum())
    people = "person" if count == 1 else "people"
    cell = Cell(half or 0, words, details=(f"{count} {people}, {never} never lost",))
    return cell, {"sut": one.sut, "people": count, "never_lost": never, "half_lost_at_step": half}


def nearest(run: RunMargins, conditions: Sequence[ConditionMargins]) -> list[tuple[ConditionMargins, int]]:
    """Return the people that are lost, each at its least: the least visible change first, then the step."""
    best: dict[int, tuple[tuple[float, float, str], ConditionMargins]] = {}
    for one in conditions:
        for number in np.flatnonzero(one.margins.lost).tolist():
            seen = float(one.visual_change[number])
            part = float(one.margins.step[number]) / len(one.condition.values)
            key = (seen if math.isfinite(seen) else math.inf, part, run.names[number])
            if number not in best or key < best[number][0]:
                best[number] = key, one
    return [(best[number][1], number) for number in sorted(best, key=lambda number: best[number][0])]


def _words(run: RunMargins, one: ConditionMargins, number: int) -> str:
    step, seen = int(one.margins.step[number]), float(one.visual_change[number])
    away = float(run.distance_m[number])
    parts = [f"under {one.condition.name}, {one.condition.words(step)}"]
    parts += [f"visual change {seen:.2f}"] if math.isfinite(seen) else []
    parts += [f"{away:.1f} m away"] if math.isfinite(away) else []
    parts.append(f"{run.height_px[number]:.0f} px high")
    return ", ".join(parts)


def _nearest_pictures(sut: SutMargins) -> tuple[list[Nearest], str]:
    """Return the people with the smallest margins as pictures, and what could not be shown."""
    looker = Looker(sut.run.store, trust=True)  # its plug-ins ran just now
    store, of_log = sut.run.store, Counter[int]()
    found: list[Nearest] = []
    why = ""
    for one, number in nearest(sut.run, sut.conditions):
        person = int(one.people[number])
        frame = int(store.truth.frame[person])
        log = int(store.frames.log[frame])
        if of_log[log] >= MOST_OF_LOG or len(found) >= SHOWN:
            continue
        setting = one.condition.settings[int(one.margins.step[number]) - 1]
        mark = Mark("meant", *store.truth.boxes[person].tolist())
        try:
            shots = tuple(
                _shot(looker.image(store.frames.ids[frame], name), mark, words)
                for name, words in ((store.run.baseline.id, CLEAN), (setting.id, "lost"))
            )
        except AdverseError as error:
            why = why or f"Some cannot be shown: {error.what}."
            continue
        of_log[log] += 1
        found.append(
            Nearest(f"Lost {_words(sut.run, one, number)}", store.frames.ids[frame], (shots[0], shots[1]))
        )
    return found, why


def _shot(image: Image, mark: Mark, words: str) -> Shot:
    region = close_up(mark, image)
    close = None if region is None else picture(image, (mark,), region=region)
    return Shot(words, picture(image, (mark,), widest=WIDEST_FAILURE), close)


def _by(one: ConditionMargins, share: float) -> Cell:
    step = one.quantile(share)
    return Cell(
        step, "never" if step is None else one.condition.words(step), tone="good" if step is None else ""
    )


def _ends(interval: Interval | None) -> tuple[str, ...]:
    if interval is None or interval.low is None or interval.high is None:
        return ()
    few = "~" if interval.status == "few logs" else ""
    return (f"{few}{interval.low:.0%} to {interval.high:.0%}",)

"""The page of a requirements check: its verdicts, charts and pictures of what failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from adverse.curves.interval import Interval, interval_cells
from adverse.errors import AdverseError
from adverse.report.chart import COLOURS, Axis, Band, Chart, Line, Mark, Panel, PanelSize
from adverse.report.interval_bar import interval_bar
from adverse.report.layout import rendered
from adverse.report.pictures import Looker, Picture, picture
from adverse.report.table import Cell, Column, Row, Table, columns
from adverse.report.verdicts import TONES
from adverse.requirements.evidence import MOST_UNREACHED
from adverse.requirements.results import NAME, rechecked
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.run import Run
from adverse.text import shown

UNREACHED = re.compile(r"(^|; )\d+ % of the range was not reached \([^)]*\)")
ORDER = ("FAIL", "INCONCLUSIVE", "PASS")
CHANCE = (
    "the orders are those of the numbers; a system is called less reliable only where the intervals of the "
    "differences in accuracy and in distance, paired over logs, both exclude 0"
)


def requirement_tables(data: Mapping[str, Any]) -> Iterator[Table]:
    """Yield a table for each requirement that 80 columns hold, with a line for each SUT."""
    for name, rows in by_requirement(data).items():
        first = rows[0]
        limit = (
            f"visual change up to {first['threshold']:g} by {first['backend']}, margin {first['margin']:g}"
        )
        title = f"{shown(name, longest=60)}: {first['measure']}, {limit}, {_percent(data)} bounds"
        table = results_table(name, rows).only("SUT", "required", "measured", "distance", "verdict")
        yield replace(table.without_details("verdict"), title=title)  # reasons are in the lines below


def requirement_lines(data: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know besides: the count, what is open and why, what could not be made."""
    lines = [headline(data), method(data)]
    lines += _reasons(data)
    lines += trouble_lines(data)
    lines += [
        f"{shown(ranking['requirement'])}, order by reliability and by the mean over severities 1 to 5 of "
        f"{ranking['battery']}: {shown(ranking['words'], longest=400)}"
        for ranking in data["rankings"]
    ]
    return [*lines, *([CHANCE] if data["rankings"] else [])]


def _reasons(data: Mapping[str, Any]) -> list[str]:
    """Return the reasons; one that several SUTs have for a requirement is there once, with their names.

    A part of the range that was not reached and changes no verdict has a line of its own, for all SUTs.
    """
    suts: dict[tuple[str, str], list[str]] = {}
    for row in data["results"]:
        reason = row["reason"]
        if row["versions_unreached"] <= MOST_UNREACHED:
            reason = UNREACHED.sub("", reason).removeprefix("; ")
        if reason:
            suts.setdefault((row["requirement"], reason), []).append(shown(row["sut"]))
    return [f"{', '.join(names)}, {shown(name)}: {reason}" for (name, reason), names in suts.items()]


def trouble_lines(data: Mapping[str, Any]) -> list[str]:
    """Return which versions could not be made, where SUTs failed, and what could not be done as requested."""
    lines = [
        line for rows in by_requirement(data).values() for line in (*_reach(rows[0]), *_rejected(rows[0]))
    ]
    most, wanted = max(row["images"] for row in data["results"]), data["images_per_batch"]
    if wanted is not None and wanted > most:
        lines.append(f"batches of {wanted} images were requested, but there are only {most} images")
    lines += [
        f"{shown(sut)}: failed on {n} images, which count as missed" for sut, n in data["faults"].items() if n
    ]
    return lines


def headline(data: Mapping[str, Any]) -> str:
    """Return the answer in one line."""
    count = Counter(row["outcome"] for row in data["results"])
    words = ", ".join(f"{count[outcome]} {outcome}" for outcome in ORDER if count[outcome])
    counts = ((len(by_requirement(data)), "requirement"), (len(data["faults"]), "SUT"))
    return f"{words}: {', '.join(f'{n} {noun}' + 's' * (n > 1) for n, noun in counts)}"


def method(data: Mapping[str, Any]) -> str:
    """Return how sure the verdicts are, in one line."""
    effects = [row["detectable"] for row in data["results"] if row["detectable"] is not None]
    worst = f"; a miss of {max(effects):.2f} beyond the margin is found in 9 of 10" if effects else ""
    many = len(by_requirement(data))
    holm = f", Holm over the {many} requirements of a SUT" if many > 1 else ""
    return f"rule {data['rule']}, {data['batches']} batches, {_percent(data)} confidence{holm}{worst}"


def by_requirement(data: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Return the results of each requirement, in the order of the file."""
    rows: dict[str, list[Row]] = {}
    for row in data["results"]:
        rows.setdefault(row["requirement"], []).append(row)
    return rows


def results_table(name: str, rows: Sequence[Row], span: tuple[float, float] | None = None) -> Table:
    """Return the results of one requirement, or of all; `span` is what their distances are drawn within."""
    lines = tuple(
        (
            Cell(row["sut"]),
            Cell(row["outcome"], details=(shown(row["reason"], longest=300),), tone=TONES[row["outcome"]]),
            Cell(
                row["distance"],
                details=(_bounds(row).text("+.3f"),),
                note=_bounds(row).why,
            ),
            Cell(row["required"]),
            Cell(row["measured"]),
            Cell(row["detectable"]),
            Cell(str(row["images"]), details=(f"{row['logs']} logs" if row["logs"] < row["images"] else "",)),
            Cell(
                str(row["versions"]),
                details=(f"{row['versions_rejected']} not made" if row["versions_rejected"] else "",),
            ),
            Cell(drawing=_bar(row, span)),
        )
        for row in rows
    )
    headings = ("distance", "required", "measured", "detectable", "images", "versions")
    all_columns = (
        Column("SUT", align="left"),
        Column("verdict", align="left", no_wrap=True),
        *columns(*headings, format=".3f", left=0),
        Column("", drawn=True),
    )
    return Table(name, name, all_columns, lines, tuple(_plain(row) for row in rows))


def rankings_table(data: Mapping[str, Any]) -> Table | None:
    """Return the order of the SUTs by reliability beside that by the battery; None: not requested."""
    rows: list[tuple[Cell, ...]] = []
    records: list[Row] = []
    for ranking in data["rankings"]:
        for place in sorted(ranking["places"], key=lambda place: place["by_accuracy"]):
            rows.append(
                (
                    Cell(ranking["requirement"]),
                    Cell(place["sut"]),
                    Cell(place["battery_mean"], details=(ranking["battery"],)),
                    Cell(str(place["by_accuracy"])),
                    Cell(place["distance"]),
                    Cell(str(place["by_reliability"]), details=(_gap(place),)),
                )
            )
            records.append({"requirement": ranking["requirement"], "battery": ranking["battery"], **place})
    if not rows:
        return None
    headings = ("requirement", "SUT", "mean over severities", "place", "distance", "place by reliability")
    title = "Order by mean accuracy over severities 1 to 5, and by reliability distance"
    return Table("rankings", title, columns(*headings, format=".3f", left=2), tuple(rows), tuple(records))


def _gap(place: Row) -> str:
    """Say only what intervals show: who is less, or more, reliable than the battery suggests."""
    words = []
    for side in ("less", "more"):
        if place[f"{side}_reliable_than"]:
            names = ", ".join(shown(name) for name in place[f"{side}_reliable_than"])
            words.append(f"{side} reliable than it seems, against {names}")
    return "; ".join(words)


def _reach(row: Row) -> list[str]:
    """Say how far versions reached, and what is doubtful about the threshold; the same for all SUTs."""
    name, lines = shown(row["requirement"]), []
    if row["threshold_doubt"]:
        lines.append(f"{name}: the threshold {shown(row['threshold_doubt'], longest=200)}")
    if row["versions_largest_change"] is not None:
        reached = f"checked up to {row['versions_largest_change']:.2f} of {row['threshold']:g}"
        missed = row["versions_unreached"]
        share = f"; {100 * missed:.0f} % of the range was not reached" if missed else ""
        lines.append(f"{name}: {reached}{share}")
    seen = row.get("barely_visual_change")
    if seen and row["barely_unreached"]:
        lines.append(
            f"{name}: {100 * row['barely_unreached']:.0f} % of the barely changed images are changed by more "
            f"than barely: allows, from {seen[0]:.3f} to {seen[-1]:.3f}"
        )
    return lines


def _rejected(row: Row) -> list[str]:
    """Say which versions could not be made; the same for all SUTs."""
    lines = []
    for part, words in (("versions", "versions"), ("barely", "barely changed versions")):
        if row.get(f"{part}_rejected"):
            why = ", ".join(f"{count} x {shown(text)}" for text, count in row[f"{part}_rejected_why"].items())
            total = row[part] + row[f"{part}_rejected"]
            share = f"{row[f'{part}_rejected']} of {total} {words}"
            lines.append(f"{shown(row['requirement'])}: {share} were rejected: {why}")
    return lines


def _percent(data: Mapping[str, Any]) -> str:
    return f"{100 * data['confidence']:g} %"


def _plain(row: Row) -> dict[str, Any]:
    flat = {name: value for name, value in row.items() if not isinstance(value, list | dict)}
    return flat | interval_cells("distance", row["distance_interval"])


def _bounds(row: Row) -> Interval:
    return Interval.read(row["distance"], row["distance_interval"])


WIDEST_PX = 300
PICTURED = 2
"""Failures of a requirement that are shown; the table's file has more."""


class FailureShot(NamedTuple):
    """A version on which a SUT fell: words, the frame as it is, and the version."""

    words: str
    before: Picture
    after: Picture


def worst_failures(rows: Sequence[Row], looker: Looker) -> tuple[FailureShot, ...]:
    """Return pictures of the worst failures within what people tolerate; what cannot be shown is left out."""
    every = [(row, version) for row in rows for version in row["worst"]]
    every.sort(key=lambda pair: (pair[1]["after"] - pair[1]["before"], pair[1]["visual_change"]))
    shots: list[FailureShot] = []
    seen: set[tuple[str, str]] = set()
    for row, version in every:
        place = version["frame"], version["setting"]
        if len(shots) == PICTURED or place in seen:
            continue
        seen.add(place)
        try:
            plain = looker.image(version["frame"], looker.store.run.baseline.id)
            changed = looker.image(*place)
        except AdverseError:  # data or plug-ins are not at hand: the numbers are
            continue
        words = f"{row['sut']}: {row['measure']} {version['before']:.2f} to {version['after']:.2f} at "
        words += f"visual change {version['visual_change']:.2f}, frame {version['frame']}"
        small = (picture(image, widest=WIDEST_PX) for image in (plain, changed))
        shots.append(FailureShot(shown(words, longest=200), *small))
    return tuple(shots)


@dataclass(frozen=True)
class RequirementSection:
    """One requirement: its sentence, and its table with every distance drawn."""

    name: str
    words: str
    notes: tuple[str, ...]
    table: Table
    chart: str
    failures: tuple[FailureShot, ...]


def write_requirements_page(run: Path) -> Path:
    """Write requirements.html and requirements.csv into the folder of a check; return the page's path."""
    store = finished(run, rewrites=(f"{NAME}.",))
    return store.write(requirements_files(store))[-1]


def requirements_files(store: Store) -> dict[str, bytes]:
    """Return table and page of a check, computed anew, by path below the run folder."""
    data = rechecked(store)
    table = results_table(NAME, data["results"]).csv()
    looker = Looker(store)
    failures = {name: worst_failures(rows, looker) for name, rows in by_requirement(data).items()}
    page = render(data, store.run, failures)
    return {f"{NAME}.csv": table.encode(), f"{NAME}.html": page.encode()}


def render(
    data: dict[str, Any], run: Run, failures: Mapping[str, tuple[FailureShot, ...]] | None = None
) -> str:
    """Return the whole page."""
    span = _span(data)
    parts = [
        RequirementSection(
            shown(name),
            shown(rows[0]["words"].replace(f" of {rows[0]['sut']} ", " ", 1), longest=400),
            _notes(rows[0]),
            results_table(name, rows, span),
            tolerance_chart(rows).svg() if any(row["curve"] for row in rows) else "",
            (failures or {}).get(name, ()),
        )
        for name, rows in by_requirement(data).items()
    ]
    return rendered(
        "requirements.html",
        title=shown(data["study"]),
        headline=headline(data),
        method=method(data),
        parts=parts,
        remarks=[shown(line, longest=500) for line in trouble_lines(data)],
        gaps=[
            f"{shown(ranking['requirement'])}: {shown(ranking['words'], longest=500)}"
            for ranking in data["rankings"]
        ],
        chance=CHANCE,
        rankings=rankings_table(data),
        whole=results_table(NAME, data["results"]),
        facts=_facts(data, run),
        confidence=f"{100 * data['confidence']:g} %",
    )


def _notes(row: Mapping[str, Any]) -> tuple[str, ...]:
    notes = [f"threshold {row['threshold']:g} by {row['backend']}: {row['threshold_origin']}"]
    for part, words in (("versions", "changed"), ("barely", "barely changed")):
        seen = row.get(f"{part}_visual_change")
        if seen:
            spread = f"from {seen[0]:.2f} to {seen[-1]:.2f}, half below {seen[2]:.2f}"
            notes.append(f"visual change of the {words} images {spread}")
    return tuple(shown(note, longest=300) for note in notes)


PEOPLE, TOLERATED = "#1a1a1a", "#6a51a3"
TICKS = tuple(k / 5 for k in range(6))
DASHES = "6 4"


def tolerance_chart(rows: Sequence[Row]) -> Chart:
    """Return people and systems on one axis of visual change, with the threshold and its interval."""
    first = rows[0]
    systems = [
        Line(
            shown(row["sut"]),
            [(point["low"] + point["high"]) / 2 for point in row["curve"]],
            [point["value"] for point in row["curve"]],
            COLOURS[number % len(COLOURS)],
            width=2,
        )
        for number, row in enumerate(rows)
        if row["curve"]
    ]
    lines = [*systems]
    if first["people"]:
        change, rate = zip(*first["people"], strict=True)
        quantity = "share right" if first["kind"] == "correctness" else "share as before"
        lines.append(Line(f"people: {quantity}", change, rate, PEOPLE, DASHES, width=2))
    bands = []
    interval = first["threshold_interval"]
    if interval is not None and interval["low"] is not None:
        high = 1.0 if interval["high"] is None else interval["high"]
        name = f"where people begin to fail ({interval['confidence']:.0%})"
        bands = [Band(name, [interval["low"], high], [0.0, 0.0], [1.0, 1.0], TOLERATED)]
    mark = Mark(f"tolerated up to {first['threshold']:g}", first["threshold"], TOLERATED, "")
    axes = (
        Axis(f"visual change by {first['backend']}", (0.0, 1.0), TICKS),
        Axis(first["measure"], (0.0, 1.0), TICKS),
    )
    panel = Panel("", *axes, lines, [mark], [], bands, PanelSize(760, 306, 58, 16, 24, 46))
    return Chart("People and systems by visual change", [panel], legend_left=True)


def _facts(data: dict[str, Any], run: Run) -> list[tuple[str, str]]:
    images = run.data
    frames = f"{images.frames['test']} test frames"
    facts = [
        ("adverse", run.provenance.version),
        ("data", f"{images.format}, {frames}, fingerprint {images.fingerprint[:16]}"),
        ("seed", f"{data['seed']} for the batches, {run.seed} for the versions"),
        ("visual change", " and ".join(sorted({row["backend"] for row in data["results"]}))),
        *((f"SUT {sut.name}", f"fingerprint {sut.fingerprint[:16]}") for sut in run.suts),
        *(
            (f"score of {sut}", f"{cut['score']:.4g}, chosen on {cut['chosen_on']} images")
            for sut, cut in data["score_thresholds"].items()
            if cut["score"] is not None
        ),
    ]
    return [(shown(name), shown(value, longest=400)) for name, value in facts]


def _span(data: dict[str, Any]) -> tuple[float, float]:
    """Return from where to where all distances are drawn: all bounds, 0 and the margins."""
    ends = [end for row in data["results"] for end in (_bounds(row).low, _bounds(row).high)]
    values = [0.0, *(row["margin"] for row in data["results"]), *(end for end in ends if end is not None)]
    return min(values), max(values) + 1e-6


def _bar(row: Row, span: tuple[float, float] | None) -> str:
    """Draw the bounds of a distance with 0 and the margin; nothing where there are none."""
    bounds = _bounds(row)
    if span is None or bounds.low is None or bounds.value is None or bounds.high is None:
        return ""
    return interval_bar(
        bounds.low, bounds.value, bounds.high, span=span, lines=(0.0,), dashed=(row["margin"],)
    )

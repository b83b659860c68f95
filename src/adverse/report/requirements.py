"""The verdicts of a requirements check, for the terminal and as tables with their twins.

A requirements check as a page: one file that opens from disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from adverse.report.layout import rendered
from adverse.report.tables import Cell, Table
from adverse.requirements.results import NAME, read
from adverse.store.read import finished
from adverse.store.run import Run
from adverse.text import shown

Row = Mapping[str, Any]
STYLES = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "yellow"}
ORDER = ("FAIL", "INCONCLUSIVE", "PASS")
CHANCE = "distances whose bounds overlap may change places by chance; the orders are those of the numbers"
COLUMNS = ("SUT", "required", "measured", "distance", "from", "to", "verdict")


def requirement_tables(data: Mapping[str, Any]) -> Iterator[RichTable]:
    """Yield a table for each requirement that 80 columns hold, with a line for each SUT."""
    for name, rows in by_requirement(data).items():
        first = rows[0]
        limit = (
            f"visual change up to {first['threshold']:g} by {first['backend']}, margin {first['margin']:g}"
        )
        title = Text(f"{shown(name, longest=60)}\n", style="bold").append(
            f"{first['measure']}, {limit}, {_percent(data)} bounds", style="not bold"
        )
        table = RichTable(
            title=title,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1),
            pad_edge=False,
            title_style="",
        )
        for column in COLUMNS:
            left, last = column in ("SUT", "verdict"), column == "verdict"
            table.add_column(column, overflow="fold", justify="left" if left else "right", no_wrap=last)
        for row in rows:
            numbers = (row[column] for column in ("required", "measured", "distance", "low", "high"))
            verdict = Text(row["outcome"], style=STYLES[row["outcome"]])
            table.add_row(Text(shown(row["sut"])), *(Text(_number(value)) for value in numbers), verdict)
        yield table


def requirement_lines(data: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know besides: the count, what is open and why, what could not be made."""
    lines = [headline(data), method(data)]
    lines += [
        f"{shown(row['sut'])}, {shown(row['requirement'])}: {row['reason']}"
        for row in data["results"]
        if row["reason"]
    ]
    lines += trouble_lines(data)
    lines += [
        f"{shown(one['requirement'])}, order by reliability and by the mean over severities 1 to 5 of "
        f"{one['battery']}: {shown(one['words'], longest=400)}"
        for one in data["rankings"]
    ]
    return [*lines, *([CHANCE] if data["rankings"] else [])]


def trouble_lines(data: Mapping[str, Any]) -> list[str]:
    """Return which versions could not be made, where SUTs failed, and what was asked for in vain."""
    lines = [line for rows in by_requirement(data).values() for line in _rejected(rows[0])]
    most, wanted = max(row["images"] for row in data["results"]), data["images_per_batch"]
    if wanted is not None and wanted > most:
        lines.append(
            f"batches of {wanted} images were asked for; they hold no more than the images there are"
        )
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
    found: dict[str, list[Row]] = {}
    for row in data["results"]:
        found.setdefault(row["requirement"], []).append(row)
    return found


def results_table(name: str, rows: Sequence[Row]) -> Table:
    """Return the results of one requirement, or of all, as a table with its twins."""
    lines = tuple(
        (
            Cell(shown(row["sut"])),
            Cell(row["outcome"], more=shown(row["reason"], longest=300)),
            Cell(_number(row["distance"]), more=_between(row)),
            Cell(_number(row["required"])),
            Cell(_number(row["measured"])),
            Cell(_number(row["detectable"])),
            Cell(str(row["images"]), more=f"{row['logs']} logs" if row["logs"] < row["images"] else ""),
            Cell(
                str(row["versions"]),
                more=f"{row['versions_rejected']} not made" if row["versions_rejected"] else "",
            ),
        )
        for row in rows
    )
    columns = ("SUT", "verdict", "distance", "required", "measured", "detectable", "images", "versions")
    return Table(name, name, columns, lines, tuple(_plain(row) for row in rows))


def rankings_table(data: Mapping[str, Any]) -> Table | None:
    """Return the order of the SUTs by reliability beside that by the battery; None: not asked for."""
    rows: list[tuple[Cell, ...]] = []
    plain: list[Row] = []
    for one in data["rankings"]:
        for place in sorted(one["places"], key=lambda place: place["by_accuracy"]):
            gap = place["by_reliability"] - place["by_accuracy"]
            note = (
                ""
                if gap == 0
                else "less reliable than it seems"
                if gap > 0
                else "more reliable than it seems"
            )
            rows.append(
                (
                    Cell(shown(one["requirement"])),
                    Cell(shown(place["sut"])),
                    Cell(_number(place["battery_mean"]), more=one["battery"]),
                    Cell(str(place["by_accuracy"])),
                    Cell(_number(place["distance"])),
                    Cell(str(place["by_reliability"]), more=note),
                )
            )
            plain.append({"requirement": one["requirement"], "battery": one["battery"], **place})
    if not rows:
        return None
    columns = ("requirement", "SUT", "mean over severities", "place", "distance", "place by reliability")
    title = "Order by mean accuracy over severities 1 to 5, and by reliability distance"
    return Table("rankings", title, columns, tuple(rows), tuple(plain))


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


def _between(row: Row) -> str:
    return "" if row["low"] is None else f"{row['low']:+.3f} to {row['high']:+.3f}"


def _percent(data: Mapping[str, Any]) -> str:
    return f"{100 * data['confidence']:g} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _plain(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not isinstance(value, list | dict)}


WIDTH, HEIGHT, EDGE = 240, 18, 6


@dataclass(frozen=True)
class Part:
    """One requirement: its sentence, its table, and every distance drawn."""

    name: str
    words: str
    notes: tuple[str, ...]
    table: Table
    drawn: tuple[str, ...]


def write_requirements_page(run: Path) -> Path:
    """Write requirements.html and requirements.csv into the folder of a check; return the page's path."""
    store = finished(run)
    data = read(store)
    table = results_table(NAME, data["results"]).csv()
    page = render(data, store.run)
    return store.write({f"{NAME}.csv": table.encode(), f"{NAME}.html": page.encode()})[-1]


def render(data: dict[str, Any], run: Run) -> str:
    """Return the whole page."""
    span = _span(data)
    parts = [
        Part(
            shown(name),
            shown(rows[0]["words"].replace(f" of {rows[0]['sut']} ", " ", 1), longest=400),
            _notes(rows[0]),
            results_table(name, rows),
            tuple(_distance_svg(row, span) for row in rows),
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
        gaps=[f"{shown(one['requirement'])}: {shown(one['words'], longest=500)}" for one in data["rankings"]],
        chance=CHANCE,
        rankings=rankings_table(data),
        whole=results_table(NAME, data["results"]),
        facts=_facts(data, run),
        confidence=f"{100 * data['confidence']:g} %",
    )


def _notes(row: Mapping[str, Any]) -> tuple[str, ...]:
    notes = [f"threshold {row['threshold']:g} by {row['backend']}: {row['threshold_source']}"]
    for part, words in (("versions", "changed"), ("barely", "barely changed")):
        seen = row.get(f"{part}_visual_change")
        if seen:
            spread = f"from {seen[0]:.2f} to {seen[-1]:.2f}, half below {seen[2]:.2f}"
            notes.append(f"visual change of the {words} images {spread}")
    return tuple(shown(note, longest=300) for note in notes)


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
            (f"score of {sut}", f"{one['score']:.4g}, chosen on {one['chosen_on']} images")
            for sut, one in data["score_thresholds"].items()
            if one["score"] is not None
        ),
    ]
    return [(shown(name), shown(value, longest=400)) for name, value in facts]


def _span(data: dict[str, Any]) -> tuple[float, float]:
    """Return from where to where all distances are drawn: all bounds, 0 and the margins."""
    ends = [row[end] for row in data["results"] for end in ("low", "high") if row[end] is not None]
    values = [0.0, *(row["margin"] for row in data["results"]), *ends]
    return min(values), max(values) + 1e-6


def _distance_svg(row: Mapping[str, Any], span: tuple[float, float]) -> str:
    """Draw the bounds of a distance with 0 and the margin; nothing where there are none."""
    if row["low"] is None:
        return ""

    def place(value: float) -> float:
        return round(EDGE + (WIDTH - 2 * EDGE) * (value - span[0]) / (span[1] - span[0]), 1)

    middle = HEIGHT / 2
    low, high, margin = place(row["low"]), place(row["high"]), place(row["margin"])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">'
        f'<line x1="{place(0)}" x2="{place(0)}" y1="0" y2="{HEIGHT}" class="zero"/>'
        f'<line x1="{margin}" x2="{margin}" y1="0" y2="{HEIGHT}" class="zero" stroke-dasharray="2 2"/>'
        f'<line x1="{low}" x2="{high}" y1="{middle}" y2="{middle}" class="reach"/>'
        f'<circle cx="{place(row["distance"])}" cy="{middle}" r="4" class="value"/></svg>'
    )

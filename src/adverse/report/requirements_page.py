"""A requirements check as a page: one file that opens from disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse.reliability.written import NAME, read
from adverse.report.requirements import (
    CHANCE,
    by_requirement,
    headline,
    method,
    rankings_table,
    results_table,
    trouble_lines,
)
from adverse.report.sheet import rendered
from adverse.report.tables import Table
from adverse.report.words import shown
from adverse.study.store.finished import finished
from adverse.study.store.run import Run

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

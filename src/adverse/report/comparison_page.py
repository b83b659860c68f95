"""Two runs compared, as a page: one file that opens from disk."""

from __future__ import annotations

from dataclasses import dataclass

from adverse.analysis.compare import Comparison
from adverse.analysis.paired_change import Change
from adverse.report.comparison import HEADS, comparison_table, headline, method
from adverse.report.sheet import rendered
from adverse.report.tables import Table
from adverse.report.words import shown
from adverse.study.store.read import Store

WORDS = {
    "regression": "The whole interval of the difference lies below 0.",
    "not told": "The interval holds 0, or there is none, or it would be named by chance among so many.",
    "improvement": "The whole interval of the difference lies above 0.",
    "unchanged": "Every log came to exactly the same in both runs.",
}
FOREST_WIDTH, FOREST_HEIGHT = 160, 14


@dataclass(frozen=True)
class Part:
    """One part of the page: a table, in words, with each line's interval drawn."""

    outcome: str
    head: str
    words: str
    table: Table
    drawn: tuple[str, ...]


def render_comparison(comparison: Comparison) -> str:
    """Return the whole page."""
    parts = [
        Part(
            outcome,
            head,
            WORDS[outcome],
            comparison_table(comparison, (outcome,)),
            tuple(_interval_svg(change, _reach(comparison)) for change in comparison.of(outcome)),
        )
        for outcome, head in HEADS.items()
        if comparison.of(outcome)
    ]
    pairing = comparison.pairing
    return rendered(
        "comparison.html",
        title=" and ".join(dict.fromkeys(shown(store.run.name) for store in (pairing.first, pairing.second))),
        headline=headline(comparison),
        method=method(comparison),
        parts=parts,
        whole=comparison_table(comparison),
        only=[shown(text, longest=400) for text in pairing.only],
        notes=[shown(text, longest=400) for text in comparison.notes],
        runs=[_facts(word, store) for word, store in (("before", pairing.first), ("after", pairing.second))],
    )


def _facts(word: str, store: Store) -> tuple[str, str]:
    run, data = store.run, store.run.data
    text = (
        f"study {run.name}, seed {run.seed}, adverse {run.provenance.version}, "
        f"{data.frames['test']} test frames of {data.format}, data {data.fingerprint[:16]}; "
        + ", ".join(f"{sut.name} {sut.fingerprint[:16]}" for sut in run.suts)
    )
    return word, shown(text, longest=600)


def _reach(comparison: Comparison) -> float:
    """Return how far from 0 any interval goes, which all are drawn to."""
    ends = [
        abs(end)
        for change in comparison.changes
        if change.difference is not None
        for end in (change.difference.low, change.difference.high)
        if end is not None
    ]
    return max([0.05, *ends])


def _interval_svg(change: Change, reach: float) -> str:
    """Draw an interval as a line around 0; nothing where there is none."""
    found = change.difference
    if found is None or found.value is None or found.low is None or found.high is None:
        return ""

    def place(value: float) -> float:
        return round(FOREST_WIDTH * (0.5 + 0.48 * value / reach), 1)

    middle, line = FOREST_HEIGHT / 2, FOREST_WIDTH / 2
    shape = f'viewBox="0 0 {FOREST_WIDTH} {FOREST_HEIGHT}" aria-hidden="true"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>'
        f'<line x1="{line}" x2="{line}" y1="0" y2="{FOREST_HEIGHT}" class="zero"/>'
        f'<line x1="{place(found.low)}" x2="{place(found.high)}" y1="{middle}" y2="{middle}" class="reach"/>'
        f'<circle cx="{place(found.value)}" cy="{middle}" r="3.5" class="value"/></svg>'
    )

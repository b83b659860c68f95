"""Two runs compared, for the terminal and as a table: regressions first, then what could not be told.

Two runs compared, as a page: one file that opens from disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table as RichTable
from rich.text import Text

from adverse.analysis.compare import Comparison
from adverse.analysis.pairing import Change
from adverse.report.layout import rendered
from adverse.report.tables import Cell, Table
from adverse.store.read import Store
from adverse.text import shown

HEADS = {
    "regression": "Regressions",
    "not told": "Could not be told",
    "improvement": "Improvements",
    "unchanged": "Unchanged",
}
IN_TERMINAL = 12
"""Lines of each part that the terminal shows; the rest is in the files."""
STYLES = {"regression": "red", "improvement": "green"}
COLUMNS = ("SUT", "level", "mutation", "before", "after", "difference", "95 % interval")


def comparison_tables(comparison: Comparison, *, most: int = IN_TERMINAL) -> Iterator[RichTable]:
    """Yield one table for each part that has lines, but for what did not change."""
    several = len(comparison.pairing.suts) > 1
    for outcome in ("regression", "not told", "improvement"):
        changes = comparison.of(outcome)
        if not changes:
            continue
        whose = "" if several else f" of {sut_words(changes[0])}"
        title = Text(f"{HEADS[outcome]}{whose}: {len(changes)}", style="italic")
        table = RichTable(title=title, title_justify="left")
        for name in ("level and mutation", "before", "after", "change", "95 % interval"):
            table.add_column(name, overflow="fold", justify="left" if name.startswith("level") else "right")
        for change in changes[:most]:
            sut = f"{sut_words(change)} at " if several else ""
            table.add_row(
                Text(f"{sut}{shown(change.level)}\n{shown(change.setting)}"),
                Text(_number(change.before)),
                Text(_number(change.after)),
                Text(_signed(change), style=STYLES.get(outcome, "")),
                Text(interval_words(change) or "none"),
            )
        if len(changes) > most:
            table.caption = f"and {len(changes) - most} more: --html, --csv or --json writes them all"
        yield table


def comparison_lines(comparison: Comparison) -> list[str]:
    """Return what a reader must know besides: the answer, how sure it is, what could not be compared."""
    lines = [headline(comparison), method(comparison)]
    alone = [one for one in comparison.of("not told") if one.why.startswith("alone")]
    if alone:
        lines.append(f"{len(alone)} of those that could not be told would count alone; more logs would tell.")
    return [
        *lines,
        *(f"only in one: {shown(text, longest=400)}" for text in comparison.pairing.only),
        *(f"also: {shown(text, longest=400)}" for text in comparison.notes),
    ]


def headline(comparison: Comparison) -> str:
    """Return the answer in one sentence."""
    counts = {outcome: len(comparison.of(outcome)) for outcome in HEADS}
    worse, better = counts["regression"], counts["improvement"]
    first = (
        f"{worse} {_plural(worse, 'figure')} got worse for certain"
        if worse
        else "Nothing got worse for certain"
    )
    rest = f"{better} better, {counts['unchanged']} unchanged, {counts['not told']} could not be told"
    return f"{first}; {rest}."


def method(comparison: Comparison) -> str:
    """Say over what the differences are taken, and what certain means."""
    pairing = comparison.pairing
    logs = f"Paired over the {len(pairing.logs)} test logs that are the same in both runs"
    if comparison.correction == "none":
        return f"{logs}; each comparison stands alone at 95 %, so about 1 in 20 is named by chance."
    sure = "certain means that the chance of any false claim among all comparisons is at most 5 % (Holm)"
    return f"{logs}; {sure}."


def comparison_table(comparison: Comparison, outcomes: Sequence[str] = tuple(HEADS)) -> Table:
    """Return the changes that came out so as one table, with every digit in its twins."""
    changes = [change for outcome in outcomes for change in comparison.of(outcome)]
    rows = tuple(
        (
            Cell(sut_words(change)),
            Cell(shown(change.level)),
            Cell(shown(change.setting)),
            Cell(_number(change.before)),
            Cell(_number(change.after)),
            Cell(_signed(change), note=_robustness(change)),
            Cell(interval_words(change) or "none", more=change.why),
        )
        for change in changes
    )
    title = ", ".join(HEADS[outcome].lower() for outcome in outcomes)
    return Table(f"comparison {title}", title, COLUMNS, rows, tuple(change.plain() for change in changes))


def sut_words(change: Change) -> str:
    """Name the SUT, or both where their names differ."""
    if change.before_sut == change.after_sut:
        return shown(change.before_sut)
    return f"{shown(change.before_sut)} -> {shown(change.after_sut)}"


def interval_words(change: Change) -> str:
    """Return the interval of a difference in few characters; empty where there is none."""
    found = change.difference
    if found is None or found.low is None or found.high is None:
        return ""
    mark = "~" if found.status == "few logs" else ""
    return f"{mark}{found.low:+.3f} to {found.high:+.3f}"


def _robustness(change: Change) -> str:
    found = change.robustness
    if found is None or found.value is None:
        return ""
    ends = "" if found.low is None else f" ({found.low:+.3f} to {found.high:+.3f})"
    both = f"{_number(change.robustness_before)} before, {_number(change.robustness_after)} after"
    return f"robustness {both}: {found.value:+.3f}{ends}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _signed(change: Change) -> str:
    known = change.difference.value if change.difference else None
    return "insufficient" if known is None else f"{known:+.3f}"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


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

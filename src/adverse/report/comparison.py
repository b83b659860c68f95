"""Two runs compared, in the terminal and as a page: regressions first, then what is inconclusive."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adverse.analysis.compare import Comparison
from adverse.analysis.pairing import Change
from adverse.report.agreement import page_words, table_words, words
from adverse.report.interval_bar import interval_bar
from adverse.report.intervals import interval_text
from adverse.report.layout import rendered
from adverse.report.table import Cell, Column, Table, Tone, columns, setting_cell
from adverse.store.read import Store
from adverse.text import counted, setting_text, shown

HEADS = {
    "regression": "Regressions",
    "not told": "Inconclusive",
    "improvement": "Improvements",
    "unchanged": "Unchanged",
}
MOST_LINES, WIDTH = 30, 80
"""What a comparison takes of a terminal, in all."""
AROUND, FILES = 5, 2
"""Lines of a table's frame, heading and caption, and of the names of files that were written."""
LEAST = 2
"""So many of each part are shown however many there are of the others."""
METRICS = {"false_positives_per_image": "false positives per image", "fault_rate": "fault rate"}
"""Metrics that stand in place of a level, in words."""
NAMED_CHANGED = 3
"""SUTs and mutations that are named among those that changed."""
NAMED = 2
"""Up to so many SUTs, mutations or logs that only one run has are named."""
TONES: dict[str, Tone] = {"regression": "bad", "improvement": "good"}


def terminal_table(comparison: Comparison) -> Table | None:
    """Return what changed as one table of a part for each outcome, the worst first, that fits a terminal.

    None where nothing changed.
    """
    several = len(comparison.pairing.suts) > 1
    parts = [outcome for outcome in ("regression", "improvement", "not told") if comparison.of(outcome)]
    if not parts:
        return None
    said = [headline(comparison), *comparison_lines(comparison)]
    used = sum(len(textwrap.wrap(line, WIDTH)) for line in said) + AROUND + 2 * len(parts) + FILES
    left = (MOST_LINES - used) // 2  # a line for the figure, one for its mutation
    whole = comparison_table(comparison, parts)
    kept: list[int] = []
    groups: dict[int, str] = {}
    first = 0
    for number, outcome in enumerate(parts):
        count = len(comparison.of(outcome))
        here = min(count, max(left - LEAST * (len(parts) - 1 - number), LEAST))
        groups[len(kept)] = f"{HEADS[outcome]}: {count}"
        kept += range(first, first + here)
        left, first = left - here, first + count
    more = f"and {first - len(kept)} more: --html, --csv or --json writes them all"
    table = replace(
        whole,
        rows=tuple(whole.rows[number] for number in kept),
        groups=groups,
        title="" if several else sut_words(comparison.of(parts[0])[0]),
        caption=more if first > len(kept) else "",
        records=(),
    ).without_details("95 % interval")
    heading = "SUT, level and mutation" if several else "level and mutation"
    table = table.stacked(heading, *(("SUT",) if several else ()), "level", "mutation")
    table = table.only(heading, "before", "after", "difference", "95 % interval")
    return table if comparison.pairing.first.run.truth is None else table_words(table)


def comparison_lines(comparison: Comparison) -> list[str]:
    """Return what a reader must know besides the differences: how sure they are, what was not compared."""
    few = any(change.difference and change.difference.status == "few logs" for change in comparison.changes)
    lines = [method(comparison) + (" ~: few logs." if few else "")]
    lines += comparison.pairing.basis
    alone = [change for change in comparison.of("not told") if change.why.startswith("alone")]
    if alone:
        lines.append(
            f"{len(alone)} of the inconclusive ones would be significant alone; more logs would settle them."
        )
    only = comparison.pairing.only
    if len(only) > NAMED:
        lines.append(f"only in one of the runs: {counted(len(only), 'thing')}; --html names them")
    else:
        lines += [f"only in one: {shown(text, longest=400)}" for text in only]
    lines += [f"also: {shown(text, longest=400)}" for text in folded_notes(comparison.notes)]
    return lines if comparison.pairing.first.run.truth is None else list(map(words, lines))


def folded_notes(notes: Sequence[str]) -> list[str]:
    """Return notes in which all SUTs, or mutations, that changed are one; mutations in words.

    >>> folded_notes(["SUT a changed", "mutation haze(visibility_m=98) changed", "the seed changed"])
    ['SUT a changed', 'mutation haze 98 m changed', 'the seed changed']
    >>> folded_notes([f"SUT {name} changed" for name in "abcde"])
    ['5 SUTs changed: a, b, c and 2 more']
    """
    changed: dict[str, list[str]] = {"SUT": [], "mutation": []}
    rest = []
    for note in notes:
        noun, _, name = note.removesuffix(" changed").partition(" ")
        if noun in changed and note.endswith(" changed"):
            changed[noun].append(setting_text(name) if noun == "mutation" else name)
        else:
            rest.append(note)
    lines = []
    for noun, names in changed.items():
        if len(names) == 1:
            lines.append(f"{noun} {names[0]} changed")
        elif names:
            more = f" and {len(names) - NAMED_CHANGED} more" if len(names) > NAMED_CHANGED else ""
            lines.append(f"{len(names)} {noun}s changed: {', '.join(names[:NAMED_CHANGED])}{more}")
    return [*lines, *rest]


def headline(comparison: Comparison) -> str:
    """Return the answer in one sentence."""
    counts = {outcome: len(comparison.of(outcome)) for outcome in HEADS}
    worse, better = counts["regression"], counts["improvement"]
    if comparison.stopped_answering:
        many = len(comparison.stopped_answering) > 1
        names = ", ".join(map(shown, comparison.stopped_answering))
        first = f"{names} answered before and {'fail' if many else 'fails'} on every image now"
        first += f"; of the others, {worse} {_plural(worse, 'figure')} got worse for certain" if worse else ""
    elif worse:
        first = f"{worse} {_plural(worse, 'figure')} got worse for certain"
    else:
        first = _nothing_certain(comparison)
    rest = f"{better} better, {counts['unchanged']} unchanged, {counts['not told']} inconclusive"
    return f"{first}; {rest}."


def _nothing_certain(comparison: Comparison) -> str:
    """Say that nothing got worse for certain, or that this cannot be told, and what looks worst."""
    open_ones = [change for change in comparison.changes if change.may_have_fallen]
    if not open_ones:
        return "Nothing got worse for certain"
    logs = len(comparison.pairing.logs)
    first = (
        f"Whether anything got worse for certain cannot be told: too few logs ({logs}) for {len(open_ones)} "
    )
    first += _plural(len(open_ones), "figure")
    worst = min(open_ones, key=lambda change: change.size)
    if worst.size >= 0:
        return first
    place = f"{worst.level} of {sut_words(worst)} under {setting_text(worst.setting)}"
    return f"{first}, first of all {place}: {_number(worst.before)} -> {_number(worst.after)}"


def method(comparison: Comparison) -> str:
    """Say over what the differences are taken, and what certain means."""
    pairing = comparison.pairing
    logs = f"Paired over the {len(pairing.logs)} test logs that are the same in both runs"
    if comparison.correction == "none":
        return f"{logs}; each comparison stands alone at 95 %, so about 1 in 20 is named by chance."
    sure = "certain means that the chance of any false claim among all comparisons is at most 5 % (Holm)"
    return f"{logs}; {sure}."


def comparison_table(comparison: Comparison, outcomes: Sequence[str] = tuple(HEADS)) -> Table:
    """Return the changes that came out so as one table, with every digit in its CSV and JSON."""
    changes = [change for outcome in outcomes for change in comparison.of(outcome)]
    reach = _reach(comparison)
    rows = tuple(
        (
            Cell(sut_words(change)),
            Cell(change.level, METRICS.get(change.level, change.level)),
            setting_cell(change.setting),
            Cell(change.before),
            Cell(change.after),
            Cell(
                change.difference.value if change.difference else None,
                _signed(change),
                note=_robustness(change),
                tone=TONES.get(change.outcome, ""),
            ),
            Cell(_interval(change) or "none", details=(change.why,)),
            Cell(drawing=_bar(change, reach)),
        )
        for change in changes
    )
    title = ", ".join(HEADS[outcome].lower() for outcome in outcomes)
    headings = (
        *columns("SUT", "level", "mutation", "before", "after", format=".3f", left=3),
        Column("difference", brief="change"),
        Column("95 % interval"),
        Column("", drawn=True),
    )
    records = tuple(change.plain() for change in changes)
    return Table(f"comparison {title}", title, headings, rows, records)


def sut_words(change: Change) -> str:
    """Name the SUT, or both where their names differ."""
    if change.before_sut == change.after_sut:
        return shown(change.before_sut)
    return f"{shown(change.before_sut)} -> {shown(change.after_sut)}"


def _interval(change: Change) -> str:
    difference = change.difference
    if difference is None:
        return ""
    return interval_text(difference.low, difference.high, "+.3f", status=difference.status)


def _robustness(change: Change) -> str:
    robustness = change.robustness
    if robustness is None or robustness.value is None:
        return ""
    ends = interval_text(robustness.low, robustness.high, "+.3f")
    both = f"{_number(change.robustness_before)} before, {_number(change.robustness_after)} after"
    return f"robustness {both}: {robustness.value:+.3f}" + (f" ({ends})" if ends else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _signed(change: Change) -> str:
    difference = change.difference.value if change.difference else None
    return "insufficient" if difference is None else f"{difference:+.3f}"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


WORDS = {
    "regression": "The whole interval of the difference lies on the worse side of 0.",
    "not told": "The interval holds 0, or there is none, or among so many it may be chance.",
    "improvement": "The whole interval of the difference lies on the better side of 0.",
    "unchanged": "Every log came to exactly the same in both runs.",
}


@dataclass(frozen=True)
class OutcomeSection:
    """The changes that came out one way, as the page shows them."""

    outcome: str
    head: str
    words: str
    table: Table


def render_comparison(comparison: Comparison) -> str:
    """Return the whole page."""
    parts = [
        OutcomeSection(outcome, head, WORDS[outcome], comparison_table(comparison, (outcome,)))
        for outcome, head in HEADS.items()
        if comparison.of(outcome)
    ]
    pairing = comparison.pairing
    page = rendered(
        "comparison.html",
        title=" and ".join(dict.fromkeys(shown(store.run.name) for store in (pairing.first, pairing.second))),
        headline=headline(comparison),
        method=method(comparison),
        basis=comparison.pairing.basis,
        parts=parts,
        whole=comparison_table(comparison),
        only=[shown(text, longest=400) for text in pairing.only],
        notes=[shown(text, longest=400) for text in folded_notes(comparison.notes)],
        runs=[_facts(word, store) for word, store in (("before", pairing.first), ("after", pairing.second))],
    )
    return page if pairing.first.run.truth is None else page_words(page)


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


def _bar(change: Change, reach: float) -> str:
    """Draw the interval of a difference around 0; nothing where there is none."""
    difference = change.difference
    if difference is None or difference.value is None or difference.low is None or difference.high is None:
        return ""
    return interval_bar(difference.low, difference.value, difference.high, span=(-reach, reach), lines=(0.0,))

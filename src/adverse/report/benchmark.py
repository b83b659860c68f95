"""A benchmark table in the terminal: P, mPC and rPC of each SUT, then corruptions by SUT; all in percent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from adverse.benchmarks.classification import corruption_errors, mean_corruption_error, read_reference
from adverse.benchmarks.published import SOURCE, Published
from adverse.benchmarks.table import BenchTable, SutRobustness
from adverse.curves.interval import FEW_LOGS, Interval
from adverse.errors import StudyError

ABREAST = 5
"""SUTs side by side in a table of corruptions, so that 80 columns are enough."""


def benchmark_tables(table: BenchTable, *, by_class: bool = False) -> Iterator[Table]:
    """Yield the tables of a benchmark, the shortest first."""
    yield _summary(table)
    for start in range(0, len(table.rows), ABREAST):
        yield _corruptions(table, table.rows[start : start + ABREAST])
    if by_class:
        for row in table.rows:
            yield _classes(table, row)


def published_tables(rows: Sequence[Published]) -> Iterator[Table]:
    """Yield one table for each data set of the published leaderboard."""
    for dataset, metric in dict.fromkeys((row.dataset, row.metric) for row in rows):
        table = Table(title=f"PUBLISHED, not of this run: {dataset}, box {metric}", title_justify="left")
        table.add_column("model", overflow="fold")
        table.add_column("backbone", overflow="fold")
        for name in ("P", "mPC", "rPC %"):
            table.add_column(name, justify="right")
        for row in rows:
            if (row.dataset, row.metric) == (dataset, metric):
                numbers = (f"{value:.1f}" for value in (row.clean, row.corrupted, row.relative))
                table.add_row(row.model, row.backbone, *numbers)
        table.caption = SOURCE
        yield table


def benchmark_remarks(table: BenchTable) -> list[str]:
    """Return what a reader must know before trusting the table, one line each."""
    lines = [f"{table.metric.short}: {table.metric.full}", *_of_intervals(table)]
    total = len(table.classes)
    for row in table.rows:
        if row.classes_named < total:
            lines.append(
                f"{row.sut}: never named {total - row.classes_named} of the {total} classes on clean images; "
                "they count as 0 (--classes compares on fewer)"
            )
        if row.faults:
            lines.append(f"{row.sut}: failed on {row.faults} images; they count as nothing detected")
    if table.left_out:
        lines.append(f"{table.left_out} images could not be used under some setting, and are left out of all")
    if table.status == "incomplete":
        lines.append(
            "the table is incomplete: more images could not be used than quarantine_budget allows. "
            "Fix: mend them (adverse analyze names them), or raise quarantine_budget in the study."
        )
    if table.not_counted:
        lines.append(f"no part of mPC: {', '.join(table.not_counted)}")
    return [f"- {line}" for line in lines]


def corruption_error_lines(table: BenchTable, reference: Path | None) -> list[str]:
    """Return the mean corruption error of each classifier against a reference; nothing without one."""
    if reference is None:
        return []
    if table.metric.name not in ("top1", "top5"):
        raise StudyError(
            "the mean corruption error is for classifiers",
            where="--reference",
            got=table.metric.full,
            fix="Take --reference out.",
        )
    errors = read_reference(reference)
    return [
        f"{row.sut}: mCE {mean_corruption_error(corruption_errors(row.whole.cells), errors):.1f} % "
        f"({table.metric.full}; reference {reference.name})"
        for row in table.rows
    ]


def _of_intervals(table: BenchTable) -> Iterator[str]:
    found = [row.intervals for row in table.rows if row.intervals is not None]
    if found:
        few = f" (?: fewer than {FEW_LOGS})" if found[0].clean.status == "few logs" else ""
        logs = f"{found[0].clean.logs} logs{few}"
        yield f"[low high]: 95% intervals over {logs}; what other data sets of the same size would show"
    for row in table.rows:
        missing = (
            [one for one in asdict(row.intervals).values() if one["low"] is None] if row.intervals else []
        )
        if missing:
            yield f"{row.sut}: {len(missing)} of its intervals are refused: {missing[0]['why']}"


def _summary(table: BenchTable) -> Table:
    complete = all(row.whole.complete for row in table.rows)
    shown = Table(title=_title(table), title_justify="left")
    shown.add_column("SUT", overflow="fold")
    shown.add_column(f"P ({table.metric.short})", justify="right")
    shown.add_column("mPC" if complete else table.rows[0].whole.label, justify="right", overflow="fold")
    shown.add_column("rPC %" if complete else "% of P", justify="right")
    for row in sorted(table.rows, key=lambda row: -row.whole.corrupted):
        whole, sure = row.whole, row.intervals
        shown.add_row(
            row.sut,
            _with_interval(whole.clean, sure.clean if sure else None),
            _with_interval(whole.corrupted, sure.corrupted if sure else None),
            _with_interval(whole.relative, sure.relative if sure else None),
        )
    return shown


def _corruptions(table: BenchTable, rows: Sequence[SutRobustness]) -> Table:
    shown = Table(title=f"{table.metric.short}, mean over severities", title_justify="left")
    shown.add_column("corruption", no_wrap=True)
    for row in rows:
        shown.add_column(row.sut, justify="right", overflow="fold")
    shown.add_row("(clean)", *(_percent(row.whole.clean) for row in rows), end_section=True)
    for name in rows[0].whole.by_corruption:
        shown.add_row(name, *(_percent(row.whole.by_corruption[name]) for row in rows))
    return shown


def _classes(table: BenchTable, row: SutRobustness) -> Table:
    shown = Table(title=f"{row.sut}: {table.metric.short} by class", title_justify="left")
    shown.add_column("class", overflow="fold")
    for name in (
        "P",
        "mPC" if row.whole.complete else "partial mean",
        "rPC %" if row.whole.complete else "% of P",
    ):
        shown.add_column(name, justify="right")
    for name, found in row.classes.items():
        shown.add_row(name, _percent(found.clean), _percent(found.corrupted), _percent(found.relative))
    return shown


def _title(table: BenchTable) -> str:
    names = table.classes
    listed = ", ".join(names) if len(names) <= 3 else f"{len(names)} classes"
    return f"{table.study}: {table.images} images, {listed}"


def _with_interval(value: float | None, found: Interval | None) -> str:
    """Return a value with its interval, marked where it rests on few logs."""
    if value is None or found is None or found.low is None or found.high is None:
        return _percent(value)
    doubt = "" if found.status == "ok" else "?"
    return f"{_percent(value)} [{_percent(found.low)} {_percent(found.high)}]{doubt}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"

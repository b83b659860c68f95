"""The corruption benchmark (P, mPC and rPC, in percent) and the scores of every class, as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from adverse.analysis.results import Summary
from adverse.benchmarks.classification import corruption_errors, mean_corruption_error, read_reference
from adverse.benchmarks.mpc import GROUPS, PUBLISHED_ON, SOURCE, PublishedRow
from adverse.benchmarks.table import BenchTable
from adverse.curves.interval import FEW_LOGS
from adverse.errors import StudyError
from adverse.report.benchmark_figures import TRAINED
from adverse.report.intervals import interval_text
from adverse.report.table import Cell, Column, Row, Table, columns, setting_cell
from adverse.store.folder import BENCHMARK
from adverse.store.read import Store
from adverse.text import counted, shown

PARTS = ("clean", "corrupted", "relative")
WHOLE, PARTIAL = ("P", "mPC", "rPC"), ("P", "partial_mean", "partial_relative")
"""The keys of a benchmark's numbers; those that are no mean over the whole battery are not called mPC."""
PARTIAL_HEADINGS = ("P", "partial mean, not mPC", "% of P")
MIXED_HEADINGS = ("P", "mean", "% of P")
"""Where the mean of some SUTs is mPC and that of others is not."""
ABREAST = 5
"""SUTs side by side in a table of corruptions, so that 80 columns are enough."""
SHADED = ", shaded by the share of P that is left"
"""Said of tables on a page; a terminal has no shades."""
CLASS_WORDS = {"mean_iou": "IoU", "top1": "top-1 accuracy"}


def saved_benchmark(store: Store) -> Row | None:
    """Return the benchmark as `adverse bench-table --save` left it; None without it."""
    path = store.result(f"{BENCHMARK}.json")
    data: Row | None = None if path is None else json.loads(path.read_text("utf-8"))
    return data


def benchmark_tables(data: Row | None) -> list[Table]:
    """Return the tables of a benchmark, the shortest first; none without one."""
    if data is None:
        return []
    tables = [_summary(data, best_first=False), *_groups(data), _corruptions(data)]
    if len(data["classes"]) > 1:
        tables.append(benchmark_classes(data))
    return tables


def in_terminal(data: Row, *, by_class: bool = False) -> Iterator[Table]:
    """Yield the tables of a benchmark that 80 columns hold, the best SUT first."""
    names = data["classes"]
    listed = ", ".join(names) if len(names) <= 3 else f"{len(names)} classes"
    title = f"{data['study']}: {data['images']} images, {listed}"
    yield replace(_summary(data, best_first=True), title=title)
    for table in (*_groups(data), _corruptions(data)):
        yield from replace(table, title=table.title.removesuffix(SHADED)).abreast(ABREAST)
    if by_class:
        classes = benchmark_classes(data)
        yield from replace(classes, title=classes.title.removesuffix(SHADED)).abreast(len(WHOLE))


def benchmark_classes(data: Row) -> Table:
    """Return P, mPC and rPC of every class, three columns for each SUT."""
    suts: Sequence[Row] = data["suts"]
    whole = _whole(data)
    names = [name for name in data["classes"] if any(name in sut["by_class"] for sut in suts)]
    rows = tuple(
        (
            Cell(name),
            *(cell for sut in suts for cell in _class_cells(sut["by_class"].get(name), whole="mPC" in sut)),
        )
        for name in names
    )
    records = tuple(
        {"sut": sut["sut"], "class": name, **sut["by_class"].get(name, {})} for name in names for sut in suts
    )
    parts = WHOLE if whole else ("P", "mean", "% of P")
    headings = [f"{shown(sut['sut'])} {part}" for sut in suts for part in parts]
    title = f"{data['metric']['short']} of each class in percent{SHADED}"
    return Table("benchmark classes", title, columns("class", *headings), rows, records)


CLASSES_ABREAST = 12
"""Classes that stand beside each other under every mutation; of more, each is told at its worst."""


def class_tables(summary: Summary) -> list[Table]:
    """Return for each segmenter or classifier every class under every setting; none for detectors."""
    if summary.data["task"] == "detection":
        return []
    metric = str(summary.data["metric"])
    suts = dict.fromkeys(str(row["sut"]) for row in summary.rows)
    return [_class_table(sut, metric, [row for row in summary.rows if row["sut"] == sut]) for sut in suts]


def published_tables(rows: Sequence[PublishedRow]) -> Iterator[Table]:
    """Yield one table for each data set of the published leaderboard."""
    for dataset, metric in dict.fromkeys((row.dataset, row.metric) for row in rows):
        mine = [row for row in rows if (row.dataset, row.metric) == (dataset, metric)]
        yield Table(
            f"published {dataset} {metric}",
            f"PUBLISHED, not of this run: {dataset}, {'mask' if mine[0].task == 'segm' else 'box'} {metric}",
            columns("model", "backbone", "P", "mPC", "rPC %", format=".1f", left=2),
            tuple(tuple(map(Cell, (row.model, row.backbone, *_published(row)))) for row in mine),
            caption=SOURCE,
        )


def published_remarks(table: BenchTable, rows: Sequence[PublishedRow]) -> list[str]:
    """Say of each data set of published rows that this table is of other images or classes, where it is."""
    here = (table.images, len(table.classes))
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        images, classes = PUBLISHED_ON[dataset]
        if here != (images, classes):
            lines.append(
                f"- NOT COMPARABLE with the published rows of {dataset}: those are of {images} images and "
                f"{classes} classes, this table of {counted(here[0], 'image')} and {_classes(here[1])}"
            )
    return lines


def _classes(count: int) -> str:
    return "1 class" if count == 1 else f"{count} classes"


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
        if row.trained_on:
            lines.append(
                f"{row.sut}: trained on {', '.join(row.trained_on)} ({TRAINED}), so its mean is not mPC"
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
    intervals = [row.intervals for row in table.rows if row.intervals is not None]
    if intervals:
        clean = intervals[0].clean
        few = f" (~: fewer than {FEW_LOGS})" if clean.status == "few logs" else ""
        yield (
            f"low to high: 95% intervals over {clean.logs} logs{few}; what other data sets of the same size "
            "would show"
        )
    for row in table.rows:
        known = asdict(row.intervals).values() if row.intervals else ()
        missing = [interval for interval in known if interval["low"] is None]
        if missing:
            yield f"{row.sut}: {len(missing)} of its intervals are refused: {missing[0]['why']}"


def _published(row: PublishedRow) -> tuple[float | None, ...]:
    return row.clean, row.corrupted, row.relative


def _whole(data: Row) -> bool:
    return all("mPC" in sut for sut in data["suts"])


def _keys(sut: Row) -> tuple[str, str, str]:
    """Return the keys of a SUT's three numbers; a mean that is not mPC has another one."""
    return WHOLE if "mPC" in sut else PARTIAL


def _summary(data: Row, *, best_first: bool) -> Table:
    whole = _whole(data)
    suts: Sequence[Row] = data["suts"]
    if best_first:
        suts = sorted(suts, key=lambda sut: -sut[_keys(sut)[1]])
    rows = tuple(
        (
            Cell(f"{sut['sut']} {TRAINED}" if sut.get("trained_on") else sut["sut"]),
            *(_percent(sut[key], _interval(sut, part)) for key, part in zip(_keys(sut), PARTS, strict=True)),
        )
        for sut in suts
    )
    records = tuple(
        {
            "sut": sut["sut"],
            "metric": data["metric"]["name"],
            "images": data["images"],
            "status": data["status"],
            **{
                name: value
                for key, part in zip(_keys(sut), PARTS, strict=True)
                for name, value in (
                    (key, sut[key]),
                    (f"{key}_low", (_interval(sut, part) or {}).get("low")),
                    (f"{key}_high", (_interval(sut, part) or {}).get("high")),
                )
            },
        }
        for sut in data["suts"]
    )
    labels = dict.fromkeys(sut["label"] for sut in suts if "mPC" not in sut)
    doubt = f" ({'; '.join(labels)})" if labels else ""
    if data["status"] != "ok":
        doubt += f" ({data['status']}: {data['images_left_out']} images left out)"
    title = f"{data['metric']['full']}, in percent, over {data['images']} images{doubt}"
    some = any("mPC" in sut for sut in suts)
    p, mean, relative = WHOLE if whole else MIXED_HEADINGS if some else PARTIAL_HEADINGS
    headings = (*columns("SUT", p, mean), Column(relative, brief="rPC %" if whole else ""))
    return Table("benchmark", title, headings, rows, records)


def _groups(data: Row) -> list[Table]:
    """Return the means over noise, blur, weather and digital corruptions, if any group is complete."""
    suts: Sequence[Row] = data["suts"]
    names = list(dict.fromkeys(name for sut in suts for name in sut.get("by_group", ())))
    if not names:
        return []
    rows = tuple(
        (
            Cell(name),
            *(
                _marked(sut, _share_of(sut.get("by_group", {}).get(name), sut["P"]), GROUPS[name])
                for sut in suts
            ),
        )
        for name in names
    )
    records = tuple(
        {
            "sut": sut["sut"],
            "group": name,
            "mean": sut.get("by_group", {}).get(name),
        }
        for name in names
        for sut in suts
    )
    title = f"{data['metric']['short']} in percent, mean over each group of corruptions{SHADED}"
    headings = (Column("group", align="left", no_wrap=True), *(Column(sut["sut"]) for sut in suts))
    return [Table("benchmark groups", title, headings, rows, records)]


def _corruptions(data: Row) -> Table:
    suts: Sequence[Row] = data["suts"]
    names = list(dict.fromkeys(name for sut in suts for name in sut["by_corruption"]))
    clean = (Cell("(clean)"), *(_percent(sut["P"]) for sut in suts))
    corrupted = ((Cell(name), *(_corruption(sut, name) for sut in suts)) for name in names)
    records = tuple(
        {
            "sut": sut["sut"],
            "corruption": name,
            "mean": sut["by_corruption"].get(name),
            "trained_on": name in sut.get("trained_on", ()),
        }
        for name in names
        for sut in suts
    )
    title = f"{data['metric']['short']} in percent, mean over severities{SHADED}"
    headings = (
        Column("corruption", align="left", no_wrap=True),
        *(Column(sut["sut"]) for sut in suts),
    )
    return Table("benchmark corruptions", title, headings, (clean, *corrupted), records, {1: ""})


def _corruption(sut: Row, name: str) -> Cell:
    return _marked(sut, _share_of(sut["by_corruption"].get(name), sut["P"]), [name])


def _marked(sut: Row, cell: Cell, names: Sequence[str]) -> Cell:
    """Return a cell with a mark if the SUT was trained with one of its corruptions."""
    trained = [name for name in sut.get("trained_on", ()) if name in names]
    if not trained:
        return cell
    words = "it" if len(names) == 1 else ", ".join(trained)
    note = f"trained on {words}; {cell.note}".removesuffix("; ")
    return replace(cell, text=f"{cell.text} {TRAINED}", note=note)


def _class_table(sut: str, metric: str, rows: Sequence[Row]) -> Table:
    classes = list(dict.fromkeys(name for row in rows for name in row["per_class"]))
    baseline = rows[0]["per_class"]
    lines = tuple(
        (
            setting_cell(row["setting"]),
            *(_class_score(row["per_class"].get(name), baseline.get(name), row) for name in classes),
        )
        for row in rows
    )
    records = tuple(
        {"sut": sut, "setting": row["setting"], "class": name, metric: row["per_class"].get(name)}
        for row in rows
        for name in classes
    )
    title = f"{shown(sut)}: {CLASS_WORDS[metric]} of each class, shaded by the share of its own clean figure"
    name = f"classes {sut}"
    if len(classes) > CLASSES_ABREAST:
        return _worst_of_classes(name, title, classes, rows, records)
    return Table(name, title, columns("mutation", *classes, format=".3f"), lines, records)


def _worst_of_classes(
    name: str, title: str, classes: Sequence[str], rows: Sequence[Row], records: tuple[Row, ...]
) -> Table:
    """Return a line for each of many classes: clean, at its worst, and under what; who loses most first."""
    clean, lines = rows[0]["per_class"], []
    for one in classes:
        known = [(row["per_class"][one], row) for row in rows[1:] if row["per_class"].get(one) is not None]
        if clean.get(one) and known:
            least, row = min(known, key=lambda pair: pair[0])
            cells = Cell(one), Cell(clean[one]), _class_score(least, clean[one], row)
            lines.append((clean[one] - least, (*cells, setting_cell(row["setting"]))))
    lines.sort(key=lambda line: -line[0])
    left = len(classes) - len(lines)
    return Table(
        name,
        title,
        (*columns("class", "clean", "at worst", format=".3f"), Column("under", align="left")),
        tuple(cells for _, cells in lines),
        records,
        caption=f"in the CSV only: {_classes(left)} without a clean figure above 0" if left else "",
    )


def _class_score(value: float | None, before: float | None, row: Row) -> Cell:
    if value is None:
        return Cell(None, note="this class is neither there nor named")
    if row["group"] == "baseline" or not before:
        return Cell(value)
    return Cell(value, note=f"{value / before:.0%} of its clean figure", share=value / before)


def _class_cells(scores: Row | None, *, whole: bool) -> Iterator[Cell]:
    clean, mean, relative = WHOLE if whole else PARTIAL
    known: Row = scores or {}
    yield _percent(known.get(clean))
    yield _share_of(known.get(mean), known.get(clean))
    yield _percent(known.get(relative))


def _share_of(value: float | None, whole: float | None) -> Cell:
    if value is None or not whole:
        return _percent(value)
    return Cell(100 * value, f"{100 * value:.1f}", note=f"{value / whole:.0%} of P", share=value / whole)


def _percent(value: float | None, interval: Row | None = None) -> Cell:
    if value is None:
        return Cell(None, note="P is 0")
    text = f"{100 * value:.1f}"
    if not interval or interval["low"] is None:
        return Cell(100 * value, text, note=f"no interval: {interval['why']}" if interval else "")
    ends = interval_text(100 * interval["low"], 100 * interval["high"], ".1f", status=interval["status"])
    return Cell(100 * value, text, details=(ends,))


def _interval(sut: Row, part: str) -> Row | None:
    interval: Mapping[str, Any] | None = (sut["intervals"] or {}).get(part)
    return interval

"""Tables of scores: P, mPC and rPC where a run has them, and every class of segmenters and classifiers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adverse.analysis.results import Summary
from adverse.report.tables import Cell, Row, Table, shade_of
from adverse.store.folder import BENCHMARK
from adverse.store.read import Store
from adverse.text import shown

PARTS = (("P", "clean"), ("mPC", "corrupted"), ("rPC", "relative"))
PARTIAL = {"mPC": "partial_mean", "rPC": "partial_relative"}
"""What the numbers are called that are no mean over the whole battery."""
WORDS = {"mean_iou": "IoU", "top1": "top-1 accuracy"}


def benchmark_tables(store: Store) -> list[Table]:
    """Return the corruption benchmark as `adverse bench-table --save` left it; none without it."""
    path = store.result(f"{BENCHMARK}.json")
    if path is None:
        return []
    data: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    suts: Sequence[Mapping[str, Any]] = data["suts"]
    whole = all("mPC" in one for one in suts)
    tables = [_summary(data, suts, whole=whole), _corruptions(data, suts)]
    if len(data["classes"]) > 1:
        tables.append(_classes(data, suts, whole=whole))
    return tables


def class_tables(summary: Summary) -> list[Table]:
    """Return for each segmenter or classifier every class under every setting; none for detectors."""
    if summary.data["task"] == "detection":
        return []
    metric = str(summary.data["metric"])
    suts = dict.fromkeys(str(row["sut"]) for row in summary.rows)
    return [_class_table(sut, metric, [row for row in summary.rows if row["sut"] == sut]) for sut in suts]


def _class_table(sut: str, metric: str, rows: Sequence[Row]) -> Table:
    classes = list(dict.fromkeys(name for row in rows for name in row["per_class"]))
    baseline = rows[0]["per_class"]
    lines = tuple(
        (
            Cell(shown(row["setting"])),
            *(_of_class(row["per_class"].get(name), baseline.get(name), row) for name in classes),
        )
        for row in rows
    )
    data = tuple(
        {"sut": sut, "setting": row["setting"], "class": name, metric: row["per_class"].get(name)}
        for row in rows
        for name in classes
    )
    title = f"{shown(sut)}: {WORDS[metric]} of each class, shaded by the share of its own baseline"
    return Table(f"classes {sut}", title, ("mutation", *classes), lines, data)


def _of_class(value: float | None, before: float | None, row: Row) -> Cell:
    if value is None:
        return Cell("-", note="this class is neither there nor named")
    if row["group"] == "baseline" or not before:
        return Cell(f"{value:.3f}")
    return Cell(f"{value:.3f}", note=f"{value / before:.0%} of its baseline", shade=shade_of(value / before))


def _summary(data: Mapping[str, Any], suts: Sequence[Mapping[str, Any]], *, whole: bool) -> Table:
    names = [name if whole or name == "P" else PARTIAL[name] for name, _ in PARTS]
    rows = tuple(
        (
            Cell(shown(one["sut"])),
            *(_percent(one[name], _ends(one, part)) for name, (_, part) in zip(names, PARTS, strict=True)),
        )
        for one in suts
    )
    plain = tuple(
        {
            "sut": one["sut"],
            "metric": data["metric"]["name"],
            "images": data["images"],
            "status": data["status"],
            **{
                key: value
                for name, (_, part) in zip(names, PARTS, strict=True)
                for key, value in ((name, one[name]), *_flat(name, one, part))
            },
        }
        for one in suts
    )
    doubt = (
        "" if data["status"] == "ok" else f" ({data['status']}: {data['images_left_out']} images left out)"
    )
    title = f"{data['metric']['full']}, in percent, over {data['images']} images{doubt}"
    heads = ("SUT", "P", "mPC", "rPC") if whole else ("SUT", "P", "partial mean, not mPC", "% of P")
    return Table("benchmark", title, heads, rows, plain)


def _corruptions(data: Mapping[str, Any], suts: Sequence[Mapping[str, Any]]) -> Table:
    names = list(dict.fromkeys(name for one in suts for name in one["by_corruption"]))
    rows = tuple(
        (Cell(shown(name)), *(_share_of(one["by_corruption"].get(name), one["P"]) for one in suts))
        for name in names
    )
    plain = tuple(
        {"sut": one["sut"], "corruption": name, "mean": one["by_corruption"].get(name)}
        for name in names
        for one in suts
    )
    title = (
        f"{data['metric']['short']} in percent, mean over severities, shaded by the share of P that is left"
    )
    return Table("benchmark corruptions", title, ("corruption", *(one["sut"] for one in suts)), rows, plain)


def _classes(data: Mapping[str, Any], suts: Sequence[Mapping[str, Any]], *, whole: bool) -> Table:
    mean = "mPC" if whole else PARTIAL["mPC"]
    names = [name for name in data["classes"] if any(name in one["by_class"] for one in suts)]
    rows = tuple(
        (Cell(shown(name)), *(cell for one in suts for cell in _class_cells(one["by_class"].get(name), mean)))
        for name in names
    )
    plain = tuple(
        {"sut": one["sut"], "class": name, **one["by_class"].get(name, {})} for name in names for one in suts
    )
    heads = [f"{shown(one['sut'])} {part}" for one in suts for part in ("P", "mPC" if whole else "mean")]
    title = f"{data['metric']['short']} of each class in percent, shaded by the share of P that is left"
    return Table("benchmark classes", title, ("class", *heads), rows, plain)


def _class_cells(found: Mapping[str, Any] | None, mean: str) -> Iterator[Cell]:
    if found is None:
        yield from (Cell("-"), Cell("-"))
        return
    yield _percent(found["P"])
    yield _share_of(found[mean], found["P"])


def _share_of(value: float | None, whole: float | None) -> Cell:
    plain = _percent(value)
    if value is None or not whole:
        return plain
    return Cell(plain.text, note=f"{value / whole:.0%} of P", shade=shade_of(value / whole))


def _percent(value: float | None, ends: Mapping[str, Any] | None = None) -> Cell:
    if value is None:
        return Cell("-", note="P is 0")
    if not ends or ends["low"] is None:
        return Cell(f"{100 * value:.1f}", note=f"no interval: {ends['why']}" if ends else "")
    mark = "~" if ends["status"] == "few logs" else ""
    return Cell(f"{100 * value:.1f}", f"{mark}{100 * ends['low']:.1f} to {100 * ends['high']:.1f}")


def _ends(one: Mapping[str, Any], part: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (one["intervals"] or {}).get(part)
    return found


def _flat(name: str, one: Mapping[str, Any], part: str) -> tuple[tuple[str, Any], ...]:
    ends = _ends(one, part) or {}
    return ((f"{name}_low", ends.get("low")), (f"{name}_high", ends.get("high")))

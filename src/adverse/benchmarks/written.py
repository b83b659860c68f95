"""A benchmark table as files: JSON for scripts, CSV for spreadsheets, both in the run folder when asked."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adverse.benchmarks.mpc import Robustness
from adverse.benchmarks.published import SOURCE, Published
from adverse.benchmarks.table import BenchTable
from adverse.study.store.folder import BENCHMARK
from adverse.study.store.read import Store

COLUMNS = ("sut", "metric", "class", "quantity", "corruption", "severity", "value")


def as_data(table: BenchTable, published: list[Published] | None = None) -> dict[str, Any]:
    """Return the table as plain data; numbers are from 0 to 1, published ones in percent as printed."""
    data: dict[str, Any] = {
        "study": table.study,
        "metric": {"name": table.metric.name, "short": table.metric.short, "full": table.metric.full},
        "status": table.status,
        "images": table.images,
        "images_left_out": table.left_out,
        "classes": list(table.classes),
        "corruptions_not_counted": list(table.not_counted),
        "suts": [
            {
                "sut": row.sut,
                **_numbers(row.whole),
                "intervals": None if row.intervals is None else asdict(row.intervals),
                "classes_named": row.classes_named,
                "faults": row.faults,
                "by_class": {name: _numbers(found, cells=False) for name, found in row.classes.items()},
            }
            for row in table.rows
        ],
    }
    if published is not None:
        data["published"] = {"source": SOURCE, "unit": "percent", "rows": [asdict(row) for row in published]}
    return data


def as_csv(table: BenchTable) -> str:
    """Return the table as CSV, one number in each line; severity 0 and no corruption is clean data."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in table.rows:
        for name, found in (("", row.whole), *row.classes.items()):
            for quantity, corruption, severity, value in _lines(found):
                writer.writerow((row.sut, table.metric.name, name, quantity, corruption, severity, value))
    return text.getvalue()


def save(table: BenchTable, store: Store) -> list[Path]:
    """Write the table into the results of its run, and seal it."""
    return store.write(
        {
            f"results/{BENCHMARK}.json": (json.dumps(as_data(table), indent=1) + "\n").encode(),
            f"results/{BENCHMARK}.csv": as_csv(table).encode(),
        }
    )


def _numbers(found: Robustness, *, cells: bool = True) -> dict[str, Any]:
    """Return the three numbers; a mean over fewer cells is not called mPC."""
    names = ("mPC", "rPC") if found.complete else ("partial_mean", "partial_relative")
    data: dict[str, Any] = {"P": found.clean, names[0]: found.corrupted, names[1]: found.relative}
    if cells:
        data["label"] = found.label
        data["by_corruption"] = dict(found.by_corruption)
        data["cells"] = [
            {"corruption": name, "severity": severity, "value": value}
            for (name, severity), value in found.cells.items()
        ]
    return data


def _lines(found: Robustness) -> Iterator[tuple[str, str, int | str, float | str]]:
    numbers = _numbers(found, cells=False)
    for quantity, value in numbers.items():
        yield quantity, "", 0 if quantity == "P" else "", "" if value is None else value
    for name, value in found.by_corruption.items():
        yield "mean", name, "", value
    for (name, severity), value in found.cells.items():
        yield "cell", name, severity, value

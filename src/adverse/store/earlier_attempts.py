"""Attempts of earlier runs: a cell that is asked again keeps what it took before.

Where --retry-faults, more time for a mutation, or the end of an outage has a cell run again, new rows take
the place of the old ones. The requests that the SUT got before happened all the same: they stay in the counts
of the new rows, or a SUT that fails would look faultless after as many runs as it takes.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adverse.store.records import OUTAGES, SCHEMA, table_bytes

SUMS = ("attempts", "failed_attempts", "outages")
COLUMNS = ("frame", "setting", "sut", *SUMS, "failures", "repeats")
Key = tuple[str, str, str]
"""Frame, setting, SUT."""


def attempts_in(path: Path, cells: Iterable[tuple[str, str]]) -> dict[Key, Mapping[str, Any]]:
    """Return what the rows of some cells (setting, SUT) of a file in detections/ say about attempts."""
    wanted = set(cells)
    rows = pq.read_table(path, columns=list(COLUMNS)).to_pylist()
    mine = [row for row in rows if (row["setting"], row["sut"]) in wanted]
    return {_key(row): row | {"repeats": _repeats(row)} for row in mine}


def _repeats(row: Mapping[str, Any]) -> bool | None:
    """Tell whether two answers were equal; None where one of them did not come, whatever the row says."""
    missing = any(
        not failure["answered"] and failure["kind"] not in OUTAGES for failure in row["failures"] or ()
    )
    return None if missing else row["repeats"]


def added(earlier: dict[Key, Mapping[str, Any]], later: Mapping[Key, Mapping[str, Any]]) -> None:
    """Count further attempts in."""
    for key, row in later.items():
        both = dict(row)
        if key in earlier:
            before = earlier[key]
            both |= {name: row[name] + before[name] for name in SUMS}
            both["failures"] = [*(before["failures"] or ()), *(row["failures"] or ())]
            repeats = [value for value in (before["repeats"], row["repeats"]) if value is not None]
            both["repeats"] = all(repeats) if repeats else None
        earlier[key] = both


def with_earlier(parquet: bytes, earlier: Mapping[Key, Mapping[str, Any]]) -> bytes:
    """Return the rows of a unit with the attempts that were made before counted in."""
    if not earlier:
        return parquet
    table = pq.read_table(io.BytesIO(parquet))
    rows = table.select([*COLUMNS, "status", "retried"]).to_pylist()
    for row in rows:
        before = earlier.get(_key(row))
        if before is not None:
            _add(row, before)
    for name in (*SUMS, "failures", "repeats", "retried"):
        column = pa.array([row[name] for row in rows], SCHEMA.field(name).type)
        table = table.set_column(table.schema.get_field_index(name), SCHEMA.field(name), column)
    return table_bytes(table)


def _key(row: Mapping[str, Any]) -> Key:
    return row["frame"], row["setting"], row["sut"]


def _add(row: dict[str, Any], before: Mapping[str, Any]) -> None:
    for name in SUMS:
        row[name] += before[name]
    answered = row["status"] == "ok"
    failures = [
        failure | {"answered": failure["answered"] or answered} for failure in before["failures"] or ()
    ]
    row["failures"] = [*failures, *(row["failures"] or ())] or None
    repeats = [value for value in (before["repeats"], row["repeats"]) if value is not None]
    row["repeats"] = all(repeats) if repeats else None
    faults = [failure["message"] for failure in failures if failure["kind"] not in OUTAGES]
    if answered and faults:
        row["retried"] = faults[0]

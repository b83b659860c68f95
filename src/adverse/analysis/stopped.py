"""A run that stopped early, read as what it is: every figure from the logs of its own look.

A SUT was shown a mutation up to some look, then the rules over both were settled; or only those were open
about which logs without people say nothing, and further logs were logs with people. A figure of the two is
that of the logs up to the last look that was shown whole, and its interval has the confidence of the look (a
repeated interval: those of all looks hold together with 95 %, whenever one stops). A figure over several
mutations is of the last look that all of them have. What compares SUTs, or mutations with each other, at a
fixed risk is left out.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adverse.analysis.score import WORST, family_name
from adverse.curves.group_sequential import Spending, boundaries, look_confidence
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.records import table_bytes
from adverse.store.selection import Batch, SelectionKind, read_batches

UNTIL: SelectionKind = "until"
LEFT_OUT = ("rankings", "ranking_changes", "differences", "unseen")
EMPTIED = ("predictions", "predicted", "prediction_weights")
OF_ALL_LOOKS = ("troubles", "failed_attempts")
"""Parts of a summary that are given at a fixed risk, or compare figures of different logs; those that must be
there all the same; and what is no figure of a look, but what went wrong in all of the run."""
KEYS = ("sut", "level", "setting", "family", "relation", "metric", "slice", "part", "frame", "log")
"""What tells the rows of a table apart."""


@dataclass(frozen=True, eq=False)
class Looks:
    """The looks of a run that stopped early: their logs and confidence, and which cell got how far."""

    store: Store
    stages: tuple[tuple[str, ...], ...]
    """The logs that each look adds, of all looks that were planned."""
    counts: tuple[tuple[int, int], ...]
    """How many logs with people, and without, there are at each."""
    spending: Spending
    reached: Mapping[tuple[str, str], int]
    """By (SUT, setting): the last look, from 0, whose logs were all shown."""
    with_people: Mapping[tuple[str, str], int]
    """By (SUT, setting): the last look whose logs with people were shown, be it without the others."""
    least_logs: int
    """How many logs of either kind a PASS takes; further ones without people are shown where needed."""

    @cached_property
    def _confidences(self) -> list[float]:
        whole = sum(self.counts[-1])
        shares = [sum(count) / whole for count in self.counts]
        return [look_confidence(z) for z in boundaries(shares, kind=self.spending)]

    @cached_property
    def taken(self) -> int:
        """How many looks were taken."""
        return max(self.with_people.values()) + 1

    @cached_property
    def shown(self) -> tuple[frozenset[str], frozenset[str]]:
        """The settings and SUTs of which anything was run."""
        return frozenset(setting for _, setting in self.reached), frozenset(sut for sut, _ in self.reached)

    @cached_property
    def shown_logs(self) -> list[str]:
        """The logs of which anything was run."""
        whole = logs_until(self.stages, self.counts, max(self.reached.values()))
        return list(dict.fromkeys([*whole, *self._logs(self.taken - 1, people=True)]))

    def _logs(self, look: int, *, people: bool) -> list[str]:
        return logs_until(self.stages, self.counts, look, self.least_logs if people else None)

    @cached_property
    def _views(self) -> dict[tuple[int, bool], Store]:
        return {}

    def confidence(self, look: int) -> float:
        """Return the confidence of the intervals of a look, from 0."""
        return self._confidences[look]

    def at(self, look: int, *, people: bool = False) -> Store:
        """Return the run as it was at a look, for rules about logs with `people` or any."""
        key = (look, people)
        if key not in self._views:
            logs = self._logs(look, people=people)
            self._views[key] = self.store.of_logs(logs, confidence=self.confidence(look), shown=self.shown)
        return self._views[key]

    def of(self, sut: str, settings: Iterable[str], *, people: bool = False) -> int | None:
        """Return the last look that a SUT has under all of some settings; None: not under all of them."""
        reached = self.with_people if people else self.reached
        found = [reached.get((sut, setting)) for setting in settings]
        known = [look for look in found if look is not None]
        return min(known) if known and len(known) == len(found) else None

    def logs(self, sut: str, setting: str) -> int:
        """Return how many logs a SUT was shown under a setting."""
        whole, people = (of.get((sut, setting)) for of in (self.reached, self.with_people))
        return 0 if whole is None or people is None else self.counts[people][0] + self.counts[whole][1]


def logs_until(
    stages: Sequence[Sequence[str]], counts: Sequence[tuple[int, int]], look: int, enough: int | None = None
) -> list[str]:
    """Return the logs up to a look; with `enough`, those without people up to the first look with so many.

    The logs of a stage begin with those that have people in them.

    >>> logs_until([["p1", "n1"], ["p2", "n2"], ["p3", "n3"]], [(1, 1), (2, 2), (3, 3)], 2, enough=2)
    ['p1', 'n1', 'p2', 'n2', 'p3']
    """
    logs: list[str] = []
    for number, stage in enumerate(stages[: look + 1]):
        mine = people_in(counts, number)
        logs += stage if shows_all(counts, number, enough) else stage[:mine]
    return logs


def people_in(counts: Sequence[tuple[int, int]], look: int) -> int:
    """Return how many logs with people a look adds: the first ones of its stage."""
    return counts[look][0] - (counts[look - 1][0] if look else 0)


def shows_all(counts: Sequence[tuple[int, int]], look: int, enough: int | None) -> bool:
    """Tell whether a look takes logs of either kind: the looks before had not yet enough of both."""
    return enough is None or not look or min(counts[look - 1]) < enough


def looks_of(store: Store) -> Looks:
    """Return the looks of a run with `--until`, from its manifest and what it was asked for."""
    selection = store.run.selection
    if selection is None or selection.kind != UNTIL:
        raise ValueError("the run was not made to stop early")
    facts = selection.facts
    stages = tuple(tuple(logs) for logs in facts["logs"])
    counts = tuple((int(positive), int(negative)) for positive, negative in facts["looks"])
    reached: dict[tuple[str, str], int] = {}
    with_people: dict[tuple[str, str], int] = {}
    look_of = {log: look for look, stage in enumerate(stages) for log in stage}
    ends = {log: (stage[0], stage[-1]) for stage in stages for log in stage}
    log_of = _logs_of_frames(store)
    for batch in read_batches(store.folder):
        logs = {log_of[frame] for frame in batch.frames}
        for log in logs:
            first, last = ends[log]
            cells = {(sut, setting): look_of[log] for setting, sut in batch.cells}
            with_people |= cells if log == first else {}
            reached |= cells if log == last else {}
    return Looks(store, stages, counts, facts["spending"], reached, with_people, facts["least_logs"])


def _logs_of_frames(store: Store) -> dict[str, str]:
    table = pq.read_table(store.folder.frames, columns=["frame", "log"])
    return dict(zip(table["frame"].to_pylist(), table["log"].to_pylist(), strict=True))


def shown_cells(batch: Batch) -> tuple[frozenset[str], frozenset[str]]:
    """Return the settings and the SUTs of a batch."""
    return frozenset(setting for setting, _ in batch.cells), frozenset(sut for _, sut in batch.cells)


def opened(path: Path, *, rewrites: Sequence[str] = (), selected: Sequence[SelectionKind] = ()) -> Store:
    """Open a finished run as `finished` does; one that stopped early with what of it was run."""
    store = finished(path, rewrites=rewrites, selected=(UNTIL, *selected))
    if store.run.selection is None or store.run.selection.kind != UNTIL:
        return store
    looks = looks_of(store)
    sure = looks.confidence(0)  # the most cautious, for whoever does not ask which look a figure is of
    return store.of_logs(looks.shown_logs, confidence=sure, shown=looks.shown, several_looks=True)


def merged_results(
    store: Store, results_at: Callable[[Store], tuple[Mapping[str, Any], Mapping[str, bytes]]]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return summary and files of a run that stopped early; `results_at` gives those of one look."""
    looks = looks_of(store)
    chosen = _RowLooks(looks)
    by_look = {look: results_at(looks.at(look)) for look in sorted(set(looks.reached.values()))}
    last = max(by_look)
    summary = dict(by_look[last][0])
    for name, value in by_look[last][0].items():
        if _is_rows(value) and name not in OF_ALL_LOOKS:
            summary[name] = chosen.rows({look: found[0].get(name, ()) for look, found in by_look.items()})
    for row in (*summary["rows"], *summary.get("families", ())):
        if chosen.lacks_some(row):
            row |= {name: None for name in row if name.startswith(("area", "robust", "least_"))}
            row |= {"status": "insufficient"}
    summary["sensitivity"] = {
        sut: by_look[looks.reached[sut, store.run.baseline.id]][0]["sensitivity"][sut]
        for sut in summary["sensitivity"]
    }
    summary = {name: value for name, value in summary.items() if name not in LEFT_OUT}
    summary |= {name: [] for name in EMPTIED}
    summary["stopped_early"] = stopped_facts(looks)
    summary["warnings"] = [*stopped_lines(looks)[1:], *summary["warnings"]]
    files = {
        name: chosen.file(name, {look: found[1][name] for look, found in by_look.items() if name in found[1]})
        for name in by_look[last][1]
        if name.partition(".")[0] not in LEFT_OUT
    }
    files["summary.json"] = json.dumps(summary, indent=1).encode() + b"\n"
    return summary, files


def stopped_facts(looks: Looks) -> dict[str, Any]:
    """Return how far a run got, as JSON holds it."""
    return {
        "words": stopped_lines(looks)[0],
        "looks": len(looks.counts),
        "looks_taken": looks.taken,
        "confidences": [looks.confidence(look) for look in range(looks.taken)],
        "logs": sum(looks.counts[-1]),
        "cells": [
            {"sut": sut, "setting": setting, "look": look + 1, "logs": looks.logs(sut, setting)}
            for (sut, setting), look in looks.reached.items()
        ],
    }


def stopped_lines(looks: Looks) -> list[str]:
    """Say that a run stopped early, on how many logs figures rest, how intervals are to be read."""
    whole = sum(looks.counts[-1])
    used = sorted({looks.logs(*cell) for cell in looks.reached})
    some = f"{used[0]} to {used[-1]}" if len(used) > 1 else str(used[0])
    lacking = [setting.id for setting in looks.store.whole_run.settings if setting.id not in looks.shown[0]]
    early = any(look < len(looks.counts) - 1 for look in looks.reached.values()) or bool(lacking)
    how = "stopped early" if early else "run to its last look"
    first = (
        f"{how}: {looks.taken} of {len(looks.counts)} looks, {some} of {whole} logs under each mutation; "
        "intervals are repeated ones, which hold at all looks together with 95%, and SUTs are not ranked"
    )
    lines = [first]
    if lacking:
        names = ", ".join(lacking)
        lines.append(f"not run, as no rule is about {'it' if len(lacking) == 1 else 'them'}: {names}")
    if looks.with_people != looks.reached:
        lines.append(
            "where only rules about logs with people were open, the last logs shown are of that kind: "
            "figures are of the look before them, those rules rest on all"
        )
    return lines


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "sut" in value[0]


class _RowLooks:
    """Which look each row of a table is taken from."""

    def __init__(self, looks: Looks) -> None:
        self.looks = looks
        run = looks.at(looks.taken - 1).run
        groups = {setting.id: setting.group for setting in run.settings}
        self.settings = list(groups)
        whole = looks.store.whole_run
        absent = [setting for setting in whole.settings if setting.id not in groups]
        self.partial = {name for name, some in WORST.items() if any(one.group in some for one in absent)}
        self.partial |= {family_name(setting.family) for setting in absent}
        self.covers: dict[str, list[str]] = {name: [name] for name in groups}
        for name, wanted in WORST.items():
            self.covers[name] = [one for one, group in groups.items() if group in wanted]
        for family, members in run.families.items():
            self.covers[family_name(family)] = [run.baseline.id, *members]

    def look(self, row: Mapping[str, Any]) -> int:
        """Return the look of a row; of what was not run under all that it covers the first one there is."""
        family = row.get("family")
        name = row.get("setting") or (family and family_name(family))
        settings = self.covers.get(name or "", self.settings)
        found = self.looks.of(row["sut"], settings)
        return min(self.looks.reached.values()) if found is None else found

    def lacks_some(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row is a worst case over mutations of which some were not run."""
        family = row.get("family")
        return (row.get("setting") or (family and family_name(family))) in self.partial

    def rows(self, by_look: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """Return the rows of every look that are of it, in the order of the last."""
        kept = [dict(row) for look, rows in by_look.items() for row in rows if self.look(row) == look]
        order: dict[tuple[Any, ...], int] = {}
        for look in sorted(by_look, reverse=True):
            for row in by_look[look]:
                order.setdefault(_key(row), len(order))
        return sorted(kept, key=lambda row: order[_key(row)])

    def file(self, name: str, by_look: Mapping[int, bytes]) -> bytes:
        """Return a table of the results, as CSV or Parquet; other files are those of the last look."""
        last = by_look[max(by_look)]
        if name.endswith(".csv"):
            tables = {
                look: list(csv.DictReader(io.StringIO(data.decode(), newline="")))
                for look, data in by_look.items()
            }
            if not all(rows and "sut" in rows[0] for rows in tables.values()):
                return last
            rows = self.rows(tables)
            names = dict.fromkeys(name for row in rows for name in row)
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, list(names), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            return text.getvalue().encode()
        if not name.endswith(".parquet"):
            return last
        parts = {look: pq.read_table(pa.BufferReader(data)) for look, data in by_look.items()}
        if "sut" not in parts[max(parts)].column_names:
            return last
        return table_bytes(pa.concat_tables([self._table(look, table) for look, table in parts.items()]))

    def _table(self, look: int, table: pa.Table) -> pa.Table:
        """Return the rows of a table that are of a look."""
        names = [name for name in ("sut", "setting") if name in table.column_names]
        columns = [table[name].to_pylist() for name in names]
        of: dict[tuple[Any, ...], bool] = {}
        for key in set(zip(*columns, strict=True)):
            row = dict(zip(names, key, strict=True))
            if "setting" not in row:
                row["setting"] = self.settings[0]  # thresholds are of the clean images
            of[key] = self.look(row) == look
        return table.filter(pa.array([of[key] for key in zip(*columns, strict=True)], pa.bool_()))


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(str(row.get(name)) for name in KEYS)

"""The results of each SUT, kept in the run folder: only SUTs that changed are worked out again.

A file of `analysis/` holds all that `analyze_sut` returns, under a hash of everything that decides it: the
SUT's own detections, the parts of the run that all SUTs share, our code, the numeric libraries and the
processor. So it is true in any later state of the run that gives the same hash. It is sealed as results are.
Figures about several SUTs, such as rankings, are never kept.

The format is Arrow with JSON inside: reading it runs nothing. Whatever is shown to others as proof, verdicts
and what is signed, is worked out from the detections and not from here.
"""

from __future__ import annotations

import functools
import importlib.metadata
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba.core.codegen import get_host_cpu_features

from adverse.analysis.confidence import Confidence, Draws
from adverse.analysis.objects import Changes
from adverse.analysis.sut import SutResults
from adverse.content import digest
from adverse.curves.quantities import Ratios
from adverse.curves.studentized import Spread
from adverse.plugins import Plugin
from adverse.store.read import Store
from adverse.store.seal_list import ANALYSIS, read_seals
from adverse.store.seals import drop_derived, hash_inside

FORMAT = "1"
LIBRARIES = ("duckdb", "llvmlite", "numba", "numpy", "pyarrow", "scipy")
SWITCHES = ("NPY_DISABLE_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "OPENBLAS_CORETYPE")
"""Variables that choose between code for different processors."""
TABLES = tuple(field.name for field in fields(SutResults) if "Table" in str(field.type))
PARTS = pa.schema([("name", pa.string()), ("data", pa.large_binary())])
COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)


@dataclass(frozen=True)
class KeptSuts:
    """The files of a run folder that hold what was worked out for its SUTs; `shared` is what decides all."""

    store: Store
    shared: str
    conditions: tuple[str, ...]
    """The settings and worst cases that SUTs are ranked by: of others no resamples are kept."""

    def file(self, sut: str) -> str:
        """Return the name of the file of a SUT, below the run folder; it is there if that was kept."""
        truth = self.store.run.truth
        lent = () if truth is None else (self.store.sut_states[truth.sut],)
        return f"{ANALYSIS}/{digest(self.shared, self.store.sut_states[sut], *lent)}.arrow"

    def has(self, sut: str) -> bool:
        """Return whether what was worked out for a SUT is kept, as it was written."""
        seal = read_seals(self.store.folder).get(self.file(sut))
        folder = self.store.folder.path
        return seal is not None and hash_inside(folder, folder / self.file(sut)) == seal.sha256

    def read(self, sut: str) -> SutResults:
        """Return what was worked out for a SUT."""
        return unpacked((self.store.folder.path / self.file(sut)).read_bytes())

    def write(self, results: SutResults) -> None:
        """Keep what was worked out for a SUT, if it is not kept yet."""
        if not self.has(results.sut):
            self.store.write({self.file(results.sut): packed(results, self.conditions)})

    def drop_others(self) -> None:
        """Delete what is kept of SUTs and states that the run does not have now."""
        wanted = {self.file(sut) for sut in self.store.suts}
        names = [name for name in read_seals(self.store.folder) if name.startswith(f"{ANALYSIS}/")]
        drop_derived(self.store.folder, [name for name in names if name not in wanted])


def kept_suts(
    store: Store, plugins: Sequence[Plugin], changes: Changes, conditions: Sequence[str]
) -> KeptSuts | None:
    """Return what is kept of a run; None where levels or metrics of a plug-in may read whatever they like.

    None, too, of a run with one SUT: there is nothing to spare.
    """
    if len(store.suts) == 1 or not all(plugin.ours for plugin in plugins):
        return None
    seen = [f"{setting} {frame} {value!r}" for (setting, frame), value in sorted(changes.items())]
    depths = store.truth_depths_m().tobytes()
    words = (FORMAT, _code(), *_machine(), store.shared_state, "\n".join(seen), *conditions)
    return KeptSuts(store, digest(depths, *words), tuple(conditions))


@functools.cache
def _code() -> str:
    """Return a hash of all our code; what any of it has to do with a figure is not asked."""
    return digest(*(path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py"))))


def _machine() -> list[str]:
    """Return what else the last digits of a figure may depend on."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    features = str(get_host_cpu_features())  # type: ignore[no-untyped-call, unused-ignore]
    return [*versions, features, *(os.environ.get(name, "") for name in SWITCHES)]


def packed(results: SutResults, conditions: Sequence[str]) -> bytes:
    """Return the results of a SUT as the bytes of a file; equal results give equal bytes."""
    arrays: list[np.ndarray[Any, Any]] = []

    def place(array: np.ndarray[Any, Any]) -> int:
        """Return the number of an array; one that is there twice is kept once."""
        for number, known in enumerate(arrays):
            if known is array:
                return number
        arrays.append(array)
        return len(arrays) - 1

    sure = results.confidence
    plain = {
        "sut": results.sut,
        "rows": results.rows,
        "sensitivity": results.sensitivity,
        "failures": results.failures,
        "more": results.more,
        "violations": results.violations,
        "confidence": None if sure is None else _plain_confidence(sure, conditions, place),
    }
    tables = {name: _stream(table) for name in TABLES if (table := getattr(results, name)) is not None}
    parts = {
        "plain": json.dumps(plain, default=_number).encode(),
        **tables,
        **{f"array {number}": _array_bytes(array) for number, array in enumerate(arrays)},
    }
    columns = [pa.array(list(parts)), pa.array(list(parts.values()), pa.large_binary())]
    return _stream(pa.table(columns, schema=PARTS), options=COMPRESSED)


def unpacked(data: bytes) -> SutResults:
    """Return the results of a SUT that were packed; of its intervals, what others need of them."""
    table = pa.ipc.open_stream(data).read_all()
    parts = dict(zip(table["name"].to_pylist(), (value.as_buffer() for value in table["data"]), strict=True))
    plain = json.loads(parts["plain"].to_pybytes())
    arrays = {
        name: np.load(io.BytesIO(buffer.to_pybytes()), allow_pickle=False)
        for name, buffer in parts.items()
        if name.startswith("array ")
    }
    tables: dict[str, Any] = {
        name: pa.ipc.open_stream(parts[name]).read_all() if name in parts else None for name in TABLES
    }
    sure = plain.pop("confidence")
    return SutResults(**plain, **tables, confidence=None if sure is None else _confidence(sure, arrays))


def _plain_confidence(sure: Confidence, conditions: Sequence[str], place: Any) -> dict[str, Any]:
    """Return what rankings and differences need; arrays by their numbers."""
    return {
        "draws": [
            [*key, drawn.value, place(drawn.values), drawn.doubt, _plain_spread(drawn.spread, place)]
            for key, drawn in sure.draws.items()
            if key[1] in conditions
        ],
        "baseline": {
            level: [*map(place, (one.num_s, one.den_s, one.num_e, one.den_e)), one.efficiency, one.fpr_max]
            for level, one in sure.baseline.items()
        },
    }


def _plain_spread(spread: Spread | None, place: Any) -> dict[str, Any] | None:
    if spread is None:
        return None
    values = {field.name: getattr(spread, field.name) for field in fields(spread)}
    return {
        name: {"array": place(value)} if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def _confidence(plain: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> Confidence:
    def array(number: int) -> np.ndarray[Any, Any]:
        return arrays[f"array {number}"]

    def spread(values: Mapping[str, Any] | None) -> Spread | None:
        if values is None:
            return None
        fields_of: dict[str, Any] = {
            name: array(one["array"]) if isinstance(one, dict) else one for name, one in values.items()
        }
        return Spread(**fields_of)

    draws = {
        (level, condition): Draws(value, array(values), doubt, spread(known))
        for level, condition, value, values, doubt, known in plain["draws"]
    }
    baseline = {
        level: Ratios(array(up), array(trials), array(cost), array(exposure), efficiency, fpr_max)
        for level, (up, trials, cost, exposure, efficiency, fpr_max) in plain["baseline"].items()
    }
    return Confidence({}, {}, {}, draws, {}, {}, {}, baseline)


def _stream(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=False)
    return sink.getvalue()


def _number(value: Any) -> int:
    """Return a whole number or truth value of numpy as a plain one; nothing else is turned into anything."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"a {type(value).__name__} in the results of a SUT")

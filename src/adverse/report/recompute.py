"""Results and pages computed again from the sealed detections, before somebody vouches for them.

A seal can be rewritten by whoever edits a file. So nothing is signed because of its seal: results, report,
tables and saved benchmark must be, to the byte, what the run gives now. Verdicts are computed again elsewhere
(`requirements/gate.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from adverse.analysis.results import run_results
from adverse.benchmarks.table import bench_table
from adverse.benchmarks.table import files_of as benchmark_files
from adverse.errors import StoreError
from adverse.report.page import FILE, page_tables, report_files
from adverse.report.pictures import Looker
from adverse.report.requirements import requirements_files
from adverse.requirements.results import NAME as REQUIREMENTS
from adverse.store.folder import BENCHMARK
from adverse.store.read import Store
from adverse.store.seal_list import read_seals
from adverse.store.seals import made_by
from adverse.store.signature import UNSIGNED

CHECKED = f"results/{REQUIREMENTS}.json"
"""Compared number by number (`rechecked`), and only where it is what the run gives is a page made from it."""


def refuse_other_results(store: Store, *, trust: bool = False) -> None:
    """Raise where a sealed file is not what the run gives; `trust`: the plug-ins of the study may be run."""
    looker = Looker(store, trust=trust)
    sealed = read_seals(store.folder)
    files = _computed(looker, set(sealed))
    for name in sealed:
        if name.startswith((*UNSIGNED, "verdicts/")) or name == CHECKED:
            continue
        if name not in files:
            raise _not_of_the_run(looker, name, "a file that the run does not give")
        if (store.folder.path / name).read_bytes() != files[name]:
            raise _not_of_the_run(looker, name, _other_content(name, sealed))


def _other_content(name: str, sealed: Iterable[str]) -> str:
    """Say what a file holds instead of what the run gives; a report shows the verdicts there were."""
    if name.startswith("report") and any(one.startswith("verdicts/") for one in sealed):
        return "a report from before the verdicts were saved, or one that was changed"
    return "another content than its detections give"


def _computed(looker: Looker, wanted: set[str]) -> Mapping[str, bytes]:
    """Return the files that a run gives, of those kinds that it has."""
    store = looker.store
    files: dict[str, bytes] = {}
    if "results/summary.json" in wanted or FILE in wanted:
        results = run_results(store, registry=looker.registry if looker.trust else None)
        files |= {f"results/{name}": data for name, data in results.files.items()}
        if FILE in wanted:
            tables = page_tables(looker, results.summary, computed=True)
            files |= report_files(looker, results.summary, tables)
    if CHECKED in wanted:
        files |= requirements_files(store)
    if f"results/{BENCHMARK}.json" in wanted:
        files |= _benchmark(store)
    return files


def _benchmark(store: Store) -> dict[str, bytes]:
    """Return the saved benchmark, computed again by the metric and over the classes that it names."""
    path = store.result(f"{BENCHMARK}.json")
    try:
        saved = json.loads(path.read_bytes() if path else b"")
        metric, classes = str(saved["metric"]["name"]), [str(name) for name in saved["classes"]]
        intervals = any(row["intervals"] is not None for row in saved["suts"])
    except (ValueError, KeyError, TypeError) as error:
        again = made_by(store.folder, f"results/{BENCHMARK}.json")
        raise StoreError(
            "the saved benchmark cannot be read", where=str(path), got=repr(error), fix=f"Make it: {again}."
        ) from error
    return benchmark_files(
        bench_table(store, metric=metric, classes=classes, partial=True, with_intervals=intervals)
    )


def _not_of_the_run(looker: Looker, name: str, got: str) -> StoreError:
    folder = looker.store.folder
    plugins = " Plug-ins were not run; give --trust if you trust them." if looker.withheld else ""
    return StoreError(
        "a file is not what the run gives, and was not signed",
        where=str(folder.path / name),
        got=got,
        wanted="what is computed from the sealed detections, to the byte",
        fix=f"Have it made again: {made_by(folder, name)}.{plugins}",
    )

"""Write the results of a run: summary.json for people and scripts, tables for what is behind it."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from adverse.analysis.confidence import resamples_of
from adverse.analysis.failed_suts import FIGURES, withheld
from adverse.analysis.failures import failure_rows
from adverse.analysis.fault_rates import mutation_remarks
from adverse.analysis.kept_suts import KeptSuts, kept_suts
from adverse.analysis.loop import stop_rule
from adverse.analysis.objects import measured_changes, task_objects
from adverse.analysis.predictions import predictions, run_scores
from adverse.analysis.rankings import differences, rank_suts, rankings
from adverse.analysis.relations import run_relations
from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.slices import slice_members
from adverse.analysis.stopped import merged_results, opened
from adverse.analysis.strengths import magnitude_rows, visual_change_rows
from adverse.analysis.sut import SutResults, analyze_sut
from adverse.analysis.tables import csv_bytes, names_of_agreement, names_of_recall
from adverse.analysis.tasks import METRICS, score_task, task_family_rows
from adverse.analysis.troubles import failures_by_frame, status_counts, troubles_by_frame
from adverse.analysis.unseen import unseen_rows
from adverse.curves.bootstrap import Resamples
from adverse.curves.predict import ScoreTable
from adverse.errors import DataError, PluginError, StoreError, StudyError
from adverse.levels.context import Context, run_context
from adverse.levels.outcomes import positive_logs
from adverse.plugins import Kind, Plugin, Registry, built_in, load
from adverse.processes import all_cores
from adverse.store.read import Store
from adverse.store.records import Growing, table_bytes
from adverse.store.seals import EVERYTHING, drop_derived

IN_SUMMARY = (
    "families",
    "slices",
    "outstanding_slices",
    "detection_range",
    "means",
    "expected",
    "adr",
    "plain_metrics",
    "required",
    "loop",
    "metrics",
    "relations",
    "differences",
    "unseen",
    "visual_change",
)
"""Further tables that summary.json holds too."""
OPTIONAL = (
    "slices.csv",
    "outstanding_slices.csv",
    "detection_range.csv",
    "expected.csv",
    "families.csv",
    "loop.csv",
    "loop_rates.csv",
    "magnitudes.csv",
    "means.csv",
    "metrics.csv",
    "relations.csv",
    "differences.csv",
    "stops.parquet",
    "unseen.csv",
    "visual_change.csv",
)
"""Files that not every analysis writes."""


TABLES = {
    "curves": "curves",
    "outcomes": "outcomes",
    "required": "required",
    "sensitivity": "shared",
    "stops": "stops",
    "objects": "objects",
    "frames": "frames",
}
"""The tables of a run, and what they are called among the results of a SUT."""


@dataclass(frozen=True)
class Summary:
    """What summary.json holds."""

    data: dict[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The figures: sut, level, setting, group, area, robustness, status, and the counts behind them."""
        return list(self.data["rows"])

    @property
    def trusted(self) -> bool:
        """Tell whether every figure is there, rests on all that was planned, and is of a SUT that works."""
        return all(row["status"] == "ok" for row in self.rows) and not self.failed_everywhere

    @property
    def failed_everywhere(self) -> dict[str, str]:
        """The SUTs that failed on every image that could be shown to them, with their commonest fault."""
        counts = self.data.get("counts", {}).items()
        return {sut: self._commonest(sut) for sut, count in counts if count["fault"] and not count["ok"]}

    def without_failed(self) -> Summary:
        """Return what people are shown: SUTs that failed on every image have no figures in it."""
        answered = self.data.get("counts", {}).keys() - self.failed_everywhere.keys()
        told = {name: withheld(self.data[name], answered) for name in FIGURES if name in self.data}
        return replace(self, data={**self.data, **told}) if self.failed_everywhere else self

    def _commonest(self, sut: str) -> str:
        faults: Counter[str] = Counter()
        for row in self.data["troubles"]:
            if row["status"] == "fault" and row["sut"] == sut:
                faults[row["reason"]] += len(row["settings"])
        return min(faults, key=lambda reason: (-faults[reason], reason))


def read_summary(store: Store) -> Summary:
    """Read the results that `adverse analyze` wrote."""
    path = store.result("summary.json")
    if path is None:
        raise no_results(store)
    return _read(json.loads(path.read_text()))


def current_summary(store: Store) -> Summary | None:
    """Return the results if they are there, whole, and of the state that the run is in; None otherwise.

    None, too, where any of our code is newer than they are: it might compute something else.
    """
    path = None if store.tolerated else store.result("summary.json")
    if path is None:
        return None
    code = max(file.stat().st_mtime_ns for file in Path(__file__).parents[1].rglob("*.py"))
    return read_summary(store) if path.stat().st_mtime_ns > code else None


def read_run_scores(store: Store) -> ScoreTable:
    """Read the ADR of a run, for predictions of one mutation from another."""
    return run_scores(store.run, read_summary(store).data.get("adr", ()))


def no_results(store: Store) -> StoreError:
    """Return the error for a run that was not analysed yet."""
    return StoreError(
        "the run has no results yet",
        where=str(store.folder.results),
        fix=f"Run adverse analyze {store.folder.path} first.",
    )


def analyze(path: Path, *, workers: int | None = None, registry: Registry | None = None) -> Summary:
    """Compute all results of a run folder and write them into it, several SUTs side by side.

    The results do not depend on the number of workers (None: one for each core). `registry` holds the levels
    and metrics of plug-ins that may be run; without it only installed ones are.
    """
    return analyze_store(opened(path, rewrites=EVERYTHING), workers=workers, registry=registry)


def analyze_store(store: Store, *, workers: int | None = None, registry: Registry | None = None) -> Summary:
    """Do the same for a run that is open already."""
    results = run_results(store, workers=workers, registry=registry, keep=True)
    drop_derived(store.folder, [f"results/{name}" for name in OPTIONAL if name not in results.files])
    store.write({f"results/{name}": data for name, data in results.files.items()})
    return results.summary


@dataclass(frozen=True)
class Results:
    """All results of a run: the summary, and the bytes of every file by its name."""

    summary: Summary
    files: Mapping[str, bytes]


def run_results(
    store: Store,
    *,
    workers: int | None = None,
    registry: Registry | None = None,
    partial: bool = False,
    keep: bool = False,
) -> Results:
    """Compute all results of a run from its detections.

    A level, metric or relation of a plug-in that was not loaded is an error; with `partial` it is left out.
    With `keep` the results of SUTs that did not change are taken from the folder, and those of the others
    kept there; else nothing is written.
    """
    if store.several_looks:

        def at_look(view: Store) -> tuple[Mapping[str, Any], Mapping[str, bytes]]:
            found = run_results(view, workers=workers, registry=registry, partial=partial)
            return found.summary.data, found.files

        merged, merged_files = merged_results(store, at_look)
        return Results(Summary(merged), merged_files)
    counts = store.counts()
    _refuse_nothing(store, counts)
    if store.task != "detection":
        return _task_results(store, counts)
    known = registry or load()
    levels = _named(store, known, "level", store.run.levels, partial=partial)
    metrics = _named(store, known, "metric", store.run.metrics, partial=partial)
    relations = _named(store, known, "relation", store.run.relations, partial=partial)
    related = run_relations(store.run, relations, known)
    resamples, changes = _resamples(store), measured_changes(store)
    ranked_by = (store.run.baseline.id, ANY_MILD, ANY)
    kept = kept_suts(store, [*levels, *metrics, *relations], changes, ranked_by) if keep else None

    def analyzed(sut: str, context: Context) -> SutResults:
        return analyze_sut(
            store,
            sut,
            context,
            resamples,
            levels=levels,
            metrics=metrics,
            relations=related,
            changes=changes,
        )

    done: list[SutResults] = []
    failures: list[dict[str, Any]] = []
    drives = any(level.level is not None and level.level.drives for level in levels)
    tables = {name: Growing() for name in TABLES if drives or name != "stops"}
    for result in _each_sut(store, analyzed, kept, workers or all_cores()):
        for name, table in tables.items():
            table.add(getattr(result, TABLES[name]))
        failures += result.failures
        done.append(  # let go of the large ones
            replace(result, **dict.fromkeys(TABLES.values()))  # type: ignore[arg-type]
        )
    troubles, failed = store.troubles(), store.failed_attempts()
    lists = _lists(done, magnitude_rows(store, known))
    answered = {row["sut"] for row in counts if row["status"] == "ok"}
    working = [result for result in done if result.sut in answered]  # the others have no place in an order
    ranked = rank_suts(working, store.run.baseline.id)
    if resamples is not None and len(working) > 1:
        lists["differences"] = differences(working, ranked, store.run.baseline.id, resamples)
    beside = {
        "unseen": unseen_rows(
            [row for one in done for row in one.rows], lists.get("families", ()), store.run.baseline.id
        ),
        "visual_change": visual_change_rows(store),
    }
    lists |= {name: rows for name, rows in beside.items() if rows}
    summary = {**_summary(store, counts, done), **rankings(ranked), **_descriptions(levels, metrics)}
    summary["failures"] = failure_rows(store, failures)
    summary |= _violations(relations, done)
    summary |= predictions(store.run, lists["adr"])
    summary |= {name: rows for name, rows in lists.items() if name in IN_SUMMARY}
    files = {f"{name}.parquet": table.data() for name, table in tables.items()}
    files["slice_members.parquet"] = table_bytes(slice_members(store))
    truth = store.run.truth
    if truth is not None:
        summary["truth"] = {"sut": truth.sut, "score": truth.score, "words": truth.name}
    own = names_of_agreement if truth is not None else list
    files |= {f"{name}.csv": csv_bytes(own(rows)) for name, rows in lists.items()}
    return _results(summary, troubles, failed, files)


def _each_sut(
    store: Store, analyzed: Callable[[str, Context], SutResults], kept: KeptSuts | None, workers: int
) -> Iterator[SutResults]:
    """Yield the results of every SUT in order: those that are kept, and the others, which then are."""
    context: Context | None = None
    tasks: list[Callable[[], SutResults]] = []
    for sut in store.suts:
        if kept is not None and kept.has(sut):
            tasks.append(functools.partial(kept.read, sut))
            continue
        context = context or run_context(store)  # the paths of all logs, which take a while
        tasks.append(functools.partial(analyzed, sut, context))
    with ThreadPoolExecutor(workers) as pool:
        for result in pool.map(lambda task: task(), tasks):
            if kept is not None:
                kept.write(result)
            yield result
    if kept is not None:
        kept.drop_others()


def _violations(relations: Sequence[Plugin], done: Sequence[SutResults]) -> dict[str, Any]:
    """Return what the relations of a run are called, and the violations to be shown; nothing without any."""
    if not relations:
        return {}
    return {
        "relation_titles": {one.name: one.relation.title for one in relations if one.relation},
        "violations": [row for result in done for row in result.violations],
    }


def unloaded(store: Store, registry: Registry | None, kind: Kind, names: Sequence[str]) -> list[str]:
    """Return the levels, metrics or relations of a run that only a plug-in has that was not loaded."""
    if store.task != "detection":
        return []
    loaded = {plugin.name for plugin in (registry or load()).all(kind)}
    return [name for name in names if name not in loaded]


def _named(
    store: Store, registry: Registry, kind: Kind, names: Sequence[str], *, partial: bool
) -> list[Plugin]:
    """Return the levels, metrics or relations of a run; those of a plug-in file only if it was loaded."""
    missing = unloaded(store, registry, kind, names) if partial else []
    names = [name for name in names if name not in missing]
    try:
        return [registry.get(kind, name) for name in names]
    except StudyError as error:
        raise PluginError(
            f"the run has a {kind} of a plug-in that was not loaded",
            where=str(store.folder.path),
            got=error.what,
            fix="Read the plug-in file that its study names, and give --trust if you trust it.",
        ) from error


def _descriptions(levels: Sequence[Plugin], metrics: Sequence[Plugin]) -> dict[str, Any]:
    """Return the words of levels and metrics, so that no page has to run a plug-in to have them."""
    names = {level.name for level in levels}
    return {
        "levels": {
            level.name: {"needs": sorted(level.needs), **asdict(level.level)}
            for level in levels
            if level.level
        },
        "levels_not_evaluated": {
            level.name: level.level.title
            for level in built_in("level")
            if level.level and level.name not in names
        },
        "metric_titles": {metric.name: metric.metric.title for metric in metrics if metric.metric},
    }


def _results(
    summary: dict[str, Any], troubles: pa.Table, failed: pa.Table, files: dict[str, bytes]
) -> Results:
    summary |= {"troubles": troubles_by_frame(troubles), "failed_attempts": failures_by_frame(failed)}
    files |= {"troubles.parquet": table_bytes(troubles), "attempts.parquet": table_bytes(failed)}
    told = _renamed(summary, names_of_agreement) if "truth" in summary else summary
    files["summary.json"] = json.dumps(told, indent=1).encode() + b"\n"
    return Results(_read(json.loads(files["summary.json"])), files)  # as whoever reads the file has it


def _read(data: dict[str, Any]) -> Summary:
    """Return a summary in the names that all code has for it, whatever its figures are compared with."""
    return Summary(_renamed(data, names_of_recall) if "truth" in data else data)


def _renamed(data: dict[str, Any], rename: Callable[[Sequence[Any]], list[Any]]) -> dict[str, Any]:
    tables = {name: rename(rows) for name in IN_SUMMARY if isinstance(rows := data.get(name), list)}
    return {**data, **tables}


def _task_results(store: Store, counts: list[dict[str, Any]]) -> Results:
    """Return the results of a run of segmenters or classifiers."""
    troubles, failed = store.troubles(), store.failed_attempts()
    rows = [row.plain() for row in score_task(store)]
    summary = {
        "study": store.run.name,
        "task": store.task,
        "metric": METRICS[store.task],
        "rows": rows,
        "families": task_family_rows(store.run, rows),
        "counts": {sut: status_counts(sut, counts) for sut in store.suts},
        "notes": {**store.run.data.notes, **store.notes()},
        "warnings": [*store.run.warnings, *mutation_remarks(store)],
    }
    tables, changes = {"objects": Growing(), "frames": Growing()}, measured_changes(store)
    for sut in store.suts:
        for table, rows_of_sut in zip(tables.values(), task_objects(store, sut, changes), strict=True):
            table.add(rows_of_sut)
    files = {f"{name}.parquet": table.data() for name, table in tables.items()}
    files["slice_members.parquet"] = table_bytes(slice_members(store))
    if seen := visual_change_rows(store):
        summary["visual_change"] = seen
        files["visual_change.csv"] = csv_bytes(seen)
    return _results(summary, troubles, failed, files)


def _lists(done: Sequence[SutResults], magnitudes: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the further figures of all SUTs by table; tables without rows are left out."""
    names = dict.fromkeys(name for result in done for name in result.more)
    lists = {name: [row for result in done for row in result.more.get(name, ())] for name in names}
    return {name: rows for name, rows in {**lists, "magnitudes": magnitudes}.items() if rows}


def _resamples(store: Store) -> Resamples | None:
    count = store.run.bootstrap
    positive = positive_logs(store.truth, store.frames).tolist()
    return resamples_of(store, positive, count) if count else None


def _refuse_nothing(store: Store, counts: list[dict[str, Any]]) -> None:
    """Raise when no frame was usable."""
    if counts and all(row["status"] == "quarantined" for row in counts):
        raise DataError(
            "not one frame of the data set could be used",
            where=f"{counts[0]['frame']!r}, the first of {len(store.frames.ids)} frames",
            got=str(counts[0]["reason"]),
            fix="Mend the data or declare what it needs in the study's data section, then run again.",
        )


def _summary(store: Store, counts: list[dict[str, Any]], done: Sequence[SutResults]) -> dict[str, Any]:
    return {
        "study": store.run.name,
        "task": store.task,
        "rows": [row for result in done for row in result.rows],
        "robot": stop_rule(store),
        "sensitivity": {result.sut: result.sensitivity for result in done},
        "counts": {sut: status_counts(sut, counts) for sut in store.suts},
        "scores": store.lowest_scores(),
        "places": _places(store),
        "notes": {**store.run.data.notes, **store.notes()},
        "warnings": [*store.run.warnings, *mutation_remarks(store)],
    }


def _places(store: Store) -> dict[str, dict[str, Any]]:
    """Return by what the detections of each SUT are placed, where a level asks where they are."""
    run = store.run
    if run.localizer is None:
        return {}
    by = {"localizer": run.localizer, "localize_on": run.localize_on}
    return {sut: {**counts, **by} for sut, counts in store.placements().items()}

"""Write the results of a run: summary.json for people and scripts, Parquet tables for what is behind it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from adverse.analysis.confidence import bounds, confidence, ratios, resamples_of
from adverse.analysis.context import Context
from adverse.analysis.score import ANY, ANY_MILD, Scored, SutScores, score_sut
from adverse.analysis.tasks import METRICS, score_task
from adverse.curves.quantities import Ratios
from adverse.errors import DataError, IncompleteError
from adverse.levels.image import positive_logs
from adverse.study.store.durable import write_file
from adverse.study.store.folder import existing_run
from adverse.study.store.manifest import write_manifest
from adverse.study.store.read import Store
from adverse.study.store.records import table_bytes
from adverse.study.store.verify import verify

CURVES = pa.schema(
    [
        *((name, pa.string()) for name in ("sut", "level", "setting", "group")),
        *((name, pa.float64()) for name in ("sensitivity", "threshold", "safety", "efficiency")),
        ("resolved", pa.bool_()),
    ]
)
OUTCOMES = pa.schema(
    [
        *((name, pa.string()) for name in ("sut", "level", "setting", "log")),
        ("truths", pa.int64()),
        ("hits", pa.list_(pa.int64())),
        ("exposure", pa.float64()),  # images, or at the loop level the truth's seconds
        ("cost", pa.list_(pa.float64())),  # false alarms, or the SUT's seconds
    ]
)


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
        """Tell whether every figure is there and rests on all that was planned."""
        return all(row["status"] == "ok" for row in self.rows)


def analyze(path: Path) -> Summary:
    """Work out all results of a run folder and write them into it."""
    folder = existing_run(path)
    for problem in verify(folder, inputs=False, results=False).problems:
        raise problem  # what was changed by hand must not be sealed anew under our name
    store = Store(folder)
    if store.manifest["status"] != "complete":
        raise IncompleteError(
            "the run is not finished, and half of it would give half-true numbers",
            where=str(path),
            fix="Run the study again with the same command: it goes on where it stopped.",
        )
    counts = store.counts()
    _refuse_nothing(store, counts)
    if store.task != "detection":
        return _task_summary(store, counts)
    context = Context(store)
    scores = [score_sut(store, sut, context) for sut in store.suts]
    troubles = store.troubles()
    summary = {**_summary(store, counts, scores), "troubles": _by_frame(troubles)}
    if store.manifest["statistics"]["bootstrap"]:
        _add_confidence(summary, store, scores)
    results = store.folder.results
    write_file(results / "curves.parquet", _curves(scores))
    write_file(results / "outcomes.parquet", _outcomes(scores))
    write_file(results / "troubles.parquet", table_bytes(troubles))
    write_file(results / "summary.json", json.dumps(summary, indent=1).encode() + b"\n")
    write_manifest(store.folder, {**store.manifest, "counts": summary["counts"]})
    return Summary(summary)


def _task_summary(store: Store, counts: list[dict[str, Any]]) -> Summary:
    """Write the results of a run of segmenters or classifiers."""
    troubles = store.troubles()
    summary = {
        "study": store.manifest["study"]["name"],
        "task": store.task,
        "metric": METRICS[store.task],
        "rows": [asdict(row) for row in score_task(store)],
        "counts": {sut: _statuses(sut, counts) for sut in store.suts},
        "notes": {**store.manifest["data"]["notes"], **store.notes()},
        "troubles": _by_frame(troubles),
    }
    write_file(store.folder.results / "troubles.parquet", table_bytes(troubles))
    write_file(store.folder.results / "summary.json", json.dumps(summary, indent=1).encode() + b"\n")
    write_manifest(store.folder, {**store.manifest, "counts": summary["counts"]})
    return Summary(summary)


def _add_confidence(summary: dict[str, Any], store: Store, scores: list[SutScores]) -> None:
    """Give every figure its interval, and the summary its rankings."""
    statistics = store.manifest["statistics"]
    positive = positive_logs(store.truth, store.frames).tolist()
    resamples = resamples_of(store, positive, statistics["bootstrap"])
    curves: dict[tuple[str, str, str], Ratios] = {}
    worst: dict[tuple[str, str, str], list[str]] = {}
    for scored in (scored for one in scores for scored in one.scored if scored.row.area is not None):
        row = scored.row
        if scored.outcomes is not None:
            curves[row.sut, row.level, row.setting] = ratios(scored.outcomes, statistics["fpr_max"])
        else:
            groups = ("baseline", "mild") if row.setting == ANY_MILD else ("baseline", "mild", "severe")
            covered = [setting for setting, group in store.settings.items() if group in groups]
            worst[row.sut, row.level, row.setting] = covered
    found = confidence(curves, worst, next(iter(store.settings)), [ANY_MILD, ANY], resamples)
    for row in summary["rows"]:
        key = (row["sut"], row["level"], row["setting"])
        for name, intervals in (("area", found.area), ("robustness", found.robustness)):
            row[f"{name}_interval"] = bounds(intervals[key]) if key in intervals else None
    summary["rankings"] = [
        {"level": level, "condition": condition, **asdict(ranking)}
        for (level, condition), ranking in found.rankings.items()
    ]
    summary["ranking_changes"] = [str(change) for change in found.changes]


def _refuse_nothing(store: Store, counts: list[dict[str, Any]]) -> None:
    """Raise when not one frame could be used: whatever number came out would be about nothing."""
    if counts and all(row["status"] == "quarantined" for row in counts):
        raise DataError(
            "not one frame of the data set could be used",
            where=f"{counts[0]['frame']!r}, the first of {len(store.frames.ids)} frames",
            got=str(counts[0]["reason"]),
            fix="Mend the data or declare what it needs in the study's data section, then run again.",
        )


def _summary(store: Store, counts: list[dict[str, Any]], scores: list[SutScores]) -> dict[str, Any]:
    return {
        "study": store.manifest["study"]["name"],
        "task": store.task,
        "rows": [asdict(scored.row) for one in scores for scored in one.scored],
        "sensitivity": {
            one.sut: {
                "from": one.source,
                "images": one.sensitivity.images,
                "unresolved_levels": int((~one.sensitivity.resolved).sum()),
            }
            for one in scores
        },
        "counts": {sut: _statuses(sut, counts) for sut in store.suts},
        "notes": {**store.manifest["data"]["notes"], **store.notes()},
    }


def _statuses(sut: str, counts: list[dict[str, Any]]) -> dict[str, int]:
    mine = [row for row in counts if row["sut"] == sut]
    found = {
        status: sum(int(row["n"]) for row in mine if row["status"] == status)
        for status in ("ok", "fault", "quarantined")
    }
    unstable = sum(int(row["unstable"]) for row in mine)
    return {"planned": sum(found.values()), **found, "answered_differently_when_asked_twice": unstable}


def _by_frame(troubles: pa.Table) -> list[dict[str, Any]]:
    """Return one entry for each frame and reason; a frame that cannot be used is not any SUT's trouble."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in troubles.to_pylist():
        sut = row["sut"] if row["status"] == "fault" else ""
        settings = found.setdefault((row["status"], sut, row["frame"], row["reason"]), [])
        if row["setting"] not in settings:
            settings.append(row["setting"])
    return [
        {"status": status, "sut": sut, "frame": frame, "settings": settings, "reason": reason}
        for (status, sut, frame, reason), settings in sorted(found.items())
    ]


def _curves(scores: list[SutScores]) -> bytes:
    tables = [
        _curve_table(one, scored) for one in scores for scored in one.scored if scored.curve is not None
    ]
    return table_bytes(pa.concat_tables(tables) if tables else CURVES.empty_table())


def _curve_table(one: SutScores, scored: Scored) -> pa.Table:
    curve, row = scored.curve, scored.row
    if curve is None:
        return CURVES.empty_table()
    size = len(curve.sensitivity)
    columns = [[value] * size for value in (row.sut, row.level, row.setting, row.group)]
    numbers = [curve.sensitivity, one.sensitivity.thresholds, curve.safety, curve.efficiency]
    return pa.table([*columns, *numbers, one.sensitivity.resolved], schema=CURVES)


def _outcomes(scores: list[SutScores]) -> bytes:
    rows = [
        {
            "sut": scored.row.sut,
            "level": scored.row.level,
            "setting": scored.row.setting,
            "log": log,
            "truths": int(scored.outcomes.truths[index]),
            "hits": scored.outcomes.hits[index].tolist(),
            "exposure": float(scored.outcomes.exposure[index]),
            "cost": scored.outcomes.cost[index].tolist(),
        }
        for one in scores
        for scored in one.scored
        if scored.outcomes is not None
        for index, log in enumerate(scored.outcomes.logs)
        if scored.outcomes.truths[index] or scored.outcomes.exposure[index]
    ]
    return table_bytes(pa.Table.from_pylist(rows, schema=OUTCOMES))

"""What a requirements check writes: every number as JSON, and the verdicts for the gate and the report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from adverse.errors import StoreError
from adverse.humans.thresholds import Threshold
from adverse.requirements.decision import Decision
from adverse.requirements.evidence import VersionStats
from adverse.requirements.file import Requirements, RequirementsFile
from adverse.requirements.ranking import ranking_gap, shown_pairs
from adverse.requirements.run import RequirementResult, RequirementsCheck, evaluate
from adverse.requirements.verdicts import Verdict, write_verdicts
from adverse.requirements.versions import Versions
from adverse.store.folder import RunFolder
from adverse.store.read import Store
from adverse.strict_yaml import YamlFile
from adverse.study.spec import study_from

NAME = "requirements"
FORMAT = 8
KINDS_OF_VERSIONS = ("within", "barely", "battery")
FEWEST_RANKED = 2
QUANTILES = (0, 0.25, 0.5, 0.75, 1)


def as_verdict(result: RequirementResult) -> Verdict:
    """Return the verdict: the margin is what is required, the distance what is measured."""
    finding = result.decision.finding
    return Verdict(
        name=f"{result.sut}: {result.name}",
        requirement=result.words,
        required=result.plan.margin,
        measured=finding.distance,
        interval=finding.interval,
        outcome=result.decision.outcome,
        reason=result.decision.reason,
        sut=result.sut,
    )


def as_data(check: RequirementsCheck) -> dict[str, Any]:
    """Return all of a check as plain data."""
    requirements = check.file.requirements
    return {
        "format": FORMAT,
        "study": check.file.study.study.name,
        "task": check.file.study.study.task,
        "seed": check.file.seed,
        "rule": requirements.rule,
        "confidence": requirements.confidence,
        "batches": requirements.batches,
        "images_per_batch": requirements.images,
        "faults": check.faults,
        "score_thresholds": {
            sut: {"score": score if np.isfinite(score) else None, "chosen_on": source}
            for sut, (score, source) in check.score_thresholds.items()
        },
        "results": [as_row(result) for result in check.results],
        "rankings": _rankings(check),
        "requirements": requirements.model_dump(mode="json"),
        "versions": [
            asdict(versions) | {"threshold": versions.threshold.plain()} for versions in check.versions
        ],
    }


def _rankings(check: RequirementsCheck) -> list[dict[str, Any]]:
    """Return, for each requirement with a battery, the two orders of the SUTs that have both scores."""
    rankings = []
    for name in check.file.names():
        scores = {
            result.sut: result.ranking
            for result in check.results
            if result.name == name and result.ranking is not None
        }
        if len(scores) < FEWEST_RANKED:
            continue
        sure = shown_pairs(scores, 1 - check.file.requirements.confidence)
        gap = ranking_gap(
            list(scores),
            [score.distance for score in scores.values()],
            [score.accuracy for score in scores.values()],
            sure,
        )
        rankings.append(
            {
                "requirement": name,
                "battery": next(result.battery for result in check.results if result.name == name),
                "tau": gap.tau,
                "words": gap.words,
                "places": [
                    {
                        "sut": sut,
                        "battery_mean": score.accuracy,
                        "by_accuracy": gap.accuracy_rank[sut],
                        "distance": score.distance,
                        "by_reliability": gap.distance_rank[sut],
                        "less_reliable_than": sorted(low for high, low in sure if high == sut),
                        "more_reliable_than": sorted(high for high, low in sure if low == sut),
                    }
                    for sut, score in scores.items()
                ],
            }
        )
    return rankings


def as_row(result: RequirementResult) -> dict[str, Any]:
    """Return one result as plain data."""
    finding = result.decision.finding
    return {
        "sut": result.sut,
        "requirement": result.name,
        "words": result.words,
        "kind": result.kind,
        "measure": result.measure,
        "transformation": result.transformation,
        "threshold": result.threshold.tolerated_to,
        "backend": result.threshold.backend,
        "threshold_source": result.threshold.source,
        "threshold_origin": result.threshold.origin,
        "threshold_doubt": result.threshold.doubt,
        "threshold_interval": None
        if result.threshold.interval is None
        else result.threshold.interval.plain(),
        "people": [list(point) for point in result.threshold.people],
        "up_to_lower_end": None if result.lower is None else _lower(result.lower),
        "outcome": str(result.decision.outcome),
        "reason": result.decision.reason,
        "required": finding.required,
        "measured": finding.measured,
        "distance": finding.distance,
        "distance_interval": finding.interval.plain(),
        "margin": result.plan.margin,
        "detectable": finding.detectable,
        "standard_error": finding.error,
        "p_met": finding.p_met,
        "p_missed": finding.p_missed,
        "images": finding.images,
        "logs": finding.logs,
        **_version_stats("versions", result.within),
        **(_version_stats("barely", result.barely) if result.barely is not None else {}),
        "battery": result.battery,
        "battery_mean": result.battery_mean,
        "curve": [asdict(point) for point in result.curve],
        "worst": [asdict(version) for version in result.worst],
    }


def _lower(decision: Decision) -> dict[str, Any]:
    finding = decision.finding
    return {
        "outcome": str(decision.outcome),
        "reason": decision.reason,
        "distance": finding.distance,
        "distance_interval": finding.interval.plain(),
        "images": finding.images,
    }


def save(check: RequirementsCheck) -> tuple[Path, Path]:
    """Write all of a check into its folder, seal it, and return the files: all numbers, and the verdicts."""
    text = json.dumps(as_data(check), indent=1, allow_nan=False) + "\n"
    (path,) = check.store.write({f"results/{NAME}.json": text.encode()})
    return path, write_verdicts(check.store, NAME, [as_verdict(result) for result in check.results])


def is_check(run: Path) -> bool:
    """Return whether a folder holds a requirements check."""
    return (RunFolder(run).results / f"{NAME}.json").exists()


def recheck(store: Store) -> list[Verdict]:
    """Return the verdicts of a check computed anew from its answers; none where the run is not a check.

    Nothing is run, and no plug-in is loaded: the results say which setting is a version of what.
    """
    if store.result(f"{NAME}.json") is None:
        return []
    return [as_verdict(result) for result in _again(store, read(store)).results]


def rechecked(store: Store) -> dict[str, Any]:
    """Return all of a check, computed anew; raise where the file of results has other numbers.

    Only what is required comes from the file: requirements, thresholds, and which setting is a version.
    """
    saved = read(store)
    computed: dict[str, Any] = json.loads(json.dumps(as_data(_again(store, saved)), allow_nan=False))
    differ = [key for key in computed if not _alike(computed[key], saved.get(key))]
    if differ:
        raise StoreError(
            "the results of a requirements check are not what the run gives",
            where=str(store.folder.results / f"{NAME}.json"),
            got=f"another value of {', '.join(differ)}",
            fix=f"Have them made again: adverse requirements check FILE --out {store.folder.path}.",
        )
    return computed


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal; numbers may differ by the rounding of another processor."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return bool(one == other)


def _again(store: Store, data: Mapping[str, Any]) -> RequirementsCheck:
    """Evaluate the answers of a check again, by the requirements that its results name."""
    study: Any = yaml.safe_load(store.folder.study.read_text())
    place = store.folder.results / f"{NAME}.json"
    try:
        requirements = Requirements.model_validate_json(json.dumps(data["requirements"]))
        versions = [
            Versions(Threshold.read(row["threshold"]), *(tuple(row[kind]) for kind in KINDS_OF_VERSIONS))
            for row in data["versions"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(place, error) from error
    file = RequirementsFile(
        YamlFile(place, data["requirements"], {}), requirements, study_from(study, store.folder.path)
    )
    return evaluate(file, store, versions)


def read(store: Store) -> dict[str, Any]:
    """Read what `save` wrote."""
    path = store.result(f"{NAME}.json") or store.folder.results / f"{NAME}.json"
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(path, error) from error
    return dict(data)


def _unreadable(path: Path, error: Exception) -> StoreError:
    return StoreError(
        "the results of a requirements check cannot be read",
        where=str(path),
        got=f"{type(error).__name__}: {error}",
        fix=f"Have them made again: adverse requirements check FILE --out {path.parent.parent}; "
        "finished work is kept.",
    )


def _version_stats(name: str, reach: VersionStats) -> dict[str, Any]:
    seen = reach.visual_change
    return {
        name: reach.versions,
        f"{name}_rejected": reach.rejections,
        f"{name}_rejected_why": dict(sorted(reach.refused.items())),
        f"{name}_tries": reach.tries,
        f"{name}_unreached": round(reach.unreached, 6),
        f"{name}_largest_change": reach.most,
        f"{name}_visual_change": np.quantile(seen, QUANTILES).round(6).tolist() if len(seen) else [],
    }

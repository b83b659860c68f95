"""What a check leaves in its folder: every number as JSON, and the verdicts for the gate and the report."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from adverse.errors import StoreError
from adverse.reliability.checking import Check, Checked, judge_run
from adverse.reliability.evidence import Reach
from adverse.reliability.ranking import ranking_gap
from adverse.reliability.requirements import Requirements, RequirementsFile
from adverse.reliability.thresholds import Threshold
from adverse.reliability.versions import Versions
from adverse.study.spec import study_from
from adverse.study.store.folder import RunFolder
from adverse.study.store.read import Store
from adverse.study.store.verdict_files import write_verdicts
from adverse.study.yamlfile import YamlFile
from adverse.verdicts import Verdict

NAME = "requirements"
FORMAT = 2
KINDS_OF_VERSIONS = ("within", "barely", "battery")
FEWEST_RANKED = 2
QUANTILES = (0, 0.25, 0.5, 0.75, 1)


def as_verdict(one: Checked) -> Verdict:
    """Return the verdict: the margin is what is required, the distance what is measured."""
    finding = one.judged.finding
    ends = None if finding.low is None or finding.high is None else (finding.low, finding.high)
    return Verdict(
        name=f"{one.sut}: {one.name}",
        requirement=one.words,
        required=one.plan.margin,
        measured=finding.distance,
        interval=ends,
        outcome=one.judged.outcome,
        reason=one.judged.reason,
    )


def as_data(check: Check) -> dict[str, Any]:
    """Return all of a check as plain data."""
    asked = check.file.asked
    return {
        "format": FORMAT,
        "study": check.file.study.study.name,
        "task": check.file.study.study.task,
        "seed": check.file.seed,
        "rule": asked.rule,
        "confidence": asked.confidence,
        "batches": asked.batches,
        "images_per_batch": asked.images,
        "faults": check.faults,
        "score_thresholds": {
            sut: {"score": score if np.isfinite(score) else None, "chosen_on": source}
            for sut, (score, source) in check.score_thresholds.items()
        },
        "results": [as_row(one) for one in check.results],
        "rankings": _rankings(check),
        "asked": asked.model_dump(mode="json"),
        "made": [asdict(one) for one in check.versions],
    }


def _rankings(check: Check) -> list[dict[str, Any]]:
    """Return, for each requirement with a battery, the two orders of the SUTs that have both scores."""
    found = []
    for name in check.file.names():
        scored = [
            (one.sut, distance, one.battery_mean)
            for one in check.results
            if one.name == name and (distance := one.judged.finding.distance) is not None
            if one.battery_mean is not None
        ]
        if len(scored) < FEWEST_RANKED:
            continue
        suts, distances, means = zip(*scored, strict=True)
        gap = ranking_gap(suts, distances, means)
        found.append(
            {
                "requirement": name,
                "battery": next(one.battery for one in check.results if one.name == name),
                "tau": gap.tau,
                "words": gap.words,
                "places": [
                    {
                        "sut": sut,
                        "battery_mean": mean,
                        "by_accuracy": gap.accuracy_rank[sut],
                        "distance": distance,
                        "by_reliability": gap.distance_rank[sut],
                    }
                    for sut, distance, mean in scored
                ],
            }
        )
    return found


def as_row(one: Checked) -> dict[str, Any]:
    """Return one result as plain data."""
    finding = one.judged.finding
    return {
        "sut": one.sut,
        "requirement": one.name,
        "words": one.words,
        "kind": one.kind,
        "measure": one.measure,
        "transformation": one.transformation,
        "threshold": one.threshold.tolerated_to,
        "backend": one.threshold.backend,
        "threshold_source": one.threshold.source,
        "outcome": str(one.judged.outcome),
        "reason": one.judged.reason,
        "required": finding.required,
        "measured": finding.measured,
        "distance": finding.distance,
        "low": finding.low,
        "high": finding.high,
        "margin": one.plan.margin,
        "detectable": finding.detectable,
        "standard_error": finding.error,
        "p_met": finding.p_met,
        "p_missed": finding.p_missed,
        "images": finding.images,
        "logs": finding.logs,
        **_reach("versions", one.within),
        **(_reach("barely", one.barely) if one.barely is not None else {}),
        "battery": one.battery,
        "battery_mean": one.battery_mean,
    }


def save(check: Check) -> tuple[Path, Path]:
    """Write all of a check into its folder, seal it, and return the files: all numbers, and the verdicts."""
    text = json.dumps(as_data(check), indent=1, allow_nan=False) + "\n"
    (path,) = check.store.write({f"results/{NAME}.json": text.encode()})
    return path, write_verdicts(check.store, NAME, [as_verdict(one) for one in check.results])


def is_check(run: Path) -> bool:
    """Tell whether a folder is that of a requirements check."""
    return (RunFolder(run).results / f"{NAME}.json").exists()


def rejudged(store: Store) -> list[Verdict]:
    """Judge the answers of a check again by its requirements; none where the run is not that of a check.

    Nothing is run, and no plug-in is loaded: which setting is a version of what is written in the results.
    """
    if store.result(f"{NAME}.json") is None:
        return []
    data = read(store)
    told: Any = yaml.safe_load(store.folder.study.read_text())
    place = store.folder.results / f"{NAME}.json"
    try:
        asked = Requirements.model_validate_json(json.dumps(data["asked"]))
        versions = [
            Versions(Threshold(**one["threshold"]), *(tuple(one[kind]) for kind in KINDS_OF_VERSIONS))
            for one in data["made"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(place, error) from error
    file = RequirementsFile(YamlFile(place, data["asked"], {}), asked, study_from(told, store.folder.path))
    return [as_verdict(one) for one in judge_run(file, store, versions).results]


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
        fix="Run adverse requirements check again: what was answered is kept.",
    )


def _reach(name: str, reach: Reach) -> dict[str, Any]:
    seen = reach.visual_change
    return {
        name: reach.versions,
        f"{name}_rejected": reach.rejections,
        f"{name}_rejected_why": dict(sorted(reach.refused.items())),
        f"{name}_tries": reach.tries,
        f"{name}_visual_change": np.quantile(seen, QUANTILES).round(6).tolist() if len(seen) else [],
    }

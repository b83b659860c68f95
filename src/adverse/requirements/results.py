"""What a requirements check writes: every number as JSON, and the verdicts for the gate and the report.

Among the numbers are ranking gaps, the pairs of systems whose order by reliability distance differs from that
by accuracy on a battery: a system that is lower by reliability is less reliable than the benchmark says (Hu
et al. 2022, table 2).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from adverse.errors import StoreError, StudyError
from adverse.humans.thresholds import Threshold
from adverse.requirements.file import Requirements, RequirementsFile
from adverse.requirements.run import RequirementResult, RequirementsCheck, VersionStats, evaluate
from adverse.requirements.verdicts import Verdict, write_verdicts
from adverse.requirements.versions import Versions
from adverse.store.folder import RunFolder
from adverse.store.read import Store
from adverse.strict_yaml import YamlFile
from adverse.study.spec import study_from


@dataclass(frozen=True)
class Swap:
    """Two systems that change places: the first is better by the benchmark, the second by reliability."""

    by_accuracy: str
    by_distance: str


@dataclass(frozen=True)
class RankingGap:
    """Two orders compared. Ranks start at 1; equal scores share the better rank."""

    names: tuple[str, ...]
    accuracy_rank: Mapping[str, int]
    distance_rank: Mapping[str, int]
    swaps: tuple[Swap, ...]
    tau: float | None
    """Kendall's tau-b: 1 for the same order, -1 for the opposite; None where an order has no differences."""
    equal: int = 0
    """Pairs of which one order, or both, cannot say who is ahead."""

    @property
    def words(self) -> str:
        """What it means, in a sentence or two."""
        if self.tau is None:
            return "The systems cannot be put in order by both: all of one score are equal."
        agreement = f"Kendall's tau {self.tau:.2f}"
        count = math.comb(len(self.names), 2)
        if not self.swaps and self.equal:
            agree = f"The orders agree on {count - self.equal} of {count} pairs ({agreement})"
            return f"{agree}; in the others the systems are equal by one or both."
        if not self.swaps:
            return f"Both orders agree on every pair ({agreement})."
        lower = [name for name in self.names if self.distance_rank[name] > self.accuracy_rank[name]]
        pairs = "; ".join(
            f"{swap.by_accuracy} before {swap.by_distance} by accuracy, after it by reliability"
            for swap in self.swaps
        )
        sentence = f"The orders differ in {len(self.swaps)} of {count} pairs ({agreement}): {pairs}."
        if lower:
            verb = "is" if len(lower) == 1 else "are"
            sentence += f" {_listed(lower)} {verb} less reliable than the battery's mean accuracy suggests."
        return sentence


def ranking_gap(names: Sequence[str], distances: Sequence[float], accuracies: Sequence[float]) -> RankingGap:
    """Compare the order by reliability distance (less is better) with that by mean accuracy (more is better).

    >>> gap = ranking_gap(["a", "b", "c"], distances=[0.3, -0.1, 0.2], accuracies=[0.9, 0.8, 0.7])
    >>> gap.distance_rank, gap.swaps[0], round(gap.tau, 3)
    ({'a': 3, 'b': 1, 'c': 2}, Swap(by_accuracy='a', by_distance='b'), -0.333)
    """
    _check(names, distances, accuracies)
    swaps, agreed, apart, ties, equal = [], 0, 0, [0, 0], 0
    for first, second in itertools.combinations(range(len(names)), 2):
        by_accuracy = _sign(accuracies[first] - accuracies[second])
        by_distance = _sign(distances[second] - distances[first])
        ties[0] += by_accuracy == 0
        ties[1] += by_distance == 0
        equal += by_accuracy * by_distance == 0
        agreed += by_accuracy * by_distance > 0
        if by_accuracy * by_distance < 0:
            apart += 1
            better, worse = (first, second) if by_accuracy > 0 else (second, first)
            swaps.append(Swap(names[better], names[worse]))
    pairs = math.comb(len(names), 2)
    spread = math.sqrt((pairs - ties[0]) * (pairs - ties[1]))
    return RankingGap(
        names=tuple(names),
        accuracy_rank=_ranks(names, [-value for value in accuracies]),
        distance_rank=_ranks(names, distances),
        swaps=tuple(swaps),
        tau=(agreed - apart) / spread if spread else None,
        equal=equal,
    )


def _check(names: Sequence[str], distances: Sequence[float], accuracies: Sequence[float]) -> None:
    if not len(names) == len(distances) == len(accuracies) or len(set(names)) != len(names):
        raise StudyError(
            "a ranking needs one distance and one accuracy for each of several distinct names",
            got=f"{len(set(names))} names, {len(distances)} distances, {len(accuracies)} accuracies",
        )
    for name, distance, accuracy in zip(names, distances, accuracies, strict=True):
        if not (math.isfinite(distance) and math.isfinite(accuracy)):
            raise StudyError(
                "a system without a score cannot be ranked",
                where=name,
                got=f"distance {distance:g}, accuracy {accuracy:g}",
                fix="Exclude it, and report that you did.",
            )


def _ranks(names: Sequence[str], scores: Sequence[float]) -> dict[str, int]:
    return {
        name: 1 + sum(other < score for other in scores) for name, score in zip(names, scores, strict=True)
    }


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


NAME = "requirements"
FORMAT = 4
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
        scored = [
            (result.sut, distance, result.battery_mean)
            for result in check.results
            if result.name == name and (distance := result.decision.finding.distance) is not None
            if result.battery_mean is not None
        ]
        if len(scored) < FEWEST_RANKED:
            continue
        suts, distances, means = zip(*scored, strict=True)
        gap = ranking_gap(suts, distances, means)
        rankings.append(
            {
                "requirement": name,
                "battery": next(result.battery for result in check.results if result.name == name),
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
        fix="Run adverse requirements check again; finished work is kept.",
    )


def _version_stats(name: str, reach: VersionStats) -> dict[str, Any]:
    seen = reach.visual_change
    return {
        name: reach.versions,
        f"{name}_rejected": reach.rejections,
        f"{name}_rejected_why": dict(sorted(reach.refused.items())),
        f"{name}_tries": reach.tries,
        f"{name}_visual_change": np.quantile(seen, QUANTILES).round(6).tolist() if len(seen) else [],
    }

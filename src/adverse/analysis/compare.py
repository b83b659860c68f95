"""The same SUT before and after a change: every figure's difference, over the same logs.

Both runs are resampled together, so what a log has to say is said about both; such a difference is much surer
than the two figures are. What is a regression is decided over all comparisons at once (`curves.holm`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.compare_metrics import metric_changes
from adverse.analysis.compare_scores import benchmark_changes, score_changes
from adverse.analysis.pairing import Change, Pairing, failed_everywhere, pair
from adverse.analysis.results import no_results, read_summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.thresholds import SLACK
from adverse.curves.bootstrap import COUNT, Resamples, Sample, draw, estimate
from adverse.curves.interval import Interval, holm
from adverse.curves.quantities import Area, Difference, Quantity, Ratios, Share
from adverse.curves.sign_flip import paired_p, without_0
from adverse.curves.studentized import interval, p_value
from adverse.store.read import Store

Correction = Literal["holm", "none"]
ORDER = ("regression", "not told", "improvement", "unchanged")
"""What a reader must see first."""
CURVE = tuple[str, str]
"""(level, setting)"""
KEY = ("level", "setting")


@dataclass(frozen=True, eq=False)
class Comparison:
    """All differences between two runs, the worst first, and what could not be compared."""

    pairing: Pairing
    changes: tuple[Change, ...]
    correction: Correction
    notes: tuple[str, ...]
    stopped_answering: tuple[str, ...] = ()
    """SUTs that answered in the first run and failed on every image of the second."""

    @property
    def worse(self) -> bool:
        """Whether anything got worse for certain."""
        return bool(self.of("regression") or self.stopped_answering)

    def of(self, outcome: str) -> list[Change]:
        """Return the changes that came out so."""
        return [change for change in self.changes if change.outcome == outcome]


def compare(
    first: Path, second: Path, *, suts: Mapping[str, str] | None = None, correction: Correction = "holm"
) -> Comparison:
    """Compare two finished runs, the second less the first; `suts` pairs SUTs whose names differ."""
    pairing = pair(first, second, suts or {})
    found: list[Change] = []
    if pairing.task == "detection":
        resamples = _resamples(pairing)
        for before, after in pairing.suts:
            found += _sut_changes(pairing, before, after, resamples)
            found += metric_changes(pairing, before, after)
    else:
        found += score_changes(pairing)
    benchmark, notes = benchmark_changes(pairing)
    failed = [failed_everywhere(store) for store in (pairing.first, pairing.second)]
    measured = [
        one for one in (*found, *benchmark) if not (one.before_sut in failed[0] or one.after_sut in failed[1])
    ]
    changes = _decided(measured, correction, next(iter(pairing.settings)))
    changes.sort(key=lambda change: (ORDER.index(change.outcome), change.size))
    stopped = [after for before, after in pairing.suts if after in failed[1] and before not in failed[0]]
    return Comparison(pairing, tuple(changes), correction, (*pairing.notes, *notes), tuple(stopped))


def _decided(changes: Sequence[Change], correction: Correction, baseline: str) -> list[Change]:
    """Say of each change what it is; only comparisons that could have come out either way count.

    What is identical could not, and what repeats the comparison of clean frames comes out as that does.
    """
    tested = [
        number
        for number, one in enumerate(changes)
        if one.p is not None and not one.identical and not one.repeats
    ]
    values = [float(changes[number].p or 0.0) for number in tested]
    named = holm(values) if correction == "holm" else [value < 0.05 for value in values]
    sure = {number for number, one in zip(tested, named, strict=True) if one}
    clean = {_whose(changes[number]) for number in sure if changes[number].setting == baseline}
    return [
        one.decided(sure=number in sure or (one.repeats and _whose(one) in clean), among=max(len(tested), 1))
        for number, one in enumerate(changes)
    ]


def _whose(change: Change) -> tuple[str, str, str, str]:
    return change.before_sut, change.after_sut, change.level, change.figure


def _resamples(pairing: Pairing) -> Resamples:
    strata = ["positive" if one else "negative" for one in pairing.positive]
    count = max(pairing.first.run.bootstrap, pairing.second.run.bootstrap) or COUNT
    return draw(pairing.logs, strata, seed=pairing.first.run.seed, count=count)


def _sut_changes(pairing: Pairing, before: str, after: str, resamples: Resamples) -> Iterator[Change]:
    """Yield the changes of one SUT at all levels under all settings that are in both runs."""
    old = _curves(pairing.first, before, pairing.logs)
    new = _curves(pairing.second, after, pairing.logs)
    common = [key for key in old if key in new]
    baseline = next(iter(pairing.settings))
    for level in dict.fromkeys(level for level, _ in common):
        settings = [setting for one, setting in common if one == level and setting in pairing.settings]
        covered: dict[str, tuple[str, ...]] = {setting: (setting,) for setting in settings}
        for name, groups in ((ANY_MILD, ("mild",)), (ANY, ("mild", "severe"))):
            mine = [setting for setting in settings if pairing.settings[setting] in groups]
            covered |= {name: (baseline, *mine)} if mine else {}
        sides = [{s: one[level, s].ratios for s in settings} for one in (old, new)]
        same = {s: _same(old[level, s], new[level, s]) for s in settings}
        for change in _level_changes(
            Change(before, after, level, "", "robust_area"), sides, covered, same, baseline, resamples
        ):
            settings_of = covered[change.setting]
            yield replace(
                change,
                identical=change.identical or any(_nothing_found(sides, s) for s in (baseline, *settings_of)),
                repeats=change.setting != baseline
                and all(_alike(side[s], side[baseline]) for s in settings_of for side in sides),
            )


def _nothing_found(sides: Sequence[Mapping[str, Ratios]], setting: str) -> bool:
    """Tell whether under a setting no log of either run has a hit at any threshold: both areas are 0."""
    people, others = (side[setting].den_s for side in sides)
    return np.array_equal(people, others) and not any(side[setting].num_s.any() for side in sides)


def _alike(one: Ratios, other: Ratios) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("num_s", "den_s", "num_e", "den_e")
    )


def _level_changes(
    heads: Change,
    sides: Sequence[Mapping[str, Ratios]],
    covered: Mapping[str, tuple[str, ...]],
    same: Mapping[str, bool],
    baseline: str,
    resamples: Resamples,
) -> Iterator[Change]:
    wanted: dict[str, Quantity] = {}
    plain = [Area((side[baseline],)) for side in sides]
    for name, settings in covered.items():
        areas = [Area(tuple(side[s] for s in dict.fromkeys((baseline, *settings)))) for side in sides]
        shares = [Share(part, whole) for part, whole in zip(areas, plain, strict=True)]
        wanted |= {f"before {name}": areas[0], f"after {name}": areas[1]}
        wanted[f"area {name}"] = Difference(areas[1], areas[0])
        wanted |= {f"share before {name}": shares[0], f"share after {name}": shares[1]}
        wanted[f"share {name}"] = Difference(shares[1], shares[0])
    samples = estimate(wanted, resamples)
    for name, settings in covered.items():
        found = interval(samples[f"area {name}"])
        unresolved = found.value is not None and abs(found.value) <= 2 * SLACK
        p = None if unresolved else _p_value(samples[f"area {name}"], sides[0][baseline].den_s)
        yield replace(
            heads,
            setting=name,
            before=_known(samples[f"before {name}"].value),
            after=_known(samples[f"after {name}"].value),
            difference=without_0(found, p),
            p=p,
            identical=unresolved and all(same[setting] for setting in (baseline, *settings)),
            why=f"less than the {2 * SLACK:g} that curves resolve" if unresolved else "",
            robustness_before=_known(samples[f"share before {name}"].value),
            robustness_after=_known(samples[f"share after {name}"].value),
            robustness=None if name == baseline else _defined(interval(samples[f"share {name}"])),
        )


def _p_value(sample: Sample, people: NDArray[Any]) -> float | None:
    """Return the p-value of a difference of areas among others, by its interval and by the exact test.

    The part of a log in the difference is what it does to it, and its share of the people (L,) in what all
    have in common. Where only safety changed these parts are exactly what each log adds.
    """
    return paired_p(p_value(sample), sample.influence + people / max(people.sum(), 1) * sample.value)


@dataclass(frozen=True, eq=False)
class _Side:
    """The counts of one curve in one of the runs, and its thresholds."""

    ratios: Ratios
    thresholds: NDArray[np.float64]


def _curves(store: Store, sut: str, logs: Sequence[str]) -> dict[CURVE, _Side]:
    """Return the counts of a SUT by level and setting, for the given logs in their order."""
    path = store.result("outcomes.parquet")
    if path is None:
        raise no_results(store)
    table = pq.read_table(path, filters=pc.field("sut") == sut)
    fpr_max = store.run.fpr_max
    costs = {name: mark["cost"] for name, mark in read_summary(store).data["levels"].items()}
    place = {log: number for number, log in enumerate(logs)}
    at = np.array([place.get(log, -1) for log in table["log"].to_pylist()], np.int64)
    keys = list(zip(table["level"].to_pylist(), table["setting"].to_pylist(), strict=True))
    rows: dict[CURVE, list[int]] = {}
    for number, key in enumerate(keys):
        if at[number] >= 0:
            rows.setdefault(key, []).append(number)
    truths, exposure = (table[name].to_numpy() for name in ("truths", "exposure"))
    hits, cost = (table[name].combine_chunks() for name in ("hits", "cost"))
    found = {}
    thresholds = _thresholds(store, sut)
    for (level, setting), chosen in rows.items():
        parts = (_stacked(hits, chosen), truths[chosen], _stacked(cost, chosen), exposure[chosen])
        hit, truth, paid, shown = (_placed(part, at[chosen], len(logs)) for part in parts)
        if costs[level.partition("/")[0]] == "time":
            counts = Ratios(hit, truth, shown, paid, "ratio", fpr_max)
        else:
            counts = Ratios(hit, truth, paid, shown, "rate", fpr_max)
        found[level, setting] = _Side(counts, thresholds[level, setting])
    return found


def _thresholds(store: Store, sut: str) -> dict[CURVE, NDArray[np.float64]]:
    """Return the thresholds of every curve of a SUT."""
    path = store.result("curves.parquet")
    if path is None:
        raise no_results(store)
    table = pq.read_table(path, columns=[*KEY, "threshold"], filters=pc.field("sut") == sut)
    found: dict[CURVE, list[float]] = {}
    for level, setting, threshold in zip(*(table[n].to_pylist() for n in (*KEY, "threshold")), strict=True):
        found.setdefault((level, setting), []).append(threshold)
    return {key: np.array(values) for key, values in found.items()}


def _stacked(lists: pa.ListArray, rows: Sequence[int]) -> NDArray[np.float64]:
    """Return some rows of a column of lists, which are equally long there, as (N, K)."""
    values = lists.take(pa.array(rows)).flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    return np.asarray(values.reshape(len(rows), -1))


def _placed(values: NDArray[np.float64], into: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Return values of some logs among all logs; those that say nothing are 0."""
    whole = np.zeros((size, *values.shape[1:]))
    whole[into] = values
    return whole


def _same(first: _Side, second: _Side) -> bool:
    """Tell whether every log came to the same at the thresholds that both curves have, most of them."""
    at = [np.isin(one.thresholds, other.thresholds) for one, other in ((first, second), (second, first))]
    if any(mask.mean() < 1 / 2 for mask in at):
        return False
    for name in ("num_s", "den_s", "num_e", "den_e"):
        one, other = (np.asarray(getattr(side.ratios, name)) for side in (first, second))
        parts = (one[:, at[0]], other[:, at[1]]) if one.ndim == 2 else (one, other)
        if not np.array_equal(parts[0], parts[1]):
            return False
    return True


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _defined(found: Interval) -> Interval | None:
    return None if found.value is None else found

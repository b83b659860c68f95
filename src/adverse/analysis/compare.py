"""The same SUT before and after a change: every figure's difference, over the same logs.

Both runs are resampled together, so what a log has to say is said about both; such a difference is much surer
than the two figures are. What is a regression is decided over all comparisons at once (`curves.holm`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.compare_scores import benchmark_changes, score_changes
from adverse.analysis.pairing import Change, Pairing, pair
from adverse.analysis.results import no_results, read_summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.curves.bootstrap import COUNT, Resamples, draw, estimate
from adverse.curves.interval import Interval, holm
from adverse.curves.quantities import Area, Difference, Quantity, Ratios, Share
from adverse.curves.studentized import interval, p_value
from adverse.store.read import Store

Correction = Literal["holm", "none"]
ORDER = ("regression", "not told", "improvement", "unchanged")
"""What a reader must see first."""
CURVE = tuple[str, str]
"""(level, setting)"""


@dataclass(frozen=True, eq=False)
class Comparison:
    """All differences between two runs, the worst first, and what could not be compared."""

    pairing: Pairing
    changes: tuple[Change, ...]
    correction: Correction
    notes: tuple[str, ...]

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
    else:
        found += score_changes(pairing)
    benchmark, notes = benchmark_changes(pairing)
    changes = _decided([*found, *benchmark], correction)
    changes.sort(key=lambda change: (ORDER.index(change.outcome), change.size))
    return Comparison(pairing, tuple(changes), correction, (*pairing.notes, *notes))


def _decided(changes: Sequence[Change], correction: Correction) -> list[Change]:
    """Say of each change what it is; only comparisons that could have come out either way count."""
    tested = [number for number, one in enumerate(changes) if one.p is not None and not one.same_sut]
    values = [float(changes[number].p or 0.0) for number in tested]
    named = holm(values) if correction == "holm" else [value < 0.05 for value in values]
    sure = {number for number, one in zip(tested, named, strict=True) if one}
    return [one.decided(sure=number in sure, among=len(tested)) for number, one in enumerate(changes)]


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
        sides = [{s: one[level, s] for s in settings} for one in (old, new)]
        heads = Change(before, after, level, "", "area", same_sut=pairing.same_sut(before, after))
        yield from _level_changes(heads, sides, covered, baseline, resamples)


def _level_changes(
    heads: Change,
    sides: Sequence[Mapping[str, Ratios]],
    covered: Mapping[str, tuple[str, ...]],
    baseline: str,
    resamples: Resamples,
) -> Iterator[Change]:
    wanted: dict[str, Quantity] = {}
    plain = [Area((side[baseline],)) for side in sides]
    for name, settings in covered.items():
        areas = [Area(tuple(side[s] for s in settings)) for side in sides]
        worst = [Area(tuple(side[s] for s in dict.fromkeys((baseline, *settings)))) for side in sides]
        shares = [Share(part, whole) for part, whole in zip(worst, plain, strict=True)]
        wanted |= {f"before {name}": areas[0], f"after {name}": areas[1]}
        wanted[f"area {name}"] = Difference(areas[1], areas[0])
        wanted |= {f"share before {name}": shares[0], f"share after {name}": shares[1]}
        wanted[f"share {name}"] = Difference(shares[1], shares[0])
    samples = estimate(wanted, resamples)
    for name, settings in covered.items():
        found = interval(samples[f"area {name}"])
        same = all(_same(sides[0][s], sides[1][s]) for s in settings)
        yield replace(
            heads,
            setting=name,
            before=_known(samples[f"before {name}"].value),
            after=_known(samples[f"after {name}"].value),
            difference=found,
            p=p_value(samples[f"area {name}"]),
            identical=same,
            robustness_before=_known(samples[f"share before {name}"].value),
            robustness_after=_known(samples[f"share after {name}"].value),
            robustness=None if name == baseline else _defined(interval(samples[f"share {name}"])),
        )


def _curves(store: Store, sut: str, logs: Sequence[str]) -> dict[CURVE, Ratios]:
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
    hits, cost = (_stacked(table[name]) for name in ("hits", "cost"))
    found = {}
    for (level, setting), chosen in rows.items():
        into, size = at[chosen], len(logs)
        hit, truth, paid, shown = (
            _placed(part[chosen], into, size) for part in (hits, truths, cost, exposure)
        )
        if costs[level.partition("/")[0]] == "time":
            found[level, setting] = Ratios(hit, truth, shown, paid, "ratio", fpr_max)
        else:
            found[level, setting] = Ratios(hit, truth, paid, shown, "rate", fpr_max)
    return found


def _stacked(column: object) -> NDArray[np.float64]:
    """Return a column of equally long lists as (N, K)."""
    lists = column.combine_chunks()  # type: ignore[attr-defined]
    values = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    return np.asarray(values.reshape(len(lists), -1))


def _placed(values: NDArray[np.float64], into: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Return values of some logs among all logs; those that say nothing are 0."""
    whole = np.zeros((size, *values.shape[1:]))
    whole[into] = values
    return whole


def _same(first: Ratios, second: Ratios) -> bool:
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("num_s", "den_s", "num_e", "den_e")
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _defined(found: Interval) -> Interval | None:
    return None if found.value is None else found

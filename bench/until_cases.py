"""What `adverse run --until` would have saved on a real run, and whether its verdicts are those of all logs.

A finished run has every log, so stopping can be replayed on it without an inference: recall and violations of
every SUT under every mutation, each against limits from 0.1 to 0.9, by the looks, order and rules of settling
of the command. Images are counted as there: a mutation until its rule is settled, clean ones to the last,
logs without people as many as a PASS takes.

    adverse demo --out demo
    python bench/until_cases.py demo/run
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adverse.analysis.closed_loop import bad_logs, drive_settings
from adverse.analysis.detections import sut_detections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.curves.interval import korn_graubard
from adverse.levels.context import run_context
from adverse.levels.image import ROC_A, image_outcomes
from adverse.levels.outcomes import Outcomes
from adverse.requirements.gate import outcome_of
from adverse.requirements.rules import Rule
from adverse.requirements.run_figures import RunFigure
from adverse.requirements.until import KEY, LOOKS, PEOPLE_ONLY, UntilPlan, settle, staged
from adverse.requirements.verdicts import Verdict
from adverse.seeds import generator
from adverse.store.finished_run import finished
from adverse.store.read import Store

LIMITS = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))
LEVEL = "loop/annotated"


class Cell(NamedTuple):
    """Hits of trials by log, of one SUT under one setting."""

    measure: str
    sut: str
    setting: str
    by_log: dict[str, tuple[float, float]]


def cells(store: Store) -> Iterator[Cell]:
    """Yield recall and violations of every SUT and setting, log by log."""
    context = run_context(store)
    for sut in store.suts:
        detections = sut_detections(store, sut)
        threshold = np.array([operating_threshold(store, detections).score], np.float32)
        for setting, matched in detections.settings.items():
            counted = detections.counted(setting)
            found = image_outcomes(matched, store.truth, store.frames, threshold, counted)[ROC_A]
            yield Cell("recall", sut, setting, _by_log(found, found.hits[:, 0]))
        for driven in drive_settings(store, detections, context, threshold):
            if driven.level == LEVEL:
                for setting, found in driven.settings.items():
                    bad = np.clip(bad_logs(found, "violations")[:, 0], 0, 1)
                    yield Cell("violations", sut, setting, _by_log(found, bad))


def _by_log(found: Outcomes, hits: np.ndarray) -> dict[str, tuple[float, float]]:
    return {log: (float(h), float(n)) for log, h, n in zip(found.logs, hits, found.truths, strict=True) if n}


def plan_of(store: Store) -> UntilPlan:
    """Return the looks of a run's logs, in the order of its seed."""
    frames = store.frames
    seen = {frames.logs[frames.log[frame]] for frame in store.truth.frame.tolist()}
    tested = sorted({frames.logs[log] for log in frames.log[frames.test].tolist()})
    kinds = [[log for log in tested if (log in seen) == wanted] for wanted in (True, False)]
    for kind, logs in zip(("positive", "negative"), kinds, strict=True):
        order = generator(store.run.seed, KEY, kind).permutation(len(logs))
        logs[:] = [logs[number] for number in order.tolist()]
    parts = staged(kinds[0], kinds[1], LOOKS)
    ends = np.cumsum([[len(logs) for logs in part] for part in parts], axis=0).tolist()
    stages = tuple((*positive, *negative) for positive, negative in parts)
    facts = {"fixed_thresholds": True, "people_only": PEOPLE_ONLY}
    return UntilPlan(stages, tuple(map(tuple, ends)), "obrien-fleming", (), facts)


def replay(cell: Cell, rule: Rule, plan: UntilPlan) -> tuple[str, str, float]:
    """Return the verdict of a run that stops, that of all logs at 95 %, and the share of logs used."""
    logs: list[str] = []
    found: tuple[str, float] | None = None
    for look, stage in enumerate(plan.stages):
        logs += [log for log in stage if log in cell.by_log]
        verdict = _verdict(cell, rule, logs, plan.confidence(look))
        settled = list(settle(plan, look, (0, rule), [verdict], {}).values())
        if settled and found is None:
            found = str(settled[0].verdict.outcome), sum(settled[0].logs) / sum(plan.counts[-1])
    if found is None:
        raise AssertionError("the last look settles everything")
    return found[0], str(_verdict(cell, rule, logs, 0.95).outcome), found[1]


def _verdict(cell: Cell, rule: Rule, logs: list[str], sure: float) -> Verdict:
    hits, trials = zip(*(cell.by_log[log] for log in logs), strict=True) if logs else ((), ())
    interval = korn_graubard(hits, trials, confidence=sure)
    outcome, why = outcome_of(rule, RunFigure("", interval.value, interval))
    return Verdict("", "", rule.limit, interval.value, interval, outcome, why)


def main() -> None:
    """Print a table by measure and limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    store = finished(parser.parse_args().run)
    plan, every = plan_of(store), list(cells(store))
    print(f"{len(store.suts)} SUTs, {len(store.groups)} settings, looks at {plan.counts}\n")
    print("| rule | same verdicts | opposite | open with all logs | images |\n|---|---|---|---|---|")
    for measure, bound in (("recall", "at_least"), ("violations", "at_most")):
        total = []
        for limit in LIMITS:
            rule = Rule.model_validate({"measure": measure, "setting": "clean", bound: limit})
            mine = [cell for cell in every if cell.measure == measure]
            said = [replay(cell, rule, plan) for cell in mine]
            used = [share for _, _, share in said]
            for sut in store.suts:  # the clean images are run as long as any rule is open
                of_sut = [number for number, cell in enumerate(mine) if cell.sut == sut]
                used[of_sut[0]] = max(used[number] for number in of_sut)
            total.append([*_counts(said), float(np.mean(used)), len(said)])
            print(_row(f"{measure}, limit {limit:g}", total[-1:]), flush=True)
        print(_row(f"{measure}, all limits", total), flush=True)


def _counts(said: list[tuple[str, str, float]]) -> list[float]:
    same = sum(verdict == whole for verdict, whole, _ in said)
    opposite = sum({verdict, whole} == {"PASS", "FAIL"} for verdict, whole, _ in said)
    return [same, opposite, sum(whole == "INCONCLUSIVE" for _, whole, _ in said)]


def _row(name: str, totals: list[list[float]]) -> str:
    same, opposite, undecided, _, count = np.sum(totals, axis=0)
    images = np.mean([total[3] for total in totals])
    return f"| {name} | {same:.0f} of {count:.0f} | {opposite:.0f} | {undecided:.0f} | {images:.0%} |"


if __name__ == "__main__":
    main()

"""The first screen of a report: the verdict, what survives, how the robot stops, one failure, the gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adverse.analysis.fault_rates import fault_remarks
from adverse.analysis.headline import Stopping, headline, headline_levels, stopping
from adverse.analysis.results import Summary
from adverse.mutations.hazards import HazardCoverage
from adverse.report.banner import Banner, cost_banner, recall_falls, verdict_banner
from adverse.report.galleries import Failure
from adverse.report.survival import SurvivalFigure, limits_of, mild_settings, survival_figure
from adverse.requirements.rules import Rule
from adverse.requirements.verdicts import Verdict
from adverse.robot.profile import Robot
from adverse.store.run import Run
from adverse.text import counted, shown

NOUNS = {"detection": "detector", "segmentation": "segmenter", "classification": "classifier"}
CAUTIONS = 4
"""Lines about SUTs that failed or were retried; the rest stand under data quality."""
UNTESTED_NAMED = 3
"""Mutations that were not run and are named as examples."""
NAMED_CLASSES = 3
RENDERED = ("orchard-world", "street-world")
"""Formats whose pictures are made up: who sees the page alone must know."""


@dataclass(frozen=True)
class FirstScreen:
    """All that is placed on it."""

    question: str
    tested: str
    banner: Banner
    figures: tuple[SurvivalFigure, ...]
    stops: Stopping | None
    stop_words: str
    failure: Failure | None
    failure_words: str
    untested: str
    cautions: tuple[str, ...]
    """What failed, was retried or could not be reached, for each SUT."""


def first_screen(
    summary: Summary,
    run: Run,
    verdicts: Mapping[str, Sequence[Verdict]],
    failure: Failure | None,
    coverage: HazardCoverage,
    rules: Sequence[Rule] = (),
    *,
    film_of: tuple[str, str] | None = None,
) -> FirstScreen:
    """Return the first screen of a run; `rules` are those that the verdicts are about.

    `film_of` is the SUT and the setting that the film beside it shows, if there is one.
    """
    levels = headline_levels(summary) or [""]
    heads = [headline(summary, run, level) for level in levels]
    stops, logs = stopping(summary, run, shown=film_of), _test_logs(summary, run)
    judged = [verdict for group in verdicts.values() for verdict in group]
    return FirstScreen(
        _question(summary, run, driven=stops is not None),
        _tested(run, logs),
        verdict_banner(judged) if judged else cost_banner(heads[0], logs, recall_falls(summary, run)),
        tuple(
            survival_figure(head, summary, limits_of(rules, head, mild_settings(summary)))
            for head in heads
            if head.conditions
        ),
        stops,
        _stop_words(stops, run) if stops else "",
        failure,
        _failure_words(failure) if failure else "",
        _untested(summary, coverage),
        _cautions(summary),
    )


def _cautions(summary: Summary) -> tuple[str, ...]:
    """Return what the figures of SUTs do not show; of many, the first few, and how many more there are."""
    lines = [
        shown(line, longest=200)
        for sut, counts in summary.data["counts"].items()
        for line in fault_remarks(sut, counts)
    ]
    more = len(lines) - CAUTIONS
    return (*lines[:CAUTIONS], *([f"{more} more of this kind"] if more > 0 else []))


def _question(summary: Summary, run: Run, *, driven: bool) -> str:
    name, noun = shown(summary.data["study"]), NOUNS[str(summary.data["task"])]
    if len(run.suts) == 1:
        return f"{name}: what breaks {shown(run.suts[0].name)}?"
    return f"{name}: which {noun} may drive?" if driven else f"{name}: which {noun} holds up?"


def _test_logs(summary: Summary, run: Run) -> int:
    """Return how many logs the figures rest on: those of the test split, not all of the data."""
    known = [int(row["logs"]) for row in summary.rows if row["group"] == "baseline" and row.get("logs")]
    return max(known, default=run.data.logs)


def _tested(run: Run, logs: int) -> str:
    judged = [shown(name) for name in run.targets]
    more = f" and {len(judged) - NAMED_CLASSES} more" if len(judged) > NAMED_CLASSES else ""
    kind = "class" if len(judged) == 1 else "classes"
    parts = (
        counted(len(run.suts), "system"),
        *([f"{kind} {', '.join(judged[:NAMED_CLASSES])}{more}"] if run.task == "detection" else []),
        counted(len(run.mutations), "condition"),
        counted(logs, "rendered test log" if run.data.format in RENDERED else "test log")
        + ("" if run.alike_logs is None else " cut from the same recordings and alike"),
        f"{run.data.frames.get('test', 0):,} test frames",
    )
    return ", ".join(parts)


def _stop_words(stops: Stopping, run: Run) -> str:
    worst = stops.lines[-1]
    late = (
        "never in time"
        if not worst.stopped
        else "in some logs never stops"
        if math.isinf(worst.latest_m)
        else f"up to {worst.latest_m:.1f} m late"
    )
    behind = Robot(**run.robot).late_words if run.robot else ""
    learns = f"; {behind}" if behind else ""
    text = f"At {stops.sensitivity:.2g} false alarms per image{learns}; {shown(worst.words)}: {late}"
    if stops.better is None:
        return f"{text}."
    other, stopped = stops.better
    return f"{text}, {shown(other)} in {stopped} of {worst.logs}."


def _failure_words(failure: Failure) -> str:
    row = failure.row
    after = "missed at any threshold" if row["after"] is None else "missed at any usable threshold"
    return f"score {row['score_before']:.2f} clean, {after} under {shown(failure.setting_words)}."


def _untested(summary: Summary, coverage: HazardCoverage) -> str:
    missing = list(summary.data.get("levels_not_evaluated", {}))
    left = [row for row in coverage.rows if not row.settings]
    ran = {name for row in coverage.exercised for name in row.mutations}
    others = dict.fromkeys(
        name for row in left for name in row.mutations if "." not in name and name not in ran
    )
    names = [name.replace("_", " ") for name in others][:UNTESTED_NAMED]
    such = f", such as {', '.join(names)}" if names else ""
    parts = [f"{len(left)} of {len(coverage.rows)} hazards{such}"] if left else []
    if missing:
        parts.append(f"levels {', '.join(map(shown, missing))}")
    return "; ".join(parts)

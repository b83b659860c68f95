"""What the first screen and the terminal say of a run: what survives, and how often the robot stops.

The other levels and every single setting stand in the tables; here the worst case over each mutation's
strengths stands for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from adverse.analysis.choices import best_sut
from adverse.analysis.loop import EXAMPLE_SENSITIVITY
from adverse.analysis.results import Summary
from adverse.store.run import Run
from adverse.text import (
    OPTION_WORDS,
    UNITS,
    WORST_CASES,
    family_words,
    mutation_words,
    option_value,
    stem_and_unit,
)
from adverse.types import Setting

MOST_SETTINGS = 10
"""Up to so many settings stand for themselves; of more, only the worst case of each mutation."""
MOST_STOPS = 4
WIDEST = 0.8
"""A share whose interval is wider than this is not known: the logs are too few to tell."""


class Survival(NamedTuple):
    """What a SUT keeps of its clean figure under a condition; None where it is not defined."""

    value: float | None
    share: float | None
    interval: Mapping[str, Any] | None
    """Of the share."""
    status: str
    worst_setting: str | None

    @property
    def tells(self) -> bool:
        """Tell whether the share is known at all: 0 % between 0 and 100 % says nothing of what is kept."""
        if self.share is None or self.interval is None:
            return self.share is not None
        low, high = self.interval["low"], self.interval["high"]
        return low is not None and high is not None and high - low <= WIDEST

    @property
    def most(self) -> float:
        """The largest share that is kept, but for the doubt of the interval; 1 where it is not known."""
        high = None if self.interval is None else self.interval["high"]
        return (1.0 if self.share is None else self.share) if high is None else float(high)

    @property
    def undefined(self) -> str:
        """Why there is no share, in a word or three."""
        return "clean is 0" if self.status == "ok" else self.status


FAILED = Survival(None, None, None, "failed", None)
"""What is known of a SUT that failed on every image."""


@dataclass(frozen=True)
class Condition:
    """A mutation, at one strength or at its worst, and what every SUT keeps under it."""

    name: str
    words: str
    settings: int
    by_sut: Mapping[str, Survival]

    @property
    def mean(self) -> float:
        """The mean of what the SUTs keep; infinite where no share is defined."""
        known = [one.share for one in self.by_sut.values() if one.share is not None]
        return sum(known) / len(known) if known else math.inf


@dataclass(frozen=True)
class Headline:
    """One level (or the task's score): SUTs by their clean figure, conditions, and their worst cases."""

    level: str
    clean: Mapping[str, float | None]
    conditions: tuple[Condition, ...]
    """The most harmful first, by the mean over the SUTs."""
    worst: tuple[Condition, ...]
    """AnyMild and Any, where there are such."""
    incomplete: frozenset[str] = frozenset()
    clean_intervals: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    """Of the clean figures, by SUT."""
    """SUTs whose clean figure rests on too few of the frames."""


def headline_levels(summary: Summary) -> list[str]:
    """Return the levels of a run, the one to begin with first: the last at which the robot does not act yet.

    What a robot does is said in stops, and a path or a stop forgives much of what perception loses.
    """
    levels = list(dict.fromkeys(str(row["level"]) for row in summary.rows if "level" in row))
    known = summary.data.get("levels", {})
    still = [level for level in levels if "robot" not in known.get(_group(level), {}).get("needs", ())]
    return _beginning(levels, still) if still else levels


def consequence_levels(summary: Summary) -> list[str]:
    """Return the levels of a run, the one with most context first: the closed loop, where a robot drives.

    Whom to choose for the worst case is asked for what comes of it, a stop in time or none.
    """
    levels = list(dict.fromkeys(str(row["level"]) for row in summary.rows if "level" in row))
    return _beginning(levels, levels) if levels else []


def _beginning(levels: Sequence[str], among: Sequence[str]) -> list[str]:
    """Return levels, the first of the last group of some of them before all others."""
    first = next(level for level in among if _group(level) == _group(among[-1]))
    return [first, *(level for level in levels if level != first)]


def _group(level: str) -> str:
    """Return the level that a way of reading it belongs to: image of image/ROC_A."""
    return level.partition("/")[0]


def headline(summary: Summary, run: Run, level: str = "") -> Headline:
    """Return what is left of every SUT at a level; of a run without levels, what is left of its score."""
    detection = summary.data["task"] == "detection"
    value, share = ("robust_area", "robustness") if detection else (str(summary.data["metric"]), "share")
    rows = [row for row in summary.rows if not detection or row["level"] == level]
    families = [row for row in summary.data.get("families", ()) if not detection or row["level"] == level]
    failed = summary.failed_everywhere

    def survivals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Survival]:
        return {
            str(row["sut"]): FAILED if row["sut"] in failed else _survival(row, value, share) for row in rows
        }

    single = len(run.mutations) <= MOST_SETTINGS
    names = setting_names(run)
    if single:
        shown = [
            (setting.id, names[setting.id], 1, _of(rows, "setting", setting.id)) for setting in run.mutations
        ]
    else:
        shown = [
            (
                family,
                names[ids[0]] if len(ids) == 1 else family_words(family),
                len(ids),
                _of(families, "family", family),
            )
            for family, ids in run.families.items()
        ]
    conditions = [Condition(name, words, count, survivals(mine)) for name, words, count, mine in shown]
    worst = [
        Condition(name, words, 0, survivals(mine))
        for name, words in WORST_CASES.items()
        if (mine := _of(rows, "setting", name))
    ]
    clean = {
        str(row["sut"]): row["scores"][value] if not detection else row["area"]
        for row in rows
        if row["group"] == "baseline"
    }
    clean |= dict.fromkeys(failed)
    plain = [row for row in rows if row["group"] == "baseline"]
    incomplete = frozenset(str(row["sut"]) for row in plain if row["status"] == "incomplete")
    ordered = tuple(sorted(conditions, key=lambda one: one.mean))
    name = f"{'area' if detection else value}_interval"
    intervals = {str(row["sut"]): row.get(name) for row in plain if row["sut"] not in failed}
    return Headline(level, clean, ordered, tuple(worst), incomplete, intervals)


def _of(rows: Sequence[Mapping[str, Any]], key: str, name: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row[key] == name]


def _survival(row: Mapping[str, Any], value: str, share: str) -> Survival:
    figure = row["scores"][value] if "scores" in row else row[value]
    worst = row.get("worst_setting", row["setting"])
    return Survival(figure, row[share], row.get(f"{share}_interval"), str(row["status"]), worst)


def setting_words(setting: Setting) -> str:
    """Return a setting in words, without the names of options that their unit makes plain.

    >>> from adverse.types import Step
    >>> setting_words(Setting("", (Step("haze", {"visibility_m": 97.8}),), "mild", frozenset()))
    'haze 97.8 m'
    >>> options = {"focus_m": 5.0, "kappa": 2.8}
    >>> setting_words(Setting("", (Step("defocus", options),), "mild", frozenset()))
    'defocus focus 5 m, blur 2.8'
    """
    words = " + ".join(_step_words(step.mutation, step.options) for step in setting.steps)
    return words + _over_log(setting)


def _over_log(setting: Setting) -> str:
    """Return in words what a setting does over the frames of a log, if anything."""
    return ", drifting" if setting.drift else ", still" if setting.coherent else ""


def setting_names(run: Run) -> dict[str, str]:
    """Return every mutation of a run in words, without options that are the same in all of its settings."""
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for setting in run.mutations:
        if len(setting.steps) == 1:
            alike.setdefault(setting.steps[0].mutation, []).append(setting.steps[0].options)
    names = {}
    for setting in run.mutations:
        first = setting.steps[0]
        others = alike.get(first.mutation, []) if len(setting.steps) == 1 else []
        kept = {
            name: value
            for name, value in first.options.items()
            if any(name not in other or other[name] != value for other in others)
        }
        whole = setting_words(setting)
        short = _step_words(first.mutation, kept, named=len(first.options) > 1) + _over_log(setting)
        names[setting.id] = short if kept else whole
    return names


def _step_words(mutation: str, options: Mapping[str, Any], *, named: bool | None = None) -> str:
    plain, option = mutation_words(mutation)
    named = bool(option) or (len(options) > 1 if named is None else named)
    words = [_option_words(name, value, named=named) for name, value in options.items()]
    return f"{plain} {', '.join(words)}".strip()


def _option_words(name: str, value: object, *, named: bool) -> str:
    number = f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    return option_value(name, number, named=named)


class StopLine(NamedTuple):
    """In how many logs the robot stops in time under a setting, and its latest stop.

    `latest_m` is metres behind the truth's stop, infinite where it never stops in some log.
    """

    setting: str
    words: str
    stopped: int
    logs: int
    latest_m: float


@dataclass(frozen=True)
class Stopping:
    """How often a robot stops in time: clean, and under what costs most stops, a line for each mutation."""

    level: str
    sut: str
    sensitivity: float
    lines: tuple[StopLine, ...]
    """Un-mutated first."""
    better: tuple[str, int] | None
    """Another SUT that stops more often under the last of these, and how often."""


def stopping(summary: Summary, run: Run, *, shown: tuple[str, str] | None = None) -> Stopping | None:
    """Return how the best SUT on clean frames stops; None where no log is driven.

    `shown` is a SUT and a setting that a film beside it shows: the setting has a line if the SUT is the same.
    """
    rows = _loop_rows(summary)
    clean = [row for row in rows if row["setting"] == run.baseline.id]
    if not clean:
        return None
    level, nearest = str(clean[0]["level"]), float(clean[0]["sensitivity"])
    most = max(_stopped(row) for row in clean)
    equals = [str(row["sut"]) for row in clean if _stopped(row) == most]
    best = best_sut(summary, level, run.baseline.id)
    sut = best.sut if best is not None and best.sut in equals else equals[0]
    mine = {str(row["setting"]): row for row in rows if row["sut"] == sut}
    family = {setting.id: setting.family for setting in run.mutations}
    chosen: dict[str, str] = {}
    order = {setting.id: number for number, setting in enumerate(run.mutations)}
    for setting in sorted(mine.keys() & order, key=lambda name: (mine[name]["safety"], -order[name])):
        chosen.setdefault(family[setting], setting)
    settings = list(chosen.values())[:MOST_STOPS]
    if shown is not None and shown[0] == sut and shown[1] in mine and shown[1] not in settings:
        settings = [*settings[: MOST_STOPS - 1], shown[1]]
        settings.sort(key=lambda name: (mine[name]["safety"], -order[name]))
    settings.reverse()
    words = setting_names(run) | {run.baseline.id: "clean"}
    lines = tuple(_line(mine[setting], words[setting]) for setting in (run.baseline.id, *settings))
    last = lines[-1]
    others = {
        str(row["sut"]): _stopped(row)
        for row in rows
        if row["setting"] == last.setting and int(row["logs"]) == last.logs
    }
    first = max(others, key=lambda name: others[name])
    return Stopping(
        level, sut, nearest, lines, (first, others[first]) if others[first] > last.stopped else None
    )


class StopCost(NamedTuple):
    """In how many logs fewer than on clean frames a robot stops in time, of those driven under a setting."""

    words: str
    lost: int
    logs: int


class StopCosts(NamedTuple):
    """How often a SUT stops in time on clean frames, and what the mutations cost it, most first."""

    sut: str
    level: str
    sensitivity: float
    stopped: int
    logs: int
    costs: tuple[StopCost, ...]
    """Of the mutations under which a log was driven; 0 or less where it costs nothing."""
    untested: int
    """Mutations under which not all of the logs could be driven."""


def stop_costs(summary: Summary, run: Run) -> list[StopCosts]:
    """Return what the mutations cost each SUT in stops, the SUT with most stops on clean frames first."""
    rows, names = _loop_rows(summary), setting_names(run)
    found = []
    for sut in dict.fromkeys(str(row["sut"]) for row in rows):
        mine = {str(row["setting"]): row for row in rows if row["sut"] == sut}
        if run.baseline.id not in mine:
            continue
        clean = mine[run.baseline.id]
        costs = [
            StopCost(names[setting.id], *_lost(mine[setting.id], clean))
            for setting in run.mutations
            if setting.id in mine
        ]
        whole = sum(cost.logs == int(clean["logs"]) for cost in costs)
        costs.sort(key=lambda cost: -cost.lost)
        found.append(
            StopCosts(
                sut,
                str(clean["level"]),
                float(clean["sensitivity"]),
                _stopped(clean),
                int(clean["logs"]),
                tuple(costs),
                len(run.mutations) - whole,
            )
        )
    return sorted(found, key=lambda one: -one.stopped)


def _loop_rows(summary: Summary) -> list[Mapping[str, Any]]:
    """Return how logs end at the level that `consequence_levels` begins with, at the sensitivity of examples.

    So stops, the choice for the worst case and the film are told against the same truth: where people really
    were, if that is annotated. A SUT that failed on every image stops nowhere, which is no result.
    """
    failed = summary.failed_everywhere
    rows = [row for row in summary.data.get("loop", ()) if row["sut"] not in failed]
    if not rows:
        return []
    levels = list(dict.fromkeys(str(row["level"]) for row in rows))
    level = _beginning(levels, levels)[0]
    nearest = min(
        (row["sensitivity"] for row in rows), key=lambda at: abs(math.log(at / EXAMPLE_SENSITIVITY))
    )
    return [
        row
        for row in rows
        if (row["level"], row["sensitivity"]) == (level, nearest) and row["safety"] is not None
    ]


def _line(row: Mapping[str, Any], words: str) -> StopLine:
    latest = row["lateness_m_max"]
    return StopLine(
        str(row["setting"]), words, _stopped(row), int(row["logs"]), math.inf if latest is None else latest
    )


def _lost(row: Mapping[str, Any], clean: Mapping[str, Any]) -> tuple[int, int]:
    """Return the stops lost, and of how many logs that were driven both times."""
    if "stops_lost" in row:
        return int(row["stops_lost"]), int(row["logs_compared"])
    return _stopped(clean) - _stopped(row), int(row["logs"])  # of results from before they were counted


def _stopped(row: Mapping[str, Any]) -> int:
    return round(float(row["safety"]) * int(row["logs"]))


@dataclass(frozen=True)
class StrengthSeries:
    """The settings of one mutation that differ in one number only, in its order."""

    family: str
    option: str
    fixed: str
    """The other options in words; empty where there are none."""
    values: tuple[float, ...]
    settings: tuple[str, ...]


def strength_series(run: Run) -> list[StrengthSeries]:
    """Return the series of a run: of every mutation of one step, each option that was swept.

    Where two options vary, a series is of settings that agree in the other one; if any series of a mutation
    has three strengths, those with fewer are left out.
    """
    found: dict[tuple[str, str, str], dict[float, str]] = {}
    for setting in run.mutations:
        if len(setting.steps) != 1:
            continue
        step = setting.steps[0]
        for option, value in step.options.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                rest = {name: other for name, other in step.options.items() if name != option}
                words = ", ".join(_option_words(name, other, named=True) for name, other in rest.items())
                words = (words + _over_log(setting)).removeprefix(", ")
                found.setdefault((setting.family, option, words), {})[float(value)] = setting.id
    most: dict[str, int] = {}
    for (family, _, _), known in found.items():
        most[family] = max(most.get(family, 0), len(known))
    return [
        StrengthSeries(
            family, option, words, tuple(sorted(known)), tuple(known[value] for value in sorted(known))
        )
        for (family, option, words), known in found.items()
        if len(known) >= max(2, min(3, most[family]))
    ]


def option_words(option: str) -> str:
    """Return an option as an axis names it.

    >>> option_words("visibility_m"), option_words("alpha")
    ('visibility, m', 'alpha')
    """
    stem, unit = stem_and_unit(option)
    if stem and unit:
        return f"{stem.replace('_', ' ')}, {UNITS[unit]}"
    return OPTION_WORDS.get(option, option).replace("_", " ")

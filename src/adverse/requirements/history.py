"""One measure over many runs: how a system changed from version to version.

The measures are those of the gate (`rules.py`); the figures are the sealed results of each run. Runs on other
data, or evaluated in another way, are kept and said to be so: a step between them is not the SUT's alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse.analysis.headline import headline_levels
from adverse.analysis.results import Summary, read_summary
from adverse.analysis.score import ANY
from adverse.curves.interval import Interval
from adverse.errors import StudyError, suggestion
from adverse.requirements.rules import LIMIT, METRIC, NEEDS, REQUIREMENTS, Rule
from adverse.requirements.run_figures import RunFigures
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.run import Run
from adverse.text import CLEAN, setting_id

MEASURES = tuple(measure for measure in NEEDS if measure not in (REQUIREMENTS, LIMIT, METRIC))
DEFAULTS = {"detection": "robust_area", "segmentation": "mean_iou", "classification": "top1"}
"""What is shown of a run of each task, unless a measure is given."""


EVALUATION = ("targets", "robot", "localizer", "localize_on", "fpr_max", "sensitivity")
"""What of a run decides how its detections are evaluated, beside the operating point of each SUT."""
SEEDS = ("the seed changed", "the noise of random mutations changed")


@dataclass(frozen=True)
class HistoryPoint:
    """A figure of one SUT in one run; `doubt` says why it is missing or must not decide anything."""

    run: str
    folder: Path
    finished: str | None
    """UTC, ISO 8601; None: the run does not say."""
    sut: str
    commit: str | None
    """Of the repository that tracks the SUT's files, where there is one."""
    fingerprint: str | None
    figure: str
    """What was measured: the SUT, level and setting."""
    value: float | None
    interval: Interval | None
    doubt: str
    differs: tuple[str, ...]
    """In what this run is not comparable with the newest one."""

    def plain(self) -> dict[str, Any]:
        """Return the point as plain data."""
        return {
            "run": self.run,
            "folder": str(self.folder),
            "finished": self.finished,
            "sut": self.sut,
            "commit": self.commit,
            "fingerprint": self.fingerprint,
            "figure": self.figure,
            "value": self.value,
            "interval": None if self.interval is None else self.interval.plain(),
            "doubt": self.doubt,
            "differs": list(self.differs),
        }


@dataclass(frozen=True)
class History:
    """A measure over runs, the oldest first."""

    rule: Rule
    points: tuple[HistoryPoint, ...]

    @property
    def figures(self) -> tuple[str, ...]:
        """What was measured, each once."""
        return tuple(dict.fromkeys(point.figure for point in self.points))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The runs, the oldest first."""
        return tuple(dict.fromkeys(point.folder for point in self.points))


def history(
    folders: Sequence[Path],
    *,
    measure: str | None = None,
    level: str | None = None,
    setting: str | None = None,
    suts: Sequence[str] = (),
) -> History:
    """Return a measure of every SUT in every run; runs that do not say when they ended come first.

    Without a measure it is what the terminal and the report begin with, in the worst case; on clean images
    where no run has anything left in the worst case, or none has mutations.
    """
    stores = [finished(folder) for folder in dict.fromkeys(path.resolve() for path in folders)]
    stores.sort(key=lambda store: store.run.provenance.finished or "")
    newest = stores[-1]
    rule = _rule(stores, measure, level, setting, suts)
    points = [point for store in stores for point in _points(store, rule, newest)]
    return History(rule, tuple(points))


def _rule(
    stores: Sequence[Store],
    measure: str | None,
    level: str | None,
    setting: str | None,
    suts: Sequence[str],
) -> Rule:
    newest = stores[-1]
    chosen = measure or DEFAULTS[newest.task]
    metrics = {name for store in stores for name in store.run.metrics}
    metric = chosen if chosen in metrics else None
    chosen = METRIC if metric else chosen
    if metric is None and chosen not in MEASURES:
        fix = suggestion(chosen, [*MEASURES, *sorted(metrics)])
        raise StudyError(f"there is no measure {chosen!r}", where="--measure", fix=fix)
    needs = NEEDS[chosen]
    for name, value in (("level", level), ("setting", setting)):
        if value is not None and name not in needs:
            raise StudyError(
                f"{metric or chosen} takes no {name}",
                where=f"--{name}",
                got=value,
                fix=f"Leave out --{name}.",
            )
    if "level" in needs and level is None:
        level = next(iter(headline_levels(read_summary(newest))), None)
    if "setting" in needs and setting is None:
        worst = chosen in ("robust_area", "robustness") and (measure or _tells(stores, chosen, level))
        setting = ANY if worst else CLEAN
    if setting is not None and setting != CLEAN:
        setting = setting_id(setting, [one for store in stores for one in store.groups])
    every: dict[str, Any] = {"measure": chosen, "metric": metric, "level": level, "setting": setting}
    return Rule(**every, sut=tuple(suts)) if suts else Rule(**every)


def _tells(stores: Sequence[Store], measure: str, level: str | None) -> bool:
    """Tell whether any run has more than nothing of a measure in the worst case at a level."""
    return any(
        (row["level"], row["setting"]) == (level, ANY) and row[measure]
        for store in stores
        if any(group != "baseline" for group in store.groups.values())
        for row in read_summary(store).rows
    )


def _points(store: Store, rule: Rule, newest: Store) -> Iterator[HistoryPoint]:
    run, summary = store.run, read_summary(store)
    figures = RunFigures(store, summary=summary)
    differs = tuple(_differs(store, newest, rule))
    for sut in rule.sut or store.suts:
        there = sut in store.suts
        for figure in figures.figures(rule.model_copy(update={"sut": (sut,)})):
            yield HistoryPoint(
                run.name,
                store.folder.path,
                run.provenance.finished,
                sut,
                run.provenance.commits.get(sut),
                run.sut(sut).fingerprint if there else None,
                figure.of or rule.words,
                figure.value,
                figure.interval,
                figure.doubt or _why(summary, sut),
                differs,
            )


def _why(summary: Summary, sut: str) -> str:
    return "it failed on every image" if sut in summary.failed_everywhere else ""


def _differs(store: Store, newest: Store, rule: Rule) -> Iterator[str]:
    """Say what the figure of a run rests on that is not so in the newest.

    Where the data lie, other SUTs and mutations that the figure is not of make no difference.
    """
    run, last, changes = store.run, newest.run, newest.changes_since(store)
    if not store.same_data(newest):
        yield "other data"
    if _reference(run) != _reference(last):
        yield "compared with other clean answers"
    both = {setting.id for setting in run.mutations} & {setting.id for setting in last.mutations}
    of = f"{rule.setting} " if rule.setting in both else ""
    if rule.setting != CLEAN and any(change.startswith(f"mutation {of}") for change in changes):
        yield "other mutations"
    if any(change in SEEDS for change in changes):
        yield "another seed"
    shared = run.operating_points.keys() & last.operating_points.keys() & set(rule.sut or store.suts)
    if any(getattr(run, name) != getattr(last, name) for name in EVALUATION) or any(
        run.operating_points[sut] != last.operating_points[sut] for sut in shared
    ):
        yield "evaluated in another way"


def _reference(run: Run) -> tuple[str, float] | None:
    """Return the SUT, by content, whose clean answers stand in for annotations, and from which score on."""
    return None if run.truth is None else (run.sut(run.truth.sut).fingerprint, run.truth.score)

"""Search the limits of a study: run what the searches ask for, round by round, until they are over.

Every SUT has a run folder of its own, so that it is shown only what its own searches ask for. It is a run
like any other: it can be resumed, reported on and held to rules. The settings of a folder that was run in
before are kept; what was answered is not asked again.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from adverse import plugins
from adverse.errors import StudyError, suggestion
from adverse.plugins import Registry
from adverse.requirements.boundaries import Boundary, ConditionPair, PairSearch, pair_searches, pairs_of
from adverse.requirements.conditions import Condition, conditions_of
from adverse.requirements.limits import (
    ConditionLimit,
    Search,
    limit_rules,
    read_limits,
    searches,
)
from adverse.requirements.rules import Rule, refuse_unevaluated
from adverse.requirements.run_figures import RunFigures
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from adverse.store.read import Store
from adverse.store.seals import EVERYTHING
from adverse.study.engines import Engine, Stop
from adverse.study.plan import read_settings
from adverse.study.run import RunWatcher, run_study
from adverse.study.spec import StudyFile

SECTION = "limits"
MOST_ROUNDS = 1000
"""Guards against a search that does not end."""


@dataclass(frozen=True)
class StudyLimits:
    """The limits of a study: those of every SUT, condition and rule, and the run folder of each SUT."""

    study: str
    conditions: tuple[Condition, ...]
    rules: tuple[Rule, ...]
    limits: tuple[ConditionLimit, ...]
    folders: tuple[Path, ...]
    settings: int
    """Settings that were run, the clean ones of each SUT not counted."""
    boundaries: tuple[Boundary, ...] = ()
    """Of conditions that prevail together."""


def search_limits(
    file: StudyFile,
    out: Path,
    engine: Callable[[Path], Engine],
    *,
    watch: RunWatcher,
    stop: Stop,
    fresh: bool = False,
) -> StudyLimits | None:
    """Search every limit of a study in run folders below `out`; None when it was interrupted.

    `engine` makes the engine of a run from the folder for its logs.
    """
    registry = plugins.load(file.plugin_files)
    conditions, rules, pairs = _asked(file, registry)
    limits: list[ConditionLimit] = []
    boundaries: list[Boundary] = []
    folders, settings = [], 0
    for sut in file.study.suts:
        mine = list(searches(conditions, rules, [sut.name], file.study.seed))
        together = pair_searches(pairs, rules, sut.name)
        if not mine:
            continue
        store = _search_sut(
            file,
            sut.name,
            [*mine, *together],
            (out / sut.name, fresh),
            engine(out / sut.name / "logs"),
            watch=watch,
            stop=stop,
        )
        if store is None:
            return None
        limits += [one.limit() for one in mine]
        boundaries += [one.boundary() for one in together]
        folders.append(store.folder.path)
        settings += len(store.run.mutations)
    return StudyLimits(
        file.study.name,
        tuple(conditions),
        tuple(rules),
        tuple(limits),
        tuple(folders),
        settings,
        tuple(boundaries),
    )


def _asked(file: StudyFile, registry: Registry) -> tuple[list[Condition], list[Rule], list[ConditionPair]]:
    section = read_limits(file.study.limits, where=file.where(SECTION))
    rules = limit_rules(section, where=file.where(SECTION))
    refuse_unevaluated(rules, file.study.levels, where=file.where(SECTION))
    names = [sut.name for sut in file.study.suts]
    for name in (name for rule in rules for name in rule.sut):
        if name not in names:
            raise StudyError(
                f"the study has no SUT {name!r}", where=file.where(SECTION), fix=suggestion(name, names)
            )
    mutations, where = read_settings(file, registry)[1:], file.where(SECTION)
    conditions = conditions_of(section, mutations, registry, where=where)
    return conditions, rules, pairs_of(section, registry, where=where)


def _search_sut(
    file: StudyFile,
    sut: str,
    mine: Sequence[Search | PairSearch],
    place: tuple[Path, bool],
    engine: Engine,
    *,
    watch: RunWatcher,
    stop: Stop,
) -> Store | None:
    """Run round after round until no search of a SUT asks for more; None when it was interrupted."""
    out, fresh = place
    known = [setting for one in mine for setting in one.every]
    wanted = [] if fresh else _earlier(out, known)
    wanted = wanted or list(dict.fromkeys(one.first for one in mine))
    for number in range(MOST_ROUNDS):
        derived = _derived(file, sut, wanted)
        ran = run_study(derived, out, engine, watch=_Rounds(watch), stop=stop, fresh=fresh and number == 0)
        if ran.problem is not None:
            raise ran.problem
        if ran.status != "complete":
            return None
        store = finished(out, rewrites=EVERYTHING)
        figures = RunFigures(store, ran.plan.registry)
        more = [asked for one in mine for asked in one.advance(figures.figures, store.groups)]
        if not more:
            return store
        wanted = [setting for setting in dict.fromkeys(known) if setting in {*wanted, *more}]
    raise AssertionError("a search for a limit does not end")


def _earlier(out: Path, known: Sequence[str]) -> list[str]:
    """Return the settings of an earlier search in a folder that are still steps of its conditions."""
    folder = RunFolder(out)
    if not folder.manifest.exists():
        return []
    there = folder.read_manifest().get("settings", {})
    return [setting for setting in dict.fromkeys(known) if setting in there]


def _derived(file: StudyFile, sut: str, settings: Sequence[str]) -> StudyFile:
    """Return the study of one SUT under some settings; a SUT that stands in for the truth comes along."""
    made, study = copy.copy(file), file.study
    needed = {sut, study.truth.origin if study.truth is not None else sut}
    made.study = study.model_copy(
        update={
            "suts": tuple(one for one in study.suts if one.name in needed),
            "mutations": tuple(settings),
            "robustness": study.robustness.model_copy(update={"conditions": {}}),
            "requirements": None,
        }
    )
    return made


class _Rounds:
    """Hears a round, and leaves out that its settings are others than those of the round before."""

    def __init__(self, watch: RunWatcher) -> None:
        self._watch = watch

    def note(self, line: str) -> None:
        if not line.startswith("since the last run in this folder: mutation "):
            self._watch.note(line)

    def under_way(self, answered: int) -> None:
        self._watch.under_way(answered)

    def begin(self, total: int, done: int) -> None:
        self._watch.begin(total, done)

    def advance(self, statuses: Counter[str]) -> None:
        self._watch.advance(statuses)

    def end(self) -> None:
        self._watch.end()

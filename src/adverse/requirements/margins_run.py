"""Search the margins of a study: round by round, show each frame what its people still have to be asked.

Every SUT has a run folder of its own. The clean images come first; then a frame is shown at further strengths
as long as somebody in it is still found. What was asked for is written into the folder before it is run, so a
search that was stopped goes on where it was, and what was answered is not asked again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adverse import plugins
from adverse.analysis.detections import sut_detections
from adverse.curves.margin_search import wanted_steps
from adverse.errors import StudyError
from adverse.plugins import Registry
from adverse.requirements.conditions import Condition, conditions_of
from adverse.requirements.limits_run import MOST_ROUNDS
from adverse.requirements.margins import KIND, ConditionMargins, RunMargins, read_margins
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from adverse.store.seals import EVERYTHING
from adverse.store.selection import Batch, Selection, read_batches
from adverse.study.engines import Engine, Stop
from adverse.study.plan import read_dataset, read_settings
from adverse.study.run import RunWatcher, run_study
from adverse.study.spec import StudyFile
from adverse.text import BASELINE

VISUAL_CHANGE = "visual_change"


@dataclass(frozen=True)
class SutMargins:
    """The margins of one SUT, and the run they were searched in."""

    run: RunMargins
    conditions: tuple[ConditionMargins, ...]
    folder: Path


@dataclass(frozen=True)
class StudyMargins:
    """The margins of a study, SUT by SUT."""

    study: str
    suts: tuple[SutMargins, ...]


def search_margins(
    file: StudyFile,
    out: Path,
    engine: Callable[[Path], Engine],
    *,
    watch: RunWatcher,
    stop: Stop,
    fresh: bool = False,
) -> StudyMargins | None:
    """Search every margin of a study in run folders below `out`; None when it was interrupted."""
    registry = plugins.load(file.plugin_files)
    conditions = _asked(file, registry)
    done = []
    for sut in file.study.suts:
        place = out / sut.name
        derived = _derived(file, sut.name, conditions)
        found = _search_sut(derived, sut.name, (place, fresh), engine(place / "logs"), watch=watch, stop=stop)
        if found is None:
            return None
        done.append(SutMargins(found, tuple(found.of_sut(sut.name)), place))
    return StudyMargins(file.study.name, tuple(done))


def _asked(file: StudyFile, registry: Registry) -> list[Condition]:
    where = file.where(KIND)
    if file.study.task != "detection":
        raise StudyError(
            f"a run of {file.study.task} has no objects that could be lost",
            where=file.where("task"),
            fix="Search the margins of detectors.",
        )
    if file.study.truth is not None:
        raise StudyError(
            "margins are of annotated objects, and the study has clean answers instead",
            where=file.where("truth"),
            fix="Take truth: out of the study, and name annotated data.",
        )
    section = read_margins(file.study.margins, where=where)
    return conditions_of(section, read_settings(file, registry)[1:], registry, where=where)


def _derived(file: StudyFile, sut: str, conditions: Sequence[Condition]) -> StudyFile:
    """Return the study of one SUT under all strengths: the same noise at each, and its change measured."""
    made, study = copy.copy(file), file.study
    settings = dict.fromkeys(setting.id for condition in conditions for setting in condition.settings)
    made.study = study.model_copy(
        update={
            "suts": tuple(one for one in study.suts if one.name == sut),
            "mutations": tuple(settings),
            "noise": "common",
            "measure": study.measure or VISUAL_CHANGE,
            "robustness": study.robustness.model_copy(update={"conditions": {}}),
            "requirements": None,
            "limits": None,
            "margins": study.margins or {},
        }
    )
    return made


def _search_sut(
    file: StudyFile,
    sut: str,
    place: tuple[Path, bool],
    engine: Engine,
    *,
    watch: RunWatcher,
    stop: Stop,
) -> RunMargins | None:
    """Run round after round until nobody is left to be asked about; None when it was interrupted."""
    out, fresh = place
    registry = plugins.load(file.plugin_files)
    dataset = read_dataset(file, registry)
    every = tuple(frame.id for log in dataset.logs if log.split == "test" for frame in log.frames)
    known = {BASELINE, *file.study.mutations}
    batches = [Batch(every, ((BASELINE, sut),))]
    if not fresh:
        batches += _earlier(out, set(every), known)
    for number in range(MOST_ROUNDS):
        derived = copy.copy(file)
        derived.selection = Selection(KIND, tuple(batches))
        ran = run_study(derived, out, engine, watch=watch, stop=stop, fresh=fresh and number == 0)
        if ran.problem is not None:
            raise ran.problem
        if ran.status != "complete":
            return None
        found = RunMargins(finished(out, rewrites=EVERYTHING, selected=(KIND,)), ran.plan.registry)
        more = next_batches(found, sut)
        if not more:
            return found
        batches += more
    raise AssertionError("a search for margins does not end")


def next_batches(found: RunMargins, sut: str) -> list[Batch]:
    """Return what to run next: the frames that are to be shown the same strengths together."""
    store, section = found.store, found.section
    detections = sut_detections(store, sut)
    frame = store.truth.frame[found.people]
    asked: dict[int, list[tuple[str, str]]] = {}
    for condition in found.conditions:
        names = [f"{condition.name}, {sut}, {name}" for name in found.names]
        known = found.known(detections, condition)
        wanted = wanted_steps(known, section.method, frame, names, seed=store.run.seed)
        for step, setting in enumerate(condition.settings, start=1):
            for number in np.unique(frame[wanted[:, step]]).tolist():
                asked.setdefault(number, []).append((setting.id, sut))
    together: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for number in sorted(asked):
        together.setdefault(tuple(asked[number]), []).append(store.frames.ids[number])
    return [Batch(tuple(frames), cells) for cells, frames in together.items()]


def _earlier(out: Path, frames: set[str], settings: set[str]) -> list[Batch]:
    """Return what a search in the folder asked for before, as far as the study still has it."""
    found = []
    for batch in read_batches(RunFolder(out))[1:]:
        kept = tuple(frame for frame in batch.frames if frame in frames)
        cells = tuple(cell for cell in batch.cells if cell[0] in settings)
        if kept and cells:
            found.append(Batch(kept, cells))
    return found

"""The work of a campaign in whatever process: draws in, rows and what failed out."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adverse.content import Changed
from adverse.fuzz.draws import FuzzDraw, TestMaker
from adverse.fuzz.folder import base_file, names_file, sut_stem
from adverse.fuzz.job import BaseUnit, FuzzJob, FuzzRecords, ReplayUnit, TestUnit, unpacked_keys
from adverse.fuzz.objects import View
from adverse.fuzz.rows import failure_files, outcome_of, scores_of, seen_of, shown_view
from adverse.fuzz.scenes import Scenes
from adverse.fuzz.scored_sut import SceneScore, ScoredSut, answer_file
from adverse.plugins import Registry
from adverse.semantic import Scene
from adverse.study.attempts import AttemptLog
from adverse.study.job import SutTask
from adverse.study.stages import NOTHING_TO_AVOID, Avoid, Stage
from adverse.study.worker import Worker


@dataclass(frozen=True)
class FuzzWork:
    """A campaign's job as engines know it. `registry` holds the plug-ins, where they are loaded already."""

    job: FuzzJob
    registry: Registry | None = None

    def __reduce__(self) -> tuple[type[FuzzWork], tuple[FuzzJob]]:
        """Leave the plug-ins behind: another process loads them itself."""
        return FuzzWork, (self.job,)

    @property
    def plugin_files(self) -> tuple[Path, ...]:
        """Loaded before anything else is unpacked."""
        return self.job.study.plugin_files

    @property
    def suts(self) -> tuple[SutTask, ...]:
        """The SUTs of the study."""
        return self.job.suts

    def worker(
        self,
        tell: Callable[[Stage], None],
        *,
        memory_limit_mb: int | None = None,
        attempts: AttemptLog | None = None,
    ) -> FuzzWorker:
        """Return what does units in the process that this is called in."""
        return FuzzWorker(
            self.job, tell, registry=self.registry, memory_limit_mb=memory_limit_mb, attempts=attempts
        )


class FuzzWorker:
    """Does units, and keeps SUTs, scenes and resources between them."""

    def __init__(
        self,
        job: FuzzJob,
        tell: Callable[[Stage], None],
        *,
        registry: Registry | None = None,
        memory_limit_mb: int | None = None,
        attempts: AttemptLog | None = None,
    ) -> None:
        self.job = job
        self.tell = tell
        self.worker = Worker(
            job.study, tell, registry=registry, memory_limit_mb=memory_limit_mb, attempts=attempts
        )
        self.scenes = Scenes(job, tell)
        self.maker = TestMaker(job, tell, self.scenes)
        self._scored: dict[tuple[int, bool], ScoredSut] = {}

    def do(
        self,
        unit: BaseUnit | TestUnit | ReplayUnit,
        *,
        isolate: frozenset[int] = frozenset(),
        avoid: Avoid = NOTHING_TO_AVOID,
    ) -> FuzzRecords | Changed:
        """Return the records of a unit; `isolate` names the SUTs to run in a process of their own."""
        done = self.worker.unless_changed(lambda: self._records(unit, isolate, avoid))
        if isinstance(done, Changed):
            return done
        read = self.worker.files_read(set(range(len(self.job.suts))), mutated=False)
        return replace(done, files_read=read)

    def _records(
        self, unit: BaseUnit | TestUnit | ReplayUnit, isolate: frozenset[int], avoid: Avoid
    ) -> FuzzRecords:
        suts = [self._scored_sut(index, alone=index in isolate) for index in range(len(self.job.suts))]
        if isinstance(unit, BaseUnit):
            return self._bases(unit, suts, avoid)
        if isinstance(unit, ReplayUnit):
            numbered = enumerate(unit.tests, start=unit.first)
            return self._tests([self.maker.replayed(number, test, avoid) for number, test in numbered], suts)
        drawn_before = set(unpacked_keys(unit.drawn_before))
        guide = copy.deepcopy(unit.guide)  # what a unit expects of its own draws is its own
        drawn = [
            self.maker.draw(unit, unit.first + number, arm, drawn_before, avoid, guide)
            for number, arm in enumerate(unit.arms)
        ]
        return self._tests(drawn, suts)

    def close(self) -> None:
        """Let go of the SUTs."""
        self.worker.close()

    def _scored_sut(self, index: int, *, alone: bool) -> ScoredSut:
        loaded = self.worker.sut(index, alone=alone)
        scored = self._scored.get((index, alone))
        if scored is None or scored.loaded is not loaded:  # it may have been loaded anew
            scored = self._scored[index, alone] = ScoredSut(loaded, self.job)
        return scored

    def _bases(self, unit: BaseUnit, suts: Sequence[ScoredSut], avoid: Avoid) -> FuzzRecords:
        rows: list[dict[str, Any]] = []
        files: dict[str, bytes] = {}
        scenes = {place: self.scenes.get(place, avoid) for place in unit.frames}
        usable = {place: scene for place, scene in scenes.items() if isinstance(scene, Scene)}
        views = [View(scene, removable=self.job.removable) for scene in usable.values()]
        scores: dict[int, dict[str, Any]] = {place: {} for place in usable}
        for sut in suts:
            name = sut.loaded.task.name
            names = {str(label): meaning for label, meaning in sorted(sut.names.items())}
            files[names_file(name)] = json.dumps({"sut": name, "names": names}, indent=1).encode()
            settings = ["un-mutated"] * len(usable)
            for place, (scored, _) in zip(usable, sut.ask(views, settings, self.tell), strict=True):
                scores[place][name] = scores_of(scored) | seen_of(scored)
                if scored.answer is not None:
                    ending, data = answer_file(scored.answer)
                    files[base_file(self.job.frames[place].id, sut_stem(name) + ending)] = data
        for place, scene in scenes.items():
            unusable = None if isinstance(scene, Scene) else scene
            row = {"frame": self.job.frames[place].id, "unusable": unusable, "suts": scores.get(place, {})}
            rows.append(row)
        return FuzzRecords(rows, files)

    def _tests(self, attempts: Sequence[FuzzDraw], suts: Sequence[ScoredSut]) -> FuzzRecords:
        shown = [attempt for attempt in attempts if attempt.mutated is not None]
        views = [shown_view(attempt, self.job) for attempt in shown]
        scored: dict[int, dict[str, SceneScore]] = {attempt.draw: {} for attempt in shown}
        times: list[dict[str, Any]] = [
            {"mutation": attempt.arm.mutation, "generation_s": attempt.seconds} for attempt in shown
        ]
        settings = [f"{attempt.arm.mutation}, draw {attempt.draw}" for attempt in shown]
        for sut in suts:
            name = sut.loaded.task.name
            for place, (answer, each_s) in enumerate(sut.ask(views, settings, self.tell)):
                scored[shown[place].draw][name] = answer
                times[place][f"sut {name}"] = each_s
        rows, files = [], {}
        for attempt in attempts:
            row = {
                "draw": attempt.draw,
                "arm": list(attempt.arm),
                "refused": dict(sorted(attempt.refused.items())),
            }
            if attempt.recipe is not None:
                row |= outcome_of(attempt, scored[attempt.draw], self.job)
                if row["kept"]:
                    files.update(failure_files(attempt, scored[attempt.draw]))
            rows.append(row)
        return FuzzRecords(rows, files, times)

"""The work of a campaign in whatever process: draws in, rows and what failed out.

Base scenes stay in memory, so that each is decoded once for as long as there is room.
"""

from __future__ import annotations

import copy
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from adverse.content import Changed, ChangedError, PlannedFiles
from adverse.errors import DataError, MutationError, one_line
from adverse.fuzz.features import THIRDS, features_of, hints_of
from adverse.fuzz.folder import base_file, failure_file, names_file, sut_stem
from adverse.fuzz.guide import CANDIDATES, Arm, Guide
from adverse.fuzz.job import (
    DUPLICATE,
    BaseUnit,
    Before,
    FuzzJob,
    FuzzRecords,
    ReplayedTest,
    ReplayUnit,
    TestUnit,
    key_number,
    unpacked_keys,
)
from adverse.fuzz.objects import ObjectVerdict, View, verdicts_on, view_of
from adverse.fuzz.scored_sut import SceneScore, ScoredSut, answer_file, instances_png, png
from adverse.fuzz.scoring import drop_of, least_drop
from adverse.plugins import Registry
from adverse.seeds import generator
from adverse.semantic import Cell, Mutated, Recipe, Rejected, Resources, Scene, apply, propose, scene_of
from adverse.study.attempts import AttemptLog
from adverse.study.job import SutTask
from adverse.study.stages import MUTATING, NOTHING_TO_AVOID, Avoid, Stage
from adverse.study.worker import Worker

ROOM_BYTES = 256 * 2**20


class Scenes:
    """The scenes of a job's frames by their place, the least recently used ones forgotten first."""

    def __init__(self, job: FuzzJob, tell: Callable[[Stage], None], room_bytes: int = ROOM_BYTES) -> None:
        self.job = job
        self.tell = tell
        self.room_bytes = room_bytes
        self._kept: OrderedDict[int, Scene | str] = OrderedDict()
        self._bytes = 0

    def get(self, place: int, avoid: Avoid) -> Scene | str:
        """Return a scene, or why there is none; ChangedError where its files are not as planned."""
        frame = self.job.frames[place]
        if (frame.id, None) in avoid.steps:
            return "the process that prepared this frame died"
        if place in self._kept:
            self._kept.move_to_end(place)
            return self._kept[place]
        self.tell(Stage("decoding", frame.id))
        scene = self._read(place)
        self._kept[place] = scene
        self._bytes += _size(scene)
        while self._bytes > self.room_bytes and len(self._kept) > 1:
            self._bytes -= _size(self._kept.popitem(last=False)[1])
        return scene

    def _read(self, place: int) -> Scene | str:
        files = PlannedFiles(self.job.inputs)
        frame = files.of(self.job.frames[place])
        try:
            if frame.fault is not None:
                raise DataError(frame.fault)
            return scene_of(frame, self.job.meaning)
        except Exception as error:
            if files.changed:
                raise ChangedError(files.changed) from error
            return one_line(error)  # whatever a decoder throws costs a frame, never the run


def _size(scene: Scene | str) -> int:
    if isinstance(scene, str):
        return 0
    depth = 0 if scene.depth_m is None else scene.depth_m.nbytes
    return int(scene.image.nbytes + scene.labels.nbytes + scene.instances.nbytes + depth)


UNCHANGED = "nothing changed"
OTHER_PICTURE = "its recipe makes another picture now"


@dataclass(frozen=True)
class Candidate:
    """A mutated scene that a draw may become."""

    recipe: Recipe
    base: Scene
    mutated: Mutated

    @cached_property
    def features(self) -> dict[str, str]:
        """What can be said about it."""
        return features_of(self.recipe, self.mutated, self.base)

    @property
    def thing(self) -> str:
        """What was added or changed: the donor, or the base's own object."""
        return self.recipe.donor or f"{self.base.id}#{self.mutated.instance}"


@dataclass(frozen=True)
class FuzzDraw:
    """What became of a draw: a picture that was not shown before, or nothing but refusals."""

    draw: int
    arm: Arm
    refused: Counter[str]
    recipe: Recipe | None
    base: Scene | None
    mutated: Mutated | None
    seconds: float


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
            return self._tests([self._replayed(number, test, avoid) for number, test in numbered], suts)
        drawn_before = set(unpacked_keys(unit.drawn_before))
        guide = copy.deepcopy(unit.guide)  # what a unit expects of its own draws is its own
        drawn = [
            self._draw(unit, unit.first + number, arm, drawn_before, avoid, guide)
            for number, arm in enumerate(unit.arms)
        ]
        return self._tests(drawn, suts)

    def close(self) -> None:
        """Let go of the SUTs."""
        self.worker.close()

    @cached_property
    def resources(self) -> Resources:
        """What can be put into scenes."""
        if self.job.resources is None:
            raise MutationError("tests need a resource set")
        return Resources.open(self.job.resources)

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
                scores[place][name] = _scores(scored) | _seen(scored)
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
        views = [self._view(attempt) for attempt in shown]
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
                row |= self._outcome(attempt, scored[attempt.draw])
                if row["kept"]:
                    files.update(_failure(attempt, scored[attempt.draw]))
            rows.append(row)
        return FuzzRecords(rows, files, times)

    def _replayed(self, number: int, test: ReplayedTest, avoid: Avoid) -> FuzzDraw:
        """Make a test again; what comes out otherwise is no test, and says why."""
        began = time.perf_counter()
        recipe = Recipe.from_json(test.recipe)
        scene = self.scenes.get(test.place, avoid)
        why = scene if isinstance(scene, str) else avoid.reason(scene.id, recipe.mutation)
        if isinstance(scene, Scene) and why is None:
            self.tell(Stage(MUTATING, scene.id, recipe.mutation))
            try:
                mutated = apply(recipe, scene, self.resources)
            except MutationError as error:
                why = str(error)
            else:
                if mutated.scene.picture == test.picture:
                    spent = time.perf_counter() - began
                    return FuzzDraw(number, test.arm, Counter(), recipe, scene, mutated, spent)
                why = OTHER_PICTURE
        return FuzzDraw(number, test.arm, Counter({why or "": 1}), None, None, None, 0.0)

    def _draw(
        self,
        unit: TestUnit,
        draw: int,
        arm: Arm,
        drawn_before: set[int],
        avoid: Avoid,
        guide: Guide | None,
    ) -> FuzzDraw:
        """Take the first of the unit's bases that takes the mutation; guided, the most promising scene."""
        began = time.perf_counter()
        rng = generator(unit.seed, "fuzz", unit.stream, str(draw))
        refused: Counter[str] = Counter()
        made = self._candidates(unit, draw, arm, rng, drawn_before, avoid, refused)
        if guide is not None and arm.asked:  # a draw that asks for nothing explores
            promising = [
                (
                    guide.expected(each.features, each.base.id, each.thing, rng, self._hints(each)),
                    -number,
                    each,
                )
                for number, each in enumerate(islice(made, CANDIDATES))
            ]
            made = (each for _, _, each in sorted(promising, key=lambda entry: entry[:2], reverse=True))
        for each in made:
            picture = each.mutated.scene.picture
            if picture == each.base.picture:
                refused[UNCHANGED] += 1
                continue
            if key_number(picture) in drawn_before:
                refused[DUPLICATE] += 1
                continue
            drawn_before |= {key_number(each.recipe.key()), key_number(picture)}
            if guide is not None:
                guide.expect(each.features, each.base.id, each.thing)
            spent = time.perf_counter() - began
            return FuzzDraw(draw, arm, refused, each.recipe, each.base, each.mutated, spent)
        return FuzzDraw(draw, arm, refused, None, None, None, time.perf_counter() - began)

    def _candidates(
        self,
        unit: TestUnit,
        draw: int,
        arm: Arm,
        rng: np.random.Generator,
        drawn_before: set[int],
        avoid: Avoid,
        refused: Counter[str],
    ) -> Iterator[Candidate]:
        """Yield what the unit's bases make of a draw, where it asked, then elsewhere.

        Another base comes first for each draw.
        """
        arms = [arm, Arm(arm.mutation, arm.object_class)] if arm.place or arm.size else [arm]
        drawn: set[str] = set()
        for wanted in arms:
            most = len(drawn) + CANDIDATES // len(arms) if len(arms) > 1 else None
            for turn in range(len(unit.bases)):
                place = unit.bases[(draw + turn) % len(unit.bases)]
                scene = self.scenes.get(place, avoid)
                if isinstance(scene, str) or avoid.reason(scene.id, arm.mutation) is not None:
                    refused["base frame that cannot be used"] += 1
                    continue
                if len(drawn) == most:
                    break
                self.tell(Stage(MUTATING, scene.id, arm.mutation))
                recipe = self._proposed(scene, wanted, rng, refused)
                if recipe is None:
                    continue
                if key_number(recipe.key()) in drawn_before or recipe.key() in drawn:
                    refused[DUPLICATE] += 1
                    continue
                try:
                    mutated = apply(recipe, scene, self.resources)
                except MutationError as error:
                    refused[error.what] += 1
                    continue
                drawn.add(recipe.key())
                yield Candidate(recipe, scene, mutated)

    def _hints(self, candidate: Candidate) -> dict[str, str]:
        """Return what the answers to a base tell about a test on it: of the SUT that did worst."""
        answers = [was for was in (self.job.before or {}).get(candidate.base.id, ()) if was is not None]
        seen = [was.sightings.overlap.get(candidate.mutated.instance or 0) for was in answers]
        return hints_of(
            candidate.mutated,
            candidate.base,
            min((overlap for overlap in seen if overlap is not None), default=None),
            min((was.score.percent for was in answers if was.score.percent is not None), default=None),
        )

    def _proposed(
        self,
        scene: Scene,
        arm: Arm,
        rng: np.random.Generator,
        refused: Counter[str],
    ) -> Recipe | None:
        cell = Cell(arm.object_class, arm.position, (len(THIRDS), 1), arm.size_px(scene.size[0]))
        proposal = propose(
            arm.mutation, scene, self.resources, rng, self.job.options, where=cell, counted=refused
        )
        return None if isinstance(proposal, Rejected) else proposal

    def _view(self, attempt: FuzzDraw) -> View:
        if attempt.mutated is None or attempt.base is None:
            raise MutationError("only a test can be shown")
        return view_of(attempt.mutated, attempt.base, remnant_share=self.job.remnant_share)

    def _verdicts(self, attempt: FuzzDraw, was: Before | None, now: SceneScore) -> tuple[ObjectVerdict, ...]:
        if was is None or now.sightings is None or attempt.mutated is None or attempt.base is None:
            return ()
        return verdicts_on(
            attempt.mutated,
            attempt.base,
            was.sightings,
            now.sightings,
            visible_share=self.job.visible_share,
            task=self.job.study.task,
        )

    def _outcome(self, attempt: FuzzDraw, scored: dict[str, SceneScore]) -> dict[str, Any]:
        """Return the fields of a row that a test has: its recipe, each SUT's score and drop."""
        if attempt.recipe is None or attempt.base is None or attempt.mutated is None:
            return {}
        candidate = Candidate(attempt.recipe, attempt.base, attempt.mutated)
        before = (self.job.before or {}).get(attempt.base.id, ())
        suts = {}
        kept = False
        for was, (name, now) in zip(before, scored.items(), strict=True):
            drop = _drop(attempt, was, now)
            verdicts = self._verdicts(attempt, was, now)
            suts[name] = _scores(now) | {
                "drop": drop,
                "compat_drop": _compat_drop(attempt, was, now),
                "verdicts": [verdict.plain() for verdict in verdicts],
                "added": _added(attempt, now),
            }
            fell = drop is not None and drop >= least_drop(self.job.bins)
            kept = kept or now.fault is not None or fell or bool(verdicts)
        return {
            "key": attempt.recipe.key(),
            "picture": attempt.mutated.scene.picture,
            "recipe": attempt.recipe.to_json(),
            "base": attempt.base.id,
            "log": attempt.base.log_id,
            "thing": candidate.thing,
            "features": candidate.features,
            "hints": self._hints(candidate),
            "suts": suts,
            "kept": kept,
        }


def _drop(attempt: FuzzDraw, was: Before | None, now: SceneScore) -> float | None:
    """Return by how much the score fell: what was removed counts neither before nor after."""
    if was is None or now.score is None or attempt.mutated is None:
        return None
    removed = attempt.mutated.instance if attempt.arm.mutation == "remove_object" else None
    return drop_of(was.score if removed is None else was.without[removed], now.score)


def _compat_drop(attempt: FuzzDraw, was: Before | None, now: SceneScore) -> float | None:
    """Return what the published scorer says; of removed objects, which the paper does not have, nothing."""
    if attempt.arm.mutation == "remove_object" or was is None or was.compat is None or now.compat is None:
        return None
    return drop_of(was.compat, now.compat)


def _added(attempt: FuzzDraw, now: SceneScore) -> float | None:
    """Return how much of what was added a SUT sees; None where nothing was, or it is not its class."""
    if attempt.mutated is None or attempt.base is None or now.sightings is None:
        return None
    instance = attempt.mutated.instance
    if instance is None or instance in attempt.base.things:
        return None
    return now.sightings.overlap.get(instance)


def _seen(scored: SceneScore) -> dict[str, Any]:
    """Return what later tests on a base need of an answer to it."""
    without = {str(instance): list(score) for instance, score in scored.without.items()}
    return {"sightings": None if scored.sightings is None else scored.sightings.plain(), "without": without}


def _scores(scored: SceneScore) -> dict[str, Any]:
    return {
        "score": None if scored.score is None else list(scored.score),
        "compat": None if scored.compat is None else list(scored.compat),
        "fault": scored.fault,
        **({"retried": scored.retried} if scored.retried else {}),
    }


def _scene_files(scene: Scene) -> Iterator[tuple[str, bytes]]:
    yield "image.png", png(scene.image)
    yield "labels.png", png(scene.labels)
    yield "instances.png", instances_png(scene.instances)


def _failure(attempt: FuzzDraw, scored: dict[str, SceneScore]) -> dict[str, bytes]:
    """Return the files that show a failure: both scenes with their interpretations, and what SUTs said."""
    if attempt.recipe is None or attempt.base is None or attempt.mutated is None:
        return {}
    key, scene = attempt.recipe.key(), attempt.mutated.scene
    files = {failure_file(key, "recipe.json"): attempt.recipe.to_json().encode() + b"\n"}
    for name, data in _scene_files(scene):
        files[failure_file(key, name)] = data
    for name, data in _scene_files(attempt.base):
        files[base_file(attempt.base.id, name)] = data
    for name, result in scored.items():
        if result.answer is not None:
            ending, data = answer_file(result.answer)
            files[failure_file(key, sut_stem(name) + ending)] = data
    return files

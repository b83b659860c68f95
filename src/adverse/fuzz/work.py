"""One unit of a campaign, in whatever process: draws in, rows and what failed out."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from adverse.content import Changed
from adverse.errors import MutationError
from adverse.fuzz.bandit import GRID, Arm
from adverse.fuzz.folder import base_file, failure_file, names_file, sut_stem
from adverse.fuzz.job import BaseUnit, Before, FuzzJob, TestUnit, key_number, unpacked_keys
from adverse.fuzz.judging import Judged, Panel, answer_file, instances_png, png
from adverse.fuzz.packed import Packed, pack
from adverse.fuzz.scenes import Scenes
from adverse.fuzz.scoring import INCONSISTENT, drop_of
from adverse.seeds import generator
from adverse.semantic import Cell, Mutated, Recipe, Rejected, Resources, Scene, apply, propose
from adverse.study.stages import NOTHING_TO_AVOID, Avoid, Stage
from adverse.study.work import Worker

DUPLICATE = "duplicate"
UNCHANGED = "nothing changed"


@dataclass(frozen=True)
class Drawn:
    """What became of a draw: a picture that was not shown before, or nothing but refusals."""

    draw: int
    arm: Arm
    refused: Counter[str]
    recipe: Recipe | None
    base: Scene | None
    mutated: Mutated | None
    seconds: float


class FuzzWorker:
    """Does units, and keeps SUTs, scenes and resources between them."""

    def __init__(
        self, job: FuzzJob, tell: Callable[[Stage], None], *, memory_limit_mb: int | None = None
    ) -> None:
        self.job = job
        self.tell = tell
        self.suts = Worker(job.study, tell, memory_limit_mb=memory_limit_mb)
        self.scenes = Scenes(job, tell)
        self._panels: dict[tuple[int, bool], Panel] = {}

    def do(
        self,
        unit: BaseUnit | TestUnit,
        *,
        isolate: frozenset[int] = frozenset(),
        avoid: Avoid = NOTHING_TO_AVOID,
    ) -> bytes | Changed:
        """Return the packed rows of a unit; `isolate` names the SUTs to run in a process of their own."""
        return self.suts.unless_changed(lambda: self._packed(unit, isolate, avoid))

    def _packed(self, unit: BaseUnit | TestUnit, isolate: frozenset[int], avoid: Avoid) -> bytes:
        panels = [self._panel(index, alone=index in isolate) for index in range(len(self.job.suts))]
        if isinstance(unit, BaseUnit):
            return pack(self._bases(unit, panels, avoid))
        return pack(self._tests(unit, panels, avoid))

    def close(self) -> None:
        """Let go of the SUTs."""
        self.suts.close()

    @cached_property
    def resources(self) -> Resources:
        """What can be put into scenes."""
        if self.job.resources is None:
            raise MutationError("tests need a resource set")
        return Resources.open(self.job.resources)

    def _panel(self, index: int, *, alone: bool) -> Panel:
        loaded = self.suts.sut(index, alone=alone)
        known = self._panels.get((index, alone))
        if known is None or known.loaded is not loaded:  # it may have been loaded anew
            known = self._panels[index, alone] = Panel(loaded, self.job)
        return known

    def _bases(self, unit: BaseUnit, panels: Sequence[Panel], avoid: Avoid) -> Packed:
        rows: list[dict[str, Any]] = []
        files: dict[str, bytes] = {}
        found = {place: self.scenes.get(place, avoid) for place in unit.frames}
        usable = {place: scene for place, scene in found.items() if isinstance(scene, Scene)}
        said: dict[int, dict[str, Any]] = {place: {} for place in usable}
        for panel in panels:
            name = panel.loaded.task.name
            names = {str(label): known for label, known in sorted(panel.names.items())}
            files[names_file(name)] = json.dumps({"sut": name, "names": names}, indent=1).encode()
            scenes = list(usable.values())
            for place, (judged, _) in zip(
                usable, panel.ask(scenes, ["un-mutated"] * len(scenes), self.tell, avoid), strict=True
            ):
                said[place][name] = _scores(judged)
                if judged.answer is not None:
                    ending, data = answer_file(judged.answer)
                    files[base_file(self.job.frames[place].id, sut_stem(name) + ending)] = data
        for place, scene in found.items():
            unusable = None if isinstance(scene, Scene) else scene
            row = {"frame": self.job.frames[place].id, "unusable": unusable, "suts": said.get(place, {})}
            rows.append(row)
        return Packed(rows, files)

    def _tests(self, unit: TestUnit, panels: Sequence[Panel], avoid: Avoid) -> Packed:
        known = set(unpacked_keys(unit.known))
        drawn = [
            self._draw(unit, unit.first + number, arm, known, avoid) for number, arm in enumerate(unit.arms)
        ]
        shown = [one for one in drawn if one.mutated is not None]
        scenes = [one.mutated.scene for one in shown if one.mutated is not None]
        judged: dict[int, dict[str, Judged]] = {one.draw: {} for one in shown}
        times: list[dict[str, Any]] = [
            {"mutation": one.arm.mutation, "generation_s": one.seconds} for one in shown
        ]
        settings = [f"{one.arm.mutation}, draw {one.draw}" for one in shown]
        for panel in panels:
            name = panel.loaded.task.name
            for place, (answer, each_s) in enumerate(panel.ask(scenes, settings, self.tell, avoid)):
                judged[shown[place].draw][name] = answer
                times[place][f"sut {name}"] = each_s
        rows, files = [], {}
        for one in drawn:
            row = {"draw": one.draw, "arm": list(one.arm), "refused": dict(sorted(one.refused.items()))}
            if one.recipe is not None:
                row |= self._outcome(one, judged[one.draw])
                if row["kept"]:
                    files.update(_failure(one, judged[one.draw]))
            rows.append(row)
        return Packed(rows, files, times)

    def _draw(self, unit: TestUnit, draw: int, arm: Arm, known: set[int], avoid: Avoid) -> Drawn:
        """Try the unit's bases, a different one first for each draw, until one takes the mutation."""
        began = time.perf_counter()
        rng = generator(unit.seed, "fuzz", str(draw))
        refused: Counter[str] = Counter()
        for turn in range(len(unit.bases)):
            place = unit.bases[(draw + turn) % len(unit.bases)]
            scene = self.scenes.get(place, avoid)
            if isinstance(scene, str) or avoid.covers(scene.id, arm.mutation):
                refused["base frame that cannot be used"] += 1
                continue
            self.tell(Stage("mutating", scene.id, arm.mutation))
            recipe = self._proposed(scene, arm, rng, refused)
            if recipe is None:
                continue
            number = key_number(recipe.key())
            if number in known:
                refused[DUPLICATE] += 1
                continue
            try:
                mutated = apply(recipe, scene, self.resources)
            except MutationError as error:
                refused[error.what] += 1
                continue
            picture = mutated.scene.picture
            if picture == scene.picture:
                refused[UNCHANGED] += 1
                continue
            if key_number(picture) in known:
                refused[DUPLICATE] += 1
                continue
            known |= {number, key_number(picture)}
            return Drawn(draw, arm, refused, recipe, scene, mutated, time.perf_counter() - began)
        return Drawn(draw, arm, refused, None, None, None, time.perf_counter() - began)

    def _proposed(
        self, scene: Scene, arm: Arm, rng: np.random.Generator, refused: Counter[str]
    ) -> Recipe | None:
        cell = Cell(arm.object_class, arm.position, GRID, arm.size_px)
        found = propose(
            arm.mutation, scene, self.resources, rng, self.job.options, where=cell, counted=refused
        )
        return None if isinstance(found, Rejected) else found

    def _outcome(self, one: Drawn, judged: dict[str, Judged]) -> dict[str, Any]:
        """Return the fields of a row that a test has: its recipe, each SUT's score and drop."""
        if one.recipe is None or one.base is None or one.mutated is None:
            return {}
        before = (self.job.before or {}).get(one.base.id, ())
        suts = {}
        kept = False
        for was, (name, now) in zip(before, judged.items(), strict=True):
            drop = None if was is None or now.score is None else drop_of(was[0], now.score)
            suts[name] = _scores(now) | {"drop": drop, "compat_drop": _compat_drop(was, now)}
            kept = kept or now.fault is not None or (drop is not None and drop >= INCONSISTENT)
        return {
            "key": one.recipe.key(),
            "picture": one.mutated.scene.picture,
            "recipe": one.recipe.to_json(),
            "base": one.base.id,
            "log": one.base.log_id,
            "thing": one.recipe.donor or f"{one.base.id}#{one.mutated.instance}",
            "suts": suts,
            "kept": kept,
        }


def _compat_drop(was: Before | None, now: Judged) -> float | None:
    return None if was is None or was[1] is None or now.compat is None else drop_of(was[1], now.compat)


def _scores(judged: Judged) -> dict[str, Any]:
    return {
        "score": None if judged.score is None else list(judged.score),
        "compat": None if judged.compat is None else list(judged.compat),
        "fault": judged.fault,
        **({"retried": judged.retried} if judged.retried else {}),
    }


def _scene_files(scene: Scene) -> Iterator[tuple[str, bytes]]:
    yield "image.png", png(scene.image)
    yield "labels.png", png(scene.labels)
    yield "instances.png", instances_png(scene.instances)


def _failure(one: Drawn, judged: dict[str, Judged]) -> dict[str, bytes]:
    """Return the files that show a failure: both scenes with their interpretations, and what SUTs said."""
    if one.recipe is None or one.base is None or one.mutated is None:
        return {}
    key, scene = one.recipe.key(), one.mutated.scene
    files = {failure_file(key, "recipe.json"): one.recipe.to_json().encode() + b"\n"}
    for name, data in _scene_files(scene):
        files[failure_file(key, name)] = data
    for name, data in _scene_files(one.base):
        files[base_file(one.base.id, name)] = data
    for name, said in judged.items():
        if said.answer is not None:
            ending, data = answer_file(said.answer)
            files[failure_file(key, sut_stem(name) + ending)] = data
    return files

"""What becomes of a draw: the scenes that bases make of it, of which one is shown, or why there is none."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from adverse.errors import MutationError
from adverse.fuzz.features import THIRDS, features_of, hints_of
from adverse.fuzz.guide import CANDIDATES, Arm, Guide
from adverse.fuzz.job import DUPLICATE, FuzzJob, ReplayedTest, TestUnit, key_number
from adverse.fuzz.scenes import Scenes
from adverse.seeds import generator
from adverse.semantic import Cell, Mutated, Recipe, Rejected, Resources, Scene, apply, propose
from adverse.study.stages import MUTATING, Avoid, Stage

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


def known_before(candidate: Candidate, job: FuzzJob) -> dict[str, str]:
    """Return what the answers to a base tell about a test on it: of the SUT that did worst."""
    answers = [was for was in (job.before or {}).get(candidate.base.id, ()) if was is not None]
    seen = [was.sightings.overlap.get(candidate.mutated.instance or 0) for was in answers]
    return hints_of(
        candidate.mutated,
        candidate.base,
        min((overlap for overlap in seen if overlap is not None), default=None),
        min((was.score.percent for was in answers if was.score.percent is not None), default=None),
    )


class TestMaker:
    """Makes the tests of a campaign, new ones and those of an earlier one, from scenes and resources."""

    def __init__(self, job: FuzzJob, tell: Callable[[Stage], None], scenes: Scenes) -> None:
        self.job, self.tell, self.scenes = job, tell, scenes

    @cached_property
    def resources(self) -> Resources:
        """What can be put into scenes."""
        if self.job.resources is None:
            raise MutationError("tests need a resource set")
        return Resources.open(self.job.resources)

    def replayed(self, number: int, test: ReplayedTest, avoid: Avoid) -> FuzzDraw:
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

    def draw(
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
                    guide.expected(
                        each.features, each.base.id, each.thing, rng, known_before(each, self.job)
                    ),
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

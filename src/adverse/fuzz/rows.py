"""What a campaign writes down of answers: the row of a test, and the files that show a failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adverse.errors import MutationError
from adverse.fuzz.draws import Candidate, FuzzDraw, known_before
from adverse.fuzz.folder import base_file, failure_file, sut_stem
from adverse.fuzz.job import Before, FuzzJob
from adverse.fuzz.objects import ObjectVerdict, Sightings, View, verdicts_on, view_of, visible_shares
from adverse.fuzz.scored_sut import SceneScore, answer_file, instances_png, png
from adverse.fuzz.scoring import drop_of, least_drop
from adverse.semantic import Scene


def shown_view(attempt: FuzzDraw, job: FuzzJob) -> View:
    """Return a test as SUTs are asked about it."""
    if attempt.mutated is None or attempt.base is None:
        raise MutationError("only a test can be shown")
    return view_of(attempt.mutated, attempt.base, remnant_share=job.remnant_share)


def _verdicts(
    attempt: FuzzDraw, was: Before | None, now: SceneScore, job: FuzzJob
) -> tuple[ObjectVerdict, ...]:
    if was is None or now.sightings is None or attempt.mutated is None or attempt.base is None:
        return ()
    return verdicts_on(
        attempt.mutated,
        attempt.base,
        was.sightings,
        now.sightings,
        visible_share=job.visible_share,
        task=job.study.task,
    )


def outcome_of(attempt: FuzzDraw, scored: dict[str, SceneScore], job: FuzzJob) -> dict[str, Any]:
    """Return the fields of a row that a test has: its recipe, each SUT's score and drop."""
    if attempt.recipe is None or attempt.base is None or attempt.mutated is None:
        return {}
    candidate = Candidate(attempt.recipe, attempt.base, attempt.mutated)
    before = (job.before or {}).get(attempt.base.id, ())
    suts = {}
    kept = False
    for was, (name, now) in zip(before, scored.items(), strict=True):
        drop = _drop(attempt, was, now)
        verdicts = _verdicts(attempt, was, now, job)
        suts[name] = scores_of(now) | {
            "drop": drop,
            "compat_drop": _compat_drop(attempt, was, now),
            "verdicts": [verdict.plain() for verdict in verdicts],
            "added": _added(attempt, now),
            "seen": _seen(attempt, now, job),
        }
        fell = drop is not None and drop >= least_drop(job.bins)
        kept = kept or now.fault is not None or fell or bool(verdicts)
    return {
        "key": attempt.recipe.key(),
        "picture": attempt.mutated.scene.picture,
        "recipe": attempt.recipe.to_json(),
        "base": attempt.base.id,
        "log": attempt.base.log_id,
        "thing": candidate.thing,
        "features": candidate.features,
        "hints": known_before(candidate, job),
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


def _seen(attempt: FuzzDraw, now: SceneScore, job: FuzzJob) -> dict[str, Any] | None:
    """Return what is seen of the base's objects that show enough to be asked for, and what is not there."""
    if attempt.mutated is None or attempt.base is None or now.sightings is None:
        return None
    shares = visible_shares(attempt.base, attempt.mutated.scene)
    asked = {
        instance: overlap
        for instance, overlap in now.sightings.overlap.items()
        if shares.get(instance, 0.0) >= job.visible_share
    }
    return Sightings(asked, now.sightings.phantoms).plain()


def seen_of(scored: SceneScore) -> dict[str, Any]:
    """Return what later tests on a base need of an answer to it."""
    without = {str(instance): list(score) for instance, score in scored.without.items()}
    return {"sightings": None if scored.sightings is None else scored.sightings.plain(), "without": without}


def scores_of(scored: SceneScore) -> dict[str, Any]:
    """Return the score of an answer as rows hold it, or why there is none."""
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


def failure_files(attempt: FuzzDraw, scored: dict[str, SceneScore]) -> dict[str, bytes]:
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

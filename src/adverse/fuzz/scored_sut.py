"""Asking SUTs about scenes and scoring what they say: pixels for segmenters, boxes for detectors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.errors import IncompleteError, SutError
from adverse.fuzz.job import FuzzJob
from adverse.fuzz.objects import Sightings, View, seen_by_detector, seen_by_segmenter
from adverse.fuzz.scoring import COMPAT_IGNORED, Judge, Score, judge_of, score_boxes
from adverse.semantic import Thing, removal_mask
from adverse.study.loaded_sut import LoadedSut
from adverse.study.stages import Stage
from adverse.study.sut_queue import AnswerOrFault, ask_batch, asking_stage
from adverse.types import Detections, LabelMap


@dataclass(frozen=True)
class SceneScore:
    """The answer of one SUT about one scene: its score, the published scorer's, or why there is none."""

    score: Score | None
    compat: Score | None
    fault: str | None
    answer: Detections | LabelMap | None
    sightings: Sightings | None = None
    without: Mapping[int, Score] = field(default_factory=dict)
    """The score that it would have without one of its objects, by instance."""
    retried: int = 0
    """Attempts that failed before it answered."""


class ScoredSut:
    """One SUT, asked about scenes, and what scores its answers."""

    def __init__(self, loaded: LoadedSut, job: FuzzJob) -> None:
        self.loaded = loaded
        self.job = job
        self.names = loaded.names
        self.judge: Judge | None = None
        self.compat: Judge | None = None
        if job.study.task == "segmentation":
            classes = job.study.pixel_classes
            published = judge_of(classes, self.names, ignored=COMPAT_IGNORED)
            self.judge = published if job.scorer == "compat" else judge_of(classes, self.names)
            self.compat = published if COMPAT_IGNORED & set(classes.values()) else None

    def ask(
        self, views: Sequence[View], settings: Sequence[str], tell: Callable[[Stage], None]
    ) -> Iterator[tuple[SceneScore, float]]:
        """Yield what the SUT says about each scene, and the seconds it took, batch by batch.

        Raises IncompleteError when it cannot be asked: that is no answer, and must not be kept as one.
        """
        batch = self.loaded.task.batch
        self.loaded.begin()
        for start in range(0, len(views), batch):
            some = views[start : start + batch]
            stage = asking_stage(self.loaded, some[0].scene.id, settings[start])
            began = time.perf_counter()
            replies = ask_batch(self.loaded, [view.scene.image for view in some], stage, tell)
            if self.loaded.outage is not None:
                raise _unreachable(self.loaded.outage)
            each_s = (time.perf_counter() - began) / len(some)
            for view, reply in zip(some, replies, strict=True):
                scored = self._score(view, reply.answer)
                yield replace(scored, retried=0 if scored.fault else reply.failed), each_s

    def _score(self, view: View, answer: AnswerOrFault) -> SceneScore:
        if isinstance(answer, SutError):
            return SceneScore(None, None, str(answer), None)
        if isinstance(answer, LabelMap) and self.judge is not None:
            return self._score_pixels(view, answer, self.judge)
        if isinstance(answer, Detections):
            return self._score_boxes(view, answer)
        return SceneScore(None, None, f"the SUT answered with {type(answer).__name__}", None)

    def _score_pixels(self, view: View, answer: LabelMap, judge: Judge) -> SceneScore:
        scene = view.scene
        remnants = np.isin(scene.instances, sorted(view.ignored)) if view.ignored else None
        score = judge.score(scene.labels, answer.labels, remnants)
        compat = None if self.compat is None else self.compat.score(scene.labels, answer.labels)
        without = {
            thing.instance: judge.score(scene.labels, answer.labels, removal_mask(scene, thing))
            for thing in _removable(view)
        }
        return SceneScore(score, compat, None, answer, seen_by_segmenter(view, answer, judge), without)

    def _score_boxes(self, view: View, answer: Detections) -> SceneScore:
        job, scene = self.job, view.scene
        targets = job.study.targets
        wanted = {label: targets.index(name) for label, name in self.names.items() if name in targets}
        wanted_rows = [row for row, label in enumerate(answer.labels.tolist()) if label in wanted]
        on_targets = answer.take(wanted_rows)
        labels = [wanted[label] for label in on_targets.labels.tolist()]

        def score(ignored: frozenset[int]) -> Score:
            truth = scene.truth(targets, ignored=ignored)
            by: Literal["recall", "ap"] = "recall" if job.scorer == "recall" else "ap"
            return score_boxes(truth, on_targets, labels, len(targets), by=by, threshold=job.threshold)

        names = [targets[label] for label in labels]
        sightings = seen_by_detector(view, on_targets, names, targets, job.threshold)
        without = {thing.instance: score(view.ignored | {thing.instance}) for thing in _removable(view)}
        return SceneScore(score(view.ignored), None, None, on_targets, sightings, without)


def _removable(view: View) -> list[Thing]:
    things = sorted(view.scene.things.values())
    return [thing for thing in things if view.scene.class_of(thing) in view.removable]


def _unreachable(outage: SutError) -> IncompleteError:
    return IncompleteError(
        f"the campaign is incomplete: {outage.what}", where=outage.where, got=outage.got, fix=outage.fix
    )


def png(array: NDArray[np.uint8] | NDArray[np.uint16]) -> bytes:
    """Return an RGB image or a map as PNG."""
    pixels = array[..., ::-1] if array.ndim == 3 else array
    return bytes(cv2.imencode(".png", pixels)[1].tobytes())


def instances_png(instances: NDArray[np.int32]) -> bytes:
    """Return an instance map as 16-bit PNG; where numbers are larger, as COCO does: R + 256 G + 65536 B."""
    if int(instances.max()) < 2**16:
        return png(instances.astype(np.uint16))
    parts = [instances >> shift & 255 for shift in (0, 8, 16)]
    return png(np.stack(parts, axis=2).astype(np.uint8))


def answer_file(answer: Detections | LabelMap) -> tuple[str, bytes]:
    """Return the ending and the bytes of the file that an answer is kept in."""
    if isinstance(answer, LabelMap):
        return ".png", png(answer.labels)
    detections = {
        "boxes": answer.boxes.tolist(),
        "scores": answer.scores.tolist(),
        "labels": answer.labels.tolist(),
    }
    return ".json", json.dumps(detections).encode()

"""The images waiting for one SUT, and what it answers.

Batches are formed from a unit's images in their order, so they do not depend on workers or resumes. When
a batch fails each of its images is tried once more alone, so that only the suspect is at fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.depth.boxes import box_depths_m
from adverse.errors import StudyError, SutError, suggestion
from adverse.study.plan import Job, SutTask
from adverse.study.prepare import Version
from adverse.study.stages import Stage
from adverse.study.store.records import Record
from adverse.suts.ask import ask
from adverse.types import Detections, Detector, Image, Recorded

Answer = Detections | SutError


class Loaded:
    """A SUT ready to be asked. `isolated` ones watch over time and memory themselves."""

    def __init__(self, index: int, sut: Detector | Recorded, job: Job, *, isolated: bool) -> None:
        self.index = index
        self.task = job.suts[index]
        self.sut: Any = sut
        self.isolated = isolated
        self.looks = hasattr(sut, "detect")
        self.targets = job.targets
        self.category_of_label = _category_of_label(self.task, sut.classes, job)


class Queue:
    """Collects the versions of a unit for one SUT, asks in batches, hands over records."""

    def __init__(
        self,
        loaded: Loaded,
        *,
        twice: frozenset[str],
        tell: Callable[[Stage], None],
        keep: Callable[[Record], None],
    ) -> None:
        self.loaded = loaded
        self.twice = twice
        self.tell = tell
        self.keep = keep
        self.waiting: list[Version] = []

    def add(self, version: Version) -> None:
        """Take one more version; asks when a batch is full."""
        if version.refused is not None:
            self.keep(_refused(version, self.loaded.task.name))
        elif not self.loaded.looks:
            self._keep(version, self._recall(version), None)
        else:
            self.waiting.append(version)
            if len(self.waiting) == self.loaded.task.batch:
                self.flush()

    def flush(self) -> None:
        """Ask about what is waiting."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        images = [version.image for version in waiting if version.image is not None]
        task = self.loaded.task
        stage = Stage(
            f"asking SUT {task.name!r}",
            waiting[0].frame.id,
            waiting[0].setting.id,
            None if self.loaded.isolated else self.loaded.index,
            None if self.loaded.isolated else task.timeout_s,
        )
        answers = self._answers(images, stage)
        sampled = [v.setting.group == "baseline" and v.frame.id in self.twice for v in waiting]
        again = self._answers(images, stage) if any(sampled) else answers
        for version, answer, other, doubled in zip(waiting, answers, again, sampled, strict=True):
            self._keep(version, answer, _equal(answer, other) if doubled else None)

    def _answers(self, images: list[Image], stage: Stage) -> list[Answer]:
        self.tell(stage)
        try:
            return list(ask(self.loaded.sut, images, name=self.loaded.task.name))
        except SutError:
            return [self._alone(image, stage) for image in images]

    def _alone(self, image: Image, stage: Stage) -> Answer:
        self.tell(stage)
        try:
            (answer,) = ask(self.loaded.sut, [image], name=self.loaded.task.name)
        except SutError as error:
            return error
        return answer

    def _recall(self, version: Version) -> Answer:
        name = self.loaded.task.name
        self.tell(Stage(f"looking up SUT {name!r}", version.frame.id, version.setting.id))
        try:
            found: Detections = self.loaded.sut.recall(version.frame.image_id, version.setting.id)
        except SutError as error:
            return error
        return found

    def _keep(self, version: Version, answer: Answer, repeats: bool | None) -> None:  # noqa: FBT001
        names = self.loaded.category_of_label
        found = answer if isinstance(answer, Detections) else Detections.none()
        known = [row for row, label in enumerate(found.labels.tolist()) if label in names]
        labels = tuple(names[int(found.labels[row])] for row in known)
        depths, truth_depths = self._depths(version, found.boxes[known], labels)
        self.keep(
            Record(
                frame=version.frame.id,
                setting=version.setting.id,
                sut=self.loaded.task.name,
                status="fault" if isinstance(answer, SutError) else "ok",
                detections=Detections(found.boxes[known], found.scores[known], found.labels[known]),
                labels=labels,
                reason=str(answer) if isinstance(answer, SutError) else None,
                pixels=version.pixels,
                notes=version.notes,
                repeats=repeats,
                depths=depths,
                truth_depths=truth_depths,
            )
        )

    def _depths(
        self, version: Version, boxes: NDArray[np.float32], labels: tuple[str, ...]
    ) -> tuple[NDArray[np.float32] | None, list[float] | None]:
        """Return the depths of the targets among the boxes and, on the un-mutated frame, of the true ones."""
        if version.depth_m is None:
            return None, None
        wanted = [row for row, label in enumerate(labels) if label in self.loaded.targets]
        depths = np.full(len(boxes), np.nan, np.float32)
        depths[wanted] = box_depths_m(version.depth_m, boxes[wanted])
        if version.setting.group != "baseline":
            return depths, None
        return depths, box_depths_m(version.depth_m, version.frame.truth.boxes).tolist()


def _refused(version: Version, sut: str) -> Record:
    return Record(
        frame=version.frame.id,
        setting=version.setting.id,
        sut=sut,
        status="quarantined",
        detections=Detections.none(),
        labels=(),
        reason=version.refused,
    )


def _equal(first: Answer, second: Answer) -> bool:
    if isinstance(first, Detections) and isinstance(second, Detections):
        return first.same(second)
    return isinstance(first, SutError) and isinstance(second, SutError)


def _category_of_label(task: SutTask, classes: tuple[str, ...], job: Job) -> dict[int, str]:
    """Return the data set's name for each label of the SUT that the data set knows."""
    for name in task.class_map:
        if name not in classes:
            raise StudyError(
                f"class_map names a class that SUT {task.name!r} does not have",
                where=f"SUT {task.name!r}, class_map.{name}",
                fix=suggestion(name, classes),
            )
    named = {label: task.class_map.get(name, name) for label, name in enumerate(classes)}
    known = {label: name for label, name in named.items() if not job.categories or name in job.categories}
    if not set(known.values()) & set(job.targets):
        raise StudyError(
            f"SUT {task.name!r} can never answer {' or '.join(job.targets)}",
            where=f"SUT {task.name!r}",
            got=f"classes {', '.join(classes[:8])}{' ...' if len(classes) > 8 else ''}",
            wanted=f"at least one of {', '.join(job.targets)}",
            fix="Say what they are called here, as in class_map: {pedestrian: person}.",
        )
    return known

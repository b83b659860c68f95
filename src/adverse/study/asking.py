"""The images waiting for one SUT, and what it answers.

Batches are formed from a unit's images in their order, so they do not depend on workers or resumes. When
a batch fails each of its images is tried once more alone, so that only the suspect is at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adverse.errors import SutError
from adverse.study.keeping import Loaded
from adverse.study.prepare import Version
from adverse.study.stages import Stage
from adverse.study.store.records import Record
from adverse.suts.ask import ask
from adverse.types import Answer, Detections, Image

Said = Answer | SutError


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
        stage = asking(self.loaded, waiting[0].frame.id, waiting[0].setting.id)
        answers = answers_of(self.loaded, images, stage, self.tell)
        sampled = [v.setting.group == "baseline" and v.frame.id in self.twice for v in waiting]
        again = answers_of(self.loaded, images, stage, self.tell) if any(sampled) else answers
        for version, answer, other, doubled in zip(waiting, answers, again, sampled, strict=True):
            self._keep(version, answer, _equal(answer, other) if doubled else None)

    def _recall(self, version: Version) -> Said:
        name = self.loaded.task.name
        self.tell(Stage(f"looking up SUT {name!r}", version.frame.id, version.setting.id))
        try:
            found: Detections = self.loaded.sut.recall(version.frame.image_id, version.setting.id)
        except SutError as error:
            return error
        return found

    def _keep(self, version: Version, answer: Said, repeats: bool | None) -> None:  # noqa: FBT001
        failed = isinstance(answer, SutError)
        self.keep(
            Record(
                frame=version.frame.id,
                setting=version.setting.id,
                sut=self.loaded.task.name,
                status="fault" if failed else "ok",
                reason=str(answer) if failed else None,
                pixels=version.pixels,
                notes=version.notes,
                repeats=repeats,
                told=version.told,
                **self.loaded.kept(version, None if isinstance(answer, SutError) else answer),
            )
        )


def asking(loaded: Loaded, frame: str, setting: str) -> Stage:
    """Return the step of asking a SUT about a batch that begins with a frame; isolated ones watch over it."""
    return Stage(
        f"asking SUT {loaded.task.name!r}",
        frame,
        setting,
        None if loaded.isolated else loaded.index,
        None if loaded.isolated else loaded.task.timeout_s,
    )


def answers_of(
    loaded: Loaded, images: Sequence[Image], stage: Stage, tell: Callable[[Stage], None]
) -> list[Said]:
    """Ask about a batch; if that fails, about each of its images alone. One answer or error for each."""
    tell(stage)
    try:
        return list(ask(loaded.sut, images, name=loaded.task.name))
    except SutError:
        return [_alone(loaded, image, stage, tell) for image in images]


def _alone(loaded: Loaded, image: Image, stage: Stage, tell: Callable[[Stage], None]) -> Said:
    tell(stage)
    try:
        answers: list[Said] = ask(loaded.sut, [image], name=loaded.task.name)
    except SutError as error:
        return error
    return answers[0]


def _refused(version: Version, sut: str) -> Record:
    return Record(
        frame=version.frame.id,
        setting=version.setting.id,
        sut=sut,
        status="quarantined",
        reason=version.refused,
        told=version.told,
    )


def _equal(first: Said, second: Said) -> bool:
    if isinstance(first, SutError) or isinstance(second, SutError):
        return isinstance(first, SutError) and isinstance(second, SutError)
    return first.same(second)  # type: ignore[arg-type] # a SUT has one task, so both are of one kind

"""The images waiting for one SUT, and what it answers.

Batches are formed from a unit's images in their order, so they do not depend on workers or resumes. When
a batch fails each of its images is tried once more alone, so that only the suspect is at fault. Every
attempt is counted: a SUT that succeeds only on a retry is not one that never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adverse.errors import InfrastructureError, OutOfMemoryError, SutError
from adverse.store.records import Record
from adverse.study.frame_versions import FrameVersion
from adverse.study.loaded_sut import LoadedSut
from adverse.study.stages import Avoid, Stage
from adverse.suts.ask import ask
from adverse.types import Answer, Detections, Image

AnswerOrFault = Answer | SutError


@dataclass(frozen=True)
class SutReply:
    """The last answer of a SUT about one image, and what it took to get it.

    `attempts` are those that reached the SUT, `failed` those of them that it failed, `outages` those that did
    not reach it; `reason` is why the first failed.
    """

    answer: AnswerOrFault
    attempts: int = 1
    failed: int = 0
    outages: int = 0
    reason: str | None = None

    def after(self, attempt: SutReply) -> SutReply:
        """Return the same with an earlier attempt counted in."""
        return replace(
            self,
            attempts=self.attempts + attempt.attempts,
            failed=self.failed + attempt.failed,
            outages=self.outages + attempt.outages,
            reason=attempt.reason or self.reason,
        )


class SutQueue:
    """Collects the versions of a unit for one SUT, asks in batches, hands over records."""

    def __init__(
        self,
        loaded: LoadedSut,
        *,
        twice: frozenset[str],
        avoid: Avoid,
        tell: Callable[[Stage], None],
        keep: Callable[[Record], None],
    ) -> None:
        self.loaded = loaded
        self.twice = twice
        self.avoid = avoid
        self.tell = tell
        self.keep = keep
        self.waiting: list[FrameVersion] = []

    def add(self, version: FrameVersion) -> None:
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
        if self.loaded.outage is not None:
            self._skip(waiting)
            return
        images = [version.image for version in waiting if version.image is not None]
        first = waiting[0].frame.id, waiting[0].setting.id
        stage = asking_stage(self.loaded, *first)
        fatal = self.avoid.attempts.get((self.loaded.index, *first))
        replies = ask_batch(self.loaded, images, stage, self.tell, fatal=fatal)
        sampled = [v.setting.group == "baseline" and v.frame.id in self.twice for v in waiting]
        repeats: list[bool | None] = [None] * len(waiting)
        if any(sampled) and self.loaded.outage is None:
            again = ask_batch(self.loaded, images, stage, self.tell)
            pairs = list(zip(replies, again, sampled, strict=True))
            repeats = [
                _equal(once.answer, twice.answer) if doubled else None for once, twice, doubled in pairs
            ]
            replies = [
                once.after(replace(twice, reason=once.reason or twice.reason)) for once, twice, _ in pairs
            ]
        if self.loaded.outage is not None:
            self._skip(waiting)
            return
        for version, reply, repeated in zip(waiting, replies, repeats, strict=True):
            self._keep(version, reply, repeated)

    def _skip(self, versions: Sequence[FrameVersion]) -> None:
        """Hand over that the SUT could not be asked: it is by a later run, and this cell is not finished."""
        for version in versions:
            self.keep(
                Record(
                    frame=version.frame.id,
                    setting=version.setting.id,
                    sut=self.loaded.task.name,
                    status="unreachable",
                    reason=str(self.loaded.outage),
                )
            )

    def _recall(self, version: FrameVersion) -> SutReply:
        name = self.loaded.task.name
        self.tell(Stage(f"looking up SUT {name!r}", version.frame.id, version.setting.id))
        try:
            detections: Detections = self.loaded.sut.recall(version.frame.image_id, version.setting.id)
        except SutError as error:
            return SutReply(error, failed=1)
        return SutReply(detections)

    def _keep(self, version: FrameVersion, reply: SutReply, repeats: bool | None) -> None:  # noqa: FBT001
        answer = reply.answer
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
                attempts=reply.attempts,
                failed_attempts=reply.failed,
                outages=reply.outages,
                retried=None if failed else reply.reason,
                repeats=repeats,
                details=version.details,
                **self.loaded.kept(version, None if isinstance(answer, SutError) else answer),
            )
        )


def asking_stage(loaded: LoadedSut, frame: str, setting: str) -> Stage:
    """Return the step of asking a SUT about a batch that begins with a frame; isolated ones watch over it."""
    return Stage(
        f"asking SUT {loaded.task.name!r}",
        frame,
        setting,
        None if loaded.isolated else loaded.index,
        None if loaded.isolated else loaded.task.timeout_s,
    )


def ask_batch(
    loaded: LoadedSut,
    images: Sequence[Image],
    stage: Stage,
    tell: Callable[[Stage], None],
    *,
    fatal: str | None = None,
) -> list[SutReply]:
    """Ask about a batch; if that fails, about each of its images alone. One answer or error for each.

    `fatal` says that to ask about this batch took a worker down, and how: that was the first attempt. For a
    SUT that cannot be asked `loaded.outage` is set, and the answers say nothing.
    """
    if fatal is None:
        answers, attempt = _attempt(loaded, images, stage, tell)
        if answers is not None:
            return [SutReply(answers[0]).after(attempt), *map(SutReply, answers[1:])]
    else:
        attempt = SutReply(SutError(fatal), failed=1, reason=fatal)
    alone: list[SutReply] = []
    for image in images:
        answers_alone, reply = _attempt(loaded, [image], stage, tell)
        if isinstance(reply.answer, InfrastructureError):
            loaded.outage = reply.answer
            return [reply] * len(images)
        alone.append(reply if answers_alone is None else SutReply(answers_alone[0]).after(reply))
    if isinstance(attempt.answer, InfrastructureError):
        return [alone[0].after(attempt), *alone[1:]]
    explained = any(isinstance(reply.answer, SutError) for reply in alone)  # an image that fails by itself
    return [
        reply.after(attempt) if not explained or isinstance(reply.answer, SutError) else reply
        for reply in alone
    ]


def _attempt(
    loaded: LoadedSut, images: Sequence[Image], stage: Stage, tell: Callable[[Stage], None]
) -> tuple[list[Answer] | None, SutReply]:
    """Send one request. Return the answers, if there are any, and what is to be counted beside them."""
    tell(stage)
    outages = getattr(loaded.sut, "take_outages", list)
    outages()
    try:
        answers: list[Answer] = ask(loaded.sut, images, name=loaded.task.name)
    except OutOfMemoryError as error:
        if loaded.task.memory_limit_mb is None:
            return None, _outage(error, outages())
        fix = "Raise memory_limit_mb, or look for a leak."
        own = SutError(error.what, where=error.where, got=error.got, wanted=error.wanted, fix=fix)
        return None, SutReply(own, failed=1, reason=str(own))
    except InfrastructureError as error:
        return None, _outage(error, outages())
    except SutError as error:
        return None, SutReply(error, failed=1, outages=len(outages()), reason=str(error))
    passed: list[str] = outages()
    return answers, SutReply(answers[0], 0, outages=len(passed), reason=passed[0] if passed else None)


def _outage(error: InfrastructureError, passed: Sequence[str]) -> SutReply:
    return SutReply(error, 0, outages=max(len(passed), 1), reason=str(error))


def _refused(version: FrameVersion, sut: str) -> Record:
    return Record(
        frame=version.frame.id,
        setting=version.setting.id,
        sut=sut,
        status="quarantined",
        reason=version.refused,
        details=version.details,
    )


def _equal(first: AnswerOrFault, second: AnswerOrFault) -> bool:
    if isinstance(first, SutError) or isinstance(second, SutError):
        return isinstance(first, SutError) and isinstance(second, SutError)
    return first.same(second)  # type: ignore[arg-type] # a SUT has one task, so both are of one kind

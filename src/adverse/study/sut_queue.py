"""The images waiting for one SUT, and what it answers.

Batches are formed from a unit's images in their order, so they do not depend on workers or resumes. When
a batch fails each of its images is tried once more alone, so that only the suspect is at fault. Every
attempt is counted: a SUT that succeeds only on a retry is not one that never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adverse.errors import CrashError, InfrastructureError, OutOfMemoryError, SutError
from adverse.store.records import OUTAGES, Failure, Record
from adverse.study.attempts import Attempt, kind_of_fault
from adverse.study.frame_versions import FrameVersion
from adverse.study.loaded_sut import LoadedSut
from adverse.study.stages import Stage
from adverse.suts.ask import ask
from adverse.types import Answer, Detections, Image

AnswerOrFault = Answer | SutError


@dataclass(frozen=True)
class SutReply:
    """The last answer of a SUT about one image, and what it took to get it.

    `attempts` are the requests that began with this image and reached the SUT, `failures` those of them that
    failed, and those that did not reach it. `retried` is why the first failed of all that held the image.
    """

    answer: AnswerOrFault
    attempts: int = 0
    failures: tuple[Failure, ...] = ()
    retried: str | None = None

    @property
    def failed(self) -> int:
        """Count the requests that the SUT failed."""
        return sum(failure.kind not in OUTAGES for failure in self.failures)

    def after(self, earlier: SutReply) -> SutReply:
        """Return the same with earlier attempts counted in."""
        return replace(
            self,
            attempts=earlier.attempts + self.attempts,
            failures=earlier.failures + self.failures,
            retried=earlier.retried or self.retried,
        )


NOT_ASKED = SutReply(InfrastructureError("not asked"))


class SutQueue:
    """Collects the versions of a unit for one SUT, asks in batches, hands over records."""

    def __init__(
        self,
        loaded: LoadedSut,
        *,
        twice: frozenset[str],
        tell: Callable[[Stage], None],
        keep: Callable[[Record], None],
    ) -> None:
        self.loaded = loaded
        self.twice = twice
        self.tell = tell
        self.keep = keep
        self.waiting: list[FrameVersion] = []
        self.sampled: list[tuple[list[FrameVersion], list[SutReply]]] = []
        """The batches to ask about once more, with what came of them."""

    def add(self, version: FrameVersion) -> None:
        """Take one more version; asks when a batch is full."""
        if version.refused is not None:
            self.keep(_refused(version, self.loaded.task.name))
        elif not self.loaded.looks:
            self._keep(version, self._recall(version))
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
        replies = ask_batch(self.loaded, images, stage, self.tell)
        if self.loaded.outage is not None:
            self._skip(waiting, replies)
            return
        for version, reply in zip(waiting, replies, strict=True):
            self._keep(version, reply)
        if any(self._is_sampled(version) for version in waiting):
            self.sampled.append((waiting, replies))
        self.tell(Stage(f"done with SUT {self.loaded.task.name!r}", *first, answered=len(waiting)))

    def ask_again(self) -> None:
        """Ask about the sampled batches once more, the last one first, when all else of the unit is done.

        So other images come before them than the first time: the answers of a SUT with a memory differ. Where
        they do they are asked for once more at once, which tells a memory from chance.
        """
        for waiting, replies in reversed(self.sampled):
            if self.loaded.outage is not None:
                return
            images = [version.image for version in waiting if version.image is not None]
            stage = asking_stage(self.loaded, waiting[0].frame.id, waiting[0].setting.id)
            again = ask_batch(self.loaded, images, stage, self.tell)
            total = [replace(b.after(a), answer=a.answer) for a, b in zip(replies, again, strict=True)]
            repeats = [_equal(a.answer, b.answer) for a, b in zip(replies, again, strict=True)]
            at_once: list[bool | None] = [None] * len(waiting)
            if False in repeats and self.loaded.outage is None:
                third = ask_batch(self.loaded, images, stage, self.tell)
                total = [replace(b.after(a), answer=a.answer) for a, b in zip(total, third, strict=True)]
                at_once = [_equal(a.answer, b.answer) for a, b in zip(again, third, strict=True)]
            if self.loaded.outage is not None:
                self._skip(waiting, total)
                return
            for version, reply, same, so in zip(waiting, total, repeats, at_once, strict=True):
                if self._is_sampled(version):
                    self._keep(version, reply, repeats=same, repeats_at_once=None if same else so)
                else:
                    self._keep(version, reply)

    def _is_sampled(self, version: FrameVersion) -> bool:
        return version.setting.group == "baseline" and version.frame.id in self.twice

    def _skip(self, versions: Sequence[FrameVersion], replies: Sequence[SutReply] = ()) -> None:
        """Hand over that the SUT could not be asked: it is by a later run, and this cell is not finished.

        What it took until then counts all the same.
        """
        for version, reply in zip(versions, replies or [NOT_ASKED] * len(versions), strict=True):
            self.keep(
                Record(
                    frame=version.frame.id,
                    setting=version.setting.id,
                    sut=self.loaded.task.name,
                    status="unreachable",
                    reason=str(self.loaded.outage),
                    attempts=reply.attempts,
                    failed_attempts=reply.failed,
                    failures=reply.failures,
                )
            )

    def _recall(self, version: FrameVersion) -> SutReply:
        name = self.loaded.task.name
        self.tell(Stage(f"looking up SUT {name!r}", version.frame.id, version.setting.id))
        try:
            with self.loaded.access.noted():
                detections: Detections = self.loaded.sut.recall(version.frame.image_id, version.setting.id)
            self.loaded.check([detections])
        except SutError as error:
            return SutReply(error, 1, (failure_of(error),))
        return SutReply(detections, 1)

    def _keep(
        self,
        version: FrameVersion,
        reply: SutReply,
        *,
        repeats: bool | None = None,
        repeats_at_once: bool | None = None,
    ) -> None:
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
                outages=len(reply.failures) - reply.failed,
                failures=reply.failures,
                retried=None if failed else reply.retried,
                repeats=repeats,
                repeats_at_once=repeats_at_once,
                mutated=version.mutated,
                mutation_repeats=version.mutation_repeats,
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
    loaded: LoadedSut, images: Sequence[Image], stage: Stage, tell: Callable[[Stage], None]
) -> list[SutReply]:
    """Ask about a batch; if that fails, about each of its images alone. One answer or error for each.

    An attempt is a request: what a batch took counts once, at its first image, or at the one that makes it
    fail. For a SUT that cannot be asked `loaded.outage` is set, and the answers say nothing.
    """
    whole = _attempt(loaded, stage, tell, images)
    if whole.answers is not None:
        return [_reply_of(whole, images=len(images)), *map(SutReply, whole.answers[1:])]
    alone: list[SutReply] = []
    for image in images:
        attempt = _attempt(loaded, stage, tell, [image])
        if isinstance(attempt.error, InfrastructureError):
            loaded.outage = attempt.error
            made = [_reply_of(whole, images=len(images)), *alone, _reply_of(attempt)]
            return [_cut_short(made, attempt.error), *[SutReply(attempt.error)] * (len(images) - 1)]
        alone.append(_reply_of(attempt))
    bad = [place for place, reply in enumerate(alone) if isinstance(reply.answer, SutError)]
    at = bad[0] if bad else 0
    if whole.unsure and not bad:  # others were in the process that died, and alone it answers
        return alone
    if isinstance(whole.error, CrashError):
        loaded.own_deaths.add((stage.frame, stage.setting))
    earlier = _reply_of(whole, images=len(images), answered=not bad)
    alone[at] = alone[at].after(earlier)
    if bad:
        return alone
    return [replace(reply, retried=reply.retried or earlier.retried) for reply in alone]


def _cut_short(made: Sequence[SutReply], outage: InfrastructureError) -> SutReply:
    """Return what an outage ended: the requests that the SUT got before it, and those of them that failed."""
    failures = [failure for reply in made for failure in reply.failures if failure.kind not in OUTAGES]
    return SutReply(outage, sum(reply.attempts for reply in made), tuple(failures))


def with_death(record: Record, how: str, kind: str) -> Record:
    """Count the death of a worker as a failed attempt."""
    failure = Failure(kind, how, answered=record.status == "ok")
    return replace(
        record,
        attempts=record.attempts + 1,
        failed_attempts=record.failed_attempts + 1,
        failures=(failure, *record.failures),
        retried=failure.message if record.status == "ok" else None,
    )


def failure_of(error: SutError, *, images: int = 1, answered: bool = False) -> Failure:
    """Return what is kept of a request that failed; `answered`: when its images were sent again."""
    return Failure(kind_of_fault(error), str(error), images, answered)


def _reply_of(attempt: Attempt, *, images: int = 1, answered: bool = False) -> SutReply:
    """Return an attempt as the reply about one image; a failed one may be `answered` when asked again."""
    error, later = attempt.error, answered or attempt.answers is not None
    failures = [Failure("connection", reason, images, later) for reason in attempt.outages]
    if error is not None and not (failures and isinstance(error, InfrastructureError)):
        failures.append(failure_of(error, images=images, answered=answered))
    answer = attempt.answers[0] if attempt.answers else error or SutError("no answer")
    return SutReply(answer, attempt.requests, tuple(failures), failures[0].message if failures else None)


def _attempt(
    loaded: LoadedSut, stage: Stage, tell: Callable[[Stage], None], images: Sequence[Image]
) -> Attempt:
    """Call a SUT once, or return what came of it when an earlier worker did."""
    attempt = loaded.attempts.replayed(loaded.index, stage.frame, stage.setting, len(images))
    if attempt is None:
        tell(stage)
        attempt = _asked(loaded, stage, images)
        loaded.attempts.add(attempt)
        tell(Stage(f"keeping the answer of SUT {loaded.task.name!r}", stage.frame, stage.setting))
    if attempt.error is not None:
        loaded.note_fault(stage, len(images), attempt)
    return attempt


def _asked(loaded: LoadedSut, stage: Stage, images: Sequence[Image]) -> Attempt:
    take = getattr(loaded.sut, "take_requests", None)
    if take is not None:
        take()
    answers: list[Answer] | None = None
    error: SutError | None = None
    try:
        with loaded.access.noted():
            shown = images if loaded.isolated else [_own_copy(image) for image in images]
            given = ask(loaded.sut, shown, name=loaded.task.name)
        loaded.check(given)
        answers = given
    except OutOfMemoryError as failed:
        error = failed if loaded.machine_is_short() else _own_memory_fault(failed)
    except SutError as failed:
        error = failed
    answers = None if error is not None else answers
    outage = isinstance(error, InfrastructureError)
    reached, outages = (0, ()) if take is None else take()
    return Attempt(
        loaded.index,
        stage.frame,
        stage.setting,
        answers,
        error,
        requests=reached if outage else max(reached, 1),
        outages=tuple(outages),
        output=None if error is None else error.output,
    )


def _own_copy(image: Image) -> Image:
    """Return an image that a SUT may spoil: neither other SUTs nor its own next attempt see what it does.

    It is marked as not to be written to, so that one that draws on its input by accident hears of it.
    """
    own = image.copy()
    own.flags.writeable = False
    return own


def _own_memory_fault(error: OutOfMemoryError) -> SutError:
    fix = "Raise memory_limit_mb, or look for a leak."
    own = SutError(error.what, where=error.where, got=error.got, wanted=error.wanted, fix=fix)
    own.output = error.output
    return own


def _refused(version: FrameVersion, sut: str) -> Record:
    return Record(
        frame=version.frame.id,
        setting=version.setting.id,
        sut=sut,
        status="quarantined",
        reason=version.refused,
        details=version.details,
    )


def _equal(first: AnswerOrFault, second: AnswerOrFault) -> bool | None:
    """Tell whether two answers are equal; None where one did not come: to fail is not to answer otherwise."""
    if isinstance(first, SutError) or isinstance(second, SutError):
        return None
    return first.same(second)  # type: ignore[arg-type] # a SUT has one task, so both are of one kind

"""The experiment while it runs: every step is written and flushed before the participant hears of it.

A trial is shown once. Whoever reloads the page, opens a second tab or meets a server that was killed goes on
with a trial that was never shown; the one that was on the screen can still be answered by the page that
showed it, and counts as unanswered otherwise. The first answer to a trial stands, however often it is sent.
"""

from __future__ import annotations

import secrets
import sys
import threading
from dataclasses import dataclass, replace
from typing import Literal

from adverse.content import digest
from adverse.errors import AdverseError, DataError
from adverse.humans.records import (
    Answer,
    Participant,
    Record,
    Records,
    State,
    Trial,
    qualified,
    refuse_another_backend,
    without,
)
from adverse.humans.stimuli import PlannedTrial, Stimuli, Stimulus, plan_batch, trial_id
from adverse.humans.study_file import HumanStudyFile
from adverse.humans.study_lock import lock_study_file

Stage = Literal["ready", "running", "break", "failed", "finished"]


@dataclass(frozen=True)
class Progress:
    """Where a participant stands: in which batch, and how many of its trials are still to come."""

    stage: Stage
    batch: int
    batches: int
    left: int
    size: int


class Experiment:
    """A study that is being served; the folder's lock must be held."""

    def __init__(self, file: HumanStudyFile, stimuli: Stimuli | None = None) -> None:
        self.file = file
        self.study = file.study
        self.records = Records(file.folder)
        self.state = State(self.records.mend())
        refuse_another_backend(self.state, self.study)
        self.stimuli = stimuli or Stimuli(file)
        self._study_checksum = lock_study_file(file, self.state, self.stimuli.files)
        self._lock = threading.Lock()

    def person(self, secret: str) -> Participant | None:
        """Return the participant whose browser holds this secret, if they agreed to the present text."""
        person = self.state.people.get(participant_of(secret)) if secret else None
        return person if person and person.consent == self.study.consent.version else None

    def join(self, secret: str, platform_id: str = "") -> str | None:
        """Let somebody take part who agreed; return the secret that their browser keeps.

        None where the platform's id already takes part from another browser, or this browser under another
        id: nobody sees an image twice, and nobody's work is given to another.
        """
        with self._lock:
            secret = secret if participant_of(secret) in self.state.people else secrets.token_urlsafe(18)
            number, consent = participant_of(secret), self.study.consent.version
            ids = {person.platform_id: person.id for person in self.state.people.values()}
            if platform_id and ids.get(platform_id, number) != number:
                return None
            if self.is_another(self.state.people.get(number), platform_id):
                return None
            came_from = {"platform_id": platform_id} if platform_id else {}
            self._write({"kind": "joined", "participant": number, "consent": consent, **came_from})
        return secret

    @staticmethod
    def is_another(person: Participant | None, platform_id: str) -> bool:
        """Tell whether an id of the platform is not that of the participant whose browser names it."""
        return person is not None and bool(platform_id) and person.platform_id not in ("", platform_id)

    def completion_code(self, person: Participant) -> str:
        """Return the code that a worker takes back to the platform; empty until they are finished.

        One image of a batch may be left unanswered, as after a reload; who skips more gets no code.
        """
        platform = self.study.platform
        if platform is None or self.progress(person).stage != "finished":
            return ""
        skipped = sum(trial.id not in self.state.answers for trial in person.trials)
        return platform.completion_code if skipped <= len(person.batches) else ""

    def progress(self, person: Participant) -> Progress:
        """Say where a participant stands."""
        last = person.batches[-1] if person.batches else []
        left = sum(trial.id not in self.state.started for trial in last)
        return Progress(self._stage(person, left), len(person.batches), self.most_batches, left, len(last))

    @property
    def most_batches(self) -> int:
        """How many batches a participant is given at most, the first one that qualifies included."""
        return self.study.batches + bool(self.study.qualification.items)

    def next_batch(self, person: Participant) -> Progress:
        """Give a participant the next batch, unless the last one is not done or they are finished."""
        with self._lock:
            person = self._still_there(person)
            if self.progress(person).stage not in ("ready", "break"):
                return self.progress(person)
            number = len(person.batches)
            planned = plan_batch(self.state, person, self.stimuli.pictures, self.study)
        trials = self._made(person, number, planned)
        with self._lock:
            person = self._still_there(person)
            if len(person.batches) == number:  # else another tab was quicker
                plain = [trial.plain() for trial in trials]
                batch = {"kind": "batch", "participant": person.id, "trials": plain}
                self._write(batch | {"study": self._study_checksum})
            return self.progress(person)

    def start(self, person: Participant, request: str) -> Trial | None:
        """Return the trial to show now, never to be shown again; the same one for a repeated request."""
        with self._lock:
            person = self._still_there(person)
            for trial in person.batches[-1] if person.batches else []:
                if self.state.started.get(trial.id) == request:
                    return trial
            next_trial = self.state.open_trial(person)
            if next_trial is not None:
                self._write(
                    {"kind": "started", "participant": person.id, "trial": next_trial.id, "request": request}
                )
            return next_trial

    def answer(self, person: Participant, trial: str, answer: Answer) -> None:
        """Keep an answer; on the disk when this returns. A second one to the same trial changes nothing."""
        with self._lock:
            if self.state.owner.get(trial) != person.id or trial not in self.state.started:
                raise DataError("that image was not shown to you", where=f"trial {trial[:20]!r}")
            if trial not in self.state.answers:
                fields = {
                    "answer": answer.answer,
                    "shown_ms": answer.shown_ms,
                    "frame_ms": answer.frame_ms,
                    "response_ms": answer.response_ms,
                }
                self._write({"kind": "answered", "participant": person.id, "trial": trial, **fields})

    def stimulus(self, person: Participant, trial: str, *, mask: bool) -> Stimulus | None:
        """Return the picture or the mask of a trial that is on its way to this participant's screen."""
        shown_trial = self.state.trials.get(trial)
        if shown_trial is None or self.state.owner[trial] != person.id or trial not in self.state.started:
            return None
        made = self._picture(shown_trial)
        return self.stimuli.mask(trial, made.width, made.height) if mask else made

    def erase(self, participant: str) -> int:
        """Forget a participant and all they did, on the disk too; return how many answers that were."""
        with self._lock:
            others = without(self.records, participant)
            count = sum(
                owner == participant
                for trial, owner in self.state.owner.items()
                if trial in self.state.answers
            )
            self.records.replace(others)
            self.state = State(others)
            return count

    def _picture(self, trial: Trial) -> Stimulus:
        if trial.role == "changed":
            return self.stimuli.changed(trial.image, trial.transformation, trial.wanted)
        return self.stimuli.original(trial.image)

    def _made(self, person: Participant, number: int, planned: list[PlannedTrial]) -> list[Trial]:
        """Make the pictures of a batch; one that cannot be made is left out and told in the terminal."""
        trials = []
        for place, plan in enumerate(planned):
            sane = plan.role == "sanity"
            trial = Trial(
                trial_id(person.id, number, place),
                plan.image.id,
                plan.role,
                plan.image.truth,
                self.study.sanity.exposure_ms if sane else self.study.exposure_ms,
                plan.transformation,
                plan.wanted,
            )
            try:
                dv = round(self._picture(trial).dv, 6)
                backend = self.study.visual_change if trial.role == "changed" else ""
                trials.append(replace(trial, dv=dv, backend=backend))
            except AdverseError as error:
                print(f"image {plan.image.id!a} is left out: {error}", file=sys.stderr)  # noqa: T201
        if not trials:
            raise DataError("no image of the next batch can be shown", fix="The terminal says why.")
        return trials

    def _stage(self, person: Participant, left: int) -> Stage:
        if left:
            return "running"
        if qualified(self.state, person, self.study) is False:
            return "failed"
        seen = len({trial.image for trial in person.trials})
        if len(person.batches) >= self.most_batches or seen >= len(self.stimuli.pictures):
            return "finished"
        return "break" if person.batches else "ready"

    def _still_there(self, person: Participant) -> Participant:
        """Return a participant as they are now; they may have been erased since the request came in."""
        if person.id not in self.state.people:
            raise DataError("your answers are erased; reload the page to take part anew")
        return self.state.people[person.id]

    def _write(self, record: Record) -> None:
        self.records.add(record)
        self.state.take(record)


def participant_of(secret: str) -> str:
    """Return the participant's number: who knows it cannot answer in their name.

    >>> len(participant_of("secret"))
    16
    """
    return digest("participant", secret, size=8)

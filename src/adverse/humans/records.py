"""The records of a human study: who takes part, what they saw and answered; and the answers that count.

On disk there is one line for each event, flushed before anybody is told that it happened. A last line that a
crash left unfinished was never acknowledged and does not count; damage anywhere else is an error. Erasing a
participant writes the file anew without them. Nothing in it identifies anybody: no address, no browser, no
name, no time of day.

Every answer that counts is exported as a row, those on originals too: changed versions are compared with all
that people say of originals. That comes from others, since nobody sees two versions of an image. What is left
out is exported with its reason.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from adverse.errors import DataError, StoreError, StudyError
from adverse.humans.answers import COLUMNS, ORIGINAL
from adverse.humans.study_file import HumanStudy
from adverse.store.durable import append_line, storage_errors, write_file
from adverse.store.journal import checked, read_checked
from adverse.text import cell

FILE = "answers.jsonl"
OWNER_ONLY = 0o600
"""Answers are nobody else's to read."""
Record = Mapping[str, Any]


class Records:
    """The lines of a study's folder; only who holds the folder's lock may add to them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def read(self) -> list[Record]:
        """Return all that happened, in order."""
        return self._read()[0]

    def mend(self) -> list[Record]:
        """Return all that happened, having cut off a last line that was never finished."""
        records, torn = self._read()
        if torn:
            self.replace(records)
        return records

    def add(self, record: Record) -> None:
        """Write a line and wait until it is on the disk; where that fails, nothing of it stays behind."""
        with storage_errors(self.path):
            self.path.touch(mode=OWNER_ONLY)
        append_line(self.path, _line(record))

    def replace(self, records: Iterable[Record]) -> None:
        """Write the file anew."""
        write_file(self.path, b"".join(map(_line, records)))
        with storage_errors(self.path):
            self.path.chmod(OWNER_ONLY)

    def _read(self) -> tuple[list[Record], bool]:
        try:
            with storage_errors(self.path):
                bodies, torn = read_checked(self.path, "file of answers")
        except StoreError as error:
            fix = "Restore the file from a copy."
            raise StoreError(error.what, where=error.where, got=error.got, fix=fix) from error
        return [json.loads(body) for body in bodies], torn


def _line(record: Record) -> bytes:
    return checked(json.dumps(record, sort_keys=True, allow_nan=False))


def without(records: Records, participant: str) -> list[Record]:
    """Return all that happened but for one participant, or raise DataError where there is no such one."""
    everyone = records.read()
    others = [record for record in everyone if record["participant"] != participant]
    if len(others) == len(everyone):
        raise DataError(
            "there is no such participant",
            where=str(records.path),
            got=repr(participant[:40]),
            fix="Give the number that their page showed; the export lists it too.",
        )
    return others


Role = Literal["qualification", "sanity", "original", "changed"]


CLOCK_MS = 0.5
"""How exactly a browser tells when a frame began."""
LONGEST_FRAME_MS = 34.0
"""A frame of a screen of 30 Hz; what a page reports beyond that does not excuse an image shown too long."""


@dataclass(frozen=True)
class Trial:
    """One image for one participant; `wanted` is the visual change that was aimed at, `dv` the one it has."""

    id: str
    image: str
    role: Role
    truth: str
    exposure_ms: int
    transformation: str = ""
    wanted: float = 0.0
    dv: float = 0.0
    backend: str = ""
    """By which visual change was measured; empty where nothing was changed."""

    def plain(self) -> dict[str, Any]:
        """Return the trial as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Answer:
    """What was said, how long the image was really visible, and how long one frame of the screen lasts."""

    answer: str
    shown_ms: float
    frame_ms: float
    response_ms: float


@dataclass
class Participant:
    """A participant: what they agreed to, and the batches they were given."""

    id: str
    consent: str
    batches: list[list[Trial]] = field(default_factory=list)
    platform_id: str = ""

    @property
    def trials(self) -> Iterator[Trial]:
        """All trials, in the order they are shown."""
        return (trial for batch in self.batches for trial in batch)


class State:
    """Everything that the records say."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.people: dict[str, Participant] = {}
        self.trials: dict[str, Trial] = {}
        self.owner: dict[str, str] = {}
        self.started: dict[str, str] = {}
        """Which request started a trial; a started one is never shown again."""
        self.answers: dict[str, Answer] = {}
        self.studies: set[str] = set()
        """The checksums of the study that batches were given out under."""
        for record in records:
            self.take(record)

    def take(self, record: Record) -> None:
        """Follow one record."""
        kind, person = record["kind"], str(record["participant"])
        if kind == "joined":
            participant = self.people.setdefault(person, Participant(person, record["consent"]))
            participant.consent = record["consent"]
            participant.platform_id = participant.platform_id or record.get("platform_id", "")
        elif kind == "batch":
            trials = [Trial(**plain) for plain in record["trials"]]
            self.people[person].batches.append(trials)
            self.studies |= {record["study"]} if "study" in record else set()
            self.trials |= {trial.id: trial for trial in trials}
            self.owner |= dict.fromkeys((trial.id for trial in trials), person)
        elif kind == "started":
            self.started[record["trial"]] = record["request"]
        elif kind == "answered":
            fields = {name: record[name] for name in ("answer", "shown_ms", "frame_ms", "response_ms")}
            self.answers[record["trial"]] = Answer(**fields)

    def open_trial(self, person: Participant) -> Trial | None:
        """Return the next trial of the participant's last batch that was never shown."""
        last = person.batches[-1] if person.batches else []
        return next((trial for trial in last if trial.id not in self.started), None)


def off_time(trial: Trial, answer: Answer) -> bool:
    """Tell whether the image was visible for too long or too short: by more than one frame."""
    return abs(answer.shown_ms - trial.exposure_ms) > min(answer.frame_ms, LONGEST_FRAME_MS) + CLOCK_MS


def refuse_another_backend(state: State, study: HumanStudy) -> None:
    """Refuse a study whose file names another backend than its trials were planned with.

    Their visual changes would be called by the wrong name, and pictures made again would be others.
    """
    for trial in state.trials.values():
        if trial.role == "changed" and trial.backend != study.visual_change:
            raise StudyError(
                "visual change was measured with another backend when this study began",
                where=f"human study {study.name!r}",
                got=f"visual_change: {study.visual_change}",
                wanted=trial.backend or "answers that say their backend",
                fix="Set visual_change: back, or begin a new study under another file name.",
            )


def qualified(state: State, person: Participant, study: HumanStudy) -> bool | None:
    """Tell whether a participant passed the first batch; None while it is not done."""
    if not study.qualification.items:
        return True
    if not person.batches or (len(person.batches) == 1 and state.open_trial(person) is not None):
        return None
    first = person.batches[0]

    return _judged(state, first, "qualification").count(True) >= min(study.qualification.right, len(first))


def looked(state: State, batch: Iterable[Trial]) -> bool:
    """Tell whether somebody looked at a batch: every easy image that was shown in it was answered rightly.

    The page must know for how long to show an image, so who reads along can tell which are easy; leaving
    those out would be a way to answer all others at random.
    """
    easy = [trial for trial in batch if trial.role == "sanity" and trial.id in state.started]
    return len(_judged(state, easy, "sanity")) == len(easy) and all(_judged(state, easy, "sanity"))


def _judged(state: State, batch: Iterable[Trial], role: Role) -> list[bool]:
    """Return for the answered trials of one role whether the answer was right."""
    return [
        state.answers[trial.id].answer == trial.truth
        for trial in batch
        if trial.role == role and trial.id in state.answers
    ]


REASONS = {
    "unanswered": "shown, but never answered",
    "off time": "visible for longer or shorter than planned, by more than a frame of the screen",
    "not qualified": "by somebody who did not pass the first batch",
    "failed sanity": "in a batch in which an easy image was answered wrongly, or not at all",
}


class Excluded(NamedTuple):
    """A trial that does not count, and why."""

    participant: str
    trial: Trial
    reason: str
    shown_ms: float | None


class ExportedAnswers(NamedTuple):
    """The rows of the answers file, and the trials that were left out of it."""

    rows: tuple[tuple[Any, ...], ...]
    excluded: tuple[Excluded, ...]

    def csv(self) -> str:
        """Return the answers as the CSV that `adverse humans estimate` reads."""
        return _csv(COLUMNS, self.rows)

    def excluded_csv(self) -> str:
        """Return what was left out as CSV."""
        names = ("participant", "image", "transformation", "dv", "reason", "wanted_ms", "shown_ms")
        return _csv(
            names,
            (
                (
                    skipped.participant,
                    skipped.trial.image,
                    skipped.trial.transformation or ORIGINAL,
                    skipped.trial.dv,
                    skipped.reason,
                    skipped.trial.exposure_ms,
                    skipped.shown_ms,
                )
                for skipped in self.excluded
            ),
        )

    def words(self) -> list[str]:
        """Say how much there is and what was left out."""
        counts = Counter(skipped.reason for skipped in self.excluded)
        originals = [row for row in self.rows if row[2] == ORIGINAL]
        seen = {row[1] for row in originals}
        unpaired = sum(row[1] not in seen for row in self.rows)
        changed, left_out = len(self.rows) - len(originals), len(self.excluded)
        lines = [
            f"{changed} answers on changed images, {len(originals)} on originals, {left_out} trials left out"
        ]
        lines += [
            f"left out: {counts[reason]} {words}" for reason, words in REASONS.items() if counts[reason]
        ]
        if unpaired:
            lines.append(f"{unpaired} answers are on images whose original nobody has seen yet")
        return lines


def export(state: State, study: HumanStudy) -> ExportedAnswers:
    """Return the answers that count, and all others with the reason."""
    refuse_another_backend(state, study)
    counted: list[tuple[str, Trial, str]] = []
    excluded = []
    for person, trial, reason in answers_with_reason(state, study):
        answer = state.answers.get(trial.id)
        if reason or answer is None:
            shown_ms = None if answer is None else answer.shown_ms
            excluded.append(Excluded(person.id, trial, reason, shown_ms))
        else:
            counted.append((person.id, trial, answer.answer))
    rows = [
        (
            participant,
            trial.image,
            trial.transformation or ORIGINAL,
            trial.dv,
            study.visual_change,
            category,
            trial.truth,
        )
        for participant, trial, category in counted
    ]
    return ExportedAnswers(tuple(rows), tuple(excluded))


WORKER_COLUMNS = (
    "platform_id",
    "participant",
    "batches",
    "answers",
    "qualified",
    "counted",
    "failed_sanity",
)
"""`counted`: answers that the export has; `failed_sanity`: batches with an easy image answered wrongly."""


def workers_csv(state: State, study: HumanStudy) -> str:
    """Return who came from a platform, what they did, how much of it counts and what they failed, as CSV.

    It is apart from the answers, which hold the random number alone.
    """
    rows = []
    counted = Counter(person.id for person, _, why in answers_with_reason(state, study) if not why)
    for person in state.people.values():
        if person.platform_id:
            trials = list(person.trials)
            done = sum(trial.id in state.answers for trial in trials)
            whole = 0 if not trials else len(person.batches) - (state.open_trial(person) is not None)
            passed = {True: "yes", False: "no", None: ""}[qualified(state, person, study)]
            failed = sum(not looked(state, batch) for batch in person.batches)
            rows.append((person.platform_id, person.id, whole, done, passed, counted[person.id], failed))
    return _csv(WORKER_COLUMNS, rows)


def answers_with_reason(state: State, study: HumanStudy) -> Iterator[tuple[Participant, Trial, str]]:
    """Yield every original and changed image that was shown, with why it does not count, if it does not."""
    for person in state.people.values():
        passed = qualified(state, person, study)
        for batch in person.batches:
            attentive = looked(state, batch)
            for trial in batch:
                if trial.role in ("original", "changed") and trial.id in state.started:
                    yield person, trial, _reason(state, trial, passed=passed is True, attentive=attentive)


def _reason(state: State, trial: Trial, *, passed: bool, attentive: bool) -> str:
    answer = state.answers.get(trial.id)
    if answer is None:
        return "unanswered"
    if off_time(trial, answer):
        return "off time"
    if not passed:
        return "not qualified"
    return "" if attentive else "failed sanity"


def _csv(names: tuple[str, ...], rows: Any) -> str:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([cell(value) for value in row] for row in rows)
    return sink.getvalue()

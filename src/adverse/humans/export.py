"""From records to the answers that thresholds are estimated from, and what was left out of them, and why.

Every answer that counts is a row, those on originals too: changed versions are compared with all that people
say of originals. That comes from others, since nobody sees two versions of an image.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from adverse.humans.answers import COLUMNS, ORIGINAL
from adverse.humans.records import (
    Person,
    State,
    Trial,
    looked,
    off_time,
    qualified,
    refuse_another_backend,
)
from adverse.humans.study_file import HumanStudy
from adverse.text import cell

REASONS = {
    "unanswered": "shown, but never answered",
    "off time": "visible for longer or shorter than planned, by more than a frame of the screen",
    "not qualified": "by somebody who did not pass the first batch",
    "failed sanity": "in a batch in which an easy image was answered wrongly",
}


class Excluded(NamedTuple):
    """A trial that does not count, and why."""

    participant: str
    trial: Trial
    reason: str
    shown_ms: float | None


class Exported(NamedTuple):
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
                    one.participant,
                    one.trial.image,
                    one.trial.transformation or ORIGINAL,
                    one.trial.dv,
                    one.reason,
                    one.trial.exposure_ms,
                    one.shown_ms,
                )
                for one in self.excluded
            ),
        )

    def words(self) -> list[str]:
        """Say how much there is and what was left out."""
        counts = Counter(one.reason for one in self.excluded)
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


def export(state: State, study: HumanStudy) -> Exported:
    """Return the answers that count, and all others with the reason."""
    refuse_another_backend(state, study)
    kept: list[tuple[str, Trial, str]] = []
    excluded = []
    for person, trial, reason in _judged(state, study):
        answer = state.answers.get(trial.id)
        if reason or answer is None:
            shown_ms = None if answer is None else answer.shown_ms
            excluded.append(Excluded(person.id, trial, reason, shown_ms))
        else:
            kept.append((person.id, trial, answer.answer))
    rows = [
        (
            participant,
            trial.image,
            trial.transformation or ORIGINAL,
            trial.dv,
            study.visual_change,
            said,
            trial.truth,
        )
        for participant, trial, said in kept
    ]
    return Exported(tuple(rows), tuple(excluded))


def _judged(state: State, study: HumanStudy) -> Iterator[tuple[Person, Trial, str]]:
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

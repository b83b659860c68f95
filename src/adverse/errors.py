"""Every error a user can meet, in one shape: what, where, got, wanted, fix.

    AdverseError            exit code 2 unless noted
    |- StudyError           the study file, or an option in it
    |- DataError            a data set, or one frame of it (a frame is quarantined, not fatal)
    |- MutationError        a mutation was given something it cannot work on
    |- SutError             a system under test answered wrongly or not at all
    |  |- BadAnswerError         what it answered is no answer
    |  |- CrashError             its process died
    |  |- LateError              it gave no answer in time
    |  `- InfrastructureError    the server, the network or the machine failed, not the system
    |     `- OutOfMemoryError    the machine had no memory for it
    |- PluginError          a plug-in does not load or breaks its contract
    |- StoreError           the run folder cannot be read, written or trusted
    |  `- LockedError       another process is using the run folder
    `- IncompleteError      exit code 3: what was asked for could not be finished

Anything else that escapes is a bug of ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Self

EXIT_PASS = 0
EXIT_GATE_FAILED = 1
EXIT_CANNOT_RUN = 2
EXIT_INCOMPLETE = 3
EXIT_INTERRUPTED = 130


class AdverseError(Exception):
    """An error the user can act on.

    >>> print(AdverseError("haze needs depth", where="frame 'row3/000123'", fix="Add a depth folder."))
    haze needs depth; where: frame 'row3/000123'. Fix: Add a depth folder.
    """

    exit_code = EXIT_CANNOT_RUN

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        got: str | None = None,
        wanted: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.got = got
        self.wanted = wanted
        self.fix = fix
        super().__init__(what)

    def __str__(self) -> str:
        """Return the error on one line, as records and logs keep it."""
        parts = [self.what]
        parts += [f"{label}: {value}" for label, value in self.details() if label != "fix"]
        line = "; ".join(parts)
        return f"{line}. Fix: {self.fix}" if self.fix else line

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.got, self.wanted, self.fix))

    def placed(self, place: str) -> Self:
        """Return the same error, found at a place that is named before its own.

        >>> StudyError("no such file", where="option 'model'").placed("study.yaml, line 7").where
        "study.yaml, line 7, option 'model'"
        """
        where = f"{place}, {self.where}" if self.where else place
        return type(self)(self.what, where=where, got=self.got, wanted=self.wanted, fix=self.fix)

    def details(self) -> list[tuple[str, str]]:
        """Return the (label, text) pairs that are known, in the order they are shown."""
        pairs = (
            ("where", self.where),
            ("got", self.got),
            ("wanted", self.wanted),
            ("fix", self.fix),
        )
        return [(label, text) for label, text in pairs if text is not None]


class StudyError(AdverseError):
    """The study file, or one of its options, is wrong."""


class DataError(AdverseError):
    """A data set, or one frame of it, cannot be used."""


class MutationError(AdverseError):
    """A mutation cannot work on what it was given."""


class SutError(AdverseError):
    """A system under test answered wrongly, or not at all.

    `output` is what it left behind: a traceback, or the end of its stderr.
    """

    output: str | None = None


class BadAnswerError(SutError):
    """What a system under test answered is no answer to what it was asked."""


class CrashError(SutError):
    """The process of a system under test died."""


class LateError(SutError):
    """A system under test gave no answer in time."""


class InfrastructureError(SutError):
    """A system under test could not be asked; it says nothing about the system, and is never its answer."""


class OutOfMemoryError(InfrastructureError):
    """The machine had not enough memory to ask a system under test."""


class PluginError(AdverseError):
    """A plug-in does not load or does not keep its contract."""


class StoreError(AdverseError):
    """The run folder cannot be read, written or trusted."""


class LockedError(StoreError):
    """Another process is using the run folder."""


class IncompleteError(AdverseError):
    """What was asked for could not be finished; what is done is kept."""

    exit_code = EXIT_INCOMPLETE


MOST_LISTED = 100
"""Of more words than this, those that are spelt alike are listed, and how many there are."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Say which known word was probably meant, and which there are, each once.

    >>> suggestion("sedd", ["seed", "name", "seed"])
    "Did you mean 'seed'? Known: name, seed."
    >>> suggestion("jep", [f"class {number}" for number in range(999)] + ["jeep", "jeepney"])
    "Did you mean 'jeep' or 'jeepney'? Known: 1001 names."
    """
    names = sorted(set(known))
    many = len(names) > MOST_LISTED
    close = difflib.get_close_matches(word, names, n=3 if many else 1)
    listed = f"{len(names)} names" if many else ", ".join(names)
    listed = f"Known: {listed}." if names else "None are known."
    return f"Did you mean {' or '.join(map(repr, close))}? {listed}" if close else listed


def one_line(error: BaseException) -> str:
    """Return an error of any kind as one line of text."""
    if isinstance(error, AdverseError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _rebuild(
    kind: type[AdverseError],
    what: str,
    where: str | None,
    got: str | None,
    wanted: str | None,
    fix: str | None,
) -> AdverseError:
    return kind(what, where=where, got=got, wanted=wanted, fix=fix)

"""Show images to a system under test and trust nothing about what comes back.

This is the one place where an answer is checked: whatever a system under test does wrong leaves here as
a SutError that names the system, so one bad answer costs one fault and never the run.
"""

from __future__ import annotations

import errno
import re
import signal
import socket
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, TypeVar, overload

from adverse.errors import BadAnswerError, InfrastructureError, OutOfMemoryError, SutError, one_line
from adverse.process_settings import settings_of
from adverse.processes import one_process
from adverse.suts.free_memory import memory_is_short
from adverse.suts.shared_answers import refuse_shared
from adverse.types import (
    Answer,
    Classifier,
    ClassScores,
    Detections,
    Detector,
    Image,
    LabelMap,
    Segmenter,
    Task,
)

A = TypeVar("A")
ANSWER_FIELDS = frozenset({"boxes", "scores", "labels", "positions_m", "masks"})
METHODS: Mapping[Task, str] = {
    "detection": "detect",
    "segmentation": "segment",
    "classification": "classify",
}
"""The method of a system that does each task."""
NO_NETWORK = (ConnectionRefusedError, ConnectionResetError, ConnectionAbortedError, socket.gaierror)
NO_NETWORK_CODES = frozenset(
    {errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}
)
NO_MEMORY = re.compile("out of memory|bad_alloc|cannot allocate memory|failed to allocate", re.IGNORECASE)
"""How libraries say it whose errors are not MemoryError."""
OUTPUT_CHARACTERS = 8000
"""Kept of a traceback, from its end."""
AGAIN = "Then run the same command again: only what is missing is run."
MORE_MEMORY = (
    "Free memory or use fewer --workers, or set memory_limit_mb: of the system, to make it the system's "
    f"fault. {AGAIN}"
)


def task_of(system: Any) -> Task | None:
    """Return what a system does: what it says itself, else what it has a method for; None for nothing."""
    declared = getattr(system, "task", None)
    if declared in METHODS:
        return declared
    return next((task for task, name in METHODS.items() if callable(getattr(system, name, None))), None)


@overload
def ask(system: Detector, images: Sequence[Image], *, name: str) -> list[Detections]: ...
@overload
def ask(system: Segmenter, images: Sequence[Image], *, name: str) -> list[LabelMap]: ...
@overload
def ask(system: Classifier, images: Sequence[Image], *, name: str) -> list[ClassScores]: ...
@one_process()
def ask(system: Any, images: Sequence[Image], *, name: str) -> Any:
    """Return one checked answer for each image, or raise SutError.

    A detector may answer with Detections, a tuple (boxes, scores) or (boxes, scores, labels), or a mapping
    with these names and, where it has them, positions_m and masks; a segmenter with label maps (H,W) of the
    image's size; a classifier with scores (C,). Labels must be indexes into `system.classes`.
    """
    task = task_of(system) or "detection"
    try:
        with settings_of(f"SUT {name}"):
            answers = read_answers(getattr(system, METHODS[task])(images), READERS[task], len(images))
    except SutError as error:
        raise named(error, name) from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and callable(signal.getsignal(signal.SIGINT)):
            raise  # Ctrl-C; in workers nothing handles that signal, so there it is the SUT's own
        raise _failed(error, name) from error
    try:
        for answer, image in zip(answers, images, strict=True):
            check_answer(answer, image, system.classes)
    except SutError as error:
        raise as_bad_answer(named(error, name)) from error
    return answers


def read_answers(given: Iterable[Any], read: Callable[[Any], A], images: int) -> list[A]:
    """Return the answers of a system to so many images, each read before the next one is taken.

    They are kept as copies: what a system does to its arrays afterwards changes no answer. Raises
    BadAnswerError where there is not one for each image, or one array for two of them.
    """
    if isinstance(given, Sized) and len(given) != images:
        raise _not_every_image(f"{len(given)} answers", images)
    raw: list[Any] = []
    answers: list[A] = []
    for answer in given:
        if len(raw) == images:
            raise _not_every_image(f"more than {images} answers", images)
        raw.append(answer)
        try:
            answers.append(read(answer))
        except SutError as error:
            raise as_bad_answer(error) from error
    if len(raw) != images:
        raise _not_every_image(f"{len(raw)} answers", images)
    refuse_shared(raw)
    return answers


def _not_every_image(got: str, images: int) -> BadAnswerError:
    return BadAnswerError(
        "the system under test did not answer every image once",
        got=got,
        wanted=f"{images}, one for each image, in order",
        fix="Return a list as long as the images; an image without detections has an empty answer.",
    )


def as_detections(answer: Any) -> Detections:
    """Turn what a detector may say about one image into Detections.

    >>> len(as_detections(([[0, 0, 5, 9]], [0.5])))
    1
    >>> len(as_detections({"boxes": [], "scores": [], "labels": []}))
    0
    """
    if isinstance(answer, Detections):
        return answer
    if isinstance(answer, Mapping) and {"boxes", "scores"} <= set(answer) <= ANSWER_FIELDS:
        return Detections(
            answer["boxes"],
            answer["scores"],
            answer.get("labels"),
            positions_m=answer.get("positions_m"),
            masks=answer.get("masks"),
        )
    if isinstance(answer, tuple) and len(answer) in (2, 3):
        return Detections(*answer)
    shown = f"keys {sorted(map(str, answer))}" if isinstance(answer, Mapping) else type(answer).__name__
    raise SutError(
        "an answer is not a set of detections",
        got=shown,
        wanted="Detections, (boxes, scores, labels), or a dict of boxes, scores, labels, positions_m, masks",
        fix="Return one of these for each image.",
    )


def as_label_map(answer: Any) -> LabelMap:
    """Turn what a segmenter may say about one image into a LabelMap."""
    return answer if isinstance(answer, LabelMap) else LabelMap(answer)


def as_class_scores(answer: Any) -> ClassScores:
    """Turn what a classifier may say about one image into ClassScores."""
    return answer if isinstance(answer, ClassScores) else ClassScores(answer)


READERS: Mapping[Task, Callable[[Any], Answer]] = {
    "detection": as_detections,
    "segmentation": as_label_map,
    "classification": as_class_scores,
}


def check_answer(answer: Answer, image: Image, classes: Sequence[str]) -> None:
    """Raise SutError when an answer does not fit its image or the system's classes."""
    if isinstance(answer, ClassScores):
        if len(answer.scores) != len(classes):
            raise SutError(
                "there is not one score for each class",
                got=f"{len(answer.scores)} scores",
                wanted=f"{len(classes)}, one for each class name",
                fix="Give the class names the model was trained with, background included if it has one.",
            )
        return
    if isinstance(answer, LabelMap) and answer.labels.shape != image.shape[:2]:
        raise SutError(
            "a label map is not of the image's size",
            got="{1}x{0}".format(*answer.labels.shape),
            wanted=f"{image.shape[1]}x{image.shape[0]}",
            fix="Scale the labels back to the image (nearest neighbour) before answering.",
        )
    if isinstance(answer, Detections) and answer.masks and answer.masks.size != image.shape[:2]:
        raise SutError(
            "a mask is not of the image's size",
            got="{1}x{0}".format(*answer.masks.size),
            wanted=f"{image.shape[1]}x{image.shape[0]}",
            fix="Scale the masks back to the image before answering.",
        )
    if answer.labels.size and (answer.labels.min() < 0 or answer.labels.max() >= len(classes)):
        outside = answer.labels[(answer.labels < 0) | (answer.labels >= len(classes))]
        raise SutError(
            "a label names no class",
            got=f"label {int(outside.flat[0])}",
            wanted=f"0 to {len(classes) - 1}, an index into the {len(classes)} class names",
            fix="Give the class names the model was trained with, background included if it has one.",
        )


def named(error: SutError, name: str) -> SutError:
    """Return the error with the system's name in front of where it happened, as whose failure it is."""
    where = name if error.where in (None, name) else f"{name}, {error.where}"
    kind = kind_of(error)
    fix = error.fix if kind is not OutOfMemoryError or isinstance(error, kind) else MORE_MEMORY
    renamed = kind(error.what, where=where, got=error.got, wanted=error.wanted, fix=fix)
    renamed.output = error.output
    return renamed


def as_bad_answer(error: SutError) -> SutError:
    """Return the error as one about the answer, unless it is of a kind of its own."""
    if type(error) is not SutError:
        return error
    return BadAnswerError(error.what, where=error.where, got=error.got, wanted=error.wanted, fix=error.fix)


def kind_of(error: BaseException) -> type[SutError]:
    """Return whose failure an error and its cause are: the system's, the network's, the machine's.

    >>> kind_of(ValueError("no boxes")).__name__, kind_of(ConnectionRefusedError()).__name__
    ('SutError', 'InfrastructureError')
    """
    for cause in _causes(error):
        if isinstance(cause, InfrastructureError):
            return type(cause)
        if isinstance(cause, SutError):
            continue  # its words are ours
        if isinstance(cause, MemoryError):
            return OutOfMemoryError if memory_is_short() else SutError
        if NO_MEMORY.search(str(cause)):  # perhaps that of a graphics card, of which nothing is known here
            return OutOfMemoryError
        if isinstance(cause, NO_NETWORK) or (isinstance(cause, OSError) and cause.errno in NO_NETWORK_CODES):
            return InfrastructureError
    return type(error) if isinstance(error, SutError) else SutError


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _failed(error: BaseException, name: str) -> SutError:
    """Return the error for an exception that a system raised."""
    kind = kind_of(error)
    if kind is OutOfMemoryError:
        what, fix = "the system under test ran out of memory", MORE_MEMORY
    elif kind is InfrastructureError:
        what = "the system under test has no connection"
        fix = f"Start the server that the system talks to, or mend the network. {AGAIN}"
    elif any(isinstance(cause, MemoryError) for cause in _causes(error)):
        what = "the system under test failed for want of memory, of which much was free"
        fix = "Fix the system, or run it where more can be had at once, with --retry-faults."
    else:
        what = "the system under test failed on an image"
        fix = "Fix the system and run again: a changed one is asked anew, the same one with --retry-faults."
    failed = kind(what, where=name, got=one_line(error), fix=fix)
    failed.output = "".join(traceback.format_exception(error))[-OUTPUT_CHARACTERS:]
    return failed

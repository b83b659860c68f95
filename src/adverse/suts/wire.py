"""The messages of the command protocol, version 1; see docs/command-protocol.md.

Requests are one JSON line followed by raw pixels, replies one JSON line with a mark in front, so that they
can be separated from anything else that a program prints on the same stream. float32 values survive: JSON
carries their exact repr.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from adverse.errors import (
    AdverseError,
    BadAnswerError,
    InfrastructureError,
    OutOfMemoryError,
    SutError,
    one_line,
)
from adverse.strict_json import each_key_once
from adverse.suts.ask import METHODS, NO_MEMORY, OUTPUT_CHARACTERS, as_class_scores, as_detections
from adverse.types import Answer, ClassScores, Detections, Image, LabelMap, Task

PROTOCOL = 1
MARK = b"@adverse "
MAX_LINE_BYTES = 64 << 20
"""A longer reply is not believed: 64 MB is more than half a million boxes."""
FIELDS: Mapping[Task, str] = {
    "detection": "detections",
    "segmentation": "label_maps",
    "classification": "class_scores",
}
"""Under which name a reply holds its answers."""
KINDS: Mapping[str, type[SutError]] = {"connection": InfrastructureError, "memory": OutOfMemoryError}
"""What a reported error may say it is for want of; without it the program itself failed."""


def ready_line(classes: Sequence[str], task: Task = "detection") -> bytes:
    """Return what a child says once it is ready."""
    return _line({"protocol": PROTOCOL, "task": task, "classes": list(classes), "ready": True})


def answer_line(request: int, answers: Sequence[Answer], task: Task = "detection") -> bytes:
    """Return a child's reply to a request."""
    return _line({"id": request, FIELDS[task]: [_plain(answer) for answer in answers]})


def error_line(request: int | None, error: BaseException) -> bytes:
    """Return a child's reply when it could not answer (or, without a request, could not start)."""
    message: dict[str, Any] = {"id": request, "error": one_line(error)}
    want = next((name for name, kind in KINDS.items() if type(error) is kind), None)
    if want is not None:
        message["for_want_of"] = want
    if isinstance(error, BadAnswerError):
        message["bad_answer"] = True
    if isinstance(error, SutError) and error.output:
        message["traceback"] = error.output
    if isinstance(error, AdverseError):
        message["details"] = {"what": error.what, **dict(error.details())}
    return _line(message)


def request_id(count: int) -> int:
    """Return the id of a program's first, second, ... request: always the same ones, but none from another.

    A program that answers in advance cannot know it.
    """
    return int.from_bytes(hashlib.sha256(b"%d" % count).digest()[:4], "big") >> 1


def request_parts(request: int, images: Sequence[Image]) -> list[memoryview]:
    """Return the bytes that ask about images, in order; the pixels are not copied."""
    sizes = [{"width": i.shape[1], "height": i.shape[0], "channels": i.shape[2]} for i in images]
    head = json.dumps({"id": request, "images": sizes}).encode() + b"\n"
    return [memoryview(head), *(np.ascontiguousarray(image).reshape(-1).data for image in images)]


def read_request(stream: BinaryIO) -> tuple[int, list[Image]] | None:
    """Read the next request as a child; None when there will be no more."""
    head = stream.readline()
    if not head:
        return None
    message = json.loads(head)
    images = [_read_pixels(stream, (s["height"], s["width"], s["channels"])) for s in message["images"]]
    return message["id"], images


def parse(line: bytes) -> Mapping[str, Any]:
    """Return the message in a marked line."""
    try:
        message = json.loads(line[len(MARK) :], object_pairs_hook=each_key_once)
    except (ValueError, RecursionError) as error:
        raise GarbageError(
            "a reply is not JSON",
            got=f"{line[:200]!r} ({error})",
            wanted="@adverse {...} on one line, each key once",
        ) from error
    if not isinstance(message, dict):
        raise GarbageError("a reply is not a JSON object", got=repr(line[:200]), wanted="@adverse {...}")
    return message


def read_ready(message: Mapping[str, Any]) -> tuple[Task, tuple[str, ...]]:
    """Return the task and the class names of a child that says it is ready."""
    _raise_reported(message)
    if message.get("ready") is not True or message.get("protocol") != PROTOCOL:
        raise GarbageError(
            "the program does not speak this protocol",
            got=_shown(message),
            wanted=f'@adverse {{"protocol": {PROTOCOL}, "classes": [...], "ready": true}}',
        )
    task = message.get("task", "detection")
    if task not in METHODS:
        raise GarbageError(
            "the program names an unknown task", got=_shown(message), wanted=" or ".join(METHODS)
        )
    classes = message.get("classes")
    if not isinstance(classes, list) or not classes or not all(isinstance(c, str) and c for c in classes):
        raise GarbageError(
            "the program does not say what its labels mean",
            got=_shown(message),
            wanted='"classes": a list of names',
        )
    return task, tuple(classes)


def read_answer(
    message: Mapping[str, Any], request: int, count: int, task: Task = "detection"
) -> list[Answer]:
    """Return the answers to a request; SutError when the child reports an error or talks nonsense."""
    if message.get("id") != request:
        raise GarbageError(
            "a reply belongs to another request", got=_shown(message), wanted=f'"id": {request}'
        )
    _raise_reported(message)
    answers = message.get(FIELDS[task])
    if not isinstance(answers, list) or len(answers) != count:
        raise GarbageError(
            "a reply does not answer every image once",
            got=_shown(message),
            wanted=f'"{FIELDS[task]}": a list of {count}, one for each image',
        )
    return [_READERS[task](answer) for answer in answers]


class GarbageError(BadAnswerError):
    """A reply that shows the child has lost the thread; only a new child can help."""


def _plain(answer: Answer) -> Any:
    """Return an answer as JSON can carry it."""
    if isinstance(answer, Detections):
        masks = {} if answer.masks is None else {"masks": answer.masks.as_coco()}
        fields: dict[str, Any] = {
            "boxes": answer.boxes.tolist(),
            "scores": answer.scores.tolist(),
            "labels": answer.labels.tolist(),
            **masks,
        }
        if answer.positions_m is not None:
            fields["positions_m"] = answer.positions_m.tolist()
        return fields
    if isinstance(answer, ClassScores):
        return answer.scores.tolist()
    height, width = answer.labels.shape
    bits = 8 * answer.labels.itemsize
    data = answer.labels.astype(f"<u{answer.labels.itemsize}").tobytes()
    return {"width": width, "height": height, "bits": bits, "data": base64.b64encode(data).decode()}


def _label_map(answer: Any) -> LabelMap:
    try:
        size = int(answer["height"]), int(answer["width"])
        data = base64.b64decode(answer["data"], validate=True)
        labels = np.frombuffer(data, {8: "<u1", 16: "<u2"}[answer["bits"]]).reshape(size)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise SutError(
            "a label map cannot be read",
            got=one_line(error),
            wanted='{"width": W, "height": H, "bits": 8 or 16, "data": base64 of W x H little-endian labels}',
            fix="Write the rows one after the other, from the top.",
        ) from error
    return LabelMap(labels)


_READERS: Mapping[Task, Callable[[Any], Answer]] = {
    "detection": as_detections,
    "segmentation": _label_map,
    "classification": as_class_scores,
}


def _raise_reported(message: Mapping[str, Any]) -> None:
    if "error" not in message:
        return
    details = message.get("details")
    kind = KINDS.get(str(message.get("for_want_of")), SutError)
    if kind is SutError and message.get("bad_answer") is True:
        kind = BadAnswerError
    fields = ("where", "got", "wanted", "fix")
    if isinstance(details, dict) and "what" in details:
        error = kind(str(details["what"]), **{k: str(details[k]) for k in fields if k in details})
    else:
        got = str(message["error"])[:2000]
        kind = OutOfMemoryError if NO_MEMORY.search(got) else kind
        error = kind("the program reports an error", got=got)
    if isinstance(message.get("traceback"), str):
        error.output = message["traceback"][-OUTPUT_CHARACTERS:]
    raise error


def _read_pixels(stream: BinaryIO, shape: tuple[int, int, int]) -> Image:
    image = np.empty(shape, np.uint8)
    view = image.reshape(-1).data
    while view:
        got = stream.readinto(view)  # type: ignore[attr-defined]
        if not got:
            raise EOFError("the pixels of a request are truncated")
        view = view[got:]
    return image


def _line(message: Mapping[str, Any]) -> bytes:
    return MARK + json.dumps(message).encode() + b"\n"


def _shown(message: Mapping[str, Any]) -> str:
    text = json.dumps(message)
    return text if len(text) <= 200 else f"{text[:200]}..."


NOISE_LINES = 5
NOISE_BYTES = 300


class LineTooLongError(Exception):
    """A reply grew past the limit without an end of line."""


class MarkedLines:
    r"""Collects bytes as they arrive and gives out the lines that begin with a mark.

    Other lines are noise: the start of the last few is kept, the rest forgotten, however long they are.

    >>> lines = MarkedLines(b"@ ", 100)
    >>> lines.feed(b"loading...\n@ re"), lines.feed(b"ady\n"), lines.noise()
    ([], [b'@ ready'], 'loading...')
    """

    def __init__(self, mark: bytes, max_bytes: int) -> None:
        self._mark = mark
        self._max_bytes = max_bytes
        self._partial = bytearray()
        self._noise: deque[bytes] = deque(maxlen=NOISE_LINES)

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was read and return the marked lines that it completes."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._grow(end)
            line = bytes(self._partial)
            self._partial.clear()
            if line.startswith(self._mark):
                lines.append(line)
            elif line.strip():
                self._noise.append(line)
        self._grow(rest)
        return lines

    def noise(self) -> str:
        """Return the last lines that were no replies, an unfinished one included."""
        lines = [*self._noise, bytes(self._partial)]
        return " | ".join(text for line in lines if (text := line.decode(errors="replace").strip()))

    def _grow(self, data: bytes) -> None:
        self._partial += data
        size = min(len(self._partial), len(self._mark))
        if self._partial[:size] != self._mark[:size]:
            del self._partial[NOISE_BYTES:]
        elif len(self._partial) > self._max_bytes:
            del self._partial[NOISE_BYTES:]
            raise LineTooLongError

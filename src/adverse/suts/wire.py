"""The words of the command protocol, version 1; see docs/command-protocol.md.

Requests are one JSON line followed by raw pixels, replies one JSON line with a mark in front, so that
whatever else a program prints can be told apart. float32 values survive: JSON carries their exact repr.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from adverse.errors import AdverseError, SutError, one_line
from adverse.suts.ask import as_detections
from adverse.types import Detections, Image

PROTOCOL = 1
MARK = b"@adverse "
MAX_LINE_BYTES = 64 << 20
"""A longer reply is not believed: 64 MB is more than half a million boxes."""


def ready_line(classes: Sequence[str]) -> bytes:
    """Return what a child says once it can be asked."""
    return _line({"protocol": PROTOCOL, "classes": list(classes), "ready": True})


def answer_line(request: int, answers: Sequence[Detections]) -> bytes:
    """Return a child's reply to a request."""
    detections = [
        {"boxes": a.boxes.tolist(), "scores": a.scores.tolist(), "labels": a.labels.tolist()} for a in answers
    ]
    return _line({"id": request, "detections": detections})


def error_line(request: int | None, error: BaseException) -> bytes:
    """Return a child's reply when it could not answer (or, without a request, could not start)."""
    message: dict[str, Any] = {"id": request, "error": one_line(error)}
    if isinstance(error, AdverseError):
        message["details"] = {"what": error.what, **dict(error.details())}
    return _line(message)


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
        message = json.loads(line[len(MARK) :])
    except (ValueError, RecursionError) as error:
        raise GarbageError(
            "a reply is not JSON", got=f"{line[:200]!r} ({error})", wanted="@adverse {...} on one line"
        ) from error
    if not isinstance(message, dict):
        raise GarbageError("a reply is not a JSON object", got=repr(line[:200]), wanted="@adverse {...}")
    return message


def read_ready(message: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the class names of a child that says it is ready."""
    _raise_reported(message)
    if message.get("ready") is not True or message.get("protocol") != PROTOCOL:
        raise GarbageError(
            "the program does not speak this protocol",
            got=_shown(message),
            wanted=f'@adverse {{"protocol": {PROTOCOL}, "classes": [...], "ready": true}}',
        )
    classes = message.get("classes")
    if not isinstance(classes, list) or not classes or not all(isinstance(c, str) and c for c in classes):
        raise GarbageError(
            "the program does not say what its labels mean",
            got=_shown(message),
            wanted='"classes": a list of names',
        )
    return tuple(classes)


def read_answer(message: Mapping[str, Any], request: int, count: int) -> list[Detections]:
    """Return the answers to a request; SutError when the child reports an error or talks nonsense."""
    if message.get("id") != request:
        raise GarbageError(
            "a reply belongs to another request", got=_shown(message), wanted=f'"id": {request}'
        )
    _raise_reported(message)
    answers = message.get("detections")
    if not isinstance(answers, list) or len(answers) != count:
        raise GarbageError(
            "a reply does not answer every image once",
            got=_shown(message),
            wanted=f'"detections": a list of {count}, one for each image',
        )
    return [as_detections(answer) for answer in answers]


class GarbageError(SutError):
    """A reply that shows the child has lost the thread; only a new child can help."""


def _raise_reported(message: Mapping[str, Any]) -> None:
    if "error" not in message:
        return
    details = message.get("details")
    known = ("where", "got", "wanted", "fix")
    if isinstance(details, dict) and "what" in details:
        raise SutError(str(details["what"]), **{k: str(details[k]) for k in known if k in details})
    raise SutError("the program reports an error", got=str(message["error"])[:2000])


def _read_pixels(stream: BinaryIO, shape: tuple[int, int, int]) -> Image:
    image = np.empty(shape, np.uint8)
    view = image.reshape(-1).data
    while view:
        got = stream.readinto(view)  # type: ignore[attr-defined]
        if not got:
            raise EOFError("the pixels of a request stop early")
        view = view[got:]
    return image


def _line(message: Mapping[str, Any]) -> bytes:
    return MARK + json.dumps(message).encode() + b"\n"


def _shown(message: Mapping[str, Any]) -> str:
    text = json.dumps(message)
    return text if len(text) <= 200 else f"{text[:200]}..."

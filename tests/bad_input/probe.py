"""A SUT for studies that go wrong: finds the one red figure of a picture, and misbehaves on request.

`mood` says how, `at` on which picture (its number is the grey of the upper left corner divided by 10; -1:
on all). The file is copied into a study's folder and loaded there as any plug-in is.
"""

import ctypes
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adverse import sut
from adverse.types import Image

Answer = Any
COUNTER = itertools.count()
HOARD: list[np.ndarray[Any, Any]] = []
NOTHING: Answer = (np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64))


def look(image: Image) -> Answer:
    rows, columns = np.nonzero((image[..., 0] > 150) & (image[..., 1] < 100))
    if not len(rows):
        return NOTHING
    return np.array([[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]], float), [0.9], [0]


def hang(_image: Image) -> Answer:
    Path(__file__).with_name("waiting").touch()
    while True:
        time.sleep(1)


def gate(image: Image) -> Answer:
    """Wait until the test says go."""
    Path(__file__).with_name("waiting").touch()
    while not Path(__file__).with_name("go").exists():
        time.sleep(0.01)
    return look(image)


def meddle(image: Image) -> Answer:
    """Put `new` in the place that `place` names, or delete what is there: as somebody does during a run."""
    here = Path(__file__).parent
    if (here / "place").exists():
        place = Path((here / "place").read_text())
        (here / "place").unlink()
        if (here / "new").exists():
            (here / "new").replace(place)
        else:
            place.unlink()
        if place == Path(__file__):
            os._exit(3)  # whoever takes over loads the new code
    return look(image)


def leak(_image: Image) -> Answer:
    while True:
        HOARD.append(np.ones(8 << 20))  # 64 MB a time, touched
        time.sleep(0.02)


def fail(_image: Image) -> Answer:
    raise RuntimeError("no CUDA device")


def interrupt(image: Image) -> Answer:
    os.kill(os.getpid(), signal.SIGINT)
    return look(image)


def noise(image: Image) -> Answer:
    sys.stdout.write("@adverse INFO loading...\x00\xff\n")
    return look(image)


def third(image: Image, failing: Callable[[Image], Answer]) -> Answer:
    """Fail every third request, whatever it shows; every one is written down, as a witness."""
    failed = next(COUNTER) % 3 == 2
    with Path(__file__).with_name("requests").open("a") as file:
        file.write("failed\n" if failed else "answered\n")
    return (failing if failed else look)(image)


def refused(image: Image) -> Answer:
    """Fail as a client does whose server is gone, until the file `go` is there."""
    if Path(__file__).with_name("go").exists():
        return look(image)
    raise RuntimeError("the backend did not answer") from ConnectionRefusedError(111, "Connection refused")


def no_memory(_image: Image) -> Answer:
    raise MemoryError("Unable to allocate 7 PiB")


def tied(image: Image) -> Answer:
    boxes, scores, labels = look(image)
    return (np.tile(boxes, (3, 1)), np.tile(scores, 3), np.tile(labels, 3)) if len(scores) else NOTHING


def wavering(image: Image) -> Answer:
    boxes, scores, labels = look(image)
    return boxes, np.asarray(scores) - 0.001 * next(COUNTER), labels


MOODS: dict[str, Callable[[Image], Answer]] = {
    "good": look,
    "nan score": lambda _: ([[1, 1, 9, 9]], [np.nan], [0]),
    "nan box": lambda _: ([[1, 1, np.nan, 9]], [0.9], [0]),
    "wrong shape": lambda _: ([[1, 1, 9]], [0.9], [0]),
    "backwards box": lambda _: ([[9, 9, 1, 1]], [0.9], [0]),
    "wrong label": lambda _: ([[1, 1, 9, 9]], [0.9], [7]),
    "not an answer": lambda _: 42,
    "text": lambda _: ("boxes", "scores", "labels"),
    "exception": fail,
    "segfault": lambda _: ctypes.string_at(0),
    "os exit": lambda _: os._exit(3),
    "exit": lambda _: exit(3),  # noqa: PLR1722 - as careless code does
    "third nan": lambda image: third(image, lambda _: ([[1, 1, 9, 9]], [np.nan], [0])),
    "third exception": lambda image: third(image, fail),
    "third segfault": lambda image: third(image, lambda _: ctypes.string_at(0)),
    "third hang": lambda image: third(image, hang),
    "refused": refused,
    "no memory": no_memory,
    "killed": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "hang": hang,
    "gate": gate,
    "meddle": meddle,
    "leak": leak,
    "interrupt": interrupt,
    "noise": noise,
    "ties": tied,
    "empty": lambda _: NOTHING,
    "non-determinism": wavering,
}


class Probe:
    def __init__(self, mood: str, at: int, classes: tuple[str, ...]) -> None:
        self.classes = classes
        self.mood = MOODS[mood]
        self.at = at

    def detect(self, images: Sequence[Image]) -> list[Answer]:
        return [
            (self.mood if self.at in (-1, round(int(image[0, 0, 0]) / 10)) else look)(image)
            for image in images
        ]


@sut
def probe(
    *, mood: str = "good", at: int = -1, weights: Path | None = None, classes: tuple[str, ...] = ("person",)
) -> Probe:
    """Find the red figure."""
    content = weights.read_text() if weights is not None else ""
    if content == "broken":
        raise ValueError("the weights are of version 9, this loader knows 1 to 3")
    if content == "deadly":
        ctypes.string_at(0)
    return Probe(mood, at, classes)


class Painter(Probe):
    def __init__(self, mood: str, at: int) -> None:
        super().__init__(mood, at, ("person",))
        self.task = "segmentation"

    def segment(self, images: Sequence[Image]) -> list[Answer]:
        self.detect(images)
        return [np.zeros(image.shape[:2], np.uint8) for image in images]


@sut
def painter(*, mood: str = "good", at: int = -1) -> Painter:
    """Call every pixel a person."""
    return Painter(mood, at)

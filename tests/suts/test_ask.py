from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np
import pytest

from adverse.errors import BadAnswerError, SutError
from adverse.suts.ask import as_detections, ask
from adverse.suts.python_callable import PythonCallable
from adverse.suts.shared_answers import refuse_shared
from adverse.types import Detections, Image

BOX = [[0.0, 0.0, 4.0, 4.0]]


class Says:
    """A detector that answers whatever a test wants."""

    classes = ("person", "car")

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def detect(self, _images: object) -> Any:
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [Detections(BOX, [0.5], [1]), (BOX, [0.5], [1]), {"boxes": BOX, "scores": [0.5], "labels": [1]}],
)
def test_an_answer_can_be_given_in_three_ways(picture: Image, answer: Any) -> None:
    assert ask(Says([answer]), [picture], name="mine")[0].same(Detections(BOX, [0.5], [1]))


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([], "0 answers"),
        ([(BOX, [0.5]), (BOX, [0.5])], "2 answers"),
        ([None], "NoneType"),
        ([{"boxes": BOX}], "keys ['boxes']"),
        ([(BOX, [np.nan])], "not finite"),
        ([([[0, np.inf, 1, 1]], [1.0])], "not finite"),
        ([(BOX, [0.5, 0.4])], "wrong shape"),
        ([(BOX, [0.5], [2])], "label 2"),
        ([(BOX, [0.5], [-1])], "label -1"),
        ([([[4, 0, 0, 4]], [0.5])], "ends before it begins"),
        ([("a", "b")], "not numbers"),
        ([(BOX, [0.5], ["car"])], "not numbers"),
        ([(BOX, [0.5], ["1"])], "not finite"),
        ([(BOX, [0.5], [None])], "not numbers"),
        ([(BOX, [0.5], [10**30])], "not numbers"),
        ([(BOX, [0.5], [0.5])], "whole"),
        ([(BOX, [1e300])], "not finite"),
        ([(BOX, [0.5], [[0]])], "wrong shape"),
    ],
)
def test_a_bad_answer_is_a_sut_error_that_names_the_system(
    picture: Image, answers: list[Any], told: str
) -> None:
    with pytest.raises(SutError) as caught:
        ask(Says(answers), [picture], name="mine")
    assert told in str(caught.value)
    assert "where: mine" in str(caught.value)


def test_an_exception_or_exit_inside_the_system_is_a_sut_error(picture: Image) -> None:
    class Breaks(Says):
        def detect(self, _images: object) -> NoReturn:
            if self._answer:
                sys.exit(self._answer)
            raise ZeroDivisionError("no depth")

    with pytest.raises(SutError, match="failed on an image") as caught:
        ask(Breaks(0), [picture], name="mine")
    assert "ZeroDivisionError: no depth" in str(caught.value)
    with pytest.raises(SutError, match="failed on an image"):
        ask(Breaks(3), [picture], name="mine")


def test_a_callable_is_a_detector(picture: Image) -> None:
    seen: list[int] = []

    def find(images: Any) -> Any:
        seen.append(len(images))
        return (([*BOX], [0.25]) for _ in images)

    detector = PythonCallable(find, ["person"])
    answers = ask(detector, [picture, picture], name="f")
    assert [answer.scores.tolist() for answer in answers] == [[0.25], [0.25]]
    assert seen == [2]
    assert detector.classes == ("person",)


def test_nothing_found_has_the_shape_of_detections() -> None:
    assert as_detections(([], [], [])).boxes.shape == (0, 4)


class Overwrites:
    """A detector that returns for every image the one place it writes its answers to."""

    classes = ("person", "car")
    shapes = (
        "tuple of arrays",
        "whole list",
        "mapping",
        "views of one array",
        "generator",
        "function",
        "rows",
    )

    def __init__(self, shape: str) -> None:
        self._shape = shape
        self._boxes = np.zeros((1, 4), np.float32)
        self._rows: list[list[float]] = []
        self._whole: dict[str, Any] = {}

    def _one(self, image: Image) -> Any:
        self._boxes[:] = [0, 0, 1 + image[0, 0, 0], 9]
        self._rows[:] = self._boxes.tolist()
        self._whole.update(boxes=self._boxes.copy(), scores=[0.5])
        answers = {
            "whole list": (self._rows, [0.5]),
            "mapping": self._whole,
            "views of one array": (self._boxes[:, :], np.ones(1)),
            "rows": ([self._boxes[0]], [0.5]),
        }
        return answers.get(self._shape, (self._boxes, np.ones(1)))

    def detect(self, images: Any) -> Any:
        if self._shape == "generator":
            return (self._one(image) for image in images)
        return [self._one(image) for image in images]


@pytest.mark.parametrize("shape", Overwrites.shapes)
def test_a_system_that_overwrites_its_answers_is_refused_in_a_batch_and_right_alone(shape: str) -> None:
    pictures = [np.full((10, 10, 3), value, np.uint8) for value in (1, 2, 3)]
    system: Any = Overwrites(shape)
    if shape == "function":
        system = PythonCallable(system.detect, system.classes)
    with pytest.raises(BadAnswerError, match=r"frames of a batch share one .*Copy it for each image"):
        ask(system, pictures, name="mine")
    alone = [ask(system, [picture], name="mine")[0] for picture in pictures]
    assert [answer.boxes[0, 2] for answer in alone] == [2, 3, 4]


def test_answers_that_cannot_be_overwritten_or_lie_side_by_side_may_come_from_one_place(
    picture: Image,
) -> None:
    constant = Detections(BOX, [0.5], [1])
    frozen = np.array(BOX)
    frozen.flags.writeable = False
    maps = np.arange(8 * 8 * 2).reshape(8, 8, 2)  # interleaved in memory, with no value in common
    empty = np.zeros((0, 4))
    assert len(ask(Says([constant] * 2), [picture] * 2, name="mine")) == 2
    assert len(ask(Says([(frozen, (0.5,))] * 2), [picture] * 2, name="mine")) == 2
    assert len(ask(Says([(empty, np.zeros(0))] * 2), [picture] * 2, name="mine")) == 2
    refuse_shared([maps[..., 0], maps[..., 1]])
    with pytest.raises(BadAnswerError, match="images 0 and 1"):
        refuse_shared([maps[:5, :, 0], maps[4:, :, 0]])


def test_a_system_that_never_stops_answering_is_stopped(picture: Image) -> None:
    endless = Says((BOX, [0.5], [0]) for _ in iter(int, 1))
    with pytest.raises(BadAnswerError, match="more than 1 answers"):
        ask(endless, [picture], name="mine")

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np
import pytest

from adverse.errors import SutError
from adverse.suts.ask import as_detections, ask
from adverse.suts.python_callable import PythonCallable
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
        return ((BOX, [0.25]) for _ in images)

    detector = PythonCallable(find, ["person"])
    answers = ask(detector, [picture, picture], name="f")
    assert [answer.scores.tolist() for answer in answers] == [[0.25], [0.25]]
    assert seen == [2]
    assert detector.classes == ("person",)


def test_nothing_found_has_the_shape_of_detections() -> None:
    assert as_detections(([], [], [])).boxes.shape == (0, 4)

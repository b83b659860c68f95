"""Cutting logs at their empty stretches, against a plain reading of the rule."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adverse
from adverse.errors import StudyError
from adverse.study.negative_runs import cut_negative_runs
from adverse.study.spec import study_from
from adverse.types import Dataset, Frame, Log, Truth
from analysis.test_context import FRAMES, ROBOT, perfect, write_drives


class Nowhere:
    path = Path("none.png")
    recipe = "none"

    def __call__(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        return np.zeros((1, 1, 3), np.uint8)


def frame(index: int, label: int | None) -> Frame:
    truth = Truth.none()
    if label is not None:
        truth = Truth(np.ones((1, 4)), np.array([label]), np.zeros(1, np.bool_), np.zeros(1, np.int64))
    return Frame(f"a/{index}", "a", index, Nowhere(), truth, index)


@given(st.lists(st.sampled_from([None, 0, 1]), max_size=30), st.integers(1, 5))
def test_pieces_are_the_runs(labels: list[int | None], least: int) -> None:
    """Label 0 is the target, 1 something else; the expected pieces come from joining runs by hand."""
    log = Log("a", tuple(frame(index, label) for index, label in enumerate(labels)))
    found = cut_negative_runs(Dataset("d", ("person", "tree"), (log,)), ["person"], min_frames=least).logs
    pieces: list[tuple[bool, list[int]]] = []
    for shown, group in itertools.groupby(range(len(labels)), key=lambda index: labels[index] == 0):
        members = list(group)
        positive = shown or len(members) < least
        if pieces and positive and pieces[-1][0]:
            pieces[-1][1].extend(members)
        else:
            pieces.append((positive, members))
    if 0 not in labels:
        pieces = [(False, list(range(len(labels))))]
    assert [[f.index for f in one.frames] for one in found] == [members for _, members in pieces]
    for one in found:
        assert {f.log_id for f in one.frames} <= {one.id}
    assert len({one.id for one in found}) == len(found)


def test_a_study_that_is_never_free_of_people_gets_its_negatives(tmp_path: Path) -> None:
    """The person stands in the first frames only: cut, the rest of the drive counts false alarms."""
    write_drives(tmp_path / "data", log_names=("meeting",), last=10)
    study = {
        "name": "cut",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "levels": ["image", "loop"],
        "robot": ROBOT,
        "negative_runs": {"min_frames": 20},
        "robustness": {"bootstrap": 0},
    }
    rows = adverse.run(study, tmp_path / "run", detectors={"perfect": perfect}).rows
    row = next(row for row in rows if (row["level"], row["setting"]) == ("image/ROC_B", "identity"))
    assert (row["status"], row["logs"], row["negative_frames"]) == ("ok", 2, FRAMES - 10)
    whole = {key: value for key, value in study.items() if key != "negative_runs"}
    rows = adverse.run(whole, tmp_path / "whole", detectors={"perfect": perfect}).rows
    assert {row["status"] for row in rows if row["level"] == "image/ROC_B"} == {"insufficient"}


def test_a_stretch_has_at_least_one_frame(tmp_path: Path) -> None:
    study = {"name": "cut", "data": {"format": "folder"}, "negative_runs": {"min_frames": 0}}
    with pytest.raises(StudyError, match="min_frames"):
        study_from(study, tmp_path)

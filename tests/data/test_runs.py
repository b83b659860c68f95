"""Negative runs: stretches without targets become logs of their own, and nothing is lost."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse import plugins
from adverse.data.subsets import cut_negative_runs
from adverse.study.plan import read_dataset
from adverse.study.spec import study_from
from adverse.types import Dataset, Frame, Log, Truth
from bad_input.good_study import GoodStudy
from formats import write_kitti_tracking


class Nothing:
    path = Path("x")
    recipe = ""

    def __call__(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        raise NotImplementedError


def data(pattern: str) -> Dataset:
    """Return one log: P a person, i an ignored one, c a car, . nothing."""
    frames = []
    for number, mark in enumerate(pattern):
        truth = Truth.none()
        if mark != ".":
            label, ignore = np.array([int(mark == "c")]), np.array([mark == "i"])
            truth = Truth(np.array([[0.0, 0, 1, 1]]), label, ignore, np.array([number]))
        frames.append(Frame(f"log/{number}", "log", number, Nothing(), truth, number))
    return Dataset("one", ("person", "car"), (Log("log", tuple(frames), "validation"),))


def shown(pattern: str, min_frames: int) -> list[tuple[str, str]]:
    cut = cut_negative_runs(data(pattern), ["person"], min_frames)
    assert all(log.split == "validation" for log in cut.logs)
    assert all(frame.log_id == log.id for log in cut.logs for frame in log.frames)
    assert all([frame.index for frame in log.frames] == list(range(len(log.frames))) for log in cut.logs)
    return [(log.id, "".join(pattern[int(frame.image_id)] for frame in log.frames)) for log in cut.logs]


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("PP", [("log", "PP")]),
        ("....", [("log", "....")]),
        ("..", [("log", "..")]),
        ("P...P", [("log:1", "P"), ("log:2", "..."), ("log:3", "P")]),
        ("P..P", [("log", "P..P")]),
        ("..P...", [("log:1", "..P"), ("log:2", "...")]),
        ("P.c.i..", [("log:1", "P"), ("log:2", ".c."), ("log:3", "i..")]),
    ],
)
def test_stretches_of_three_frames(pattern: str, parts: list[tuple[str, str]]) -> None:
    assert shown(pattern, 3) == parts


@given(st.text("Pi.c", min_size=1, max_size=30), st.integers(1, 5))
def test_nothing_is_lost_and_every_part_is_of_one_kind(pattern: str, min_frames: int) -> None:
    parts = [part for _, part in shown(pattern, min_frames)]
    assert "".join(parts) == pattern
    if len(parts) > 1:
        for part in parts:
            assert "P" in part or "i" in part or len(part) >= min_frames
            assert "P" in part or "i" in part or set(part) <= {".", "c"}
        kinds = ["P" in part or "i" in part for part in parts]
        assert all(one != other for one, other in pairwise(kinds))


def test_a_study_asks_for_them(tmp_path: Path) -> None:
    root = write_kitti_tracking(tmp_path / "kitti")
    study = GoodStudy(tmp_path / "study", "coco")
    section = {"format": "kitti", "root": str(root), "class_map": {"Pedestrian": "person"}}
    section |= {"negative_runs": {"min_frames": 1}, "dont_care": "drop"}
    file = study_from({"name": "one", "data": section}, tmp_path)
    read = read_dataset(file, plugins.load())
    assert [(log.id, len(log.frames)) for log in read.logs] == [
        ("0000:1", 2),
        ("0000:2", 1),
        ("0000:3", 1),
        ("0001", 2),
    ]
    study.study["data"] = section
    study.adverse().expect(0)
    manifest = (study.run / "manifest.json").read_text()
    assert '"negative_runs"' in manifest

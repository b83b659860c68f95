from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.data.check import check
from adverse.data.plausibility import by_hash, doubtful_boxes, doubtful_depth, faulty_frames, same_images
from adverse.plugins import built_in
from adverse.types import Dataset, Frame, Log, Split, Truth


@dataclass(frozen=True)
class Picture:
    """An image that is not on disk."""

    path: Path
    array: NDArray[Any]
    size: tuple[int, int] | None = (100, 80)
    recipe: str = "none"

    def __call__(self) -> NDArray[Any]:
        return self.array


def data(
    *, boxes: NDArray[np.float64] | None = None, depth: NDArray[Any] | None = None, splits: str = "tttt"
) -> Dataset:
    """Frames with the same boxes (xyxy) and depth; v and t are the split of each."""
    corners = np.zeros((0, 4)) if boxes is None else boxes
    n = len(corners)
    truth = Truth(corners, np.zeros(n, np.int64), np.zeros(n, np.bool_), np.arange(n))
    names: dict[str, Split] = {"v": "validation", "t": "test"}
    logs = []
    for number, split in enumerate(splits):
        picture = Picture(Path(f"{number}.png"), np.full((80, 100, 3), number, np.uint8))
        measured = None if depth is None else Picture(Path(f"{number}.npy"), depth)
        frame = Frame(f"f{number}", f"f{number}", 0, picture, truth, number, depth_m=measured)
        logs.append(Log(f"f{number}", (frame,), names[split]))
    return Dataset("some", ("person",), tuple(logs), ())


def as_read(written: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return corners of [x, y, width, height]."""
    return np.column_stack([written[:, :2], written[:, :2] + written[:, 2:]])


def test_corners_in_the_place_of_sizes_are_doubted() -> None:
    rng = np.random.default_rng(0)
    low = rng.uniform(5, 40, (12, 2))
    sizes = rng.uniform(10, 39, (12, 2))
    right, wrong = np.column_stack([low, sizes]), np.column_stack([low, low + sizes])
    assert not list(doubtful_boxes(data(boxes=as_read(right))))
    (doubt,) = doubtful_boxes(data(boxes=as_read(wrong)))
    assert "look like [x0, y0, x1, y1]" in str(doubt)
    assert "Write bbox as" in doubt.fix
    assert not list(doubtful_boxes(data()))
    whole = np.tile([0.0, 0.0, 100.0, 80.0], (12, 1))  # both readings are the same
    assert not list(doubtful_boxes(data(boxes=whole)))


@pytest.mark.fault(14)
@pytest.mark.parametrize(
    ("metres", "words"),
    [
        (12.0, None),
        (12_000.0, "too large by about a thousand"),
        (0.012, "too small by about a thousand"),
        (np.nan, None),
    ],
)
def test_depth_in_another_unit_is_doubted(metres: float, words: str | None) -> None:
    depth = np.full((80, 100), metres, np.float32)
    depth[0, :3] = np.inf, np.nan, 0
    found = list(doubtful_depth(data(depth=depth)))
    assert [doubt.what for doubt in found] == ([f"depth is {words}"] if words else [])


def test_maps_without_any_depth_are_doubted() -> None:
    (doubt,) = doubtful_depth(data(depth=np.full((80, 100), np.nan, np.float32)))
    assert (doubt.what, doubt.certain) == ("no pixel of a depth map has a depth", False)
    assert not list(doubtful_depth(data(depth=np.full((80, 100), np.inf, np.float32))))  # all sky


def test_a_pixel_before_the_lens_is_doubted() -> None:
    depth = np.full((80, 100), 5, np.float32)
    depth[3, 3] = 1e-5
    (doubt,) = doubtful_depth(data(depth=depth))
    assert doubt.got == "1e-05 m"
    assert "bounded radius" in doubt.fix


@pytest.mark.fault(21)
@pytest.mark.parametrize(
    ("splits", "content", "words"),
    [
        ("tttt", "abcd", []),
        ("ttvv", "aacd", ["images within a split are identical"]),
        ("ttvv", "abcb", ["images of test and validation are identical"]),
        ("ttvv", "aacc", ["images within a split are identical"]),
        ("ttvv", "aaac", ["images of test and validation are identical"]),
        ("tttt", "--cd", []),
    ],
)
def test_one_picture_under_two_names_is_doubted(splits: str, content: str, words: list[str]) -> None:
    hashes = {Path(f"{number}.png"): letter for number, letter in enumerate(content)}
    found = list(same_images(data(splits=splits).logs, by_hash(hashes, "-")))
    assert [doubt.what for doubt in found] == words
    assert all(doubt.fix for doubt in found)


def test_a_check_tells_them_all() -> None:
    wrong = np.tile([30.0, 20.0, 80.0, 70.0], (12, 1)) + np.arange(12)[:, None] / 10
    dataset = data(boxes=as_read(wrong), depth=np.full((80, 100), 9000, np.float32))
    again = Log("again", (dataset.logs[0].frames[0],), "test")
    found = check(Dataset("some", ("person",), (*dataset.logs, again), ()))
    told = [problem.what for problem in found.problems]
    wanted = ("look like [x0", "a thousand", "are identical")
    assert [words in what for words, what in zip(wanted, told, strict=True)] == [True] * 3
    assert not found.usable  # a study that needs depth would stop


def test_depth_off_by_a_thousand_stops_a_study_and_makes_data_unusable() -> None:
    boxes = np.array([[1.0, 1, 9, 9]])
    assert check(data(boxes=boxes, depth=np.full((80, 100), 8, np.float32))).usable
    wrong = check(data(boxes=boxes, depth=np.full((80, 100), 8000, np.float32)))
    assert not wrong.usable
    assert [problem.stops for problem in wrong.problems] == [True]


def test_one_log_in_another_unit_is_doubted() -> None:
    good = data(depth=np.full((80, 100), 8, np.float32))
    millimetres = data(depth=np.full((80, 100), 8000, np.float32)).logs[1]
    mixed = replace(good, logs=(good.logs[0], millimetres, *good.logs[2:]))
    (doubt,) = doubtful_depth(mixed)
    assert doubt.what == "depth of some frames is in another unit than that of others"
    assert not doubt.certain


def test_mutations_that_need_depth_run_on_the_frames_that_have_it() -> None:
    haze = [plugin for plugin in built_in("mutation") if plugin.name == "haze"]
    good = data(boxes=np.array([[1.0, 1, 9, 9]]), depth=np.full((80, 100), 8, np.float32))
    one_without = replace(good, logs=(data().logs[0], *good.logs[1:]))
    found = check(one_without, haze)
    assert not found.mutations_out
    assert found.mutations_in_part == {"depth_m": (3, 4, ["haze"])}
    assert check(data(), haze).mutations_out == {"depth_m": ["haze"]}


def test_frames_that_will_be_left_out_are_said_before() -> None:
    frames = [frame for log in data().logs for frame in log.frames]
    wrong = "the box of annotation {} has no size; where: image 'a'; got: bbox [1, 1, 0, 4]. Fix: Correct it."
    spoilt = [replace(frame, fault=wrong.format(n)) for n, frame in enumerate(frames[:2])]
    (doubt,) = faulty_frames([*spoilt, *frames[2:]])
    what = "2 frames are left out: the box of an annotation has no size"
    assert str(doubt) == f"{what}: bbox [1, 1, 0, 4] (image 'a'). Correct it."

"""Depth that is no distance, depth that is not there, and logs whose time runs backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .cases import CANNOT_RUN, INCOMPLETE, PASS, Case, case, table
from .good_study import GoodStudy

AT = 2
HAZE_LEFT_OUT = ("1 frame could not be used", "frame 'a/2' under haze 500 m:", "Fix:")


def pixel(value: float, **study_keys: Any) -> Callable[[GoodStudy], object]:
    """Put a value into one pixel of the depth, and say something in the study."""

    def spoil(study: GoodStudy) -> None:
        depth = study.depth(AT)
        depth[5, 7] = value
        np.save(study.depth_file(AT), depth)
        study.study.update(study_keys)

    return spoil


def holes_everywhere(study: GoodStudy) -> None:
    """Put a hole into every depth map, as laser depth has."""
    for path in study.data.rglob("depth/*.npy"):
        depth = np.load(path)
        depth[5, 7] = np.nan
        np.save(path, depth)


def depth_file(content: Callable[[GoodStudy], bytes]) -> Callable[[GoodStudy], object]:
    """Write a depth file oneself."""
    return lambda study: study.depth_file(AT).write_bytes(content(study))


def saved(array: Any, **data_keys: Any) -> Callable[[GoodStudy], object]:
    """Save another array as the depth, and say something about the data."""

    def spoil(study: GoodStudy) -> None:
        np.save(study.depth_file(AT), array, allow_pickle=True)
        study.study["data"].update(data_keys)

    return spoil


def poses(old: str, new: str) -> Callable[[GoodStudy], object]:
    """Change the text of log a's poses."""

    def spoil(study: GoodStudy) -> None:
        path = study.data / "a" / "poses.csv"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return spoil


def without_depth(study: GoodStudy) -> None:
    study.depth_file(AT).unlink()


HALF = np.full((24, 32), 10, np.float32)
WHOLE = np.full((48, 64), 10, np.float32)


@pytest.mark.fault(
    13, cases=["NaN", "NaN in every frame", "zero", "negative", "minus infinite", "NaN, filled", "sky"]
)
@pytest.mark.fault(14, cases=["other size", "other size, declared", "whole numbers"])
@pytest.mark.fault(15, cases=["none for one frame"])
@pytest.mark.fault(29, cases=["time runs backwards", "time stands still", "time is NaN", "not a rotation"])
@pytest.mark.fault(41, cases=["a pickle"])
@table(
    case(
        "NaN",
        pixel(np.nan),
        INCOMPLETE,
        *HAZE_LEFT_OUT,
        "a/depth/2.npy",
        "1 of 3072 are NaN, zero or negative",
        "invalid_depth: far or nearest",
    ),
    case(
        "NaN in every frame",
        holes_everywhere,
        CANNOT_RUN,
        "haze: no depth map can be used",
        "NaN, zero or negative",
        "invalid_depth: far or nearest",
    ),
    case("zero", pixel(0), INCOMPLETE, *HAZE_LEFT_OUT, "NaN, zero or negative"),
    case("negative", pixel(-3), INCOMPLETE, *HAZE_LEFT_OUT, "NaN, zero or negative"),
    case("minus infinite", pixel(-np.inf), INCOMPLETE, *HAZE_LEFT_OUT, "NaN, zero or negative"),
    case(
        "NaN, filled",
        pixel(np.nan, invalid_depth="nearest"),
        PASS,
        "1 x depth invalid at 0.03% of pixels: nearest",
    ),
    case("sky", pixel(np.inf), PASS, "results:"),
    case(
        "other size",
        saved(HALF),
        INCOMPLETE,
        *HAZE_LEFT_OUT,
        "a/depth/2.npy",
        "32x24 pixels",
        "depth_resample",
    ),
    case("other size, declared", saved(HALF, depth_resample="nearest"), PASS, "results:"),
    case("whole numbers", saved(WHOLE.astype(int)), INCOMPLETE, *HAZE_LEFT_OUT, "a/depth/2.npy", "int64"),
    case(
        "three dimensions", saved(WHOLE[..., None]), INCOMPLETE, *HAZE_LEFT_OUT, "wrong shape", "(48, 64, 1)"
    ),
    case("a pickle", saved(np.array([{}])), INCOMPLETE, *HAZE_LEFT_OUT, "a/depth/2.npy", "object"),
    case(
        "truncated",
        depth_file(lambda s: s.depth_file(AT).read_bytes()[:-9]),
        INCOMPLETE,
        *HAZE_LEFT_OUT,
        "truncated",
    ),
    case("no .npy", depth_file(lambda _: b"nonsense"), INCOMPLETE, *HAZE_LEFT_OUT, "a/depth/2.npy", "header"),
    case(
        "none for one frame",
        without_depth,
        INCOMPLETE,
        *HAZE_LEFT_OUT,
        "haze needs depth",
        "depth folder",
    ),
    case(
        "time runs backwards",
        poses("2,0.2,", "2,0.05,"),
        CANNOT_RUN,
        "a/poses.csv, line 4",
        "time_s 0.05 after 0.1",
    ),
    case(
        "time stands still",
        poses("2,0.2,", "2,0.1,"),
        CANNOT_RUN,
        "a/poses.csv, line 4",
        "time_s 0.1 after 0.1",
    ),
    case("time is NaN", poses("2,0.2,", "2,nan,"), CANNOT_RUN, "a/poses.csv, line 4", "time_s = nan"),
    case(
        "not a rotation", poses("2,0,1.6,0.5", "2,0,1.6,0.9"), CANNOT_RUN, "a/poses.csv, line 4", "quaternion"
    ),
    case(
        "pose of no image", poses("2,0.2,", "9,0.2,"), CANNOT_RUN, "a/poses.csv, frame '9'", "no such image"
    ),
    case(
        "haze of no strength",
        lambda s: s.study.update(mutations=["haze"]),
        INCOMPLETE,
        "frame 'a/0' under haze:",
        "either visibility_m or beta",
        "Write haze(visibility_m=200)",
    ),
    case(
        "two depths for one frame",
        lambda s: s.depth_file(AT).with_suffix(".png").write_bytes(b""),
        CANNOT_RUN,
        "a/depth",
        "two depth files belong to one image",
    ),
)
def test_depth_and_time(row: Case, folder: GoodStudy) -> None:
    row.check(folder)


@pytest.mark.fault(13, 15)
def test_bad_depth_costs_only_what_needs_depth(folder: GoodStudy) -> None:
    pixel(np.nan)(folder)
    folder.adverse()
    assert {(row["quarantined"], row["status"]) for row in folder.rows()} == {(0, "ok")}
    hazy = folder.rows("haze(visibility_m=500)")
    assert {(row["quarantined"], row["status"]) for row in hazy} == {(1, "incomplete")}


def test_haze_without_any_depth_is_known_before_the_run(coco: GoodStudy) -> None:
    coco.study["mutations"] = ["haze(visibility_m=500)"]
    words = ("haze needs depth", "frame '0'", "8 of 8 test frames have none", "drop the mutation")
    coco.adverse("plan").expect(CANNOT_RUN, *words)
    coco.adverse().expect(CANNOT_RUN, *words)

"""Recorded boxes that are another image's: no alarm on good or video-like data."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from adverse.study.plan import make_plan
from adverse.study.spec import read_study
from adverse.suts.recorded_check import DeclaredFormat, review_files
from adverse.suts.recorded_rows import Needed, RecordedRows
from adverse.suts.recorded_shift import shifted
from adverse.types import Frame, Truth
from suts.no_image import NoImage

CONSECUTIVE = tuple(range(1, 41))
SIZE = np.array([40, 30])
SPARSE = tuple(int(n) for n in np.cumsum(np.random.default_rng(3).integers(7, 50, 40)))


def frames_of(ids: tuple[int, ...], *, speed: float = 400) -> list[Frame]:
    """Two objects in each image but every fourth; `speed` is how far they are from the image before."""
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 400, (2, 2))
    frames = []
    for n, image in enumerate(ids):
        places = rng.uniform(0, 400, (2, 2)) if speed >= 400 else places + speed
        boxes = np.hstack([places, places + SIZE]) if n % 4 != 3 else np.zeros((0, 4))
        count = len(boxes)
        truth = Truth(boxes, np.zeros(count, np.int64), np.zeros(count, bool), np.arange(count))
        frames.append(Frame(f"f{n}", f"f{n}", 0, NoImage(f"{n:03}.png"), truth, image))
    return frames


def recorded(
    frames: list[Frame], image_of: dict[int, int], *, noise: float = 2, faint: int = 20
) -> RecordedRows:
    """What a detector says of frames, written for other images, with many faint boxes all over."""
    rng = np.random.default_rng(1)
    images: list[int | str] = []
    boxes, scores = [], []
    for frame in frames:
        found = frame.truth.boxes + rng.normal(0, noise, frame.truth.boxes.shape)
        places = rng.uniform(0, 400, (faint, 2))
        rows = np.vstack([found, np.hstack([places, places + SIZE])])
        if int(frame.image_id) in image_of:
            images += [image_of[int(frame.image_id)]] * len(rows)
            boxes.append(rows)
            scores += [0.9] * len(found) + [0.1] * faint
    corners = np.concatenate(boxes)
    written = np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]])
    return RecordedRows(
        Path("identity.json"), images, written, np.array(scores), np.zeros(len(scores), np.int64), {}, {}
    )


def moved(ids: tuple[int, ...], places: int) -> dict[int, int]:
    """Return for each image the one that its boxes are written for, so many places on."""
    return {ids[n]: ids[n + places] for n in range(len(ids)) if 0 <= n + places < len(ids)}


@pytest.mark.parametrize(
    ("ids", "places", "count", "words"),
    [
        (CONSECUTIVE, 1, 40, "image_id -1"),
        (CONSECUTIVE, -1, 40, "image_id +1"),
        (CONSECUTIVE, 4, 40, "image_id -4"),
        (CONSECUTIVE, 1, 5, "image_id -1"),
        (SPARSE, 1, 40, "the image 1 place before in the order of image ids"),
        (SPARSE, -2, 40, "the image 2 places after in the order of image ids"),
    ],
)
def test_boxes_of_the_neighbouring_image_are_refused(
    ids: tuple[int, ...], places: int, count: int, words: str
) -> None:
    frames = frames_of(ids[:count])
    rows = recorded(frames, moved(ids[:count], places))
    needed = Needed({"test": frames}, frozenset(ids))
    (error,) = review_files([lambda: rows], [needed], DeclaredFormat(None, None, "error")).errors
    assert error.what == "the image ids of predictions are shifted against the truth"
    assert words in (error.got or "")
    accepted = review_files([lambda: rows], [needed], DeclaredFormat(None, None, "error", "accept"))
    assert not accepted.errors
    assert any("image ids are shifted" in line for line in accepted.warnings)


def test_a_shift_is_found_where_the_study_uses_every_fifth_image() -> None:
    frames = frames_of(CONSECUTIVE)
    used = frames[::5]
    rows = recorded(frames, {n + 1: n for n in CONSECUTIVE[::5]})
    needed = Needed({"test": used}, frozenset(CONSECUTIVE), frames)
    shift = shifted(rows, needed, "xywh")
    assert shift is not None
    assert "image_id +1" in shift.got


@pytest.mark.parametrize(
    ("speed", "noise", "places"),
    [
        (400, 2, 0),  # good
        (400, 14, 0),  # places badly
        (400, 200, 0),  # finds nothing
        (1, 2, 0),  # video: neighbours are alike
        (1, 2, 1),  # and a frame late: it fits both
        (0, 2, 1),  # nothing moves
    ],
)
def test_no_alarm_where_the_own_image_fits_as_well_or_none_does(
    speed: float, noise: float, places: int
) -> None:
    frames = frames_of(CONSECUTIVE, speed=speed)
    rows = recorded(frames, moved(CONSECUTIVE, places), noise=noise)
    assert shifted(rows, Needed({"test": frames}, frozenset(CONSECUTIVE)), "xywh") is None


def test_one_id_for_an_image_of_each_split_is_refused(tmp_path: Path) -> None:
    """The recorded answers of a test image would set the thresholds as those of a validation image."""
    box = {"category_id": 1, "bbox": [2, 2, 9, 9], "area": 81, "iscrowd": 0}
    for split in ("val", "test"):
        (tmp_path / split).mkdir()
        cv2.imwrite(str(tmp_path / split / f"{split}.png"), np.full((32, 32, 3), len(split), np.uint8))
        image = {"id": 7, "file_name": f"{split}.png", "width": 32, "height": 32}
        truth = {"images": [image], "annotations": [{"id": 1, "image_id": 7, **box}]}
        written = {**truth, "categories": [{"id": 1, "name": "person"}]}
        (tmp_path / f"{split}.json").write_text(json.dumps(written))
    (tmp_path / "identity.json").write_text(json.dumps([{"image_id": 7, "score": 0.9, **box}]))
    (tmp_path / "study.yaml").write_text(
        "name: s\n"
        'data: {format: coco, root: ., annotations: "{split}.json", images: "{split}", '
        "split: {validation: val, test: test}}\n"
        'suts: [{name: v, adapter: predictions, path: "{mutation}.json", categories: {1: person}}]\n'
    )
    (error,) = make_plan(read_study(tmp_path / "study.yaml")).blocked
    assert error.what == "image ids of recorded predictions stand for several images"
    assert "such as 7 for" in (error.got or "")

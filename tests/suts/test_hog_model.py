"""HOG models from files: the built-in one survives the way to disk and back; wrong files are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.errors import SutError
from adverse.suts.hog_views import built_in, read_hog_model
from adverse.suts.opencv_hog import opencv_hog

GOOD = json.loads(built_in().model_dump_json())


def write(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({**GOOD, **changes}))
    return path


def test_the_built_in_model_answers_the_same_from_a_file(tmp_path: Path) -> None:
    image = np.random.default_rng(1).integers(0, 255, (256, 192, 3), np.uint8)
    path = write(tmp_path / "hog.json")
    plain, stored = (one.detect([image])[0] for one in (opencv_hog(), opencv_hog(model=path)))
    assert plain.same(stored)


def test_enlarging_finds_smaller_things_in_the_same_place() -> None:
    image = np.random.default_rng(2).integers(0, 255, (128, 96, 3), np.uint8)
    found = opencv_hog(enlarge=2, hit_threshold=-3).detect([image])[0]
    assert len(found) > 0
    assert (found.boxes[:, 2] <= 96).all()
    assert ((found.boxes[:, 3] - found.boxes[:, 1]) < 0.75 * 128 / 2 * 1.1).any()


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": [1.0, 2.0]},
        {"window": [64]},
        {"bins": 0},
        {"extra": 1},
        {"cell": [7, 7]},
        {"person": [2, 1]},
    ],
)
def test_a_wrong_model_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(SutError, match="HOG model"):
        read_hog_model(write(tmp_path / "hog.json", **wrong))


def test_a_missing_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(SutError, match="cannot be used"):
        read_hog_model(tmp_path / "none.json")

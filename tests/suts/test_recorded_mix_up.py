"""Files of mutated images that were written down wrongly, against the file of the images as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.suts.predictions import predictions
from adverse.suts.recorded_rows import Needed
from adverse.types import Frame, Truth
from suts.no_image import NoImage

IMAGES = 40
Json = dict[str, Any]


def clean() -> list[Json]:
    """Two objects at a place of its own in each image, one of each class."""
    rng = np.random.default_rng(0)
    return [
        {
            "image_id": image,
            "category_id": category,
            "bbox": [float(v) for v in rng.uniform(0, 400, 2)] + [40.0, 30.0],
            "score": float(rng.uniform()),
        }
        for image in range(IMAGES)
        for category in (1, 2)
    ]


def moved(
    rows: list[Json], *, shift: int = 0, classes: tuple[int, int] = (1, 2), noise: float = 2
) -> list[Json]:
    """Return the rows as after a mutation: boxes and scores a little different, and a tenth lost."""
    rng = np.random.default_rng(1)
    return [
        {
            "image_id": row["image_id"] + shift,
            "category_id": classes[row["category_id"] - 1],
            "bbox": [v + float(rng.normal(0, noise)) for v in row["bbox"]],
            "score": row["score"] * 0.9,
        }
        for row in rows
        if rng.uniform() > 0.1 and 0 <= row["image_id"] + shift < IMAGES
    ]


@pytest.mark.parametrize(
    ("mutated", "words"),
    [
        (moved(clean()), None),
        (moved(clean(), noise=60), None),  # a mutation that leaves nothing in place
        (moved(clean(), classes=(1, 1)), None),  # a detector that calls everything a person is no mix-up
        (clean(), "the predictions are those of the images as they are"),
        (moved(clean(), shift=1), "image ids may be off by one"),
        (moved(clean(), shift=-1), "image ids may be off by one"),
        (moved(clean(), classes=(2, 1)), "two classes may be exchanged"),
    ],
)
def test_mixed_up_files_are_warned_of(tmp_path: Path, mutated: list[Json], words: str | None) -> None:
    (tmp_path / "identity.json").write_text(json.dumps(clean()))
    (tmp_path / "haze.json").write_text(json.dumps(mutated))
    (tmp_path / "fog.json").write_text(json.dumps(mutated))
    frames = [Frame(f"f{n}", f"f{n}", 0, NoImage(), Truth.none(), n) for n in range(IMAGES)]
    needed = Needed({"test": frames}, frozenset(range(IMAGES)))
    sut = predictions(tmp_path / "{mutation}.json", categories={1: "car", 2: "person"})
    review = sut.review(dict.fromkeys(("identity", "haze", "fog"), needed))  # type: ignore[attr-defined]
    assert not review.errors
    odd = [line for line in review.warnings if line.startswith("haze.json")]
    assert [words in line for line in odd if words] == ([True] if words else [])
    if words:
        assert odd[0].endswith("the same in 1 more file")
    else:
        assert not odd

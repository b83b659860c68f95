"""Recorded predictions that do not belong to the data: refused before any work, or said in a warning."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .good_study import BOX, HEIGHT, PICTURES, WIDTH, GoodStudy

MUTATED = "brightness(scale=0.9)"
Entries = list[dict[str, Any]]


def good() -> Entries:
    """Return a sure hit on every person, and a weak false positive on every other picture."""
    return [
        {
            "image_id": number,
            "category_id": 1,
            "bbox": list(BOX) if number < PICTURES // 2 else [40, 30, 14 + number % 3, 12],
            "score": 0.9 if number < PICTURES // 2 else 0.1 + number / 100,
        }
        for number in range(PICTURES)
    ]


def as_corners(entries: Entries) -> Entries:
    for entry in entries:
        x, y, width, height = entry["bbox"]
        entry["bbox"] = [x, y, x + width, y + height]
    return entries


def record(
    study: GoodStudy, spoil: Callable[[Entries], Entries], setting: str | None = None, **options: Any
) -> GoodStudy:
    """Give the SUT's answers from files; those of one setting, or of all, are spoilt."""
    (study.folder / "vendor").mkdir()
    for one in ("identity", MUTATED):
        found = good() if setting not in (None, one) else spoil(good())
        (study.folder / "vendor" / f"{one}.json").write_text(json.dumps(found))
    given = {"path": "vendor/{mutation}.json", "categories": {1: "person"}, **options}
    study.study["suts"] = [{"name": "vendor", "adapter": "predictions", **given}]
    return study


def changed(**keys: Callable[[Any], Any]) -> Callable[[Entries], Entries]:
    def spoil(entries: Entries) -> Entries:
        return [{**entry, **{key: change(entry[key]) for key, change in keys.items()}} for entry in entries]

    return spoil


def areas(study: GoodStudy) -> list[float]:
    return [row["area"] for row in study.summary()["rows"]]


REFUSED = [
    ("unknown ids", changed(image_id=lambda i: i + 1000), None, {}, "8 of 8 image ids are unknown, such as"),
    ("text ids", changed(image_id=str), None, {}, "a number as a number"),
    ("some unknown", lambda e: [*e, {**e[0], "image_id": 99}], MUTATED, {}, "unknown_images: ignore"),
    ("no overlap", changed(image_id=lambda i: i + 50), None, {"unknown_images": "ignore"}, "8 of 8 image"),
    ("empty", lambda _: [], MUTATED, {}, "no entry for 8 of 8 test images, such as 0, 1, 2"),
    ("most missing", lambda e: e[:3], None, {}, "missing: no-detections"),
    ("one missing", lambda e: e[:7], None, {"missing": "error"}, "no entry for 1 of 8 test images"),
    ("corners", as_corners, None, {}, "as xywh they hit 0 of 4 true objects, as xyxy 4"),
    ("no corners", lambda e: e, None, {"boxes": "xyxy"}, "boxes end before they begin"),
    ("fractions", changed(bbox=lambda b: [v / 64 for v in b]), None, {}, "fractions of the image"),
    ("category", changed(category_id=lambda _: 3), None, {}, "category_id 3 in 8 entries; the same in"),
    ("twice", lambda e: e + e, MUTATED, {}, "8 of 16 entries"),
]  # fmt: skip


@pytest.mark.fault(31)
@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("name", "spoil", "setting", "options", "words"), REFUSED, ids=[r[0] for r in REFUSED]
)
def test_what_has_no_sensible_reading_is_refused_before_any_work(
    coco: GoodStudy, command: str, name: str, spoil: Any, setting: str | None, options: Any, words: str
) -> None:
    assert name
    said = record(coco, spoil, setting, **options).adverse(command)
    where = f"{setting or 'identity'}.json"
    said.expect(2, words, where, "suts[0]")
    assert not list(coco.run.rglob("*.parquet"))


def far_boxes() -> Entries:
    """Return boxes as for images of twice the size, in no convention of these."""
    return [{**entry, "bbox": [3 + 6 * n, 20, 14, 12]} for n, entry in enumerate(many_boxes("xywh"))]


def many_boxes(convention: str) -> Entries:
    """Return 16 boxes all over the image in a convention, without one on a person."""
    found: Entries = []
    for number in range(16):
        x, y = 3 + 3 * number, 1 + 2 * (number % 8)
        box = [x, y, 14, 12] if convention == "xywh" else [x, y, x + 14, y + 12]
        found.append(
            {"image_id": number % PICTURES, "category_id": 1, "bbox": box, "score": 0.2 + number / 100}
        )
    assert all(
        x + 14 <= WIDTH + 2 and y + 12 <= HEIGHT for x, y in ([f["bbox"][0], f["bbox"][1]] for f in found)
    )
    return found


@pytest.mark.fault(31)
@pytest.mark.parametrize("convention", ["xywh", "xyxy"])
def test_geometry_tells_the_convention_without_a_single_hit(coco: GoodStudy, convention: str) -> None:
    said = record(coco, lambda _: many_boxes(convention), MUTATED).adverse("plan")
    if convention == "xywh":
        said.expect(0)
    else:
        said.expect(
            2, "of 16 boxes reach beyond their image, and as [x0, y0, x1, y1] they do not", "boxes: xyxy"
        )


def test_corners_that_are_declared_give_the_same_figures(tmp_path: Path) -> None:
    plain = record(GoodStudy(tmp_path / "plain", "coco"), list)
    plain.adverse().expect(0)
    other = record(GoodStudy(tmp_path / "other", "coco"), as_corners, boxes="xyxy")
    other.adverse().expect(0)
    assert areas(plain) == areas(other)
    assert areas(plain)[0] == 1.0  # every person is found before any false positive
    for study in (plain, other):
        (line,) = study.summary()["warnings"]  # the same file was recorded for all settings
        assert "the predictions are those of the images as they are" in line


@pytest.mark.parametrize(
    ("spoil", "options", "words"),
    [
        (lambda e: e[:2], {"missing": "no-detections"}, "at most 6 of 8 images (identity.json)"),
        (lambda e: e[:7], {}, "in 2 of 2 files, at most 1 of 8 images"),
        (
            changed(score=lambda s: 10 * s - 2),
            {},
            "scores are not between 0 and 1 (-0.6 to 7). They are used as they are: write",
        ),
        (lambda _: far_boxes(), {}, "7 of 16 boxes reach beyond their image: were they made on images of"),
        (lambda e: [*e, e[-1]], {}, "2 entries are written more than once"),
        (as_corners, {"boxes": "xywh"}, "boxes: xywh may be wrong: as xywh they hit 0 of 4"),
        (lambda e: [*e, {**e[0], "image_id": 99}], {"unknown_images": "ignore"}, ""),
    ],
)
def test_what_may_be_meant_is_said_everywhere(coco: GoodStudy, spoil: Any, options: Any, words: str) -> None:
    record(coco, spoil, **options).adverse("plan").expect(0, words)
    coco.adverse().expect(0, words)
    assert words in " ".join(coco.summary()["warnings"])
    manifest = json.loads((coco.run / "manifest.json").read_text())
    assert words in " ".join(manifest["warnings"])
    assert words in (coco.run / "report.html").read_text()


def test_a_part_of_the_data_may_be_asked_of_files_for_all_of_it(coco: GoodStudy) -> None:
    coco.study["data"]["test_frames"] = 4
    record(coco, list).adverse("plan").expect(0)


def test_a_system_that_cuts_its_scores_is_told(coco: GoodStudy) -> None:
    def crowded(entries: Entries) -> Entries:
        weak = [{**entry, "score": 0.2 + n / 1000} for n in range(16) for entry in entries[4:]]
        for n, entry in enumerate(weak):
            entry["bbox"] = [1 + n % 40, 1 + n // 4, 9, 9]
        return [*entries[:4], *weak]

    record(coco, crowded).adverse().expect(
        0, "none of its 136 detections scores below 0.2, so its curves end"
    )
    assert coco.summary()["scores"] == {"vendor": {"lowest": pytest.approx(0.2), "detections": 136}}

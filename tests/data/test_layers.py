"""Polygons drawn from back to front tell what is hidden; parts of label maps serve as objects."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from adverse.data.cityscapes import cityscapes
from adverse.data.cityscapes_layers import NO_ORDER, NUMBERS, PolygonLayers
from adverse.data.folder import folder
from adverse.data.images import ImageFile, ImagePolicy
from adverse.errors import DataError, StudyError
from adverse.semantic import Resources
from pictures import SHARED

WIDTH, HEIGHT = 96, 64
IDS = {"road": 7, "parking": 9, "sky": 23, "vegetation": 21, "ego vehicle": 1, "person": 24, "car": 26}
Rectangle = tuple[str, int, int, int, int]
"""What it is, and its first and last column and row."""
STREET: list[Rectangle] = [("sky", 0, 0, 95, 31), ("road", 0, 32, 95, 63)]
REAL = SHARED / "data/cityscapes_format_from_coco"


def written(path: Path, rectangles: list[Rectangle]) -> Path:
    objects: list[dict[str, Any]] = [
        {"label": label, "polygon": [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]}
        for label, x0, y0, x1, y1 in rectangles
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"imgWidth": WIDTH, "imgHeight": HEIGHT, "objects": objects}))
    return path


def layers_of(folder: Path, rectangles: list[Rectangle]) -> NDArray[np.int32] | None:
    image = ImageFile(folder / "image.png", ImagePolicy(), (WIDTH, HEIGHT))
    layers = PolygonLayers(written(folder / "polygons.json", rectangles), image)()
    return None if (layers == NO_ORDER).all() else layers


def slowly(rectangles: list[Rectangle]) -> NDArray[np.int32]:
    """Pixel by pixel: of all that lies below the last rectangle, the last object."""
    behind = np.zeros((HEIGHT, WIDTH), np.int32)
    for row in range(HEIGHT):
        for column in range(WIDTH):
            counts: Counter[str] = Counter()
            stack = []
            for label, x0, y0, x1, y1 in rectangles:
                number = NUMBERS.get(label, 0) * 1000 + counts[label] if label in NUMBERS else 0
                counts[label] += 1
                if x0 <= column <= x1 and y0 <= row <= y1 and label != "license plate":
                    stack.append(number)
            behind[row, column] = next((number for number in reversed(stack[:-1]) if number), 0)
    return behind


COLUMNS, ROWS = st.integers(-5, WIDTH + 5), st.integers(-5, HEIGHT + 5)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["car", "person", "vegetation", "license plate"]), COLUMNS, ROWS, COLUMNS, ROWS
        ),
        max_size=6,
    )
)
def test_what_is_behind_is_what_a_slow_painter_covered(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Rectangle]
) -> None:
    rectangles: list[Rectangle] = [*STREET, ("car", 20, 20, 60, 50)]
    for label, a, b, c, d in drawn:
        rectangles.append((label, min(a, c), min(b, d), max(a, c), max(b, d)))
    found = layers_of(tmp_path_factory.mktemp("layers"), rectangles)
    assert found is not None, "the car lies on sky and road"
    np.testing.assert_array_equal(found, slowly(rectangles))


def test_polygons_traced_from_maps_have_no_order(tmp_path: Path) -> None:
    """They share borders, and one may lie in a hole of another."""
    assert layers_of(tmp_path, [*STREET, ("car", 20, 40, 50, 55), ("person", 51, 40, 60, 60)]) is None
    assert layers_of(tmp_path, [*STREET, ("car", 20, 22, 50, 55)]) is not None


@pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/data/cityscapes_format_from_coco")
def test_the_traced_sample_has_no_order() -> None:
    sources = [frame.behind for log in cityscapes(REAL).logs for frame in log.frames]
    assert len(sources) == 10
    assert all(source is not None and (source() == NO_ORDER).all() for source in sources)


def city(root: Path, rectangles: list[Rectangle]) -> Path:
    """Write an image with the maps that drawing the rectangles in order gives."""
    labels, ids = np.zeros((HEIGHT, WIDTH), np.uint8), np.zeros((HEIGHT, WIDTH), np.uint16)
    counts: Counter[str] = Counter()
    for label, x0, y0, x1, y1 in rectangles:
        inside = np.s_[y0 : y1 + 1, x0 : x1 + 1]
        labels[inside] = IDS[label]
        ids[inside] = NUMBERS[label] * 1000 + counts[label] if label in NUMBERS else IDS[label]
        counts[label] += 1
    stem = root / "gtFine/val/a/a_000000_000019_gtFine"
    written(Path(f"{stem}_polygons.json"), rectangles)
    image = root / "leftImg8bit/val/a/a_000000_000019_leftImg8bit.png"
    image.parent.mkdir(parents=True)
    cv2.imwrite(str(image), np.full((HEIGHT, WIDTH, 3), 90, np.uint8))
    cv2.imwrite(f"{stem}_labelIds.png", labels)
    cv2.imwrite(f"{stem}_instanceIds.png", ids)
    return root


@pytest.mark.parametrize(
    ("before", "hidden"),
    [
        ([("vegetation", 0, 46, 95, 58)], {26000}),  # a hedge before the first car
        ([("parking", 0, 51, 95, 60)], set()),  # where it stands: void, and no wall
        ([("person", 26, 35, 33, 60), ("ego vehicle", 60, 36, 95, 63)], {26000, 26001}),
    ],
)
def test_a_donor_is_covered_where_a_later_polygon_is(
    tmp_path: Path, before: list[Rectangle], hidden: set[int]
) -> None:
    cars: list[Rectangle] = [("car", 20, 20, 45, 50), ("car", 60, 20, 80, 44)]
    data = cityscapes(city(tmp_path / "city", [*STREET, *cars, *before]))
    resources = Resources.build(data, tmp_path / "cache")
    found = {int(car.id.rpartition("#")[2]): car.occluded for car in resources if car.class_name == "car"}
    assert found == {number: number in hidden for number in (26000, 26001)}


def test_parts_of_label_maps_are_objects(tmp_path: Path) -> None:
    cars: list[Rectangle] = [("car", 20, 30, 45, 50), ("car", 60, 30, 80, 44), ("person", 3, 30, 9, 60)]
    root = city(tmp_path / "city", [*STREET, *cars])
    stem = root / "gtFine/val/a/a_000000_000019_gtFine"
    Path(f"{stem}_instanceIds.png").unlink()
    data = cityscapes(root, instances="from_labels")
    frame = data.logs[0].frames[0]
    assert frame.labels is not None
    assert frame.instances is not None
    parts, labels = frame.instances(), frame.labels()
    assert set(np.unique(parts)) == {0, 24001, 26001, 26002}
    for thing in (24, 26):
        wanted, count = ndimage.label(labels == thing, np.ones((3, 3)))
        assert np.array_equal(np.where(labels == thing, parts - 1000 * thing, 0), wanted)
        assert count == len(np.unique(parts[labels == thing]))
    assert frame.truth.boxes.tolist() == [[3, 30, 10, 61], [20, 30, 46, 51], [60, 30, 81, 45]]
    with pytest.raises(StudyError, match="masks are read from instance maps"):
        cityscapes(root, instances="from_labels", instance_masks=True)

    plain = tmp_path / "plain"
    for kind, source in (("images", f"{stem}_labelIds.png"), ("labels", f"{stem}_labelIds.png")):
        (plain / "a" / kind).mkdir(parents=True)
        (plain / "a" / kind / "1.png").write_bytes(Path(source).read_bytes())
    (plain / "pixel_classes.json").write_text('{"7": "road", "24": "person", "26": "car"}')
    read = folder(plain, instances="from_labels").logs[0].frames[0].instances
    assert read is not None
    assert np.array_equal(read(), parts)
    only = folder(plain, instances="from_labels", things=["person"]).logs[0].frames[0].instances
    assert only is not None
    assert set(np.unique(only())) == {0, 24001}
    with pytest.raises(DataError, match="no pixel class has objects"):
        folder(plain, instances="from_labels", things=["wagon"])

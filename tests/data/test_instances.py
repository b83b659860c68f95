from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from adverse.data.cityscapes import cityscapes
from adverse.data.folder import folder
from adverse.data.images import ImageFile, ImagePolicy
from adverse.data.maps import InstanceFile
from adverse.data.voc import voc
from adverse.errors import DataError

IDS = np.array([[0, 26, 26001], [24, 24007, 0]], np.uint16)
XML = "<annotation><size><width>3</width><height>2</height></size></annotation>"


def written(path: Path, array: NDArray[np.uint8] | NDArray[np.uint16]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), array)
    return path


def image_file(folder: Path) -> ImageFile:
    return ImageFile(written(folder / "image.png", np.zeros((2, 3, 3), np.uint8)), ImagePolicy())


def test_cityscapes_objects_are_told_apart_and_groups_are_none(tmp_path: Path) -> None:
    base, name = tmp_path / "gtFine" / "val" / "bonn", "bonn_000001_000019"
    written(
        tmp_path / "leftImg8bit" / "val" / "bonn" / f"{name}_leftImg8bit.png", np.zeros((2, 3, 3), np.uint8)
    )
    written(base / f"{name}_gtFine_instanceIds.png", IDS)
    (log,) = cityscapes(tmp_path).logs
    read = log.frames[0].instances
    assert read is not None
    assert read().tolist() == [[0, 0, 26001], [0, 24007, 0]]
    assert read().dtype == np.int32


def test_masks_of_cityscapes_are_the_pixels_of_its_maps(tmp_path: Path) -> None:
    base, name = tmp_path / "gtFine" / "val" / "bonn", "bonn_000001_000019"
    image = np.zeros((3, 4, 3), np.uint8)
    written(tmp_path / "leftImg8bit" / "val" / "bonn" / f"{name}_leftImg8bit.png", image)
    ids = np.array([[26, 7, 26001, 26001], [24007, 26001, 29001, 3], [26, 26, 8, 29]], np.uint16)
    written(base / f"{name}_gtFine_instanceIds.png", ids)
    truth = cityscapes(tmp_path, instance_masks=True).logs[0].frames[0].truth
    assert truth.masks is not None
    assert truth.void is not None
    pixels = [truth.masks.array(row).tolist() for row in range(len(truth.masks))]
    parts = [np.array([[1, 0, 0, 0], [0] * 4, [0] * 4]), np.array([[0] * 4, [0] * 4, [1, 1, 0, 0]])]
    wanted = [*parts, np.zeros((3, 4)), ids == 24007, ids == 26001, ids == 29001]
    wanted[2] = ids == 29
    assert sorted(pixels) == sorted(np.asarray(mask, bool).tolist() for mask in wanted)
    assert truth.area is not None
    assert truth.area.sum() == np.isin(ids, [26, 29, 24007, 26001, 29001]).sum()
    # Void are the values of classes that are not evaluated; a caravan that is told apart (29001) is not.
    np.testing.assert_array_equal(truth.void.array(0), np.isin(ids, [3, 29]))


def test_a_folder_beside_the_images_tells_objects_apart(tmp_path: Path) -> None:
    written(tmp_path / "a" / "images" / "1.png", np.zeros((2, 3, 3), np.uint8))
    written(tmp_path / "a" / "instances" / "1.png", IDS)
    (log,) = folder(tmp_path).logs
    read = log.frames[0].instances
    assert read is not None
    assert read().tolist() == IDS.tolist()


def test_voc_objects_are_palette_indexes_and_the_border_is_none(tmp_path: Path) -> None:
    written(tmp_path / "JPEGImages" / "1.png", np.zeros((2, 3, 3), np.uint8))
    (tmp_path / "Annotations").mkdir()
    (tmp_path / "Annotations" / "1.xml").write_text(XML)
    (tmp_path / "SegmentationObject").mkdir()
    indexed = Pillow.fromarray(np.array([[0, 1, 255], [2, 2, 0]], np.uint8), mode="L").convert("P")
    indexed.save(tmp_path / "SegmentationObject" / "1.png")
    (log,) = voc(tmp_path).logs
    read = log.frames[0].instances
    assert read is not None
    assert read().tolist() == [[0, 1, 0], [2, 2, 0]]


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.zeros((2, 4), np.uint16), "not of the image's size"),
        (np.zeros((2, 3, 3), np.uint8), "not an 8- or 16-bit gray PNG"),
    ],
)
def test_what_is_no_instance_map_is_refused(tmp_path: Path, array: NDArray[np.uint8], word: str) -> None:
    path = written(tmp_path / "instances.png", array)
    with pytest.raises(DataError, match=word):
        InstanceFile(path, image_file(tmp_path))()

"""Every data format: what is wrong with its files is named, with the place and the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.data.images import write_image
from formats import (
    CAR,
    HEIGHT,
    PEDESTRIAN,
    WIDTH,
    WRITERS,
    nrec_xml,
    picture,
    text,
    voc_object,
    voc_xml,
    write_kitti_odometry,
    write_kitti_raw,
    write_kitti_tracking,
)

from .cases import CANNOT_RUN, INCOMPLETE, PASS
from .command import adverse_here
from .good_study import GoodStudy

UNFIT = 1
KITTI = {"tracking": write_kitti_tracking, "odometry": write_kitti_odometry, "raw": write_kitti_raw}


@dataclass(frozen=True)
class Row:
    """A format (kitti: or its layout), how to spoil its data, the exit code, the words the user must see."""

    format: str
    name: str
    spoil: Callable[[Path], object]
    code: int
    words: tuple[str, ...]


def row(format_name: str, name: str, spoil: Callable[[Path], object], code: int, *words: str) -> Row:
    return Row(format_name, name, spoil, code, words)


def put(name: str, content: str) -> Callable[[Path], object]:
    """Write a file oneself."""
    return lambda root: text(root / name, content)


def bytes_in(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda root: (root / name).write_bytes(content)


def gone(name: str) -> Callable[[Path], object]:
    """Take a file away."""
    return lambda root: (root / name).unlink()


def pixels(name: str, value: int, *, bits: int = 16) -> Callable[[Path], object]:
    """Write a map of one value."""
    image = np.full((HEIGHT, WIDTH), value, np.uint16)
    return lambda root: write_image(root / name, image if bits == 16 else image.astype(np.uint8))


VOC_XML = "Annotations/000002.xml"
NREC_XML = "test/collected/AnnotationsPositiveNegative/Image_2_0_1371967994.526.xml"
LABEL = "training/label_2/000000.txt"
CALIB = "training/calib/000000.txt"
IDS = "gtFine/val/a/a_000000_000019_gtFine_instanceIds.png"
CITY_CAMERA_FILE = "camera/val/a/a_000000_000019_camera.json"

ROWS = (
    row("voc", "good", lambda _: None, PASS, "person"),
    row("voc", "broken XML", put(VOC_XML, "<annotation>\n<object>"), CANNOT_RUN, f"{VOC_XML}, line 2"),
    row("voc", "empty XML", put(VOC_XML, ""), CANNOT_RUN, VOC_XML, "no element found"),
    row("voc", "entities", put(VOC_XML, "<!DOCTYPE a><a/>"), CANNOT_RUN, f"{VOC_XML}, line 1", "DOCTYPE"),
    row(
        "voc",
        "box of words",
        put(VOC_XML, voc_xml(voc_object("person", "a 1 9 9"))),
        CANNOT_RUN,
        "line 3, field xmin",
        "'a'",
    ),
    row(
        "voc",
        "box backwards",
        put(VOC_XML, voc_xml(voc_object("person", "9 1 3 9"))),
        UNFIT,
        "the box of a person has no size",
        "000002.xml, line 3",
        "Correct the box",
    ),
    row(
        "voc",
        "box outside",
        put(VOC_XML, voc_xml(voc_object("person", "90 1 99 9"))),
        UNFIT,
        "is outside the image",
    ),
    row("voc", "another size", put(VOC_XML, voc_xml(width=99)), UNFIT, "size differs from the annotations"),
    row("voc", "image missing", gone("JPEGImages/000002.jpg"), UNFIT, "image file is missing", "000002.jpg"),
    row(
        "voc",
        "image broken",
        bytes_in("JPEGImages/000002.jpg", b"GIF"),
        UNFIT,
        "not an image of a supported format",
    ),
    row("voc", "not UTF-8", bytes_in(VOC_XML, b"<annotation>\xff</annotation>"), CANNOT_RUN, "line 1"),
    row(
        "voc", "two images", lambda r: picture(r / "JPEGImages/000002.png"), CANNOT_RUN, "two files belong to"
    ),
    row("yolo", "good", lambda _: None, PASS, "person"),
    row("yolo", "pixels", put("labels/train/1.txt", "0 9 9 5 5\n"), CANNOT_RUN, "1.txt, line 1", "0 to 1"),
    row("yolo", "four words", put("labels/train/1.txt", "0 .1 .1 .1\n"), CANNOT_RUN, "1.txt, line 1"),
    row("yolo", "no such class", put("labels/train/1.txt", "7 .5 .5 .1 .1"), CANNOT_RUN, "class 7"),
    row("yolo", "no size", put("labels/train/1.txt", "0 .5 .5 0 .1"), UNFIT, "has no size", "1.txt, line 1"),
    row("yolo", "broken YAML", put("data.yaml", "names: ["), CANNOT_RUN, "data.yaml, line 1", "valid YAML"),
    row("yolo", "no names", put("data.yaml", "val: images/val\n"), CANNOT_RUN, "data.yaml, field names"),
    row(
        "yolo",
        "through a symlink",
        put("data.yaml", "val: /etc\nnames: [a]\n"),
        CANNOT_RUN,
        "field val",
        "absolute",
    ),
    row(
        "yolo",
        "no folder",
        put("data.yaml", "val: nowhere\nnames: [a]\n"),
        CANNOT_RUN,
        "field val",
        "does not exist",
    ),
    row(
        "yolo",
        "image broken",
        bytes_in("images/val/3.png", b"x"),
        UNFIT,
        "not an image of a supported format",
        "3.png",
    ),
    row("nrec", "good", lambda _: None, PASS, "person"),
    row(
        "nrec", "broken XML", put(NREC_XML, "<annotation"), CANNOT_RUN, "Image_2_0_1371967994.526.xml, line 1"
    ),
    row(
        "nrec",
        "another name",
        put("test/collected/AnnotationsPositiveNegative/7.xml", nrec_xml()),
        CANNOT_RUN,
        "7.xml",
        "Image_<camera>",
    ),
    row("kitti", "good", lambda _: None, PASS, "Pedestrian"),
    row(
        "kitti",
        "type",
        put(LABEL, PEDESTRIAN.replace("Ped", "Pad")),
        CANNOT_RUN,
        f"{LABEL}, line 1",
        "Padest",
    ),
    row("kitti", "word", put(LABEL, CAR.replace("15.0", "far")), CANNOT_RUN, f"{LABEL}, line 1", "'far'"),
    row("kitti", "words missing", put(LABEL, "Car 0 0\n"), CANNOT_RUN, f"{LABEL}, line 1", "3 words"),
    row("kitti", "no labels", gone(LABEL), CANNOT_RUN, "image_2/000000.png", "an unlabelled image"),
    row(
        "kitti", "box backwards", put(LABEL, CAR.replace("1 20 9", "9 20 1")), UNFIT, "has no size", "line 1"
    ),
    row("kitti", "empty calibration", put(CALIB, ""), CANNOT_RUN, "000000.txt", "has no P2"),
    row("kitti", "calibration", put(CALIB, "P2: 1 2 3\n"), CANNOT_RUN, f"{CALIB}, line 1", "3 numbers"),
    row(
        "kitti",
        "scan cut off",
        bytes_in("training/velodyne/000000.bin", b"x"),
        PASS,
        "1 x the velodyne file is empty or truncated",
        "000000.bin",
    ),
    row("tracking", "good", lambda _: None, PASS, "Pedestrian"),
    row("tracking", "no frame", put("label_02/0000.txt", PEDESTRIAN), CANNOT_RUN, "0000.txt, line 1"),
    row("tracking", "oxts", put("oxts/0000.txt", "1 2 3\n"), CANNOT_RUN, "0000.txt, line 1", "3 numbers"),
    row("tracking", "no image", gone("image_02/0000/000001.png"), UNFIT, "missing", "missing_images: skip"),
    row("odometry", "poses", put("poses/04.txt", "1 2\n"), CANNOT_RUN, "poses/04.txt, line 1", "12 numbers"),
    row("odometry", "times", put("sequences/04/times.txt", "1\n0\n"), CANNOT_RUN, "times.txt, line 2"),
    row("odometry", "unlabelled", lambda _: None, PASS, "recall cannot be measured; agreement can"),
    row(
        "raw",
        "calibration",
        put("2011_09_26/calib_velo_to_cam.txt", "R: 1\n"),
        CANNOT_RUN,
        "calib_velo_to_cam.txt, line 1",
    ),
    row("cityscapes", "good", lambda _: None, PASS, "person"),
    row("cityscapes", "instance id", pixels(IDS, 999), CANNOT_RUN, IDS, "instance id 999"),
    row(
        "cityscapes", "not a map", bytes_in(IDS, b"x"), CANNOT_RUN, IDS, "not an image of a supported format"
    ),
    row("cityscapes", "no map", gone(IDS), CANNOT_RUN, "has no annotation", "set boxes:"),
    row("cityscapes", "camera", put(CITY_CAMERA_FILE, "{"), CANNOT_RUN, CITY_CAMERA_FILE, "line 1 column"),
    row(
        "cityscapes",
        "disparity",
        pixels("disparity/val/a/a_000000_000019_disparity.png", 9, bits=8),
        PASS,
        "1 x the disparity is not a 16-bit gray PNG",
    ),
    row(
        "cityscapes",
        "labels",
        pixels("gtFine/val/a/a_000000_000019_gtFine_labelIds.png", 9),
        PASS,
        "1 x the label map is not an 8-bit gray PNG",
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.format} {row.name}" for row in ROWS])
def test_data_check_names_it(row: Row, tmp_path: Path) -> None:
    write = KITTI.get(row.format) or WRITERS[row.format]
    root = write(tmp_path / "data")
    row.spoil(root)
    format_name = "kitti" if row.format in KITTI else row.format
    adverse_here("data", "check", root, "--format", format_name).expect(row.code, *row.words)


STUDIES: dict[str, tuple[list[str], dict[str, Any], int]] = {
    "cityscapes": (
        ["image", "located", "path", "loop"],
        {"logs": "sequence", "split": {"test": "val"}},
        INCOMPLETE,
    ),
    "kitti": (["image", "located"], {"class_map": {"Pedestrian": "person"}}, PASS),
    "tracking": (["image", "located", "path", "loop"], {"class_map": {"Pedestrian": "person"}}, PASS),
    "nrec": (["image"], {}, INCOMPLETE),
    "voc": (["image"], {}, PASS),
    "yolo": (["image"], {}, PASS),
}
"""Levels, options, and how it ends: two of the samples have no negative log, so no efficiency."""


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_every_format_runs(name: str, tmp_path: Path) -> None:
    levels, options, code = STUDIES[name]
    root = (KITTI.get(name) or WRITERS[name])(tmp_path / "data")
    study = GoodStudy(tmp_path / "study", "coco")
    format_name = "kitti" if name in KITTI else name
    study.study["data"] = {"format": format_name, "root": str(root), **options}
    if len(levels) > 1:
        study.study.update(levels=levels, invalid_depth="nearest")
        study.study["mutations"] = ["haze(visibility_m=50)", "defocus(focus_m=5, kappa=2)"]
        study.study["robot"] = {"control_radius_m": 2.0, "safety_radius_m": 1.0}
    said = study.adverse()
    assert said.code == code, said.text
    assert "error:" not in said.text
    assert {row["quarantined"] for row in study.summary()["rows"]} == {0}

"""Tiny data sets of every format, for tests to read and to spoil."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pil

from adverse.data.images import write_image

WIDTH, HEIGHT = 64, 48


def picture(path: Path, *, width: int = WIDTH, height: int = HEIGHT) -> None:
    """Write an image file, its folders too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(list(f"{path.parent.name}{path.name}".encode()))
    image = rng.integers(0, 255, (height, width, 3)).astype(np.uint8)
    write_image(path, image)


def text(path: Path, content: str) -> None:
    """Write a text file, its folders too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def voc_object(name: str, box: str = "11 6 30 40", difficult: int | None = 0, more: str = "") -> str:
    """Return an <object> of VOC's XML."""
    sides = zip(("xmin", "ymin", "xmax", "ymax"), box.split(), strict=True)
    corners = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
    flag = "" if difficult is None else f"<difficult>{difficult}</difficult>"
    return f"<object><name>{name}</name>{flag}<bndbox>{corners}</bndbox>{more}</object>\n"


def voc_xml(*objects: str, source: str = "", width: int = WIDTH) -> str:
    """Return an annotation file of VOC."""
    size = f"<size><width>{width}</width><height>{HEIGHT}</height><depth>3</depth></size>\n"
    return f"<annotation>\n{source}{size}{''.join(objects)}</annotation>\n"


def write_voc(root: Path) -> Path:
    """Write four images: a person, a hard person with a dog, nothing, and a label map for the first."""
    for number in range(1, 5):
        picture(root / "JPEGImages" / f"{number:06}.jpg")
    contents = {
        1: voc_xml(voc_object("person", "1 1 10 20")),
        2: voc_xml(voc_object("person", difficult=1), voc_object("dog", "2 3 9 8", difficult=None)),
        3: voc_xml(),
        4: voc_xml(voc_object("person", "60 40 70 48")),
    }
    for number, content in contents.items():
        text(root / "Annotations" / f"{number:06}.xml", content)
    text(root / "ImageSets/Main/val.txt", "000001\n000002\n")
    text(root / "ImageSets/Main/test.txt", "000003  1\n\n000004 -1\n")
    text(root / "ImageSets/Main/train.txt", "")
    (root / "SegmentationClass").mkdir()
    stored = np.zeros((HEIGHT, WIDTH), np.uint8)
    stored[:20, :10] = 15
    stored[20, :10] = 255
    mask = Pil.fromarray(stored, "P")
    mask.putpalette([value for index in range(256) for value in (index, 255 - index, 7)])
    mask.save(root / "SegmentationClass/000001.png")
    return root


YOLO_YAML = "path: .\ntrain: images/train\nval: images/val\nnames: {0: person, 1: dog}\nnc: 2\n"


def write_yolo(root: Path) -> Path:
    """Write four images: a person, a dog's outline, an empty label file, none at all."""
    text(root / "data.yaml", YOLO_YAML)
    for name in ("train/1", "train/2", "val/3", "val/4"):
        picture(root / "images" / f"{name}.png")
    text(root / "labels/train/1.txt", "0 0.5 0.5 0.25 0.5\n")
    text(root / "labels/train/2.txt", "1 0.25 0.25 0.5 0.25 0.5 0.75\n\n0 0.1 0.1 0.1 0.1\n")
    text(root / "labels/val/3.txt", "")
    return root


def nrec_xml(*objects: str, log: str = "2013-StandingPerson", place: str = "DevilsGrove") -> str:
    """Return an annotation file of the NREC data set."""
    source = f"<source><image>{log}</image><database>{place}</database></source>\n"
    return voc_xml(*objects, source=source)


def write_nrec(root: Path) -> Path:
    """Write two test logs and a validation image; the names are in the style of the data set's."""
    person, hard = voc_object("person", "1 1 41 41"), voc_object("person", "1 1 61 46", difficult=1)
    part = voc_object("person-part", "1 1 21 41")
    moving = {"log": "2014-MovingPerson", "place": "Soergel"}
    contents = {
        "test/Image_2_0_1371967994.526": nrec_xml(person),
        "test/Image_2_0_1371967994.426": nrec_xml(hard),
        "test/Image_0_0_1447077751.328": nrec_xml(part, **moving),
        "test/Image_0_0_1447077751.461": nrec_xml(**moving),
        "val/Image_2_0_1371967000.1": nrec_xml(voc_object("person", "1 1 61 61"), log="2013-PersonLying"),
    }
    for name, content in contents.items():
        split, stem = name.split("/")
        text(root / split / "collected/AnnotationsPositiveNegative" / f"{stem}.xml", content)
        picture(root / split / "collected/ImagesPositiveNegative" / f"{stem}.png")
    return root


FX = 50.0
KITTI_CALIB = """P0: 50 0 32 0 0 50 24 0 0 0 1 0
P1: 50 0 32 -25 0 50 24 0 0 0 1 0
P2: 50 0 32 3 0 50 24 0 0 0 1 0
P3: 50 0 32 -22 0 50 24 0 0 0 1 0
R0_rect: 1 0 0 0 1 0 0 0 1
Tr_velo_to_cam: 0 -1 0 0 0 0 -1 -0.08 1 0 0 -0.27
Tr_imu_to_velo: 1 0 0 -0.8 0 1 0 0.3 0 0 1 -0.8
"""
"""Cameras 6 cm beside the reference, half a metre apart; the scanner 8 cm above and 27 cm behind them."""
PEDESTRIAN = "Pedestrian 0.00 0 0.1 20 10 30 40 1.8 0.5 0.5 -1.0 1.6 8.0 0.1"
SITTING = "Person_sitting 0.00 1 0.1 40 10 50 40 1.2 0.5 0.5 1.0 1.6 12.0 0.1"
CAR = "Car 0.40 2 0.1 1 20 9 44 1.5 1.6 4.0 -5.0 1.6 15.0 0.1"
DONT_CARE = "DontCare -1 -1 -10 50 1 60 9 -1 -1 -1 -1000 -1000 -1000 -10"


def scan(path: Path, ahead_m: float = 10.0) -> None:
    """Write a laser scan of a wall ahead of the scanner."""
    y, z = np.meshgrid(np.linspace(-6, 6, 61), np.linspace(-4, 4, 41))
    wall = np.stack([np.full(y.size, ahead_m), y.ravel(), z.ravel(), np.zeros(y.size)], axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(wall.astype("<f4").tobytes())


def write_kitti(root: Path) -> Path:
    """Write three object images: people, cars and a region nobody looked at; nothing; a car alone."""
    base = root / "training"
    labels = [f"{PEDESTRIAN}\n{SITTING}\n{DONT_CARE}\n", "", f"{CAR}\n"]
    for number, label in enumerate(labels):
        picture(base / f"image_2/{number:06}.png")
        picture(base / f"image_3/{number:06}.png")
        scan(base / f"velodyne/{number:06}.bin")
        text(base / f"calib/{number:06}.txt", KITTI_CALIB)
        text(base / f"label_2/{number:06}.txt", label)
    return root


def oxts(number: int, *, step_deg: float = 1e-5) -> str:
    """Return an OXTS line of a car that drives to the north-east."""
    latitude = 49 + number * step_deg * np.cos(np.radians(49))
    rest = " ".join(["0"] * 24)
    return f"{latitude} {8 + number * step_deg} 110 0 0 {np.pi / 4} {rest}\n"


def write_kitti_tracking(root: Path) -> Path:
    """Write a sequence of four frames with a person in all but the third, and one of two with nobody."""
    for name, count in (("0000", 4), ("0001", 2)):
        for number in range(count):
            picture(root / f"image_02/{name}/{number:06}.png")
            scan(root / f"velodyne/{name}/{number:06}.bin", ahead_m=3.27)
        text(root / f"calib/{name}.txt", KITTI_CALIB)
        text(root / f"oxts/{name}.txt", "".join(oxts(number) for number in range(count)))
    near = PEDESTRIAN.replace("8.0 0.1", "3.0 0.1")
    lines = [f"{number} 1 {near}\n" for number in (0, 1, 3)]
    text(root / "label_02/0000.txt", "".join([*lines, f"2 -1 {DONT_CARE}\n"]))
    text(root / "label_02/0001.txt", f"0 1 {CAR}\n")
    return root


def write_kitti_odometry(root: Path) -> Path:
    """Write a sequence of three stereo frames that moves 1 m forward each time."""
    folder = root / "sequences/04"
    for number in range(3):
        for camera in (2, 3):
            picture(folder / f"image_{camera}/{number:06}.png")
        scan(folder / f"velodyne/{number:06}.bin")
    text(folder / "calib.txt", KITTI_CALIB.partition("R0")[0] + "Tr: 0 -1 0 0 0 0 -1 -0.08 1 0 0 -0.27\n")
    text(folder / "times.txt", "0\n0.1\n0.2\n")
    text(root / "poses/04.txt", "".join(f"1 0 0 0 0 1 0 0 0 0 1 {number}\n" for number in range(3)))
    return root


def write_kitti_raw(root: Path) -> Path:
    """Write a drive of three frames."""
    day = root / "2011_09_26"
    rows = {line.split(":")[0]: line.split(": ")[1] for line in KITTI_CALIB.splitlines()}
    text(
        day / "calib_cam_to_cam.txt",
        f"calib_time: 09-Jan-2012 13:57:47\nR_rect_00: {rows['R0_rect']}\n"
        f"P_rect_02: {rows['P2']}\nP_rect_03: {rows['P3']}\n",
    )
    text(day / "calib_velo_to_cam.txt", "R: 0 -1 0 0 0 -1 1 0 0\nT: 0 -0.08 -0.27\ndelta_f: 0 0\n")
    text(day / "calib_imu_to_velo.txt", "R: 1 0 0 0 1 0 0 0 1\nT: -0.8 0.3 -0.8\n")
    drive = day / "2011_09_26_drive_0001_sync"
    for number in range(3):
        picture(drive / f"image_02/data/{number:010}.png")
        picture(drive / f"image_03/data/{number:010}.png")
        scan(drive / f"velodyne_points/data/{number:010}.bin")
        text(drive / f"oxts/data/{number:010}.txt", oxts(number))
    clock = ("13:02:59.904389445", "13:03:00.004389445", "13:03:00.104389445")
    text(drive / "image_02/timestamps.txt", "".join(f"2011-09-26 {time}\n" for time in clock))
    return root


def tracklet(kind: str, first: int, poses: list[str], size: str = "1.8 0.6 0.6") -> str:
    """Return an <item> of tracklet_labels.xml; a pose is "x y z left occlusion truncation" by the scanner."""
    sides = "".join(f"<{side}>{value}</{side}>" for side, value in zip("hwl", size.split(), strict=True))
    rows = []
    for pose in poses:
        names = ("tx", "ty", "tz", "rz", "occlusion", "truncation")
        pairs = zip(names, pose.split(), strict=True)
        inside = "".join(f"<{name}>{value}</{name}>" for name, value in pairs)
        rows.append(f"<item><rx>0</rx><ry>0</ry>{inside}<state>2</state></item>\n")
    listed = f"<count>{len(poses)}</count><item_version>2</item_version>\n{''.join(rows)}"
    return (
        f'<item class_id="1"><objectType>{kind}</objectType>{sides}<first_frame>{first}</first_frame>\n'
        f"<poses>{listed}</poses><finished>1</finished></item>\n"
    )


def tracklet_xml(*items: str) -> str:
    """Return a tracklet_labels.xml, as a boost archive has it."""
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes" ?>\n<!DOCTYPE boost_serialization>\n'
        '<boost_serialization signature="serialization::archive" version="9">\n'
        f'<tracklets class_id="0"><count>{len(items)}</count><item_version>1</item_version>\n'
        f"{''.join(items)}</tracklets>\n</boost_serialization>\n"
    )


def seqinfo(name: str, frames: int, **changes: object) -> str:
    """Return a seqinfo.ini of the MOT Challenge."""
    values = {"name": name, "imDir": "img1", "frameRate": 25, "seqLength": frames}
    values |= {"imWidth": WIDTH, "imHeight": HEIGHT, "imExt": ".jpg", **changes}
    return "[Sequence]\n" + "".join(f"{key}={value}\n" for key, value in values.items())


MOT_ROWS = (
    "1,3,11,5,20,30,1,1,1\n2,3,12,5,20,30,1,1,0.4\n2,8,1,1,5,5,0,1,1\n"  # a pedestrian, and an ignored one
    "2,4,31,9,20,30,0,3,1\n"  # a car: the challenge evaluates none
    "3,9,41,9,10,20,0,7,1\n"  # somebody who sits
)


def write_mot(root: Path) -> Path:
    """Write two sequences of three frames, one of them once more for another detector."""
    for name, rows in (("MOT17-02-DPM", MOT_ROWS), ("MOT17-02-SDP", MOT_ROWS), ("MOT17-04-DPM", "")):
        for number in range(1, 4):
            picture(root / name / f"img1/{number:06}.jpg")
        text(root / name / "gt/gt.txt", rows)
        text(root / name / "seqinfo.ini", seqinfo(name, 3))
    return root


CITY_CAMERA = {
    "extrinsic": {"baseline": 0.2, "x": 1.7, "y": 0.1, "z": 1.2, "yaw": 0.0, "pitch": 0.0, "roll": 0.0},
    "intrinsic": {"fx": 50.0, "fy": 50.0, "u0": 32.0, "v0": 24.0},
}


def city_vehicle(metres: float) -> dict[str, float]:
    """Return a vehicle that has driven so far to the east."""
    degrees = np.degrees(metres / (6371000 * np.cos(np.radians(50))))
    return {"gpsHeading": 90.0, "gpsLatitude": 50.0, "gpsLongitude": 8 + float(degrees), "speed": 10.0}


def city_ids() -> NDArray[np.uint16]:
    """Return an instance map: road, two people, a group in two places, a car, a trailer."""
    ids = np.full((HEIGHT, WIDTH), 7, np.uint16)
    ids[10:30, 5:12] = 24000
    ids[12:32, 20:28] = 24001
    ids[5:9, 40:44] = ids[5:9, 50:56] = 24
    ids[30:44, 34:60] = 26000
    ids[40:46, 2:8] = 30000
    return ids


def city_polygons() -> dict[str, Any]:
    """Return what the same scene looks like in polygons, the second person standing behind the first."""
    shapes = [
        ("road", [[0, 0], [63, 0], [63, 47], [0, 47]]),
        ("person", [[5, 10], [11, 10], [11, 29], [5, 29]]),
        ("person", [[8, 12], [27, 12], [27, 31]]),
        ("persongroup", [[40, 5], [43, 5], [43, 8], [40, 8]]),
        ("car", [[34, 30], [70, 30], [70, 43], [34, 43]]),
    ]
    objects = [{"label": label, "polygon": polygon} for label, polygon in shapes]
    gone = {"label": "person", "polygon": [[0, 0], [1, 1], [2, 0]], "deleted": 1}
    return {"imgHeight": HEIGHT, "imgWidth": WIDTH, "objects": [*objects, gone]}


def write_cityscapes(root: Path) -> Path:
    """Write two images of one sequence with all that can lie beside them, and one with nothing on it."""
    names = ("val/a/a_000000_000019", "val/a/a_000000_000039", "train/b/b_000001_000019")
    for number, place in enumerate(names):
        city, _, name = place.rpartition("/")
        picture(root / f"leftImg8bit/{city}/{name}_leftImg8bit.png")
        picture(root / f"rightImg8bit/{city}/{name}_rightImg8bit.png")
        ids = city_ids() if number < 2 else np.full((HEIGHT, WIDTH), 7, np.uint16)
        for kind in ("gtFine", "disparity"):
            (root / kind / city).mkdir(parents=True, exist_ok=True)
        write_image(root / f"gtFine/{city}/{name}_gtFine_instanceIds.png", ids)
        kinds = np.where(ids >= 1000, ids // 1000, ids).astype(np.uint8)
        write_image(root / f"gtFine/{city}/{name}_gtFine_labelIds.png", kinds)
        text(root / f"gtFine/{city}/{name}_gtFine_polygons.json", json.dumps(city_polygons()))
        disparity = np.full((HEIGHT, WIDTH), 1 + 256, np.uint16)
        disparity[0] = (0,) * 32 + (1,) * 32
        write_image(root / f"disparity/{city}/{name}_disparity.png", disparity)
        text(root / f"camera/{city}/{name}_camera.json", json.dumps(CITY_CAMERA))
        text(root / f"vehicle/{city}/{name}_vehicle.json", json.dumps(city_vehicle(12.0 * number)))
    return root


WRITERS: dict[str, Callable[[Path], Path]] = {
    "cityscapes": write_cityscapes,
    "kitti": write_kitti,
    "nrec": write_nrec,
    "voc": write_voc,
    "yolo": write_yolo,
}
"""Format by format: writes a good data set below a folder that does not exist, and returns its root."""

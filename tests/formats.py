"""Tiny data sets of every format, for tests to read and to spoil."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image as Pil

from adverse.data.write import write_image

WIDTH, HEIGHT = 64, 48


def picture(path: Path, *, width: int = WIDTH, height: int = HEIGHT) -> None:
    """Write an image file, its folders too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = np.random.default_rng(len(path.name)).integers(0, 255, (height, width, 3)).astype(np.uint8)
    write_image(path, image)


def text(path: Path, content: str) -> None:
    """Write a text file, its folders too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def voc_object(name: str, box: str = "11 6 30 40", difficult: int | None = 0) -> str:
    """Return an <object> of VOC's XML."""
    sides = zip(("xmin", "ymin", "xmax", "ymax"), box.split(), strict=True)
    corners = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
    flag = "" if difficult is None else f"<difficult>{difficult}</difficult>"
    return f"<object><name>{name}</name>{flag}<bndbox>{corners}</bndbox></object>\n"


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


WRITERS: dict[str, Callable[[Path], Path]] = {"nrec": write_nrec, "voc": write_voc, "yolo": write_yolo}
"""Format by format: writes a good data set below a folder that does not exist, and returns its root."""

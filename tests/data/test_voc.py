"""The `voc` format: what is read, and that its boxes are ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adverse.data.strict_xml import read_xml
from adverse.data.voc import looks_like, voc
from adverse.errors import DataError, StudyError
from adverse.types import Dataset, Frame
from formats import HEIGHT, WIDTH, text, voc_object, voc_xml, write_voc


def frames(data: Dataset) -> dict[str, Frame]:
    return {frame.id: frame for log in data.logs for frame in log.frames}


def test_every_annotated_image_is_a_log(tmp_path: Path) -> None:
    data = voc(write_voc(tmp_path / "VOC2007"))
    assert data.name == "VOC2007"
    assert data.categories == ("dog", "person")
    assert [(log.id, log.split) for log in data.logs] == [(f"00000{n}", "test") for n in range(1, 5)]
    assert [frame.fault for frame in frames(data).values()] == [None] * 4
    assert data.notes == {
        "objects marked difficult": 1,
        "boxes marked crowd or ignore": 1,
        "images without annotations": 1,
        "boxes partly outside the image": 1,
    }
    assert frames(data)["000001"].image().shape == (HEIGHT, WIDTH, 3)


def test_boxes_count_from_one_and_hold_their_last_pixel(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    (box,) = frames(voc(root))["000001"].truth.boxes
    labels = frames(voc(root))["000001"].labels
    assert labels is not None
    marked = np.zeros((HEIGHT, WIDTH), bool)
    x0, y0, x1, y1 = box.astype(int)
    marked[y0:y1, x0:x1] = True
    np.testing.assert_array_equal(marked, labels() == 15)  # the mask was painted pixel by pixel


def test_label_maps_are_palette_indexes_not_colours(tmp_path: Path) -> None:
    read = frames(voc(write_voc(tmp_path / "voc")))
    labels = read["000001"].labels
    assert labels is not None
    assert set(np.unique(labels())) == {0, 15, 255}
    assert voc(tmp_path / "voc").pixel_classes[15] == "person"
    assert voc(tmp_path / "voc", pixel_classes={15: "human"}).pixel_classes == {15: "human"}
    assert read["000002"].labels is None


def test_difficult_objects_are_ignored_unless_they_count(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    assert frames(voc(root))["000002"].truth.ignore.tolist() == [True, False]
    assert frames(voc(root, difficult="count"))["000002"].truth.ignore.tolist() == [False, False]


def test_splits_are_the_lists_of_image_sets(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    data = voc(root, split={"validation": "val", "test": "test"})
    assert [(log.id, log.split) for log in data.logs] == [
        ("validation/000001", "validation"),
        ("validation/000002", "validation"),
        ("test/000003", "test"),
        ("test/000004", "test"),
    ]
    assert root / "ImageSets/Main/val.txt" in data.annotations
    assert frames(data)["test/000004"].image_id == "000004"


def test_classes_can_be_renamed(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    assert voc(root, class_map={"dog": "animal"}).categories == ("animal", "person")
    assert voc(root, class_map={"dog": "person"}).categories == ("person",)
    with pytest.raises(StudyError, match="class_map names a class"):
        voc(root, class_map={"dgo": "animal"})


def test_an_image_without_its_file_is_a_fault(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    (root / "JPEGImages/000003.jpg").unlink()
    assert "image file is missing" in str(frames(voc(root))["000003"].fault)


@pytest.mark.parametrize("inner", ["", "VOC2012"])
def test_it_is_recognised(tmp_path: Path, inner: str) -> None:
    root = write_voc(tmp_path / "devkit" / inner)
    assert looks_like(tmp_path / "devkit") == {"root": str(root)}
    assert looks_like(tmp_path) is None


BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]>\n<annotation>&c;</annotation>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>\n<annotation>&b;</annotation>'


@pytest.mark.parametrize("content", [BOMB, OUTSIDE, "<!DOCTYPE annotation><annotation/>"])
def test_no_document_type_is_read(tmp_path: Path, content: str) -> None:
    text(tmp_path / "a.xml", content)
    with pytest.raises(DataError, match="DOCTYPE") as caught:
        read_xml(tmp_path / "a.xml", "annotation")
    assert caught.value.where == f"{tmp_path / 'a.xml'}, line 1"


@pytest.mark.parametrize(
    ("content", "where", "got"),
    [
        ("<annotation>\n<object>\n</annotation>", "line 3", "mismatched tag"),
        ("", "line 1", "no element found"),
        ("<annotation>&nbsp;</annotation>", "line 1", "undefined entity"),
        ("<annotation><size/><size/></annotation>", "line 1, field size", "twice"),
        ("<html/>", "line 1", "<html> outermost"),
        ("<a>" * 40 + "</a>" * 40, "line 1", "nested deeper"),
        ("<?xml version='1.0' encoding='klingon'?><annotation/>", "line 1", "unknown encoding"),
        (voc_xml("<object/>"), "line 3, field object", "no <name>"),
        (voc_xml(voc_object("person", "1 1 x 9")), "line 3, field xmax", "'x'"),
        (voc_xml(voc_object("person", "1 1 nan 9")), "line 3, field xmax", "'nan'"),
        (voc_xml(voc_object("person", difficult=2)), "line 3, field difficult", "'2'"),
        (voc_xml(voc_object("")), "line 3, field name", "nothing"),
        (voc_xml(width=0), "line 2, field width", "'0'"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, content: str, where: str, got: str) -> None:
    root = write_voc(tmp_path / "voc")
    text(root / "Annotations/000002.xml", content)
    with pytest.raises(DataError) as caught:
        voc(root)
    assert caught.value.where == f"{root / 'Annotations/000002.xml'}, {where}"
    assert got in str(caught.value.got)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("box", "words"), [("10 10 9 20", "has no size"), ("70 1 80 9", "is outside the image")]
)
def test_a_bad_box_costs_its_image(tmp_path: Path, box: str, words: str) -> None:
    root = write_voc(tmp_path / "voc")
    text(root / "Annotations/000002.xml", voc_xml(voc_object("person", box)))
    read = frames(voc(root))
    assert words in str(read["000002"].fault)
    assert "000002.xml, line 3" in str(read["000002"].fault)
    assert read["000001"].fault is None


def test_lists_are_checked(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    text(root / "ImageSets/Main/twice.txt", "000001\n000001\n")
    text(root / "ImageSets/Main/lost.txt", "000001\n000009\n")
    for name, got in (("twice", "already on line 1"), ("lost", "'000009'")):
        with pytest.raises(DataError) as caught:
            voc(root, split={"test": name})
        assert caught.value.where == f"{root}/ImageSets/Main/{name}.txt, line 2"
        assert got in str(caught.value.got)
    with pytest.raises(DataError, match="no images"):
        voc(root, split={"test": "train"})
    with pytest.raises(DataError, match="list file is missing"):
        voc(root, split={"test": "nowhere"})
    with pytest.raises(DataError, match="leaves its folder"):
        voc(root, split={"test": "../../../x"})


def test_other_folders_are_not_voc(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="laid out as Pascal VOC"):
        voc(tmp_path)

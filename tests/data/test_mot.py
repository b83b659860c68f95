"""The `mot` format: sequences of the MOT Challenge on a made-up sample in its layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.data.mot import REPEATED, UNLABELLED, looks_like, mot
from adverse.data.mot_file import read_mot
from adverse.errors import DataError, StudyError
from formats import HEIGHT, WIDTH, seqinfo, text, write_mot


def test_sequences_are_logs_with_boxes_tracks_and_times(tmp_path: Path) -> None:
    data = mot(write_mot(tmp_path / "train"))
    assert [log.id for log in data.logs] == ["MOT17-02-DPM", "MOT17-04-DPM"]
    assert data.notes[REPEATED] == 1
    assert data.categories == ("pedestrian",)  # of cars and sitting people nothing counts
    first, second, third = data.logs[0].frames
    assert (first.id, first.image_id, second.time_s) == ("MOT17-02-DPM/000001",) * 2 + (1 / 25,)
    assert first.truth.boxes.tolist() == [[10, 4, 30, 34]]
    assert (second.truth.ids.tolist(), second.truth.ignore.tolist()) == ([3, 8], [False, True])
    assert second.truth.attributes[0] == {"visible": "25 to 50 %"}
    assert third.truth.ignore.tolist() == [True]  # who sits is too like a pedestrian to count
    assert all(frame.fault is None for log in data.logs for frame in log.frames)
    assert first.image.measure() == (WIDTH, HEIGHT)  # type: ignore[attr-defined]
    less = mot(tmp_path / "train", least_visible=0.5).logs[0].frames[1].truth
    assert less.ignore.tolist() == [True, True]


def test_one_sequence_splits_and_other_names(tmp_path: Path) -> None:
    root = write_mot(tmp_path / "mot")
    one = mot(root / "MOT17-02-SDP", class_map={"pedestrian": "person"})
    assert ([log.id for log in one.logs], one.categories) == (["MOT17-02-SDP"], ("person",))
    parts = mot(root, split={"validation": "MOT17-04-DPM", "test": "MOT17-02-DPM"})
    assert [(log.split, log.id) for log in parts.logs] == [
        ("validation", "validation/MOT17-04-DPM"),
        ("test", "test/MOT17-02-DPM"),
    ]
    assert looks_like(root) == {"root": str(root)}
    assert looks_like(tmp_path) is None
    with pytest.raises(StudyError, match="class_map"):
        mot(root, class_map={"person": "pedestrian"})


def test_boxes_of_unknown_tracks_may_share_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "gt.txt"
    path.write_text("1,-1,1,1,10,10,1,1,1\n1,-1,30,1,10,10,1,1,1\n")
    assert len(read_mot(path)[0]) == 2


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    root = write_mot(tmp_path / "mot")
    (root / "MOT17-02-DPM/img1/000002.jpg").unlink()
    frame = mot(root).logs[0].frames[1]
    assert "image file is missing" in str(frame.fault)
    (root / "MOT17-04-DPM/gt/gt.txt").unlink()
    data = mot(root)
    assert ([log.id for log in data.logs], data.notes[UNLABELLED]) == (["MOT17-02-DPM"], 1)
    bare = mot(root / "MOT17-04-DPM")  # alone it is data without labels, as the test sets are
    assert (bare.categories, bare.notes["no labels"]) == ((), 1)
    (root / "MOT17-02-DPM/seqinfo.ini").unlink()
    assert [frame.time_s for frame in mot(root / "MOT17-02-DPM").logs[0].frames] == [None] * 3


def test_in_2020_other_classes_are_neutral(tmp_path: Path) -> None:
    root = write_mot(tmp_path / "mot")
    text(root / "MOT17-04-DPM/gt/gt.txt", "1,1,1,1,9,9,0,6,1\n1,2,1,1,9,9,1,1,1\n")
    (root / "MOT17-04-DPM").rename(root / "MOT20-04")
    assert mot(root / "MOT20-04").logs[0].frames[0].truth.ignore.tolist() == [True, False]
    (root / "MOT20-04").rename(root / "MOT16-04")
    assert mot(root / "MOT16-04").logs[0].frames[0].truth.ignore.tolist() == [False]


@pytest.mark.parametrize(
    ("name", "content", "where", "got"),
    [
        ("seqinfo.ini", "", "seqinfo.ini", "Sequence"),
        ("seqinfo.ini", "frameRate", "seqinfo.ini", "no section headers"),
        ("seqinfo.ini", seqinfo("a", 3, frameRate=0), "seqinfo.ini, framerate", "'0'"),
        ("seqinfo.ini", seqinfo("a", 3, frameRate="fast"), "seqinfo.ini, framerate", "'fast'"),
        ("seqinfo.ini", seqinfo("a", 3, seqLength=2.5), "seqinfo.ini, seqlength", "'2.5'"),
        ("seqinfo.ini", seqinfo("a", 3, imDir="../x"), "seqinfo.ini, imdir", "'../x'"),
        ("seqinfo.ini", seqinfo("a", 2), "gt/gt.txt", "frame 3"),
        ("gt/gt.txt", "1,1,1,1,5,5\n", "gt/gt.txt, line 1", "6 numbers"),
        ("img1/first.jpg", "", "img1/first.jpg", "'first'"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, content: str, where: str, got: str) -> None:
    root = write_mot(tmp_path / "mot")
    text(root / "MOT17-02-DPM" / name, content)
    with pytest.raises(DataError) as caught:
        mot(root)
    assert caught.value.where == f"{root}/MOT17-02-DPM/{where}"
    assert got in str(caught.value.got)
    assert caught.value.fix


@pytest.mark.parametrize("given", ["train", "", "train/MOT17-02-DPM/img1"])
def test_data_check_finds_it_too_high_and_too_low(tmp_path: Path, given: str) -> None:
    write_mot(tmp_path / "MOT17/train")
    shown = CliRunner().invoke(app, ["data", "check", str(tmp_path / "MOT17" / given)])
    assert shown.exit_code == 0, shown.output
    assert "pedestrian" in shown.output

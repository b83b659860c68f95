"""The `nrec` format: logs by name and camera, time from the file name, and the 14 subsets."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from adverse.data.nrec import COUNTS, Subset, looks_like, nrec
from adverse.errors import DataError
from adverse.types import Dataset
from formats import nrec_xml, picture, text, voc_object, write_nrec

ALL = {"validation": "val", "test": "test"}


def counting(data: Dataset) -> set[str]:
    """Return the images with a person that counts, by the first digits of their time."""
    frames = [frame for log in data.logs for frame in log.frames]
    return {str(frame.image_id).rsplit("_", 1)[1] for frame in frames if (~frame.truth.ignore).any()}


def test_logs_are_named_by_the_source_and_ordered_by_time(tmp_path: Path) -> None:
    data = nrec(write_nrec(tmp_path / "nrec"))
    assert data.categories == ("person",)
    assert [(log.id, log.split, len(log.frames)) for log in data.logs] == [
        ("2013-StandingPerson", "test", 2),
        ("2014-MovingPerson", "test", 2),
    ]
    first = data.logs[0].frames
    assert [frame.time_s for frame in first] == [1371967994.426, 1371967994.526]
    assert [frame.index for frame in first] == [0, 1]
    assert first[0].id == "2013-StandingPerson/Image_2_0_1371967994.426"
    assert first[0].fault is None


CLEAR, PARTIAL, HEAVY, LYING = "1371967994.526", "1371967994.426", "1447077751.328", "1371967000.1"
EXPECTED: dict[Subset, set[str]] = {
    "Baseline": {CLEAR, PARTIAL, LYING},
    "Env=Orange": {CLEAR, PARTIAL, LYING},
    "Env=Apple": set(),  # the only person among the apples is heavily hidden
    "All": {CLEAR, PARTIAL, HEAVY, LYING},
    "Occ=Clear": {CLEAR, LYING},
    "Occ=Partial": {PARTIAL},
    "Occ=Heavy": {HEAVY},
    "Scale=Large": {LYING},  # 60 x 60
    "Scale=Medium": {CLEAR, PARTIAL},  # 40 x 40 and 60 x 45
    "Scale=Small": set(),
    "Pose=Typical": {CLEAR, PARTIAL},
    "Pose=Unusual": {LYING},
    "Motion=Static": {CLEAR, PARTIAL, LYING},
    "Motion=Moving": set(),
}


@pytest.mark.parametrize("subset", get_args(Subset))
def test_the_fourteen_subsets(tmp_path: Path, subset: Subset) -> None:
    data = nrec(write_nrec(tmp_path / "nrec"), split=ALL, subset=subset)  # type: ignore[arg-type]
    assert counting(data) == EXPECTED[subset]
    assert sum(len(frame.truth.boxes) for log in data.logs for frame in log.frames) == 4  # nobody is lost
    assert sum(len(log.frames) for log in data.logs) == 5  # and every image stays


def test_there_are_fourteen() -> None:
    assert len(COUNTS) == 14
    assert set(COUNTS) == set(get_args(Subset))


@pytest.mark.parametrize(
    ("right", "bottom", "scale"),
    [(51, 71, "Medium"), (51, 72, "Large"), (21, 66, "Medium"), (21, 65, "Small")],
)
def test_scale_is_the_benchmarks_area(tmp_path: Path, right: int, bottom: int, scale: str) -> None:
    """Beside the borders: 50 x 70 = 3500, 50 x 71, 20 x 65 = 1300, 20 x 64."""
    root = write_nrec(tmp_path / "nrec")
    content = nrec_xml(voc_object("person", f"1 1 {right} {bottom}"))
    text(root / "test/collected/AnnotationsPositiveNegative/Image_2_0_1371967994.526.xml", content)
    sizes: tuple[Subset, ...] = ("Scale=Large", "Scale=Medium", "Scale=Small")
    found = [subset for subset in sizes if CLEAR in counting(nrec(root, subset=subset))]
    assert found == [f"Scale={scale}"]


def test_two_cameras_are_two_logs_and_other_classes_are_counted(tmp_path: Path) -> None:
    root = write_nrec(tmp_path / "nrec")
    folder = root / "test/collected"
    content = nrec_xml(voc_object("tractor"))
    text(folder / "AnnotationsPositiveNegative/Image_3_0_1371967994.526.xml", content)
    picture(folder / "ImagesPositiveNegative/Image_3_0_1371967994.526.png")
    data = nrec(root)
    assert [log.id for log in data.logs][:2] == ["2013-StandingPerson/camera2", "2013-StandingPerson/camera3"]
    assert data.notes["objects that are neither person nor person-part"] == 1


def test_an_image_without_a_log_is_its_own(tmp_path: Path) -> None:
    root = write_nrec(tmp_path / "nrec")
    text(root / "test/collected/AnnotationsPositiveNegative/Image_2_0_5.xml", nrec_xml(log=""))
    picture(root / "test/collected/ImagesPositiveNegative/Image_2_0_5.png")
    data = nrec(root)
    assert "Image_2_0_5" in [log.id for log in data.logs]
    assert data.notes["images without the name of a log"] == 1


def test_it_is_recognised(tmp_path: Path) -> None:
    root = write_nrec(tmp_path / "nrec")
    assert looks_like(root) == {"root": str(root), "split": ALL}
    assert looks_like(tmp_path) is None


def test_other_names_and_folders_are_refused(tmp_path: Path) -> None:
    root = write_nrec(tmp_path / "nrec")
    text(root / "test/collected/AnnotationsPositiveNegative/000001.xml", nrec_xml())
    with pytest.raises(DataError, match="name of an annotation file") as caught:
        nrec(root)
    assert caught.value.where == str(root / "test/collected/AnnotationsPositiveNegative/000001.xml")
    with pytest.raises(DataError, match="laid out as the NREC"):
        nrec(root, split={"test": "train"})

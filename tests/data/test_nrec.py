"""The `nrec` format: logs by name and camera, time from the file name, subsets and ranges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from adverse.data.nrec import COUNTS, IMAGES, Subset, looks_like, nrec
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
    "Range=Near": set(),  # nobody has a depth
    "Range=Medium": set(),
    "Range=Far": set(),
}


@pytest.mark.parametrize("subset", get_args(Subset))
def test_the_subsets(tmp_path: Path, subset: Subset) -> None:
    data = nrec(write_nrec(tmp_path / "nrec"), split=ALL, subset=subset)  # type: ignore[arg-type]
    assert counting(data) == EXPECTED[subset]
    assert sum(len(frame.truth.boxes) for log in data.logs for frame in log.frames) == 4  # nobody is lost
    assert sum(len(log.frames) for log in data.logs) == 5  # and every image stays


def test_there_are_fourteen_and_three_ranges() -> None:
    assert len(COUNTS) == 14 + 3
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


def with_depth(root: Path, z: str) -> None:
    """Give the clear person a <point> as the authors' VOCreadrecxml reads it."""
    content = nrec_xml(voc_object("person", "1 1 41 41", more=f"<point><x>3</x><y>4</y><z>{z}</z></point>"))
    text(root / f"test/collected/AnnotationsPositiveNegative/Image_2_0_{CLEAR}.xml", content)


@pytest.mark.parametrize(
    ("z", "subsets"),
    [
        ("9.99", {"Near"}),
        ("10", set()),
        ("10.1", {"Medium"}),
        ("20", set()),
        ("20.5", {"Far"}),
        ("NaN", set()),
        ("-1", set()),
    ],
)
def test_ranges_leave_out_their_ends_and_who_has_no_depth(tmp_path: Path, z: str, subsets: set[str]) -> None:
    """As bbGt does: v > zRng(1) && v < zRng(2), with [0 10], [10 20] and [20 inf]."""
    with_depth(write_nrec(tmp_path / "nrec"), z)
    ranges: tuple[Subset, ...] = ("Range=Near", "Range=Medium", "Range=Far")
    found = {name for name in ranges if CLEAR in counting(nrec(tmp_path / "nrec", subset=name))}
    assert found == {f"Range={name}" for name in subsets}
    assert CLEAR in counting(nrec(tmp_path / "nrec"))


def test_a_depth_that_is_not_in_metres_is_refused(tmp_path: Path) -> None:
    with_depth(write_nrec(tmp_path / "nrec"), "9990")
    with pytest.raises(DataError, match="metres, up to 1000"):
        nrec(tmp_path / "nrec")


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


MOMENTS = ("1371967994.426", "1371967994.526")
CAMERA = {"fx": 50.0, "fy": 50.0, "cx": 31.5, "cy": 23.5, "width": 64, "height": 48, "baseline_m": 0.2}
METRES_PER_DEGREE = np.radians(1) * 6378137.0


def write_recording(root: Path, *, geodetic: bool = False, late_s: float = 0.004) -> dict[str, Any]:
    """Write what the recordings hold besides: the vehicle drives north at 2 m/s; the pair is 4 ms apart."""
    write_nrec(root)
    for moment in (*MOMENTS, "1447077751.328", "1447077751.461"):
        picture(root / "test/collected/Right" / f"Image_3_0_{float(moment) + late_s:.3f}.png")
    (root / "camera.json").write_text(json.dumps(CAMERA))
    start = float(MOMENTS[0]) - 0.1
    lines = []
    for tick in range(4):
        time_s, north = start + 0.1 * tick, 0.2 * tick
        place = [40 + north / METRES_PER_DEGREE, -80, 7, 0] if geodetic else [0, north, 7, 90]
        lines.append(",".join(f"{value:.17g}" for value in (time_s, *place)))
    header = (
        "time_s,latitude_deg,longitude_deg,altitude_m,heading_deg"
        if geodetic
        else "time_s,x_m,y_m,z_m,yaw_deg"
    )
    text(root / "track.csv", "\n".join([header, *lines]))
    text(root / "points.csv", f"image,object,left_x,right_x\nImage_2_0_{MOMENTS[1]},1,20,18")
    files = {name: root / f"{name}.csv" for name in ("track", "points")}
    mount = (1.0, 0.0, 2.0, 0.0, 0.0, 0.0)
    return {"right": "Right", "calibration": root / "camera.json", "mount": mount, **files}


@pytest.mark.parametrize("geodetic", [False, True])
def test_recordings_give_pairs_poses_and_positions(tmp_path: Path, geodetic: bool) -> None:  # noqa: FBT001
    data = nrec(tmp_path / "nrec", **write_recording(tmp_path / "nrec", geodetic=geodetic))
    first, second = data.logs[0].frames
    assert first.right is not None
    assert first.right.path.name == "Image_3_0_1371967994.430.png"
    assert first.camera is not None
    assert first.camera.baseline_m == 0.2
    for frame, north in ((first, 0.2), (second, 0.4)):
        assert frame.world_from_camera is not None
        np.testing.assert_allclose(frame.world_from_camera[:3, 3], [0, north + 1, 9], atol=1e-4)
        np.testing.assert_allclose(frame.world_from_camera[:3, 2], [0, 1, 0], atol=1e-6)  # it looks north
    # depth 50 px x 0.2 m / 2 px = 5 m; the box 0..41 has its middle at 20.5 - 0.5 = 20 px: 11.5 px left of cx
    assert second.truth.positions_m is not None
    x, y, z = second.truth.positions_m[0]
    np.testing.assert_allclose([x, y], [-11.5 / 50 * 5, 1.4 + 5], atol=1e-4)
    assert z == pytest.approx(9 + 3.5 / 50 * 5, abs=1e-4)
    assert first.truth.positions_m is not None
    assert np.isnan(first.truth.positions_m).all()
    assert [frame.world_from_camera for frame in data.logs[1].frames] == [None, None]
    assert data.notes["images at whose time the track has no fixes"] == 2


def test_the_depth_of_the_annotation_file_places_a_person(tmp_path: Path) -> None:
    options = write_recording(tmp_path / "nrec")
    with_depth(tmp_path / "nrec", "10")
    first, second = nrec(tmp_path / "nrec", **{**options, "points": None}).logs[0].frames
    assert first.truth.positions_m is not None
    assert np.isnan(first.truth.positions_m).all()
    assert second.truth.positions_m is not None
    expected = [-11.5 / 50 * 10, 1.4 + 10, 9 + 3.5 / 50 * 10]  # as above, twice as far away
    np.testing.assert_allclose(second.truth.positions_m[0], expected, atol=1e-4)
    both = nrec(tmp_path / "nrec", **options).logs[0].frames[1].truth.positions_m
    assert both is not None
    assert both[0, 1] == pytest.approx(1.4 + 5, abs=1e-4)  # points of one's own come first
    bare = nrec(tmp_path / "nrec").logs[0].frames[1].truth
    assert bare.positions_m is None


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("track.csv", "time_s,x_m,y_m\n1,2,3", "track of the vehicle cannot be read"),
        ("track.csv", "time_s,x_m,y_m,z_m,yaw_deg\n2,0,0,0,0\n1,0,0,0,0", "times rising"),
        ("track.csv", "time_s,x_m,y_m,z_m,yaw_deg\n2,0,zero,0,0", "file of track cannot be read"),
        ("points.csv", "image,left_x\na,1", "points of people cannot be read"),
        ("points.csv", f"image,object,left_x,right_x\nImage_2_0_{MOMENTS[1]},1,18,20", "give no depth"),
        ("points.csv", f"image,object,left_x,right_x\nImage_2_0_{MOMENTS[1]},1,inf,20", "finite columns"),
        ("points.csv", f"image,object,left_x,right_x\nImage_2_0_{MOMENTS[1]},nan,20,18", "number from 1"),
        (
            "points.csv",
            f"image,object,left_x,right_x\n{f'Image_2_0_{MOMENTS[1]},1,20,18{chr(10)}' * 2}",
            "once",
        ),
        (
            "points.csv",
            f"image,object,left_x,right_x\nImage_2_0_{MOMENTS[1]}.png,1,20,18",
            "without their ending",
        ),
    ],
)
def test_recordings_that_cannot_be_right(tmp_path: Path, file: str, content: str, what: str) -> None:
    options = write_recording(tmp_path / "nrec")
    text(tmp_path / "nrec" / file, content)
    with pytest.raises(DataError, match=what):
        nrec(tmp_path / "nrec", **options)


def test_right_images_of_other_moments_are_no_pairs(tmp_path: Path) -> None:
    options = write_recording(tmp_path / "nrec", late_s=0.05)
    with pytest.raises(DataError, match="no right image was taken at the moment of a left one"):
        nrec(tmp_path / "nrec", **options)


def test_left_images_are_no_right_ones(tmp_path: Path) -> None:
    options = write_recording(tmp_path / "nrec")
    with pytest.raises(DataError, match="not those of one other camera"):
        nrec(tmp_path / "nrec", **{**options, "right": IMAGES})


def test_points_without_a_track_are_refused(tmp_path: Path) -> None:
    options = write_recording(tmp_path / "nrec")
    with pytest.raises(DataError, match="points without track"):
        nrec(tmp_path / "nrec", **{**options, "track": None})

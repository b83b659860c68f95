"""Depth that a study computes: once, kept by content, part of the key, in the manifest."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import adverse
from adverse.cli.app import app
from adverse.content import PlannedFiles, content_hashes
from adverse.data.folder import folder
from adverse.data.images import write_image
from adverse.data.rig import COLUMNS
from adverse.data.worlds.scripts import quaternion
from adverse.depth.dense import DenseDepth
from adverse.errors import AdverseError, DataError, StudyError
from adverse.store.folder import RunFolder
from adverse.study import depth_cache, depth_maps
from adverse.study.depth_export import WrittenDepth, write_depth
from adverse.study.depth_maps import ComputedDepth, with_depth, with_right_depth
from adverse.study.frame_versions import _RightImage
from adverse.study.plan import make_plan
from adverse.study.spec import DepthSection, read_study
from stereo_scenes import orchard, orchard_video

SIZE = (160, 120)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a log of two stereo pairs with sparse depth, and keep the cache to this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "data"
    for number in (3, 4):
        pair = orchard(number, *SIZE)
        for kind, image in (("images", pair.left), ("right", pair.right)):
            (root / "row" / kind).mkdir(parents=True, exist_ok=True)
            write_image(root / "row" / kind / f"{number}.png", image)
        sparse = np.where(np.isinf(pair.depth_m), np.nan, pair.depth_m).astype(np.float32)
        sparse[np.arange(SIZE[1]) % 4 > 0] = np.nan
        (root / "row" / "depth").mkdir(exist_ok=True)
        np.save(root / "row" / "depth" / f"{number}.npy", sparse)
    (root / "camera.json").write_text(json.dumps(asdict(orchard(3, *SIZE).camera)))
    return root


def section(origin: str = "stereo", **options: Any) -> DepthSection:
    return DepthSection.model_validate({"from": origin, **options})


def sources(root: Path, given: DepthSection) -> list[ComputedDepth]:
    dataset = with_depth(folder(root), given, folder=root, where="study.yaml, line 3")
    found = [frame.depth_m for log in dataset.logs for frame in log.frames]
    assert all(isinstance(source, ComputedDepth) for source in found)
    return [source for source in found if isinstance(source, ComputedDepth)]


def study_of(root: Path, **more: Any) -> Path:
    path = root.parent / "study.yaml"
    study = {
        "name": "depth",
        "data": {"format": "folder", "root": str(root)},
        "depth": {"from": "stereo"},
        "suts": [{"name": "blobs", "adapter": "contrast-blobs"}],
        "mutations": ["haze(visibility_m=50)"],
        **more,
    }
    path.write_text(yaml.safe_dump({key: value for key, value in study.items() if value is not None}))
    return path


@pytest.mark.parametrize("origin", ["stereo", "laser"])
def test_a_map_is_computed_once_and_a_damaged_one_again(
    data: Path, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    first = sources(data, section(origin))[0]
    made = first.map()
    assert sum(made.shares[name] for name in depth_maps.ORIGINS) == pytest.approx(1)
    invented = np.isin(made.origin, (depth_maps.INVENTED, depth_maps.DISTANT))
    rows = len(invented) // 3
    for number, name in enumerate(depth_maps.BANDS):
        assert made.shares[name] == pytest.approx(invented[number * rows : (number + 1) * rows].mean())
    assert np.array_equal(made.origin == depth_maps.SKY, np.isinf(made.depth_m))
    (kept,) = (data.parent / "cache" / "adverse" / "depth").rglob("*.npz")
    (other,) = [source for source in sources(data, section(origin)) if source == first]

    def fail(_: object) -> None:
        raise DataError("computed again")

    monkeypatch.setattr(ComputedDepth, "_computed", fail)
    assert np.array_equal(other(), made.depth_m)
    content = bytearray(kept.read_bytes())
    content[len(content) // 3] ^= 1
    kept.write_bytes(content)
    with pytest.raises(DataError, match="computed again"):
        other()


def test_a_map_cut_or_changed_at_any_byte_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    depth = np.array([[1.5, np.inf], [2, 3]], np.float32)
    made = depth_cache.DepthMap(depth, np.eye(2, dtype=np.uint8), np.eye(2, dtype=np.uint8), {"sky": 0.25})
    file = tmp_path / "map.npz"
    depth_cache.keep_map(file, made)
    whole = file.read_bytes()

    def check() -> None:
        kept = depth_cache.read_map(file)
        if kept is not None:
            assert np.array_equal(kept.depth_m, made.depth_m)
            assert np.array_equal(kept.confidence, made.confidence)
            assert np.array_equal(kept.origin, made.origin)
        assert depth_cache.read_shares(file) in (None, made.shares)

    with file.open("r+b", buffering=0) as spoilt:  # in place: a file written anew is flushed by some disks
        for at, byte in enumerate(whole):
            os.pwrite(spoilt.fileno(), bytes([byte ^ 33]), at)  # both kinds of flags of an archive
            check()
            os.pwrite(spoilt.fileno(), bytes([byte]), at)
    for cut in range(len(whole) - 1, -1, -7):
        os.truncate(file, cut)
        check()
    os.truncate(file, 0)
    check()


def test_a_map_of_files_that_change_meanwhile_is_not_kept(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sources(data, section())[0]
    computed = ComputedDepth._computed

    def changing(self: ComputedDepth) -> DenseDepth:
        self.path.write_bytes(self.path.read_bytes() + bytes(1))
        return computed(self)

    monkeypatch.setattr(ComputedDepth, "_computed", changing)
    first.map()
    assert not list((data.parent / "cache").rglob("*.npz"))


def test_the_cameras_of_a_rig_are_as_far_apart_as_it_says(data: Path) -> None:
    lens = {"fx": 128.0, "fy": 128.0, "cx": 79.5, "cy": 59.5}
    rig = {"width": 160, "height": 120, "left": lens, "right": lens, "translation_m": [-0.4, 0, 0.3]}
    (data / "rig.json").write_text(json.dumps({**rig, "rotation": np.eye(3).tolist()}))
    given = section(rig="rig.json")
    dataset = with_right_depth(with_depth(folder(data), given, folder=data, where="study.yaml, line 3"))
    frame = dataset.logs[0].frames[0]
    assert frame.right is not None
    planned = PlannedFiles(content_hashes([frame.right.path])).of(frame)
    assert _RightImage(planned).baseline_m == pytest.approx(0.5)
    assert sources(data, section())[0].baseline_m == orchard(3, *SIZE).camera.baseline_m


def test_what_decides_a_map_is_in_its_key(data: Path) -> None:
    hood = data / "hood.png"
    write_image(hood, np.zeros(SIZE[::-1], np.uint8))
    options: list[dict[str, Any]] = [
        {},
        {"refine": "solver"},
        {"sky": False},
        {"nearest_m": 2.0},
        {"offset_px": 1.0},
        {"hood": "hood.png"},
    ]
    keys = [sources(data, section(**one))[0].key(("a", "b")) for one in options]
    keys += [sources(data, section())[0].key(pair) for pair in (("a", "c"), ("c", "b"))]
    assert len(set(keys)) == len(keys)
    assert sources(data, section())[0].key(("a", "b")) == keys[0]
    camera = asdict(orchard(3, *SIZE).camera)
    (data / "camera.json").write_text(json.dumps({**camera, "baseline_m": 0.2}))
    assert sources(data, section())[0].key(("a", "b")) not in keys


def test_cells_by_depth_depend_on_where_depth_comes_from_and_others_do_not(data: Path) -> None:
    def keys(**depth: Any) -> list[str]:
        return make_plan(read_study(study_of(data, depth=depth))).keys

    (plain, hazed), (plain_laser, hazed_laser) = keys(**{"from": "stereo"}), keys(**{"from": "laser"})
    assert plain == plain_laser
    assert hazed != hazed_laser
    write_image(data / "row" / "right" / "4.png", orchard(3, *SIZE).right)
    assert keys(**{"from": "stereo"})[1] != hazed
    assert keys(**{"from": "laser"})[1] == hazed_laser


def test_a_run_says_how_much_depth_was_invented_and_is_not_repeated(data: Path) -> None:
    study, out = study_of(data), data.parent / "run"
    adverse.run(study, out, workers=0)
    manifest = RunFolder(out).read_manifest()
    facts = manifest["depth"]
    assert manifest["status"] == "complete"
    assert (facts["from"], facts["frames"], facts["frames_known"]) == ("stereo", 2, 2)
    assert sum(facts[name] for name in depth_maps.ORIGINS) == pytest.approx(1)
    assert 0 < facts["invented"] <= facts["most_invented"] < 0.5
    assert min(facts[name] for name in depth_maps.BANDS) <= facts["invented"] + facts["distant"]
    assert facts["most_invented_frame"] in {frame.id for frame in folder(data).logs[0].frames}
    assert yaml.safe_load((out / "study.yaml").read_text())["depth"]["from"] == "stereo"
    assert not make_plan(read_study(study)).blocked


def test_the_command_writes_maps_that_a_study_can_be_given(data: Path) -> None:
    out = data.parent / "out"
    said = CliRunner().invoke(app, ["depth", str(data), str(out), "--workers", "1"])
    assert said.exit_code == 0, said.output
    assert "2 depth maps from stereo" in said.output
    made = np.load(out / "row" / "depth" / "3.npy")
    assert np.array_equal(made, sources(data, section())[0]())
    origin = cv2.imread(str(out / "row" / "origin" / "3.png"), cv2.IMREAD_GRAYSCALE)
    assert origin is not None
    assert np.array_equal(origin == depth_maps.SKY, np.isinf(made))
    assert len((out / "depth.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize("origin", ["stereo", "laser"])
def test_depth_is_never_written_over_what_the_data_set_recorded(data: Path, origin: str) -> None:
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    beside = data / ".." / data.name  # the same folder by another name
    said = CliRunner().invoke(app, ["depth", str(data), str(beside), "--from", origin, "--workers", "1"])
    assert isinstance(said.exception, StudyError)
    assert "into the data set" in said.exception.what
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before


def test_the_command_says_which_frames_have_no_depth(data: Path) -> None:
    write_image(data / "row" / "right" / "4.png", np.zeros((*SIZE[::-1], 3), np.uint8))
    said = CliRunner().invoke(app, ["depth", str(data), str(data.parent / "out"), "--workers", "1"])
    assert said.exit_code == 3
    assert "row/4: the right image is black" in " ".join(said.output.split())


def test_stopped_the_command_keeps_what_is_done_and_begins_nothing_more(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    computed = ComputedDepth.map

    def stopping(self: ComputedDepth) -> depth_cache.DepthMap:
        begun.append(self)
        if len(begun) == 4:  # the scale of both was looked at, one is written
            raise KeyboardInterrupt
        return computed(self)

    monkeypatch.setattr(ComputedDepth, "map", stopping)
    out = data.parent / "out"
    said = CliRunner().invoke(app, ["depth", str(data), str(out), "--workers", "1"])
    assert said.exit_code == 130
    assert "Run the same command to resume" in said.output
    assert [path.name for path in out.rglob("*.npy")] == ["3.npy"]


def _without(root: Path, *names: str) -> None:
    for name in names:
        (root / name).rename(root.parent / Path(name).name)


@pytest.mark.parametrize(
    ("spoil", "given", "what"),
    [
        (lambda root: _without(root, "row/right"), {}, "needs a right image"),
        (lambda root: _without(root, "camera.json"), {}, "needs a calibration"),
        (lambda root: _without(root, "row/depth"), {"from": "laser"}, "needs laser returns"),
        (lambda root: _camera(root, baseline_m=None), {}, "no baseline"),
        (lambda root: _camera(root, baseline_m=240.0), {}, "baseline cannot be right"),
        (lambda root: _camera(root, fx=1e9), {}, "calibration cannot be right"),
        (lambda _: None, {"hood": "no.png"}, "no such hood mask"),
        (lambda _: None, {"rig": "no.json"}, "stereo calibration file is missing"),
        (lambda _: None, {"from": "laser", "nearest_m": 2.0}, "depth has a value"),
        (lambda _: None, {"from": "stereoo"}, "from has a value"),
        (lambda _: None, {"refin": "none"}, "unknown key 'refin'"),
    ],
)
def test_what_cannot_be_is_said_before_the_run(data: Path, spoil: Any, given: Any, what: str) -> None:
    spoil(data)
    with pytest.raises(AdverseError, match=what) as caught:
        make_plan(read_study(study_of(data, depth={"from": "stereo", **given})))
    assert isinstance(caught.value, DataError | StudyError)


def _camera(root: Path, **changes: Any) -> None:
    camera = {**asdict(orchard(3, *SIZE).camera), **changes}
    (root / "camera.json").write_text(json.dumps({k: v for k, v in camera.items() if v is not None}))


def test_a_changed_hood_is_noticed(data: Path) -> None:
    write_image(data / "row" / "hood.png", np.zeros(SIZE[::-1], np.uint8))
    source = sources(data, section(hood="{log}/hood.png"))[0]
    write_image(data / "row" / "hood.png", np.full(SIZE[::-1], 255, np.uint8))
    with pytest.raises(DataError, match="changed after the run was planned"):
        source()
    assert replace(source, hood=None, hood_sha256="")().shape == SIZE[::-1]


@pytest.mark.parametrize(("times", "what"), [(1000, "too large"), (0.001, "too small")])
def test_given_depth_in_another_unit_is_refused_before_the_run(data: Path, times: float, what: str) -> None:
    for file in (data / "row" / "depth").iterdir():
        np.save(file, (np.load(file) * times).astype(np.float32))
    plan = make_plan(read_study(study_of(data, depth=None, invalid_depth="nearest")))
    assert any(f"depth is {what} by about a thousand" in error.what for error in plan.blocked)


@pytest.fixture
def video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a log of three consecutive stereo pairs with poses, and keep the cache to this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    log = tmp_path / "data" / "row"
    lines = [",".join(COLUMNS)]
    for number, frame in enumerate(orchard_video(3, *SIZE)):
        for kind, image in (("images", frame.left), ("right", frame.right)):
            (log / kind).mkdir(parents=True, exist_ok=True)
            write_image(log / kind / f"{number}.png", image)
        place = [number / 7.5, *frame.pose[:3, 3], *quaternion(frame.pose[:3, :3])]
        lines.append(",".join([str(number), *(repr(float(value)) for value in place)]))
    (log / "poses.csv").write_text("\n".join(lines) + "\n")
    (log.parent / "camera.json").write_text(json.dumps(asdict(orchard_video(3, *SIZE)[0].camera)))
    return log.parent


def test_consistent_maps_are_the_same_for_any_workers_and_after_an_interruption(
    video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = with_depth(folder(video), section(neighbours=1), folder=video, where="")
    written = []
    for number, workers in enumerate((1, 3, 1)):
        if number < 2:  # the last goes on with what the second has left but for one map
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache{number}"))
        else:
            next((tmp_path / "cache1").rglob("*.npz")).unlink()
        out = tmp_path / f"out{number}"
        made = write_depth(dataset, out, workers=workers, watch=lambda *_: None)
        assert (made.frames, made.failed) == (3, {})
        written.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*.npy")})
    assert written[0] == written[1] == written[2]
    alone = [source.map() for source in sources(video, section())]
    middle = np.load(tmp_path / "out0" / "row" / "depth" / "1.npy")
    assert not np.array_equal(middle, alone[1].depth_m)


def test_an_earlier_map_of_a_frame_without_depth_is_set_aside_and_where_none_has_any_all_stays(
    video: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def written() -> WrittenDepth:
        dataset = with_depth(folder(video), section(), folder=video, where="")
        return write_depth(dataset, out, workers=1, watch=lambda *_: None)

    assert written().failed == {}
    assert len([*out.rglob("1.*")]) == 3
    first = (out / "row" / "depth" / "1.npy").read_bytes()
    (video / "row" / "right" / "1.png").write_bytes((video / "row" / "images" / "1.png").read_bytes())
    made = written()
    assert (made.frames, [*made.failed]) == (2, ["row/1"])
    assert {path.parents[1].name for path in out.rglob("1.*")} == {"earlier"}
    assert (out / "row" / "earlier" / "depth" / "1.npy").read_bytes() == first
    assert len([*out.rglob("2.*")]) == 3
    (video / "row" / "right" / "2.png").unlink()
    made = written()
    assert (made.frames, [*made.failed]) == (1, ["row/1", "row/2"])
    assert "needs a right image" in made.failed["row/2"]
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for name in ("0.png", "2.png"):
        (video / "row" / "right" / name).write_bytes((video / "row" / "images" / name).read_bytes())
    with pytest.raises(DataError, match="none of 3 frames has depth") as error:
        written()
    assert "the same" in error.value.what
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == kept


@pytest.mark.parametrize("change", ["other key", "other size", "other kind"])
def test_a_map_of_the_cache_that_is_not_of_this_frame_is_computed_again(data: Path, change: str) -> None:
    first, second = sources(data, section())
    made = first.map()
    (kept,) = (data.parent / "cache").rglob("*.npz")
    if change == "other key":
        second.map()
        (other,) = {*(data.parent / "cache").rglob("*.npz")} - {kept}
        kept.write_bytes(other.read_bytes())
    else:
        cut: Any = made.depth_m[:-1] if change == "other size" else made.depth_m.astype(np.float64)
        rows = len(cut)
        depth_cache.keep_map(
            kept, depth_cache.DepthMap(cut, made.confidence[:rows], made.origin[:rows], made.shares)
        )
    assert np.array_equal(first.map().depth_m, made.depth_m)


def test_a_proposed_hood_is_not_written_over_one_that_is_there(data: Path) -> None:
    scene = np.array(orchard(3, *SIZE).left)
    for number in range(12):  # a hood that stays, below a scene that moves
        image = np.roll(scene, (29 * number, 31 * number), axis=(0, 1))
        image[-30:] = (60, 10, 10)
        write_image(data / "row" / "images" / f"{number}.png", image)
    said = CliRunner().invoke(app, ["depth", str(data), str(data), "--find-hood"])
    assert said.exit_code == 0, said.output
    mask, before = data / "row" / "hood.png", (data / "row" / "hood.png").read_bytes()
    assert CliRunner().invoke(app, ["depth", str(data), str(data), "--find-hood"]).exit_code == 0
    assert mask.read_bytes() == before
    write_image(mask, np.zeros((*SIZE[::-1], 3), np.uint8))  # drawn by hand
    drawn = mask.read_bytes()
    said = CliRunner().invoke(app, ["depth", str(data), str(data), "--find-hood"])
    assert isinstance(said.exception, StudyError)
    assert "another hood mask" in said.exception.what
    assert mask.read_bytes() == drawn


def test_the_files_and_poses_of_neighbours_are_part_of_the_key(video: Path) -> None:
    def keys(**options: Any) -> list[str]:
        """Return the keys of the first frame's cells: as it is, and hazed by its depth."""
        study = study_of(video, depth={"from": "stereo", **options}, unit_frames=1)
        return [cell.key for cell in make_plan(read_study(study)).units[0].cells]

    before = keys(neighbours=1)
    assert before == keys(neighbours=1)
    assert keys()[0] == before[0]
    assert keys()[1] != before[1]
    poses = (video / "row" / "poses.csv").read_text().splitlines()
    other = poses[2].split(",")
    other[2] = repr(float(other[2]) + 0.1)
    (video / "row" / "poses.csv").write_text("\n".join([*poses[:2], ",".join(other), poses[3]]))
    assert keys(neighbours=1)[1] != before[1]
    (video / "row" / "poses.csv").write_text("\n".join(poses) + "\n")
    first, last = (sources(video, section(neighbours=1))[at] for at in (0, 2))
    assert [len(source.neighbours) for source in (first, last)] == [1, 1]
    paths = {source.path.name for source in first.sources}
    assert paths == {"0.png", "1.png"}
    (video / "row" / "right" / "1.png").write_bytes((video / "row" / "right" / "0.png").read_bytes())
    assert keys(neighbours=1)[0] == before[0]
    assert keys(neighbours=1)[1] != before[1]
    (video / "row" / "right" / "1.png").write_bytes(b"no image")
    assert np.isfinite(last.map().depth_m).any()  # a neighbour that cannot be read does not count
    (video / "row" / "poses.csv").write_text("\n".join(poses[:2]) + "\n")
    with pytest.raises(StudyError, match="needs the poses"):
        sources(video, section(neighbours=1))
    with pytest.raises(StudyError, match="do not go together"):
        make_plan(
            read_study(study_of(video, depth={"from": "stereo", "neighbours": 1}, localize_on="mutated"))
        )
    for wrong in ({"origin": "laser"}, {"rig": "rig.json"}):
        with pytest.raises(ValueError, match=r"neighbours only|only with from: stereo"):
            section(neighbours=1, **wrong)

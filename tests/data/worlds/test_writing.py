"""Worlds on disk: identical to the byte, complete, and read back by the folder format."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse import plugins
from adverse.cli import main
from adverse.data.folder import folder
from adverse.data.rendered import orchard_world
from adverse.data.worlds import casting, exposure, machine_code, rendering, shading, writing
from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import WorldSpec, write_world
from adverse.errors import DataError

SPEC = WorldSpec("orchard", (("validation", 1), ("test", 2)), 64, 48, 5)
STREET = WorldSpec("street", (("test", 1),), 64, 48, 5)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world")
    write_world(root, SPEC)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_workers(root: Path, tmp_path: Path) -> None:
    write_world(tmp_path, SPEC, workers=2)
    assert contents(tmp_path) == contents(root)


def test_without_right_images_all_else_is_the_same(root: Path, tmp_path: Path) -> None:
    write_world(tmp_path, replace(SPEC, right=False))
    wanted = {name: data for name, data in contents(root).items() if "/right/" not in name}
    assert len(wanted) < len(contents(root))
    assert contents(tmp_path) == wanted


def test_half_of_the_machine_code_is_made_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless all of it is on disk; whichever process makes it, the same is there afterwards."""
    started: list[list[str]] = []

    @contextlib.contextmanager
    def started_with(command: list[str], **_: object) -> Iterator[None]:
        started.append(command)
        yield

    monkeypatch.setattr("adverse.data.worlds.machine_code.subprocess.Popen", started_with)
    monkeypatch.setattr(machine_code, "die_with_parent", lambda: None)
    for on_disk in (True, False):
        monkeypatch.setattr("adverse.data.worlds.shadows.is_on_disk", lambda on_disk=on_disk: on_disk)
        machine_code.compile_beside()
    machine_code.main()
    assert [command[-1] for command in started] == [machine_code.__name__]
    kernels: list[Any] = [
        casting.cast,
        shading.shade,
        rendering._tell,
        rendering._measured,
        exposure._develop,
    ]
    assert all(kernel.signatures for kernel in kernels)


def test_another_seed_gives_other_pictures(root: Path, tmp_path: Path) -> None:
    write_world(tmp_path, WorldSpec("orchard", (("test", 1),), 64, 48, 6))
    name = "test/positive000/images/0000.png"
    assert (tmp_path / name).read_bytes() != (root / name).read_bytes()


def test_the_folder_format_reads_all_of_it(root: Path) -> None:
    read = folder(root, split={"validation": "validation", "test": "test"})
    assert read.categories == ("person",)
    assert read.robot == {"control_radius_m": 1.5, "safety_radius_m": 1.0}
    assert {log.id: log.split for log in read.logs} == {
        "validation/positive000": "validation",
        "test/negative000": "test",
        "test/positive000": "test",
    }
    for log in read.logs:
        times = [frame.time_s for frame in log.frames]
        assert np.diff(np.array(times, float)) == pytest.approx(1 / 7.5)
        people = sum(len(frame.truth.boxes) for frame in log.frames)
        assert (people > 0) == ("positive" in log.id)
        for frame in log.frames[::7]:
            assert frame.fault is None
            assert frame.depth_m is not None
            assert frame.labels is not None
            assert frame.right is not None
            labels, depth = frame.labels(), frame.depth_m()
            assert frame.image().shape == frame.right().shape == (48, 64, 3)
            assert ((labels == 23) == np.isinf(depth)).all()
            for box in frame.truth.boxes.astype(int):
                assert (labels[box[1] : box[3], box[0] : box[2]] == 24).any()


def test_truth_holds_both_boxes_and_what_is_too_small_or_hidden_is_ignored(root: Path) -> None:
    truth = json.loads((root / "truth.json").read_text())
    assert "synthetic" in truth["info"]["description"]
    for one in truth["annotations"]:
        _, top, _, height = one["bbox"]
        far = height < writing.SMALL_PX and 0 < top < SPEC.height - height
        assert one["ignore"] == (far or one["visible"] < writing.HIDDEN)
        assert one["bbox_full"][2] >= one["bbox"][2]
        assert one["bbox_full"][3] >= one["bbox"][3]


def test_whoever_crouches_right_before_the_camera_is_to_be_found() -> None:
    """In frame 31 only the head is in the picture: 24 pixels of it, cut by the lower border."""
    height = 240
    script = writing.SCRIPTS["orchard"](6, "test/positive035", "positive")
    time_s = script.drive.times_s()[31]
    pose = script.drive.pose(time_s)
    seen = render(script.scene(), stereo_camera(320, height), pose, time_s, np.random.default_rng(0))
    near = [thing for thing in seen.things if thing.visible[3] == height]
    assert [thing.visible[3] - thing.visible[1] for thing in near] == [24]
    assert [writing._annotation(thing, (0.0, 0.0, 0.0), height)["ignore"] for thing in near] == [0]


def test_the_street_has_cars_with_places(tmp_path: Path) -> None:
    write_world(tmp_path, STREET)
    read = folder(tmp_path, split={"test": "test"})
    assert read.categories == ("person", "car")
    cars = [frame.truth for log in read.logs for frame in log.frames if (frame.truth.labels == 1).any()]
    assert cars
    assert all(np.isfinite(truth.positions_m).all() for truth in cars if truth.positions_m is not None)


def test_the_format_renders_once_and_then_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    plugin = plugins.load().get("dataset", "orchard-world")
    with pytest.raises(Exception, match="size"):
        plugins.bind(plugin, {"size": [8, 8]}, where="data")
    bound = plugins.bind(plugin, {"logs": {"test": 2}, "size": [64, 64], "seed": 5}, where="data")
    first = plugin.function(**bound)
    assert first.name == "orchard world (synthetic)"
    assert first.robot is not None
    monkeypatch.setattr(writing, "write_world", None)  # would fail if it were called
    assert [log.id for log in orchard_world(**bound).logs] == [log.id for log in first.logs]


def test_two_at_once_share_one_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found: list[Path] = []
    work = [threading.Thread(target=lambda: found.append(writing.cached_world(STREET))) for _ in range(2)]
    for one in work:
        one.start()
    for one in work:
        one.join()
    assert len(found) == 2
    assert len(set(found)) == 1
    assert [path.name for path in (tmp_path / "adverse" / "worlds").iterdir()] == [found[0].name]


def test_an_interrupted_rendering_is_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writing.cached_world(STREET, watch=stop)
    assert list((tmp_path / "adverse" / "worlds").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match="cannot be kept"):
        writing.cached_world(STREET)


def test_the_command_writes_a_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "street"
    arguments = ["world", "street", str(out), "--logs", "4", "--size", "64x48", "--workers", "1"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert "synthetic" in capsys.readouterr().out
    assert len(folder(out, split={"validation": "validation", "test": "test"}).logs) == 3
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        main(["world", "street", str(tmp_path / "other"), "--size", "big"])
    assert ended.value.code == 2

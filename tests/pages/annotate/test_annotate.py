"""The annotation page as a person uses it, in a real browser; what is exported; and what strangers get."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.testclient import TestClient

import adverse
from adverse.annotation.changes import Changes, State
from adverse.annotation.export import export_coco, export_folder, image_root
from adverse.annotation.folder import JOURNAL, KIND, AnnotatedData, all_categories, fingerprint, open_state
from adverse.annotation.geometry import in_camera_m, in_world_m
from adverse.data.folder import folder
from adverse.data.images import write_image
from adverse.data.worlds.scripts import stereo_camera
from adverse.errors import AdverseError
from adverse.pages.annotate import routes_of
from adverse.serving import Door, application
from adverse.store.owned_folder import claim
from adverse.text import counted
from adverse.types import Dataset
from annotation_scenes import LOG, Scene, patterned, write_camera
from browsing import barriers, served

DOOR = Door("127.0.0.1", 8123, "secret-token")
START = 8
MOST_ERROR_M = 0.10


def opened(root: Path, out: Path) -> tuple[Dataset, State]:
    dataset = folder(root)
    claim(out, KIND)
    data = AnnotatedData(str(root), "folder", (), (), all_categories(dataset, ()), fingerprint(dataset))
    return dataset, open_state(out, data, dataset)[0]


@pytest.fixture
def address(scene: Scene, tmp_path: Path) -> Iterator[str]:
    dataset, state = opened(scene.root, tmp_path / "out")
    with served(routes_of(dataset, state, ("person", "rider"), tmp_path / "out")) as place:
        yield place


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    expect.set_options(timeout=60_000)
    yield context.new_page()
    context.close()


def on_screen(page: Page, x: float, y: float) -> tuple[float, float]:
    spot = page.locator("#left").evaluate(
        "(svg, at) => (({ x, y }) => [x, y])(new DOMPoint(...at).matrixTransform(svg.getScreenCTM()))",
        [x, y],
    )
    return spot[0], spot[1]


def draw_box(page: Page, box: tuple[float, float, float, float]) -> None:
    page.mouse.move(*on_screen(page, *box[:2]))
    page.mouse.down()
    page.mouse.move(*on_screen(page, *box[2:]), steps=3)
    page.mouse.up()


def at_start(page: Page, address: str, frame: int = 0) -> None:
    page.goto(address)
    page.locator("#left[data-ready]").wait_for()
    for _ in range(frame):
        page.keyboard.press("d")
    page.locator(f"#left[data-frame='{frame}']").wait_for()


def test_a_log_is_annotated_with_a_box_and_a_click(
    page: Page, address: str, scene: Scene, tmp_path: Path
) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    at_start(page, address, START)
    draw_box(page, scene.boxes[START])  # the first of two clicks
    expect(page.locator("#objects tbody tr")).to_have_count(1)
    page.mouse.click(*on_screen(page, *scene.points[START]))
    expect(page.locator("#fact-depth")).to_have_text(re.compile("m, disparity"))
    page.keyboard.press("t")
    expect(page.locator("#tracked")).to_have_text("the last frame is reached; the first frame is reached")
    expect(page.locator("#saved")).to_have_text(re.compile("all saved"))
    expect(page.locator("#graph .dot")).to_have_count(len(scene.boxes))
    expect(page.locator("#graph .jump-mark")).to_have_count(0)
    before = page.locator("#fact-depth").text_content()
    for _ in range(2):  # quick presses are all counted: 8 pixels
        page.keyboard.press("Shift+ArrowRight")
    expect(page.locator("#graph .jump-mark").first).to_be_visible()
    for _ in range(2):
        page.keyboard.press("z")
    expect(page.locator("#graph .jump-mark")).to_have_count(0)
    expect(page.locator("#fact-depth")).to_have_text(before or "")
    page.locator("#graph").click(position={"x": 60, "y": 60})
    page.locator("#left[data-frame='0']").wait_for()
    assert barriers(page) == []
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    assert barriers(page) == []
    assert complaints == []

    dataset = folder(scene.root)
    state = State(dataset, Changes(tmp_path / "out" / JOURNAL))
    made = export_folder(dataset, state, ("person",), tmp_path / "data", smooth_s=0.5, inside_m=0.0)
    assert (made.frames, made.boxes, made.located) == (len(scene.boxes),) * 3
    errors, overlaps = [], []
    for at, frame in enumerate(folder(tmp_path / "data").logs[0].frames):
        point = state.logs[LOG].annotations[at, 1].point
        assert point is not None
        depth = float(scene.depths_m[at][int(point[1]), int(point[0])])
        camera = stereo_camera(640, 480)
        exact = in_world_m(scene.poses[at], in_camera_m(camera, point, depth))
        assert frame.truth.positions_m is not None
        errors.append(float(np.linalg.norm(frame.truth.positions_m[0] - exact)))
        overlaps.append(iou(frame.truth.boxes[0].tolist(), scene.boxes[at]))
    assert max(errors) <= MOST_ERROR_M
    assert min(overlaps) > 0.6
    check_round_trip(scene, dataset, state, tmp_path)


def iou(one: Any, other: Any) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0) * max(height, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return float(shared / (sum(areas) - shared))


def placed(images: Any) -> list[dict[str, Any]]:
    """Answer one person 8 m ahead: what a SUT places itself needs no depth, which takes long to compute."""
    answer = {"boxes": [[300, 150, 340, 300]], "scores": [0.9], "labels": [0], "positions_m": [[0, 0.5, 8]]}
    return [answer for _ in images]


def check_round_trip(scene: Scene, dataset: Dataset, state: State, tmp_path: Path) -> None:
    """Both exports say the same, a study reaches the closed loop with them, and the data are as before."""
    before = fingerprint(folder(scene.root))
    copied = folder(tmp_path / "data")
    coco, root = tmp_path / "truth.json", image_root(dataset, scene.root)
    export_coco(dataset, state, ("person",), coco, root=root, smooth_s=0.5, inside_m=0.0)
    with pytest.raises(AdverseError, match="something already"):
        export_coco(dataset, state, ("person",), coco, root=root, smooth_s=0.5, inside_m=0.0)
    (given,) = folder(scene.root, truth=str(coco)).logs
    assert [frame.truth.positions_m is not None for frame in given.frames] == [True] * len(scene.boxes)
    one = json.loads((tmp_path / "truth.json").read_text())
    other = json.loads((tmp_path / "data" / "truth.json").read_text())
    assert one["annotations"] == other["annotations"]
    for at, (frame, copy) in enumerate(zip(dataset.logs[0].frames, copied.logs[0].frames, strict=True)):
        what = state.logs[LOG].annotations[at, 1]
        assert copy.truth.boxes[0] == pytest.approx(what.box)
        assert copy.truth.ids.tolist() == [1]
        assert np.array_equal(copy.image(), frame.image())
        assert (copy.camera, copy.time_s) == (frame.camera, frame.time_s)
        assert copy.world_from_camera is not None
        assert np.allclose(copy.world_from_camera, scene.poses[at], atol=1e-12)
    study = {
        "name": "annotated",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "suts": [{"name": "placed", "adapter": "python", "positions": "reported"}],
        "robot": {"control_radius_m": 1.5, "safety_radius_m": 1.0},
        "levels": ["image", "located", "path", "loop"],
        "mutations": ["brightness(scale=0.9)"],
        "robustness": {"bootstrap": 0},
    }
    adverse.run(study, tmp_path / "run", detectors={"placed": placed})
    assert fingerprint(folder(scene.root)) == before


def test_two_windows_lose_nothing(page: Page, address: str, scene: Scene, tmp_path: Path) -> None:
    at_start(page, address)
    second = page.context.new_page()
    second.goto(address.partition("/?")[0])
    second.locator("#left[data-ready]").wait_for()
    draw_box(page, scene.boxes[0])
    expect(second.locator("#objects tbody tr")).to_have_count(1)  # told by itself
    second.locator("#objects tbody tr").click()
    second.context.route("**/sync.json*", lambda route: route.abort())  # from here on nobody is told
    page.keyboard.press("i")
    expect(page.locator("#fact-object")).to_have_text("1, person, ignored")
    second.keyboard.press("3")
    second.keyboard.press("Shift+ArrowRight")
    expect(second.locator("#conflict")).to_contain_text("changed in another window")
    expect(second.locator("#fact-object")).to_have_text("1, person, ignored")
    second.locator("#mine").click()
    expect(second.locator("#conflict")).to_be_hidden()
    expect(second.locator("#saved")).to_have_text("all saved, 3 changes")
    entries = Changes(tmp_path / "out" / JOURNAL).entries
    moved = entries[-1].edits[0].after
    assert moved is not None
    assert moved.box[0] == pytest.approx(scene.boxes[0][0] + 4, abs=0.6)
    second.keyboard.press("z")
    expect(second.locator("#fact-object")).to_have_text("1, person, ignored")
    second.keyboard.press("Delete")
    expect(second.locator("#objects tbody tr")).to_have_count(0)
    second.keyboard.press("z")
    expect(second.locator("#objects tbody tr")).to_have_count(1)


@contextmanager
def killed_after(server: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a server whatever happened: who leaves without waits for it for ever."""
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGKILL)


def test_an_acknowledged_change_survives_kill_9(tmp_path: Path) -> None:
    out = tmp_path / "out"
    data = str(stereo_data(tmp_path / "data"))
    command = [sys.executable, "-m", "adverse", "annotate", data, "--out", str(out)]
    for turn in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, killed_after(server):
            assert server.stdout is not None
            said = [line for line, _ in zip(server.stdout, range(2), strict=False)]
            assert f"{counted(turn, 'change')} so far" in said[0]
            found = re.search(r"http://\S+", said[1])
            assert found is not None
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            opener.open(found[0]).read()
            after = {"box": [10, 20, 40.5, 90], "label": "person"}
            edits = [{"frame": turn, "id": 1, "version": 0, "after": after}]
            body = json.dumps({"log": "log", "since": 0, "words": "box 1", "edits": edits}).encode()
            request = urllib.request.Request(found[0].partition("/?")[0] + "/change.json", body)
            assert json.loads(opener.open(request).read())["version"] == turn + 1
    entries = Changes(out / JOURNAL).entries
    assert [
        (entry.edits[0].frame, entry.edits[0].after.box) for entry in entries if entry.edits[0].after
    ] == [
        (0, (10, 20, 40.5, 90)),
        (1, (10, 20, 40.5, 90)),
    ]


def guest_of(root: Path, out: Path) -> TestClient:
    dataset, state = opened(root, out)
    app = application(DOOR, routes_of(dataset, state, ("person",), out))
    client = TestClient(app, base_url="http://127.0.0.1:8123")
    client.cookies.set(DOOR.cookie, DOOR.token)
    return client


def stereo_data(root: Path, **camera: Any) -> Path:
    """Two frames of a pattern, and a right image of each, shifted by 8 pixels."""
    for kind, shift in (("images", 0.0), ("right", -8.0)):
        (root / "log" / kind).mkdir(parents=True)
        for number in range(2):
            write_image(root / "log" / kind / f"{number}.png", patterned((160, 120), (shift, 0.0)))
    if camera != {"absent": True}:
        write_camera(root / "camera.json", stereo_camera(160, 120), **camera)
    return root


def asked(guest: TestClient, x: float = 90, y: float = 60) -> dict[str, Any]:
    query: dict[str, str | float] = {"log": "log", "frame": 0, "x": x, "y": y, "height": 60}
    return dict(guest.get("/match.json", params=query).json())


def test_bad_data_get_one_clear_message(tmp_path: Path) -> None:
    assert asked(guest_of(stereo_data(tmp_path / "good"), tmp_path / "o0"))["why"] == ""
    none = guest_of(stereo_data(tmp_path / "a", absent=True), tmp_path / "o1")
    assert "There is no camera" in asked(none)["why"]
    no_baseline = guest_of(stereo_data(tmp_path / "b", baseline_m=None), tmp_path / "o2")
    assert "no baseline_m and the frame no depth map" in asked(no_baseline)["why"]
    odd = stereo_data(tmp_path / "c", baseline_m=240.0)
    assert "baseline cannot be right" in asked(guest_of(odd, tmp_path / "o3"))["why"]
    sizes = stereo_data(tmp_path / "d")
    write_image(sizes / "log" / "right" / "0.png", patterned((80, 60)))
    assert "size" in asked(guest_of(sizes, tmp_path / "o4"))["why"]
    lower = stereo_data(tmp_path / "h")
    write_image(lower / "log" / "right" / "0.png", patterned((160, 120), (-8.0, 2.0)))
    off = asked(guest_of(lower, tmp_path / "o8"))
    assert "do not correspond (the right image is 2.0 rows lower). Rectify both" in off["why"]
    assert not off["usable"]
    flat = stereo_data(tmp_path / "e")
    write_image(flat / "log" / "images" / "0.png", np.full((120, 160, 3), 99, np.uint8))
    assert "too little texture" in asked(guest_of(flat, tmp_path / "o5"))["why"]
    assert "outside the image" in asked(guest_of(stereo_data(tmp_path / "f"), tmp_path / "o6"), x=500)["why"]
    single = stereo_data(tmp_path / "g")
    for kind in ("images", "right"):
        (single / "log" / kind / "1.png").unlink()
    guest = guest_of(single, tmp_path / "o7")
    after = {"box": [60, 30, 120, 100], "label": "person", "point": [90, 60], "right_x": 82}
    edits = [{"frame": 0, "id": 1, "version": 0, "after": after}]
    assert (
        guest.post("/change.json", json={"log": "log", "since": 0, "words": "", "edits": edits}).status_code
        == 200
    )
    tracked = guest.post(
        "/track.json", json={"log": "log", "since": 0, "frame": 0, "id": 1, "step": 1}
    ).json()
    assert tracked["tracked"]["why"] == "the last frame is reached"
    with pytest.raises(AdverseError, match="not the one that was annotated"):
        opened(tmp_path / "good", tmp_path / "o7")


def test_nonsense_is_refused_and_not_kept(tmp_path: Path) -> None:
    guest = guest_of(stereo_data(tmp_path / "data"), tmp_path / "out")
    fine = {"box": [1, 2, 30, 40], "label": "person"}

    def status(after: Any, **fields: Any) -> int:
        edit = {"frame": 0, "id": 1, "version": 0, "after": after} | fields
        body = {"log": "log", "since": 0, "words": "w", "edits": [edit]}
        return guest.post("/change.json", json=body).status_code

    assert status(fine | {"box": [1, 2, 1.2, 40]}) == 400
    assert status(fine | {"box": [1, 2, "x", 40]}) == 400
    assert status(fine | {"label": "dragon"}) == 400
    assert status(fine | {"point": [500, 4], "right_x": 2}) == 400
    assert status(fine | {"point": [50, 4], "right_x": 90}) == 400
    assert status(fine | {"point": [50, 4], "right_x": 49.9999}) == 400  # hundreds of kilometres away
    assert status(fine | {"point": [50, 4]}) == 400
    assert status(fine | {"point": [50, 4], "right_x": 42, "depth_m": 3}) == 400  # which of them?
    assert status(fine | {"row": 3}) == 400
    assert status(fine, frame=9) == 404
    assert status(fine, more=1) == 400
    assert guest.post("/change.json", content=b"[" * 5000).status_code == 400
    assert guest.post("/change.json", content=b"x" * 70_000).status_code == 413
    assert guest.post("/change.json", json={}, headers={"Origin": "http://evil.example"}).status_code == 403
    assert guest.get("/change.json").status_code == 405
    for path in (
        "/image.png?log=log&frame=7",
        "/image.png?log=no&frame=0",
        "/assets/app.py",
        "/sync.json?log=log&since=-1",
    ):
        assert guest.get(path).status_code == 404
    assert not (tmp_path / "out" / JOURNAL).exists()
    assert status(fine) == 200
    assert status(fine | {"ignore": True}) == 409  # its version is no longer 0
    stranger = TestClient(guest.app, base_url="http://127.0.0.1:8123")
    assert stranger.get("/log.json?log=log").status_code == 403
    assert (
        guest.post(
            "/object.json", json={"log": "log", "since": 0, "id": 1, "to": "id", "new_id": 5}
        ).status_code
        == 200
    )
    assert (
        guest.post("/object.json", json={"log": "log", "since": 0, "id": 1, "to": "delete"}).status_code
        == 409
    )
    told = stereo_data(tmp_path / "told")
    truth = {
        "images": [{"id": 1, "file_name": "log/images/0.png", "width": 160, "height": 120}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 29, 38], "track_id": 5}],
        "categories": [{"id": 1, "name": "person"}],
    }
    (told / "truth.json").write_text(json.dumps(truth))
    guest = guest_of(told, tmp_path / "told-out")
    assert status(fine | {"row": 0}, id=77) == 400  # it is object 5's
    assert status(fine | {"row": 0}, id=5) == 200

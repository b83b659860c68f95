"""The closed loop beside the frame: what it says of a log is what the results say, frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from adverse.analysis.loop import drive_log
from adverse.analysis.results import analyze
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from synthetic_run import Size, write_run

KINDS = {"stops in time": True, "does NOT stop in time": False}


@pytest.mark.parametrize("level", ["loop/annotated", "loop/localized"])
def test_the_verdict_is_that_of_the_results(driver: TestClient, driven: Path, level: str) -> None:
    outcomes = pq.read_table(driven / "results" / "outcomes.parquet").to_pylist()
    judged = 0
    for row in outcomes:
        if (row["level"], row["sut"]) != (level, "sut00") or not row["truths"]:
            continue
        for k in (0, 40, 70, 99):
            asked = {"sut": row["sut"], "level": level, "left": row["setting"], "log": row["log"], "k": k}
            found = driver.get("/drive.json", params={**asked, "right": row["setting"]}).json()
            (verdict,) = found["verdicts"]
            assert KINDS[verdict.removeprefix("both ")] is (row["hits"][k] == row["truths"])
            judged += 1
    assert judged >= 8


def test_each_frame_is_passed_when_the_robot_gets_there(driver: TestClient, driven: Path) -> None:
    store = finished(driven)
    setting = list(store.groups)[1]
    for log in ("test/0000", "test/0001"):
        asked = {"sut": "sut01", "log": log, "right": setting, "k": 60, "level": "loop/annotated"}
        page = driver.get("/drive.json", params=asked).json()
        levels = driver.get("/explore.json", params=asked).json()["sensitivity"]["levels"]
        one = drive_log(store, log=log, sut="sut01", sensitivity=levels[60], setting=setting)
        assert len(page["frames"]) == 24
        for row in page["frames"]:
            there = np.flatnonzero(one.by_sut.position_m >= row["place_m"] - 1e-6)
            passed = row["passed"]["right"]
            if len(there):
                assert passed == {
                    "time_s": one.by_sut.time_s[there[0]],
                    "speed_mps": one.by_sut.speed_mps[there[0]],
                }
            elif one.by_sut.stopped[-1]:
                assert passed is None
                assert "right: stops before it" in row["words"]
            else:
                assert passed["time_s"] == one.by_sut.time_s[-1]
    shown = driver.get("/drive", params=asked).text
    assert page["frames"][0]["words"] in shown


def test_a_run_without_a_loop_says_so(guest: TestClient) -> None:
    assert "no level loop" in guest.get("/drive.json").json()["why"]
    assert "no level loop" in guest.get("/explore").text


def test_boxes_are_told_with_their_distance(driver: TestClient) -> None:
    page = driver.get("/frame.json", params={"log": "test/0000", "frame": 12}).json()
    people = page["sides"]["left"]["true"]
    assert people
    assert all(0 < one["range_m"] < 30 for one in people)


def test_without_images_there_is_a_reason_and_all_the_rest(driver: TestClient) -> None:
    page = driver.get("/explore.json").json()
    side = page["frame"]["sides"]["left"]
    assert side["picture"] is None
    assert side["why"]
    assert "there-are-no-images" in side["why"]
    assert page["frame"]["size"] == [1024, 544]
    assert page["curves"]["lines"]
    assert driver.get("/picture.png").status_code == 404
    assert "No picture" in driver.get("/explore").text


def test_a_robot_that_may_stop_later_is_judged_by_that(
    tmp_path: Path, guest_of: Callable[[Path], TestClient]
) -> None:
    write_run(tmp_path / "run", Size(1, 2, 8, 24, 2, bootstrap=0))
    folder = RunFolder(tmp_path / "run")
    manifest = folder.read_manifest()
    manifest["statistics"]["robot"]["stop_tolerance_m"] = 1.0
    folder.write_manifest(manifest)
    analyze(folder.path, workers=1)
    guest = guest_of(folder.path)
    level, right, late = "loop/annotated", 0, 0
    for row in pq.read_table(folder.results / "outcomes.parquet").to_pylist():
        if row["level"] != level or not row["truths"]:
            continue
        asked = {
            "level": level,
            "left": row["setting"],
            "right": row["setting"],
            "log": row["log"],
            "k": "70",
        }
        (verdict,) = guest.get("/drive.json", params=asked).json()["verdicts"]
        assert KINDS[verdict.removeprefix("both ")] is (row["hits"][70] == row["truths"])
        one = drive_log(
            finished(folder.path), log=row["log"], sut="sut00", sensitivity=0.067, setting=row["setting"]
        )
        right += bool(one.safe)
        late += bool(one.safe) and one.by_sut.position_m[-1] > one.by_truth.position_m[-1] + 0.01
    assert right > late > 0

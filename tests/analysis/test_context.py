"""A drive towards a person, whose every figure is known at every level of context."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adverse
from adverse.analysis.results import analyze
from adverse.data.images import write_image

WIDTH, HEIGHT, FOCAL = 96, 72, 60.0
STEP_M, FRAMES, PERSON_M, WALL_M = 0.4, 30, 14.4, 3.0
LEVELS = ["image", "located", "path", "loop"]
ROBOT = {"control_radius_m": 2.0, "safety_radius_m": 1.0}


def write_drives(root: Path, log_names: tuple[str, ...] = ("meeting", "empty"), last: int = FRAMES) -> None:
    """Write a log that drives up to somebody and one with nobody; a wall is always 3 m ahead.

    Somebody is there in the frames before `last`.
    """
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for log in log_names:
        (root / log / "images").mkdir(parents=True)
        (root / log / "depth").mkdir()
        with (root / log / "poses.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["frame", "time_s", "x_m", "y_m", "z_m", "qw", "qx", "qy", "qz"])
            for frame in range(FRAMES):
                x = STEP_M * frame
                table.writerow([f"{frame:03d}", frame / 7.5, x, 0, 1, 0.5, -0.5, 0.5, -0.5])
        for frame in range(FRAMES):
            image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
            image[0, 0] = frame  # no two images are the same
            depth = np.full((HEIGHT, WIDTH), WALL_M, np.float32)
            name = f"{log}/images/{frame:03d}.png"
            images.append({"id": len(images), "file_name": name, "width": WIDTH, "height": HEIGHT})
            if log == "meeting" and frame < last:
                away = PERSON_M - STEP_M * frame
                half = max(round(0.4 * FOCAL / away), 2)
                box = [WIDTH // 2 - half, HEIGHT // 2 - half, 2 * half, 2 * half]
                rows, columns = slice(box[1], box[1] + box[3]), slice(box[0], box[0] + box[2])
                image[rows, columns] = 255
                depth[rows, columns] = away
                annotations.append(
                    {
                        "id": len(images),
                        "image_id": len(images) - 1,
                        "category_id": 1,
                        "bbox": box,
                        "position_m": [PERSON_M, 0, 1],
                    }
                )
            write_image(root / name, image)
            np.save(root / log / "depth" / f"{frame:03d}.npy", depth)
    truth = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "person"}]}
    (root / "truth.json").write_text(json.dumps(truth))
    camera = {"fx": FOCAL, "fy": FOCAL, "cx": WIDTH / 2 - 0.5, "cy": HEIGHT / 2 - 0.5}
    (root / "camera.json").write_text(json.dumps({**camera, "width": WIDTH, "height": HEIGHT}))


def perfect(images: Any) -> list[Any]:
    answers = []
    for image in images:
        ys, xs = np.nonzero(image[..., 0] > 200)
        boxes = [[xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]] if len(ys) else []
        answers.append((boxes, [0.9] * len(boxes), [0] * len(boxes)))
    return answers


def blind(images: Any) -> list[Any]:
    return [([], [], []) for _ in images]


def always(images: Any) -> list[Any]:
    """Answer the person, if there is one, and something on the wall, straight ahead."""
    wall = [WIDTH // 2 - 30, 2, WIDTH // 2 + 30, 6]
    answers = []
    for boxes, _, _ in perfect(images):
        found = [*boxes, wall]
        answers.append((found, [0.8] * len(found), [0] * len(found)))
    return answers


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drives")
    write_drives(folder / "data")
    study = {
        "name": "drives",
        "data": {"format": "folder", "root": str(folder / "data")},
        "mutations": ["brightness(scale=0)"],
        "levels": LEVELS,
        "robot": ROBOT,
        "sensitivity": {"levels": 5, "lowest": 0.01, "highest": 2.0},
    }
    detectors = {"perfect": perfect, "blind": blind, "always": always}
    adverse.run(study, folder / "run", detectors=detectors)
    return folder / "run"


@pytest.fixture(scope="module")
def rows(run_folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((run_folder / "results" / "summary.json").read_text())["rows"])


def areas(rows: list[dict[str, Any]], sut: str, setting: str = "identity") -> dict[str, float]:
    return {row["level"]: row["area"] for row in rows if (row["sut"], row["setting"]) == (sut, setting)}


def test_every_level_is_there_with_both_truths(rows: list[dict[str, Any]]) -> None:
    wanted = {"image/ROC_A", "image/ROC_B"}
    wanted |= {f"{level}/{kind}" for level in LEVELS[1:] for kind in ("annotated", "localized")}
    assert set(areas(rows, "perfect")) == wanted
    assert {row["status"] for row in rows} == {"ok"}


def test_a_perfect_detector_is_perfect_at_every_level(rows: list[dict[str, Any]]) -> None:
    assert areas(rows, "perfect") == pytest.approx(dict.fromkeys(areas(rows, "perfect"), 1.0))


def test_darkness_makes_it_blind_at_every_level(rows: list[dict[str, Any]]) -> None:
    assert set(areas(rows, "perfect", "brightness(scale=0)").values()) == {0.0}
    assert set(areas(rows, "blind").values()) == {0.0}


def test_firing_always_is_worth_nothing_but_for_the_time_it_leaves(rows: list[dict[str, Any]]) -> None:
    found = areas(rows, "always")
    for level in ("image/ROC_B", "located/annotated", "path/annotated"):
        assert found[level] == pytest.approx(0.0, abs=1e-12)
    assert 0 < found["loop/annotated"] < 0.8


def test_counts_are_of_what_each_level_is_about(rows: list[dict[str, Any]]) -> None:
    found = {row["level"]: row for row in rows if (row["sut"], row["setting"]) == ("perfect", "identity")}
    ranges = PERSON_M - STEP_M * np.arange(FRAMES)
    assert found["image/ROC_A"]["truths"] == FRAMES
    assert found["located/annotated"]["truths"] == (ranges <= 10 + 1e-9).sum()
    assert found["path/annotated"]["truths"] == (ranges - 2 < 5 - 1e-9).sum()
    assert found["loop/annotated"]["truths"] == 1


@pytest.mark.parametrize(("late_m", "safe", "at_0"), [(0.002, 1.0, 0.0), (0.9, 1.0, 0.0), (1.1, 0.0, 0.0)])
def test_a_stop_2_mm_late_is_not_the_same_as_no_stop(
    tmp_path: Path, late_m: float, safe: float, at_0: float
) -> None:
    """Depth puts the person behind where people annotated them, so that the robot stops late by that much."""
    write_drives(tmp_path / "data")
    for file in (tmp_path / "data" / "meeting" / "depth").glob("*.npy"):
        depth = np.load(file)
        np.save(file, np.where(depth == WALL_M, depth, depth + np.float32(late_m)))
    study = {
        "name": "late",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "levels": ["path", "loop"],
        "robot": ROBOT,
        "sensitivity": {"levels": 3, "lowest": 0.01, "highest": 0.1},
        "robustness": {"bootstrap": 0},
    }
    adverse.run(study, tmp_path / "run", detectors={"late": perfect, "blind": blind})
    summary = json.loads((tmp_path / "run" / "results" / "summary.json").read_text())
    assert summary["robot"]["tolerance_m"] == 1.0
    rows = {(row["sut"], row["level"]): row for row in summary["rows"] if row["setting"] == "identity"}
    for level in ("path/annotated", "loop/annotated"):
        assert (rows["late", level]["area"], rows["late", level]["area_at_0"]) == (safe, at_0)
        assert (rows["blind", level]["area"], rows["blind", level]["area_at_0"]) == (0.0, 0.0)
    stops = {row["sut"]: row for row in summary["loop"] if row["level"] == "loop/annotated"}
    late, never = stops["late"], stops["blind"]
    assert (late["never_stops"], never["never_stops"]) == (0.0, 1.0)
    assert late["lateness_m_p50"] == pytest.approx(late_m, abs=1e-4)
    assert never["lateness_m_p50"] is None
    assert late["clearance_m_p50"] == pytest.approx(2 - late_m, abs=1e-4)
    assert never["clearance_m_p50"] == pytest.approx(0.0, abs=1e-9)
    assert never["speed_at_safety_radius_mps_p50"] == pytest.approx(3.0)
    crossing = np.sqrt(2 * 4.572 * max(late_m - 1, 0))
    assert late["speed_at_safety_radius_mps_p50"] == pytest.approx(crossing, abs=1e-3)


def test_the_number_of_workers_changes_no_byte(run_folder: Path) -> None:
    found = []
    for workers in (1, 3):
        analyze(run_folder, workers=workers)
        found.append({path.name: path.read_bytes() for path in (run_folder / "results").iterdir()})
    assert found[0] == found[1]


def test_differences_are_those_of_the_areas(run_folder: Path, rows: list[dict[str, Any]]) -> None:
    summary = json.loads((run_folder / "results" / "summary.json").read_text())
    area = {(row["sut"], row["level"]): row["area"] for row in rows if row["setting"] == "identity"}
    found = {(row["level"], row["second"]): row for row in summary["differences"]}
    assert len(found) == 2 * len({level for _, level in area})
    for (level, second), row in found.items():
        assert row["difference"] == pytest.approx(area[row["first"], level] - area[second, level])
        assert row["difference"] >= 0
        assert (
            row["difference_interval"]["why"] == "fewer than 3 logs behind safety or efficiency"
        )  # one log of each kind

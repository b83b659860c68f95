"""Visual change in a run: recorded when asked for, the same however it is run, and shown by setting."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse import mutations
from adverse.analysis.results import analyze
from adverse.analysis.strengths import visual_changes
from adverse.data.images import write_image
from adverse.errors import StudyError
from adverse.report.page import write_report
from adverse.store.finished_run import finished
from adverse.study.engines import Engine, Stop
from adverse.study.engines.local import InlineEngine, LocalEngine
from adverse.study.run import run_study
from adverse.study.spec import study_from
from adverse.visual import Reference
from small_study import results_hash
from visual.photos import drawn
from watching import Quiet

SETTINGS = ["gaussian_blur(sigma_px=0.2)", "gaussian_blur(sigma_px=2)", "salt_pepper(fraction=0.02)"]


def study(folder: Path, **more: Any) -> dict[str, Any]:
    """Write four frames, one of them too small for the scales, and return a study of them."""
    (folder / "data" / "images").mkdir(parents=True)
    images = []
    for number, shape in enumerate([(96, 120), (80, 72), (96, 120), (40, 60)]):
        write_image(folder / "data" / "images" / f"{number}.png", drawn(*shape, seed=number))
        images.append({"id": number, "file_name": f"{number}.png", "width": shape[1], "height": shape[0]})
    truth = {
        "images": images,
        "annotations": [{"id": 1, "image_id": 0, "category_id": 1, "bbox": [10, 10, 20, 30]}],
        "categories": [{"id": 1, "name": "person"}],
    }
    (folder / "data" / "truth.json").write_text(json.dumps(truth))
    data = {"format": "coco", "root": "data", "annotations": "truth.json"}
    suts = [{"name": "blobs", "adapter": "contrast-blobs"}]
    return {"name": "seen", "data": data, "suts": suts, "mutations": SETTINGS, "seed": 3, **more}


def run(folder: Path, told: dict[str, Any], name: str = "run", engine: Engine | None = None) -> Path:
    out = folder / name
    ran = run_study(study_from(told, folder), out, engine or InlineEngine(), watch=Quiet(), stop=Stop())
    assert ran.status == "complete"
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seen")
    path.joinpath("study.json").write_text(json.dumps(study(path, measure={"visual_change": "vifp"})))
    run(path, json.loads(path.joinpath("study.json").read_text()))
    analyze(path / "run")
    return path


def test_every_frame_and_setting_has_what_the_measures_say(folder: Path) -> None:
    found = visual_changes(finished(folder / "run"))
    assert {setting for setting, _ in found} == set(SETTINGS)
    assert len({frame for _, frame in found}) == 3  # the smallest has none
    frame = min(frame for _, frame in found)
    image = drawn(96, 120, seed=0)
    for setting in SETTINGS:
        changed = mutations.apply(image, setting, seed=3, key=frame)
        wanted = Reference(image, backend="vifp").measure(changed)
        assert found[setting, frame] == wanted.numbers()
        assert found[setting, frame]["visual_change_vifp"] == wanted.dv


def test_results_have_median_and_range_by_setting(folder: Path) -> None:
    rows = json.loads((folder / "run" / "results" / "summary.json").read_text())["visual_change"]
    assert [row["setting"] for row in rows] == SETTINGS
    found = visual_changes(finished(folder / "run"))
    for row in rows:
        values = [
            one["visual_change_vifp"] for (setting, _), one in found.items() if setting == row["setting"]
        ]
        assert row["median"] == pytest.approx(np.median(values))
        assert (row["least"], row["most"], row["frames"]) == (min(values), max(values), 3)
        assert row["backend"] == "vifp"
    faint, strong, _ = rows
    assert (faint["median"], faint["unseen"], faint["vsnr_db_median"]) == (0, 1, None)
    assert strong["median"] > 0.3
    assert math.isfinite(strong["vsnr_db_median"])
    lines = (folder / "run" / "results" / "visual_change.csv").read_text().splitlines()
    assert len(lines) == 4


def test_the_report_shows_it_and_the_hazards(folder: Path) -> None:
    page = write_report(folder / "run").read_text()
    assert "What people see of each mutation" in page
    assert "Visual change by vifp" in page
    unseen = "light source, medium, object, objects, algorithm"
    assert f"No hazard of these places was exercised: {unseen}." in page
    tables = folder / "run" / "report_tables"
    assert (tables / "visual_change.csv").read_text().count("\n") == 4
    assert "observer,focus,other than" in (tables / "hazards.csv").read_text()


def test_any_number_of_workers_gives_the_same_bytes(folder: Path) -> None:
    told = json.loads(folder.joinpath("study.json").read_text())
    other = run(folder, told, "two", LocalEngine(2, folder / "two" / "logs"))
    analyze(other)
    assert results_hash(other) == results_hash(folder / "run")


def test_it_is_off_unless_asked_for(tmp_path: Path) -> None:
    told = study(tmp_path)
    out = run(tmp_path, told)
    summary = analyze(out)
    assert "visual_change" not in summary.data
    assert not (out / "results" / "visual_change.csv").exists()
    assert visual_changes(finished(out)) == {}
    assert "What people see" not in write_report(out).read_text()
    cells = {path.name for path in (out / "records").rglob("*.parquet")}
    asked = run(tmp_path, {**told, "measure": "visual_change"})
    assert asked == out
    assert {
        path.name for path in (out / "records").rglob("*.parquet")
    } == cells  # no answer is asked for again


def test_what_is_not_measured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="measure"):
        study_from(study(tmp_path, measure="beauty"), tmp_path)

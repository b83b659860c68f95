"""From a video and nothing else to results, and the same bytes for any number of workers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import adverse
from adverse.cli.app import app
from films import film, picture

FRAMES = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("video")
    return film(folder / "walk.mp4", FRAMES, gop=10, rate=10)


def test_init_writes_a_label_free_study_that_runs_the_same_with_any_workers(data: Path) -> None:
    study = data.with_name("study.yaml")
    said = CliRunner().invoke(app, ["init", str(data), "--out", str(study)])
    assert said.exit_code == 0, said.output
    written = yaml.safe_load(study.read_text())
    assert written["data"] == {"format": "video", "root": "walk.mp4", "cut": {"seconds": 2.0}}
    assert written["truth"] == {"from": "clean", "score": 0.5}
    assert written["metrics"] == ["flicker", "longest_gap", "time_to_first"]
    assert "are not annotated" in said.output
    written |= {
        "suts": [{"name": "blobs", "adapter": "contrast-blobs"}],
        "mutations": ["brightness(scale=0.7)"],
        "robustness": {"bootstrap": 50},
    }
    study.write_text(yaml.safe_dump(written))
    results = []
    for workers in (0, 2):
        run = data.with_name(f"run{workers}")
        adverse.run(study, run, workers=workers)
        results.append((run / "results" / "summary.json").read_bytes())
    summary = json.loads(results[0])
    assert results[0] == results[1]
    assert {row["frames"] for row in summary["plain_metrics"]} == {FRAMES}
    warnings = json.loads((data.with_name("run0") / "manifest.json").read_text())["warnings"]
    assert any("3 test logs are pieces of one recording" in line and "alike" in line for line in warnings)


def test_a_damaged_frame_is_quarantined_with_its_reason(tmp_path: Path) -> None:
    image = picture(0)
    film(
        tmp_path / "b.avi",
        [image] * 6 + [np.rot90(image, 2)] * 6,
        codec="mjpeg",
        pix_fmt="yuvj420p",
        b_frames=0,
    )
    raw = bytearray((tmp_path / "b.avi").read_bytes())
    starts = [at for at in range(len(raw) - 1) if raw[at : at + 3] == b"\xff\xd8\xff"]
    raw[starts[3] + 400 : starts[4] - 16] = bytes(starts[4] - 16 - starts[3] - 400)
    (tmp_path / "b.avi").write_bytes(raw)
    (tmp_path / "study.yaml").write_text(
        "{name: b, data: {format: video, root: b.avi}, suts: [{name: blobs, adapter: contrast-blobs}],"
        " truth: clean, mutations: ['brightness(scale=0.7)']}"
    )
    adverse.run(tmp_path / "study.yaml", tmp_path / "run", workers=0)
    troubles = json.loads((tmp_path / "run" / "results" / "summary.json").read_text())["troubles"]
    assert [row["frame"] for row in troubles] == ["b/000003"]
    assert "the video is damaged here" in troubles[0]["reason"]

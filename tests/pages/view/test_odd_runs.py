"""Runs that say little, fail, or have names to fear: the explorer says so in words, and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import adverse
from adverse.data.images import write_image
from adverse.errors import StoreError
from adverse.pages.view.session import ExploredRun
from adverse.types import Image

HOSTILE = (
    "<script>alert(1)",
    "\"'><img src=x onerror=alert(1)>",
    "=cmd()",
    "row\u202e3",
    "n" * 240,
    "a\nb",
)


class Moody:
    """Finds something everywhere; fails on dark images."""

    classes = ("person",)
    fingerprint = "moody"

    def detect(self, images: Sequence[Image]) -> list[Any]:
        if any(int(image.max()) < 100 for image in images):
            raise ValueError(f"cannot see: {Path(__file__)}")
        return [([[1, 1, 9, 9]], [0.5]) for _ in images]


def write_run(folder: Path, logs: Sequence[str], *, category: str, broken: bool = False) -> Path:
    entries: list[dict[str, Any]] = []
    for log in logs:
        (folder / "data" / log).mkdir(parents=True)
        name = f"{log}/0.png"
        write_image(folder / "data" / name, np.full((12, 16, 3), 150, np.uint8))
        entries.append({"id": len(entries) + 1, "file_name": name, "width": 16, "height": 12})
    truth = {"images": entries, "annotations": [], "categories": [{"id": 1, "name": category}]}
    (folder / "data" / "truth.json").write_text(json.dumps(truth))
    if broken:
        (folder / "data" / name).write_bytes(b"no picture")
    study = {
        "name": "odd",
        "data": {"format": "folder", "root": str(folder / "data")},
        "mutations": ["brightness(scale=0.5)"],
        "targets": [category],
        "robustness": {"bootstrap": 0},
        "quarantine_budget": 1.0,
    }
    moody = Moody()
    moody.classes = (category,)
    adverse.run(study, folder / "run", detectors={"moody": moody})
    return folder / "run"


def test_what_the_data_cannot_answer_is_said(tmp_path: Path, guest_of: Callable[[Path], TestClient]) -> None:
    run = write_run(tmp_path, ["a", "b"], category="person")
    guest = guest_of(run)
    page = guest.get("/explore.json").json()
    assert page["curves"]["lines"] == []
    assert any("clean: the data cannot answer this" in text for text in page["curves"]["missing"])
    assert "the data cannot answer this" in guest.get("/explore").text


def test_faults_and_frames_that_were_left_out_are_told_without_paths(
    tmp_path: Path, guest_of: Callable[[Path], TestClient]
) -> None:
    run = write_run(tmp_path, ["a", "b"], category="person", broken=True)
    left_out = ExploredRun(run).left_out
    assert left_out == {("moody", setting): {"b/0"} for setting in ("identity", "brightness(scale=0.5)")}
    guest = guest_of(run)
    first = guest.get("/explore", params={"log": "a"}).text
    assert "The SUT failed on this frame: " in first
    assert "cannot see" in first
    assert str(Path(__file__).parent) not in first
    second = guest.get("/explore", params={"log": "b"}).text
    assert "This frame was left out of the results: " in second
    assert "No picture: " in second
    assert str(tmp_path) not in second


def test_names_to_fear_are_shown_and_looked_up_as_they_are(
    tmp_path: Path, guest_of: Callable[[Path], TestClient]
) -> None:
    run = write_run(tmp_path, HOSTILE, category=HOSTILE[1])
    guest = guest_of(run)
    for log in HOSTILE:
        page = guest.get("/explore.json", params={"log": log}).json()
        assert page["pick"]["log"] == log
        assert page["frame"]["sides"]["left"]["found"][0]["label"] == HOSTILE[1]
        text = guest.get("/explore", params={"log": log}).text
        assert "<script>alert" not in text
        assert "<img" not in text
        assert guest.get(page["frame"]["sides"]["left"]["picture"]).status_code == 200
    as_a_form_sends_it = {"log": "a\r\nb"}
    assert guest.get("/frame.json", params=as_a_form_sends_it).json()["id"] == "a\nb/0"


def test_results_that_are_gone_are_said(tmp_path: Path, guest_of: Callable[[Path], TestClient]) -> None:
    run = write_run(tmp_path, ["a", "b"], category="person")
    guest = guest_of(run)
    outcomes = run / "results" / "outcomes.parquet"
    outcomes.write_bytes(b"not any more")
    answer = guest.get("/explore.json")
    assert (answer.status_code, answer.json()) == (409, {"error": "a file was changed"})
    outcomes.unlink()
    with pytest.raises(StoreError, match="a file is missing"):
        ExploredRun(run)

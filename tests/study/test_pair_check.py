"""Right images that are none are said by `adverse data check`, once for each kind, and stop nobody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.data.folder import folder
from adverse.data.images import write_image
from adverse.study.pair_check import doubtful_pairs
from annotation_scenes import write_camera
from stereo_scenes import orchard


@pytest.mark.parametrize(
    ("spoilt", "what"),
    [
        ("", None),
        ("swapped", "left and right image are swapped"),
        ("copies", "left and right image show the same view"),
        ("later", "left and right image are not of one moment"),
        ("millimetres", "the baseline cannot be right"),
    ],
)
def test_pairs_are_looked_at(tmp_path: Path, spoilt: str, what: str | None) -> None:
    pair = orchard()
    left, right = (pair.right, pair.left) if spoilt == "swapped" else (pair.left, pair.right)
    right = left if spoilt == "copies" else orchard(seconds_later=0.01).right if spoilt == "later" else right
    for kind in ("images", "right"):
        (tmp_path / "log" / kind).mkdir(parents=True)
    for number in range(2):
        write_image(tmp_path / "log" / "images" / f"{number}.png", left)
        write_image(tmp_path / "log" / "right" / f"{number}.png", right)
    camera = replace(pair.camera, baseline_m=240.0) if spoilt == "millimetres" else pair.camera
    write_camera(tmp_path / "camera.json", camera)
    found = list(doubtful_pairs(folder(tmp_path)))
    assert [(doubt.what, doubt.times, doubt.certain) for doubt in found] == (
        [(what, 2, False)] if what else []
    )
    assert all(doubt.fix and "2 of 2 pairs" in doubt.got for doubt in found)
    if spoilt == "later":
        said = CliRunner().invoke(app, ["data", "check", str(tmp_path)])
        assert said.exit_code == 0
        assert "left and right image are not of one moment" in said.output


def test_annotate_says_that_depth_is_in_millimetres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = orchard()
    for kind in ("images", "depth"):
        (tmp_path / "data" / "log" / kind).mkdir(parents=True)
    write_image(tmp_path / "data" / "log" / "images" / "0.png", pair.left)
    np.save(tmp_path / "data" / "log" / "depth" / "0.npy", 1000 * pair.depth_m)
    write_camera(tmp_path / "data" / "camera.json", replace(pair.camera, baseline_m=None))
    monkeypatch.setattr("adverse.serving.serve", lambda _door, bound, _routes: bound.close())
    arguments = ["annotate", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    assert "note: depth is too large by about a thousand" in CliRunner().invoke(app, arguments).output

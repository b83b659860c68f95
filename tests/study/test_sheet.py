"""Contact sheets of a study or data set use the depth that a run would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adverse import plugins
from adverse.cli.app import app
from adverse.data.images import ImageFile, write_image
from adverse.data.kitti import kitti
from adverse.mutations import contact_sheet
from adverse.mutations.settings import expand
from adverse.study.depth_maps import with_depth
from adverse.study.sheet import study_of_data
from adverse.study.spec import DepthSection
from adverse.types import Depth, Image
from formats import HEIGHT, WIDTH, picture, text, write_kitti

HAZE = "haze(visibility_m=12)"


def run(*arguments: object) -> str:
    """Run a command that must succeed; return what it printed."""
    shown = CliRunner().invoke(app, ["mutate", *map(str, arguments)])
    assert shown.exit_code == 0, shown.output
    return shown.output


def sheet_of(image: Path, depth_m: Depth, key: str, log: str) -> Image:
    registry = plugins.load()
    battery = expand(HAZE, registry, where="test")
    return contact_sheet(ImageFile(image)(), battery, registry, key=key, log=log, depth_m=depth_m)


def test_recorded_depth_of_a_folder_and_of_a_study(tmp_path: Path) -> None:
    for number, metres in enumerate((4.0, 9.0)):
        picture(tmp_path / f"data/row/images/{number}.png")
        (tmp_path / "data/row/depth").mkdir(exist_ok=True)
        np.save(tmp_path / f"data/row/depth/{number}.npy", np.full((HEIGHT, WIDTH), metres, np.float32))
    study = f"name: a\ndata: {{format: folder, root: data}}\nmutations: ['{HAZE}']\n"
    text(tmp_path / "study.yaml", study)
    out = tmp_path / "sheet.png"
    for number, metres in enumerate((4.0, 9.0)):
        depth = np.full((HEIGHT, WIDTH), metres, np.float32)
        wanted = sheet_of(tmp_path / f"data/row/images/{number}.png", depth, f"row/{number}", "row")
        given = ["--key", f"row/{number}"] if number else []
        run(tmp_path / "data", "--sheet", out, "-m", HAZE, *given)
        np.testing.assert_array_equal(ImageFile(out)(), wanted)
        run(tmp_path / "study.yaml", "--sheet", out, *given)
        np.testing.assert_array_equal(ImageFile(out)(), wanted)
    wrong = CliRunner().invoke(
        app, ["mutate", str(tmp_path / "data"), "--sheet", str(out), "-m", HAZE, "--key", "row/7"]
    )
    assert "there is no such frame" in str(wrong.exception)


@pytest.mark.parametrize("source", ["laser", "stereo"])
def test_depth_is_completed_or_computed_as_in_a_study(tmp_path: Path, source: str) -> None:
    root = write_kitti(tmp_path / "kitti")
    for scan in (root / "training/velodyne").iterdir():
        returns = np.fromfile(scan, "<f4").reshape(-1, 4)
        returns[::9].tofile(scan)  # few, as in real scans
        if source == "stereo":
            scan.unlink()
            left = root / f"training/image_2/{scan.stem}.png"
            write_image(root / f"training/image_3/{scan.stem}.png", np.roll(ImageFile(left)(), -5, axis=1))
    file = study_of_data(root, {"mutations": [HAZE]})
    assert file.study.depth is not None
    assert file.study.depth.origin == source
    section = DepthSection.model_validate({"from": source})
    frame = with_depth(kitti(root), section, folder=tmp_path, where="").logs[0].frames[0]
    assert frame.depth_m is not None
    depth = frame.depth_m()
    out = tmp_path / "sheet.png"
    run(root, "--sheet", out, "-m", HAZE, "--invalid-depth", "far")
    far = np.where(np.isnan(depth), np.float32(np.inf), depth)
    wanted = sheet_of(root / "training/image_2/000000.png", far, frame.id, frame.log_id)
    np.testing.assert_array_equal(ImageFile(out)(), wanted)

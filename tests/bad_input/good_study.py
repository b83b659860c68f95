"""A tiny study on which everything is right, and the handles by which a test spoils one thing of it."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray

from adverse.data.images import write_image
from adverse.types import Image

from .command import Said, adverse_here

WIDTH, HEIGHT, PICTURES = 64, 48, 8
BOX = (20, 10, 12, 30)
"""x, y, width, height of the figure that the first half of the pictures show."""
PROBE = Path(__file__).with_name("probe.py")


def picture(number: int) -> Image:
    """Return a picture that tells its number in the grey of its corner; the first four show a red figure."""
    image = np.random.default_rng(number).integers(90, 130, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    image[:8, :8] = 10 * number
    if number < PICTURES // 2:
        x, y, width, height = BOX
        image[y : y + height, x : x + width] = (220, 40, 40)
    return image


class GoodStudy:
    """Eight pictures, four with a person: as `coco`, or as two `folder` logs with depth and poses."""

    def __init__(self, folder: Path, data_format: str) -> None:
        self.folder = folder
        self.file = folder / "study.yaml"
        self.run = folder / "run"
        self.data = folder / "data"
        self.log = self.data / "b"
        self.data.mkdir(parents=True)
        shutil.copy(PROBE, folder / "probe.py")
        (folder / "model.bin").write_text("weights")
        self.annotations = self.data / "truth.json"
        self.study: dict[str, Any] = {
            "name": "bad day",
            "plugins": ["probe.py"],
            "suts": [{"name": "probe", "adapter": "probe", "weights": "model.bin"}],
            "mutations": ["brightness(scale=0.9)"],
            "unit_frames": 4,
        }
        if data_format == "coco":
            self.study["data"] = {"format": "coco", "root": "data", "annotations": "truth.json"}
            names = [f"{number}.png" for number in range(PICTURES)]
        else:
            self.study["data"] = {"format": "folder", "root": "data"}
            names = [f"{'ab'[number // 4]}/images/{number}.png" for number in range(PICTURES)]
        self.images = [(self.data / ("images" if data_format == "coco" else "") / name) for name in names]
        self.truth: dict[str, Any] = {
            "images": [
                {"id": number, "file_name": name, "width": WIDTH, "height": HEIGHT}
                for number, name in enumerate(names)
            ],
            "annotations": [
                {"id": number, "image_id": number, "category_id": 1, "bbox": list(BOX)}
                for number in range(PICTURES // 2)
            ],
            "categories": [{"id": 1, "name": "person"}],
        }
        for number, path in enumerate(self.images):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_image(path, picture(number))
        if data_format == "folder":
            self._surroundings()

    def write(self) -> None:
        """Write study.yaml and truth.json as they are now said in `study` and `truth`."""
        if not self.file.exists():
            self.file.write_text(yaml.safe_dump(self.study, sort_keys=False))
        if not self.annotations.exists():
            self.annotations.write_text(json.dumps(self.truth))

    def rewrite(self) -> None:
        """Write both again after a change."""
        self.file.unlink(missing_ok=True)
        self.annotations.unlink(missing_ok=True)
        self.write()

    def adverse(self, command: str = "run", *options: str, workers: int = 0) -> Said:
        """Run a command on the study in this process."""
        if command in ("run", "plan"):
            self.write()
        if command == "run":
            options = ("--workers", str(workers), *options)
        if command == "plan":
            options = ("--no-estimate", *options)
        subject = self.file if command in ("run", "plan") else self.run
        out = ("--out", str(self.run)) if command in ("run", "plan") else ()
        return adverse_here(command, subject, *out, *options)

    def summary(self) -> dict[str, Any]:
        """Return what the run came to."""
        found: dict[str, Any] = json.loads((self.run / "results" / "summary.json").read_text())
        return found

    def rows(self, setting: str = "identity") -> Iterator[dict[str, Any]]:
        """Yield the summary's rows for a setting."""
        return (row for row in self.summary()["rows"] if row["setting"] == setting)

    def sut(self, **options: Any) -> None:
        """Tell the SUT something."""
        self.study["suts"][0].update(options)

    def depth(self, number: int) -> NDArray[np.float32]:
        """Return the depth of a picture of the `folder` format."""
        stored: NDArray[np.float32] = np.load(self.depth_file(number))
        return stored

    def depth_file(self, number: int) -> Path:
        """Return where the depth of a picture lies."""
        return self.images[number].parents[1] / "depth" / f"{number}.npy"

    def _surroundings(self) -> None:
        self.study["mutations"].append("haze(visibility_m=500)")
        for number in range(PICTURES):
            path = self.depth_file(number)
            path.parent.mkdir(exist_ok=True)
            np.save(path, np.full((HEIGHT, WIDTH), 10, np.float32))
        for log in ("a", "b"):
            numbers = range(4) if log == "a" else range(4, 8)
            lines = [f"{number},{number / 10},{number},0,1.6,0.5,-0.5,0.5,-0.5" for number in numbers]
            header = "frame,time_s,x_m,y_m,z_m,qw,qx,qy,qz"
            (self.data / log / "poses.csv").write_text("\n".join([header, *lines, ""]))


class FinishedStudy:
    """A study that is run once, and put back as it was then for each test that spoils it.

    Folders stay the same ones, as a run folder that was copied or moved is told from one that was not.
    """

    def __init__(self, study: GoodStudy) -> None:
        study.adverse().expect(0)
        self._study = study
        self._kept = shutil.copytree(study.folder, study.folder.with_name("kept"))

    def put_back(self) -> GoodStudy:
        """Return the study, its folder as it was after the run, in the same place."""
        _put_back(self._study.folder, self._kept)
        return copy.deepcopy(self._study)


def _put_back(folder: Path, kept: Path) -> None:
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        elif (kept / path.name).is_dir():
            _put_back(path, kept / path.name)
        else:
            shutil.rmtree(path)
    for path in kept.iterdir():
        if path.is_file():
            shutil.copy2(path, folder)
        elif not (folder / path.name).exists():
            assert path.name != "run", "a test that moves the run folder needs one of its own"
            shutil.copytree(path, folder / path.name)


def encoded(image: NDArray[Any], ending: str) -> bytes:
    """Return a picture as the bytes of a file of that kind."""
    return bytes(cv2.imencode(ending, image[..., ::-1])[1])

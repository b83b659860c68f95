"""A small data set in Cityscapes layout with drawn cars, and a segmenter that goes by colour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml

from drawn_scenes import CAR, PERSON, car_mask, street, with_object

SEGMENTER = '''
import os
import time
from pathlib import Path

import numpy as np

from adverse.plugins import sut


class ByColour:
    """Road below, building above, car where it is red, person where it is blue."""

    classes = ("road", "building", "car", "person")

    def __init__(self, crash_on, sleep_s):
        self.crash_on, self.sleep_s = crash_on, sleep_s

    def segment(self, images):
        time.sleep(self.sleep_s * len(images))
        answers = []
        for image in images:
            pixels = image.astype(int)
            said = np.ones(image.shape[:2], np.uint8)
            said[image.shape[0] // 2 :] = 0
            said[pixels[..., 0] > pixels[..., 2] + 60] = 2
            said[pixels[..., 2] > pixels[..., 0] + 60] = 3
            if self.crash_on == "some" and pixels.sum() % 13 == 0:
                os._exit(3)
            answers.append(said)
        return answers


class BoxesByColour(ByColour):
    """The same as boxes, one for all red pixels."""

    classes = ("car",)

    def segment(self, images):
        raise AttributeError

    def detect(self, images):
        answers = []
        for image in images:
            pixels = image.astype(int)
            rows, columns = np.nonzero(pixels[..., 0] > pixels[..., 2] + 60)
            box = [[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]] if len(rows) else []
            answers.append((np.array(box, float).reshape(-1, 4), [0.9] * len(box)))
        return answers


@sut(name="by-colour")
def by_colour(*, crash_on: str = "", sleep_s: float = 0.0) -> ByColour:
    """Segments by colour."""
    return ByColour(crash_on, sleep_s)


@sut(name="boxes-by-colour")
def boxes_by_colour() -> BoxesByColour:
    """Detects by colour."""
    made = BoxesByColour("", 0.0)
    made.task = "detection"
    return made
'''


def write_campaign(
    folder: Path,
    *,
    frames: int = 6,
    seed: int = 1,
    suts: int = 1,
    car: tuple[int, int, int] = (140, 40, 30),
    twins: bool = False,
    **options: Any,
) -> Path:
    """Write data, plug-in and study; each frame has a car, red unless told, at a place of its own.

    With `twins` there is a second frame with the same pixels for each.
    """
    rng = np.random.default_rng(seed)
    root = folder / "data"
    for number in range(frames):
        name = f"aachen_{number:06d}_000019"
        scene = street(name, brightness=int(rng.integers(110, 122)))
        x, y = int(rng.integers(5, 190)), int(rng.integers(82, 105))
        scene = with_object(scene, car_mask(), (x, y), instance=CAR * 1000 + 1, colour=car)
        blue = np.ones((60, 24), np.bool_)
        if number % 2:
            scene = with_object(
                scene,
                blue,
                ((x + 150) % 280, 70),
                label=PERSON,
                instance=PERSON * 1000 + 1,
                colour=(20, 30, 120),
            )
        for kind, suffix, array in (
            ("leftImg8bit", "leftImg8bit", scene.image[..., ::-1]),
            ("gtFine", "gtFine_labelIds", scene.labels),
            ("gtFine", "gtFine_instanceIds", _cityscapes(scene.labels, scene.instances)),
        ):
            for each in (name, name.replace("000019", "000020"))[: 1 + twins]:
                path = root / kind / "val" / "aachen" / f"{each}_{suffix}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                assert cv2.imwrite(str(path), array)
    (folder / "plugin.py").write_text(SEGMENTER)
    section = options.pop("fuzz", {})
    if "mutations" not in section:  # few objects can be added to few frames
        section = {"quota": {"change_color": 20, "add_car": 4, "add_person": 1}, **section}
    sut_options = {key: options.pop(key) for key in ("crash_on", "sleep_s") if key in options}
    study = {
        "name": "drawn",
        "seed": 5,
        "task": "segmentation",
        "plugins": ["plugin.py"],
        "data": {"format": "cityscapes", "root": "data", "split": {"test": "val"}},
        "suts": [
            {"name": f"colour {number}", "adapter": "by-colour", "batch": 4, **sut_options}
            for number in range(suts)
        ],
        "fuzz": {
            "preset": "paper",
            "prune_below": 80,
            "options": {"off": ["perspective", "light"]},
            **section,
        },
        **options,
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study))
    return path


def _cityscapes(labels: np.ndarray[Any, Any], instances: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Instance ids as Cityscapes writes them: the class alone where nothing is told apart."""
    return np.where(instances > 0, instances, labels).astype(np.uint16)

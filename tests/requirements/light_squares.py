"""Pictures of a light square, systems that look for it, and studies of both with requirements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml

from adverse.data.images import write_image
from adverse.requirements.file import read_requirements
from adverse.requirements.run import run_check
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.types import Image

FRAMES = 40
SIZE = (48, 56)
PLUGIN = '''
"""Systems that look for a light square: one whatever the contrast, one only where there is much of it."""
import cv2
import numpy as np
from adverse import sut

class Looks:
    classes = ("light",)
    def __init__(self, least):
        self.least = least
    def detect(self, images):
        return [self.look(image) for image in images]
    def look(self, image):
        gray = image.mean(axis=2)
        if gray.std() < self.least:
            return np.zeros((0, 4)), np.zeros(0)
        y, x = np.unravel_index(cv2.blur(gray, (12, 12)).argmax(), gray.shape)
        return [[x - 6, y - 6, x + 6, y + 6]], [0.9]

class Names(Looks):
    classes = ("left", "right")
    task = "classification"
    def classify(self, images):
        return [self.name(image) for image in images]
    def name(self, image):
        found = self.look(image)[0]
        left = len(found) == 0 or found[0][0] < 22
        return [float(left), float(not left)]

class Paints(Looks):
    classes = ("dark", "light")
    task = "segmentation"
    def segment(self, images):
        return [self.paint(image) for image in images]
    def paint(self, image):
        out = np.zeros(image.shape[:2], np.int64)
        for x0, y0, x1, y1 in np.array(self.look(image)[0], int).reshape(-1, 4):
            out[max(y0, 0):y1, max(x0, 0):x1] = 1
        return out

@sut
def looks(least: float) -> Looks:
    return Looks(least)

@sut
def names(least: float) -> Names:
    return Names(least)

@sut
def paints(least: float) -> Paints:
    return Paints(least)
'''
ADAPTERS = {"detection": "looks", "classification": "names", "segmentation": "paints"}


class Heard:
    """Remembers how far a run came."""

    def __init__(self) -> None:
        self.done = 0
        self.before = 0

    def note(self, text: str) -> None:
        pass

    def under_way(self, answered: int) -> None:
        pass

    def begin(self, total: int, done: int) -> None:
        del total
        self.before = done

    def advance(self, statuses: Counter[str]) -> None:
        self.done += statuses.total()

    def end(self) -> None:
        pass


def pictures() -> list[tuple[Image, tuple[int, int]]]:
    rng = np.random.default_rng(5)
    found = []
    for number in range(FRAMES):
        noise = cv2.GaussianBlur(rng.standard_normal((*SIZE, 3)), (0, 0), 1.5)
        image = 70 + 15 * noise / noise.std()
        x = int(rng.integers(4, 14)) if number % 2 else int(rng.integers(28, 40))
        y = int(rng.integers(4, 30))
        image[y : y + 12, x : x + 12] += 110
        found.append((np.clip(image, 0, 255).astype(np.uint8), (x, y)))
    return found


def write_data(root: Path, task: str) -> dict[str, Any]:
    root.mkdir()
    annotations, images = [], []
    for number, (image, (x, y)) in enumerate(pictures()):
        name = f"{number:03}.png"
        if task == "classification":
            folder = root / ("left" if number % 2 else "right")
        elif task == "segmentation":
            folder = root / f"log{number:03}" / "images"
            labels = np.zeros(SIZE, np.uint8)
            labels[y : y + 12, x : x + 12] = 1
            (root / f"log{number:03}" / "labels").mkdir(parents=True)
            write_image(root / f"log{number:03}" / "labels" / name, labels)
        else:
            folder = root / "images"
        folder.mkdir(parents=True, exist_ok=True)
        write_image(folder / name, image)
        images.append({"id": number, "file_name": name, "width": SIZE[1], "height": SIZE[0]})
        annotations.append(
            {
                "id": number,
                "image_id": number,
                "category_id": 1,
                "bbox": [x, y, 12, 12],
                "area": 144,
                "iscrowd": 0,
            }
        )
    if task == "segmentation":
        (root / "pixel_classes.json").write_text(json.dumps({"0": "dark", "1": "light"}))
        return {"format": "folder", "root": "data"}
    if task == "classification":
        return {"format": "class-folders", "root": "data"}
    categories = [{"id": 1, "name": "light"}]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    (root / "truth.json").write_text(json.dumps(whole))
    return {"format": "coco", "root": "data", "annotations": "truth.json"}


def write_study(folder: Path, task: str, require: Sequence[dict[str, Any]], **more: Any) -> Path:
    (folder / "systems.py").write_text(PLUGIN)
    study = {
        "name": "squares",
        "task": task,
        "data": write_data(folder / "data", task),
        "plugins": ["systems.py"],
        "suts": [
            {"name": "steady", "adapter": ADAPTERS[task], "least": 0.0},
            {"name": "shy", "adapter": ADAPTERS[task], "least": 25.0},
        ],
        "targets": ["light"],
        "unit_frames": 16,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    path = folder / "requirements.yaml"
    settings = {
        "backend": "vifp",
        "batches": 200,
        "margin": 0.15,
        "rarest_kind": 0.2,  # these images are all of one kind
        "score": 0.5,
        "require": list(require),
        **more,
    }
    path.write_text(yaml.safe_dump({"study": "study.yaml", **settings}))
    return path


def checked(path: Path, out: Path) -> tuple[Any, Heard]:
    heard = Heard()
    found = run_check(read_requirements(path), out, InlineEngine(), watch=heard, stop=Stop())
    assert found is not None
    return found, heard

"""Small models that come with the package, trained on the rendered worlds' train split (training/).

They are files like anybody's: a study uses them through the ordinary adapters, wherever they were copied to.
Synthetic through and through: they make curves to look at, and are good for nothing else.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from adverse.errors import SutError, suggestion


@dataclass(frozen=True)
class BundledModel:
    """A model file, its family in words, and what a study says to use it."""

    file: str
    family: str
    adapter: str
    options: Mapping[str, Any]
    trained_on: tuple[str, ...] = ()
    """The mutations that it was trained with, in strengths of its own (training/conditions.py)."""

    def section(self, name: str, folder: str) -> dict[str, Any]:
        """Return the study's entry for the model where it lies in a folder beside the study."""
        trained = {"trained_on": list(self.trained_on)} if self.trained_on else {}
        model = f"{folder}/{self.file}"
        return {"name": name, "adapter": self.adapter, "model": model, **self.options, **trained}


_PERSON = {"classes": ["person"]}
_CONDITIONS = (
    "gaussian_blur",
    "defocus",
    "haze",
    "signal_noise",
    "salt_pepper",
    "low_light",
    "channel_dropout",
    "lens_mud",
)
MODELS: Mapping[str, BundledModel] = {
    "anchor": BundledModel(
        "orchard-anchor.onnx",
        "one stage, anchors",
        "onnx",
        {"decoder": "yolo", "nms_iou": 0.6, **_PERSON},
        _CONDITIONS,
    ),
    "centre": BundledModel(
        "orchard-centre.onnx",
        "one stage, centre points",
        "onnx",
        {"decoder": "yolo-v8", "nms_iou": 0.5, **_PERSON},
        _CONDITIONS,
    ),
    "two-stage": BundledModel(
        "orchard-two-stage.onnx", "two stages", "onnx", {"decoder": "decoded", "nms_iou": 0.5, **_PERSON}
    ),
    "hog": BundledModel(
        "orchard-hog.json",
        "HOG, colours and linear SVMs",
        "opencv-hog",
        {"enlarge": 1.25, "scale": 1.4, "hit_threshold": -2.5},
    ),
}


SEGMENTER = "street-segmenter.onnx"
"""Labels every pixel of the rendered street; its card says which channel is which class."""


def copy_models(folder: Path) -> list[Path]:
    """Copy all bundled models and their cards into a folder; what is there already is written again."""
    folder.mkdir(parents=True, exist_ok=True)
    home = resources.files(__name__)
    made = []
    for entry in sorted(home.iterdir(), key=lambda file: file.name):
        if entry.name.endswith((".onnx", ".json", ".md")):
            with resources.as_file(entry) as path:
                made.append(Path(shutil.copyfile(path, folder / entry.name)))
    return made


def model(name: str) -> BundledModel:
    """Return a bundled model by its name."""
    if name not in MODELS:
        raise SutError(f"there is no bundled model {name!r}", fix=suggestion(name, MODELS))
    return MODELS[name]

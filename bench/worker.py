"""One library in one process, on one thread: applies corruptions on request and says how long they took.

Run by `peers.py` in the library's own virtual environment, so it imports nothing but that library. Reads one
JSON request per line, {image, name, severity, seed, repeat, save}, and answers with one JSON line each.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

Apply = Callable[[Any, str, int, int], Any]


def imagecorruptions() -> Apply:
    warnings.filterwarnings("ignore")
    library = importlib.import_module("imagecorruptions")
    filters = importlib.import_module("skimage.filters")

    def gaussian(image: Any, sigma: Any = 1, *, multichannel: bool = False, **rest: Any) -> Any:
        return filters.gaussian(image, sigma=sigma, channel_axis=-1 if multichannel else None, **rest)

    library.corruptions.gaussian = gaussian  # newer scikit-image took the argument away

    def apply(image: Any, name: str, severity: int, seed: int) -> Any:
        np.random.seed(seed)  # noqa: NPY002 - the library draws from the global state
        return library.corrupt(image, severity=severity, corruption_name=name)

    return apply


def adverse() -> Apply:
    from adverse import mutations  # noqa: PLC0415

    def apply(image: Any, name: str, severity: int, seed: int) -> Any:
        return mutations.apply(image, f"c.{name}(severity={severity})", seed=seed, key="bench")

    return apply


def albumentations() -> Apply:
    """Return albumentations' transforms, each pinned to the parameters of one severity."""
    A = importlib.import_module("albumentations")  # noqa: N806 - its customary name

    def once(value: Any) -> tuple[Any, Any]:
        return value, value

    def transform(name: str, severity: int) -> Any:
        k = severity - 1
        sigma = (0.08, 0.12, 0.18, 0.26, 0.38)[k]
        impulse = (0.03, 0.06, 0.09, 0.17, 0.27)[k]
        width = (1, 2, 3, 4, 6)[k]
        radius = (3, 4, 6, 8, 10)[k]
        glass = ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))[k]
        zoom = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))[k]
        made: dict[str, Callable[[], Any]] = {
            "gaussian_noise": lambda: A.GaussNoise(std_range=once(sigma), p=1),
            "shot_noise": lambda: A.ShotNoise(scale_range=once(1 / (60, 25, 12, 5, 3)[k]), p=1),
            "impulse_noise": lambda: A.SaltAndPepper(amount=once(impulse), p=1),
            "speckle_noise": lambda: A.MultiplicativeNoise(
                multiplier=(0.5, 1.5), per_channel=True, elementwise=True, p=1
            ),
            "defocus_blur": lambda: A.Defocus(radius=once(radius), alias_blur=once(0.5), p=1),
            "glass_blur": lambda: A.GlassBlur(sigma=glass[0], max_delta=glass[1], iterations=glass[2], p=1),
            "motion_blur": lambda: A.MotionBlur(blur_limit=once((21, 31, 31, 31, 41)[k]), p=1),
            "zoom_blur": lambda: A.ZoomBlur(max_factor=once(zoom[0]), step_factor=once(zoom[1]), p=1),
            "gaussian_blur": lambda: A.GaussianBlur(
                blur_limit=once(2 * int(4 * width + 0.5) + 1), sigma_limit=once(width), p=1
            ),
            "contrast": lambda: A.RandomBrightnessContrast(
                brightness_limit=once(0), contrast_limit=once((-0.6, -0.7, -0.8, -0.9, -0.95)[k]), p=1
            ),
            "brightness": lambda: A.HueSaturationValue(once(0), once(0), once(26 * severity), p=1),
            "saturate": lambda: A.HueSaturationValue(once(0), once(20 * severity), once(0), p=1),
            "elastic_transform": lambda: A.ElasticTransform(alpha=30, sigma=5, p=1),
            "pixelate": lambda: A.Downscale(
                scale_range=once((0.6, 0.5, 0.4, 0.3, 0.25)[k]),
                interpolation_pair={"downscale": cv2.INTER_AREA, "upscale": cv2.INTER_NEAREST},
                p=1,
            ),
            "jpeg_compression": lambda: A.ImageCompression(quality_range=once((25, 18, 15, 10, 7)[k]), p=1),
            "spatter": lambda: A.Spatter(mode="rain" if severity <= 3 else "mud", p=1),
            "snow": lambda: A.RandomSnow(p=1),
            "fog": lambda: A.RandomFog(p=1),
        }
        return made[name]() if name in made else None

    ready: dict[tuple[str, int], Any] = {}

    def apply(image: Any, name: str, severity: int, seed: int) -> Any:
        if (name, severity) not in ready:
            ready[name, severity] = transform(name, severity)
        chosen = ready[name, severity]
        if chosen is None:
            return None
        chosen.set_random_seed(seed)
        return chosen(image=image)["image"]

    return apply


def main() -> None:
    cv2.setNumThreads(1)
    apply = {"imagecorruptions": imagecorruptions, "adverse": adverse, "albumentations": albumentations}[
        sys.argv[1]
    ]()
    for line in sys.stdin:
        request = json.loads(line)
        image = np.load(request["image"])
        seconds = []
        made = None
        for turn in range(request["repeat"]):
            begin = time.process_time()
            made = apply(image, request["name"], request["severity"], request["seed"] + turn)
            seconds.append(time.process_time() - begin)
        if request["save"] and made is not None:
            np.save(request["save"], np.asarray(made))
        print(json.dumps({"seconds": seconds if made is not None else []}), flush=True)


main()

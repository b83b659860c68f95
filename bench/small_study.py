"""A study to measure on: drawn logs, a SUT that does next to nothing, made in a folder of your choice."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from adverse.data.images import write_image
from adverse.seeds import generator

SUT = """
import time
from adverse import Detections, sut

class Nothing:
    classes = ("person",)
    def __init__(self, sleep_s): self.sleep_s = sleep_s
    def detect(self, images):
        if self.sleep_s:
            time.sleep(self.sleep_s * len(images))
        brightest = [float(image[::16, ::16].mean()) / 255 for image in images]
        return [Detections([[10, 10, 50, 90]], [score]) for score in brightest]

@sut
def nothing(sleep_s: float = 0.0):
    \"\"\"Answer one box whatever the image, after a while.\"\"\"
    return Nothing(sleep_s)
"""


def write_study(
    folder: Path,
    *,
    frames: int,
    logs: int,
    size: tuple[int, int],
    sleep_s: float,
    suffix: str = ".jpg",
    mutations: str = "[first-look]",
    unit_frames: int | None = None,
) -> Path:
    """Write data, SUT and study; return the study file."""
    width, height = size
    images: list[dict[str, object]] = []
    annotations: list[dict[str, object]] = []
    for log in range(logs):
        (folder / "data" / f"log{log}").mkdir(parents=True, exist_ok=True)
        base = generator(log, "bench").integers(0, 255, (height // 8, width // 8, 3), np.uint8)
        smooth = np.kron(base, np.ones((8, 8, 1), np.uint8))
        for frame in range(frames):
            name = f"log{log}/{frame:04d}{suffix}"
            write_image(folder / "data" / name, np.roll(smooth, 4 * frame, axis=1))
            images.append({"id": len(images), "file_name": name, "width": width, "height": height})
            if log % 2 == 0:
                box = [12, 12, 40, 80]
                image_id = len(images) - 1
                annotations.append({"id": image_id, "image_id": image_id, "category_id": 1, "bbox": box})
    truth = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "person"}]}
    (folder / "data" / "truth.json").write_text(json.dumps(truth))
    (folder / "nothing.py").write_text(SUT)
    study = folder / "study.yaml"
    study.write_text(
        "name: bench\nseed: 3\nplugins: [nothing.py]\n"
        "data: {format: folder, root: data}\n"
        f"suts: [{{name: nothing, adapter: nothing, sleep_s: {sleep_s:g}}}]\n"
        f"mutations: {mutations}\n" + (f"unit_frames: {unit_frames}\n" if unit_frames else "")
    )
    return study


def results_hash(run: Path) -> str:
    """Hash everything of a run folder that must not depend on how it was run."""
    hasher = hashlib.sha256()
    for part in ("detections", "results"):
        for path in sorted((run / part).rglob("*")):
            hasher.update(path.name.encode())
            hasher.update(path.read_bytes())
    for name in ("cells.parquet", "frames.parquet", "truth.parquet", "study.yaml"):
        hasher.update((run / name).read_bytes())
    return hasher.hexdigest()

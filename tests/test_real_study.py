"""A real model on real photographs, end to end: it sees people, and blur takes them away."""

from __future__ import annotations

from pathlib import Path

import pytest

import adverse

SHARED = Path(__file__).parents[2] / "shared"
PHOTOS = SHARED / "data" / "coco128_permissive"
MODEL = SHARED / "models" / "FastestDet.onnx"


@pytest.mark.skipif(
    not (PHOTOS.is_dir() and MODEL.is_file()), reason="needs the shared photos and FastestDet.onnx"
)
def test_fastestdet_loses_people_to_blur(tmp_path: Path) -> None:
    study = {
        "name": "real",
        "data": {
            "format": "coco",
            "root": str(PHOTOS),
            "annotations": "instances_train2017_permissive.json",
            "images": "train2017",
        },
        "suts": [
            {
                "name": "fastestdet",
                "adapter": "onnx",
                "model": str(MODEL),
                "decoder": "fastestdet",
                "resize": "stretch",
                "interpolation": "area",
                "channels": "bgr",
                "batch": 4,
            }
        ],
        "mutations": [{"gaussian_blur": {"sigma_px": [1.5, 3]}}],
    }
    rows = [row for row in adverse.run(study, tmp_path / "run").rows if row["level"] == "image/ROC_A"]
    areas = {row["setting"]: row["area"] for row in rows}
    assert 0.15 < areas["identity"] < 0.35
    assert areas["identity"] > areas["gaussian_blur(sigma_px=1.5)"] > areas["gaussian_blur(sigma_px=3)"]
    assert {row["status"] for row in rows} == {"ok"}
    assert rows[0]["frames"] == 33

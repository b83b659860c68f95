"""Calibration: `camera.json`, nearest to the log wins, so one file can serve a whole data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from adverse.data.files import read_model
from adverse.types import Camera

FILE_NAME = "camera.json"
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Pixels = Annotated[int, Field(gt=0)]


class _CameraFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    fx: _Positive
    fy: _Positive
    cx: _Finite
    cy: _Finite
    width: _Pixels
    height: _Pixels
    baseline_m: _Positive | None = None


def read_camera(path: Path) -> Camera:
    """Read a calibration; unknown fields are refused, since a misspelt one would be lost."""
    return Camera(**read_model(path, "camera", _CameraFile).model_dump())


def camera_file(folder: Path, root: Path) -> Path | None:
    """Return the `camera.json` of a folder, or of the nearest folder above it up to root."""
    for candidate in (folder, *folder.parents):
        if (candidate / FILE_NAME).is_file():
            return candidate / FILE_NAME
        if candidate == root:
            return None
    return None

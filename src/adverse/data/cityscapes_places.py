"""Cityscapes' camera and vehicle files: how the camera sees, where it sits, and where the car was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from adverse.data.poses import CAMERA_AXES, turned
from adverse.data.strict_json import read_model

Matrix = NDArray[np.float64]
EARTH_RADIUS_M = 6371000.0
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Extrinsic(BaseModel):
    """Where the camera sits in the vehicle: metres, and radians by yaw, then pitch (down), then roll."""

    baseline: _Positive
    x: _Finite
    y: _Finite
    z: _Finite
    yaw: _Finite
    pitch: _Finite
    roll: _Finite


class Intrinsic(BaseModel):
    """A pinhole camera in pixels."""

    fx: _Positive
    fy: _Positive
    u0: _Finite
    v0: _Finite


class CameraFile(BaseModel):
    """The content of ..._camera.json."""

    extrinsic: Extrinsic
    intrinsic: Intrinsic

    @property
    def vehicle_from_camera(self) -> Matrix:
        """The camera's place in the vehicle, (4,4)."""
        e = self.extrinsic
        placed = np.eye(4)
        placed[:3, :3] = turned(e.yaw, e.pitch, e.roll) @ CAMERA_AXES
        placed[:3, 3] = e.x, e.y, e.z
        return placed


class VehicleFile(BaseModel):
    """What we read of ..._vehicle.json: degrees, the heading clockwise from north."""

    gpsHeading: _Finite  # noqa: N815 - their names
    gpsLatitude: Annotated[float, Field(gt=-90, lt=90)]  # noqa: N815
    gpsLongitude: Annotated[float, Field(ge=-180, le=180)]  # noqa: N815


def read_camera_file(path: Path) -> CameraFile:
    """Read ..._camera.json."""
    return read_model(path, "camera", CameraFile)


def read_vehicle_file(path: Path) -> VehicleFile:
    """Read ..._vehicle.json."""
    return read_model(path, "vehicle", VehicleFile)


def world_from_vehicle(now: VehicleFile, first: VehicleFile) -> Matrix:
    """Return where the vehicle is (4,4) in a flat world that begins with `first`, x along its heading."""
    north = EARTH_RADIUS_M * np.radians(now.gpsLatitude - first.gpsLatitude)
    across = EARTH_RADIUS_M * np.cos(np.radians(first.gpsLatitude))
    east = across * np.radians(now.gpsLongitude - first.gpsLongitude)
    start = np.radians(90 - first.gpsHeading)  # counter-clockwise from east
    world = np.eye(4)
    world[:3, :3] = turned(np.radians(first.gpsHeading - now.gpsHeading), 0, 0)
    world[:3, 3] = turned(-start, 0, 0) @ [east, north, 0]
    return world

"""What the robot that took the logs is like: `robot.json` at the root of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from adverse.data.files import read_model
from adverse.errors import DataError

FILE_NAME = "robot.json"
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _RobotFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    control_radius_m: _Positive
    safety_radius_m: _Positive


def read_robot(path: Path) -> dict[str, float]:
    """Read a robot file: when it should stop (control radius), what it must never touch (safety)."""
    robot = read_model(path, "robot", _RobotFile)
    if robot.safety_radius_m > robot.control_radius_m:
        raise DataError(
            "the robot would stop too late to keep its safety radius",
            where=str(path),
            got=f"safety_radius_m {robot.safety_radius_m:g}, control_radius_m {robot.control_radius_m:g}",
            wanted="safety_radius_m <= control_radius_m",
            fix="Correct the one that is wrong.",
        )
    return robot.model_dump()
